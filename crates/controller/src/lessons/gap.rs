//! What keeps a pod off a machine that was bought for it, in words. Pure.

use std::collections::BTreeSet;

use scarpenter_core::node::Node;
use scarpenter_core::pod::{HostPort, Pod, untolerated};
use scarpenter_core::requirements::{Requirement, Requirements};
use scarpenter_core::resources::{EPHEMERAL_STORAGE, MEMORY, format_quantity};

/// A difference between what was planned and what came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// What differs, for a person.
    pub(crate) words: String,
    /// It does not go away by itself: the machine is too small even if nobody else is on it.
    pub(crate) lasting: bool,
}

/// What keeps the pod off the node even when it has the node for itself and the daemons, which hold `daemon_ports`;
/// `None` when nothing here tells.
///
/// Rules about other pods are not looked at: those the scheduler tells.
pub(crate) fn gap(pod: &Pod, node: &Node, daemon_ports: &[HostPort]) -> Option<Gap> {
    if let Some(words) = too_small(pod, node).or_else(|| port(pod, daemon_ports)) {
        return Some(Gap { words, lasting: true });
    }
    let words = taint(pod, node)
        .or_else(|| label(pod, node))
        .or_else(|| volume_place(pod, node))
        .or_else(|| attachments(pod, node))?;
    Some(Gap { words, lasting: false })
}

fn too_small(pod: &Pod, node: &Node) -> Option<String> {
    let mut need = pod.requests.clone();
    need.add(&node.daemon_requested);
    let (name, asked, there) = need.lacking(&node.allocatable)?;
    let own = pod.requests.get(name);
    let beside = if asked > own {
        format!(" beside {} of daemons", amount(name, node.daemon_requested.get(name)))
    } else {
        String::new()
    };
    let [own, there, short] = [own, there, asked - there].map(|number| amount(name, number));
    Some(format!("it asks for {own} of {name}{beside}, and the node has {there}: {short} short"))
}

/// Bytes that are no round number in whole mebibytes: what a node has is never round.
fn amount(name: &str, number: i64) -> String {
    let round = format_quantity(name, number);
    let bytes = name == MEMORY || name == EPHEMERAL_STORAGE;
    let plain = round.bytes().all(|digit| digit.is_ascii_digit()) || round.ends_with("Ki");
    if bytes && plain && number >= 1 << 20 { format!("{}Mi", number >> 20) } else { round }
}

fn taint(pod: &Pod, node: &Node) -> Option<String> {
    let taint = untolerated(&node.taints, &pod.tolerations, false)?;
    Some(format!("the node has taint {taint}, which it does not tolerate"))
}

/// The first key that is not as the pod's selector wants it, or as its only required term does.
fn label(pod: &Pod, node: &Node) -> Option<String> {
    for (key, wanted) in &pod.node_selector {
        let there = node.labels.get(key);
        if there != Some(wanted) {
            return Some(format!("it selects {key}={wanted}, and the node has {}", shown(key, there)));
        }
    }
    unmatched(&pod.required_terms, node).map(|words| format!("its node affinity asks for {words}"))
}

fn volume_place(pod: &Pod, node: &Node) -> Option<String> {
    unmatched(&pod.volume_terms, node).map(|words| format!("its volume asks for {words}"))
}

/// What the last of the alternatives lacks, when none matches.
fn unmatched(terms: &[Vec<Requirement>], node: &Node) -> Option<String> {
    let mut words = None;
    for term in terms {
        let key = match Requirements::from_list(term) {
            Ok(requirements) => requirements.unmatched(&node.labels)?.to_owned(),
            Err(error) => return Some(error.to_string()),
        };
        let line = term.iter().find(|line| line.key == key).map(ToString::to_string).unwrap_or_default();
        words = Some(format!("{line}, and the node has {}", shown(&key, node.labels.get(&key))));
    }
    words
}

fn shown(key: &str, value: Option<&String>) -> String {
    value.map_or_else(|| format!("no {key}"), |value| format!("{key}={value}"))
}

fn port(pod: &Pod, daemon_ports: &[HostPort]) -> Option<String> {
    let clash = pod.host_ports.iter().find(|own| daemon_ports.iter().any(|other| clashes(own, other)))?;
    Some(format!("a daemon holds port {}/{} of the node", clash.port, clash.protocol))
}

fn clashes(one: &HostPort, other: &HostPort) -> bool {
    one.port == other.port
        && one.protocol == other.protocol
        && (one.ip == other.ip || one.ip.is_empty() || other.ip.is_empty())
}

