//! What each of the vendor's error codes means: vendor code → contract code → what the controller does.
//!
//! Codes and their meaning: the vendor's published OpenAPI document. A test compares the table with it.

use scarpenter_provider::failure::Cause::{
    self, Conflict, Invalid, NotFound, PermissionDenied, Quota, RateLimit, SoldOut, Unauthenticated,
    Unavailable, Unknown,
};
use scarpenter_provider::failure::Scope::{self, Account, Offering, Region};

/// One error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The vendor's word.
    pub code: &'static str,
    /// What it means as the answer to a create. All but `Unavailable` and `Unknown` prove that nothing was made.
    pub create: Cause,
    /// What that holds for.
    pub scope: Scope,
    /// What it means as the answer to any other call.
    pub other: Cause,
    /// What the controller does about a create that ends so.
    pub then: &'static str,
}

const fn row(code: &'static str, create: Cause, scope: Scope, other: Cause, then: &'static str) -> Row {
    Row { code, create, scope, other, then }
}

const STOP: &str = "stops using the account, with a condition on the class";
const AGAIN: &str = "looks for the machine when the settle time is over, then asks again";
const BACK_OFF: &str = "backs off, looks, then asks again";
const NEXT: &str = "gives the claim up and takes the next offering; this one is left out for a while";
const CLASS: &str = "gives the claim up: the class has to be changed";

/// The codes that calls of this plugin can meet.
pub const ROWS: &[Row] = &[
    row("unauthorized", Unauthenticated, Account, Unauthenticated, STOP),
    row("token_readonly", PermissionDenied, Account, PermissionDenied, STOP),
    row("forbidden", PermissionDenied, Account, PermissionDenied, STOP),
    row("rate_limit_exceeded", RateLimit, Account, RateLimit, "waits as long as it is told, then asks again"),
    // Told apart by its field: see `scope_of_fields`. It is also how a type that a location does not sell is refused.
    row("invalid_input", Invalid, Offering, Unknown, NEXT),
    row("json_error", Invalid, Account, Unknown, CLASS),
    row("method_not_allowed", Invalid, Account, Unknown, CLASS),
    row("deprecated_api_endpoint", Invalid, Account, Unavailable, CLASS),
    row("unsupported_error", Invalid, Offering, Unknown, NEXT),
    // An image, network or key of the class, or a type: only `not_found` in the vendor's own words is believed.
    row("not_found", Invalid, Offering, NotFound, NEXT),
    row("invalid_server_type", Invalid, Offering, Unknown, NEXT),
    row("resource_unavailable", SoldOut, Offering, Unavailable, NEXT),
    row("placement_error", SoldOut, Offering, Unavailable, NEXT),
    row("no_space_left_in_location", SoldOut, Region, Unavailable, "leaves the location out for a while"),
    // Of servers, dedicated cores, addresses or networks: which one is in its details, so not the whole account.
    row("resource_limit_exceeded", Quota, Region, Unavailable, "leaves the location out for a while"),
    row("no_subnet_available", Quota, Region, Unavailable, "leaves the location out for a while"),
    row("ip_not_available", Quota, Region, Unavailable, "leaves the location out for a while"),
    // The plugin looks for the machine by its name first, and adopts it when its labels are those of the claim.
    row(
        "uniqueness_error",
        Conflict,
        Offering,
        Unknown,
        "gives the claim up and deletes what carries its UID",
    ),
    row("conflict", Unknown, Offering, Unavailable, AGAIN),
    row("service_error", Unknown, Offering, Unavailable, AGAIN),
    row("server_error", Unknown, Offering, Unavailable, AGAIN),
    row("timeout", Unknown, Offering, Unavailable, AGAIN),
    row("action_failed", Unknown, Offering, Unavailable, AGAIN),
    row("unavailable", Unavailable, Account, Unavailable, BACK_OFF),
    row("maintenance", Unavailable, Account, Unavailable, BACK_OFF),
    row("locked", Unavailable, Account, Unavailable, BACK_OFF),
    row("protected", Invalid, Account, Unavailable, CLASS),
    // Networks, firewalls and placement groups that the class names.
    row("networks_overlap", Invalid, Account, Unknown, CLASS),
    row("incompatible_network_type", Invalid, Account, Unknown, CLASS),
    row("firewall_resource_not_found", Invalid, Account, Unknown, CLASS),
    row("firewall_already_applied", Invalid, Account, Unknown, CLASS),
    row("firewall_managed_by_label_selector", Invalid, Account, Unknown, CLASS),
    row("private_net_only_server", Invalid, Account, Unknown, CLASS),
    row("server_already_added", Invalid, Account, Unknown, CLASS),
    row("server_already_attached", Invalid, Account, Unknown, CLASS),
    row("already_in_placement_group", Invalid, Account, Unknown, CLASS),
    // Addresses: none is named in a create, so that these would be the vendor's own slip.
    row("primary_ip_assigned", Invalid, Offering, Unavailable, NEXT),
    row("primary_ip_already_assigned", Invalid, Offering, Unavailable, NEXT),
    row("primary_ip_datacenter_mismatch", Invalid, Offering, Unknown, NEXT),
    row("primary_ip_version_mismatch", Invalid, Offering, Unknown, NEXT),
    row("must_be_unassigned", Invalid, Offering, Unavailable, NEXT),
    row("resource_in_use", Invalid, Offering, Unavailable, NEXT),
];

