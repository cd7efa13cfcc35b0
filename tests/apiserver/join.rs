//! A machine joins a real control plane by nothing but its document: token, CSR, certificate, Node, Lease, pods.
//!
//! The trials approve by the controller's own decision; only the metal is missing.

mod machine;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use scarpenter_core::resources::{CPU, MEMORY};
use scarpenter_hollow::{Faults, State};
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use serde_json::{Value, json};

use self::machine::{Machine, NODE_READY_WITHIN, eventually};

/// Adds the trials of this module.
pub(crate) fn add(trials: &mut Trials) {
    trials.add("join::a_machine_becomes_a_node_by_its_document", a_machine_becomes_a_node_by_its_document);
    trials.add("join::a_scheduled_pod_runs_and_ends", a_scheduled_pod_runs_and_ends);
    trials.add("join::a_pod_that_does_not_fit_is_rejected", a_pod_that_does_not_fit_is_rejected);
    trials.add("join::an_evicting_taint_keeps_a_bound_pod_out", an_evicting_taint_keeps_a_bound_pod_out);
    trials.add("join::a_deleted_pod_goes_after_its_shutdown", a_deleted_pod_goes_after_its_shutdown);
    trials.add("join::how_a_held_pod_ended_can_be_read", how_a_held_pod_ended_can_be_read);
    trials.add("join::another_name_is_denied", another_name_is_denied);
    trials.add("join::a_wrong_token_ends_at_the_deadline", a_wrong_token_ends_at_the_deadline);
    trials.add("join::faults_show_on_the_node", faults_show_on_the_node);
    trials.add("join::a_refused_node_is_tried_for_ever", a_refused_node_is_tried_for_ever);
    trials.add("join::what_others_write_on_the_node_stays", what_others_write_on_the_node_stays);
    trials.add("join::a_stopped_machine_is_silent", a_stopped_machine_is_silent);
    trials.add("join::a_machine_that_runs_on_is_the_same_node", a_machine_that_runs_on_is_the_same_node);
    trials.add("join::several_servers_are_tried_in_turn", several_servers_are_tried_in_turn);
    trials.add("join::many_machines_join_at_once", many_machines_join_at_once);
}

async fn a_machine_becomes_a_node_by_its_document(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "becomes").await?;
    let running = machine.start(Faults::default());
    let node = machine.ready_node().await?;
    assert_eq!(*running.state().borrow(), State::Joined);
    let labels = node.metadata.labels.context("labels")?;
    assert_eq!(labels.get("scarpenter.sparecores.com/vendor").map(String::as_str), Some("hcloud"));
    assert_eq!(labels.get("kubernetes.io/hostname"), Some(&machine.name));
    assert_eq!(labels.get("node.kubernetes.io/instance-type").map(String::as_str), Some("ccx33"));
    assert!(!labels.contains_key("node-restriction.kubernetes.io/team"));
    let spec = node.spec.context("spec")?;
    assert_eq!(spec.provider_id, Some(machine.provider_id.clone()));
    let has = |key: &str| spec.taints.iter().flatten().any(|taint| taint.key == key);
    assert!(has("karpenter.sh/unregistered") && has("example.com/dedicated"), "{:?}", spec.taints);
    let status = node.status.context("status")?;
    let amount = |name: &str| status.allocatable.as_ref().and_then(|all| all.get(name)).map(|q| q.0.clone());
    assert_eq!(amount(CPU).as_deref(), Some("3900m"));
    assert_eq!(status.node_info.context("nodeInfo")?.kubelet_version, "v1.37.2");

    let csrs = machine.csrs().await?;
    let users: Vec<_> = csrs.iter().map(|csr| csr.spec.username.clone().unwrap_or_default()).collect();
    assert!(users.contains(&format!("system:bootstrap:{}", machine.token_id)), "{users:?}");
    eventually("the serving certificate", async || {
        let csrs = machine.csrs().await?;
        let serving = csrs.iter().find(|csr| csr.spec.signer_name == "kubernetes.io/kubelet-serving");
        Ok(serving.is_some_and(|csr| csr.status.as_ref().is_some_and(|status| status.certificate.is_some())))
    })
    .await?;
    let console = running.console();
    ensure!(!console.contains(&machine.token_secret), "the console shows the token: {console}");
    running.stop().await;
    Ok(())
}

