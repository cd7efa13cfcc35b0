//! The CA that machines are told to trust, read from the ConfigMap that the class names.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use scarpenter_api::ScarpenterNodeClass;

use super::Error;
use crate::context::Context;

/// A CA is read again after this long.
const FRESH: Duration = Duration::from_secs(60);

/// CAs that were read lately, by ConfigMap and key.
#[derive(Debug, Default)]
pub(crate) struct Authorities(Mutex<HashMap<(String, String), (String, Instant)>>);

impl Authorities {
    /// The CA of a class, PEM.
    pub(crate) async fn get(&self, context: &Context, class: &ScarpenterNodeClass) -> Result<String, Error> {
        let reference = &class.spec.join.ca_certificate.config_map_key_ref;
        let key = (reference.name.clone(), reference.key.clone());
        if let Some(pem) = self.fresh(&key) {
            return Ok(pem);
        }
        for namespace in [context.settings.namespace.as_str(), "kube-public"] {
            let api = Api::<ConfigMap>::namespaced(context.client.clone(), namespace);
            let map = api.get_opt(&key.0).await.map_err(Error::kubernetes("read the CA"))?;
            if let Some(pem) = map.and_then(|map| map.data?.remove(&key.1)) {
                self.lock().insert(key, (pem.clone(), Instant::now()));
                return Ok(pem);
            }
        }
        Err(Error::NoCa { name: key.0, key: key.1, namespace: context.settings.namespace.clone() })
    }

    fn fresh(&self, key: &(String, String)) -> Option<String> {
        self.lock().get(key).filter(|(_, read)| read.elapsed() < FRESH).map(|(pem, _)| pem.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), (String, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
