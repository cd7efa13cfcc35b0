//! Rules that place pods by where other pods are.

use std::collections::{BTreeMap, BTreeSet};

use crate::requirements::{BadRequirement, Requirement, Requirements};

/// Which pods, by their labels: all lines must hold. No line holds for every pod.
pub type LabelSelector = Vec<Requirement>;

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// Label key whose values are the domains.
    pub topology_key: String,
    /// How much fuller a domain may be than the emptiest.
    pub max_skew: u32,
    /// While there are fewer domains than this, the emptiest counts as holding nothing.
    pub min_domains: Option<u32>,
    /// Pods of its own namespace that are counted, `matchLabelKeys` included; `None` counts none.
    pub selector: Option<LabelSelector>,
    /// `whenUnsatisfiable: DoNotSchedule`; otherwise a wish.
    pub required: bool,
    /// `nodeAffinityPolicy: Honor`: only nodes that the pod's selector and required affinity allow make domains.
    pub honor_affinity: bool,
    /// `nodeTaintsPolicy: Honor`: only nodes whose taints the pod tolerates make domains.
    pub honor_taints: bool,
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTerm {
    /// Label key whose values are the domains.
    pub topology_key: String,
    /// Which pods, `matchLabelKeys` and `mismatchLabelKeys` included; `None` matches none.
    pub selector: Option<LabelSelector>,
    /// Namespaces by name; the pod's own when it names none and has no selector of namespaces.
    pub namespaces: BTreeSet<String>,
    /// Further namespaces, by their labels; no line selects all of them.
    pub namespace_selector: Option<LabelSelector>,
}

/// Labels of namespaces by name.
pub type Namespaces = BTreeMap<String, BTreeMap<String, String>>;

impl PodTerm {
    /// Names of the namespaces whose pods it looks at, of all that are known; `None` is every namespace.
    ///
    /// # Errors
    /// [`BadRequirement`] when the selector is malformed.
    pub fn namespaces(&self, known: &Namespaces) -> Result<Option<BTreeSet<String>>, BadRequirement> {
        let Some(lines) = &self.namespace_selector else { return Ok(Some(self.namespaces.clone())) };
        if lines.is_empty() {
            return Ok(None);
        }
        let selector = Requirements::from_list(lines)?;
        let selected = known.iter().filter(|(_, labels)| selector.match_labels(labels));
        let selected = selected.map(|(name, _)| name.clone());
        Ok(Some(selected.chain(self.namespaces.iter().cloned()).collect()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::requirements::Operator;

    fn term(namespace_selector: Option<LabelSelector>) -> PodTerm {
        PodTerm {
            topology_key: "zone".to_owned(),
            selector: Some(Vec::new()),
            namespaces: BTreeSet::from(["own".to_owned()]),
            namespace_selector,
        }
    }

    fn known() -> Namespaces {
        let labels = |team: &str| BTreeMap::from([("team".to_owned(), team.to_owned())]);
        BTreeMap::from([("a".to_owned(), labels("x")), ("b".to_owned(), labels("y"))])
    }

    #[test]
    fn a_term_without_a_selector_of_namespaces_looks_at_those_it_names() {
        assert_eq!(term(None).namespaces(&known()).unwrap(), Some(BTreeSet::from(["own".to_owned()])));
    }

    #[test]
    fn named_and_selected_namespaces_add_up_and_an_empty_selector_is_all() {
        let line = Requirement::new("team", Operator::In, &["y"]);
        let both = BTreeSet::from(["b".to_owned(), "own".to_owned()]);
        assert_eq!(term(Some(vec![line])).namespaces(&known()).unwrap(), Some(both));
        assert_eq!(term(Some(Vec::new())).namespaces(&known()).unwrap(), None);
    }
}