async fn a_scheduled_pod_runs_and_ends(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "scheduled").await?;
    let running = machine.start(Faults::default());
    machine.ready_node().await?;
    machine.clear_taints().await?;
    let pod = machine.pod("short", json!({"run-seconds": "1"}), json!({}));
    machine.create(&pod).await?;
    let ran = machine.pod_when("short", |pod| phase(pod) == "Running").await?;
    let status = ran.status.context("status")?;
    ensure!(status.start_time.is_some());
    let ready = |status: &k8s_openapi::api::core::v1::PodStatus| {
        status.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
    };
    ensure!(ready(&status), "{:?}", status.conditions);
    ensure!(status.container_statuses.iter().flatten().all(|container| container.ready));
    let ended = machine.pod_when("short", |pod| phase(pod) == "Succeeded").await?;
    ensure!(!ready(ended.status.as_ref().context("status")?));
    let failing = machine.pod("failing", json!({"run-seconds": "0.1", "exit-code": "3"}), json!({}));
    machine.create(&failing).await?;
    machine.pod_when("failing", |pod| phase(pod) == "Failed").await?;

    let mut unhealthy = machine.pod("unhealthy", json!({}), json!({}));
    unhealthy.metadata.labels = Some([("kwok.x-k8s.io/stage".to_owned(), "unhealthy".to_owned())].into());
    machine.create(&unhealthy).await?;
    let seen = machine.pod_when("unhealthy", |pod| phase(pod) == "Running").await?;
    ensure!(!ready(seen.status.as_ref().context("status")?));
    running.stop().await;
    Ok(())
}

async fn a_pod_that_does_not_fit_is_rejected(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "fits").await?;
    let running = machine.start(Faults::default());
    machine.ready_node().await?;
    machine.clear_taints().await?;
    for (name, cpu) in [("first", "3"), ("second", "2")] {
        let mut pod = machine.pod(name, json!({}), json!({"requests": {"cpu": cpu}}));
        pod.spec.as_mut().context("spec")?.node_name = Some(machine.name.clone());
        machine.create(&pod).await?;
        machine.pod_when(name, |pod| phase(pod) != "Pending").await?;
    }
    let rejected = machine.pod_when("second", |pod| phase(pod) == "Failed").await?;
    assert_eq!(rejected.status.context("status")?.reason.as_deref(), Some("OutOfcpu"));
    machine.pods().delete("first", &DeleteParams::default()).await?;
    machine.pod_gone("first").await?;
    let mut third = machine.pod("third", json!({}), json!({"requests": {"cpu": "2"}}));
    third.spec.as_mut().context("spec")?.node_name = Some(machine.name.clone());
    machine.create(&third).await?;
    machine.pod_when("third", |pod| phase(pod) == "Running").await?;
    running.stop().await;
    Ok(())
}

async fn an_evicting_taint_keeps_a_bound_pod_out(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "evicting").await?;
    let running = machine.start(Faults::default());
    machine.ready_node().await?;
    let bound = |name: &str, tolerations: Value| -> anyhow::Result<Pod> {
        let mut pod = machine.pod(name, json!({}), json!({}));
        let spec = pod.spec.as_mut().context("spec")?;
        spec.node_name = Some(machine.name.clone());
        spec.tolerations = serde_json::from_value(tolerations)?;
        Ok(pod)
    };
    machine.create(&bound("tolerant", json!([{"operator": "Exists"}]))?).await?;
    machine.pod_when("tolerant", |pod| phase(pod) == "Running").await?;
    // The taint manager deletes it as well; the rejection comes first or the pod goes.
    machine.create(&bound("plain", json!([]))?).await?;
    eventually("the plain pod to be kept out", async || {
        let pod = machine.pods().get_opt("plain").await?;
        let reason = pod.as_ref().and_then(|pod| pod.status.as_ref()?.reason.clone());
        ensure!(pod.as_ref().is_none_or(|pod| phase(pod) != "Running"), "it runs");
        Ok(pod.is_none() || reason.as_deref() == Some("TaintToleration"))
    })
    .await?;
    running.stop().await;
    Ok(())
}

