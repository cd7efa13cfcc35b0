//! The fake's things in the shapes of the published document.

use serde_json::{Value, json};

use super::world::{Ip, ServerRow, Snapshot};

pub(super) const LOCATIONS: [&str; 3] = ["fsn1", "nbg1", "ash"];
pub(super) const TYPES: [(&str, &str, &[&str]); 3] = [
    ("cx22", "x86", &["fsn1", "nbg1"]),
    ("cax11", "arm", &["fsn1"]),
    ("cpx31", "x86", &["fsn1", "nbg1", "ash"]),
];

pub(super) fn location(name: &str) -> Value {
    let id = LOCATIONS.iter().position(|known| *known == name).unwrap_or_default() + 1;
    json!({"id": id, "name": name, "description": name, "country": "DE", "city": "Somewhere", "latitude": 50.5,
           "longitude": 12.4, "network_zone": if name == "ash" { "us-east" } else { "eu-central" }})
}

fn datacenter(at: &str) -> Value {
    json!({"id": 1, "name": format!("{at}-dc1"), "description": "", "location": location(at),
           "server_types": {"supported": [], "available": [], "available_for_migration": []}})
}

pub(super) fn server_type(name: &str) -> Value {
    let (index, (_, arch, sold)) =
        TYPES.iter().enumerate().find(|(_, kind)| kind.0 == name).expect("the fake sells what it made");
    let price = json!({"net": "0.0060000000", "gross": "0.0071400000"});
    let prices: Vec<_> = sold
        .iter()
        .map(|at| {
            json!({"location": at, "price_hourly": price, "price_monthly": price,
        "included_traffic": 1, "price_per_tb_traffic": price})
        })
        .collect();
    let at: Vec<_> =
        sold.iter().enumerate().map(|(id, at)| json!({"id": id, "name": at, "deprecation": null})).collect();
    json!({"id": index, "name": name, "description": name, "cores": 2, "memory": 4.0, "disk": 40, "deprecated": false,
           "prices": prices, "storage_type": "local", "cpu_type": "shared", "architecture": arch, "deprecation": null,
           "locations": at})
}

pub(super) fn server(row: &ServerRow, status: &str, ips: &[Ip]) -> Value {
    let of = |kind: &str| ips.iter().find(|ip| ip.assignee == Some(row.id) && ip.kind == kind);
    let ipv4 = of("ipv4").map(|ip| json!({"id": ip.id, "ip": ip.ip, "blocked": false, "dns_ptr": "x"}));
    let ipv6 = of("ipv6").map(|ip| json!({"id": ip.id, "ip": ip.ip, "blocked": false, "dns_ptr": []}));
    let private: Vec<_> = row
        .networks
        .iter()
        .map(|net| {
            json!({"network": net, "ip": format!("10.0.0.{}", row.id % 250),
        "alias_ips": [], "mac_address": "86:00:00:2a:7d:e0"})
        })
        .collect();
    json!({"id": row.id, "name": row.name, "status": status, "created": row.created.to_string(),
           "public_net": {"ipv4": ipv4, "ipv6": ipv6, "floating_ips": [], "firewalls": []}, "private_net": private,
           "server_type": server_type(&row.server_type), "datacenter": datacenter(&row.location),
           "location": location(&row.location), "image": null, "iso": null, "rescue_enabled": false, "locked": false,
           "backup_window": null, "outgoing_traffic": 0, "ingoing_traffic": 0, "included_traffic": 1,
           "protection": {"delete": row.protected, "rebuild": false}, "labels": row.labels, "volumes": [],
           "load_balancers": [], "primary_disk_size": 40, "placement_group": null})
}

pub(super) fn primary_ip(ip: &Ip) -> Value {
    json!({"id": ip.id, "name": format!("primary_ip-{}", ip.id), "labels": ip.labels, "created": "2026-01-01T00:00:00Z",
           "blocked": false, "datacenter": datacenter("fsn1"), "location": location("fsn1"), "ip": ip.ip, "dns_ptr": [],
           "protection": {"delete": false}, "type": ip.kind, "auto_delete": ip.auto_delete, "assignee_type": "server",
           "assignee_id": ip.assignee})
}

pub(super) fn image(snapshot: &Snapshot) -> Value {
    json!({"id": snapshot.id, "type": "snapshot", "status": "available", "name": null, "description": "", "image_size": 1.0,
           "disk_size": 10.0, "created": snapshot.created, "created_from": null, "bound_to": null, "os_flavor": "unknown",
           "os_version": null, "rapid_deploy": false, "protection": {"delete": false}, "deprecated": null,
           "deleted": null, "labels": snapshot.labels, "architecture": snapshot.arch})
}

pub(super) fn action(command: &str, server: u64) -> Value {
    json!({"id": 1, "command": command, "status": "running", "started": "2026-01-01T00:00:00Z", "finished": null,
           "progress": 0, "resources": [{"id": server, "type": "server"}], "error": null})
}

/// One page of a list, as the query asks for it.
pub(super) fn paged(key: &str, items: Vec<Value>, query: &[(String, String)]) -> Value {
    let number = |name: &str, usual: usize| {
        query.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(usual)
    };
    let (page, per_page) = (number("page", 1), number("per_page", 25).min(50));
    let total = items.len();
    let last = total.div_ceil(per_page).max(1);
    let items: Vec<_> = items.into_iter().skip((page - 1) * per_page).take(per_page).collect();
    let next = (page < last).then_some(page + 1);
    let previous = (page > 1).then(|| page - 1);
    json!({key: items, "meta": {"pagination": {"page": page, "per_page": per_page, "previous_page": previous,
           "next_page": next, "last_page": last, "total_entries": total}}})
}
