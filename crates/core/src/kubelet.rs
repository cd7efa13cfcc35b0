//! What a kubelet keeps back: one computation for the planner's promise, the document and the hollow node.

use std::collections::BTreeMap;

use crate::resources::{self, BadQuantity, Resources, parse_quantity};

/// Kubelet settings of a class that decide what is left for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubelet {
    /// Limit of pods.
    pub max_pods: u32,
    /// `kubeReserved`.
    pub kube_reserved: Resources,
    /// `systemReserved`.
    pub system_reserved: Resources,
    /// `evictionHard`: signal to amount (`100Mi`) or share (`5%`). Empty: kubelet's own default.
    pub eviction_hard: BTreeMap<String, String>,
}

/// Kubelet's own thresholds on Linux that take from allocatable; they end when any is set.
const DEFAULT_EVICTION: [(&str, &str); 2] = [("memory.available", "100Mi"), ("nodefs.available", "10%")];

impl Kubelet {
    /// What pods can have of `capacity`: less both reserved, less the hard eviction thresholds, never below 0.
    ///
    /// # Errors
    /// [`BadQuantity`] when an eviction threshold is neither an amount nor a share.
    pub fn allocatable(&self, capacity: &Resources) -> Result<Resources, BadQuantity> {
        let mut rest = capacity.clone();
        rest.subtract(&self.kube_reserved);
        rest.subtract(&self.system_reserved);
        rest.subtract(&self.eviction(capacity)?);
        if let Some(pods) = capacity.find(resources::PODS) {
            rest.set(resources::PODS, pods.min(i64::from(self.max_pods)));
        }
        Ok(capacity.iter().map(|(name, _)| (name.to_owned(), rest.get(name).max(0))).collect())
    }

    fn eviction(&self, capacity: &Resources) -> Result<Resources, BadQuantity> {
        let default = DEFAULT_EVICTION.map(|(signal, threshold)| (signal.to_owned(), threshold.to_owned()));
        let default = BTreeMap::from(default);
        let thresholds = if self.eviction_hard.is_empty() { &default } else { &self.eviction_hard };
        let mut out = Resources::new();
        for (signal, threshold) in thresholds {
            let name = match signal.as_str() {
                "memory.available" => resources::MEMORY,
                "nodefs.available" => resources::EPHEMERAL_STORAGE,
                _ => continue,
            };
            out.set(name, threshold_amount(name, threshold, capacity.get(name))?);
        }
        Ok(out)
    }
}

fn threshold_amount(name: &str, threshold: &str, capacity: i64) -> Result<i64, BadQuantity> {
    let Some(percent) = threshold.strip_suffix('%') else { return parse_quantity(name, threshold) };
    // Read as millicores are, the share comes in thousandths of a percent.
    let thousandths = parse_quantity(resources::CPU, percent)?;
    let amount = i128::from(capacity) * i128::from(thousandths) / 100_000;
    Ok(i64::try_from(amount).unwrap_or(i64::MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};

    fn capacity() -> Resources {
        let disk = 40 << 30;
        Resources::new().with(CPU, 2000).with(MEMORY, 4 << 30).with(EPHEMERAL_STORAGE, disk).with(PODS, 110)
    }

    #[test]
    fn with_nothing_set_only_kubelets_own_eviction_default_is_taken_off() {
        let left = Kubelet { max_pods: 50, ..Kubelet::default() }.allocatable(&capacity()).unwrap();
        assert_eq!(left.get(CPU), 2000);
        assert_eq!(left.get(MEMORY), (4 << 30) - (100 << 20));
        assert_eq!(left.get(EPHEMERAL_STORAGE), 36 << 30);
        assert_eq!(left.get(PODS), 50);
    }

    #[test]
    fn reserved_and_eviction_add_up_and_never_go_below_zero() {
        let kubelet = Kubelet {
            max_pods: 110,
            kube_reserved: Resources::new().with(CPU, 100).with(MEMORY, 3 << 30),
            system_reserved: Resources::new().with(CPU, 50).with(MEMORY, 1 << 30),
            eviction_hard: BTreeMap::from([("memory.available".to_owned(), "12.5%".to_owned())]),
        };
        let left = kubelet.allocatable(&capacity()).unwrap();
        assert_eq!((left.get(CPU), left.get(MEMORY)), (1850, 0));
        assert_eq!(left.get(EPHEMERAL_STORAGE), 40 << 30, "one threshold set ends every default");
    }

    #[test]
    fn a_threshold_that_is_no_quantity_is_an_error() {
        let eviction_hard = BTreeMap::from([("memory.available".to_owned(), "much".to_owned())]);
        assert!(Kubelet { eviction_hard, ..Kubelet::default() }.allocatable(&capacity()).is_err());
    }
}
