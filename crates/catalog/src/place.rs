//! From the catalog's region and zone ids to the names that nodes carry as labels.
//!
//! | vendor | catalog | region, zone label |
//! |---|---|---|
//! | aws | zone id `usw2-az1`, name `us-west-2b` | `us-west-2`, `us-west-2b`, and the id beside it |
//! | gcp | `1000`, `2000` | `us-central1`, `us-central1-a` |
//! | azure | `westeurope`, `1` (`0` where the region has no zones) | `westeurope`, `westeurope-1` (none) |
//! | hcloud | datacenter `4`, `fsn1-dc14`, alias `fsn1` | `fsn1`, `fsn1` |
//! | vultr | `ewr`, zone called `New Jersey` | `ewr`, `ewr` |
//! | others | `api_reference` of both | as it is |

use scarpenter_core::offering::Place;

use crate::rows::{RegionRow, ZoneRow};

/// The vendor's own name for a region.
pub(crate) fn region(row: &RegionRow<'_>) -> String {
    let reference = if row.api_reference.is_empty() { row.id } else { row.api_reference };
    match row.vendor {
        "hcloud" => location(reference, row.aliases),
        _ => reference.to_owned(),
    }
}

/// The place that a zone is, in the region of that name.
pub(crate) fn place(row: &ZoneRow<'_>, region: &str) -> Place {
    let reference = if row.api_reference.is_empty() { row.id } else { row.api_reference };
    let zone = match row.vendor {
        "hcloud" => Some(region.to_owned()),
        "azure" => azure_zone(reference, region),
        "vultr" => Some(row.id.to_owned()),
        _ => Some(reference.to_owned()),
    };
    let zone_id = (row.vendor == "aws" && row.id != reference).then(|| row.id.to_owned());
    Place { region: region.to_owned(), zone, zone_id }
}

/// Hetzner sells by datacenter (`fsn1-dc14`); machines are asked for by location (`fsn1`).
fn location(reference: &str, aliases: &str) -> String {
    let alias = serde_json::from_str::<Vec<String>>(aliases)
        .ok()
        .and_then(|names| names.into_iter().find(|name| !name.is_empty()));
    alias.unwrap_or_else(|| match reference.rsplit_once("-dc") {
        Some((location, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => location.to_owned(),
        _ => reference.to_owned(),
    })
}

/// Azure numbers the zones of each region; the crawler writes `0` for a region that has none.
fn azure_zone(reference: &str, region: &str) -> Option<String> {
    match reference {
        "" | "0" => None,
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => Some(format!("{region}-{number}")),
        named => Some(named.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region_of(vendor: &str, id: &str, api_reference: &str, aliases: &str) -> String {
        region(&RegionRow { vendor, id, api_reference, aliases, active: true })
    }

    fn zone_of(
        vendor: &str,
        region: &str,
        id: &str,
        api_reference: &str,
    ) -> (Option<String>, Option<String>) {
        let place = place(&ZoneRow { vendor, region_id: "", id, api_reference, active: true }, region);
        assert_eq!(place.region, region);
        (place.zone, place.zone_id)
    }

    #[test]
    fn a_region_is_called_what_its_vendor_calls_it() {
        for (vendor, id, api_reference, aliases, name) in [
            ("aws", "us-west-2", "us-west-2", "[]", "us-west-2"),
            ("aws", "eu-central-1", "eu-central-1", r#"["EU (Frankfurt)"]"#, "eu-central-1"),
            ("gcp", "1000", "us-central1", "[]", "us-central1"),
            ("azure", "westeurope", "westeurope", "[]", "westeurope"),
            ("alicloud", "cn-hangzhou", "cn-hangzhou", r#"["cn-hangzhou-dg-a01"]"#, "cn-hangzhou"),
            ("hcloud", "4", "fsn1-dc14", r#"["fsn1"]"#, "fsn1"),
            ("hcloud", "4", "fsn1-dc14", "[]", "fsn1"),
            ("hcloud", "4", "fsn1", "null", "fsn1"),
            ("ovh", "GRA11", "GRA11", "[]", "GRA11"),
            ("upcloud", "de-fra1", "de-fra1", "[]", "de-fra1"),
            ("vultr", "ewr", "ewr", "[]", "ewr"),
        ] {
            assert_eq!(region_of(vendor, id, api_reference, aliases), name, "{vendor} {id}");
        }
    }

    #[test]
    fn a_zone_is_called_what_its_vendor_calls_it() {
        for (vendor, region, id, api_reference, zone, zone_id) in [
            ("aws", "us-west-2", "usw2-az1", "us-west-2b", Some("us-west-2b"), Some("usw2-az1")),
            ("gcp", "us-central1", "2000", "us-central1-a", Some("us-central1-a"), None),
            ("azure", "westeurope", "1", "1", Some("westeurope-1"), None),
            ("azure", "westus", "0", "0", None, None),
            ("alicloud", "cn-hangzhou", "cn-hangzhou-h", "cn-hangzhou-h", Some("cn-hangzhou-h"), None),
            ("hcloud", "fsn1", "4", "fsn1-dc14", Some("fsn1"), None),
            ("ovh", "GRA11", "gra11-a", "gra11-a", Some("gra11-a"), None),
            ("upcloud", "de-fra1", "de-fra1", "de-fra1", Some("de-fra1"), None),
            ("vultr", "ewr", "ewr", "New Jersey", Some("ewr"), None),
        ] {
            let expected = (zone.map(str::to_owned), zone_id.map(str::to_owned));
            assert_eq!(zone_of(vendor, region, id, api_reference), expected, "{vendor} {id}");
        }
    }
}
