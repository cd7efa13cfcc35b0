//! The plugin on a socket of its own, in front of a fake of its own.

use std::time::Duration;

use scarpenter_core::offering::{Arch, CapacityType, Place};
use scarpenter_core::resources::Resources;
use scarpenter_provider::request::Settings;
use scarpenter_provider::{Client, CreateMachine, DeleteMachine, Endpoint, FindMachine, Image};
use scarpenter_provider_hcloud::token::Token;
use scarpenter_provider_hcloud::{Api, Hcloud};
use tempfile::TempDir;

use crate::fake::{Fake, TOKEN};

pub(crate) const SETTLE: Duration = Duration::from_millis(250);

pub(crate) struct Stage {
    pub(crate) fake: Fake,
    pub(crate) client: Client,
    served: tokio::task::JoinHandle<()>,
    _folder: TempDir,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.served.abort();
    }
}

pub(crate) async fn stage() -> Stage {
    stage_with(Token::from(None, Some(TOKEN.to_owned())), Duration::from_secs(2)).await
}

pub(crate) async fn stage_with(token: Token, patience: Duration) -> Stage {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("hcloud.sock");
    let endpoint = Endpoint::Unix(socket.clone());
    let plugin = Hcloud::new(Api::new(&fake.address, token, patience).unwrap(), SETTLE);
    let served = tokio::spawn({
        let endpoint = endpoint.clone();
        async move {
            scarpenter_provider::server::serve(plugin, &endpoint, std::future::pending()).await.unwrap();
        }
    });
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
    let client = Client::connect("hcloud".into(), &endpoint).unwrap();
    Stage { fake, client, served, _folder: folder }
}

pub(crate) fn create(claim: &str) -> CreateMachine {
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
        user_data: b"{\"ignition\":{\"version\":\"3.4.0\"}}".to_vec(),
        expected_capacity: Resources::new().with("cpu", 2000),
    }
}

pub(crate) fn settings(json: serde_json::Value) -> Settings {
    json.as_object().unwrap().clone()
}

pub(crate) fn find(claim: &str) -> FindMachine {
    FindMachine { cluster: "cluster".into(), claim: claim.into(), machine: None, place: None }
}

pub(crate) fn delete(claim: &str) -> DeleteMachine {
    DeleteMachine {
        cluster: "cluster".into(),
        claim: claim.into(),
        machine: None,
        place: None,
        only_this_machine: false,
    }
}
