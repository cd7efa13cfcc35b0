//! The main job on a throw-away control plane with simulated machines, to be watched.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::DynamicObject;
use scarpenter_playground::{Binaries, ControlPlane, Options, Program, Progress};
use scarpenter_provider_local::Accel;
use tokio::signal::unix::{SignalKind, signal};

mod apply;
mod leave;
mod local;
mod look;
mod parts;
mod pods;
mod screen;
mod stage;
mod story;

use screen::Screen;
use stage::Stage;
use story::Story;

/// Anything that usually takes a second.
const STEP_LIMIT: Duration = Duration::from_secs(30);
/// From the creation of the pods until everything is gone.
const LIMIT: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// As a shell says it of a process that SIGINT ended.
const INTERRUPTED: u8 = 130;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Play in this cluster instead of one of its own, and take everything out again at the end.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Play it all the same, then leave everything running and return, having said where it is and how it is ended.
    #[arg(long)]
    keep: bool,
    /// Play it with one real virtual machine on this host instead of simulated vendors.
    #[arg(long, conflicts_with_all = ["kubeconfig", "keep"])]
    local: bool,
    /// What the machine boots: a Flatcar image for QEMU, or what `scarpenter provider local build-image` printed.
    /// Without it that image is made, once, which needs root and a few Debian packages.
    #[arg(long, value_name = "PATH", requires = "local")]
    image: Option<PathBuf>,
    /// How the machine runs; auto is kvm where /dev/kvm can be opened, else tcg.
    #[arg(long, value_enum, default_value_t = Accel::Auto, requires = "local")]
    accel: Accel,
}

/// Plays until the three pods ran and their machines are gone; whatever happens, ends everything that it started.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::of_stdout();
    let mut stage = Stage::default();
    let mut interrupts = Interrupts::watch()?;
    let outcome = tokio::select! {
        outcome = play(&args, &mut stage, &mut screen) => Some(outcome),
        () = interrupts.next() => None,
    };
    screen.settle();
    if args.keep && outcome.is_some() {
        stage.leave()?.iter().for_each(|line| screen.say(line));
    } else {
        if outcome.is_none() {
            screen.say("interrupted: ending everything");
        }
        // Once more, and everything is killed where it stands.
        tokio::select! {
            left = stage.end() => left.iter().for_each(|left| screen.say(&format!("left in the cluster: {left}"))),
            () = interrupts.next() => {}
        }
    }
    match outcome {
        Some(outcome) => outcome.map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::from(INTERRUPTED)),
    }
}

async fn play(args: &Args, stage: &mut Stage, screen: &mut Screen) -> anyhow::Result<()> {
    if args.local {
        return local::play(args, stage, screen).await;
    }
    match &args.kubeconfig {
        Some(kubeconfig) => stage.take_given(kubeconfig).await?,
        None => raise(args.keep, stage, screen).await?,
    }
    let client = stage.client();
    apply::refuse_used(&client, &namespace()?).await?;
    screen.progress("apply", "applying the definitions, the example class and its pools");
    stage.applied.apply(&client).await?;
    screen.progress("parts", "starting the simulated vendors and the controller");
    let lifetime = stage::lifetime(args.keep);
    let sim = stage.sim.insert(parts::start_sim(stage.folder(), lifetime)?);
    let providers = parts::connect(&sim.log().with_file_name(""), sim).await?;
    let (folder, kubeconfig) = (stage.folder(), stage.kubeconfig());
    stage.controller = Some(parts::start_controller(folder, kubeconfig, &parts::VENDORS, lifetime)?);
    stage.applied.create_new(&client, namespace()?).await?;
    let eyes = look::Eyes::open(client.clone(), providers).await?;
    let count = pods::create(&client, &pods::all()).await?;
    let story = watch(stage, &eyes, count, screen).await?;
    screen.settle();
    screen.say("");
    story.bill().iter().for_each(|line| screen.say(line));
    Ok(())
}

/// A control plane of its own.
async fn raise(keep: bool, stage: &mut Stage, screen: &mut Screen) -> anyhow::Result<()> {
    let binaries = Binaries::ensure(|progress| building(screen, progress)).await?;
    screen.progress("start", "starting the control plane");
    let options = if keep { Options::default().may_be_left() } else { Options::default() };
    let kubectl = binaries.path(Program::Kubectl);
    stage.take_own(ControlPlane::start(&binaries, options).await?, kubectl.clone()).await?;
    screen.say("watch along in another terminal:");
    let kubeconfig = stage.kubeconfig().display();
    screen.say(&format!("  {} --kubeconfig {kubeconfig} get nodeclaims -o wide -w", kubectl.display()));
    Ok(())
}

fn building(screen: &mut Screen, progress: &Progress) {
    match progress {
        Progress::Waiting { elapsed } => {
            let line = format!("another process builds the control plane, waiting ({} s)", elapsed.as_secs());
            screen.progress("wait", &line);
        }
        Progress::Building { program, number, of, elapsed, latest } => {
            let latest = latest.as_deref().unwrap_or_default();
            let line = format!("building {program} ({number} of {of}, {} s) {latest}", elapsed.as_secs());
            screen.progress(program.name(), line.trim_end());
        }
        Progress::Built { program, number, of, elapsed } => {
            screen.say(&format!("built {program} ({number} of {of}) in {} s", elapsed.as_secs()));
        }
    }
}

/// Shows the pods until all ran and nothing is left.
async fn watch(stage: &Stage, eyes: &look::Eyes, count: usize, screen: &mut Screen) -> anyhow::Result<Story> {
    let started = Instant::now();
    let mut story = Story::default();
    loop {
        let seen = eyes.look().await?;
        let now = started.elapsed();
        let changes = story.continue_with(&seen, now);
        if screen.is_terminal() {
            screen.draw(&story.table(now));
        } else {
            changes.iter().for_each(|line| screen.say(line));
        }
        if story.is_over(count) {
            return Ok(story);
        }
        stage.refuse_ended()?;
        if let Some(failed) = story.failed() {
            bail!(failed);
        }
        if now > LIMIT {
            let words = stage.controller.as_ref().map(parts::words).unwrap_or_default();
            bail!(
                "not done after {} s: {}; the controller said last:\n{words}",
                LIMIT.as_secs(),
                story.unfinished()
            );
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn namespace() -> anyhow::Result<DynamicObject> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(pods::NAMESPACE.to_owned());
    let object = serde_json::to_value(namespace).and_then(serde_json::from_value);
    object.context("write the namespace")
}

/// Ctrl-C, a closed terminal, and a request to end.
struct Interrupts([tokio::signal::unix::Signal; 3]);

impl Interrupts {
    fn watch() -> anyhow::Result<Self> {
        let watch = |kind| signal(kind).context("watch for signals");
        Ok(Self([
            watch(SignalKind::interrupt())?,
            watch(SignalKind::terminate())?,
            watch(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
