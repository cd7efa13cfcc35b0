//! Clients of the Headscales that classes name, each with the API key of its Secret.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use scarpenter_api::nodeclass::Headscale;
use scarpenter_core::name::Secret as Hidden;
use scarpenter_headscale::{Client, Limits};
use serde::{Deserialize, Serialize};

use super::{Error, lock};
use crate::context::Context;

/// A Secret is read again after this long, so that a new key is taken soon.
const FRESH: Duration = Duration::from_secs(10);

/// A Headscale, and which Secret opens it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Server {
    /// Its URL.
    pub(crate) url: String,
    /// Name of the Secret.
    pub(crate) secret: String,
    /// Key in it.
    pub(crate) key: String,
}

impl Server {
    pub(crate) fn of(headscale: &Headscale) -> Self {
        let secret = &headscale.api_key_secret_ref;
        Self { url: headscale.url.clone(), secret: secret.name.clone(), key: secret.key.clone() }
    }
}

/// Clients that were made, with the API key that each was made of.
#[derive(Default)]
pub(super) struct Clients(Mutex<HashMap<Server, Made>>);

struct Made {
    client: Arc<Client>,
    key: Hidden,
    read: Instant,
}

/// A client of that Headscale; its connections are kept from call to call.
pub(super) async fn client(context: &Context, server: &Server) -> Result<Arc<Client>, Error> {
    let clients = &context.mesh.clients.0;
    let fresh = lock(clients)
        .get(server)
        .filter(|made| made.read.elapsed() < FRESH)
        .map(|made| Arc::clone(&made.client));
    if let Some(client) = fresh {
        return Ok(client);
    }
    Client::check_address(&server.url)?;
    let key = api_key(context, server).await?;
    let mut clients = lock(clients);
    let known = clients.remove(server).filter(|made| made.key == key).map(|made| made.client);
    let client = match known {
        Some(client) => client,
        None => Arc::new(Client::new(&server.url, &key, Limits::default())?),
    };
    let made = Made { client: Arc::clone(&client), key, read: Instant::now() };
    clients.insert(server.clone(), made);
    Ok(client)
}

async fn api_key(context: &Context, server: &Server) -> Result<Hidden, Error> {
    let namespace = &context.settings.namespace;
    let api = Api::<Secret>::namespaced(context.client.clone(), namespace);
    let (name, key, namespace) = (server.secret.clone(), server.key.clone(), namespace.clone());
    let Some(secret) =
        api.get_opt(&name).await.map_err(Error::kubernetes("read the API key of Headscale"))?
    else {
        return Err(Error::NoSecret { name, key, namespace });
    };
    let text = secret.data.as_ref().and_then(|data| std::str::from_utf8(&data.get(&key)?.0).ok());
    match text.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => Ok(Hidden::new(text)),
        None => Err(Error::NoSecretKey { name, key, namespace }),
    }
}

/// What a call came to; an API key that is refused is read again before the next, and the error says where it is.
pub(super) fn said<T>(
    context: &Context,
    server: &Server,
    outcome: Result<T, scarpenter_headscale::Error>,
) -> Result<T, Error> {
    let error = match outcome {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    context.metrics.mesh_failed(error.kind().as_str());
    if error.kind() != scarpenter_headscale::Kind::Unauthorized {
        return Err(error.into());
    }
    lock(&context.mesh.clients.0).remove(server);
    Err(Error::ApiKey { url: server.url.clone(), name: server.secret.clone(), key: server.key.clone() })
}
