//! `scarpenter controller`: arguments, refined once into settings.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use scarpenter_controller::Settings;
use scarpenter_core::name::Vendor;
use scarpenter_planner::Rules;
use scarpenter_provider::endpoint::parse_assignment;
use scarpenter_provider::{Endpoint, TlsFiles};
use tokio_util::sync::CancellationToken;

mod catalog;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    catalog: catalog::CatalogArgs,
    /// Name of the lease.
    #[arg(long, env = "LEADER_ELECTION_NAME", default_value = "scarpenter")]
    lease: String,
    /// Run without a lease; only where nothing else can run beside it.
    #[arg(long, env = "DISABLE_LEADER_ELECTION")]
    no_leader_election: bool,
    /// Most machines at a time, over all pools.
    #[arg(long, default_value_t = 100)]
    max_machines: u32,
    /// Most money an hour, over all pools, in USD.
    #[arg(long, default_value = "10", value_parser = micro_usd)]
    max_usd_per_hour: u64,
    /// A single pod waits this long for a second one.
    #[arg(long, env = "BATCH_SINGLE_DURATION", default_value = "20ms", value_parser = duration)]
    batch_single_duration: Duration,
    /// A burst of pods is over after this long without a new one.
    #[arg(long, env = "BATCH_IDLE_DURATION", default_value = "1s", value_parser = duration)]
    batch_idle_duration: Duration,
    /// A burst of pods is over after this long at the latest.
    #[arg(long, env = "BATCH_MAX_DURATION", default_value = "10s", value_parser = duration)]
    batch_max_duration: Duration,
    /// So many pods are planned at a time; the others follow at once.
    #[arg(long, env = "PODS_PER_PASS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pods_per_pass: u32,
    /// Whether preferences of pods are tried before they are dropped, or never looked at.
    #[arg(long, env = "PREFERENCE_POLICY", value_enum, default_value = "Respect")]
    preference_policy: PreferencePolicy,
    /// Whether minValues of a NodePool must hold, or is lowered to what there is.
    #[arg(long, env = "MIN_VALUES_POLICY", value_enum, default_value = "Strict")]
    min_values_policy: MinValuesPolicy,
    /// A machine that is ready and has not taken its pod after this long is not bought for that pod again.
    #[arg(long, env = "UNFIT_AFTER", default_value = "30s", value_parser = duration)]
    unfit_after: Duration,
    /// An empty node is looked at again after this long before it goes.
    #[arg(long, default_value = "15s", value_parser = duration)]
    validation_delay: Duration,
    /// Shortest from the taint of a node to the end of its machine.
    #[arg(long, default_value = "5s", value_parser = duration)]
    drain_delay: Duration,
    /// How often all machines are compared with all claims.
    #[arg(long, default_value = "60s", value_parser = duration)]
    sweep_every: Duration,
    /// Machines younger than this are never swept.
    #[arg(long, default_value = "2m", value_parser = duration)]
    sweep_grace: Duration,
    /// Take pods that name none of our keys although other NodePools exist.
    #[arg(long)]
    all_pods: bool,
    /// Address to listen on.
    #[arg(long, default_value = "0.0.0.0")]
    bind_address: IpAddr,
    /// Port of /metrics; 0 takes a free one.
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080)]
    metrics_port: u16,
    /// Port of /healthz and /readyz; 0 takes a free one.
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081)]
    health_port: u16,
}

/// Karpenter's `PREFERENCE_POLICY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum PreferencePolicy {
    Respect,
    Ignore,
}

/// Karpenter's `MIN_VALUES_POLICY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum MinValuesPolicy {
    Strict,
    BestEffort,
}

