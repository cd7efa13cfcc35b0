//! The selector, held against one type: every rule that it fails, and by how much.

use scarpenter_core::offering::Hardware;

use crate::benchmark::{Bound, Wanted};
use crate::facts::Row;
use crate::glob::Glob;
use crate::refusal::{Reason, Refusal};
use crate::spec::check::micro;
use crate::spec::{Flags, Globs, Normalize, Selector, Unbenchmarked};

/// One rule that a type fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// At which step.
    pub step: Step,
    /// What is wanted, and what it is.
    pub words: String,
    /// By how much it misses, in percent; `None` where that is no number.
    pub margin: Option<f64>,
}

/// Where a type is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The provider cannot launch it, or it has no price in the regions.
    Ineligible,
    /// The template forbids it.
    Template,
    /// It misses the selector of this name.
    Filter(&'static str),
    /// What the selector of this name needs is not known.
    Missing(&'static str),
    /// Its family is not among the best.
    Ranking,
}

/// The selector with its patterns read.
pub(crate) struct Filters<'s> {
    selector: &'s Selector,
    types: Option<Patterns>,
    families: Option<Patterns>,
    max_hourly: Option<u64>,
    max_hourly_per_vcpu: Option<u64>,
    wanted: &'s Wanted<'s>,
}

struct Patterns {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
}

impl Patterns {
    fn read(field: &str, globs: Option<&Globs>) -> Result<Option<Self>, Refusal> {
        let read = |list: &[String]| {
            let list: Result<Vec<Glob>, String> = list.iter().map(|text| Glob::parse(text)).collect();
            list.map_err(|what| Reason::InvalidSelector.because(format!("spec.selector.{field}: {what}")))
        };
        globs
            .map(|globs| Ok(Self { include: read(&globs.include)?, exclude: read(&globs.exclude)? }))
            .transpose()
    }

    fn keeps(&self, name: &str) -> bool {
        let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(name));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

impl<'s> Filters<'s> {
    pub(crate) fn read(selector: &'s Selector, wanted: &'s Wanted<'s>) -> Result<Self, Refusal> {
        Ok(Self {
            types: Patterns::read("instanceTypes", selector.instance_types.as_ref())?,
            families: Patterns::read("families", selector.families.as_ref())?,
            max_hourly: selector.price.max_hourly.as_deref().and_then(micro),
            max_hourly_per_vcpu: selector.price.max_hourly_per_vcpu.as_deref().and_then(micro),
            selector,
            wanted,
        })
    }

    /// All rules but those of scores, in their order.
    pub(crate) fn judge(&self, row: &Row<'_>) -> Vec<Failure> {
        let mut out = Vec::new();
        self.names(row, &mut out);
        self.cpu(row, &mut out);
        self.memory(row, &mut out);
        self.gpu(row, &mut out);
        self.network_and_disks(row, &mut out);
        self.price(row, &mut out);
        out
    }

    fn names(&self, row: &Row<'_>, out: &mut Vec<Failure>) {
        if self.types.as_ref().is_some_and(|types| !types.keeps(row.name())) {
            categorical(out, "instanceTypes", "its name does not match".to_owned());
        }
        if let Some(families) = &self.families {
            match row.of.family.as_str() {
                "" if families.include.is_empty() => {}
                "" => missing(out, "families", "its family"),
                family if families.keeps(family) => {}
                family => categorical(out, "families", format!("family {family} does not match")),
            }
        }
        let vcpus = self.selector.vcpus.unwrap_or_default();
        within(out, "vcpus", "vCPUs", f64::from(row.of.cpu), (vcpus.min, vcpus.max));
        let arch = row.of.arch.as_str();
        let wanted = &self.selector.architectures;
        if !wanted.is_empty() && !wanted.iter().any(|own| own == arch) {
            categorical(out, "architectures", format!("it is {arch}"));
        }
    }

