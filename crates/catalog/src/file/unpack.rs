//! From the bytes of a body to what it holds.

use std::sync::Arc;

use scarpenter_core::label;
use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{
    Arch, CapacityType, CpuFlags, Currency, Hardware, InstanceType, Money, Place, Terms,
};

use super::Flaw;
use super::body::{Body, Columns, HardwareRow, MeasuredRow, PlaceRow, TypeRow};
use crate::Measurement;
use crate::offers::{Offer, Offers};

/// What the bytes of a body hold. Every number in it is checked.
pub(super) fn unpack(raw: &[u8]) -> Result<Offers, Flaw> {
    let (body, rest): (Body<'_>, _) =
        postcard::take_from_bytes(raw).map_err(|_| Flaw::Content("its body is no catalog"))?;
    if !rest.is_empty() {
        return Err(Flaw::Content("its body goes on after its end"));
    }
    let mut values = Values::new(body.texts, &body.flags)?;
    let types: Vec<InstanceType> =
        body.types.into_iter().map(|row| values.instance_type(row)).collect::<Result<_, _>>()?;
    let places: Vec<(Vendor, Place)> =
        body.places.into_iter().map(|row| values.place(&row)).collect::<Result<_, _>>()?;
    let offers = values.offers(&body.offers, &types, &places)?;
    let scores = body.measured.into_iter().map(|row| values.measured(&row, types.len()));
    let scores = scores.collect::<Result<_, _>>()?;
    Ok(Offers { types, places, offers, scores })
}

/// From numbers to values.
struct Values<'a> {
    texts: Vec<&'a str>,
    shared: Vec<Option<Arc<str>>>,
    flags: Vec<CpuFlags>,
}

impl<'a> Values<'a> {
    fn new(texts: Vec<&'a str>, sets: &[Vec<u32>]) -> Result<Self, Flaw> {
        let mut out = Self { shared: vec![None; texts.len()], texts, flags: Vec::new() };
        let set =
            |set: &Vec<u32>| set.iter().map(|number| out.text(*number)).collect::<Result<CpuFlags, _>>();
        out.flags = sets.iter().map(set).collect::<Result<_, _>>()?;
        Ok(out)
    }

