//! `scarpenter nodepool render` from outside: what it prints where, and how it ends.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn render(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_scarpenter"))
        .args(["nodepool", "render"])
        .args(arguments)
        // So that the built-in sample is read, whatever is stored on this machine.
        .env("XDG_DATA_HOME", home.path())
        .output()
        .unwrap()
}

/// An SCNodePool for Hetzner; `more` are further fields of its spec.
fn hcloud(folder: &TempDir, more: &str) -> PathBuf {
    let path = folder.path().join("in.yaml");
    let text = format!(
        "{{apiVersion: karpenter.sparecores.com/v1alpha1, kind: SCNodePool, metadata: {{name: small}}, spec: {{nodePoolTemplate: {{spec: {{template: {{spec: {{nodeClassRef: {{group: karpenter.hetzner.cloud, kind: HCloudNodeClass, name: x}}}}}}}}}}, location: {{regions: [fsn1]}}, {more}}}}}"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn types(nodepool: &Value) -> Vec<String> {
    let requirements = nodepool.pointer("/spec/template/spec/requirements").unwrap().as_array().unwrap();
    let list = requirements.iter().find(|line| line["key"] == "node.kubernetes.io/instance-type").unwrap();
    list["values"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

const EUR: [&str; 2] = ["--rate", "EUR=1.10"];

fn small(folder: &TempDir, more: &str, arguments: &[&str]) -> Output {
    let path = hcloud(folder, more);
    render(&[&["-f", path.to_str().unwrap()], EUR.as_slice(), arguments].concat())
}

#[test]
fn a_sound_one_gives_one_nodepool_and_the_same_bytes_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = small(&folder, "selector: {vcpus: {max: 4}}", &[]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let nodepool: Value = serde_saphyr::from_str(&text(&first.stdout)).unwrap();
    assert_eq!((&nodepool["kind"], &nodepool["metadata"]["name"]), (&"NodePool".into(), &"small".into()));
    assert!(types(&nodepool).contains(&"cax11".to_owned()), "{nodepool}");
    assert_eq!(small(&folder, "selector: {vcpus: {max: 4}}", &[]).stdout, first.stdout);
    let json = small(&folder, "selector: {vcpus: {max: 4}}", &["-o", "json"]);
    assert_eq!(serde_json::from_slice::<Value>(&json.stdout).unwrap(), nodepool);
}

#[test]
fn each_way_to_refuse_has_its_exit_code_and_one_sentence_and_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (more, code, words) in [
        (
            "selector: {vcpus: {min: 9, max: 8}}",
            2,
            "spec.selector.vcpus: its least may not be above its most",
        ),
        ("selector: {vcpus: {least: 9}}", 2, "unknown field `least`"),
        ("refresh: {interval: soon}", 2, "spec.refresh.interval: \"soon\" is not a duration"),
        ("selector: {vcpus: {min: 999}}", 3, "NoCandidates: small: none of"),
        (
            "selector: {benchmarks: [{id: nothing, min: 1}]}",
            4,
            "UnknownBenchmarkConfig: small: benchmark nothing",
        ),
    ] {
        let output = small(&folder, more, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more}: {said}");
        assert!(said.contains(words), "{more}: {said}");
        assert_eq!(text(&output.stdout), "", "{more}");
    }
    let output = small(&folder, "dryRun: true", &["--catalog", "/nowhere/c.sqlite"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
}

#[test]
fn of_many_those_that_are_sound_are_printed_and_the_first_refusal_is_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let good = std::fs::read_to_string(hcloud(&folder, "selector: {vcpus: {max: 4}}")).unwrap();
    let bad = std::fs::read_to_string(hcloud(&folder, "selector: {vcpus: {min: 999}}")).unwrap();
    let path = folder.path().join("many.yaml");
    std::fs::write(&path, format!("{good}\n---\n{bad}\n---\n{}", good.replace("small", "other"))).unwrap();
    let output = render(&["-f", path.to_str().unwrap(), EUR[0], EUR[1]]);
    assert_eq!(output.status.code(), Some(3));
    let nodepools: Vec<Value> = serde_saphyr::from_multiple(&text(&output.stdout)).unwrap();
    let names: Vec<_> =
        nodepools.iter().map(|nodepool| nodepool["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["small", "other"]);
}

#[test]
fn a_type_is_explained_with_every_rule_that_it_misses() {
    let folder = tempfile::tempdir().unwrap();
    let more = "selector: {vcpus: {max: 2}, memory: {maxGiB: 4}}";
    let output = small(&folder, more, &["--explain", "cx33"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("is out") && said.contains("vcpus: 4 vCPUs, at most 2 is wanted (misses by 100.0 %)"),
        "{said}"
    );
    assert!(said.contains("memory: "), "{said}");
    let unknown = small(&folder, more, &["--explain", "cx333"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stdout).contains("did you mean cx33?"), "{}", text(&unknown.stdout));
}

#[test]
fn with_the_nodepool_that_is_there_types_go_slowly_and_a_difference_is_exit_code_5() {
    let folder = tempfile::tempdir().unwrap();
    let current = folder.path().join("current.yaml");
    let before = small(&folder, "selector: {vcpus: {max: 4}}", &[]);
    std::fs::write(&current, &before.stdout).unwrap();
    let beside = ["--current", current.to_str().unwrap()];
    let same = small(&folder, "selector: {vcpus: {max: 4}}", &[&beside[..], &["--diff"]].concat());
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    let narrower = "selector: {vcpus: {max: 2}}";
    let held = small(&folder, narrower, &beside);
    let nodepool: Value = serde_saphyr::from_str(&text(&held.stdout)).unwrap();
    assert!(types(&nodepool).contains(&"cx33".to_owned()), "held until a second refresh: {nodepool}");
    let diff = small(&folder, narrower, &[&beside[..], &["--diff"]].concat());
    assert!(text(&diff.stdout).contains("~ cx33 is held after 1 refreshes"), "{}", text(&diff.stdout));
    let wider = small(&folder, "selector: {vcpus: {max: 8}}", &[&beside[..], &["--diff"]].concat());
    assert_eq!(wider.status.code(), Some(5));
    assert!(text(&wider.stdout).contains("+ cx43"), "{}", text(&wider.stdout));
    let other = text(&before.stdout).replace("HCloudNodeClass", "OtherNodeClass");
    std::fs::write(&current, other).unwrap();
    let refused = small(&folder, narrower, &beside);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("NodeClassRefImmutable"), "{}", text(&refused.stderr));
}

#[test]
fn the_report_says_what_is_pending_and_gives_it_back_in_the_next_refresh() {
    let folder = tempfile::tempdir().unwrap();
    let (current, report) = (folder.path().join("current.yaml"), folder.path().join("report.yaml"));
    let before = small(&folder, "selector: {vcpus: {max: 4}}", &[]);
    std::fs::write(&current, &before.stdout).unwrap();
    let narrower = "selector: {vcpus: {max: 2}}, churn: {maxRemovalsPerRefresh: 1000}";
    let arguments = ["--current", current.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let first = small(&folder, narrower, &arguments);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let status: Value = serde_saphyr::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(status["provider"], "hcloud");
    assert!(!status["pendingRemovals"].as_array().unwrap().is_empty(), "{status}");

    let path = hcloud(&folder, narrower);
    let mut object: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    object["status"] = status;
    std::fs::write(&path, object.to_string()).unwrap();
    let second = render(&["-f", path.to_str().unwrap(), EUR[0], EUR[1], arguments[0], arguments[1]]);
    let nodepool: Value = serde_saphyr::from_str(&text(&second.stdout)).unwrap();
    assert!(!types(&nodepool).contains(&"cx33".to_owned()), "{nodepool}");
}

#[test]
fn the_example_gives_the_families_that_the_documentation_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("SCARPENTER_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let catalog = shared.join("keeper/catalog.sqlite");
    if !catalog.exists() {
        eprintln!("NOT RUN: the example, since SCARPENTER_SHARED names no folder with keeper/catalog.sqlite");
        return;
    }
    let example = root.join("deploy/examples/scnodepool-fast-single-core.yaml");
    let output = render(&["-f", example.to_str().unwrap(), "--catalog", catalog.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let nodepool: Value = serde_saphyr::from_str(&text(&output.stdout)).unwrap();
    let mut families: Vec<String> =
        types(&nodepool).iter().map(|name| name.split_once('.').unwrap().0.to_owned()).collect();
    families.dedup();
    assert_eq!(families, ["c8a", "m8a", "m8azn", "r8a"]);
    let annotation = &nodepool["metadata"]["annotations"]["karpenter.sparecores.com/selection-hash"];
    assert!(annotation.as_str().unwrap().starts_with("302b0d719dd7"), "{annotation}");
}
