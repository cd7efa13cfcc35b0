//! A scheduler extender: it can only take nodes away from those that the scheduler's own plugins let pass.
//!
//! So a pod that may go to one node alone is bound there exactly when the kube-scheduler finds that node fit, with all
//! other nodes and pods in its sight: that is how a plan is put to it as it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use scarpenter_core::pod::PodKey;
use serde_json::{Value, json};

/// Which nodes a pod may go to; a pod that is not named may go anywhere.
#[derive(Clone, Default)]
pub(crate) struct Steering(Arc<Mutex<BTreeMap<PodKey, BTreeSet<String>>>>);

impl Steering {
    pub(crate) fn allow_only(&self, pod: PodKey, nodes: BTreeSet<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pod, nodes);
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Answers on loopback, in a thread that ends with the process; the port.
    pub(crate) fn serve(&self) -> io::Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let steering = self.clone();
        let answer = move |body: Bytes| {
            let answer = steering.filter(&body);
            async move { answer.to_string() }
        };
        let router = Router::new().route("/filter", post(answer));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                axum::serve(listener, router).await
            })
        });
        Ok(port)
    }

    fn filter(&self, body: &[u8]) -> Value {
        match self.passed(body) {
            Ok((passed, held)) => json!({"NodeNames": passed, "FailedNodes": held}),
            Err(words) => json!({"Error": words}),
        }
    }

    fn passed(&self, body: &[u8]) -> Result<(Vec<String>, BTreeMap<String, &'static str>), String> {
        let asked: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let metadata = &asked["Pod"]["metadata"];
        let part = |key: &str| metadata[key].as_str().unwrap_or_default();
        let pod = PodKey::new(part("namespace"), part("name"));
        let nodes = asked["NodeNames"].as_array().ok_or("no node names")?;
        let nodes = nodes.iter().filter_map(Value::as_str).map(str::to_owned);
        let steered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(allowed) = steered.get(&pod) else { return Ok((nodes.collect(), BTreeMap::new())) };
        let (passed, held): (Vec<_>, Vec<_>) = nodes.partition(|node| allowed.contains(node));
        Ok((passed, held.into_iter().map(|node| (node, "is not the planned one")).collect()))
    }
}

/// The scheduler's configuration: as by default, but for the extender, a short pause before a pod is tried again, and
/// every node being looked at.
pub(crate) fn configuration(port: u16) -> String {
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "scheduler.kubeconfig", "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": false},
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "extenders": [{
            "urlPrefix": format!("http://127.0.0.1:{port}"),
            "filterVerb": "filter",
            "nodeCacheCapable": true,
        }],
    })
    .to_string()
}
