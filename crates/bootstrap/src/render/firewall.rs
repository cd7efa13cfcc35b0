//! What may come in.

use crate::parts::Parts;

const UNIT: &str = include_str!("../../../../ignition/units/scarpenter-firewall.service");
const RULES: &str = include_str!("../../../../ignition/files/firewall.nft");
const AFTER_FIREWALL: &str = include_str!("../../../../ignition/units/after-firewall.conf");

/// Adds the rules with these ranges, and makes `node_unit` need them.
pub(super) fn add(parts: &mut Parts, allowed: &[String], node_unit: &str) {
    parts.file("/etc/scarpenter/firewall.nft", RULES);
    let elements: Vec<String> = [("allowed4", false), ("allowed6", true)]
        .into_iter()
        .filter_map(|(set, v6)| {
            let ranges: Vec<&str> =
                allowed.iter().map(String::as_str).filter(|range| range.contains(':') == v6).collect();
            (!ranges.is_empty())
                .then(|| format!("add element inet scarpenter {set} {{ {} }}\n", ranges.join(", ")))
        })
        .collect();
    if !elements.is_empty() {
        parts.file("/etc/scarpenter/firewall-allowed.nft", &elements.concat());
    }
    parts.enabled("scarpenter-firewall.service", UNIT);
    parts.dropin(node_unit, "firewall.conf", AFTER_FIREWALL);
}
