//! Counters, gauges and histograms, in Karpenter's names where Karpenter has them.
//!
//! Labels come from enums, pools and vendors, never from messages.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use scarpenter_catalog::store::Facts;
use scarpenter_catalog::{Catalog, Reason};
use scarpenter_core::lifecycle::Step;
use scarpenter_core::name::Vendor;
use scarpenter_core::resources::{CPU, Resources};
use scarpenter_provider::{Created, Error};

/// Upper bounds of all histograms, in seconds.
const BUCKETS: [f64; 13] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0];

/// Writes metrics; there is one a process.
#[derive(Debug)]
pub(crate) struct Metrics {
    handle: PrometheusHandle,
    catalog: Mutex<Known>,
}

/// What was told of the catalog: what is no longer there must be set to zero, and its age is worked out when asked for.
#[derive(Debug, Default)]
struct Known {
    facts: Facts,
    dropped: BTreeSet<Reason>,
}

impl Metrics {
    /// Installs the recorder of this process. A second one in a process records nothing, which only tests do.
    pub(crate) fn install() -> Result<Self, BuildError> {
        let recorder = PrometheusBuilder::new().set_buckets(&BUCKETS)?.build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::debug!("metrics are recorded elsewhere in this process");
        }
        gauge!("karpenter_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self { handle, catalog: Mutex::default() })
    }

    pub(crate) fn claim_created(&self, pool: &str) {
        counter!("karpenter_nodeclaims_created_total", "reason" => "provisioned", "nodepool" => pool.to_owned(), "min_values_relaxed" => "false").increment(1);
    }

    pub(crate) fn disrupted(&self, reason: &'static str, pool: Option<&str>) {
        counter!("karpenter_nodeclaims_disrupted_total", "reason" => reason, "nodepool" => pool.unwrap_or_default().to_owned()).increment(1);
    }

    pub(crate) fn terminated(&self, pool: Option<&str>) {
        counter!("karpenter_nodeclaims_terminated_total", "nodepool" => pool.unwrap_or_default().to_owned())
            .increment(1);
    }

    pub(crate) fn unschedulable(&self, pods: usize) {
        gauge!("karpenter_scheduler_unschedulable_pods_count", "controller" => "provisioner")
            .set(number(pods));
    }

    /// Pods of a pass, and how many of them it left for the next.
    pub(crate) fn queue(&self, pods: usize, deferred: usize) {
        gauge!("karpenter_scheduler_queue_depth", "controller" => "provisioner").set(number(pods));
        gauge!("scarpenter_scheduler_deferred_pods_count", "controller" => "provisioner")
            .set(number(deferred));
    }

    /// Headscale did not do what it was asked.
    pub(crate) fn mesh_failed(&self, category: &'static str) {
        counter!("scarpenter_mesh_errors_total", "category" => category).increment(1);
    }

    /// Machines that are gone and whose mesh node or key could not be deleted yet.
    pub(crate) fn mesh_left(&self, machines: usize) {
        gauge!("scarpenter_mesh_leftovers").set(number(machines));
    }

    /// Of how many kinds of machines it was learned what pods can have.
    pub(crate) fn kinds_learned(&self, kinds: usize) {
        gauge!("scarpenter_learned_machine_kinds").set(number(kinds));
    }

    /// A machine came and did not take the pod that it was bought for.
    pub(crate) fn unfit(&self, vendor: &Vendor) {
        counter!("scarpenter_unfit_machines_total", "provider" => vendor.to_string()).increment(1);
    }

    /// Pods that have not been told yet what was decided of them.
    pub(crate) fn untold(&self, pods: usize) {
        gauge!("scarpenter_untold_pods").set(number(pods));
    }

    pub(crate) fn planning(&self, took: Duration) {
        histogram!("karpenter_scheduler_scheduling_duration_seconds", "controller" => "provisioner")
            .record(took);
    }

    pub(crate) fn step(&self, step: &Step) {
        counter!("scarpenter_claim_steps_total", "step" => word(step)).increment(1);
    }

    pub(crate) fn failed(&self, category: &'static str) {
        counter!("scarpenter_claim_errors_total", "category" => category).increment(1);
    }

    pub(crate) fn create(&self, vendor: &Vendor, took: Duration, outcome: &Result<Created, Error>) {
        let word = match outcome {
            Ok(Created::Machine(_)) => None,
            Ok(Created::Refused(refusal)) => Some(refusal.reason.as_str()),
            Err(error) => Some(error.category()),
        };
        histogram!("karpenter_cloudprovider_duration_seconds", "method" => "CreateMachine", "provider" => vendor.to_string()).record(took);
        if let Some(word) = word {
            counter!("karpenter_cloudprovider_errors_total", "method" => "CreateMachine", "provider" => vendor.to_string(), "error" => word).increment(1);
        }
    }

