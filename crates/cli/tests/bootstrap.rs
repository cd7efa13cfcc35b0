//! `scarpenter bootstrap render` by its binary.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples/nodeclaim.yaml")
}

fn render(file: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scarpenter"));
    command.args(["bootstrap", "render", "-f"]).arg(file).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_example_is_printed_as_ignition_without_a_secret() {
    let output = render(&example(), &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["ignition"]["version"], "3.3.0");
    let files = document["storage"]["files"].as_array().unwrap();
    let source = |path: &str| {
        let file = files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("no {path}"));
        file["contents"]["source"].as_str().unwrap().to_owned()
    };
    assert_eq!(source("/etc/tailscale/auth-key"), "data:,%2A%2A%2A%2A%2A%2A%2A%2A");
    assert!(source("/etc/kubernetes/bootstrap-kubeconfig.json").contains(".%2A%2A%2A%2A%2A%2A%2A%2A%22"));
    assert_eq!(source("/etc/motd"), "data:,bought%20by%20scarpenter%0A");
    assert!(text(&output.stderr).contains("made-up CA"), "{}", text(&output.stderr));
}

#[test]
fn the_size_is_told_for_every_vendor() {
    let output = render(&example(), &["--size"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), 1 + 9, "{table}");
    let aws = table.lines().find(|line| line.starts_with("aws ")).unwrap();
    assert!(aws.contains(" 16384 ") && aws.ends_with(" left"), "{table}");
}

#[test]
fn a_document_that_a_vendor_of_the_class_does_not_take_ends_with_three() {
    let folder = tempfile::tempdir().unwrap();
    let extra = folder.path().join("extra.json");
    // What does not pack: the digits of a long product.
    let mut number = 1_u64;
    let digits: String = (0..2000)
        .map(|_| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{number:016x}")
        })
        .collect();
    let file = serde_json::json!({"path": "/etc/large", "contents": {"source": format!("data:,{digits}")}});
    let document = serde_json::json!({"ignition": {"version": "3.3.0"}, "storage": {"files": [file]}});
    std::fs::write(&extra, document.to_string()).unwrap();
    let output = render(&example(), &["--size", "--extra", extra.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("too many"));
}

#[test]
fn bad_input_ends_with_two_and_one_sentence_that_names_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, contents: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    };
    let good = std::fs::read_to_string(example()).unwrap();
    for (name, contents, expected) in [
        (
            "version",
            good.replace("3.3.0", "3.4.0"),
            "its ignition.version is \"3.4.0\": 3.0.0 to 3.3.0 are read",
        ),
        ("json", good.replace("\"ignition\": {\"version\": \"3.3.0\"},", "variant: flatcar"), "is not JSON"),
        (
            "conflict",
            good.replace("/etc/motd", "/etc/hostname"),
            "storage.files.0 /etc/hostname is in conflict with storage.files.0 /etc/hostname of scarpenter's own document",
        ),
        (
            "http",
            good.replace("    clusterDNS", "    sysextBaseURL: http://mirror.example.com\n    clusterDNS"),
            "join.sysextBaseURL http://mirror.example.com is not https, so join.sysextHashes must name \
             kubernetes-v1.37.2-x86-64.raw",
        ),
        (
            "range",
            good.replace("192.0.2.0/24", "192.0.2.0/99"),
            "join.firewall.allowFrom entry \"192.0.2.0/99\" is not an address or a range",
        ),
    ] {
        let output = render(&write(name, contents), &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(output.stdout.is_empty() && said.contains(expected), "{name}: {said}");
    }
}
