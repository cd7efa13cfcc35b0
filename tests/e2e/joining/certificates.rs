//! The running approver on a real API server: each refusal beside what is granted.

use std::sync::Arc;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use rcgen::{KeyPair, SanType};
use scarpenter_core::label;
use scarpenter_playground::ControlPlane;
use scarpenter_tests::stage::Setting;

use super::requests::{Answer, Ask, Asker};
use crate::case::{Case, exactly};
use crate::faults::busy;
use crate::scene;

/// The machine boots so long that nobody but the trial asks.
const RULES: &str = "rules: [{instanceType: c7a.large, fault: {machine: {bootDelay: 10m}}}]";

pub(super) async fn play(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let setting = Setting { faults: Some(RULES.to_owned()), ..busy() };
    let kubeconfig = plane.kubeconfig().to_owned();
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        let case = Case::new(stage);
        case.pod("asks", exactly("aws", "c7a.large")).await?;
        let claim = case
            .claim("asks", "its machine is bought", |claim| {
                claim.annotations().contains_key(label::MACHINE_ID)
            })
            .await?;
        let (name, uid) = (claim.name_any(), claim.uid().context("a UID")?);
        let token = token_of(case, &uid).await?;
        let machine = Asker::with_token(case, &kubeconfig, token).await?;
        of_a_token(&machine, &name).await?;
        case.event(&name, "CertificateDenied", &["the subject is not exactly"]).await?;

        let key = KeyPair::generate()?;
        let certificate = machine.granted("the claim's own", &Ask::client(&name), &key).await?;
        machine.granted("the same key again", &Ask::client(&name), &key).await?;
        machine.denied("another key", &Ask::client(&name), "OtherKey").await?;
        let node = Asker::with_certificate(case, &kubeconfig, &certificate, &key).await?;
        of_a_node(&node, &name).await?;

        case.delete(&case.pods(), "asks").await?;
        case.delete(&case.claims(), &name).await?;
        case.until_gone(&case.claims(), &name).await?;
        afterwards(&machine, &node, &name).await
    })
    .await
}

/// As the machine reads it from its document.
async fn token_of(case: Case<'_>, uid: &str) -> anyhow::Result<String> {
    let join: Secret = case.secrets().get(&format!("join-{uid}")).await?;
    let data = join.data.context("data of the join Secret")?;
    let text = |key: &str| String::from_utf8(data[key].0.clone());
    Ok(format!("{}.{}", text("tokenID")?, text("tokenSecret")?))
}

async fn of_a_token(machine: &Asker<'_>, name: &str) -> anyhow::Result<()> {
    let own = Ask::client(name);
    let refused = [
        ("another node's name", Ask::client("kube-control-plane-1"), "WrongSubject"),
        ("another group", Ask { organization: "system:masters", ..own.clone() }, "WrongSubject"),
        ("an alternative name", Ask { alternatives: vec![dns(name)?], ..own.clone() }, "WrongNames"),
        ("another usage", Ask { usages: vec!["client auth", "server auth"], ..own.clone() }, "WrongUsages"),
        ("no client usage", Ask { usages: vec!["digital signature"], ..own.clone() }, "WrongUsages"),
        ("a serving certificate", Ask::serving(name, vec![dns(name)?]), "WrongRequester"),
    ];
    for (what, ask, reason) in refused {
        machine.denied(what, &ask, reason).await?;
    }
    Ok(())
}

async fn of_a_node(node: &Asker<'_>, name: &str) -> anyhow::Result<()> {
    let serving = |names| Ask::serving(name, names);
    let ip = |text: &str| anyhow::Ok(SanType::IpAddress(text.parse()?));
    let refused = [
        ("the address of somebody else", serving(vec![dns(name)?, ip("203.0.113.9")?]), "WrongNames"),
        ("an address of the control plane", serving(vec![ip("127.0.0.1")?]), "WrongNames"),
        ("another DNS name", serving(vec![dns(name)?, dns("kubernetes.default")?]), "WrongNames"),
        ("an e-mail name", serving(vec![SanType::Rfc822Name("a@example.com".try_into()?)]), "WrongNames"),
        ("no name", serving(Vec::new()), "WrongNames"),
        (
            "a client's usage",
            Ask { usages: vec!["server auth", "client auth"], ..serving(vec![dns(name)?]) },
            "WrongUsages",
        ),
    ];
    for (what, ask, reason) in refused {
        node.denied(what, &ask, reason).await?;
    }
    // NodeRestriction does not even let it ask.
    let others = node.ask(&Ask::client("other"), &KeyPair::generate()?).await?;
    ensure!(matches!(others, Answer::NotTaken(403)), "another node's: {others:?}");
    node.granted("its own name", &serving(vec![dns(name)?]), &KeyPair::generate()?).await?;
    // The kubelet renews with a new key.
    node.granted("its renewal", &Ask::client(name), &KeyPair::generate()?).await.map(drop)
}

async fn afterwards(machine: &Asker<'_>, node: &Asker<'_>, name: &str) -> anyhow::Result<()> {
    node.denied("a renewal after release", &Ask::client(name), "NoClaim").await?;
    node.denied("serving after release", &Ask::serving(name, vec![dns(name)?]), "NoClaim").await?;
    // An API server remembers for some seconds that a token was good.
    match machine.ask(&Ask::client(name), &KeyPair::generate()?).await? {
        Answer::NotTaken(401) => Ok(()),
        Answer::Denied(reason) if reason == "NoClaim" => Ok(()),
        other => anyhow::bail!("a token after release: {other:?}"),
    }
}

fn dns(name: &str) -> anyhow::Result<SanType> {
    Ok(SanType::DnsName(name.try_into()?))
}
