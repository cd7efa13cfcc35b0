//! Runs the real Ignition on a folder, and lists what it made.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use scarpenter_core::name::sha256_hex;
use serde_json::{Value, json};

/// What a root has before Ignition comes, below `etc`: useradd and the labelling of SELinux look for it.
const BEFORE: [(&str, &str); 4] = [
    ("passwd", "root:x:0:0::/root:/bin/sh\n"),
    ("group", "root:x:0:\n"),
    ("shadow", ""),
    ("selinux/config", "SELINUXTYPE=none\n"),
];
/// They hold the time, or are what tools leave behind.
const LEFT_OUT: [&str; 6] = [
    "/etc/.ignition-result.json",
    "/etc/.pwd.lock",
    "/etc/group-",
    "/etc/passwd-",
    "/etc/shadow",
    "/etc/shadow-",
];

/// Applies `config` to the folder `root` in `at`, and returns the configuration as Ignition understood it.
pub(crate) fn run(ignition: &Path, config: &[u8], at: &Path, stages: &[&str]) -> Value {
    let root = at.join("root");
    std::fs::create_dir_all(root.join("etc/selinux")).unwrap();
    for (name, contents) in BEFORE {
        std::fs::write(root.join("etc").join(name), contents).unwrap();
    }
    // Ignition sets SELinux labels even where there are none.
    let programs = at.join("bin");
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::write(programs.join("setfiles"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(programs.join("setfiles"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let file = at.join("config.ign");
    std::fs::write(&file, config).unwrap();
    for stage in stages {
        let output = Command::new(ignition)
            .arg(format!("-root={}", root.display()))
            .arg("-platform=file")
            .arg(format!("-stage={stage}"))
            .arg(format!("-config-cache={}", at.join("cache.json").display()))
            .arg(format!("-neednet={}", at.join("neednet").display()))
            .arg(format!("-state-file={}", at.join("state").display()))
            .arg("-log-to-stdout")
            .env("IGNITION_CONFIG_FILE", &file)
            .env("PATH", &path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "stage {stage}: {said}");
    }
    serde_json::from_slice(&std::fs::read(at.join("cache.json")).unwrap()).unwrap()
}

/// The same document with the images that are fetched replaced by a few bytes of its own.
pub(crate) fn with_images_inside(mut config: Value) -> Value {
    for file in config["storage"]["files"].as_array_mut().unwrap() {
        let source = file["contents"]["source"].as_str().unwrap_or_default().to_owned();
        if source.starts_with("https://") || source.starts_with("http://") {
            let name = source.rsplit('/').next().unwrap();
            file["contents"] = json!({"source": format!("data:,{name}")});
        }
    }
    config
}

/// Ignition writes out what is empty; a document does not.
pub(crate) fn without_empty(value: &Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), without_empty(value)));
            Value::Object(fields.filter(|(_, value)| !empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

/// A line for everything below `root`: mode, path, and what it holds, short texts as they are.
pub(crate) fn listing(root: &Path) -> String {
    let mut out = String::new();
    list(root, root, &mut out);
    out
}

fn list(root: &Path, folder: &Path, out: &mut String) {
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let shown = Path::new("/").join(path.strip_prefix(root).unwrap());
        if LEFT_OUT.iter().any(|left_out| shown == Path::new(left_out)) {
            continue;
        }
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        let holds = if metadata.is_symlink() {
            format!("-> {}", path.read_link().unwrap().display())
        } else if metadata.is_dir() {
            "folder".to_owned()
        } else {
            contents(&sorted_presets(std::fs::read(&path).unwrap(), &path))
        };
        writeln!(out, "{mode:04o} {} {holds}", shown.display()).unwrap();
        if metadata.is_dir() {
            list(root, &path, out);
        }
    }
}

/// Ignition writes presets in an order that differs from run to run.
fn sorted_presets(bytes: Vec<u8>, path: &Path) -> Vec<u8> {
    if path.extension().is_none_or(|extension| extension != "preset") {
        return bytes;
    }
    let text = String::from_utf8(bytes).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    (lines.join("\n") + "\n").into_bytes()
}

fn contents(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= 120 => format!("{text:?}"),
        _ => format!("sha256 {}", sha256_hex(bytes)),
    }
}