async fn a_deleted_pod_goes_after_its_shutdown(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "deleted").await?;
    let running = machine.start(Faults::default());
    machine.ready_node().await?;
    machine.clear_taints().await?;
    for (name, delay) in [("slow", "1h"), ("quick", "0s")] {
        let mut pod = machine.pod(name, json!({}), json!({}));
        let delay = ("pod-delete.stage.kwok.x-k8s.io/delay".to_owned(), delay.to_owned());
        pod.metadata.annotations.get_or_insert_default().extend([delay]);
        machine.create(&pod).await?;
        machine.pod_when(name, |pod| phase(pod) == "Running").await?;
        machine.pods().delete(name, &DeleteParams::default().grace_period(600)).await?;
    }
    machine.pod_gone("quick").await?;
    let slow = machine.pods().get("slow").await?;
    ensure!(slow.metadata.deletion_timestamp.is_some(), "it is shutting down");
    machine.pods().delete("slow", &DeleteParams::default().grace_period(1)).await?;
    machine.pod_gone("slow").await?;
    running.stop().await;
    Ok(())
}

async fn how_a_held_pod_ended_can_be_read(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "held").await?;
    let running = machine.start(Faults::default());
    machine.ready_node().await?;
    machine.clear_taints().await?;
    let mut pod = machine.pod("held", json!({}), json!({}));
    pod.metadata.finalizers = Some(vec!["example.com/reader".to_owned()]);
    machine.create(&pod).await?;
    machine.pod_when("held", |pod| phase(pod) == "Running").await?;
    machine.pods().delete("held", &DeleteParams::default()).await?;
    let ended = machine.pod_when("held", |pod| phase(pod) == "Failed").await?;
    let statuses = ended.status.and_then(|status| status.container_statuses).context("container statuses")?;
    let code =
        statuses[0].state.as_ref().and_then(|state| state.terminated.as_ref()).map(|end| end.exit_code);
    assert_eq!(code, Some(143));
    let release = json!({"metadata": {"finalizers": null}});
    machine.pods().patch("held", &PatchParams::default(), &Patch::Merge(&release)).await?;
    machine.pod_gone("held").await?;
    running.stop().await;
    Ok(())
}

async fn another_name_is_denied(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "other-name").await?;
    let faults = Faults { joins_as: Some("control-plane-1".to_owned()), ..Faults::default() };
    let running = machine.start(faults);
    eventually("the console to tell of the denial", async || {
        let console = running.console();
        Ok(console.contains("denied") && console.contains("WrongSubject"))
    })
    .await?;
    assert_eq!(*running.state().borrow(), State::Joining);
    let nodes: Api<Node> = Api::all(machine.client.clone());
    ensure!(nodes.get_opt("control-plane-1").await?.is_none());
    running.stop().await;
    Ok(())
}

async fn a_wrong_token_ends_at_the_deadline(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "wrong-token").await?;
    machine.delete_token().await?;
    let running = machine.start_with(Faults::default(), |join| join.never_joined_after = Some(3));
    let mut state = running.state();
    tokio::time::timeout(Duration::from_secs(30), state.wait_for(|state| *state == State::Off)).await??;
    let console = running.console();
    ensure!(console.contains("Unauthorized") && console.contains("never joined"), "{console}");
    ensure!(!console.contains(&machine.token_secret), "{console}");
    Ok(())
}