    fn text(&self, number: u32) -> Result<&'a str, Flaw> {
        get(&self.texts, number).copied()
    }

    fn owned(&self, number: u32) -> Result<String, Flaw> {
        self.text(number).map(str::to_owned)
    }

    fn shared(&mut self, number: u32) -> Result<Arc<str>, Flaw> {
        let text = self.text(number)?;
        Ok(Arc::clone(self.shared[number as usize].get_or_insert_with(|| text.into())))
    }

    fn instance_type(&mut self, row: TypeRow) -> Result<InstanceType, Flaw> {
        let benchmark = |(name, score): &(u32, u64)| {
            let name = self.text(*name)?;
            let known = label::BENCHMARKS.into_iter().find(|known| *known == name);
            Ok((known.ok_or(Flaw::Content("it has a benchmark that nobody knows"))?, *score))
        };
        Ok(InstanceType {
            vendor: self.text(row.vendor)?.into(),
            name: self.owned(row.name)?,
            arch: if row.arm64 { Arch::Arm64 } else { Arch::Amd64 },
            family: self.owned(row.family)?,
            cpu: row.cpu,
            memory_mib: row.memory_mib,
            storage_gb: row.storage_gb,
            gpu_count: row.gpu_count,
            gpu_manufacturer: self.owned(row.gpu_manufacturer)?,
            gpu_model: self.owned(row.gpu_model)?,
            cpu_manufacturer: self.owned(row.cpu_manufacturer)?,
            cpu_allocation: self.owned(row.cpu_allocation)?,
            benchmarks: row.benchmarks.iter().map(benchmark).collect::<Result<_, Flaw>>()?,
            hardware: Box::new(self.hardware(&row.hardware)?),
        })
    }

    fn hardware(&mut self, row: &HardwareRow) -> Result<Hardware, Flaw> {
        Ok(Hardware {
            cpu_cores: row.cpu_cores,
            cpu_mhz: row.cpu_mhz,
            cpu_family: self.shared(row.cpu_family)?,
            cpu_model: self.shared(row.cpu_model)?,
            cpu_flags: get(&self.flags, row.cpu_flags)?.clone(),
            l1d_kib: row.l1d_kib,
            l1i_kib: row.l1i_kib,
            l2_kib: row.l2_kib,
            l3_kib: row.l3_kib,
            l3_total_kib: row.l3_total_kib,
            memory_actual_mib: row.memory_actual_mib,
            gpu_ten_thousandths: row.gpu_ten_thousandths,
            gpu_memory_min_mib: row.gpu_memory_min_mib,
            gpu_memory_total_mib: row.gpu_memory_total_mib,
            gpu_manufacturer: self.shared(row.gpu_manufacturer)?,
            gpu_family: self.shared(row.gpu_family)?,
            gpu_model: self.shared(row.gpu_model)?,
            network_baseline_mbps: row.network_baseline_mbps,
            network_peak_mbps: row.network_peak_mbps,
            local_storage_gb: row.local_storage_gb,
            local_storages: row.local_storages,
            storage_type: self.shared(row.storage_type)?,
            ipv4: row.ipv4,
            start_millis: row.start_millis,
            retiring: row.retiring,
        })
    }

    fn place(&self, row: &PlaceRow) -> Result<(Vendor, Place), Flaw> {
        let place = Place {
            region: self.owned(row.region)?,
            zone: row.zone.map(|zone| self.owned(zone)).transpose()?,
            zone_id: row.zone_id.map(|id| self.owned(id)).transpose()?,
        };
        Ok((self.text(row.vendor)?.into(), place))
    }

    fn measured(&self, row: &MeasuredRow, types: usize) -> Result<Measurement, Flaw> {
        let (id, config) = (self.text(row.id)?, self.text(row.config)?);
        let mut exact = row.exact.iter().copied();
        if row.types.len() != row.scores.len() || row.types.iter().any(|of| *of as usize >= types) {
            return Err(Flaw::Content("it has scores of no type"));
        }
        let scores = row.types.iter().zip(&row.scores).map(|(of, score)| {
            let score = score.checked_sub(1).map_or_else(|| exact.next(), |score| Some(unscaled(score)));
            let score = score.filter(|score| *score >= 0.0 && score.is_finite());
            Ok((*of, score.ok_or(Flaw::Content("one of its scores is none"))?))
        });
        Ok(Measurement::new(id, config, scores.collect::<Result<_, Flaw>>()?))
    }

    fn offers(
        &self,
        columns: &Columns,
        types: &[InstanceType],
        places: &[(Vendor, Place)],
    ) -> Result<Vec<Offer>, Flaw> {
        let currencies = columns.currencies.iter().map(|number| {
            Currency::parse(self.text(*number)?).ok_or(Flaw::Content("one of its currencies is none"))
        });
        let currencies: Vec<Currency> = currencies.collect::<Result<_, _>>()?;
        let counted: u64 = columns.of_type.iter().map(|count| u64::from(*count)).sum();
        let lengths = [
            columns.place.len(),
            columns.spot.len(),
            columns.native_micro.len(),
            columns.currency.len(),
            columns.observed.len(),
        ];
        if columns.of_type.len() != types.len() || lengths.iter().any(|len| *len as u64 != counted) {
            return Err(Flaw::Content("its columns are of different lengths"));
        }
        let mut caps = columns.caps.iter().peekable();
        let of_offer = columns.of_type.iter().zip(0..).flat_map(|(count, of)| (0..*count).map(move |_| of));
        let offers = of_offer.enumerate().map(|(at, of)| {
            let place = columns.place[at];
            if get(places, place)?.0 != types[of as usize].vendor {
                return Err(Flaw::Content("it sells a type in another vendor's place"));
            }
            let currency = *get(&currencies, columns.currency[at])?;
            let cap = caps.next_if(|(offer, _)| *offer as usize == at);
            let terms = Terms {
                native: Money { micro: columns.native_micro[at], currency },
                monthly_cap_micro: cap.map(|(_, cap)| *cap),
                observed: time(&columns.times, columns.observed[at])?,
            };
            let capacity = if columns.spot[at] { CapacityType::Spot } else { CapacityType::OnDemand };
            Ok(Offer { instance_type: of, place, capacity, terms })
        });
        let offers = offers.collect::<Result<Vec<_>, Flaw>>()?;
        match caps.next() {
            None => Ok(offers),
            Some(_) => Err(Flaw::Content("it has a cap of no offer")),
        }
    }
}

fn time(times: &[i64], number: u32) -> Result<Option<Time>, Flaw> {
    let Some(number) = number.checked_sub(1) else { return Ok(None) };
    Ok(Some(Time::from_millis(get(times, number)?.saturating_mul(1000))))
}

fn get<T>(list: &[T], number: u32) -> Result<&T, Flaw> {
    list.get(number as usize).ok_or(Flaw::Content("it refers to what it does not hold"))
}

/// A score that was kept in ten-thousandths.
pub(super) fn unscaled(score: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "the writer has checked that this gives the score again")]
    let score = score as f64 / 1e4;
    score
}
