//! The scaffold: sockets, certificates, health, and calls whose caller has gone.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use scarpenter_core::name::ClusterId;
use scarpenter_core::offering::{Arch, CapacityType};
use scarpenter_provider::capabilities::{Encoding, UserDataLimit};
use scarpenter_provider::request::{ClassCheck, Problem};
use scarpenter_provider::server::{Listener, Service, serve, serve_on};
use scarpenter_provider::{
    Capabilities, Client, Coverage, CreateMachine, DeleteMachine, Deleted, Endpoint, Failure, FindMachine,
    Machine, MachineList, Provider, TlsFiles, pb,
};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use tonic::transport::Channel;

const LONG: Duration = Duration::from_secs(20);

/// A vendor without machines; a delete waits until it is told to go on.
#[derive(Default)]
struct Empty {
    deleting: Notify,
    go_on: Notify,
    deleted: Notify,
}

impl Provider for Empty {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            vendor: "empty".into(),
            user_data_limit: UserDataLimit { bytes: 1, encoding: Encoding::Raw },
            capacity_types: vec![CapacityType::OnDemand],
            archs: vec![Arch::Amd64],
            settle: Duration::from_secs(1),
            rate_budget: None,
            lists_offerings: false,
            has_console: false,
        }
    }

    async fn validate(&self, _: ClassCheck) -> Result<Vec<Problem>, Failure> {
        panic!("a bug in the plugin")
    }

    async fn create_machine(&self, _: CreateMachine) -> Result<Machine, Failure> {
        panic!("a bug in the plugin")
    }

    async fn get_machine(&self, _: FindMachine) -> Result<Option<Machine>, Failure> {
        Ok(None)
    }

    async fn list_machines(&self, _: ClusterId) -> Result<MachineList, Failure> {
        Ok(MachineList { machines: Vec::new(), covered: Coverage::All })
    }

    async fn delete_machine(&self, _: DeleteMachine) -> Result<Deleted, Failure> {
        self.deleting.notify_one();
        self.go_on.notified().await;
        self.deleted.notify_one();
        Ok(Deleted::Gone)
    }
}

struct Served {
    plugin: Arc<Empty>,
    stop: oneshot::Sender<()>,
    done: tokio::task::JoinHandle<()>,
}

async fn serve_at(endpoint: &Endpoint) -> Served {
    let plugin = Arc::new(Empty::default());
    let (stop, stopped) = oneshot::channel();
    let listener = Listener::bind(endpoint).await.unwrap();
    let service = Service::new(plugin.clone());
    let done = tokio::spawn(async move {
        let shutdown = async move { drop(stopped.await) };
        serve_on(listener, service.clone(), shutdown).await.unwrap();
        service.quiesce().await;
    });
    Served { plugin, stop, done }
}

fn unix(folder: &Path) -> Endpoint {
    Endpoint::Unix(folder.join("empty.sock"))
}

async fn channel(endpoint: &Endpoint) -> Channel {
    tonic::transport::Endpoint::from_shared(endpoint.to_string()).unwrap().connect().await.unwrap()
}

#[tokio::test]
async fn a_socket_is_for_its_user_alone_and_goes_with_its_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve_at(&unix(folder.path())).await;
    let socket = folder.path().join("empty.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let client = Client::connect("empty".into(), &unix(folder.path())).unwrap();
    client.capabilities().await.unwrap();
    served.stop.send(()).unwrap();
    timeout(LONG, served.done).await.unwrap().unwrap();
    assert!(!socket.exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_a_live_one_or_a_file_is_not() {
    let folder = tempfile::tempdir().unwrap();
    drop(std::os::unix::net::UnixListener::bind(folder.path().join("empty.sock")).unwrap());
    let _served = serve_at(&unix(folder.path())).await;
    assert!(Listener::bind(&unix(folder.path())).await.is_err());
    let client = Client::connect("empty".into(), &unix(folder.path())).unwrap();
    client.capabilities().await.unwrap();

    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(Listener::bind(&Endpoint::Unix(file.clone())).await.is_err());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "precious");
}

#[tokio::test]
async fn a_delete_whose_caller_has_gone_is_carried_to_its_end_and_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve_at(&unix(folder.path())).await;
    let mut stub = pb::provider_client::ProviderClient::new(channel(&unix(folder.path())).await);
    let request = pb::DeleteMachineRequest {
        cluster_id: "c".into(),
        claim_uid: "u".into(),
        ..pb::DeleteMachineRequest::default()
    };
    let caller = tokio::spawn(async move { stub.delete_machine(request).await.map(drop) });
    timeout(LONG, served.plugin.deleting.notified()).await.unwrap();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    served.stop.send(()).unwrap();
    served.plugin.go_on.notify_one();
    timeout(LONG, served.plugin.deleted.notified()).await.unwrap();
    timeout(LONG, served.done).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_plugin_whose_code_panics_answers_that_the_outcome_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let _served = serve_at(&unix(folder.path())).await;
    let client = Client::connect("empty".into(), &unix(folder.path())).unwrap();
    let error = client.create_machine(create()).await.unwrap_err();
    assert!(!error.had_no_effect() && error.category() == "unknown", "{error:?}");
    client.capabilities().await.unwrap();
}

