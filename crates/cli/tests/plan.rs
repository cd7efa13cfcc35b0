//! The command from outside: what it prints where, and how it ends.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn plan(pods: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scarpenter"))
        .args(["plan", "-f", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(pods.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn pod(name: &str, selector: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{nodeSelector: {{{selector}}}, containers: [{{name: a}}]}}\n"
    )
}

const EXACT: &str = "scarpenter.sparecores.com/vendor: hcloud, node.kubernetes.io/instance-type: ccx33";

#[test]
fn a_plan_for_every_pod_ends_with_0_and_the_notes_go_to_standard_error() {
    let output = plan(&pod("a", EXACT), &["-o", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["version"], 1);
    assert_eq!(document["claims"][0]["offering"]["vendor"], "hcloud");
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("built-in example"), "{notes}");
}

#[test]
fn yaml_says_the_same_as_json() {
    let pods = pod("a", EXACT) + &pod("b", "foo: bar");
    let json: serde_json::Value = serde_json::from_slice(&plan(&pods, &["-o", "json"]).stdout).unwrap();
    let yaml = String::from_utf8(plan(&pods, &["-o", "yaml"]).stdout).unwrap();
    assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap(), json);
}

#[test]
fn pods_without_a_machine_end_it_with_3() {
    let output = plan(&pod("a", "foo: bar"), &[]);
    assert_eq!(output.status.code(), Some(3));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("no machine (foo)"), "{table}");
}

fn scarpenter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scarpenter")).args(arguments).output().unwrap()
}

#[test]
fn the_help_says_what_it_is_for_and_the_exit_codes() {
    let help = |arguments| String::from_utf8(scarpenter(arguments).stdout).unwrap();
    assert!(help(&["--help"]).starts_with("Gives each pending pod "));
    assert!(help(&["plan", "--help"]).contains("3 when some do not"));
}

#[test]
fn an_endpoint_that_is_none_is_refused_before_anything_starts() {
    let output = scarpenter(&["controller", "--provider", "hcloud=foo"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("expected unix:///path or https://host:port"), "{error}");
}

#[test]
fn a_class_that_no_pool_names_ends_it_with_2_and_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let class = folder.path().join("class.yaml");
    let text = "{apiVersion: scarpenter.sparecores.com/v1alpha1, kind: ScarpenterNodeClass, metadata: {name: mine}, spec: {vendors: {aws: {}}}}";
    std::fs::write(&class, text).unwrap();
    let output = plan(&pod("a", EXACT), &["--nodeclass", class.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "scarpenter: no NodePool names ScarpenterNodeClass mine: give one that does by --nodepool\n"
    );
}

#[test]
fn bad_input_ends_it_with_2_and_one_sentence() {
    for (pods, arguments) in [
        ("not: a pod", &[][..]),
        (&pod("a", EXACT), &["--catalog", "/nowhere/catalog.sqlite"]),
        (&pod("a", EXACT), &["--nodepool", "/nowhere/pools.yaml"]),
        (&pod("a", EXACT), &["--rate", "EUR"]),
    ] {
        let output = plan(pods, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}
