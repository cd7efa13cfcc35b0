//! The programs of the control plane, built once by the machine's own Go and kept in the user's cache folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::process::{Lifetime, Process, ProcessError};
use crate::program::Program;

/// The Kubernetes version that is built.
pub const KUBERNETES_VERSION: &str = "1.37.2";

const GO_MOD: &str = include_str!("../controlplane/go.mod");
const GO_SUM: &str = include_str!("../controlplane/go.sum");
/// A module of its own, so that it changes nothing about those that are built already.
const KUBELET_GO_MOD: &str = include_str!("../kubelet/go.mod");
const KUBELET_GO_SUM: &str = include_str!("../kubelet/go.sum");
const READY_PROGRAMS: &str = "SCARPENTER_CONTROLPLANE_BIN";
const UNFINISHED: &str = ".build-";
const LOOK_EVERY: Duration = Duration::from_millis(200);
const GO_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Why the programs are not there.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No Go on the `PATH`.
    #[error(
        "Go is missing: the throw-away control plane is built with it, so put Go {minimum} or newer on the PATH \
         (a package of your system, or https://go.dev/dl)"
    )]
    NoGo {
        /// The oldest version that builds it.
        minimum: &'static str,
    },
    /// `go build` failed.
    #[error("{program} could not be built with {go}, its last words were: {output}")]
    Failed {
        /// What was being built.
        program: Program,
        /// The command that failed.
        go: String,
        /// The end of its output.
        output: String,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where to keep the programs.
    #[error("no cache folder: neither XDG_CACHE_HOME nor HOME is set")]
    NoCacheFolder,
    /// `SCARPENTER_CONTROLPLANE_BIN` names a folder that lacks a program.
    #[error("{READY_PROGRAMS} names {}, where {program} is missing", folder.display())]
    NotReady {
        /// The folder.
        folder: PathBuf,
        /// The first one missing.
        program: Program,
    },
    /// The cache folder could not be written.
    #[error("write the cache folder {}", folder.display())]
    WriteCache {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Go could not be started.
    #[error("run go build")]
    RunGo(#[source] ProcessError),
}

/// What the build is doing; told about five times a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process builds the same programs.
    Waiting {
        /// For how long so far.
        elapsed: Duration,
    },
    /// A program is being built.
    Building {
        /// Which.
        program: Program,
        /// Its number, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// For how long so far.
        elapsed: Duration,
        /// What Go said last, if anything: the package that it began, or `go: downloading …`.
        latest: Option<String>,
    },
    /// A program is there.
    Built {
        /// Which.
        program: Program,
        /// Its number, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// How long it took.
        elapsed: Duration,
    },
}

/// The folder that holds all programs of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Finds the programs, and builds those that are missing (minutes, the first time).
    ///
    /// They are kept in `$XDG_CACHE_HOME` or `~/.cache`, under a key of everything that makes them what they are, so
    /// that a change of version builds anew. Two processes at once build them once. Dropping the future ends the
    /// build with all its processes and removes what is unfinished; what is finished stays for the next time.
    /// `SCARPENTER_CONTROLPLANE_BIN` may name a folder of ready programs instead.
    ///
    /// # Errors
    /// Each is one sentence for the user: no Go, a failed build with the end of its output, a folder that cannot be
    /// written.
    pub async fn ensure(progress: impl FnMut(&Progress)) -> Result<Self, BuildError> {
        match std::env::var_os(READY_PROGRAMS) {
            Some(folder) => Self::ready(folder.into(), &Program::ALL),
            None => Build::for_user()?.run(progress).await,
        }
    }

    /// Finds the kubelet for machines, and builds it when it is missing: two or three minutes after the others.
    ///
    /// # Errors
    /// As [`ensure`](Self::ensure).
    pub async fn kubelet(progress: impl FnMut(&Progress)) -> Result<PathBuf, BuildError> {
        let of = [Program::Kubelet];
        let binaries = match std::env::var_os(READY_PROGRAMS) {
            Some(folder) => Self::ready(folder.into(), &of)?,
            None => Build::kubelet_for_user()?.run(progress).await?,
        };
        Ok(binaries.path(Program::Kubelet))
    }

    /// Path of a program.
    #[must_use]
    pub fn path(&self, program: Program) -> PathBuf {
        self.folder.join(program.name())
    }

    /// The folder, for a `PATH`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn ready(folder: PathBuf, programs: &[Program]) -> Result<Self, BuildError> {
        match programs.iter().copied().find(|program| !folder.join(program.name()).is_file()) {
            Some(program) => Err(BuildError::NotReady { folder, program }),
            None => Ok(Self { folder }),
        }
    }
}

/// One build: with which Go, into which folder.
struct Build {
    go: PathBuf,
    folder: PathBuf,
    module: Module,
}

/// What is built of which Go module.
#[derive(Clone, Copy)]
struct Module {
    programs: &'static [Program],
    go_mod: &'static str,
    go_sum: &'static str,
}

const CONTROL_PLANE: Module = Module { programs: &Program::ALL, go_mod: GO_MOD, go_sum: GO_SUM };
const KUBELET: Module =
    Module { programs: &[Program::Kubelet], go_mod: KUBELET_GO_MOD, go_sum: KUBELET_GO_SUM };

impl Build {
    fn for_user() -> Result<Self, BuildError> {
        Self::of("controlplane", CONTROL_PLANE)
    }

    fn kubelet_for_user() -> Result<Self, BuildError> {
        Self::of("kubelet", KUBELET)
    }

