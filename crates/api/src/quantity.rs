//! Kubernetes resource lists to and from core's [`Resources`].

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use scarpenter_core::resources::{self, Resources};

/// Reads a list of amounts; what cannot be read, or is less than nothing, is left out and named in `problems`.
pub fn parse_amounts(list: &BTreeMap<String, Quantity>, problems: &mut Vec<String>) -> Resources {
    let mut out = Resources::new();
    for (name, amount) in parse(list, problems).iter() {
        if amount < 0 {
            problems.push(format!("{name}: {} is less than nothing", list[name].0));
        } else {
            out.set(name, amount);
        }
    }
    out
}

/// Reads a resource list; what cannot be read is left out and named in `problems`.
pub fn parse(list: &BTreeMap<String, Quantity>, problems: &mut Vec<String>) -> Resources {
    let mut out = Resources::new();
    for (name, quantity) in list {
        match resources::parse_quantity(name, &quantity.0) {
            Ok(amount) => out.set(name, amount),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    out
}

/// Reads a resource list of an object that Kubernetes has checked; what cannot be read is left out.
#[must_use]
pub fn read(list: Option<&BTreeMap<String, Quantity>>) -> Resources {
    list.map(|list| parse(list, &mut Vec::new())).unwrap_or_default()
}

/// Writes a resource list.
#[must_use]
pub fn write(resources: &Resources) -> BTreeMap<String, Quantity> {
    resources.to_quantities().into_iter().map(|(name, text)| (name, Quantity(text))).collect()
}
