//! One service as systemd would run it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use scarpenter_playground::{Lifetime, Process};

use crate::namespace::Namespace;
use crate::unit::{Unit, words};

const SOCKETS: &str = "run/systemd/notify";

/// How far a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Others come before it.
    Waiting,
    /// Started, and not yet what others wait for.
    Starting,
    /// What others wait for is so.
    Active,
    /// It could not be started, or ended badly; why.
    Failed(String),
}

/// A service of one boot.
pub(crate) struct Service {
    pub(crate) unit: Unit,
    pub(crate) state: State,
    /// How many times it was started, or was to be.
    pub(crate) starts: usize,
    log: PathBuf,
    process: Option<Process>,
    /// Commands that come after the running one.
    rest: Vec<Vec<String>>,
    environment: BTreeMap<String, String>,
    socket: Option<UnixDatagram>,
    again_at: Option<Instant>,
}

impl Service {
    pub(crate) fn new(unit: Unit, logs: &Path) -> Self {
        let log = logs.join(format!("{}.log", unit.name));
        let (environment, rest) = (BTreeMap::new(), Vec::new());
        Self {
            unit,
            state: State::Waiting,
            starts: 0,
            log,
            process: None,
            rest,
            environment,
            socket: None,
            again_at: None,
        }
    }

    /// All that it has said.
    pub(crate) fn said(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Whether others that come after it may start.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.state, State::Active | State::Failed(_))
    }

    /// Kills what runs, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.process.take();
        self.ended("killed");
    }

    /// Starts it.
    pub(crate) fn start(&mut self, machine: &Namespace) {
        self.again_at = None;
        self.starts += 1;
        self.state = State::Starting;
        if let Err(error) = self.begin(machine) {
            self.ended(&format!("{error:#}"));
        }
    }

    fn begin(&mut self, machine: &Namespace) -> anyhow::Result<()> {
        let root = machine.root();
        self.make_folders(&root)?;
        self.environment = self.read_environment(&root)?;
        if self.type_() == "notify" {
            self.socket = Some(self.listen(&root)?);
        }
        let mut lines = self.lines("ExecStartPre")?;
        let main = self.lines("ExecStart")?;
        ensure!(!main.is_empty(), "it has no ExecStart");
        lines.extend(main);
        lines.reverse();
        self.rest = lines;
        self.next(machine)
    }

    fn next(&mut self, machine: &Namespace) -> anyhow::Result<()> {
        let line = self.rest.pop().expect("the caller looked");
        let environment: Vec<(String, String)> =
            self.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let command = machine.command(&environment, &line);
        self.process = Some(Process::spawn(&self.unit.name, &command, &self.log, Lifetime::Tied)?);
        if self.rest.is_empty() && !matches!(self.type_(), "oneshot" | "notify") {
            self.state = State::Active;
        }
        Ok(())
    }

    /// Looks at what has become of it.
    pub(crate) fn look(&mut self, machine: &Namespace) -> anyhow::Result<()> {
        if self.again_at.is_some_and(|at| at <= Instant::now()) {
            self.start(machine);
        }
        if self.state == State::Starting && self.is_told_ready()? {
            self.state = State::Active;
        }
        let Some(status) = self.process.as_ref().and_then(Process::exited) else { return Ok(()) };
        self.process = None;
        if !status.success() {
            self.ended(&status.to_string());
        } else if !self.rest.is_empty() {
            if let Err(error) = self.next(machine) {
                self.ended(&format!("{error:#}"));
            }
        } else if self.type_() == "oneshot" {
            self.state = State::Active;
        } else {
            self.ended("it ended");
        }
        Ok(())
    }

    fn ended(&mut self, why: &str) {
        self.socket = None;
        self.state = State::Failed(why.to_owned());
        if self.unit.last("Service", "Restart") == Some("always") {
            let pause = self.unit.last("Service", "RestartSec").and_then(|text| text.parse().ok());
            self.again_at = Some(Instant::now() + Duration::from_secs_f64(pause.unwrap_or(0.1)));
        }
    }

    fn is_told_ready(&self) -> anyhow::Result<bool> {
        let Some(socket) = &self.socket else { return Ok(false) };
        let mut ready = false;
        let mut message = [0; 4096];
        loop {
            match socket.recv(&mut message) {
                Ok(length) => {
                    ready |= message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1")
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(ready),
                Err(error) => return Err(error).context("read what a service tells"),
            }
        }
    }

    fn listen(&mut self, root: &Path) -> anyhow::Result<UnixDatagram> {
        let folder = root.join(SOCKETS);
        fs::create_dir_all(&folder)?;
        let path = folder.join(&self.unit.name);
        fs::remove_file(&path).ok();
        let socket = UnixDatagram::bind(&path).with_context(|| format!("listen on {}", path.display()))?;
        socket.set_nonblocking(true)?;
        self.environment.insert("NOTIFY_SOCKET".to_owned(), format!("/{SOCKETS}/{}", self.unit.name));
        Ok(socket)
    }

    fn make_folders(&self, root: &Path) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        for (kind, parent) in [("RuntimeDirectory", "run"), ("StateDirectory", "var/lib")] {
            let mode = self.unit.last("Service", &format!("{kind}Mode")).unwrap_or("0755");
            let mode = u32::from_str_radix(mode, 8).with_context(|| format!("{kind}Mode={mode}"))?;
            for name in self.unit.all("Service", kind).into_iter().flat_map(str::split_whitespace) {
                let path = root.join(parent).join(name);
                fs::create_dir_all(&path)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            }
        }
        Ok(())
    }

    fn read_environment(&self, root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
        let mut out = BTreeMap::new();
        for line in self.unit.all("Service", "Environment") {
            for assignment in words(line, &BTreeMap::new())? {
                assign(&mut out, &assignment)?;
            }
        }
        for path in self.unit.all("Service", "EnvironmentFile") {
            let (path, optional) = path.strip_prefix('-').map_or((path, false), |path| (path, true));
            let file = root.join(path.strip_prefix('/').with_context(|| format!("{path} is not absolute"))?);
            match fs::read_to_string(&file) {
                Ok(text) => {
                    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
                    {
                        assign(&mut out, line)?;
                    }
                }
                Err(_) if optional => {}
                Err(_) => bail!("its environment file {path} is not there"),
            }
        }
        Ok(out)
    }

    fn lines(&self, key: &str) -> anyhow::Result<Vec<Vec<String>>> {
        let lines = self.unit.all("Service", key);
        lines.into_iter().map(|line| words(line, &self.environment)).collect()
    }

    fn type_(&self) -> &str {
        self.unit.last("Service", "Type").unwrap_or("simple")
    }
}

fn assign(to: &mut BTreeMap<String, String>, assignment: &str) -> anyhow::Result<()> {
    // The value stays out of the message: it may be a secret.
    let (name, value) = assignment.split_once('=').context("a line of the environment is no assignment")?;
    to.insert(name.to_owned(), value.to_owned());
    Ok(())
}
