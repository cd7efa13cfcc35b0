//! Plugins that hang, are not there, speak another language or say what cannot be: the other vendors go on.

use std::path::PathBuf;

use anyhow::Context;
use scarpenter_api::condition;
use scarpenter_tests::stage::Stage;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

use crate::case::{Case, exactly};

const RULES: &str = "rules:
  - {vendor: vultr, fault: hang}
  - {vendor: upcloud, call: GetCapabilities, fault: {nonsense: otherVendor}}
  - {vendor: gcp, call: GetCapabilities, fault: {nonsense: otherContract}}
  - {vendor: azure, call: Validate, fault: {problem: no such subnet}}
";

/// Vendors, what their plugin does, and what the class says of them.
const BROKEN: [(&str, &str, &str, &str); 6] = [
    ("vultr", "vc2-2c-4gb", "VultrReady", "ProviderUnavailable"),
    ("upcloud", "2xCPU-4GB", "UpcloudReady", "ProviderUnavailable"),
    ("gcp", "e2-standard-2", "GcpReady", "ProviderUnavailable"),
    ("azure", "Standard_F2als_v7", "AzureReady", "ValidationFailed"),
    ("ovh", "c3-4", "OvhReady", "ProviderUnavailable"),
    ("alicloud", "ecs.c8a.large", "AlicloudReady", "ProviderUnavailable"),
];

pub(super) async fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let faults = stage.log("sim").with_file_name("faults.yaml");
    std::fs::write(&faults, RULES)?;
    let junk = Sabotage::new(stage, "ovh")?;
    let babble = tokio::spawn(babble(UnixListener::bind(&junk.socket)?));
    let silence = Sabotage::new(stage, "alicloud")?;
    stage.start_controller()?;
    stage.until_ready().await?;

    let case = Case::new(stage);
    case.pod("healthy", exactly("hcloud", "cx23")).await?;
    for (vendor, instance_type, _, _) in BROKEN {
        case.pod(vendor, exactly(vendor, instance_type)).await?;
    }
    case.ran("healthy").await?;
    for (vendor, _, type_, reason) in BROKEN {
        let what = format!("{type_} is False, {reason}");
        case.until_object(&case.classes(), "default", &what, |class| {
            crate::case::condition(class.conditions(), type_)
                .is_some_and(|said| said.starts_with(&format!("False {reason} ")))
        })
        .await?;
        let words = format!("vendor {vendor} cannot be used now: ");
        case.event(vendor, "FailedScheduling", &[&words]).await?;
        case.machine_ready(vendor, "False", "NoOffering", &[&words]).await?;
    }
    let class = case.classes().get("default").await?;
    anyhow::ensure!(condition::is_true(class.conditions(), condition::READY), "{:?}", class.status);

    babble.abort();
    junk.mend()?;
    silence.mend()?;
    std::fs::write(&faults, "rules: []")?;
    for (vendor, ..) in BROKEN {
        case.ran(vendor).await?;
    }
    Ok(())
}

/// A plugin's socket, taken away.
struct Sabotage {
    socket: PathBuf,
    away: PathBuf,
}

impl Sabotage {
    fn new(stage: &Stage, vendor: &str) -> anyhow::Result<Self> {
        let socket = stage.log("sim").with_file_name(format!("{vendor}.sock"));
        let away = socket.with_extension("away");
        std::fs::rename(&socket, &away).context("take the socket away")?;
        Ok(Self { socket, away })
    }

    fn mend(self) -> anyhow::Result<()> {
        std::fs::rename(&self.away, &self.socket).context("put the socket back")
    }
}

/// Answers everybody with something that is no gRPC.
async fn babble(listener: UnixListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        stream.write_all(b"220 mail.example.com ESMTP\r\n").await.ok();
    }
}
