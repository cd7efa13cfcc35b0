use std::borrow::Cow;
use std::collections::HashMap;

use scarpenter_core::label;
use scarpenter_core::node::Node;
use scarpenter_core::pod::{Taint, untolerated};
use scarpenter_core::requirements::Requirements;

use super::SiteId;
use super::groups::{Filter, FilterId};

/// Position of a value among those of its key.
pub(super) type DomainId = usize;

/// A node, or a claim of this pass, with the labels that it has or will have.
pub(crate) trait Place {
    /// Value of a label. A host name must be its own.
    fn label(&self, key: &str) -> Option<Cow<'_, str>>;

    /// Its taints.
    fn taints(&self) -> &[Taint];
}

impl Place for Node {
    fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        let own = self.labels.get(key);
        // A node without the label is found by its name all the same (SCH-29).
        let own = own.or_else(|| (key == label::HOSTNAME).then_some(&self.name));
        own.map(|value| value.as_str().into())
    }

    fn taints(&self) -> &[Taint] {
        &self.taints
    }
}

/// Values of one topology key.
#[derive(Debug, Default)]
struct Domains {
    values: Vec<String>,
    ids: HashMap<String, DomainId>,
}

impl Domains {
    fn id(&mut self, value: &str) -> DomainId {
        if let Some(id) = self.ids.get(value) {
            return *id;
        }
        self.values.push(value.to_owned());
        self.ids.insert(value.to_owned(), self.values.len() - 1);
        self.values.len() - 1
    }
}

/// Which domains each site is in, and for which filters it makes them.
#[derive(Debug)]
pub(super) struct Sites<'a> {
    filters: Vec<(Filter<'a>, Vec<Requirements>)>,
    domains: Vec<Domains>,
    /// By site and key.
    of_site: Vec<Option<DomainId>>,
    /// By site and filter.
    passes: Vec<bool>,
    /// By filter, key and domain, how many sites there are.
    eligible: Vec<Vec<Vec<u32>>>,
    keys: Vec<&'a str>,
}

impl<'a> Sites<'a> {
    pub(super) fn new(keys: &[&'a str], filters: &[Filter<'a>]) -> Self {
        Self {
            filters: filters.iter().map(|filter| (filter.clone(), filter.alternatives())).collect(),
            domains: keys.iter().map(|_| Domains::default()).collect(),
            of_site: Vec::new(),
            passes: Vec::new(),
            eligible: vec![vec![Vec::new(); keys.len()]; filters.len()],
            keys: keys.to_vec(),
        }
    }

    pub(super) fn add(&mut self, place: &impl Place) -> SiteId {
        let site = self.of_site.len() / self.keys.len();
        self.of_site.resize((site + 1) * self.keys.len(), None);
        self.passes.resize((site + 1) * self.filters.len(), false);
        self.fill(site, place);
        site
    }

    /// A site becomes another machine.
    pub(super) fn change(&mut self, site: SiteId, place: &impl Place) {
        self.tally(site, |count| *count -= 1);
        self.fill(site, place);
    }

    fn fill(&mut self, site: SiteId, place: &impl Place) {
        for (at, key) in self.keys.iter().enumerate() {
            let domain = place.label(key).map(|value| self.domains[at].id(&value));
            self.of_site[site * self.keys.len() + at] = domain;
        }
        for filter in 0..self.filters.len() {
            self.passes[site * self.filters.len() + filter] = self.would_pass(site, filter, place);
        }
        self.tally(site, |count| *count += 1);
    }

    fn would_pass(&self, site: SiteId, filter: FilterId, place: &impl Place) -> bool {
        let (filter, alternatives) = &self.filters[filter];
        let matches =
            |term: &Requirements| term.iter().all(|(key, set)| set.allows(place.label(key).as_deref()));
        filter.keys.iter().all(|key| self.domain(site, *key).is_some())
            && (alternatives.is_empty() || alternatives.iter().any(matches))
            && filter.tolerations.is_none_or(|own| untolerated(place.taints(), own, false).is_none())
    }

    fn tally(&mut self, site: SiteId, change: impl Fn(&mut u32)) {
        for filter in 0..self.filters.len() {
            if !self.passes(site, filter) {
                continue;
            }
            for key in 0..self.keys.len() {
                let Some(domain) = self.domain(site, key) else { continue };
                let counts = &mut self.eligible[filter][key];
                if counts.len() <= domain {
                    counts.resize(domain + 1, 0);
                }
                change(&mut counts[domain]);
            }
        }
    }

    /// The domain of a site by a key, if it has the label.
    pub(super) fn domain(&self, site: SiteId, key: usize) -> Option<DomainId> {
        self.of_site[site * self.keys.len() + key]
    }

    /// Whether a site makes domains for a filter.
    pub(super) fn passes(&self, site: SiteId, filter: FilterId) -> bool {
        self.passes[site * self.filters.len() + filter]
    }

    /// How many sites make this domain for a filter.
    pub(super) fn eligible_in(&self, filter: FilterId, key: usize, domain: DomainId) -> u32 {
        self.eligible[filter][key].get(domain).copied().unwrap_or(0)
    }

    /// How many domains of a key were ever seen.
    pub(super) fn known(&self, key: usize) -> usize {
        self.domains[key].values.len()
    }

    /// The label value of a domain.
    pub(super) fn value(&self, key: usize, domain: DomainId) -> &str {
        &self.domains[key].values[domain]
    }

    /// The domain of a label value, if any site ever had it.
    pub(super) fn find(&self, key: usize, value: &str) -> Option<DomainId> {
        self.domains[key].ids.get(value).copied()
    }
}