    fn of(name: &str, module: Module) -> Result<Self, BuildError> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let cache = cache.or_else(|| Some(set("HOME")?.join(".cache"))).ok_or(BuildError::NoCacheFolder)?;
        Ok(Self { go: "go".into(), folder: cache.join("scarpenter").join(name).join(key(module)), module })
    }

    async fn run(&self, mut progress: impl FnMut(&Progress)) -> Result<Binaries, BuildError> {
        if let Ok(binaries) = Binaries::ready(self.folder.clone(), self.module.programs) {
            return Ok(binaries);
        }
        self.find_go()?;
        fs::create_dir_all(&self.folder).map_err(|source| self.write_cache(source))?;
        let _lock = self.lock(&mut progress).await?;
        self.remove_unfinished();
        let of = self.module.programs.len();
        for (number, program) in (1..).zip(self.module.programs.iter().copied()) {
            let started = Instant::now();
            if !self.folder.join(program.name()).is_file() {
                self.build(program, |elapsed, latest| {
                    progress(&Progress::Building { program, number, of, elapsed, latest });
                })
                .await?;
                progress(&Progress::Built { program, number, of, elapsed: started.elapsed() });
            }
        }
        Binaries::ready(self.folder.clone(), self.module.programs)
    }

    fn find_go(&self) -> Result<(), BuildError> {
        match Command::new(&self.go).arg("version").output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(BuildError::NoGo { minimum: minimum_go() })
            }
            // Anything else shows in the build, with Go's own words.
            _ => Ok(()),
        }
    }

    /// Waits until no other process builds; the lock ends with the file, or with this process.
    async fn lock(&self, mut progress: impl FnMut(&Progress)) -> Result<File, BuildError> {
        let started = Instant::now();
        let file = File::create(self.folder.join(".lock")).map_err(|source| self.write_cache(source))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => progress(&Progress::Waiting { elapsed: started.elapsed() }),
                Err(TryLockError::Error(source)) => return Err(self.write_cache(source)),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What a killed build left; nobody else builds while we hold the lock.
    fn remove_unfinished(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_dir_all(entry.path()).ok();
            }
        }
    }

    async fn build(
        &self,
        program: Program,
        mut progress: impl FnMut(Duration, Option<String>),
    ) -> Result<(), BuildError> {
        let module = self.write_module().map_err(|source| self.write_cache(source))?;
        let log = module.path().join("go.log");
        let command = self.command(program, module.path());
        let started = Instant::now();
        let go = Process::spawn("go build", &command, &log, Lifetime::Tied).map_err(BuildError::RunGo)?;
        let go = GoBuild(go);
        let status = loop {
            match go.0.exited() {
                Some(status) => break status,
                None => progress(started.elapsed(), Some(go.0.log_tail(1)).filter(|line| !line.is_empty())),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        if !status.success() {
            let output = complaints(&go.0.log_tail(usize::MAX));
            return Err(BuildError::Failed { program, go: format!("`go build` ({status})"), output });
        }
        drop(go);
        let (made, kept) = (module.path().join(program.name()), self.folder.join(program.name()));
        fs::rename(made, kept).map_err(|source| self.write_cache(source))
    }

    /// Beside the finished programs, so that the finished one only needs a rename.
    fn write_module(&self) -> io::Result<TempDir> {
        let module = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder)?;
        fs::write(module.path().join("go.mod"), self.module.go_mod)?;
        fs::write(module.path().join("go.sum"), self.module.go_sum)?;
        fs::create_dir(module.path().join("tmp"))?;
        Ok(module)
    }

    fn command(&self, program: Program, module: &Path) -> Command {
        let mut command = Command::new(&self.go);
        // `-v` names each package when it is begun, so that the progress moves.
        command
            .arg("build")
            .arg("-v")
            .args(flags())
            .arg("-o")
            .arg(module.join(program.name()))
            .arg(program.package());
        command.current_dir(module).env("PWD", module).env("GOTMPDIR", module.join("tmp"));
        command.envs(ENVIRONMENT).env_remove("GOOS").env_remove("GOARCH");
        command
    }

    fn write_cache(&self, source: io::Error) -> BuildError {
        BuildError::WriteCache { folder: self.folder.clone(), source }
    }
}

/// A running `go build`: asked to end before it is killed, so that Go can tidy up its own caches.
struct GoBuild(Process);

impl Drop for GoBuild {
    fn drop(&mut self) {
        self.0.interrupt_group();
        self.0.wait_blocking(GO_ENDS_WITHIN);
    }
}

const ENVIRONMENT: [(&str, &str); 3] =
    [("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "-mod=readonly")];

/// Without the version the API server reports v0.0.0.
/// The last of what Go complains of: everything but the bare names of packages.
fn complaints(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| line.contains([' ', ':'])).collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

fn flags() -> Vec<String> {
    let mut parts = KUBERNETES_VERSION.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let set = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
    let linker = [
        "-s -w".to_owned(),
        set("gitVersion", &format!("v{KUBERNETES_VERSION}")),
        set("gitMajor", major),
        set("gitMinor", minor),
    ];
    vec!["-trimpath".to_owned(), "-ldflags".to_owned(), linker.join(" ")]
}

fn key(module: Module) -> String {
    let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let environment = ENVIRONMENT.map(|(name, value)| format!("{name}={value}")).join(" ");
    let parts = [module.go_mod, module.go_sum, &flags().join(" "), &environment, &platform];
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let digest: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("v{KUBERNETES_VERSION}-{digest}")
}

fn minimum_go() -> &'static str {
    let line = GO_MOD.lines().find_map(|line| line.strip_prefix("go "));
    line.expect("the embedded go.mod has a go line").trim()
}

#[cfg(test)]
mod tests;
