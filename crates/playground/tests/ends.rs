//! A control plane ends without a trace, however its owner ends.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use scarpenter_playground::{Binaries, ControlPlane, Options, Program, StartError};

async fn binaries() -> Binaries {
    rustls::crypto::ring::default_provider().install_default().ok();
    Binaries::ensure(|_| {}).await.unwrap()
}

fn is_alive(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
        && !std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default().contains(") Z ")
}

#[tokio::test]
async fn a_stopped_control_plane_leaves_no_process_and_no_folder() {
    let plane = ControlPlane::start(&binaries().await, Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    assert_eq!(client.request_text(request).await.unwrap(), "ok");
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.37.2");

    let (folder, ids) = (plane.folder().to_owned(), plane.process_ids());
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().copied().all(is_alive));
    plane.stop().await;
    assert!(!folder.exists());
    assert!(!ids.into_iter().any(is_alive));
}

#[tokio::test]
async fn a_client_is_the_user_and_the_groups_it_was_made_for() {
    use k8s_openapi::api::authentication::v1::SelfSubjectReview;
    let plane = ControlPlane::start(&binaries().await, Options::api_server_only()).await.unwrap();
    let client = plane.client_of("ann", &["dev", "ops"]).await.unwrap();
    let reviews: kube::Api<SelfSubjectReview> = kube::Api::all(client);
    let review =
        reviews.create(&kube::api::PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("ann"));
    assert_eq!(user.groups.unwrap(), ["dev", "ops", "system:authenticated"]);
    assert!(matches!(
        plane.kubeconfig_of("ann", &["a", "b", "c"]),
        Err(StartError::TooManyGroups { count: 3, .. })
    ));
}

#[tokio::test]
async fn a_program_that_fails_is_named_with_its_last_words() {
    let options = Options::default().flag(Program::ApiServer, "--no-such-flag");
    let error = ControlPlane::start(&binaries().await, options).await.unwrap_err().to_string();
    assert!(error.starts_with("kube-apiserver ended (exit status: 1)"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}

#[tokio::test]
async fn a_start_that_takes_too_long_says_what_it_waited_for() {
    let options = Options::default().ready_within(Duration::ZERO);
    let error = ControlPlane::start(&binaries().await, options).await.unwrap_err();
    assert!(matches!(&error, StartError::NotReady { waited_for, .. } if waited_for == "/readyz"), "{error}");
}

/// Needs `setpriv` of util-linux, which every Linux distribution installs.
#[tokio::test]
async fn a_killed_owner_leaves_no_process_and_the_next_start_removes_its_folder() {
    let binaries = binaries().await;
    let mut owner = Command::new(hold()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let folder = lines.next().unwrap().unwrap();
    let ids: Vec<u32> = lines.next().unwrap().unwrap().split(' ').map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() == 4 && ids.iter().copied().all(is_alive));

    owner.kill().unwrap();
    owner.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while ids.iter().copied().any(is_alive) {
        assert!(Instant::now() < deadline, "some of {ids:?} still run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(Path::new(&folder).exists());
    drop(ControlPlane::start(&binaries, Options::api_server_only()).await.unwrap());
    assert!(!Path::new(&folder).exists());
}

/// Cargo builds examples with the tests and puts them beside them.
fn hold() -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/hold")
}
