//! What is said of a demo that is left running, and the script that ends it.

use std::path::{Path, PathBuf};

/// Name of the script, in the demo's folder.
const SCRIPT: &str = "end.sh";

/// All that goes on running.
pub(super) struct Left {
    pub(super) folder: PathBuf,
    pub(super) kubeconfig: PathBuf,
    /// That of the demo's own control plane.
    pub(super) kubectl: Option<PathBuf>,
    /// In the order in which they are to end.
    pub(super) processes: Vec<u32>,
    /// What has to go first, in somebody's cluster.
    pub(super) objects: Vec<String>,
}

impl Left {
    /// Writes the script, and says how all of it is used and ended; the last line is the command that ends it.
    pub(super) fn settle(&self) -> std::io::Result<Vec<String>> {
        let script = self.folder.join(SCRIPT);
        std::fs::write(&script, self.script())?;
        let kubectl = self.kubectl.as_deref().map_or_else(|| "kubectl".to_owned(), quoted);
        let folder = self.folder.display();
        let mut lines = vec![
            String::new(),
            "it is left running; to look around:".to_owned(),
            format!("export KUBECONFIG={}", quoted(&self.kubeconfig)),
            format!("{kubectl} get pods,nodeclaims,nodes -A -o wide"),
            format!("logs: controller.log, sim.log and logs/ in {folder}"),
            format!(
                "a pod of yours ends after as many seconds as its annotation {} says,",
                super::pods::RUN_SECONDS
            ),
            "without it never: what it would run is not run".to_owned(),
        ];
        if !self.objects.is_empty() {
            let objects = self.objects.join(", ");
            lines.push(format!("to end it, first delete these, pods and pools before the rest, and wait for their machines: {objects}"));
        }
        lines.push("to end all of it and remove its folder:".to_owned());
        lines.push(format!("sh {}", quoted(&script)));
        Ok(lines)
    }

    /// Asks one process after the other to end and kills it after ten seconds; one that has got the id of ours since is not
    /// touched.
    fn script(&self) -> String {
        let ids: Vec<String> = self.processes.iter().map(u32::to_string).collect();
        format!(
            r#"# Ends what `scarpenter demo --keep` left running, and removes this folder.
folder={folder}
real=$(cd "$folder" && pwd -P) || exit
ours() {{
  grep -qsF -- "$folder" "/proc/$1/cmdline" && return
  case "$(readlink "/proc/$1/cwd")" in "$real" | "$real"/*) return 0 ;; *) return 1 ;; esac
}}
for id in {ids}; do
  ours "$id" && kill "$id"
  tries=0
  while ours "$id" && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  ours "$id" && kill -9 "$id"
done
rm -rf "$folder"
"#,
            folder = quoted(&self.folder),
            ids = ids.join(" "),
        )
    }
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_last_line_ends_only_what_is_its_own_and_removes_the_folder() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("it's here");
        std::fs::create_dir(&folder).unwrap();
        let sleep = |place: &Path| Command::new("sleep").arg("1000").current_dir(place).spawn().unwrap();
        let (mut own, mut other) = (sleep(&folder), sleep(temporary.path()));
        let left = Left {
            folder: folder.clone(),
            kubeconfig: folder.join("admin.kubeconfig"),
            kubectl: None,
            processes: vec![own.id(), other.id()],
            objects: Vec::new(),
        };
        let lines = left.settle().unwrap();
        assert!(Command::new("sh").args(["-c", lines.last().unwrap()]).status().unwrap().success());
        assert!(!folder.exists());
        assert!(!own.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