fn attachments(pod: &Pod, node: &Node) -> Option<String> {
    node.attach_limits.iter().find_map(|(driver, limit)| {
        let own: BTreeSet<_> = pod.attachments.iter().filter(|own| own.driver == *driver).collect();
        let too_many = own.len() > usize::try_from(*limit).unwrap_or(usize::MAX);
        too_many.then(|| format!("it needs {} volumes of {driver}, and the node takes {limit}", own.len()))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use scarpenter_core::pod::{Attachment, Taint, TaintEffect};
    use scarpenter_core::requirements::Operator;
    use scarpenter_core::resources::{CPU, Resources};

    use super::*;

    fn node() -> Node {
        Node {
            labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
            allocatable: Resources::new().with(CPU, 2000).with(MEMORY, 4 << 30),
            ..Node::default()
        }
    }

    fn words(pod: &Pod, node: &Node) -> String {
        gap(pod, node, &[]).map(|gap| gap.words).unwrap_or_default()
    }

    #[test]
    fn a_pod_that_fits_has_no_gap() {
        let pod = Pod { requests: Resources::new().with(CPU, 2000), ..Pod::default() };
        assert_eq!(gap(&pod, &node(), &[]), None);
    }

    #[test]
    fn too_little_is_told_with_what_daemons_take_and_lasts() {
        let pod = Pod { requests: Resources::new().with(CPU, 1500), ..Pod::default() };
        let node = Node { daemon_requested: Resources::new().with(CPU, 1000), ..node() };
        let told = gap(&pod, &node, &[]);
        let words = "it asks for 1500m of cpu beside 1 of daemons, and the node has 2: 500m short";
        assert_eq!(told, Some(Gap { words: words.to_owned(), lasting: true }));
    }

    #[test]
    fn bytes_are_told_so_that_a_person_can_read_them() {
        let pod = Pod { requests: Resources::new().with(MEMORY, 5 << 30), ..Pod::default() };
        let node = Node { allocatable: Resources::new().with(MEMORY, (4 << 30) + 4097), ..node() };
        assert_eq!(words(&pod, &node), "it asks for 5Gi of memory, and the node has 4096Mi: 1023Mi short");
    }

    #[test]
    fn what_other_pods_take_is_no_gap() {
        let pod = Pod { requests: Resources::new().with(CPU, 1500), ..Pod::default() };
        let node = Node { requested: Resources::new().with(CPU, 2000), ..node() };
        assert_eq!(gap(&pod, &node, &[]), None);
    }

    #[test]
    fn a_taint_and_a_label_that_differ_are_named() {
        let taint = Taint { key: "odd".to_owned(), value: String::new(), effect: TaintEffect::NoSchedule };
        let tainted = Node { taints: vec![taint], ..node() };
        assert!(words(&Pod::default(), &tainted).contains("odd:NoSchedule"));
        let selector = BTreeMap::from([("zone".to_owned(), "b".to_owned())]);
        let selecting = Pod { node_selector: selector, ..Pod::default() };
        assert_eq!(words(&selecting, &node()), "it selects zone=b, and the node has zone=a");
        let lines = |key: &str| vec![Requirement::new(key, Operator::Exists, &[])];
        let required = Pod { required_terms: vec![lines("disk")], ..Pod::default() };
        assert_eq!(
            words(&required, &node()),
            "its node affinity asks for disk Exists, and the node has no disk"
        );
        let either = Pod { required_terms: vec![lines("disk"), lines("zone")], ..Pod::default() };
        assert_eq!(gap(&either, &node(), &[]), None, "one of the alternatives matches");
    }

    #[test]
    fn a_port_clashes_with_every_address_and_another_protocol_does_not() {
        let port = |protocol: &str, ip: &str| HostPort {
            port: 80,
            protocol: protocol.to_owned(),
            ip: ip.to_owned(),
        };
        let daemon = [port("TCP", "10.0.0.1")];
        let told = |own| gap(&Pod { host_ports: vec![own], ..Pod::default() }, &node(), &daemon);
        let words = "a daemon holds port 80/TCP of the node".to_owned();
        assert_eq!(told(port("TCP", "")), Some(Gap { words, lasting: true }));
        assert_eq!(told(port("UDP", "")), None);
        assert_eq!(told(port("TCP", "10.0.0.2")), None);
    }

    #[test]
    fn ports_and_volumes_that_the_pod_itself_is_promised_are_no_gap() {
        let port = HostPort { port: 80, protocol: "TCP".to_owned(), ip: String::new() };
        let volume = |name: &str| Attachment { driver: "d".to_owned(), volume: name.to_owned() };
        let node = Node {
            host_ports: vec![port.clone()],
            attached: vec![volume("a")],
            attach_limits: BTreeMap::from([("d".to_owned(), 1)]),
            ..node()
        };
        let pod = Pod { host_ports: vec![port], attachments: vec![volume("a")], ..Pod::default() };
        assert_eq!(gap(&pod, &node, &[]), None);
        let two = Pod { attachments: vec![volume("a"), volume("b")], ..Pod::default() };
        assert_eq!(words(&two, &node), "it needs 2 volumes of d, and the node takes 1");
    }
}