async fn faults_show_on_the_node(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "faults").await?;
    let faults = Faults {
        memory_percent: 50,
        drop_labels: true,
        drop_taints: true,
        never_ready: true,
        ..Faults::default()
    };
    let running = machine.start(faults);
    let mut state = running.state();
    tokio::time::timeout(NODE_READY_WITHIN, state.wait_for(|state| *state == State::Joined)).await??;
    let node = machine.nodes().get(&machine.name).await?;
    let labels = node.metadata.labels.context("labels")?;
    ensure!(
        !labels.contains_key("scarpenter.sparecores.com/vendor") && labels.contains_key("kubernetes.io/arch")
    );
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    ensure!(!taints.iter().any(|taint| taint.key == "karpenter.sh/unregistered"), "{taints:?}");
    let capacity = node.status.and_then(|status| status.capacity).context("capacity")?;
    assert_eq!(capacity.get(MEMORY).map(|quantity| quantity.0.as_str()), Some("4Gi"));
    eventually("the console to say why", async || Ok(running.console().contains("network is not ready")))
        .await?;
    let node = machine.nodes().get(&machine.name).await?;
    ensure!(!machine::is_ready(&node));
    running.stop().await;
    Ok(())
}

async fn a_refused_node_is_tried_for_ever(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "refused").await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(machine.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(machine.client.clone());
    let name = machine.name.as_str();
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}
            ]},
            "validations": [{"expression": format!("object.metadata.name != '{name}'"), "message": "not this one"}],
        },
    }))?;
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }))?;
    policies.create(&PostParams::default(), &policy).await?;
    bindings.create(&PostParams::default(), &binding).await?;
    eventually("the policy to hold", async || {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        Ok(machine.nodes().create(&dry, &node).await.is_err())
    })
    .await?;
    let running = machine.start(Faults::default());
    eventually("the console to tell of the refusal", async || Ok(running.console().contains("not this one")))
        .await?;
    assert_eq!(*running.state().borrow(), State::Joining);
    bindings.delete(name, &DeleteParams::default()).await?;
    policies.delete(name, &DeleteParams::default()).await?;
    machine.ready_node().await?;
    running.stop().await;
    Ok(())
}

async fn what_others_write_on_the_node_stays(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "stays").await?;
    let running = machine.start(Faults::default());
    machine.ready_node().await?;
    let labels =
        json!({"metadata": {"labels": {"node.kubernetes.io/instance-type": null}}, "spec": {"taints": []}});
    machine.nodes().patch(&machine.name, &PatchParams::default(), &Patch::Merge(&labels)).await?;
    let old = "2020-01-01T00:00:00Z";
    let condition = json!({"status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "Test", "lastHeartbeatTime": old, "lastTransitionTime": old}
    ]}});
    machine
        .nodes()
        .patch_status(&machine.name, &PatchParams::default(), &Patch::Strategic(&condition))
        .await?;
    machine.lease_renewed().await?;
    machine.lease_renewed().await?;
    let node = machine.nodes().get(&machine.name).await?;
    ensure!(!machine::is_ready(&node), "the kubelet wrote Ready back");
    ensure!(!node.metadata.labels.unwrap_or_default().contains_key("node.kubernetes.io/instance-type"));
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    ensure!(!taints.iter().any(|taint| taint.key == "karpenter.sh/unregistered"), "{taints:?}");
    running.stop().await;
    Ok(())
}

async fn a_stopped_machine_is_silent(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "stopped").await?;
    let running = machine.start(Faults::default());
    machine.ready_node().await?;
    machine.clear_taints().await?;
    machine.lease_renewed().await?;
    running.stop().await;
    let leases: Api<Lease> = Api::namespaced(machine.client.clone(), "kube-node-lease");
    let before = leases.get(&machine.name).await?.spec.and_then(|spec| spec.renew_time);
    let mut pod = machine.pod("late", json!({}), json!({}));
    pod.spec.as_mut().context("spec")?.node_name = Some(machine.name.clone());
    machine.create(&pod).await?;
    tokio::time::sleep(Duration::from_secs(12)).await;
    let after = leases.get(&machine.name).await?.spec.and_then(|spec| spec.renew_time);
    assert_eq!(before, after);
    assert_eq!(phase(&machine.pods().get("late").await?), "Pending");
    ensure!(machine.nodes().get_opt(&machine.name).await?.is_some(), "its Node stays");
    Ok(())
}

