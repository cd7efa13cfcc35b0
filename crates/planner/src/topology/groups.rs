use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use scarpenter_core::label;
use scarpenter_core::pod::{Pod, Toleration, WeightedTerm};
use scarpenter_core::requirements::{BadRequirement, Requirement, Requirements};
use scarpenter_core::topology::{LabelSelector, Namespaces, PodTerm, Spread};

use super::SiteId;
use super::demand::{Demand, Rule, SpreadKeys};
use super::sites::{DomainId, Sites};
use crate::Input;

/// Position of a group.
pub(super) type GroupId = usize;
/// Position of a filter of nodes.
pub(super) type FilterId = usize;

/// Pods that are counted together, by domain.
#[derive(Debug)]
pub(super) struct Group {
    /// Topology key, by position.
    pub(super) key: usize,
    /// Nodes on which pods are counted and which make domains; `None` is every node.
    pub(super) filter: Option<FilterId>,
    /// How many of its pods there are in all domains.
    pub(super) total: u32,
    pods: Vec<u32>,
    owners: Vec<u32>,
}

impl Group {
    /// How many of its pods are in a domain.
    pub(super) fn pods_in(&self, domain: DomainId) -> u32 {
        self.pods.get(domain).copied().unwrap_or(0)
    }

    /// Whether any pod keeps its pods away.
    pub(super) fn has_owners(&self) -> bool {
        !self.owners.is_empty()
    }

    /// How many pods are in a domain that keep its pods away.
    pub(super) fn owners_in(&self, domain: DomainId) -> u32 {
        self.owners.get(domain).copied().unwrap_or(0)
    }
}

/// Which pods: of these namespaces (`None`: of all), with such labels.
type Selected = (Option<BTreeSet<String>>, LabelSelector);

/// What makes two rules count the same: key, selectors, filter.
type Identity = (usize, Vec<usize>, Option<FilterId>);

/// A selector, and alternatives of required node affinity.
type NodeTerms<'a> = (&'a BTreeMap<String, String>, &'a [Vec<Requirement>]);

/// Which nodes make domains for a spread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Filter<'a> {
    /// The pod's selector and the alternatives of its required node affinity; `None` looks at no label.
    terms: Option<NodeTerms<'a>>,
    /// What it tolerates; `None` looks at no taint.
    pub(super) tolerations: Option<&'a [Toleration]>,
    /// Keys, by position, that a node must have.
    pub(super) keys: BTreeSet<usize>,
}

impl Filter<'_> {
    /// Alternatives that a node's labels must match; none is no alternative that must.
    pub(super) fn alternatives(&self) -> Vec<Requirements> {
        let Some((selector, terms)) = self.terms else { return Vec::new() };
        let selector = Requirements::from_labels(selector);
        if terms.is_empty() {
            return vec![selector];
        }
        terms
            .iter()
            .filter_map(|term| Some(Requirements::from_list(term).ok()?.intersect(&selector)))
            .collect()
    }
}

/// By labels of a pod, the groups that count it.
type Matched = HashMap<BTreeMap<String, String>, Rc<[GroupId]>>;

/// Everything that rules count by; equal things are kept once.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    namespaces: &'a Namespaces,
    respect_preferences: bool,
    keys: Vec<&'a str>,
    selected: Vec<(Option<BTreeSet<String>>, Requirements)>,
    selected_ids: HashMap<Selected, usize>,
    /// Selectors by a label that they cannot do without, so that few are tried on a pod.
    anchored: HashMap<(String, String), Vec<usize>>,
    unanchored: Vec<usize>,
    filters: Vec<Filter<'a>>,
    filter_ids: HashMap<Filter<'a>, FilterId>,
    groups: Vec<Group>,
    identities: HashMap<Identity, GroupId>,
    /// By selector, the groups whose last selector it is, with all of theirs.
    of_selector: HashMap<usize, Vec<(GroupId, Vec<usize>)>>,
    /// By namespace and labels, the groups that count such a pod.
    matched: HashMap<String, Matched>,
}

impl<'a> Groups<'a> {
    /// Takes the rules of all pods that wait, and the required anti-affinity of those that are placed.
    ///
    /// Malformed rules are left to [`demand`](Self::demand).
    pub(super) fn new(input: &'a Input<'a>) -> Self {
        let mut out = Self {
            namespaces: input.namespaces,
            respect_preferences: input.rules.respect_preferences,
            keys: keys(input),
            selected: Vec::new(),
            selected_ids: HashMap::new(),
            anchored: HashMap::new(),
            unanchored: Vec::new(),
            filters: Vec::new(),
            filter_ids: HashMap::new(),
            groups: Vec::new(),
            identities: HashMap::new(),
            of_selector: HashMap::new(),
            matched: HashMap::new(),
        };
        for pod in input.nodes.iter().flat_map(|node| &node.pods) {
            for term in &pod.anti_affinity {
                // A placed pod's malformed rule keeps nobody away; it is the API server's to refuse.
                out.group_of(std::slice::from_ref(term), &term.topology_key).ok();
            }
        }
        for daemon in input.daemons {
            out.repelled_by(&daemon.pod);
        }
        for pod in input.pods {
            out.rules(pod).ok();
        }
        out
    }

