//! Three real machines at once, and a plugin that is killed meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use scarpenter_core::offering::{Arch, CapacityType, Place};
use scarpenter_core::resources::Resources;
use scarpenter_playground::ControlPlane;
use scarpenter_provider::request::Settings;
use scarpenter_provider::{CreateMachine, Created, DeleteMachine, Deleted, FindMachine, Image, MachineState};

use crate::host::{Host, Metal, TURN, free_port};

/// Until an emulated kernel has printed its first line, three at a time.
const PRINTS_WITHIN: Duration = Duration::from_secs(120);

pub(crate) async fn three_machines(_: Arc<ControlPlane>) -> anyhow::Result<()> {
    let metal = Metal::ensure().await?;
    let _turn = TURN.lock().await;
    let mut host = Host::start(&metal, free_port()?, &["--cpus", "3", "--memory", "3072"]).await?;
    let creates = ["one", "two", "three"].map(create);
    let mut made = Vec::new();
    for create in &creates {
        match host.client.create_machine(create.clone()).await? {
            Created::Machine(machine) => made.push(machine),
            Created::Refused(refusal) => bail!("refused: {}", refusal.message),
        }
    }
    let processes = host.processes();
    ensure!(processes.len() == 3, "three machines are {processes:?}");

    host.kill();
    ensure!(host.processes() == processes, "they outlive their plugin");
    host.start_again().await?;
    for (create, made) in creates.iter().zip(&made) {
        let found = host.client.get_machine(find(create)).await?.context("it is adopted")?;
        ensure!(found == *made && found.state == MachineState::Running, "{found:?}");
        ensure!(
            matches!(host.client.create_machine(create.clone()).await?, Created::Machine(again) if again == *made)
        );
        until_it_prints(&host, create).await?;
    }
    ensure!(host.processes() == processes, "a retry made nothing");
    let Created::Refused(refusal) = host.client.create_machine(self::create("four")).await? else {
        bail!("a fourth has no room")
    };
    ensure!(refusal.message.contains("no room"), "{}", refusal.message);

    for create in &creates {
        let FindMachine { cluster, claim, machine, place } = find(create);
        let delete = DeleteMachine { cluster, claim, machine, place, only_this_machine: false };
        while host.client.delete_machine(delete.clone()).await? == Deleted::Asked {}
    }
    host.demand_nothing_left()
}

async fn until_it_prints(host: &Host, create: &CreateMachine) -> anyhow::Result<()> {
    let deadline = Instant::now() + PRINTS_WITHIN;
    while host.client.console_output(find(create)).await?.is_none() {
        ensure!(Instant::now() < deadline, "{} prints nothing: {}", create.name, host.words());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

fn create(claim: &str) -> CreateMachine {
    CreateMachine {
        cluster: "cluster".into(),
        claim: claim.into(),
        pool: "pool".to_owned(),
        name: format!("node-{claim}"),
        instance_type: "local.small".to_owned(),
        place: Place { region: "local".to_owned(), zone: Some("local".to_owned()), zone_id: None },
        capacity_type: CapacityType::OnDemand,
        arch: Arch::Amd64,
        image: Image::Flatcar("stable".to_owned()),
        settings: Settings::new(),
        boot_disk_gib: None,
        user_data: br#"{"ignition":{"version":"3.3.0"}}"#.to_vec(),
        expected_capacity: Resources::default(),
    }
}

fn find(create: &CreateMachine) -> FindMachine {
    FindMachine { cluster: create.cluster.clone(), claim: create.claim.clone(), machine: None, place: None }
}
