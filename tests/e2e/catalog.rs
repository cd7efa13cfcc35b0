//! Where prices come from while the controller runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use kube::{Api, ResourceExt};
use scarpenter_api::condition::{self, Status};
use scarpenter_api::{NodeClaim, ScarpenterNodeClass, reason};
use scarpenter_catalog::Rates;
use scarpenter_catalog::store::{Store, Verdict};
use scarpenter_core::label;
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::stage::{Setting, Stage, Want, metrics};

use crate::scene;

/// Nothing listens there.
const NO_KEEPER: &str = "http://127.0.0.1:1";
const SOON: Duration = Duration::from_secs(60);

pub(crate) fn add(trials: &mut Trials) {
    trials.add("catalog::without_one_nothing_is_bought_and_with_the_first_everything", waits_for_the_first);
    trials.add("catalog::what_a_vendor_says_now_goes_before_the_catalog", live);
}

/// The class's condition `CatalogReady`, once it has this status and reason.
async fn until_said(stage: &Stage, status: Status, word: &str) -> anyhow::Result<String> {
    let classes: Api<ScarpenterNodeClass> = Api::all(stage.client().clone());
    let mut words = String::new();
    stage
        .until(SOON, &format!("CatalogReady is {} for {word}", status.as_str()), async || {
            let class = classes.get("default").await?;
            let found = condition::find(class.conditions(), condition::CATALOG_READY).cloned();
            let said = found.filter(|own| own.status == status && own.reason == word);
            words = said.as_ref().map(|own| own.message.clone()).unwrap_or_default();
            Ok(said.map(drop).ok_or_else(|| format!("{:?}", class.conditions())))
        })
        .await?;
    Ok(words)
}

async fn waits_for_the_first(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    let flags = ["--keeper", NO_KEEPER, "--catalog-folder", path.to_str().context("a plain path")?];
    let mut setting = Setting::default();
    setting.controller_flags.extend(flags.map(str::to_owned));
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        let words = until_said(stage, Status::False, reason::NO_CATALOG).await?;
        ensure!(words.contains(NO_KEEPER), "{words}");
        stage.create(&[Want::exact("one", 0)]).await?;
        // As another process would.
        let mut store = Store::open(&path, Rates::default())?;
        let verdict = store.accept(scarpenter_catalog::sample(&Rates::default()))?;
        ensure!(verdict == Verdict::Taken, "{verdict:?}");
        stage.until_ran(1).await?;
        let (_, port) = stage.controller()?;
        let text = metrics(port).await?;
        for line in [
            "scarpenter_catalog_offerings{vendor=\"hcloud\"}",
            "scarpenter_catalog_refreshes_total{outcome=\"failed\"}",
        ] {
            ensure!(text.contains(line), "{line} is not in\n{text}");
        }
        // The Keeper is still down, which is said and stops nobody.
        let words = until_said(stage, Status::False, reason::CATALOG_NOT_FETCHED).await?;
        ensure!(words.contains(NO_KEEPER) && words.contains("used on is the catalog of"), "{words}");
        stage.until_ready().await
    })
    .await
}

async fn live(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let market = folder.path().join("market.yaml");
    let (vendor, instance_type) = scarpenter_tests::stage::EXACT[4];
    let text = format!(
        "offerings:\n- {{vendor: {vendor}, instanceType: {instance_type}, region: fsn1, microUsdPerHour: 7}}\n\
         - {{vendor: {vendor}, instanceType: {instance_type}, region: nowhere, microUsdPerHour: 0, available: false}}\n"
    );
    std::fs::write(&market, text)?;
    let flags = ["--market".to_owned(), market.to_string_lossy().into_owned()];
    let setting = Setting { sim_flags: flags.to_vec(), ..Setting::default() };
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        let (_, port) = stage.controller()?;
        let line = format!("scarpenter_live_offerings{{provider=\"{vendor}\"}} 2");
        stage
            .until(SOON, "the plugin was asked", async || {
                let text = metrics(port).await.unwrap_or_default();
                Ok(if text.contains(&line) { Ok(()) } else { Err(text) })
            })
            .await?;
        stage.create(&[Want::exact("one", 4).for_seconds(5)]).await?;
        let claims: Api<NodeClaim> = Api::all(stage.client().clone());
        stage
            .until(SOON, "a claim at the live price", async || {
                let list = claims.list(&Default::default()).await?;
                let launches: Vec<String> =
                    list.iter().filter_map(|claim| claim.annotations().get(label::LAUNCH).cloned()).collect();
                let found = launches.iter().any(|launch| launch.contains("\"pricePerHourMicroUsd\":7,"));
                Ok(if found { Ok(()) } else { Err(format!("{launches:?}")) })
            })
            .await?;
        stage.until_ran(1).await
    })
    .await
}