    /// Whether nothing is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Topology keys in use, in text order.
    pub(super) fn keys(&self) -> &[&'a str] {
        &self.keys
    }

    /// Filters of nodes, by position.
    pub(super) fn filters(&self) -> &[Filter<'a>] {
        &self.filters
    }

    pub(super) fn get(&self, id: GroupId) -> &Group {
        &self.groups[id]
    }

    /// What a pod asks and what is asked of it; `None` when nothing.
    pub(super) fn demand(&mut self, pod: &'a Pod) -> Result<Option<Demand>, BadRequirement> {
        let (mut required, mut soft, spreads) = self.rules(pod)?;
        let matched = self.matched(&pod.key.namespace, &pod.labels);
        if required.is_empty() && soft.is_empty() && matched.is_empty() {
            return Ok(None);
        }
        for rule in required.iter_mut().chain(&mut soft) {
            rule.set_own(&matched);
        }
        let keys = |required: bool| -> Vec<usize> {
            let spreads = pod.spread.iter().filter(|spread| spread.required == required);
            let keys: BTreeSet<usize> = spreads.map(|spread| self.key(&spread.topology_key)).collect();
            keys.into_iter().filter(|key| self.keys[*key] != label::HOSTNAME).collect()
        };
        let spread_over = SpreadKeys { required: keys(true), wished: keys(false) };
        Ok(Some(Demand { matched, required, soft, spreads, spread_over }))
    }

    /// Rules that must hold; wishes, those that are given up last first; and how many of these are spreads.
    fn rules(&mut self, pod: &'a Pod) -> Result<(Vec<Rule>, Vec<Rule>, usize), BadRequirement> {
        let mut required = Vec::new();
        let (must, may): (Vec<&Spread>, Vec<&Spread>) = pod.spread.iter().partition(|spread| spread.required);
        for spread in &must {
            required.push(self.spread(pod, spread, &must)?);
        }
        if !pod.affinity.is_empty() {
            let groups = pod.affinity.iter().map(|term| self.group_of(&pod.affinity, &term.topology_key));
            required.push(Rule::Near { groups: groups.collect::<Result<_, _>>()?, own: false });
        }
        for term in &pod.anti_affinity {
            required
                .push(Rule::Apart { group: self.group_of(std::slice::from_ref(term), &term.topology_key)? });
        }
        let mut soft = Vec::new();
        if !self.respect_preferences {
            return Ok((required, soft, 0));
        }
        for spread in may {
            soft.push(self.spread(pod, spread, &[spread])?);
        }
        let spreads = soft.len();
        for wish in heaviest_first(&pod.preferred_anti_affinity) {
            let group = self.group_of(std::slice::from_ref(&wish.term), &wish.term.topology_key)?;
            soft.push(Rule::Apart { group });
        }
        for wish in heaviest_first(&pod.preferred_affinity) {
            let group = self.group_of(std::slice::from_ref(&wish.term), &wish.term.topology_key)?;
            soft.push(Rule::Near { groups: vec![group], own: false });
        }
        Ok((required, soft, spreads))
    }

    fn spread(&mut self, pod: &'a Pod, spread: &Spread, beside: &[&Spread]) -> Result<Rule, BadRequirement> {
        let filter = Filter {
            terms: spread.honor_affinity.then_some((&pod.node_selector, pod.required_terms.as_slice())),
            tolerations: spread.honor_taints.then_some(pod.tolerations.as_slice()),
            keys: beside.iter().map(|spread| self.key(&spread.topology_key)).collect(),
        };
        let filter = *self.filter_ids.entry(filter.clone()).or_insert_with(|| {
            self.filters.push(filter);
            self.filters.len() - 1
        });
        let own = BTreeSet::from([pod.key.namespace.clone()]);
        let selected = match &spread.selector {
            Some(lines) => self.select((Some(own), lines.clone()))?,
            None => self.select((Some(BTreeSet::new()), Vec::new()))?,
        };
        let group = self.group((self.key(&spread.topology_key), vec![selected], Some(filter)));
        Ok(Rule::Spread { group, max_skew: spread.max_skew, min_domains: spread.min_domains, own: false })
    }

    /// The group of pods that match all of `terms`, by the values of `key`.
    fn group_of(&mut self, terms: &[PodTerm], key: &str) -> Result<GroupId, BadRequirement> {
        let mut selected = Vec::new();
        for term in terms {
            let namespaces = term.namespaces(self.namespaces)?;
            selected.push(match &term.selector {
                Some(lines) => self.select((namespaces, lines.clone()))?,
                None => self.select((Some(BTreeSet::new()), Vec::new()))?,
            });
        }
        selected.sort_unstable();
        selected.dedup();
        Ok(self.group((self.key(key), selected, None)))
    }

    fn key(&self, key: &str) -> usize {
        self.keys.binary_search(&key).expect("keys of all rules are known before any rule is read")
    }