    pub(crate) fn orphans(&self, vendor: &Vendor, machines: usize) {
        gauge!("scarpenter_orphaned_machines", "provider" => vendor.to_string()).set(number(machines));
    }

    pub(crate) fn usage(&self, pool: &str, sum: &Resources) {
        for (resource, amount) in sum.iter() {
            let scale = if resource == CPU { 1000.0 } else { 1.0 };
            #[expect(clippy::cast_precision_loss, reason = "a gauge for people")]
            let value = amount as f64 / scale;
            gauge!("karpenter_nodepools_usage", "resource_type" => resource.to_owned(), "nodepool" => pool.to_owned()).set(value);
        }
    }

    /// The catalog that is used from now on.
    pub(crate) fn catalog(&self, catalog: &Catalog) {
        let facts = Facts::of(catalog);
        let mut known = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let vendors: BTreeSet<&Vendor> = known.facts.offerings.keys().chain(facts.offerings.keys()).collect();
        for vendor in vendors {
            let offerings = facts.offerings.get(vendor).copied().unwrap_or_default();
            gauge!("scarpenter_catalog_offerings", "vendor" => vendor.to_string()).set(number(offerings));
        }
        known.dropped.extend(catalog.report.dropped.keys());
        for reason in &known.dropped {
            let rows = catalog.report.dropped.get(reason).copied().unwrap_or_default();
            gauge!("scarpenter_catalog_dropped_rows", "reason" => format!("{reason:?}")).set(number(rows));
        }
        known.facts = facts;
    }

    pub(crate) fn catalog_refreshed(&self, outcome: &'static str) {
        counter!("scarpenter_catalog_refreshes_total", "outcome" => outcome).increment(1);
    }

    /// How a plugin answered what its vendor sells now, and of how many offerings it spoke, if it did.
    pub(crate) fn live_refreshed(&self, vendor: &Vendor, outcome: &'static str, offerings: Option<usize>) {
        counter!("scarpenter_live_offerings_refreshes_total", "provider" => vendor.to_string(), "outcome" => outcome)
            .increment(1);
        if let Some(offerings) = offerings {
            gauge!("scarpenter_live_offerings", "provider" => vendor.to_string()).set(number(offerings));
        }
    }

    /// Everything, in the Prometheus text format.
    pub(crate) fn render(&self) -> String {
        process();
        self.catalog_ages(Timestamp::now());
        self.handle.render()
    }

    /// How long ago the catalog was fetched, and its newest price was seen.
    fn catalog_ages(&self, now: Timestamp) {
        let known = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |at: Timestamp| now.duration_since(at).as_secs_f64().max(0.0);
        if let Some(fetched) = known.facts.fetched {
            gauge!("scarpenter_catalog_age_seconds").set(age(fetched));
        }
        if let Some(date) = known.facts.date {
            gauge!("scarpenter_catalog_prices_age_seconds").set(age(date));
        }
    }
}

/// A request to the API server, by method and resource.
pub(crate) fn request(method: &'static str, resource: &str) {
    counter!("scarpenter_kubernetes_requests_total", "method" => method, "resource" => resource.to_owned())
        .increment(1);
}

/// What every process says of itself; read from the kernel.
fn process() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    if let Some(kib) = resident {
        gauge!("process_resident_memory_bytes").set(kib * 1024.0);
    }
    if let Some(seconds) = cpu_seconds() {
        gauge!("process_cpu_seconds_total").set(seconds);
    }
}

/// User and system time; Linux counts them in hundredths of a second.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn word(step: &Step) -> &'static str {
    match step {
        Step::Hold => "hold",
        Step::Launch => "launch",
        Step::Create => "create",
        Step::Register => "register",
        Step::Initialize => "initialize",
        Step::Abandon(_) => "abandon",
        Step::Drain => "drain",
        Step::Destroy => "destroy",
        Step::Release => "release",
        Step::Wait { .. } => "wait",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_written_in_the_text_format() {
        let metrics = Metrics::install().unwrap();
        metrics.claim_created("default");
        metrics.step(&Step::Launch);
        let text = metrics.render();
        assert!(text.contains("# TYPE karpenter_nodeclaims_created_total counter\n"), "{text}");
        assert!(text.contains("process_resident_memory_bytes "), "{text}");
    }
}
