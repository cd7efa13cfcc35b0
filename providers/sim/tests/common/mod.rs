//! A played vendor on a unix socket of its own.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use scarpenter_core::offering::{Arch, CapacityType, Place};
use scarpenter_core::resources::Resources;
use scarpenter_provider::conformance::{Foreign, Report, Setup, run};
use scarpenter_provider::request::Settings;
use scarpenter_provider::{Client, CreateMachine, DeleteMachine, Endpoint, FindMachine, Image};
use scarpenter_provider_sim::faults::Faults;
use scarpenter_provider_sim::market::Market;
use scarpenter_provider_sim::metal::{Metal, Paper};
use scarpenter_provider_sim::{Cloud, Habits, play};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub struct Stage {
    pub cloud: Arc<Cloud>,
    pub client: Client,
    pub endpoint: Endpoint,
    pub stop: CancellationToken,
    pub served: JoinHandle<()>,
    _folder: TempDir,
}

/// Plays `vendor` with `rules`, on paper.
pub async fn stage(vendor: &str, rules: &str) -> Stage {
    stage_with(vendor, rules, Paper).await
}

/// Plays `vendor` with `rules`.
pub async fn stage_with(vendor: &str, rules: &str, metal: impl Metal) -> Stage {
    stage_selling(vendor, rules, metal, Market::none()).await
}

/// Plays `vendor` with `rules`, which tells what it sells now.
pub async fn stage_selling(vendor: &str, rules: &str, metal: impl Metal, market: Market) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Unix(folder.path().join("sim.sock"));
    let habits = Habits {
        settle: Duration::from_millis(200),
        boot_delay: Duration::ZERO,
        delete_takes: Duration::from_millis(30),
    };
    let cloud = Cloud::in_memory_selling(habits, Box::new(metal), Faults::from_text(rules).unwrap(), market);
    let stop = CancellationToken::new();
    let served = tokio::spawn({
        let (cloud, vendor, endpoint, stop) = (cloud.clone(), vendor.into(), endpoint.clone(), stop.clone());
        async move { play(&cloud, vendor, &endpoint, stop).await.unwrap() }
    });
    let client = Client::connect(vendor.into(), &endpoint).unwrap();
    let Endpoint::Unix(socket) = &endpoint else { unreachable!() };
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
    Stage { cloud, client, endpoint, stop, served, _folder: folder }
}

pub async fn conformance(stage: &Stage, check_within: Duration) -> Report {
    let vendor = stage.client.vendor().clone();
    let foreign = stage.cloud.add_foreign(&vendor, "fsn1");
    let cloud = stage.cloud.clone();
    let alive = foreign.clone();
    let is_alive = Box::new(move || -> std::pin::Pin<Box<dyn Future<Output = bool> + Send>> {
        let alive = cloud.is_alive(&alive);
        Box::pin(std::future::ready(alive))
    });
    let setup = Setup {
        create: create("template"),
        gone_within: check_within / 6,
        check_within,
        foreign: Some(Foreign { id: foreign, is_alive }),
    };
    run(&stage.client, setup).await
}

pub fn create(claim: &str) -> CreateMachine {
    CreateMachine {
        cluster: "cluster".into(),
        claim: claim.into(),
        pool: "default".into(),
        name: format!("default-{claim}"),
        instance_type: "cx22".into(),
        place: Place { region: "fsn1".into(), zone: None, zone_id: None },
        capacity_type: CapacityType::OnDemand,
        arch: Arch::Amd64,
        image: Image::Flatcar("stable".into()),
        settings: Settings::new(),
        boot_disk_gib: None,
        user_data: b"{}".to_vec(),
        expected_capacity: Resources::new().with("cpu", 2000),
    }
}

pub fn find(claim: &str) -> FindMachine {
    FindMachine { cluster: "cluster".into(), claim: claim.into(), machine: None, place: None }
}

pub fn delete(claim: &str) -> DeleteMachine {
    DeleteMachine {
        cluster: "cluster".into(),
        claim: claim.into(),
        machine: None,
        place: None,
        only_this_machine: false,
    }
}
