//! What every part of the controller shares.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use scarpenter_api::NodeClaim;
use scarpenter_core::name::{ClaimUid, ClusterId, Vendor};
use scarpenter_index::View;
use tokio::sync::{Notify, mpsc, watch};

use crate::catalog::Shelf;
use crate::event::Events;
use crate::fence::Fence;
use crate::join::ConfigMaps;
use crate::lessons::Lessons;
use crate::mesh::Mesh;
use crate::metrics::Metrics;
use crate::provisioner::tell::Teller;
use crate::settings::Settings;
use crate::stock::Stock;
use crate::vendors::Vendors;

/// Handles and memories. Everything durable is in the Kubernetes API; what is in here may be lost at any time.
pub(crate) struct Context {
    pub(crate) client: Client,
    /// The same, for requests whose refusal is an answer: nothing is sent again behind our back.
    pub(crate) unrepeated: Client,
    pub(crate) fence: Fence,
    pub(crate) settings: Settings,
    pub(crate) cluster: ClusterId,
    pub(crate) catalog: Shelf,
    pub(crate) vendors: Vendors,
    pub(crate) events: Events,
    /// What machines have taught.
    pub(crate) lessons: Lessons,
    /// What pods are to be told.
    pub(crate) teller: Teller,
    pub(crate) metrics: Arc<Metrics>,
    /// What is usable of each class, as of its latest check.
    pub(crate) classes: Mutex<BTreeMap<String, ClassState>>,
    pub(crate) server: Server,
    pub(crate) config_maps: ConfigMaps,
    pub(crate) mesh: Mesh,
    pub(crate) wake: Wake,
    pub(crate) inflight: Inflight,
    view: Mutex<View>,
    stock: Mutex<Stock>,
    class_uses: Mutex<BTreeMap<String, Instant>>,
    /// When a pod was seen last that had just been bound.
    bound: Mutex<Instant>,
    /// Latest own write of each claim, since the watch may be behind it.
    written: Mutex<HashMap<ClaimUid, Arc<NodeClaim>>>,
    /// Claims that were let go of and are not seen gone yet: nothing is left to do for them.
    released: Mutex<HashSet<ClaimUid>>,
    /// Names of claims that were let go of, the oldest first: nobody may have a certificate in them any more.
    departed: Mutex<VecDeque<String>>,
    /// Ids of bootstrap tokens of self-tests that are running; nobody else answers for them.
    pub(crate) self_tests: Mutex<Vec<String>>,
}

/// How many names of claims that are gone are remembered.
const DEPARTED: usize = 10_000;

/// What every machine must know of the API server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Address that the controller itself uses.
    pub(crate) url: String,
    /// Version, such as `v1.37.2`.
    pub(crate) version: String,
}

/// What is usable of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassState {
    /// Condition Ready.
    pub(crate) ready: bool,
    /// Its vendors, each with why it cannot be used for the class, if so.
    pub(crate) vendors: BTreeMap<Vendor, Option<String>>,
    /// Why it is not ready.
    pub(crate) why: String,
}

/// Who waits for what.
pub(crate) struct Wake {
    /// Names of claims to look at.
    claims: mpsc::UnboundedSender<String>,
    /// Pending pods to plan.
    pub(crate) pods: Notify,
    /// Classes to look at.
    pub(crate) classes: Notify,
    /// Pools to look at.
    pub(crate) pools: Notify,
    /// Nodes without a claim to look at.
    pub(crate) orphans: Notify,
}

/// Counts effects that must not be dropped; shutdown waits for them.
#[derive(Debug)]
pub(crate) struct Inflight(watch::Sender<usize>);

/// One effect in flight.
#[derive(Debug)]
pub(crate) struct Guard<'a>(&'a Inflight);

