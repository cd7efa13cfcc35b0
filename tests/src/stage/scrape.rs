//! What a controller says of itself: its requests to the API server; and what the kernel says of it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use anyhow::{Context, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const REQUESTS: &str = "scarpenter_kubernetes_requests_total{";

/// Requests to the API server, by method and resource.
#[derive(Clone, Debug, Default)]
pub struct Requests(BTreeMap<(String, String), u64>);

impl Requests {
    /// Reads them from a controller's metrics.
    ///
    /// # Errors
    /// When the port does not answer.
    pub async fn scrape(port: u16) -> anyhow::Result<Self> {
        Ok(Self::read(&metrics(port).await?))
    }

    fn read(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| {
            let (labels, count) = line.strip_prefix(REQUESTS)?.split_once("} ")?;
            Some(((label(labels, "method")?, label(labels, "resource")?), count.trim().parse().ok()?))
        });
        Self(lines.collect())
    }

    /// What has come since `before`, without leases: they are not of any machine.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let ours = self.0.iter().filter(|((_, resource), _)| resource != "leases");
        let of = |key: &(String, String)| before.0.get(key).copied().unwrap_or_default();
        let counts = ours.map(|(key, count)| (key.clone(), count.saturating_sub(of(key))));
        Self(counts.filter(|(_, count)| *count > 0).collect())
    }

    /// Sum of all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Rows of method, resource and count, the most frequent first.
    #[must_use]
    pub fn rows(&self) -> Vec<(&str, &str, u64)> {
        let rows =
            self.0.iter().map(|((method, resource), count)| (method.as_str(), resource.as_str(), *count));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.2));
        rows
    }
}

fn label(labels: &str, name: &str) -> Option<String> {
    let value = labels.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix("=\""))?;
    Some(value.trim_end_matches('"').to_owned())
}

/// All that a controller counts, in the Prometheus text format.
///
/// # Errors
/// When the port does not answer.
pub async fn metrics(port: u16) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.context("connect to /metrics")?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.context("read /metrics")?;
    ensure!(
        text.starts_with("HTTP/1.0 200"),
        "/metrics answers: {}",
        text.lines().next().unwrap_or_default()
    );
    Ok(text)
}

/// Most memory that a process has held, in bytes, as Linux counts it.
///
/// # Errors
/// When there is no such process.
pub fn peak_memory(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).context("read its status")?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    Ok(kib.context("the kernel counts no memory")?.trim().parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE scarpenter_kubernetes_requests_total counter
scarpenter_kubernetes_requests_total{method=\"PATCH\",resource=\"nodes\"} 7
scarpenter_kubernetes_requests_total{method=\"PUT\",resource=\"leases\"} 90
scarpenter_claim_steps_total{step=\"hold\"} 3
";

    #[test]
    fn requests_are_read_and_leases_left_out() {
        let since = Requests::read(TEXT).since(&Requests::default());
        assert_eq!(since.rows(), [("PATCH", "nodes", 7)]);
        assert_eq!(Requests::read(TEXT).since(&Requests::read(TEXT)).total(), 0);
    }
}
