//! A small catalog: three vendors, two of which share names of a region and a zone, one without zones.

use std::collections::BTreeMap;

use scarpenter_core::label;
use scarpenter_core::offering::{Arch, CapacityType, InstanceType, Place, Price};
use scarpenter_core::snapshot::{Snapshot, SnapshotBuilder};

use super::draw::Draw;

/// One type and where it is sold.
#[derive(Clone, Debug)]
pub(crate) struct Sold {
    instance_type: InstanceType,
    offers: Vec<(Place, CapacityType, Price)>,
}

type Places = &'static [(&'static str, Option<&'static str>)];

const VENDORS: [(&str, Places); 3] = [
    ("aws", &[("east", Some("z1")), ("east", Some("z2")), ("west", Some("z3"))]),
    ("gcp", &[("east", Some("z1")), ("east", Some("z4")), ("south", Some("z5"))]),
    ("hcloud", &[("north", None), ("south", None)]),
];

/// Between ten and forty offerings.
pub(super) fn draw(draw: &mut Draw) -> Vec<Sold> {
    let mut out = Vec::new();
    for (vendor, places) in VENDORS {
        for number in 0..draw.between(2, 4) {
            let instance_type = instance_type(draw, vendor, number);
            let offers = offers(draw, &instance_type, places);
            out.push(Sold { instance_type, offers });
        }
    }
    out
}

fn instance_type(draw: &mut Draw, vendor: &str, number: usize) -> InstanceType {
    let cpu = *draw.pick(&[1u32, 2, 2, 4, 4, 8, 16]);
    let gib = u64::from(cpu) * draw.pick(&[2, 4, 8]);
    let arm64 = draw.chance(30);
    let gpu_count = if draw.chance(12) { *draw.pick(&[1, 2]) } else { 0 };
    let gpu = |text: &str| if gpu_count > 0 { text.to_owned() } else { String::new() };
    // Two vendors may sell under one name.
    let family = *draw.pick(&["s", "m"]);
    let measured = draw.chance(60);
    let score = draw.between(10, 40) as u64 * 100;
    InstanceType {
        vendor: vendor.into(),
        name: format!("{family}{number}"),
        arch: if arm64 { Arch::Arm64 } else { Arch::Amd64 },
        family: family.to_owned(),
        cpu,
        memory_mib: if vendor == "hcloud" { gib * 1000 } else { gib * 1024 },
        storage_gb: *draw.pick(&[0, 0, 20, 40, 120]),
        gpu_count,
        gpu_manufacturer: gpu("NVIDIA"),
        gpu_model: gpu("A100"),
        cpu_manufacturer: draw.pick(&["AMD", "Intel", ""]).to_string(),
        cpu_allocation: String::new(),
        benchmarks: measured.then_some((label::BENCHMARKS[0], score)).into_iter().collect::<BTreeMap<_, _>>(),
        hardware: Box::default(),
    }
}

fn offers(draw: &mut Draw, of: &InstanceType, places: Places) -> Vec<(Place, CapacityType, Price)> {
    let mut out = Vec::new();
    let base = u64::from(of.cpu) * 10_000 + of.memory_mib * 2 + u64::from(of.gpu_count) * 400_000;
    let sure = draw.between(0, places.len() - 1);
    for (number, (region, zone)) in places.iter().enumerate() {
        let place = Place { region: (*region).to_owned(), zone: zone.map(str::to_owned), zone_id: None };
        let mut price = |least, most| Price::from_micro_usd(base * draw.between(least, most) as u64 / 100);
        let (on_demand, spot) = (price(80, 120), price(30, 110));
        if number == sure || draw.chance(50) {
            out.push((place.clone(), CapacityType::OnDemand, on_demand));
        }
        if draw.chance(20) {
            out.push((place, CapacityType::Spot, spot));
        }
    }
    out
}

/// As the catalog has it.
pub(super) fn snapshot(market: &[Sold]) -> Snapshot {
    let mut builder = SnapshotBuilder::default();
    for sold in market {
        let id = builder.instance_type(sold.instance_type.clone());
        for (place, capacity, price) in &sold.offers {
            builder.offering(id, place.clone(), *capacity, *price);
        }
    }
    builder.build()
}
