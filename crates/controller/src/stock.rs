//! What vendors refused lately: the real answer beats the catalog, for a time that grows with repetition.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::Vendor;
use scarpenter_core::offering::OfferingKey;

/// First time-out of a refusal.
const FIRST: Duration = Duration::from_secs(30);
/// Longest time-out of a refusal.
const LONGEST: Duration = Duration::from_secs(600);

/// One thing that cannot be bought now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    until: Time,
    times: u32,
    words: String,
}

/// The memory of refusals, by what they cover.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    offerings: BTreeMap<OfferingKey, Refused>,
    regions: BTreeMap<(Vendor, String), Refused>,
    vendors: BTreeMap<Vendor, Refused>,
    /// Those of the vendors that do not take their plugin's credentials.
    denied: BTreeSet<Vendor>,
    /// What was said last of a machine for a pod, by the pod's UID.
    pods: BTreeMap<String, String>,
}

impl Stock {
    /// Remembers why these pods did not get the machine that was asked for.
    pub(crate) fn say(&mut self, pods: &[String], words: &str) {
        self.pods.extend(pods.iter().map(|uid| (uid.clone(), words.to_owned())));
    }

    /// Why a pod did not get the machine that was asked for last.
    pub(crate) fn said(&self, pod: &str) -> Option<String> {
        self.pods.get(pod).cloned()
    }

    /// Forgets pods that no longer wait.
    pub(crate) fn keep_pods(&mut self, is_waiting: impl Fn(&str) -> bool) {
        self.pods.retain(|uid, _| is_waiting(uid));
    }

    /// Remembers that exactly this offering is sold out.
    pub(crate) fn refuse_offering(&mut self, key: &OfferingKey, now: Time, words: &str) -> Time {
        refuse(&mut self.offerings, key.clone(), now, words)
    }

    /// Remembers that nothing can be bought in a region (a quota, a disabled region).
    pub(crate) fn refuse_region(&mut self, vendor: &Vendor, region: &str, now: Time, words: &str) -> Time {
        refuse(&mut self.regions, (vendor.clone(), region.to_owned()), now, words)
    }

    /// Remembers that nothing can be bought of a vendor (credentials, an account's quota).
    pub(crate) fn refuse_vendor(&mut self, vendor: &Vendor, now: Time, words: &str) -> Time {
        refuse(&mut self.vendors, vendor.clone(), now, words)
    }

    /// Remembers that a vendor does not take its plugin's credentials.
    pub(crate) fn deny_vendor(&mut self, vendor: &Vendor, now: Time, words: &str) -> Time {
        self.denied.insert(vendor.clone());
        self.refuse_vendor(vendor, now, words)
    }

    /// What a vendor said that does not take its plugin's credentials.
    pub(crate) fn denial(&self, vendor: &Vendor, now: Time) -> Option<String> {
        let refused = self.vendors.get(vendor).filter(|refused| refused.until > now)?;
        self.denied.contains(vendor).then(|| refused.words.clone())
    }

    /// A machine that became a node ends the memory of what covers it.
    pub(crate) fn joined(&mut self, key: &OfferingKey) {
        self.offerings.remove(key);
        self.regions.remove(&(key.vendor.clone(), key.region.clone()));
        self.vendors.remove(&key.vendor);
        self.denied.remove(&key.vendor);
    }

    /// Offerings that cannot be bought now, and until when.
    pub(crate) fn offerings(&self, now: Time) -> BTreeMap<OfferingKey, i64> {
        self.offerings
            .iter()
            .filter(|(_, refused)| refused.until > now)
            .map(|(key, refused)| (key.clone(), seconds(refused)))
            .collect()
    }

    /// Regions in which nothing can be bought now, and until when.
    pub(crate) fn regions(&self, now: Time) -> BTreeMap<(Vendor, String), i64> {
        self.regions
            .iter()
            .filter(|(_, refused)| refused.until > now)
            .map(|(key, refused)| (key.clone(), seconds(refused)))
            .collect()
    }

    /// Vendors of which nothing can be bought now, until when, and why.
    pub(crate) fn vendors(&self, now: Time) -> BTreeMap<Vendor, (i64, String)> {
        let current = self.vendors.iter().filter(|(_, refused)| refused.until > now);
        current.map(|(vendor, refused)| (vendor.clone(), (seconds(refused), refused.words.clone()))).collect()
    }

    /// When the next of the refusals ends.
    pub(crate) fn next_end(&self, now: Time) -> Option<Time> {
        let all = self.offerings.values().chain(self.regions.values()).chain(self.vendors.values());
        all.map(|refused| refused.until).filter(|until| *until > now).min()
    }
}

fn refuse<K: Ord>(memory: &mut BTreeMap<K, Refused>, key: K, now: Time, words: &str) -> Time {
    let known = memory.get(&key);
    // A refusal that comes while an older one still holds is the same one told twice.
    let times =
        known.map_or(1, |refused| if refused.until > now { refused.times } else { refused.times + 1 });
    let span = FIRST.saturating_mul(1 << (times - 1).min(10)).min(LONGEST);
    let until = now.after(span);
    memory.insert(key, Refused { until, times, words: words.to_owned() });
    until
}

fn seconds(refused: &Refused) -> i64 {
    refused.until.millis().div_euclid(1000) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use scarpenter_core::offering::CapacityType;

    fn key() -> OfferingKey {
        OfferingKey {
            vendor: "v".into(),
            region: "r".to_owned(),
            zone: None,
            instance_type: "t".to_owned(),
            capacity_type: CapacityType::OnDemand,
        }
    }

    #[test]
    fn the_memory_of_a_stock_out_grows_with_repetition_and_ends() {
        let mut stock = Stock::default();
        let mut now = Time::from_millis(0);
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            let until = stock.refuse_offering(&key(), now, "sold out");
            assert_eq!(now.until(until), Duration::from_secs(seconds));
            assert_eq!(stock.offerings(now).len(), 1);
            now = until;
            assert!(stock.offerings(now).is_empty());
        }
        stock.joined(&key());
        assert_eq!(now.until(stock.refuse_offering(&key(), now, "sold out")), FIRST);
    }
}
