//! What files there are and what is in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LONGEST: usize = 600;

const TOP: [&str; 12] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "ROADMAP.md",
    "crates",
    "deploy",
    "ignition",
    "proto",
    "providers",
    "rust-toolchain.toml",
    "tests",
];

const VENDORS: [&str; 8] = ["aws", "gcp", "azure", "alicloud", "hcloud", "ovh", "upcloud", "vultr"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the workspace").to_owned()
}

/// All committed files, or `None`, said aloud, where this is no clone.
fn files() -> Option<Vec<String>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let listed = output.ok().filter(|output| output.status.success() && !output.stdout.is_empty());
    let Some(listed) = listed else {
        eprintln!("workspace: not a git clone, so the rules for files were not checked");
        return None;
    };
    let text = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    let there = |path: &&str| !path.is_empty() && root().join(path).exists();
    Some(text.split('\0').filter(there).map(str::to_owned).collect())
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn is_generated(path: &str) -> bool {
    path.contains("/src/pb/")
}

/// A source without the unit tests at its end.
fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]")
        .map_or(text, |at| if text[at..].contains("mod tests {") { &text[..at] } else { text })
}

#[test]
fn at_the_top_stand_exactly_the_agreed_names() {
    let Some(files) = files() else { return };
    let top = files.iter().map(|path| path.split('/').next().unwrap_or(path));
    let seen: BTreeSet<_> = top.filter(|name| !name.starts_with('.')).collect();
    assert_eq!(seen, TOP.into_iter().collect());
}

#[test]
fn no_test_is_switched_off() {
    let Some(files) = files() else { return };
    let mark = format!("#[{}", "ignore");
    let off: Vec<_> =
        files.iter().filter(|path| path.ends_with(".rs")).filter(|path| read(path).contains(&mark)).collect();
    assert!(off.is_empty(), "{off:?}");
}

#[test]
fn no_file_is_too_long_to_read() {
    let Some(files) = files() else { return };
    let written = |path: &&String| [".rs", ".proto", ".md", ".sh"].iter().any(|end| path.ends_with(end));
    let mut long = Vec::new();
    for path in files.iter().filter(written).filter(|path| !is_test(path) && !is_generated(path)) {
        let lines = without_tests(&read(path)).lines().count();
        if lines > LONGEST {
            long.push(format!("{path}: {lines} lines"));
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

/// Lines of code in the sources of some crates, with their places; comments and unit tests left out.
fn code(files: &[String], folders: &[&str]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for path in files {
        let inside = folders.iter().any(|folder| path.starts_with(folder));
        if !inside || !path.ends_with(".rs") || is_test(path) {
            continue;
        }
        for (number, line) in without_tests(&read(path)).lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line).trim();
            lines.push((format!("{path}:{}", number + 1), code.to_owned()));
        }
    }
    lines
}

#[test]
fn planner_and_contract_name_no_vendor() {
    let Some(files) = files() else { return };
    let mut lines = code(&files, &["crates/planner/src/", "crates/provider/src/"]);
    assert!(lines.len() > 500, "the sources are read");
    lines.retain(|(_, line)| {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
        words.into_iter().any(|word| VENDORS.contains(&word.as_str()))
    });
    assert!(lines.is_empty(), "{lines:#?}");
}

#[test]
fn what_must_be_pure_has_no_await_no_client_no_clock_and_no_environment() {
    let Some(files) = files() else { return };
    let awaited = [".await", "async fn", "kube::Client", "env::var", "SystemTime::now", "Timestamp::now"];
    let pure = ["crates/core/src/", "crates/planner/src/", "crates/index/src/", "crates/api/src/"];
    let mut lines = code(&files, &pure);
    assert!(lines.len() > 1000, "the sources are read");
    lines.retain(|(_, line)| awaited.iter().any(|word| line.contains(word)));
    assert!(lines.is_empty(), "{lines:#?}");
}

#[test]
fn the_ends_of_files_are_told_from_their_tests() {
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\n}"), "a");
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests;\n"), "a\n#[cfg(test)]\nmod tests;\n");
    assert!(is_test("crates/core/src/lifecycle/tests.rs") && is_generated("crates/provider/src/pb/mod.rs"));
}
