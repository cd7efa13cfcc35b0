//! A machine that is bought with a document.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use scarpenter_bootstrap::{Join, Mesh, Method, render};
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::Secret;
use serde_json::Value;

use crate::boot::Boot;
use crate::disk;
use crate::namespace::Namespace;
use crate::programs::TAILSCALE_VERSION;
use crate::site::{CONTROL, Site};
use crate::unit;

pub(crate) const KUBELET: &str = "scarpenter-kubelet.service";
pub(crate) const TAILSCALED: &str = "scarpenter-tailscaled.service";
pub(crate) const ADDRESS: &str = "scarpenter-mesh-address.service";
const JOINS_WITHIN: Duration = Duration::from_secs(60);

/// A machine, on or off.
pub(crate) struct Machine<'s> {
    site: &'s Site,
    number: u8,
    disk: PathBuf,
    boot: Option<Boot>,
}

impl<'s> Machine<'s> {
    /// Its disk as it is after Ignition; it is off.
    pub(crate) fn install(site: &'s Site, number: u8, join: &Join) -> anyhow::Result<Self> {
        let disk = site.folder().join(format!("machine{number}"));
        disk::install(&disk, &render(join)?, site.ca_pem())?;
        Ok(Self { site, number, disk, boot: None })
    }

    /// Where a file of its disk is.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.disk.join(path)
    }

    /// Boots it; if it is on, it is cut off first.
    pub(crate) fn power_on(&mut self) -> anyhow::Result<&mut Boot> {
        self.boot = None;
        let units = unit::services(&self.disk)?;
        let extensions: Vec<PathBuf> =
            disk::extensions(&self.disk)?.into_iter().map(|name| self.site.extensions().join(name)).collect();
        let logs = self.site.folder().join(format!("logs{}", self.number));
        if logs.exists() {
            fs::remove_dir_all(&logs)?;
        }
        fs::create_dir(&logs)?;
        let machine = Namespace::rooted(&logs.join("namespace.log"), &self.disk, &extensions)?;
        self.site.plug(self.number, &machine)?;
        Ok(self.boot.insert(Boot::new(&units, machine, &logs)))
    }

    pub(crate) fn boot(&mut self) -> anyhow::Result<&mut Boot> {
        self.boot.as_mut().context("the machine is off")
    }

    pub(crate) fn namespace(&self) -> anyhow::Result<&Namespace> {
        Ok(self.boot.as_ref().context("the machine is off")?.machine())
    }

    /// The arguments that its kubelet was started with, once it is.
    pub(crate) fn kubelet(&mut self) -> anyhow::Result<Vec<String>> {
        let boot = self.boot()?;
        let note = boot.machine().root().join("run/kubelet");
        boot.until(JOINS_WITHIN, "the kubelet is started", |_| Ok(note.exists()))?;
        Ok(fs::read_to_string(note)?.lines().map(str::to_owned).collect())
    }

    /// Its address in the mesh, as its kubelet was told it, once it was.
    pub(crate) fn joined(&mut self) -> anyhow::Result<String> {
        let arguments = self.kubelet()?;
        let told = arguments.iter().find_map(|argument| argument.strip_prefix("--node-ip="));
        let told = told.with_context(|| format!("no --node-ip among {arguments:?}"))?.to_owned();
        let own = self.namespace()?.run("tailscale ip -4")?;
        ensure!(told == own.trim(), "the kubelet was told {told}, but the mesh says {own}");
        // What only holds at the second try is an order that the document does not ask for.
        for name in [TAILSCALED, ADDRESS, KUBELET] {
            let starts = self.boot()?.service(name)?.starts;
            ensure!(starts == 1, "{name} was started {starts} times before the kubelet had its address");
        }
        Ok(told)
    }

    pub(crate) fn is_kubelet_started(&self) -> anyhow::Result<bool> {
        Ok(self.namespace()?.root().join("run/kubelet").exists())
    }

    /// What its tailscaled says of itself and the others.
    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.namespace()?.run("tailscale status --json")?)?)
    }
}

/// What the document of a machine with this key is made of.
pub(crate) fn join(site: &Site, number: u8, auth_key: &str) -> Join {
    Join {
        node_name: format!("worker-{number}"),
        provider_id: format!("scarpenter://sim/0000000{number}"),
        servers: vec![format!("https://{CONTROL}:6443")],
        ca_pem: site.ca_pem().to_owned(),
        token_id: "abc123".to_owned(),
        token_secret: Secret::new("0123456789abcdef"),
        kubernetes_version: "v1.37.2".to_owned(),
        cluster_dns: vec!["10.43.0.10".to_owned()],
        cluster_domain: "cluster.local".to_owned(),
        labels: [("kubernetes.io/arch".to_owned(), "amd64".to_owned())].into(),
        taints: Vec::new(),
        kubelet: Kubelet { max_pods: 110, ..Kubelet::default() },
        sysext_base_url: "https://images.test".to_owned(),
        sysext_hashes: Default::default(),
        never_joined_after: Some(600),
        lifetime: Some(3600),
        api_unreachable_after: None,
        method: Method::Kubelet,
        mesh: Some(Mesh {
            login_server: format!("https://{CONTROL}"),
            auth_key: Secret::new(auth_key),
            tailscale_version: TAILSCALE_VERSION.to_owned(),
            accept_routes: true,
        }),
        firewall: None,
        extra: None,
        external_addresses: false,
    }
}
