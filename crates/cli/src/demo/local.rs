//! The main job with one real virtual machine on this host: it boots, joins, runs a pod whose log is read, and goes.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, LogParams};
use kube::{Api, Client};
use scarpenter_core::label;
use scarpenter_playground::{Binaries, KUBERNETES_VERSION, Lifetime};
use scarpenter_provider_local::image::build::{self, Cache, Extension, POD_IMAGE};
use scarpenter_provider_local::{Programs, VENDOR};
use serde_json::{Value, json};

use super::screen::Screen;
use super::stage::Stage;
use super::{Args, look, namespace, parts, pods, raise, watch};

const POD: &str = "on-a-real-machine";
const PRINTED: &str = "hello from a pod on";
/// Its log is read meanwhile.
const POD_SECONDS: u32 = 10;
/// What one machine of the type that the pod gets takes, whatever else this host does.
const LIMITS: [&str; 4] = ["--cpus", "2", "--memory", "2048"];
const LOOK_FOR_LOG_EVERY: Duration = Duration::from_secs(1);

/// What machines boot and fetch.
struct Metal {
    image: PathBuf,
    extension: Extension,
    extensions_port: u16,
}

pub(super) async fn play(args: &Args, stage: &mut Stage, screen: &mut Screen) -> anyhow::Result<()> {
    let metal = prepare(args, screen).await?;
    raise(false, stage, screen).await?;
    let client = stage.client();
    screen.progress("apply", "applying the definitions, a class and a pool");
    stage.applied.prepare(&client).await?;
    for object in objects(stage, &metal)? {
        stage.applied.create_new(&client, object).await?;
    }
    screen.progress("parts", "starting the plugin of this host and the controller");
    let folder = stage.folder().to_owned();
    let plugin = stage.sim.insert(start_plugin(&folder, &metal, args)?);
    let providers = parts::connect_to(&[VENDOR], &folder, plugin).await?;
    let (kubeconfig, lifetime) = (stage.kubeconfig(), Lifetime::Tied);
    stage.controller = Some(parts::start_controller(&folder, kubeconfig, &[VENDOR], lifetime)?);
    stage.applied.create_new(&client, namespace()?).await?;
    let eyes = look::Eyes::open(client.clone(), providers).await?;
    let count = pods::create(&client, &[pod()]).await?;
    let log = tokio::spawn(log(client));
    let story = watch(stage, &eyes, count, screen).await?;
    screen.settle();
    anyhow::ensure!(log.is_finished(), "the pod ran, and its log could not be read through the API server");
    screen.say("");
    screen.say("its log, read through the API server:");
    log.await.context("read the log")?.lines().for_each(|line| screen.say(&format!("  {line}")));
    story.bill().iter().for_each(|line| screen.say(line));
    Ok(())
}

/// Finds or builds all that a machine needs; what is missing on this host is said before anything is built.
async fn prepare(args: &Args, screen: &mut Screen) -> anyhow::Result<Metal> {
    build::demand_packages()?;
    Programs::default().demand().await?;
    let cache = Cache::of_user()?;
    let kubelet = Binaries::kubelet(|progress| super::building(screen, progress)).await?;
    let image = match &args.image {
        Some(image) => image.clone(),
        None => {
            let told = |step: &str| screen.progress(step, &format!("making the test image: {step}"));
            cache.image(told).await?
        }
    };
    screen.progress("extension", "making the extension that brings the kubelet");
    let extension = cache.extension(&kubelet, &format!("v{KUBERNETES_VERSION}")).await?;
    Ok(Metal { image, extension, extensions_port: free_port()? })
}

