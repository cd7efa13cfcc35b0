#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::pin::pin;

use super::*;

/// A stand-in for Go: `$OUT` is where the program is to be.
fn build_with(script: &str) -> (TempDir, Build) {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let head = "#!/bin/sh\n[ \"$1\" = version ] && exit 0\nwhile [ \"$1\" != -o ]; do shift; done\nOUT=$2\n";
    fs::write(&go, format!("{head}{script}\n")).unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
    let build = Build { go, folder: folder.path().join("cache"), module: CONTROL_PLANE };
    (folder, build)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const ALL_BUILT: [&str; 6] =
    [".lock", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

#[test]
fn the_version_is_that_of_the_module() {
    for go_mod in [GO_MOD, KUBELET_GO_MOD] {
        assert!(go_mod.contains(&format!("k8s.io/kubernetes v{KUBERNETES_VERSION} ")));
    }
    assert_eq!(minimum_go(), "1.26.0");
}

#[tokio::test]
async fn programs_are_built_once_and_nothing_else_is_left() {
    let (_folder, build) = build_with("echo x >> \"$(dirname \"$0\")/calls\"; echo program > \"$OUT\"");
    let mut built = Vec::new();
    let binaries = build
        .run(|progress| {
            if let Progress::Built { program, number, of, .. } = progress {
                built.push((*program, *number, *of));
            }
        })
        .await
        .unwrap();
    assert_eq!(
        built,
        (1..).zip(Program::ALL).map(|(number, program)| (program, number, 5)).collect::<Vec<_>>()
    );
    assert_eq!(names(&build.folder), ALL_BUILT);
    assert_eq!(build.run(|_| panic!("nothing is left to build")).await.unwrap(), binaries);
    assert_eq!(fs::read_to_string(build.go.with_file_name("calls")).unwrap().lines().count(), 5);
}

#[tokio::test]
async fn the_kubelet_is_built_alone() {
    let (_folder, build) = build_with("echo program > \"$OUT\"");
    let build = Build { module: KUBELET, ..build };
    let binaries = build.run(|_| {}).await.unwrap();
    assert!(binaries.path(Program::Kubelet).is_file());
    assert_eq!(names(&build.folder), [".lock", "kubelet"]);
}

#[tokio::test]
async fn two_builds_at_once_build_each_program_once() {
    let (_folder, build) =
        build_with("echo x >> \"$(dirname \"$0\")/calls\"; sleep 0.1; echo program > \"$OUT\"");
    let (first, second) = tokio::join!(build.run(|_| {}), build.run(|_| {}));
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(fs::read_to_string(build.go.with_file_name("calls")).unwrap().lines().count(), 5);
    assert_eq!(names(&build.folder), ALL_BUILT);
}

#[tokio::test]
async fn a_failed_build_quotes_the_end_of_its_output_and_leaves_nothing() {
    let (_folder, build) = build_with("echo 'proxy: connection refused' >&2; exit 1");
    let error = build.run(|_| {}).await.unwrap_err().to_string();
    assert!(error.starts_with("etcd could not be built with `go build` (exit status: 1)"), "{error}");
    assert!(error.ends_with("proxy: connection refused"), "{error}");
    assert_eq!(names(&build.folder), [".lock"]);
}

#[tokio::test]
async fn a_missing_go_is_one_sentence_that_says_what_to_do() {
    let (_folder, mut build) = build_with("");
    build.go = build.folder.join("no-go-here");
    let error = build.run(|_| {}).await.unwrap_err().to_string();
    assert!(error.contains("put Go 1.26.0 or newer on the PATH"), "{error}");
}

#[tokio::test]
async fn dropping_the_build_ends_its_processes_and_leaves_nothing() {
    let (_folder, build) = build_with("sleep 1000 & echo $! > \"$(dirname \"$0\")/pid\"; wait");
    let pid_file = build.go.with_file_name("pid");
    {
        let running = pin!(build.run(|_| {}));
        let written = async {
            while fs::read_to_string(&pid_file).unwrap_or_default().trim().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            outcome = running => panic!("ended by itself: {outcome:?}"),
            () = written => {}
        }
    }
    assert_eq!(names(&build.folder), [".lock"]);
    let pid = fs::read_to_string(&pid_file)
        .unwrap()
        .trim()
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while rustix::process::test_kill_process(pid).is_ok() {
        assert!(Instant::now() < deadline, "the compiler still runs");
        tokio::task::yield_now().await;
    }
}
