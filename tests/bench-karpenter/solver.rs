//! Karpenter's solver: built from its module by the machine's Go, with our file beside its benchmark, and run.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail};
use serde::Deserialize;

const MODULE: &str = "sigs.k8s.io/karpenter";
pub(crate) const VERSION: &str = "v1.14.1";
const BENCHMARK: &str = "pkg/controllers/provisioning/scheduling/scheduling_benchmark_test.go";
const PROGRAM: &str = "solver.test";
const FILES: [(&str, &str); 3] = [
    ("go.mod", include_str!("go.mod")),
    ("go.sum", include_str!("go.sum")),
    ("solve_test.go", include_str!("solve_test.go")),
];

/// The built solver, in a folder of the user's cache.
pub(crate) struct Solver {
    folder: PathBuf,
}

/// What its runs on one mix took, and its plan.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Solved {
    pub(crate) seconds: Vec<f64>,
    pub(crate) nodes: usize,
    pub(crate) micro_usd: u64,
    pub(crate) unscheduled: usize,
}

impl Solver {
    pub(crate) fn build() -> anyhow::Result<Self> {
        let folder = cache()?.join("scarpenter/bench-karpenter").join(VERSION);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        for (name, text) in FILES {
            fs::write(folder.join(name), text).with_context(|| format!("write {name}"))?;
        }
        let solver = Self { folder };
        let shipped = solver.module()?.join(BENCHMARK);
        let text = fs::read(&shipped).with_context(|| format!("read {}", shipped.display()))?;
        fs::write(solver.folder.join("scheduling_benchmark_test.go"), text)?;
        let build = ["test", "-c", "-vet=off", "-tags=test_performance", "-o", PROGRAM, "."];
        output(solver.go(&build))?;
        Ok(solver)
    }

    /// Where Go keeps the module; fetched if it is not there.
    fn module(&self) -> anyhow::Result<PathBuf> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Downloaded {
            dir: PathBuf,
        }
        let told = output(self.go(&["mod", "download", "-json", MODULE]))?;
        let told: Downloaded =
            serde_json::from_slice(&told.stdout).context("read what go mod download says")?;
        Ok(told.dir)
    }

    fn go(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(&self.folder).env("PWD", &self.folder);
        command.env("GOWORK", "off").env("GOFLAGS", "-mod=readonly -buildvcs=false");
        command
    }

    fn program(&self) -> Command {
        let mut command = Command::new(self.folder.join(PROGRAM));
        command.current_dir(&self.folder).env("SCARPENTER_BENCH_FOLDER", &self.folder);
        command.arg("-test.timeout=0");
        command
    }

    /// Pods a second by size of the mix, as the shipped benchmark itself tells them; sizes it does not have are left out.
    pub(crate) fn shipped(&self, sizes: &[usize]) -> anyhow::Result<BTreeMap<usize, f64>> {
        let names: Vec<String> = sizes.iter().map(usize::to_string).collect();
        let pattern = format!("-test.bench=^BenchmarkScheduling({})$", names.join("|"));
        let mut command = self.program();
        command.arg("-test.run=^$").arg(pattern);
        Ok(rates(&String::from_utf8_lossy(&output(command)?.stdout)))
    }

    /// Writes types and pods, and solves the mix so many times.
    pub(crate) fn solve(&self, pods: usize, runs: usize) -> anyhow::Result<Solved> {
        let mut command = self.program();
        command.arg("-test.run=^(TestExportTypes|TestSolve)$");
        command.env("SCARPENTER_BENCH_PODS", pods.to_string());
        command.env("SCARPENTER_BENCH_RUNS", runs.to_string());
        output(command)?;
        let path = self.folder.join(format!("solved-{pods}.json"));
        let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("read {}", path.display()))
    }

    pub(crate) fn types(&self) -> PathBuf {
        self.folder.join("types.json")
    }

    pub(crate) fn pods(&self, count: usize) -> PathBuf {
        self.folder.join(format!("pods-{count}.json"))
    }
}

fn cache() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(set("HOME")?.join(".cache")));
    cache.context("no cache folder: neither XDG_CACHE_HOME nor HOME is set")
}

/// Runs a command to its end.
fn output(mut command: Command) -> anyhow::Result<Output> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().display().to_string();
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "{program} is missing: Karpenter's benchmark is built with Go, so put Go {} or newer on the PATH (a package \
             of your system, or https://go.dev/dl)",
            minimum_go()
        ),
        other => other.with_context(|| format!("run {program}"))?,
    };
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n");
        bail!("{program} ended with {}, its last words were: {last}", output.status);
    }
    Ok(output)
}

fn minimum_go() -> &'static str {
    let line = FILES[0].1.lines().find_map(|line| line.strip_prefix("go "));
    line.expect("our go.mod has a go line").trim()
}

/// `BenchmarkScheduling1000-2  1  5431 ns/op  200 nodes  1000 pods  182.3 pods/sec` by the number in the name.
fn rates(text: &str) -> BTreeMap<usize, f64> {
    let rate = |line: &str| {
        let rest = line.strip_prefix("BenchmarkScheduling")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "pods/sec")?;
        Some((rest[..digits].parse().ok()?, words[at.checked_sub(1)?].parse().ok()?))
    };
    text.lines().filter_map(rate).collect()
}
