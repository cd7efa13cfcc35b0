//! `catalog show`: all that is known of one type.

use std::collections::BTreeSet;

use anyhow::{Context, anyhow};
use scarpenter_catalog::Catalog;
use scarpenter_core::nearest::nearest;
use scarpenter_core::offering::InstanceType;
use scarpenter_core::snapshot::{Offering, Snapshot};

use crate::BadInput;

use super::view::View;

mod answer;
mod facts;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Vendor and type, such as `hcloud/ccx33`.
    #[arg(value_name = "VENDOR/TYPE")]
    name: String,
    #[command(flatten)]
    view: View,
}

/// So many names are offered in place of an unknown one.
const NEAREST: usize = 3;

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let catalog = args.view.source.open_quietly()?;
    let shown = Shown::find(&catalog, &args.name).context(BadInput)?;
    args.view.print(&answer::ShowDocument::new(&shown), &answer::grid(&shown), || answer::table(&shown))
}

/// A type and all its offerings, in price order.
struct Shown<'a> {
    catalog: &'a Catalog,
    index: usize,
    instance_type: &'a InstanceType,
    offerings: Vec<Offering<'a>>,
}

impl<'a> Shown<'a> {
    fn find(catalog: &'a Catalog, name: &str) -> anyhow::Result<Self> {
        let snapshot = &*catalog.snapshot;
        let index = index(snapshot, name).ok_or_else(|| unknown(snapshot, name))?;
        let offerings = snapshot.offerings_of(index).map(|id| snapshot.offering(id)).collect();
        Ok(Self { catalog, index, instance_type: &snapshot.types()[index], offerings })
    }
}

fn index(snapshot: &Snapshot, name: &str) -> Option<usize> {
    let (vendor, name) = name.split_once('/')?;
    snapshot
        .types()
        .binary_search_by(|own| (own.vendor.as_str(), own.name.as_str()).cmp(&(vendor, name)))
        .ok()
}

/// Why there is no such type, and which may have been meant.
fn unknown(snapshot: &Snapshot, name: &str) -> anyhow::Error {
    let vendors: BTreeSet<&str> = snapshot.types().iter().map(|own| own.vendor.as_str()).collect();
    let full = |own: &InstanceType| format!("{}/{}", own.vendor, own.name);
    let types = || snapshot.types().iter();
    let (vendor, word) = name.split_once('/').unwrap_or(("", name));
    let same: Vec<String> = types().filter(|own| own.name == word).map(full).collect();
    if !same.is_empty() {
        return anyhow!("there is no type {name}; the catalog has {}", same.join(", "));
    }
    if !vendor.is_empty() && !vendors.contains(vendor) {
        let vendors: Vec<&str> = vendors.into_iter().collect();
        return anyhow!("there is no vendor {vendor}; the catalog has {}", vendors.join(", "));
    }
    let names: Vec<String> =
        types().filter(|own| vendor.is_empty() || own.vendor.as_str() == vendor).map(full).collect();
    let mut left: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut near = Vec::new();
    while let Some(next) = nearest(name, left.iter().copied()).filter(|_| near.len() < NEAREST) {
        near.push(next);
        left.retain(|own| *own != next);
    }
    anyhow!("the catalog has no type {name}; the nearest are {}", near.join(", "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
