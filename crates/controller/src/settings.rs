//! What an operator can set.

use std::net::IpAddr;
use std::time::Duration;

use scarpenter_core::name::Vendor;
use scarpenter_planner::Rules;
use scarpenter_provider::Endpoint;

/// Everything that is settable, already refined: values in here cannot be wrong.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where join Secrets, referenced Secrets and ConfigMaps, and the lease are.
    pub namespace: String,
    /// One plugin a vendor.
    pub providers: Vec<(Vendor, Endpoint)>,
    /// Name of the lease; `None` runs without leader election.
    pub lease: Option<String>,
    /// How long a single queued pod waits for a second one.
    pub batch_single: Duration,
    /// A burst is over after this long without a new pod.
    pub batch_idle: Duration,
    /// A burst is over after this long at the latest.
    pub batch_max: Duration,
    /// Where Karpenter lets the operator choose, and how many pods one pass looks at.
    pub rules: Rules,
    /// A machine that is ready and has not taken the pod that it was bought for after this long does not do for it.
    pub unfit_after: Duration,
    /// Most machines at a time, over all pools.
    pub max_machines: u32,
    /// Most money an hour, over all pools, in micro-USD.
    pub max_micro_usd_per_hour: u64,
    /// An empty node is looked at again after this long before it is disrupted.
    pub validation_delay: Duration,
    /// Shortest from the deletion of a claim to that of its machine.
    pub drain_delay: Duration,
    /// How often all machines are compared with all claims.
    pub sweep_every: Duration,
    /// Machines younger than this are never swept.
    pub sweep_grace: Duration,
    /// Whether pods that name none of our keys are ours although somebody else's NodePools exist.
    pub all_pods: bool,
    /// Address that both ports are bound to.
    pub bind: IpAddr,
    /// Port of `/metrics`; 0 takes a free one.
    pub metrics_port: u16,
    /// Port of `/healthz` and `/readyz`; 0 takes a free one.
    pub health_port: u16,
    /// `source.component` of events.
    pub component: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            providers: Vec::new(),
            lease: Some("scarpenter".to_owned()),
            batch_single: Duration::from_millis(20),
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            rules: Rules::default(),
            unfit_after: Duration::from_secs(30),
            max_machines: 100,
            max_micro_usd_per_hour: 10_000_000,
            validation_delay: Duration::from_secs(15),
            drain_delay: Duration::from_secs(5),
            sweep_every: Duration::from_secs(60),
            sweep_grace: Duration::from_secs(120),
            all_pods: false,
            bind: IpAddr::from([0, 0, 0, 0]),
            metrics_port: 8080,
            health_port: 8081,
            component: "scarpenter".to_owned(),
        }
    }
}
