//! Documents, one file in and one file out, and what the real Ignition makes of them.
//!
//! `UPDATE_GOLDEN=1 cargo test -p scarpenter-bootstrap` accepts a change.
#![allow(clippy::unwrap_used)]

mod cases;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use cases::{cases, folder, is_root, join_of, program};
use scarpenter_bootstrap::{Document, render};
use serde_json::Value;

fn rendered(case: &str) -> Document {
    render(&join_of(case)).unwrap()
}

fn inner(document: &Document) -> Value {
    serde_json::from_str(document.inner()).unwrap()
}

fn compare(path: &Path, made: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, made).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(made, golden, "{} differs; UPDATE_GOLDEN=1 accepts it", path.display());
}

/// A folder that goes with the test, however it ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("scarpenter-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn documents_are_as_the_golden_files_say() {
    for case in cases() {
        let pretty = serde_json::to_string_pretty(&inner(&rendered(&case))).unwrap() + "\n";
        compare(&folder().join(format!("{case}.out.json")), &pretty);
    }
}

#[test]
fn the_real_ignition_validate_has_nothing_to_say() {
    let Some(validate) = program("ignition-validate") else { return };
    let temporary = Temporary::new("validate");
    let file = temporary.0.join("config.ign");
    let run = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let output = Command::new(&validate).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said.into_owned())
    };
    for case in cases() {
        let document = rendered(&case);
        for (part, bytes) in [("outer", document.bytes()), ("inner", document.inner().as_bytes())] {
            assert_eq!(run(bytes), (true, String::new()), "{case} {part}");
        }
    }
    let refused = br#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"relative"}]}}"#;
    assert!(!run(refused).0, "the validator accepts anything");
}

#[test]
fn the_real_ignition_makes_of_every_document_the_tree_that_is_listed() {
    let Some(ignition) = program("ignition") else { return };
    if !is_root() {
        eprintln!("not run: ignition sets owners, which only root may");
        return;
    }
    for case in cases() {
        let document = rendered(&case);
        let temporary = Temporary::new(&format!("apply-{case}"));
        let outer = temporary.0.join("outer");
        let unpacked = tree::run(&ignition, document.bytes(), &outer, &["fetch-offline"]);
        for part in ["storage", "systemd", "passwd"] {
            let same = tree::without_empty(&unpacked)[part] == tree::without_empty(&inner(&document))[part];
            assert!(same, "{case}: Ignition reads another {part} out of the outer document");
        }
        let root = temporary.0.join("inner");
        // Only what is fetched from elsewhere is replaced; all else is applied as it is.
        let offline = tree::with_images_inside(inner(&document)).to_string();
        tree::run(&ignition, offline.as_bytes(), &root, &["fetch-offline", "files"]);
        compare(&folder().join(format!("{case}.tree.txt")), &tree::listing(&root.join("root")));
    }
}

#[test]
fn systemd_knows_every_setting_of_every_unit() {
    let Some(analyze) = program("systemd-analyze") else { return };
    let temporary = Temporary::new("units");
    for case in cases() {
        let folder = temporary.0.join(&case);
        let mut names = Vec::new();
        for unit in inner(&rendered(&case))["systemd"]["units"].as_array().unwrap() {
            let name = unit["name"].as_str().unwrap();
            let dropins = folder.join(format!("{name}.d"));
            std::fs::create_dir_all(&dropins).unwrap();
            for dropin in unit["dropins"].as_array().into_iter().flatten() {
                let path = dropins.join(dropin["name"].as_str().unwrap());
                std::fs::write(path, dropin["contents"].as_str().unwrap()).unwrap();
            }
            if let Some(contents) = unit["contents"].as_str() {
                std::fs::write(folder.join(name), contents).unwrap();
                names.push(name.to_owned());
            }
        }
        let output = Command::new(&analyze)
            .args(["verify", "--man=no"])
            .args(names.iter().map(|name| folder.join(name)))
            .env("SYSTEMD_UNIT_PATH", format!("{}:", folder.display()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // The machine's programs, and containerd's own unit, are not here.
        let about_us = |line: &&str| line.contains("scarpenter") || line.contains(folder.to_str().unwrap());
        let absent = |line: &&str| line.contains("is not executable") || line.contains("containerd.service");
        let complaints: Vec<&str> = said.lines().filter(about_us).filter(|line| !absent(line)).collect();
        assert!(complaints.is_empty(), "{case}: {complaints:#?}");
    }
    let wrong = temporary.0.join("wrong.service");
    std::fs::write(&wrong, "[Service]\nExecStart=/bin/true\nRestrat=always\n").unwrap();
    let output = Command::new(&analyze).args(["verify", "--man=no"]).arg(&wrong).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("Restrat"), "it finds nothing in anything");
}

#[test]
fn a_base_document_is_small_and_every_variant_fits_the_tightest_vendor() {
    let base = rendered("minimal");
    let (rendered_size, sent) = (base.inner().len(), base.bytes().len());
    assert!(rendered_size <= 8 << 10, "base document: {rendered_size} bytes rendered");
    assert!(sent <= 6 << 10, "base document: {sent} bytes sent");
    for case in cases() {
        let document = rendered(&case);
        let sent = document.bytes().len();
        println!("{case}: {} bytes rendered, {sent} sent", document.inner().len());
        // AWS takes 16 KiB: a class's own Ignition and a larger CA have room.
        assert!(sent <= 9 << 10, "{case}: {sent} bytes sent");
    }
}

#[test]
fn equal_input_gives_equal_bytes() {
    for case in cases() {
        let (one, two) = (rendered(&case), rendered(&case));
        assert_eq!(one.bytes(), two.bytes());
        assert_eq!(one.sha256(), scarpenter_core::name::sha256_hex(two.bytes()));
    }
    assert_ne!(rendered("everything").sha256(), rendered("minimal").sha256());
}
