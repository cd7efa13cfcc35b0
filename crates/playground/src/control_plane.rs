//! A running control plane: its folder, its processes, and its end.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::authority::{Authority, Files, WriteError, write_private};
use crate::binaries::Binaries;
use crate::command::{self, Layout};
use crate::folder::Folder;
use crate::kubeconfig;
use crate::options::Options;
use crate::process::{Lifetime, Process, ProcessError};
use crate::program::Program;
use crate::ready;

const ATTEMPTS: u32 = 3;
const STOPS_WITHIN: Duration = Duration::from_secs(4);
const LOG_LINES: usize = 8;
/// 10.0.2.2 is how a QEMU guest of this machine reaches it.
const SERVER_NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "10.0.2.2",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its temporary folder or a file in it could not be written.
    #[error("write the control plane's temporary folder")]
    WriteFolder(#[source] io::Error),
    /// A key or certificate could not be made.
    #[error("make a certificate")]
    MakeCertificate(#[source] rcgen::Error),
    /// A client certificate holds two groups at most.
    #[error("user {user} cannot have {count} groups: a client certificate made here holds two")]
    TooManyGroups {
        /// The user.
        user: String,
        /// How many were asked for.
        count: usize,
    },
    /// No free port on loopback.
    #[error("find a free port")]
    FindPort(#[source] io::Error),
    /// A program could not be started.
    #[error("start a program of the control plane")]
    StartProgram(#[from] ProcessError),
    /// A program ended by itself.
    #[error("{program} ended ({status}), its last words were: {output}")]
    Ended {
        /// Which.
        program: String,
        /// How.
        status: String,
        /// The end of its log.
        output: String,
    },
    /// The control plane did not become ready in time.
    #[error("the control plane was not ready within {} s: waited for {waited_for}; {program} said last: {output}", limit.as_secs())]
    NotReady {
        /// The limit.
        limit: Duration,
        /// What was missing.
        waited_for: String,
        /// Whose log is quoted.
        program: String,
        /// The end of its log.
        output: String,
    },
    /// Its own kubeconfig does not make a client.
    #[error("connect to the control plane")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<WriteError> for StartError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Make(source) => Self::MakeCertificate(source),
            WriteError::Write(source) => Self::WriteFolder(source),
        }
    }
}

/// A throw-away control plane on loopback.
///
/// [`stop`](Self::stop) ends it in order; dropping it, also by a panic or by dropping the future of
/// [`start`](Self::start), kills it at once. Both wait until every process is gone and remove its folder.
/// When the owner is killed with SIGKILL the kernel ends the programs (Linux with util-linux), and the next start of
/// any control plane by the same user removes the folder.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: the programs before the folder they write to.
    processes: Vec<Process>,
    authority: Authority,
    url: String,
    kubeconfig: PathBuf,
    folder: Folder,
}

