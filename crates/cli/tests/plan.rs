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
