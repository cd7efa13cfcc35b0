//! From a catalog to the bytes of a body.

use std::collections::HashMap;
use std::hash::Hash;

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{Arch, CapacityType, Hardware, InstanceType, Place};

use super::body::{Body, Columns, HardwareRow, MeasuredRow, PlaceRow, TypeRow};
use super::unpack::unscaled;
use crate::offers::{Offer, number};
use crate::{Catalog, Measurement};

/// The bytes of all types, places and offers of a catalog, those without a price in USD too.
pub(super) fn pack(catalog: &Catalog) -> Vec<u8> {
    let snapshot = &catalog.snapshot;
    let mut numbers = Numbers::default();
    let types = snapshot.types().iter().map(|of| numbers.type_row(of)).collect();
    let known = snapshot.places().map(|(vendor, place)| numbers.place_row(vendor, place));
    let mut places: Vec<PlaceRow> = known.collect();
    let first_unpriced = number(places.len());
    let unpriced = &catalog.unpriced;
    places.extend(unpriced.places.iter().map(|(vendor, place)| numbers.place_row(vendor, place)));
    let priced = snapshot.offerings().map(|offering| Offer {
        instance_type: number(offering.type_index()),
        place: number(offering.place_index()),
        capacity: offering.capacity_type(),
        terms: offering.terms(),
    });
    let rest = unpriced.offers.iter().map(|offer| Offer { place: offer.place + first_unpriced, ..*offer });
    let mut offers: Vec<Offer> = priced.chain(rest).collect();
    offers.sort_unstable();
    let offers = numbers.columns(snapshot.types().len(), &offers);
    let measured = catalog.scores.iter().map(|measured| numbers.measured_row(measured)).collect();
    let body = Body { texts: numbers.texts.list, flags: numbers.flags.list, types, places, offers, measured };
    postcard::to_stdvec(&body).expect("a body has nothing that its format cannot say")
}

/// Gives each different value a number, in the order of first use.
struct Numbered<T> {
    list: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { list: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, value: T) -> u32 {
        let next = number(self.list.len());
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.list.push(value);
        }
        number
    }
}

/// From values to numbers.
#[derive(Default)]
struct Numbers<'a> {
    texts: Numbered<&'a str>,
    flags: Numbered<Vec<u32>>,
}

impl<'a> Numbers<'a> {
    fn type_row(&mut self, of: &'a InstanceType) -> TypeRow {
        // Taken apart in full, so that no new field is forgotten.
        let InstanceType {
            vendor,
            name,
            arch,
            family,
            cpu,
            memory_mib,
            storage_gb,
            gpu_count,
            gpu_manufacturer,
            gpu_model,
            cpu_manufacturer,
            cpu_allocation,
            benchmarks,
            hardware,
        } = of;
        let mut text = |text: &'a str| self.texts.number(text);
        TypeRow {
            vendor: text(vendor.as_str()),
            name: text(name),
            arm64: *arch == Arch::Arm64,
            family: text(family),
            cpu: *cpu,
            memory_mib: *memory_mib,
            storage_gb: *storage_gb,
            gpu_count: *gpu_count,
            gpu_manufacturer: text(gpu_manufacturer),
            gpu_model: text(gpu_model),
            cpu_manufacturer: text(cpu_manufacturer),
            cpu_allocation: text(cpu_allocation),
            benchmarks: benchmarks.iter().map(|(name, score)| (text(name), *score)).collect(),
            hardware: self.hardware_row(hardware),
        }
    }

    fn hardware_row(&mut self, hardware: &'a Hardware) -> HardwareRow {
        let cpu_flags = hardware.cpu_flags.iter().map(|flag| self.texts.number(flag)).collect();
        let cpu_flags = self.flags.number(cpu_flags);
        let mut text = |text: &'a str| self.texts.number(text);
        HardwareRow {
            cpu_cores: hardware.cpu_cores,
            cpu_mhz: hardware.cpu_mhz,
            cpu_family: text(&hardware.cpu_family),
            cpu_model: text(&hardware.cpu_model),
            cpu_flags,
            l1d_kib: hardware.l1d_kib,
            l1i_kib: hardware.l1i_kib,
            l2_kib: hardware.l2_kib,
            l3_kib: hardware.l3_kib,
            l3_total_kib: hardware.l3_total_kib,
            memory_actual_mib: hardware.memory_actual_mib,
            gpu_ten_thousandths: hardware.gpu_ten_thousandths,
            gpu_memory_min_mib: hardware.gpu_memory_min_mib,
            gpu_memory_total_mib: hardware.gpu_memory_total_mib,
            gpu_manufacturer: text(&hardware.gpu_manufacturer),
            gpu_family: text(&hardware.gpu_family),
            gpu_model: text(&hardware.gpu_model),
            network_baseline_mbps: hardware.network_baseline_mbps,
            network_peak_mbps: hardware.network_peak_mbps,
            local_storage_gb: hardware.local_storage_gb,
            local_storages: hardware.local_storages,
            storage_type: text(&hardware.storage_type),
            ipv4: hardware.ipv4,
            start_millis: hardware.start_millis,
            retiring: hardware.retiring,
        }
    }

    fn place_row(&mut self, vendor: &'a Vendor, place: &'a Place) -> PlaceRow {
        let mut text = |text: &'a str| self.texts.number(text);
        PlaceRow {
            vendor: text(vendor.as_str()),
            region: text(&place.region),
            zone: place.zone.as_deref().map(&mut text),
            zone_id: place.zone_id.as_deref().map(&mut text),
        }
    }

    fn measured_row(&mut self, measured: &'a Measurement) -> MeasuredRow {
        let mut out = MeasuredRow {
            id: self.texts.number(measured.id()),
            config: self.texts.number(measured.config()),
            types: Vec::new(),
            scores: Vec::new(),
            exact: Vec::new(),
        };
        for (of, score) in measured.iter() {
            out.types.push(number(of));
            out.scores.push(ten_thousandths(score).map_or(0, |score| score + 1));
            if out.scores.last() == Some(&0) {
                out.exact.push(score);
            }
        }
        out
    }

    /// `offers` are in order.
    fn columns(&mut self, types: usize, offers: &'a [Offer]) -> Columns {
        let mut out = Columns { of_type: vec![0; types], ..Columns::default() };
        let (mut currencies, mut times) = (Numbered::default(), Numbered::default());
        for (id, Offer { instance_type, place, capacity, terms }) in offers.iter().enumerate() {
            out.of_type[*instance_type as usize] += 1;
            out.place.push(*place);
            out.spot.push(*capacity == CapacityType::Spot);
            out.native_micro.push(terms.native.micro);
            out.currency.push(currencies.number(self.texts.number(terms.native.currency.as_str())));
            let time = terms.observed.map_or(0, |time| times.number(time.millis() / 1000) + 1);
            out.observed.push(time);
            out.caps.extend(terms.monthly_cap_micro.map(|cap| (number(id), cap)));
        }
        (out.currencies, out.times) = (currencies.list, times.list);
        out
    }
}

/// A score in ten-thousandths, where that gives the same score again; most are written with two digits.
fn ten_thousandths(score: f64) -> Option<u64> {
    let scaled = (score * 1e4).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and not negative"
    )]
    let whole = (0.0..1e15).contains(&scaled).then_some(scaled as u64)?;
    (unscaled(whole).to_bits() == score.to_bits()).then_some(whole)
}