impl ControlPlane {
    /// Starts the programs and waits until they are of use: `/readyz` answers, Namespace `default` exists and, with
    /// the controller manager, its ServiceAccount too.
    ///
    /// # Errors
    /// Says which program failed, with the end of its log.
    pub async fn start(binaries: &Binaries, options: Options) -> Result<Self, StartError> {
        let mut attempt = 1;
        loop {
            match Self::start_once(binaries, &options).await {
                // Between finding a free port and using it, somebody else may take it.
                Err(StartError::Ended { output, .. })
                    if attempt < ATTEMPTS && output.contains("address already in use") =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn start_once(binaries: &Binaries, options: &Options) -> Result<Self, StartError> {
        let started = Instant::now();
        let mut plane = Self::prepare()?;
        let layout = plane.layout(Files::write(plane.folder.path(), &plane.authority, &SERVER_NAMES)?)?;
        plane.run(Program::Etcd, binaries, &layout, options)?;
        plane.run(Program::ApiServer, binaries, &layout, options)?;
        let client = plane.client().await?;
        let deadline = started + options.ready_within;
        plane.wait(deadline, options, "/readyz", || ready::answers(&client, "/readyz")).await?;
        if options.controller_manager {
            plane.run(Program::ControllerManager, binaries, &layout, options)?;
        }
        if options.scheduler {
            plane.run(Program::Scheduler, binaries, &layout, options)?;
        }
        let namespace = "/api/v1/namespaces/default";
        plane.wait(deadline, options, "Namespace default", || ready::answers(&client, namespace)).await?;
        if options.controller_manager {
            let account = "/api/v1/namespaces/default/serviceaccounts/default";
            plane
                .wait(deadline, options, "ServiceAccount default", || ready::answers(&client, account))
                .await?;
        }
        tracing::debug!(url = plane.url, seconds = started.elapsed().as_secs_f32(), "control plane ready");
        Ok(plane)
    }

    fn prepare() -> Result<Self, StartError> {
        let folder = Folder::make().map_err(StartError::WriteFolder)?;
        std::fs::create_dir(folder.path().join("logs")).map_err(StartError::WriteFolder)?;
        let authority = Authority::make().map_err(StartError::MakeCertificate)?;
        let port = free_port().map_err(StartError::FindPort)?;
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = folder.path().join("admin.kubeconfig");
        let plane = Self { processes: Vec::new(), authority, url, kubeconfig, folder };
        plane.write_kubeconfig(&plane.kubeconfig, "admin", &["system:masters"])?;
        Ok(plane)
    }

    fn layout(&self, files: Files) -> Result<Layout, StartError> {
        let folder = self.folder.path().to_owned();
        let port = self.url.rsplit(':').next().unwrap_or_default().to_owned();
        let controller_manager = folder.join("controller-manager.kubeconfig");
        self.write_kubeconfig(&controller_manager, "system:kube-controller-manager", &[])?;
        let scheduler = folder.join("scheduler.kubeconfig");
        self.write_kubeconfig(&scheduler, "system:kube-scheduler", &[])?;
        Ok(Layout { folder, files, port, controller_manager, scheduler })
    }

    fn run(
        &mut self,
        program: Program,
        binaries: &Binaries,
        layout: &Layout,
        options: &Options,
    ) -> Result<(), StartError> {
        let mut command = command::of(program, binaries, layout);
        command.args(options.flags.get(&program).into_iter().flatten());
        let lifetime = if options.loose { Lifetime::Loose } else { Lifetime::Tied };
        let process = Process::spawn(program.name(), &command, &self.log(program), lifetime)?;
        self.processes.push(process);
        Ok(())
    }

    /// Looks again and again until it is so, a program has ended, or time is up.
    async fn wait<F>(
        &self,
        deadline: Instant,
        options: &Options,
        what: &str,
        look: impl Fn() -> F,
    ) -> Result<(), StartError>
    where
        F: Future<Output = bool>,
    {
        while !look().await {
            if let Some(ended) = self.ended() {
                return Err(ended);
            }
            if Instant::now() > deadline {
                return Err(self.not_ready(options.ready_within, what));
            }
            tokio::time::sleep(ready::LOOK_EVERY).await;
        }
        Ok(())
    }

    /// The first program that has ended by itself, as an error that quotes the end of its log.
    #[must_use]
    pub fn ended(&self) -> Option<StartError> {
        self.processes.iter().find_map(|process| {
            Some(StartError::Ended {
                program: process.name().to_owned(),
                status: process.exited()?.to_string(),
                output: process.log_tail(LOG_LINES),
            })
        })
    }

    fn not_ready(&self, limit: Duration, what: &str) -> StartError {
        let latest = self.processes.last();
        StartError::NotReady {
            limit,
            waited_for: what.to_owned(),
            program: latest.map_or("nothing", Process::name).to_owned(),
            output: latest.map(|process| process.log_tail(LOG_LINES)).unwrap_or_default(),
        }
    }

    /// Where the API server listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The CA's certificate, PEM; the same signs node certificates.
    #[must_use]
    pub fn ca_certificate(&self) -> String {
        self.authority.certificate()
    }

    /// The kubeconfig file of a member of `system:masters`, which only this user may read.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The folder, removed at the end; logs, sockets and files of a caller may live in it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The log of a program.
    #[must_use]
    pub fn log(&self, program: Program) -> PathBuf {
        self.folder.path().join("logs").join(program.name()).with_extension("log")
    }

    /// Process ids of the programs that were started.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::id).collect()
    }

    /// A client as member of `system:masters`.
    ///
    /// # Errors
    /// When the kubeconfig does not make a client; it does.
    pub async fn client(&self) -> Result<kube::Client, StartError> {
        connect(&self.kubeconfig).await
    }

    /// Writes a kubeconfig for another user, by a client certificate of the CA.
    ///
    /// # Errors
    /// With more than two groups, or when the file cannot be written.
    pub fn kubeconfig_of(&self, user: &str, groups: &[&str]) -> Result<PathBuf, StartError> {
        let file: String = user.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = self.folder.path().join(format!("user-{file}.kubeconfig"));
        self.write_kubeconfig(&path, user, groups)?;
        Ok(path)
    }

    /// A client for another user, by a client certificate of the CA.
    ///
    /// # Errors
    /// As [`kubeconfig_of`](Self::kubeconfig_of).
    pub async fn client_of(&self, user: &str, groups: &[&str]) -> Result<kube::Client, StartError> {
        connect(&self.kubeconfig_of(user, groups)?).await
    }

    /// Ends all programs in order, then removes the folder.
    pub async fn stop(mut self) {
        let deadline = Instant::now() + STOPS_WITHIN;
        while let Some(process) = self.processes.pop() {
            process.ask_to_end();
            process.wait_until(deadline).await;
        }
    }

    /// Leaves the programs and the folder as they are, and says where; needs [`Options::may_be_left`].
    ///
    /// # Errors
    /// When the folder cannot be marked as kept; everything ends then.
    pub fn leave(self) -> Result<PathBuf, StartError> {
        let folder = self.folder.keep().map_err(StartError::WriteFolder)?;
        for process in self.processes {
            process.leave();
        }
        Ok(folder)
    }

    fn write_kubeconfig(&self, path: &Path, user: &str, groups: &[&str]) -> Result<(), StartError> {
        if groups.len() > 2 {
            return Err(StartError::TooManyGroups { user: user.to_owned(), count: groups.len() });
        }
        let identity = self.authority.sign_client(user, groups).map_err(StartError::MakeCertificate)?;
        let text = kubeconfig::render(&self.url, &self.authority.certificate(), &identity);
        write_private(path, &text).map_err(StartError::WriteFolder)
    }
}

async fn connect(kubeconfig: &Path) -> Result<kube::Client, StartError> {
    let kubeconfig =
        Kubeconfig::read_from(kubeconfig).map_err(|error| StartError::Connect(Box::new(error)))?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| StartError::Connect(Box::new(error)))?;
    kube::Client::try_from(config).map_err(|error| StartError::Connect(Box::new(error)))
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
