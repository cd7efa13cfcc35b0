//! The way in: a client that counts, what the cluster is, and whether its CRDs are there.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::client::ClientBuilder;
use kube::{Api, Client, Config, ResourceExt};
use scarpenter_core::name::ClusterId;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;
use tower::filter::FilterLayer;
use tower::util::MapRequestLayer;

use crate::catalog::Shelf;
use crate::context::{Context, Parts, Server};
use crate::fence::Fence;
use crate::metrics::{self, Metrics};
use crate::serve::ServeError;
use crate::settings::Settings;
use crate::vendors::Vendors;

/// CRDs without which nothing works.
const CRDS: [&str; 3] =
    ["nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "scarpenternodeclasses.scarpenter.sparecores.com"];

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of the API server.
const READ_TIMEOUT: Duration = Duration::from_secs(150);

/// Why the controller cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No client can be made of the configuration.
    #[error("make a client of the cluster's configuration")]
    Client(#[source] Box<kube::Error>),
    /// The API server does not answer, or not as it should.
    #[error("{doing} at {url}")]
    Cluster {
        /// What we were doing.
        doing: &'static str,
        /// Which server.
        url: String,
        /// Its words.
        source: Box<kube::Error>,
    },
    /// A port is taken.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A plugin's endpoint cannot be used.
    #[error("connect to a provider")]
    Provider(#[source] Box<scarpenter_provider::client::ConnectError>),
    /// The recorder of metrics cannot be made.
    #[error("make the recorder of metrics")]
    Metrics(#[source] Box<metrics_exporter_prometheus::BuildError>),
    /// Another controller leads now.
    #[error("leadership was lost; ending, so that nothing of this process acts on")]
    LeadershipLost,
}

/// Connects and gathers what does not change.
pub(crate) async fn connect(
    config: &Config,
    settings: Settings,
    catalog: Shelf,
) -> Result<(Context, UnboundedReceiver<String>), Error> {
    let fence = Fence::default();
    let client = client_of(config.clone(), &fence)?;
    let mut plain = config.clone();
    plain.default_retry = false;
    let unrepeated = client_of(plain, &fence)?;
    let url = config.cluster_url.to_string();
    let at = |doing| {
        let url = url.clone();
        move |source| Error::Cluster { doing, url, source: Box::new(source) }
    };
    let version = client.apiserver_version().await.map_err(at("read the version"))?.git_version;
    let system = Api::<Namespace>::all(client.clone())
        .get("kube-system")
        .await
        .map_err(at("read Namespace kube-system"))?;
    let parts = Parts {
        vendors: Vendors::new(&settings.providers).map_err(|error| Error::Provider(Box::new(error)))?,
        client,
        unrepeated,
        fence,
        settings,
        cluster: ClusterId::new(system.uid().unwrap_or_default()),
        catalog,
        server: Server { url: url.trim_end_matches('/').to_owned(), version },
        metrics: Arc::new(Metrics::install().map_err(|error| Error::Metrics(Box::new(error)))?),
    };
    tracing::info!(cluster = %parts.cluster, url, version = parts.server.version, "connected");
    Ok(Context::new(parts))
}

/// A client that counts its requests by method and resource, and writes only while it leads.
fn client_of(mut config: Config, fence: &Fence) -> Result<Client, Error> {
    // A server that has gone without a word must not hold a look for ever; watches hear a bookmark every minute.
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.write_timeout = Some(READ_TIMEOUT);
    let builder = ClientBuilder::try_from(config).map_err(|error| Error::Client(Box::new(error)))?;
    let counting = MapRequestLayer::new(|request: axum::http::Request<_>| {
        metrics::request(method(request.method()), resource(request.uri().path()));
        request
    });
    let fence = fence.clone();
    let fenced = FilterLayer::new(move |request: axum::http::Request<_>| fence.pass(request));
    Ok(builder.with_layer(&counting).with_layer(&fenced).build())
}

fn method(method: &axum::http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// The resource that a path names: the first plain word after the version and the namespace.
fn resource(path: &str) -> &str {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let skip = if parts.next() == Some("apis") { 2 } else { 1 };
    let mut parts = parts.skip(skip);
    match (parts.next(), parts.nth(1)) {
        (Some("namespaces"), Some(resource)) => resource,
        (Some(resource), _) => resource,
        (None, _) => "other",
    }
}

/// Waits until the CRDs are served, and says meanwhile which is missing.
pub(crate) async fn wait_for_crds(
    context: &Context,
    ready: &Sender<Result<(), String>>,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let api = Api::<CustomResourceDefinition>::all(context.client.clone());
    let mut told = String::new();
    loop {
        let mut missing = Vec::new();
        for name in CRDS {
            let found = api.get_opt(name).await;
            match found {
                Ok(Some(_)) => {}
                Ok(None) => missing.push(name),
                Err(error) => {
                    let url = context.server.url.clone();
                    return Err(Error::Cluster { doing: "read the CRDs", url, source: Box::new(error) });
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let words = format!(
            "missing CRDs: {}; apply them with: scarpenter crds | kubectl apply -f -",
            missing.join(", ")
        );
        if words != told {
            tracing::error!("{words}");
            told.clone_from(&words);
        }
        let _ = ready.send(Err(words));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(2)) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

/// Asks every plugin once what it is, for commands that do not stay.
pub(crate) async fn capabilities_once(context: &Context) {
    futures::future::join_all(context.vendors.iter().map(|slot| slot.ask())).await;
}

#[cfg(test)]
mod tests {
    use super::resource;

    #[test]
    fn requests_are_counted_by_resource() {
        for (path, name) in [
            ("/api/v1/namespaces/default/pods/a", "pods"),
            ("/api/v1/namespaces/default", "namespaces"),
            ("/api/v1/nodes", "nodes"),
            ("/apis/karpenter.sh/v1/nodeclaims/a/status", "nodeclaims"),
            ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", "leases"),
            ("/version", "other"),
        ] {
            assert_eq!(resource(path), name, "{path}");
        }
    }
}