/// Which cluster, and which providers.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Kubeconfig; without it KUBECONFIG, then the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the lease, of join Secrets and of what classes refer to.
    #[arg(long, env = "POD_NAMESPACE", default_value = "kube-system")]
    namespace: String,
    /// A provider plugin, such as hcloud=unix:///run/scarpenter/hcloud.sock; repeatable.
    #[arg(long = "provider", value_name = "VENDOR=ENDPOINT", required = true, value_parser = parse_assignment)]
    providers: Vec<(Vendor, Endpoint)>,
    /// CA of the plugins that are reached by https.
    #[arg(long, value_name = "FILE", requires = "provider_cert", requires = "provider_key")]
    provider_ca: Option<PathBuf>,
    /// Our certificate for plugins that are reached by https.
    #[arg(long, value_name = "FILE")]
    provider_cert: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(long, value_name = "FILE")]
    provider_key: Option<PathBuf>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    crate::logging::start();
    let catalog = args.catalog.settings()?;
    let config = args.cluster.config().await?;
    let settings = settings(&args)?;
    let shutdown = CancellationToken::new();
    tokio::spawn(cancel_on_signal(shutdown.clone()));
    scarpenter_controller::run(config, settings, catalog, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &Args) -> anyhow::Result<Settings> {
    Ok(Settings {
        lease: (!args.no_leader_election).then(|| args.lease.clone()),
        batch_single: args.batch_single_duration,
        batch_idle: args.batch_idle_duration,
        batch_max: args.batch_max_duration,
        rules: Rules {
            respect_preferences: args.preference_policy == PreferencePolicy::Respect,
            strict_min_values: args.min_values_policy == MinValuesPolicy::Strict,
            most_pods: usize::try_from(args.pods_per_pass).unwrap_or(usize::MAX),
            ..Rules::default()
        },
        unfit_after: args.unfit_after,
        max_machines: args.max_machines,
        max_micro_usd_per_hour: args.max_usd_per_hour,
        validation_delay: args.validation_delay,
        drain_delay: args.drain_delay,
        sweep_every: args.sweep_every,
        sweep_grace: args.sweep_grace,
        all_pods: args.all_pods,
        bind: args.bind_address,
        metrics_port: args.metrics_port,
        health_port: args.health_port,
        ..args.cluster.settings()?
    })
}

impl ClusterArgs {
    /// The cluster's configuration.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
        let Some(path) = &self.kubeconfig else {
            return Config::infer()
                .await
                .context("no kubeconfig: give --kubeconfig, set KUBECONFIG, or run in a pod");
        };
        let kubeconfig = Kubeconfig::read_from(path)
            .with_context(|| format!("read {}", path.display()))
            .context(crate::BadInput)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        config.with_context(|| format!("use {}", path.display())).context(crate::BadInput)
    }

    /// Settings of which everything else is default.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        for (i, (vendor, _)) in self.providers.iter().enumerate() {
            if self.providers[..i].iter().any(|(other, _)| other == vendor) {
                return Err(anyhow::anyhow!("--provider names {vendor} twice").context(crate::BadInput));
            }
        }
        let files = self.tls_files();
        let with_tls = |(vendor, endpoint): &(Vendor, Endpoint)| {
            (vendor.clone(), endpoint.clone().with_tls(files.clone()))
        };
        let providers = self.providers.iter().map(with_tls).collect();
        Ok(Settings { namespace: self.namespace.clone(), providers, ..Settings::default() })
    }

    fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            ca: self.provider_ca.clone()?,
            certificate: self.provider_cert.clone()?,
            key: self.provider_key.clone()?,
        })
    }
}

/// Cancels on SIGINT or SIGTERM.
pub(crate) async fn cancel_on_signal(shutdown: CancellationToken) {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => return tracing::error!(%error, "SIGTERM is not handled"),
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("shutting down");
    shutdown.cancel();
}

/// A duration such as `15s`, `2m` or `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is no duration, such as 15s, 2m or 500ms"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number * 60)),
        "h" => Ok(Duration::from_secs(number * 3600)),
        _ => Err(format!("{text:?} is no duration, such as 15s, 2m or 500ms")),
    }
}

/// An amount in USD, as micro-USD.
pub(crate) fn micro_usd(text: &str) -> Result<u64, String> {
    let problem = || format!("{text:?} is no amount of USD, such as 10 or 2.50");
    let amount: f64 = text.parse().map_err(|_| problem())?;
    let price = scarpenter_core::offering::Price::from_usd(amount).ok_or_else(problem)?;
    Ok(price.micro_usd())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_amounts_are_refined_once() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("2").is_err() && duration("x").is_err());
        assert_eq!(micro_usd("2.50"), Ok(2_500_000));
        assert!(micro_usd("-1").is_err() && micro_usd("0").is_err());
    }
}