fn create() -> CreateMachine {
    CreateMachine {
        cluster: "c".into(),
        claim: "u".into(),
        pool: "p".into(),
        name: "p-1".into(),
        instance_type: "t".into(),
        place: scarpenter_core::offering::Place { region: "r".into(), zone: None, zone_id: None },
        capacity_type: CapacityType::OnDemand,
        arch: Arch::Amd64,
        image: scarpenter_provider::Image::Id("i".into()),
        settings: serde_json::Map::new(),
        boot_disk_gib: None,
        user_data: Vec::new(),
        expected_capacity: scarpenter_core::resources::Resources::new(),
    }
}

#[tokio::test]
async fn health_says_that_the_service_is_served() {
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    let folder = tempfile::tempdir().unwrap();
    let _served = serve_at(&unix(folder.path())).await;
    let mut health = HealthClient::new(channel(&unix(folder.path())).await);
    let service = "scarpenter.provider.v1.Provider".to_owned();
    let answer = health.check(HealthCheckRequest { service }).await.unwrap();
    assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
}

#[tokio::test]
async fn reflection_knows_the_contract() {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let folder = tempfile::tempdir().unwrap();
    let _served = serve_at(&unix(folder.path())).await;
    let mut reflection = ServerReflectionClient::new(channel(&unix(folder.path())).await);
    let symbol = "scarpenter.provider.v1.Provider.CreateMachine".to_owned();
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::FileContainingSymbol(symbol)),
    };
    let answers = reflection.server_reflection_info(tokio_stream::iter([request])).await;
    let answer = answers.unwrap().into_inner().message().await.unwrap().unwrap();
    assert!(matches!(answer.message_response, Some(MessageResponse::FileDescriptorResponse(_))));
}

/// An authority and one certificate for 127.0.0.1 signed by it, as files.
fn certificates(folder: &Path) -> TlsFiles {
    std::fs::create_dir_all(folder).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = params.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(params, key);
    let leaf_key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&leaf_key, &issuer).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    TlsFiles {
        ca: write("ca.pem", ca.pem()),
        certificate: write("cert.pem", leaf.pem()),
        key: write("key.pem", leaf_key.serialize_pem()),
    }
}

#[tokio::test]
async fn over_tcp_only_a_caller_with_a_certificate_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, strange) = (certificates(&folder.path().join("a")), certificates(&folder.path().join("b")));
    let tls = |port: u16, files: Option<TlsFiles>| {
        format!("https://127.0.0.1:{port}").parse::<Endpoint>().unwrap().with_tls(files)
    };
    let listener = Listener::bind(&tls(0, Some(ours.clone()))).await.unwrap();
    let port = listener.tcp_address().unwrap().port();
    let service = Service::new(Empty::default());
    tokio::spawn(serve_on(listener, service, std::future::pending()));

    let friend = Client::connect("empty".into(), &tls(port, Some(ours.clone()))).unwrap();
    friend.capabilities().await.unwrap();
    let stranger = TlsFiles { ca: ours.ca, ..strange };
    let stranger = Client::connect("empty".into(), &tls(port, Some(stranger))).unwrap();
    stranger.capabilities().await.unwrap_err();
    assert!(Client::connect("empty".into(), &tls(port, None)).is_err());
}

#[tokio::test]
async fn serve_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = Arc::new(Empty::default());
    timeout(LONG, serve(plugin, &unix(folder.path()), std::future::ready(()))).await.unwrap().unwrap();
}
