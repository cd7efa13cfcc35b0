use clap::Parser;

use super::*;
use crate::plan::documents::Source;

const EXAMPLE: &str = include_str!("../../../../../deploy/examples/nodeclaim.yaml");

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// What is read from a file with `text`, and from further arguments.
fn inputs(text: &str, more: &[&str]) -> anyhow::Result<Inputs> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.yaml");
    std::fs::write(&file, text).unwrap();
    let mut arguments = vec!["render", "-f", file.to_str().unwrap()];
    arguments.extend(more);
    Inputs::read(&Command::try_parse_from(arguments).unwrap().args)
}

fn words(text: &str, more: &[&str]) -> String {
    match inputs(text, more) {
        Ok(_) => panic!("it was read"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn the_example_has_all_that_a_document_needs_but_a_ca() {
    let inputs = inputs(EXAMPLE, &[]).unwrap();
    assert_eq!(inputs.launch.offering.vendor.as_str(), "hcloud");
    assert_eq!((inputs.launch.arch, inputs.class.name_any().as_str()), (Arch::Amd64, "meshed"));
    assert!(inputs.surroundings.ignition.unwrap().contains("/etc/motd"));
    assert_eq!(inputs.notes.len(), 1, "{:?}", inputs.notes);
    assert!(inputs.notes[0].contains("kube-root-ca.crt"), "{:?}", inputs.notes);
}

#[test]
fn files_named_by_options_win_over_config_maps() {
    let folder = tempfile::tempdir().unwrap();
    let (extra, ca) = (folder.path().join("extra.json"), folder.path().join("ca.pem"));
    std::fs::write(&extra, "{}").unwrap();
    std::fs::write(&ca, "a certificate").unwrap();
    let (extra, ca) = (extra.to_str().unwrap(), ca.to_str().unwrap());
    let inputs = inputs(EXAMPLE, &["--extra", extra, "--ca-certificate", ca]).unwrap();
    assert_eq!(inputs.surroundings.ignition.as_deref(), Some("{}"));
    assert_eq!((inputs.surroundings.ca_pem.as_str(), inputs.notes.len()), ("a certificate", 0));
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let documents: Vec<&str> = EXAMPLE.split("\n---\n").collect();
    for (text, expected) in [
        (documents[1].to_owned(), "no file holds a NodeClaim: give one by -f"),
        (format!("{}\n---\n{EXAMPLE}", documents[0]), "the files hold 2 NodeClaims"),
        (documents[0].to_owned(), "no file holds ScarpenterNodeClass meshed: give it by --nodeclass"),
        (documents[..2].join("\n---\n"), "no file holds ConfigMap extra-ignition"),
        (EXAMPLE.replace("  ignition: |", "  a: b\n  c: |"), "has neither key ignition nor only one key"),
        (EXAMPLE.replace("  name: default-0a1b2c3d4e\n", ""), "no metadata.name"),
        (EXAMPLE.replace("kind: ScarpenterNodeClass, name", "kind: EC2NodeClass, name"), "nodeClassRef"),
        (EXAMPLE.replace("[amd64]", "[riscv64]"), "\"riscv64\": there are machines of amd64 and arm64"),
        (EXAMPLE.replace("karpenter.sh/v1\n", "karpenter.sh/v1beta1\n"), "karpenter.sh/v1 is wanted"),
    ] {
        let words = words(&text, &[]);
        assert!(words.contains(expected), "{expected:?} is not in {words:?}");
    }
    assert!(words(EXAMPLE, &["--extra", "/no/such/file"]).contains("read /no/such/file"));
}

#[test]
fn a_claim_that_is_bound_is_rendered_as_it_is_bound() {
    let bound = r#"  annotations:
    scarpenter.sparecores.com/launch: '{"vendor": "aws", "region": "us-west-2", "zone": null, "instanceType": "c8g.large",
      "capacityType": "on-demand", "arch": "arm64", "pricePerHourMicroUsd": 7, "capacity": {}, "allocatable": {},
      "labels": {"kubernetes.io/arch": "arm64"}}'
  labels:
"#;
    let text = EXAMPLE.replacen("  labels:\n", bound, 1);
    let inputs = inputs(&text, &[]).unwrap();
    assert_eq!((inputs.launch.offering.vendor.as_str(), inputs.launch.arch), ("aws", Arch::Arm64));
    let broken = EXAMPLE.replacen("  labels:\n", &bound.replace("arm64\", \"price", "no\", \"price"), 1);
    assert!(words(&broken, &[]).contains("annotation scarpenter.sparecores.com/launch"));
}

#[test]
fn a_source_may_be_the_standard_input() {
    let command = Command::try_parse_from(["render", "-f", "-"]).unwrap();
    assert!(matches!(command.args.filenames[..], [Source::StandardInput]));
}
