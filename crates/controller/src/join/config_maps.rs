//! What a class names in ConfigMaps: the CA that machines are told to trust, and Ignition of the class's own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use scarpenter_api::ScarpenterNodeClass;

use super::Error;
use crate::context::Context;

/// What was read is read again after this long.
const FRESH: Duration = Duration::from_secs(60);
/// Key of a class's Ignition in its ConfigMap, where that has several.
const IGNITION: &str = "ignition";

/// Which text of which ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Authority { name: String, key: String },
    Ignition { name: String },
}

/// What was read lately.
#[derive(Debug, Default)]
pub(crate) struct ConfigMaps(Mutex<HashMap<Place, (String, Instant)>>);

impl ConfigMaps {
    /// The CA of a class, PEM, from the controller's namespace or from kube-public.
    ///
    /// # Errors
    /// [`Error::NoCa`] when neither has it.
    pub(crate) async fn authority(
        &self,
        context: &Context,
        class: &ScarpenterNodeClass,
    ) -> Result<String, Error> {
        let reference = &class.spec.join.ca_certificate.config_map_key_ref;
        let (name, key) = (reference.name.clone(), reference.key.clone());
        let place = Place::Authority { name: name.clone(), key: key.clone() };
        if let Some(pem) = self.fresh(&place) {
            return Ok(pem);
        }
        for namespace in [context.settings.namespace.as_str(), "kube-public"] {
            let api = Api::<ConfigMap>::namespaced(context.client.clone(), namespace);
            let map = api.get_opt(&name).await.map_err(Error::kubernetes("read the CA"))?;
            if let Some(pem) = map.and_then(|map| map.data?.remove(&key)) {
                return Ok(self.keep(place, pem));
            }
        }
        Err(Error::NoCa { name, key, namespace: context.settings.namespace.clone() })
    }

    /// The Ignition of a class's own, from the controller's namespace; `None` when the class names none.
    ///
    /// # Errors
    /// [`Error::NoIgnition`] and [`Error::IgnitionKey`] when it is not there, or not to be told from other keys.
    pub(crate) async fn ignition(
        &self,
        context: &Context,
        class: &ScarpenterNodeClass,
    ) -> Result<Option<String>, Error> {
        let Some(ignition) = &class.spec.ignition else { return Ok(None) };
        let name = ignition.config_map_ref.name.clone();
        let place = Place::Ignition { name: name.clone() };
        if let Some(text) = self.fresh(&place) {
            return Ok(Some(text));
        }
        let namespace = &context.settings.namespace;
        let api = Api::<ConfigMap>::namespaced(context.client.clone(), namespace);
        let map = api.get_opt(&name).await.map_err(Error::kubernetes("read the Ignition of the class"))?;
        let map =
            map.ok_or_else(|| Error::NoIgnition { name: name.clone(), namespace: namespace.clone() })?;
        let text = text_of(map).ok_or_else(|| Error::IgnitionKey { name, namespace: namespace.clone() })?;
        Ok(Some(self.keep(place, text)))
    }

    /// Reads everything anew next time: what was read is not usable, and whoever mends it is waiting.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn keep(&self, place: Place, text: String) -> String {
        self.lock().insert(place, (text.clone(), Instant::now()));
        text
    }

    fn fresh(&self, place: &Place) -> Option<String> {
        self.lock().get(place).filter(|(_, read)| read.elapsed() < FRESH).map(|(text, _)| text.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Place, (String, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Key `ignition`, else the only key.
fn text_of(map: ConfigMap) -> Option<String> {
    let mut data = map.data.unwrap_or_default();
    match data.remove(IGNITION) {
        Some(text) => Some(text),
        None if data.len() == 1 => data.into_values().next(),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(keys: &[&str]) -> Option<String> {
        let data = keys.iter().map(|key| ((*key).to_owned(), format!("of {key}"))).collect();
        text_of(ConfigMap { data: Some(data), ..ConfigMap::default() })
    }

    #[test]
    fn the_ignition_is_under_its_key_or_under_the_only_one() {
        assert_eq!(found(&["ignition", "other"]).as_deref(), Some("of ignition"));
        assert_eq!(found(&["config.ign"]).as_deref(), Some("of config.ign"));
        assert_eq!(found(&["a", "b"]), None);
        assert_eq!(found(&[]), None);
    }
}
