//! The plugins: whether each can be used, and what machines each lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use scarpenter_core::lifecycle::{self, MachineSeen, Time};
use scarpenter_core::name::{ClaimUid, ClusterId, Vendor};
use scarpenter_provider::client::ConnectError;
use scarpenter_provider::{Capabilities, Client, Endpoint, MachineList, MachineState};
use tokio::sync::Notify;

use crate::clock;
use crate::context::Context;

/// Settle time of a plugin that has never answered.
const UNKNOWN_SETTLE: Duration = Duration::from_secs(300);
/// How often a plugin that works is asked whether it still does.
const CHECK: Duration = Duration::from_secs(15);
/// How often one that does not is asked.
const RETRY: Duration = Duration::from_secs(1);
/// How often machines are listed when nobody waits for it.
const BACKGROUND_LIST: Duration = Duration::from_secs(30);
/// Calls other than create are given up after this long; the plugin counts as broken until it answers again.
const DEADLINE: Duration = Duration::from_secs(20);
/// A delete that was acknowledged is sent again after this long while the machine is still listed.
const DELETE_AGAIN: Duration = Duration::from_secs(5);
/// Shortest time between two lists while somebody waits.
const LIST_SPACING: Duration = Duration::from_secs(1);

/// Every plugin that the controller was told of.
#[derive(Debug)]
pub(crate) struct Vendors(BTreeMap<Vendor, Slot>);

/// One plugin and what is known of it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) vendor: Vendor,
    pub(crate) client: Client,
    state: Mutex<State>,
    wanted: Notify,
}

#[derive(Debug, Default)]
struct State {
    capabilities: Option<Capabilities>,
    problem: Option<String>,
    listing: Option<Listing>,
    waiting: BTreeSet<String>,
    deleted: BTreeMap<ClaimUid, Instant>,
}

#[derive(Debug)]
struct Listing {
    begun: Time,
    outcome: Result<MachineList, String>,
}

impl Vendors {
    /// Connects lazily: a plugin that is not there yet is no error here.
    pub(crate) fn new(providers: &[(Vendor, Endpoint)]) -> Result<Self, ConnectError> {
        let slot = |(vendor, endpoint): &(Vendor, Endpoint)| {
            let client = Client::connect(vendor.clone(), endpoint)?.with_deadline(DEADLINE);
            let slot =
                Slot { vendor: vendor.clone(), client, state: Mutex::default(), wanted: Notify::new() };
            Ok((vendor.clone(), slot))
        };
        providers.iter().map(slot).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn get(&self, vendor: &Vendor) -> Option<&Slot> {
        self.0.get(vendor)
    }

    pub(crate) fn names(&self) -> Vec<Vendor> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.0.values()
    }
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it can do, while it works.
    pub(crate) fn capabilities(&self) -> Option<Capabilities> {
        let state = self.state();
        if state.problem.is_some() { None } else { state.capabilities.clone() }
    }

    /// Settle time of its creates, also while it does not answer: the last word counts, and before the first a long one.
    pub(crate) fn settle(&self) -> Duration {
        let declared = self.state().capabilities.as_ref().map(|capabilities| capabilities.settle);
        lifecycle::settle(declared.unwrap_or(UNKNOWN_SETTLE))
    }

    /// Why it cannot be used now.
    pub(crate) fn problem(&self) -> Option<String> {
        let state = self.state();
        let unknown = state.capabilities.is_none().then(|| "the plugin has not answered yet".to_owned());
        state.problem.clone().or(unknown)
    }

    /// Asks the plugin what it is; whether its usability changed.
    pub(crate) async fn ask(&self) -> bool {
        let answer = self.client.capabilities().await;
        let problem = answer.as_ref().err().map(ToString::to_string);
        let mut state = self.state();
        let turned = state.problem != problem || state.capabilities.is_none() && answer.is_ok();
        if let Ok(capabilities) = answer {
            state.capabilities = Some(capabilities);
        }
        state.problem.clone_from(&problem);
        drop(state);
        if turned {
            match &problem {
                Some(problem) => tracing::warn!(vendor = %self.vendor, problem, "provider not usable"),
                None => tracing::info!(vendor = %self.vendor, "provider usable"),
            }
        }
        turned
    }

