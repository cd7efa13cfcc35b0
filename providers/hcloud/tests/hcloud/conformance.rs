//! The suite that every plugin passes.

use std::pin::Pin;
use std::time::Duration;

use scarpenter_core::name::MachineId;
use scarpenter_provider::conformance::{Foreign, Report, Setup, run};

use crate::fake::Fault;
use crate::stage::{Stage, create, stage};

async fn conformance(stage: &Stage) -> Report {
    let id = stage.fake.world().add_foreign("somebody-elses");
    let address = stage.fake.address.clone();
    let is_alive = Box::new(move || -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let url = format!("{address}/servers/{id}");
        Box::pin(async move {
            let http = reqwest::Client::builder().no_proxy().build().unwrap();
            let answer = http.get(url).bearer_auth(crate::fake::TOKEN).send().await.unwrap();
            answer.text().await.unwrap().contains("\"running\"")
        })
    });
    let foreign = Some(Foreign { id: MachineId::new(id.to_string()), is_alive });
    let within = Duration::from_secs(60);
    run(
        &stage.client,
        Setup { create: create("template"), gone_within: within / 6, check_within: within, foreign },
    )
    .await
}

async fn passes(goes_wrong: impl Fn(&Stage)) {
    let stage = stage().await;
    goes_wrong(&stage);
    let report = conformance(&stage).await;
    assert!(report.passed(), "{report}");
    assert!(report.checks.len() >= 20, "{report}");
    let world = stage.fake.world();
    assert_eq!(world.servers.len(), 1, "only the foreign one is left");
    let billed = world.ips.iter().filter(|ip| ip.kind == "ipv4").count();
    assert_eq!(billed, 1, "and its address");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_suite_passes() {
    passes(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_suite_passes_while_the_vendor_has_a_bad_day() {
    passes(|stage| {
        stage.fake.goes_wrong("POST", "/servers", 3, Fault::Lose);
        stage.fake.goes_wrong("POST", "/servers", 2, Fault::Drop);
        stage.fake.goes_wrong("GET", "/servers", 4, Fault::Page(502));
        stage.fake.goes_wrong("DELETE", "/servers", 3, Fault::Lose);
        let at_once = vec![("retry-after", "0".to_owned())];
        stage.fake.goes_wrong("DELETE", "/servers", 3, Fault::Refuse(429, "rate_limit_exceeded", at_once));
        stage.fake.goes_wrong("DELETE", "/servers", 3, Fault::Refuse(423, "locked", Vec::new()));
        stage.fake.goes_wrong("PUT", "/primary_ips", 2, Fault::Refuse(409, "conflict", Vec::new()));
        stage.fake.world().addresses_stay = true;
    })
    .await;
}
