//! From a claim to where it can be used (SCH-33, SCH-34).

use scarpenter_api::volume::{Claim, Class, Places, Volume};
use scarpenter_core::pod::{Attachment, PodKey};
use scarpenter_core::requirements::{Requirement, Requirements};

use super::{Volumes, is_possible};

/// So many alternatives are kept for a pod. To leave some out is safe: it can only narrow where the pod may be.
const MOST_ALTERNATIVES: usize = 64;

/// What using a claim means.
pub(super) struct Reach {
    pub(super) places: Places,
    pub(super) attachment: Option<Attachment>,
}

impl Volumes {
    /// Where a claim can be used, or what is wrong with it.
    pub(super) fn reach(&self, key: &PodKey) -> Result<Reach, String> {
        let Some(claim) = self.claims.get(key) else {
            return Err(format!(
                "PersistentVolumeClaim {key} does not exist: create it (that of an ephemeral volume Kubernetes creates by \
                 itself)"
            ));
        };
        if claim.deleting {
            return Err(format!(
                "PersistentVolumeClaim {key} is being deleted: create it again when it is gone"
            ));
        }
        if claim.lost {
            return Err(format!(
                "PersistentVolumeClaim {key} is Lost, its PersistentVolume is gone: delete the claim and create it again"
            ));
        }
        let places = match &claim.volume {
            Some(name) => self.bound(claim, name)?,
            None => self.unbound(claim)?,
        };
        Ok(Reach { places, attachment: self.attachment(claim) })
    }

    fn bound(&self, claim: &Claim, name: &str) -> Result<Places, String> {
        let key = &claim.key;
        let Some(volume) = self.volumes.get(name) else {
            return Err(format!(
                "PersistentVolumeClaim {key} is bound to PersistentVolume {name}, which does not exist: restore it, or delete \
                 the claim and create it again"
            ));
        };
        if !claim.bound {
            return Err(format!(
                "PersistentVolumeClaim {key} names PersistentVolume {name} but is not bound to it yet: see the claim's events"
            ));
        }
        if volume.deleting {
            return Err(format!(
                "PersistentVolume {name} of PersistentVolumeClaim {key} is being deleted: create claim and volume again"
            ));
        }
        if volume.unreachable {
            return Err(format!(
                "PersistentVolume {name} of PersistentVolumeClaim {key} has a node affinity that no node can match: mend it"
            ));
        }
        Ok(volume.places_for_pod())
    }

    fn unbound(&self, claim: &Claim) -> Result<Places, String> {
        let key = &claim.key;
        let Some(name) = self.class_name(claim) else {
            return Err(format!(
                "PersistentVolumeClaim {key} is not bound and has no StorageClass that would make a volume for it: name one"
            ));
        };
        let Some(class) = self.classes.get(name) else {
            return Err(format!(
                "StorageClass {name} of PersistentVolumeClaim {key} does not exist: create it, or name another"
            ));
        };
        if !class.waits_for_pod {
            return Err(format!(
                "PersistentVolumeClaim {key} is not bound, though StorageClass {name} binds at once: wait for it, see its \
                 events, or use a class with volumeBindingMode WaitForFirstConsumer"
            ));
        }
        if !class.driver.is_empty() {
            return Ok(class.places.clone());
        }
        let fitting: Vec<&Volume> =
            self.volumes.values().filter(|volume| fits(volume, claim, class)).collect();
        if fitting.is_empty() {
            return Err(format!(
                "no PersistentVolume is free for PersistentVolumeClaim {key}, and StorageClass {name} makes none: create one"
            ));
        }
        if fitting.iter().any(|volume| volume.places.is_empty()) {
            return Ok(Places::new());
        }
        Ok(fitting.into_iter().flat_map(|volume| volume.places.iter().cloned()).collect())
    }

    /// The class that a claim names, or the one that claims get that name none.
    fn class_name<'a>(&'a self, claim: &'a Claim) -> Option<&'a str> {
        match &claim.class {
            Some(name) => Some(name.as_str()).filter(|name| !name.is_empty()),
            None => {
                let defaults = self.classes.values().filter(|class| class.default_since.is_some());
                let youngest = defaults.min_by_key(|class| (-class.default_since.unwrap_or(0), &class.name));
                youngest.map(|class| class.name.as_str())
            }
        }
    }

    /// A volume that is not made yet is told apart by its claim, as the kube-scheduler does (SCH-35).
    pub(super) fn attachment(&self, claim: &Claim) -> Option<Attachment> {
        let (driver, volume) = match claim.volume.as_ref().and_then(|name| self.volumes.get(name)) {
            Some(volume) => (volume.driver.clone(), volume.handle.clone()),
            None => (self.classes.get(self.class_name(claim)?)?.driver.clone(), claim.key.to_string()),
        };
        (!driver.is_empty()).then_some(Attachment { driver, volume })
    }
}

/// Whether a volume that is there already can be bound to a claim.
fn fits(volume: &Volume, claim: &Claim, class: &Class) -> bool {
    let is_free = volume.claim.as_ref().is_none_or(|owner| *owner == claim.key);
    let is_selected = claim.selector.as_ref().is_none_or(|lines| {
        Requirements::from_list(lines).is_ok_and(|selector| selector.match_labels(&volume.labels))
    });
    let is_usable = volume.available && !volume.deleting && !volume.unreachable;
    is_usable && is_free && is_selected && volume.class == class.name && volume.offers.covers(&claim.wants)
}

/// Every alternative of the one with every alternative of the other; `None` when none of them is possible.
pub(super) fn both(one: &Places, other: &Places) -> Option<Places> {
    if one.is_empty() || other.is_empty() {
        return Some(if one.is_empty() { other.clone() } else { one.clone() });
    }
    let mut out = Places::new();
    for (first, second) in one.iter().flat_map(|first| other.iter().map(move |second| (first, second))) {
        let mut lines: Vec<Requirement> = first.iter().chain(second).cloned().collect();
        lines.sort();
        lines.dedup();
        if !out.contains(&lines) && is_possible(&lines) {
            out.push(lines);
        }
        if out.len() == MOST_ALTERNATIVES {
            break;
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The first alternatives for a person.
pub(super) fn words(places: &Places) -> String {
    let and =
        |lines: &Vec<Requirement>| lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let shown: Vec<String> = places.iter().take(3).map(and).collect();
    shown.join(", or ") + if places.len() > shown.len() { ", or …" } else { "" }
}