    /// What the latest list says of a claim's machine.
    pub(crate) fn seen(&self, claim: &ClaimUid, region: &str) -> MachineSeen {
        let state = self.state();
        match &state.listing {
            None => MachineSeen::NotAsked,
            Some(Listing { outcome: Err(why), .. }) => MachineSeen::Unknown(why.clone()),
            Some(Listing { outcome: Ok(list), begun }) => {
                let mut states = list
                    .machines
                    .iter()
                    .filter(|machine| machine.claim == *claim)
                    .map(|machine| machine.state)
                    .peekable();
                if states.peek().is_some() {
                    MachineSeen::Present { stopped: states.all(|state| state == MachineState::Stopped) }
                } else if list.covered.covers(region) {
                    MachineSeen::Absent(*begun)
                } else {
                    MachineSeen::Unknown(format!("the list of {} did not cover region {region}", self.vendor))
                }
            }
        }
    }

    /// Whether a delete may be sent: the latest that was acknowledged is old enough to be sent again (TRM-2).
    pub(crate) fn may_delete(&self, claim: &ClaimUid) -> bool {
        self.state().deleted.get(claim).is_none_or(|at| at.elapsed() >= DELETE_AGAIN)
    }

    /// Remembers that the vendor acknowledged a delete.
    pub(crate) fn deleted(&self, claim: &ClaimUid) {
        let mut state = self.state();
        state.deleted.retain(|_, at| at.elapsed() < DELETE_AGAIN);
        state.deleted.insert(claim.clone(), Instant::now());
    }

    /// Asks for a fresh list; the claim is looked at again when it is there.
    pub(crate) fn want_list(&self, claim: &str) {
        self.state().waiting.insert(claim.to_owned());
        self.wanted.notify_one();
    }

    /// Waits until somebody wants a list or the background one is due, and lists. Claims to look at again.
    async fn list(&self, cluster: &ClusterId) -> BTreeSet<String> {
        let _ = tokio::time::timeout(BACKGROUND_LIST, self.wanted.notified()).await;
        let waiting = std::mem::take(&mut self.state().waiting);
        let begun = clock::now();
        let outcome = self.client.list_machines(cluster).await;
        if let Err(error) = &outcome {
            tracing::warn!(vendor = %self.vendor, category = error.category(), %error, "machines not listed");
        }
        let dead = self.keep(Listing { begun, outcome: outcome.map_err(|error| error.to_string()) });
        &waiting | &dead
    }

    /// Keeps a list; names of the claims whose machine it calls dead.
    fn keep(&self, listing: Listing) -> BTreeSet<String> {
        let mut dead = BTreeSet::new();
        if let Ok(list) = &listing.outcome {
            let stopped = list.machines.iter().filter(|machine| machine.state == MachineState::Stopped);
            dead.extend(stopped.map(|machine| machine.name.clone()));
        }
        self.state().listing = Some(listing);
        dead
    }
}

/// Asks a plugin for ever what it is.
pub(crate) async fn watch_health(context: Arc<Context>, vendor: Vendor) {
    let Some(slot) = context.vendors.get(&vendor) else { return };
    loop {
        if slot.ask().await {
            context.wake.classes.notify_one();
            context.wake.pods.notify_one();
            let waiting: Vec<String> = context
                .view()
                .claims()
                .filter(|record| {
                    record.claim.launch.as_ref().is_some_and(|launch| launch.offering.vendor == vendor)
                })
                .map(|record| record.claim.name.clone())
                .collect();
            waiting.iter().for_each(|claim| context.wake.claim(claim));
        }
        tokio::time::sleep(if slot.problem().is_some() { RETRY } else { CHECK }).await;
    }
}

/// Lists a plugin's machines for ever, once for all who wait.
pub(crate) async fn watch_machines(context: Arc<Context>, vendor: Vendor) {
    let Some(slot) = context.vendors.get(&vendor) else { return };
    loop {
        slot.list(&context.cluster).await.iter().for_each(|claim| context.wake.claim(claim));
        tokio::time::sleep(LIST_SPACING).await;
    }
}