    fn cpu(&self, row: &Row<'_>, out: &mut Vec<Failure>) {
        let (cpu, own) = (&self.selector.cpu, &*row.of.hardware);
        one_of(out, "cpu.manufacturers", &row.of.cpu_manufacturer, &cpu.manufacturers);
        // The data of the snapshot has these in lower case.
        let allocations: Vec<String> = cpu.allocations.iter().map(|word| word.to_ascii_lowercase()).collect();
        one_of(out, "cpu.allocations", &row.of.cpu_allocation, &allocations);
        let ghz = own.cpu_mhz.map(|mhz| f64::from(mhz) / 1000.0);
        at_least(out, "cpu.clockSpeedMinGHz", "GHz", ghz, cpu.clock_speed_min_ghz);
        if let Some(wanted) = cpu.hyperthreading {
            match own.cpu_cores {
                None => missing(out, "cpu.hyperthreading", "its number of cores"),
                Some(cores) if (row.of.cpu > cores) == wanted => {}
                Some(cores) => categorical(
                    out,
                    "cpu.hyperthreading",
                    format!("it has {} vCPUs on {cores} cores", row.of.cpu),
                ),
            }
        }
        if let Some(flags) = &cpu.flags {
            self.flags(own, flags, out);
        }
        let caches = &cpu.caches;
        for (selector, unit, value, bound) in [
            ("cpu.caches.l1dPerCoreMinKiB", "KiB", own.l1d_kib, caches.l1d),
            ("cpu.caches.l1iPerCoreMinKiB", "KiB", own.l1i_kib, caches.l1i),
            ("cpu.caches.l2PerCoreMinKiB", "KiB", own.l2_kib, caches.l2),
            ("cpu.caches.l3MinMiB", "KiB", own.l3_kib, caches.l3.map(kibi)),
            ("cpu.caches.l3TotalMinMiB", "KiB", own.l3_total_kib, caches.l3_total.map(kibi)),
        ] {
            at_least(out, selector, unit, value.map(f64::from), bound);
        }
    }

    fn flags(&self, own: &Hardware, wanted: &Flags, out: &mut Vec<Failure>) {
        let Flags { all_of, any_of, none_of } = wanted;
        if all_of.is_empty() && any_of.is_empty() && none_of.is_empty() {
            return;
        }
        if own.cpu_flags.is_empty() {
            let bars_only = all_of.is_empty() && any_of.is_empty();
            if !(bars_only && self.selector.unbenchmarked == Unbenchmarked::Include) {
                missing(out, "cpu.flags", "its flags");
            }
            return;
        }
        let has = |flag: &&String| own.cpu_flags.contains(flag);
        let lacks = all_of.iter().find(|flag| !has(flag)).map(|flag| format!("it has no {flag}"));
        let none = || {
            let lacks = !any_of.is_empty() && !any_of.iter().any(|flag| has(&flag));
            lacks.then(|| format!("it has none of {}", any_of.join(", ")))
        };
        let barred = || none_of.iter().find(has).map(|flag| format!("it has {flag}"));
        if let Some(words) = lacks.or_else(none).or_else(barred) {
            categorical(out, "cpu.flags", words);
        }
    }

    fn memory(&self, row: &Row<'_>, out: &mut Vec<Failure>) {
        let (memory, vcpus) = (&self.selector.memory, f64::from(row.of.cpu));
        let own = float(row.of.memory_mib);
        within(out, "memory", "MiB", own, (memory.min_gib.map(kibi), memory.max_gib.map(kibi)));
        let each = |bound: f64| bound * 1024.0 * vcpus;
        let per_vcpu = memory.per_vcpu;
        within(out, "memory.perVcpu", "MiB", own, (per_vcpu.min_gib.map(each), per_vcpu.max_gib.map(each)));
    }

    fn gpu(&self, row: &Row<'_>, out: &mut Vec<Failure>) {
        let (gpu, own) = (&self.selector.gpu, &*row.of.hardware);
        let count = gpu.count.unwrap_or_default();
        let gpus = f64::from(own.gpu_ten_thousandths) / 1e4;
        within(out, "gpu.count", "GPUs", gpus, (count.min, count.max));
        for (selector, value, bound) in [
            ("gpu.memoryPerGpu", own.gpu_memory_min_mib, gpu.memory_per_gpu),
            ("gpu.memoryTotal", own.gpu_memory_total_mib, gpu.memory_total),
        ] {
            at_least(out, selector, "MiB", value.map(float), bound.map(|bound| kibi(bound.min_gib)));
        }
        one_of(out, "gpu.manufacturers", &own.gpu_manufacturer, &gpu.manufacturers);
        one_of(out, "gpu.models", &own.gpu_model, &gpu.models);
    }