/// Codes that the document names for calls which this plugin never makes: load balancers, DNS, floating IPs, server
/// actions. Should one come all the same, it is treated as one that is not in the table.
pub const OF_OTHER_CALLS: &[&str] = &[
    "floating_ip_assigned",
    "incorrect_zone_mode",
    "invalid_load_balancer_type",
    "ip_not_in_vswitch_subnet",
    "ip_not_owned",
    "load_balancer_already_attached",
    "load_balancer_not_attached_to_network",
    "load_balancer_public_interface_disabled",
    "network_has_no_vswitch_subnet",
    "resolve_cloud_private_targets_error",
    "resolve_cloud_public_targets_error",
    "server_has_ipv4",
    "server_has_ipv6",
    "server_is_load_balancer_target",
    "server_not_stopped",
    "source_port_already_used",
    "target_already_defined",
    "targets_without_use_private_ip",
];

/// Fields of the creating request that come from the class and are the same for every offering.
const CLASS_FIELDS: [&str; 7] =
    ["image", "user_data", "ssh_keys", "networks", "firewalls", "placement_group", "labels"];

/// The row of a code; `None` when the table does not have it.
#[must_use]
pub fn row_of(code: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.code == code)
}

/// What an `invalid_input` holds for: what the class says is wrong for every offering alike.
#[must_use]
pub fn scope_of_fields(fields: &[String]) -> Scope {
    let of_class = |field: &String| {
        CLASS_FIELDS.iter().any(|known| field == known || field.starts_with(&format!("{known}.")))
    };
    if fields.iter().any(of_class) { Account } else { Offering }
}

/// What a status means whose body names no code, such as one from a proxy on the way.
///
/// A bare 404 is never `NotFound`: it would call a machine gone that runs.
#[must_use]
pub fn bare(status: u16, creating: bool) -> Cause {
    match status {
        401 => Unauthenticated,
        429 => RateLimit,
        _ if creating => Unknown,
        _ => Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every `| status | code | description |` line of a text.
    fn codes_in(text: &str) -> impl Iterator<Item = String> + '_ {
        text.lines().filter_map(|line| {
            let mut cells =
                line.trim().trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`'));
            let status = cells.next()?;
            let code = cells.next()?;
            let plain = !code.is_empty()
                && code.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
            (status.len() == 3 && status.parse::<u16>().is_ok() && plain).then(|| code.to_owned())
        })
    }

    fn collect(value: &serde_json::Value, into: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::String(text) => into.extend(codes_in(text)),
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            serde_json::Value::Object(fields) => fields.values().for_each(|field| collect(field, into)),
            _ => {}
        }
    }

    #[test]
    fn every_code_of_the_published_document_is_in_the_table() {
        let Some(shared) = std::env::var_os("SCARPENTER_SHARED") else {
            eprintln!("skipped: SCARPENTER_SHARED does not say where the published document is");
            return;
        };
        let path = std::path::Path::new(&shared).join("stand-ins/hetzner-cloud-openapi.json");
        let document = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut published = BTreeSet::new();
        collect(&document, &mut published);
        assert!(published.len() > 50, "{published:?}");
        let known = |code: &str| row_of(code).is_some() || OF_OTHER_CALLS.contains(&code);
        let missing: Vec<_> = published.iter().filter(|code| !known(code)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn no_code_is_named_twice() {
        let all: Vec<_> = ROWS.iter().map(|row| row.code).chain(OF_OTHER_CALLS.iter().copied()).collect();
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn only_what_is_certain_is_called_a_refusal() {
        for code in ["server_error", "timeout", "service_error", "conflict"] {
            assert_eq!(row_of(code).map(|row| row.create), Some(Unknown), "{code}");
        }
        assert_eq!(row_of("placement_error").map(|row| row.create), Some(SoldOut));
        assert_eq!(row_of("resource_unavailable").map(|row| row.create), Some(SoldOut));
        assert_eq!(row_of("resource_limit_exceeded").map(|row| row.create), Some(Quota));
    }

    #[test]
    fn a_404_without_the_vendors_word_proves_nothing() {
        assert_eq!(bare(404, false), Unavailable);
        assert_eq!(bare(404, true), Unknown);
        assert_eq!(bare(502, true), Unknown);
    }

    #[test]
    fn an_input_of_the_class_is_wrong_for_every_offering() {
        assert_eq!(scope_of_fields(&["image".to_owned()]), Account);
        assert_eq!(scope_of_fields(&["networks.0".to_owned()]), Account);
        assert_eq!(scope_of_fields(&["server_type".to_owned()]), Offering);
        assert_eq!(scope_of_fields(&[]), Offering);
    }
}
