//! What every check needs: fresh claims, calls that try again as the controller does, and waiting.

use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scarpenter_core::name::{ClaimUid, ClusterId, sha256_hex};
use tokio::time::Instant;

use crate::capabilities::Capabilities;
use crate::client::Client;
use crate::error::{Created, Deleted, Error, Refusal};
use crate::machine::{Machine, MachineList};
use crate::request::{CreateMachine, DeleteMachine, FindMachine};

use super::Verdict;

const POLL: Duration = Duration::from_millis(25);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(5);

pub(super) struct Bench {
    pub(super) client: Client,
    pub(super) cluster: ClusterId,
    pub(super) other_cluster: ClusterId,
    template: CreateMachine,
    gone_within: Duration,
    seed: String,
    claims: AtomicU64,
    made: Mutex<Vec<(ClusterId, ClaimUid)>>,
}

impl Bench {
    pub(super) fn new(client: Client, template: CreateMachine, gone_within: Duration) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = format!("{}/{}", now.as_nanos(), std::process::id());
        Self {
            client,
            cluster: uuid(&format!("{seed}/cluster")).as_str().into(),
            other_cluster: uuid(&format!("{seed}/other")).as_str().into(),
            template,
            gone_within,
            seed,
            claims: AtomicU64::new(0),
            made: Mutex::default(),
        }
    }

    /// A create for a new claim.
    pub(super) fn fresh(&self) -> CreateMachine {
        self.fresh_in(&self.cluster)
    }

    pub(super) fn fresh_in(&self, cluster: &ClusterId) -> CreateMachine {
        let number = self.claims.fetch_add(1, Ordering::Relaxed);
        let claim = ClaimUid::new(uuid(&format!("{}/{number}", self.seed)));
        self.made
            .lock()
            .expect("no check panics while it holds the list")
            .push((cluster.clone(), claim.clone()));
        let name = format!("conformance-{}", &claim.as_str()[..8]);
        CreateMachine { cluster: cluster.clone(), claim, name, ..self.template.clone() }
    }

    /// Every claim for which a create may have been sent.
    pub(super) fn made(&self) -> Vec<(ClusterId, ClaimUid)> {
        self.made.lock().expect("no check panics while it holds the list").clone()
    }

    pub(super) async fn capabilities(&self) -> Result<Capabilities, String> {
        persist(|| self.client.capabilities()).await
    }

    pub(super) async fn settle(&self) -> Result<Duration, String> {
        Ok(self.capabilities().await?.settle)
    }

    /// Creates as the controller does: on an unknown outcome it waits until it is settled, looks, and only then asks again.
    pub(super) async fn create(&self, create: &CreateMachine) -> Result<Created, String> {
        let settle = self.settle().await?;
        loop {
            let error = match self.client.send_create(create.clone()).await {
                Ok(created) => return Ok(created),
                Err(error @ Error::Nonsense { .. }) => return Err(error.to_string()),
                Err(error) => error,
            };
            if error.had_no_effect() {
                tokio::time::sleep(back_off(&error)).await;
                continue;
            }
            let settled = Instant::now() + settle;
            while Instant::now() < settled {
                if let Some(machine) = self.get(create).await? {
                    return Ok(Created::Machine(machine));
                }
                tokio::time::sleep(POLL).await;
            }
        }
    }

    pub(super) async fn machine(&self, create: &CreateMachine) -> Result<Machine, String> {
        match self.create(create).await? {
            Created::Machine(machine) => Ok(machine),
            Created::Refused(Refusal { reason, message, .. }) => {
                Err(format!("refused ({}): {message}", reason.as_str()))
            }
        }
    }

    pub(super) async fn get(&self, create: &CreateMachine) -> Result<Option<Machine>, String> {
        persist(|| self.client.get_machine(find(create))).await
    }

    pub(super) async fn list(&self, cluster: &ClusterId) -> Result<MachineList, String> {
        persist(|| self.client.list_machines(cluster)).await
    }

    /// Machines of one claim, as the list shows them.
    pub(super) async fn listed(&self, create: &CreateMachine) -> Result<Vec<Machine>, String> {
        let list = self.list(&create.cluster).await?;
        Ok(list.machines.into_iter().filter(|machine| machine.claim == create.claim).collect())
    }

    /// Waits out the settle time, so that nothing can be hidden any more, and expects exactly one machine.
    pub(super) async fn settled_as_one(&self, create: &CreateMachine) -> Result<Machine, String> {
        tokio::time::sleep(self.settle().await?).await;
        let mut machines = self.listed(create).await?;
        match (machines.pop(), machines.len()) {
            (Some(machine), 0) => Ok(machine),
            (None, _) => Err("the settle time is over and the list does not show the machine".to_owned()),
            (Some(_), others) => Err(format!("{} machines for one claim", others + 1)),
        }
    }

    /// Waits out the settle time and expects that the claim has no machine.
    pub(super) async fn settled_as_none(&self, create: &CreateMachine) -> Verdict {
        tokio::time::sleep(self.settle().await?).await;
        let machines = self.listed(create).await?.len();
        if machines > 0 { Err(format!("{machines} machines were made")) } else { Ok(()) }
    }

    pub(super) async fn delete(&self, delete: DeleteMachine) -> Result<Deleted, String> {
        persist(|| self.client.delete_machine(delete.clone())).await
    }

    /// Deletes until the plugin says gone; then neither get nor list may know the machine.
    pub(super) async fn delete_until_gone(&self, cluster: &ClusterId, claim: &ClaimUid) -> Verdict {
        let deadline = Instant::now() + self.gone_within;
        while self.delete(delete_of(cluster, claim)).await? == Deleted::Asked {
            if Instant::now() > deadline {
                return Err(format!("not gone within {:?}", self.gone_within));
            }
            tokio::time::sleep(POLL).await;
        }
        let find = FindMachine { cluster: cluster.clone(), claim: claim.clone(), machine: None, place: None };
        if persist(|| self.client.get_machine(find.clone())).await?.is_some() {
            return Err("said to be gone, and found".to_owned());
        }
        match self.list(cluster).await?.machines.iter().any(|machine| machine.claim == *claim) {
            true => Err("said to be gone, and listed".to_owned()),
            false => Ok(()),
        }
    }

    pub(super) async fn clean(&self, create: &CreateMachine) -> Verdict {
        self.delete_until_gone(&create.cluster, &create.claim).await
    }
}

pub(super) fn find(create: &CreateMachine) -> FindMachine {
    FindMachine { cluster: create.cluster.clone(), claim: create.claim.clone(), machine: None, place: None }
}

pub(super) fn delete_of(cluster: &ClusterId, claim: &ClaimUid) -> DeleteMachine {
    DeleteMachine {
        cluster: cluster.clone(),
        claim: claim.clone(),
        machine: None,
        place: None,
        only_this_machine: false,
    }
}

/// Asks again as long as the vendor is away or the outcome is unknown; the check's own limit ends it.
pub(super) async fn persist<T, F>(ask: impl Fn() -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error @ (Error::Unknown { .. } | Error::Unavailable { .. } | Error::RateLimited { .. })) => {
                tokio::time::sleep(back_off(&error)).await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn back_off(error: &Error) -> Duration {
    error.retry_after().unwrap_or(POLL).min(LONGEST_BACK_OFF)
}

fn uuid(text: &str) -> String {
    let hex = sha256_hex(text.as_bytes());
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