/// Only the process that plays it ended: no boot, no certificate, no second registration; its pods have gone on.
async fn a_machine_that_runs_on_is_the_same_node(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "runs-on").await?;
    let folder = tempfile::tempdir()?;
    let disk = folder.path().join("disk");
    let running = machine.start_from(&disk, Duration::ZERO);
    let before = machine.ready_node().await?;
    machine.clear_taints().await?;
    let pod = machine.pod("short", json!({"run-seconds": "2"}), json!({}));
    machine.create(&pod).await?;
    machine.pod_when("short", |pod| phase(pod) == "Running").await?;
    let client_requests = async || {
        let csrs = machine.csrs().await?;
        let client = csrs.iter().filter(|csr| csr.spec.signer_name.contains("apiserver-client"));
        anyhow::Ok(client.count())
    };
    let asked = client_requests().await?;
    running.stop().await;

    // The token is gone by now, as after a registration.
    machine.delete_token().await?;
    let again = machine.start_from(&disk, Duration::from_secs(3600));
    machine.pod_when("short", |pod| phase(pod) == "Succeeded").await?;
    let late = machine.pod("late", json!({"run-seconds": "0"}), json!({}));
    machine.create(&late).await?;
    machine.pod_when("late", |pod| phase(pod) == "Succeeded").await?;
    machine.lease_renewed().await?;
    let after = machine.nodes().get(&machine.name).await?;
    assert_eq!(before.metadata.uid, after.metadata.uid);
    assert_eq!(client_requests().await?, asked);
    again.stop().await;

    // A node that somebody has deleted is not put back.
    machine.nodes().delete(&machine.name, &DeleteParams::default()).await?;
    let third = machine.start_from(&disk, Duration::ZERO);
    let mut state = third.state();
    tokio::time::timeout(NODE_READY_WITHIN, state.wait_for(|state| *state == State::Joined)).await??;
    ensure!(machine.nodes().get_opt(&machine.name).await?.is_none());
    third.stop().await;
    Ok(())
}

async fn several_servers_are_tried_in_turn(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let machine = Machine::new(&plane, "in-turn").await?;
    let running = machine.start_with(Faults::default(), |join| {
        // Nobody listens on port 1.
        join.servers.insert(0, "https://127.0.0.1:1".to_owned());
    });
    machine.ready_node().await?;
    running.stop().await;
    Ok(())
}

/// Prints how long it takes; `SCARPENTER_HOLLOW_NODES` sets how many.
async fn many_machines_join_at_once(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let count =
        std::env::var("SCARPENTER_HOLLOW_NODES").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let cases: Vec<String> = (0..count).map(|number: u32| format!("many-{number}")).collect();
    let machines = Machine::several(&plane, &cases).await?;
    let began = std::time::Instant::now();
    let running: Vec<_> = machines.iter().map(|machine| machine.start(Faults::default())).collect();
    for machine in &machines {
        machine.ready_node().await?;
    }
    eprintln!("{count} hollow nodes were ready after {:.1} s", began.elapsed().as_secs_f64());
    if count > 100 {
        let (cpu, rss) = (machine::cpu_seconds()?, machine::resident_mib()?);
        tokio::time::sleep(Duration::from_secs(30)).await;
        let used = machine::cpu_seconds()? - cpu;
        eprintln!("idle: {:.1} % of one CPU, {rss} MiB resident", used / 0.3);
    }
    for node in running {
        node.stop().await;
    }
    Ok(())
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

async fn all_csrs(client: &Client) -> anyhow::Result<Vec<CertificateSigningRequest>> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    Ok(api.list(&ListParams::default()).await?.items)
}