    fn network_and_disks(&self, row: &Row<'_>, out: &mut Vec<Failure>) {
        let (network, own) = (self.selector.network, &*row.of.hardware);
        let gbps = |mbps: Option<u32>| mbps.map(|mbps| f64::from(mbps) / 1000.0);
        let (baseline, peak) = (gbps(own.network_baseline_mbps), gbps(own.network_peak_mbps));
        at_least(out, "network.baselineMinGbps", "Gbit/s", baseline, network.baseline_min_gbps);
        at_least(out, "network.peakMinGbps", "Gbit/s", peak, network.peak_min_gbps);
        let local = self.selector.storage.local;
        at_least(out, "storage.local.minGB", "GB", Some(float(own.local_storage_gb)), local.min_gb);
        let disks = match local.count_min {
            Some(2..) if own.local_storage_gb > 0 && own.local_storages == 0 => None,
            Some(1) => Some(f64::from(u8::from(own.local_storage_gb > 0))),
            _ => Some(f64::from(own.local_storages)),
        };
        at_least(out, "storage.local.countMin", "disks", disks, local.count_min.map(f64::from));
    }

    fn price(&self, row: &Row<'_>, out: &mut Vec<Failure>) {
        // Without a price it is ineligible, which is said elsewhere.
        let Some(price) = row.price else { return };
        let vcpus = u64::from(row.of.cpu);
        for (selector, bound) in [
            ("price.maxHourly", self.max_hourly),
            ("price.maxHourlyPerVcpu", self.max_hourly_per_vcpu.map(|bound| bound.saturating_mul(vcpus))),
        ] {
            within(out, selector, "USD an hour", dollars(price), (None, bound.map(dollars)));
        }
    }

    /// The bounds of scores that a type misses; those without a score are told apart.
    pub(crate) fn scores(&self, row: &Row<'_>) -> (Vec<Failure>, Vec<Failure>) {
        let (mut failed, mut unscored) = (Vec::new(), Vec::new());
        for bound in &self.wanted.bounds {
            match value(bound, row) {
                None => missing(&mut unscored, bound.selector, &format!("its score in {}", bound.name)),
                Some(value) => {
                    within(&mut failed, bound.selector, &bound.name, value, (bound.min, bound.max))
                }
            }
        }
        if self.wanted.rank.is_some_and(|(measured, _)| measured.of(row.index).is_none()) {
            missing(&mut unscored, "ranking", "the score that families are ranked by");
        }
        (failed, unscored)
    }
}

fn value(bound: &Bound<'_>, row: &Row<'_>) -> Option<f64> {
    let score = bound.measured.of(row.index)?;
    Some(match bound.normalize {
        Normalize::None => score,
        Normalize::PerVcpu => score / f64::from(row.of.cpu),
        Normalize::PerPrice => score / dollars(row.price?),
    })
}

pub(crate) fn dollars(micro: u64) -> f64 {
    float(micro) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "no size and no price is that large")]
fn float(number: u64) -> f64 {
    number as f64
}

fn kibi(number: f64) -> f64 {
    number * 1024.0
}

fn categorical(out: &mut Vec<Failure>, selector: &'static str, words: String) {
    out.push(Failure { step: Step::Filter(selector), words: format!("{selector}: {words}"), margin: None });
}

fn missing(out: &mut Vec<Failure>, selector: &'static str, what: &str) {
    let words = format!("{selector}: {what} is not known");
    out.push(Failure { step: Step::Missing(selector), words, margin: None });
}

fn one_of(out: &mut Vec<Failure>, selector: &'static str, own: &str, wanted: &[String]) {
    if wanted.is_empty() || wanted.iter().any(|word| word == own) {
        return;
    }
    match own {
        "" => missing(out, selector, "it"),
        own => categorical(out, selector, format!("it is {own:?}")),
    }
}

fn at_least(
    out: &mut Vec<Failure>,
    selector: &'static str,
    unit: &str,
    own: Option<f64>,
    bound: Option<f64>,
) {
    match (own, bound) {
        (_, None) => {}
        (None, Some(_)) => missing(out, selector, "it"),
        (Some(own), bound) => within(out, selector, unit, own, (bound, None)),
    }
}

fn within(
    out: &mut Vec<Failure>,
    selector: &'static str,
    unit: &str,
    own: f64,
    (min, max): (Option<f64>, Option<f64>),
) {
    let mut add = |side: &str, bound: f64, miss: f64| {
        let margin = Some(100.0 * miss / bound).filter(|margin| margin.is_finite());
        let words = format!("{selector}: {own} {unit}, {side} {bound} is wanted");
        out.push(Failure { step: Step::Filter(selector), words, margin });
    };
    if let Some(min) = min.filter(|min| own < *min) {
        add("at least", min, min - own);
    }
    if let Some(max) = max.filter(|max| own > *max) {
        add("at most", max, own - max);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