impl Inflight {
    pub(crate) fn begin(&self) -> Guard<'_> {
        self.0.send_modify(|count| *count += 1);
        Guard(self)
    }

    /// Returns when nothing is in flight.
    pub(crate) async fn wait(&self) {
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Default for Inflight {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Wake {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (claims, receiver) = mpsc::unbounded_channel();
        let wake = Self {
            claims,
            pods: Notify::new(),
            classes: Notify::new(),
            pools: Notify::new(),
            orphans: Notify::new(),
        };
        (wake, receiver)
    }

    /// Looks at a claim again soon.
    pub(crate) fn claim(&self, name: &str) {
        // The receiver ends only with the process.
        let _ = self.claims.send(name.to_owned());
    }
}

/// What a context is made of.
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) unrepeated: Client,
    pub(crate) fence: Fence,
    pub(crate) settings: Settings,
    pub(crate) vendors: Vendors,
    pub(crate) cluster: ClusterId,
    pub(crate) catalog: Shelf,
    pub(crate) server: Server,
    pub(crate) metrics: Arc<Metrics>,
}

impl Context {
    pub(crate) fn new(parts: Parts) -> (Self, mpsc::UnboundedReceiver<String>) {
        let Parts { client, unrepeated, fence, settings, vendors, cluster, catalog, server, metrics } = parts;
        let (wake, receiver) = Wake::new();
        let context = Self {
            vendors,
            events: Events::new(&settings.component),
            lessons: Lessons::default(),
            teller: Teller::default(),
            client,
            unrepeated,
            fence,
            settings,
            cluster,
            catalog,
            metrics,
            classes: Mutex::default(),
            server,
            config_maps: ConfigMaps::default(),
            mesh: Mesh::default(),
            wake,
            inflight: Inflight::default(),
            view: Mutex::default(),
            stock: Mutex::default(),
            class_uses: Mutex::default(),
            bound: Mutex::new(Instant::now()),
            written: Mutex::default(),
            released: Mutex::default(),
            departed: Mutex::default(),
            self_tests: Mutex::default(),
        };
        (context, receiver)
    }

    /// The cluster as known; never held over an await.
    pub(crate) fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory of refusals; never held over an await.
    pub(crate) fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When each class was last used, or held for a claim to come; never held over an await.
    pub(crate) fn class_uses(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.class_uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pod has just been bound.
    pub(crate) fn saw_bound(&self) {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long no pod was bound, as far as this process has seen.
    pub(crate) fn quiet(&self) -> Duration {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// State of a class as of its latest check.
    pub(crate) fn class_state(&self, name: &str) -> ClassState {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned().unwrap_or_default()
    }

    /// Remembers an own write, so that a look does not start from an older state.
    pub(crate) fn wrote(&self, claim: &NodeClaim) {
        let object = Arc::new(claim.clone());
        if let Some(uid) = &claim.metadata.uid {
            self.written
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(ClaimUid::new(uid.clone()), Arc::clone(&object));
        }
        self.view().apply_claim(object);
    }

    /// Forgets the own writes of a claim that is gone.
    pub(crate) fn forget(&self, uid: &ClaimUid) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        self.released.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// Remembers that a claim was let go of, since the watch may be behind it.
    pub(crate) fn released(&self, uid: &ClaimUid, name: &str) {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.clone());
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        if departed.len() == DEPARTED {
            departed.pop_front();
        }
        departed.push_back(name.to_owned());
    }

    /// Whether a claim of this name was let go of lately.
    pub(crate) fn had(&self, name: &str) -> bool {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|own| own == name)
    }

    /// Whether a claim was let go of.
    pub(crate) fn is_released(&self, claim: &NodeClaim) -> bool {
        let uid = claim.metadata.uid.as_deref().unwrap_or_default();
        self.released.lock().unwrap_or_else(PoisonError::into_inner).contains(&ClaimUid::from(uid))
    }

    /// The newer of what was read and what was written last.
    pub(crate) fn newest(&self, read: Arc<NodeClaim>) -> Arc<NodeClaim> {
        let uid = ClaimUid::new(read.metadata.uid.clone().unwrap_or_default());
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        match written.get(&uid) {
            Some(own) if version(own) > version(&read) => Arc::clone(own),
            _ => read,
        }
    }
}

/// Resource versions of one object grow; Kubernetes lets clients compare them since 1.35.
fn version(claim: &NodeClaim) -> u64 {
    claim.metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0)
}