    fn select(&mut self, selected: Selected) -> Result<usize, BadRequirement> {
        if let Some(id) = self.selected_ids.get(&selected) {
            return Ok(*id);
        }
        let requirements = Requirements::from_list(&selected.1)?;
        let id = self.selected.len();
        let listed = requirements.iter().find_map(|(key, set)| Some((key, set.listed()?)));
        match listed.filter(|(_, values)| !values.is_empty()) {
            Some((key, values)) => {
                for value in values {
                    self.anchored.entry((key.to_owned(), value.clone())).or_default().push(id);
                }
            }
            None => self.unanchored.push(id),
        }
        self.selected.push((selected.0.clone(), requirements));
        self.selected_ids.insert(selected, id);
        Ok(id)
    }

    fn group(&mut self, identity: Identity) -> GroupId {
        if let Some(id) = self.identities.get(&identity) {
            return *id;
        }
        let id = self.groups.len();
        let (key, selected, filter) = identity.clone();
        self.groups.push(Group { key, filter, total: 0, pods: Vec::new(), owners: Vec::new() });
        let last = selected.last().copied().expect("every rule has a selector");
        self.of_selector.entry(last).or_default().push((id, selected));
        self.identities.insert(identity, id);
        id
    }

    /// Groups that count a pod with these labels. All groups must be known.
    pub(super) fn matched(&mut self, namespace: &str, labels: &BTreeMap<String, String>) -> Rc<[GroupId]> {
        if let Some(known) = self.matched.get(namespace).and_then(|known| known.get(labels)) {
            return Rc::clone(known);
        }
        let anchored =
            labels.iter().filter_map(|(key, value)| self.anchored.get(&(key.clone(), value.clone())));
        let candidates = anchored.flatten().chain(&self.unanchored).copied();
        let holds = |id: &usize| {
            let (namespaces, selector) = &self.selected[*id];
            namespaces.as_ref().is_none_or(|names| names.contains(namespace)) && selector.match_labels(labels)
        };
        let held: BTreeSet<usize> = candidates.filter(holds).collect();
        let groups = held.iter().filter_map(|last| self.of_selector.get(last)).flatten();
        let mut matched: Vec<GroupId> =
            groups.filter(|(_, all)| all.iter().all(|id| held.contains(id))).map(|(id, _)| *id).collect();
        matched.sort_unstable();
        let matched: Rc<[GroupId]> = matched.into();
        self.matched.entry(namespace.to_owned()).or_default().insert(labels.clone(), Rc::clone(&matched));
        matched
    }

    /// Groups that a placed pod, or a daemon wherever it runs, keeps away.
    pub(super) fn repelled_by(&mut self, pod: &Pod) -> Vec<GroupId> {
        let group = |term: &PodTerm| self.group_of(std::slice::from_ref(term), &term.topology_key).ok();
        pod.anti_affinity.iter().filter_map(group).collect()
    }

    /// Counts one more pod of a group on a site.
    pub(super) fn count(&mut self, id: GroupId, site: SiteId, sites: &Sites<'_>) {
        let group = &mut self.groups[id];
        if group.filter.is_some_and(|filter| !sites.passes(site, filter)) {
            return;
        }
        if let Some(domain) = sites.domain(site, group.key) {
            add(&mut group.pods, domain);
            group.total += 1;
        }
    }

    /// Counts one more pod on a site that keeps a group's pods away.
    pub(super) fn own(&mut self, id: GroupId, site: SiteId, sites: &Sites<'_>) {
        let group = &mut self.groups[id];
        if let Some(domain) = sites.domain(site, group.key) {
            add(&mut group.owners, domain);
        }
    }
}

fn keys<'a>(input: &'a Input<'a>) -> Vec<&'a str> {
    let mut out: BTreeSet<&'a str> = BTreeSet::new();
    for pod in input.pods {
        let required = pod.affinity.iter().chain(&pod.anti_affinity);
        let preferred = pod.preferred_affinity.iter().chain(&pod.preferred_anti_affinity);
        let terms = required.chain(preferred.map(|wish| &wish.term));
        out.extend(terms.map(|term| term.topology_key.as_str()));
        out.extend(pod.spread.iter().map(|spread| spread.topology_key.as_str()));
    }
    let present = input.nodes.iter().flat_map(|node| &node.pods).flat_map(|pod| &pod.anti_affinity);
    let daemons = input.daemons.iter().flat_map(|daemon| &daemon.pod.anti_affinity);
    out.extend(present.chain(daemons).map(|term| term.topology_key.as_str()));
    out.into_iter().collect()
}

fn heaviest_first(wishes: &[WeightedTerm]) -> Vec<&WeightedTerm> {
    let mut out: Vec<&WeightedTerm> = wishes.iter().collect();
    out.sort_by_key(|wish| std::cmp::Reverse(wish.weight));
    out
}

fn add(counts: &mut Vec<u32>, domain: DomainId) {
    if counts.len() <= domain {
        counts.resize(domain + 1, 0);
    }
    counts[domain] += 1;
}
