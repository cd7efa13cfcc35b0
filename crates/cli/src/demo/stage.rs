//! Everything that the demo started or made, so that every way out ends all of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use scarpenter_api::NodeClaim;
use scarpenter_playground::{ControlPlane, Folder, Lifetime, Process};

use super::apply::Applied;
use super::leave::Left;
use super::pods;
use crate::BadInput;

const CONTROLLER_STOPS_WITHIN: Duration = Duration::from_secs(10);
/// That of this host removes its machines first.
const SIM_STOPS_WITHIN: Duration = Duration::from_secs(15);
/// In somebody's cluster claims are waited for, since their nodes would stay.
const CLAIMS_GO_WITHIN: Duration = Duration::from_secs(90);

/// What there is; dropped, the processes are killed in this order and the folder goes last.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) controller: Option<Process>,
    /// The plugin.
    pub(super) sim: Option<Process>,
    pub(super) applied: Applied,
    ground: Option<Ground>,
}

/// The cluster that it plays in.
struct Ground {
    client: Client,
    kubeconfig: PathBuf,
    /// The one that was built with it.
    kubectl: Option<PathBuf>,
    home: Home,
}

enum Home {
    /// Ours, to be thrown away.
    Own(Box<ControlPlane>),
    /// Somebody's, with a folder for our sockets and logs.
    Given(Folder),
}

impl Stage {
    pub(super) async fn take_own(&mut self, plane: ControlPlane, kubectl: PathBuf) -> anyhow::Result<()> {
        let kubeconfig = plane.kubeconfig().to_owned();
        let client = plane.client().await.context("connect to the control plane")?;
        self.ground =
            Some(Ground { client, kubeconfig, kubectl: Some(kubectl), home: Home::Own(Box::new(plane)) });
        Ok(())
    }

    pub(super) async fn take_given(&mut self, kubeconfig: &Path) -> anyhow::Result<()> {
        let kubeconfig = std::path::absolute(kubeconfig).context("find the kubeconfig")?;
        let read = Kubeconfig::read_from(&kubeconfig)
            .with_context(|| format!("read {}", kubeconfig.display()))
            .context(BadInput)?;
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let client =
            Client::try_from(config.context("read the kubeconfig")?).context("connect to the cluster")?;
        let home = Home::Given(Folder::make().context("make a temporary folder")?);
        self.ground = Some(Ground { client, kubeconfig, kubectl: None, home });
        Ok(())
    }

    fn ground(&self) -> &Ground {
        self.ground.as_ref().expect("a cluster is taken first")
    }

    pub(super) fn client(&self) -> Client {
        self.ground().client.clone()
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.ground().kubeconfig
    }

    /// Port of its own control plane's API server on loopback.
    pub(super) fn api_port(&self) -> Option<u16> {
        match &self.ground().home {
            Home::Own(plane) => plane.url().rsplit(':').next()?.parse().ok(),
            Home::Given(_) => None,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        match &self.ground().home {
            Home::Own(plane) => plane.folder(),
            Home::Given(folder) => folder.path(),
        }
    }

    /// A program of the control plane that ended by itself.
    pub(super) fn refuse_ended(&self) -> anyhow::Result<()> {
        if let Home::Own(plane) = &self.ground().home
            && let Some(ended) = plane.ended()
        {
            return Err(ended.into());
        }
        [&self.sim, &self.controller].into_iter().flatten().try_for_each(super::parts::refuse_ended)
    }

    /// Ends everything, in order; says what is left, if anything is.
    pub(super) async fn end(mut self) -> Vec<String> {
        let mut left = Vec::new();
        if let Some(ground) = &self.ground
            && matches!(ground.home, Home::Given(_))
        {
            left = empty(&ground.client, &mut self.applied, self.controller.is_some()).await;
        }
        if let Some(controller) = self.controller.take() {
            controller.stop(CONTROLLER_STOPS_WITHIN).await;
        }
        if let Some(sim) = self.sim.take() {
            sim.stop(SIM_STOPS_WITHIN).await;
        }
        if let Some(Ground { home: Home::Own(plane), .. }) = self.ground.take() {
            plane.stop().await;
        }
        left
    }

    /// Leaves everything running and says how it is used and ended.
    pub(super) fn leave(mut self) -> anyhow::Result<Vec<String>> {
        let Ground { kubeconfig, kubectl, home, .. } = self.ground.take().context("nothing runs")?;
        let mut processes: Vec<u32> =
            [&self.controller, &self.sim].into_iter().flatten().map(Process::id).collect();
        let (folder, objects) = match home {
            Home::Own(plane) => {
                processes.extend(plane.process_ids().into_iter().rev());
                (plane.leave()?, Vec::new())
            }
            Home::Given(folder) => (folder.keep().context("keep the folder")?, self.applied.names()),
        };
        [self.controller.take(), self.sim.take()].into_iter().flatten().for_each(Process::leave);
        let left = Left { folder, kubeconfig, kubectl, processes, objects };
        left.settle().context("write the script that ends it")
    }
}

/// Takes out of somebody's cluster what the demo put in: pods, then machines by way of their claims, then the rest.
async fn empty(client: &Client, applied: &mut Applied, controller: bool) -> Vec<String> {
    let mut left = Vec::new();
    if controller {
        pods::delete(client).await.ok();
        let claims: Api<NodeClaim> = Api::all(client.clone());
        claims.delete_collection(&Default::default(), &Default::default()).await.ok();
        let deadline = Instant::now() + CLAIMS_GO_WITHIN;
        while let Ok(list) = claims.list(&Default::default()).await
            && !list.items.is_empty()
        {
            if Instant::now() > deadline {
                left.push(format!("{} claims and their nodes", list.items.len()));
                break;
            }
            tokio::time::sleep(super::LOOK_EVERY).await;
        }
    }
    left.extend(applied.delete().await);
    left
}

/// How long the processes live.
pub(super) fn lifetime(keep: bool) -> Lifetime {
    if keep { Lifetime::Loose } else { Lifetime::Tied }
}
