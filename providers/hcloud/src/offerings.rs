//! Which types the vendor sells where, as it says now. Prices stay the catalog's: the vendor has them in euro.

use jiff::Timestamp;
use scarpenter_core::offering::{CapacityType, Place};
use scarpenter_provider::request::{LiveOffering, LiveOfferings};

use crate::api::{Api, Fault};
use crate::wire::ServerType;

/// Every type in every location that is asked for (none = all); one that is not sold there is named as not available.
pub(crate) async fn live(api: &Api, regions: &[String]) -> Result<LiveOfferings, Fault> {
    let mut locations = api.locations().await?;
    locations.retain(|location| regions.is_empty() || regions.contains(location));
    let types = api.server_types().await?;
    let now = Timestamp::now();
    let offerings = types.iter().flat_map(|kind| {
        locations.iter().map(move |location| LiveOffering {
            instance_type: kind.name.clone(),
            // Without a zone: the catalog may or may not name one.
            place: Place { region: location.clone(), zone: None, zone_id: None },
            capacity_type: CapacityType::OnDemand,
            price: None,
            available: is_sold(kind, location, now),
        })
    });
    Ok(LiveOfferings { offerings: offerings.collect(), instance_types: Vec::new() })
}

fn is_sold(kind: &ServerType, location: &str, now: Timestamp) -> bool {
    let at = kind.locations.iter().find(|at| at.name == location);
    at.is_some_and(|at| at.deprecation.as_ref().is_none_or(|end| now < end.unavailable_after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_sold_until_its_last_day_there() {
        let kind: ServerType = serde_json::from_value(serde_json::json!({"name": "cx22", "locations": [
            {"name": "fsn1", "deprecation": null},
            {"name": "nbg1", "deprecation": {"announced": "2026-01-01T00:00:00Z", "unavailable_after": "2026-06-01T00:00:00Z"}},
        ]}))
        .unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert!(is_sold(&kind, "fsn1", at("2027-01-01T00:00:00Z")));
        assert!(is_sold(&kind, "nbg1", at("2026-05-31T00:00:00Z")));
        assert!(!is_sold(&kind, "nbg1", at("2026-06-01T00:00:00Z")));
        assert!(!is_sold(&kind, "hel1", at("2026-01-01T00:00:00Z")));
    }
}
