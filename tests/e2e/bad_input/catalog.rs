//! `plan` with a catalog that is none.

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, ensure};
use scarpenter_playground::ControlPlane;

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers: [{name: main, image: none}]
";

pub(super) async fn play(_: Arc<ControlPlane>) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str, bytes: &[u8]| -> anyhow::Result<String> {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes)?;
        Ok(path.display().to_string())
    };
    let pods = file("pods.yaml", POD.as_bytes())?;
    let mut truncated = b"SQLite format 3\0".to_vec();
    truncated.extend([0x10, 0, 1, 1, 0, 64, 32, 32]);
    for (what, catalog) in [
        ("missing", folder.path().join("nothing").display().to_string()),
        ("empty", file("empty", b"")?),
        ("truncated", file("truncated", &truncated)?),
        ("no database", file("text", b"vendor,instance_type\nhcloud,cx23\n")?),
        ("a folder", folder.path().display().to_string()),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scarpenter-on-trial"));
        let output =
            command.args(["plan", "-f", &pods, "--catalog", &catalog]).output().context("run plan")?;
        let said = String::from_utf8(output.stderr)?;
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("scarpenter: ")).collect();
        ensure!(output.status.code() == Some(2), "{what}: {:?}: {said}", output.status);
        ensure!(errors.len() == 1 && errors[0].contains(&catalog), "{what}: {said}");
        ensure!(output.stdout.is_empty(), "{what}: {:?}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}