fn start_plugin(folder: &Path, metal: &Metal, args: &Args) -> anyhow::Result<scarpenter_playground::Process> {
    let mut listen = OsString::from("unix://");
    listen.push(parts::socket(VENDOR, folder));
    let at = format!("127.0.0.1:{}", metal.extensions_port);
    let accel = clap::ValueEnum::to_possible_value(&args.accel).context("an accelerator has a name")?;
    let mut arguments: Vec<OsString> = ["provider", "local", "--with-parent"].map(OsString::from).into();
    arguments.extend(["--listen".into(), listen, "--image".into(), metal.image.clone().into()]);
    arguments.extend(["--state".into(), folder.join("machines").into()]);
    arguments.extend(["--extensions".into(), metal.extension.folder.clone().into()]);
    arguments.extend(["--extensions-at".into(), at.into(), "--accel".into(), accel.get_name().into()]);
    arguments.extend(LIMITS.map(OsString::from));
    // It must outlive a killed demo for a moment, to remove its machine.
    parts::start("local", &arguments, folder, Lifetime::Loose)
}

fn objects(stage: &Stage, metal: &Metal) -> anyhow::Result<Vec<DynamicObject>> {
    let port = stage.api_port().context("the control plane is the demo's own")?;
    let class = class(port, metal.extensions_port, &metal.extension);
    let objects = [class, pool()].map(|object| serde_json::from_value(object).context("write an object"));
    objects.into_iter().collect()
}

/// Guests reach this host's loopback at 10.0.2.2.
fn class(api_port: u16, extensions_port: u16, extension: &Extension) -> Value {
    json!({
        "apiVersion": "scarpenter.sparecores.com/v1alpha1", "kind": "ScarpenterNodeClass",
        "metadata": {"name": "local"},
        "spec": {
            "vendors": {VENDOR: {}},
            "join": {
                "servers": [format!("https://10.0.2.2:{api_port}")],
                "sysextBaseURL": format!("http://10.0.2.2:{extensions_port}"),
                "sysextHashes": {(&extension.name): extension.hash},
            },
        },
    })
}

fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "local"},
        "spec": {
            "template": {"spec": {
                "nodeClassRef": {
                    "group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "local",
                },
                "requirements": [{"key": label::VENDOR, "operator": "In", "values": [VENDOR]}],
            }},
            "disruption": {
                "consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s",
                "budgets": [{"nodes": "100%", "reasons": ["Empty"]}],
            },
        },
    })
}

fn pod() -> Pod {
    let script = format!("echo {PRINTED} $NODE; sleep {POD_SECONDS}");
    let pod = json!({
        "metadata": {"name": POD, "namespace": pods::NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": POD_IMAGE, "imagePullPolicy": "Never",
                "command": ["/bin/sh", "-c", script],
                "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                // More than one CPU, so that the type has two: one would boot twice as long.
                "resources": {"requests": {"cpu": "1100m", "memory": "64Mi"}},
            }],
        },
    });
    serde_json::from_value(pod).expect("a test reads it")
}

/// The pod's log, as soon as there is one.
async fn log(client: Client) -> String {
    let api: Api<Pod> = Api::namespaced(client, pods::NAMESPACE);
    loop {
        match api.logs(POD, &LogParams::default()).await {
            Ok(log) if log.contains(PRINTED) => return log,
            _ => tokio::time::sleep(LOOK_FOR_LOG_EVERY).await,
        }
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_api::{NodePool, ScarpenterNodeClass};

    use super::*;

    #[test]
    fn the_objects_are_what_they_should_be() {
        let extension =
            Extension { folder: "/e".into(), name: "kubernetes.raw".into(), hash: "sha256-0".into() };
        let class: ScarpenterNodeClass = serde_json::from_value(class(1, 2, &extension)).unwrap();
        assert_eq!(class.spec.join.servers, ["https://10.0.2.2:1"]);
        assert_eq!(class.spec.join.sysext_hashes["kubernetes.raw"], "sha256-0");
        serde_json::from_value::<NodePool>(pool()).unwrap();
        let container = &pod().spec.unwrap().containers[0];
        assert_eq!(container.image_pull_policy.as_deref(), Some("Never"));
    }
}
