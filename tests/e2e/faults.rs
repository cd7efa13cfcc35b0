//! What vendors, plugins and machines do wrong, each on the running program: a defined outcome, a reason that can be
//! read, and nothing left.

mod creating;
mod joining;
mod leaving;
mod plugins;

use std::sync::Arc;

use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::stage::Setting;
use serde_json::json;

use crate::case::{Case, together};
use crate::scene;

pub(crate) fn add(trials: &mut Trials) {
    trials.add("faults::what_goes_wrong_in_a_vendor_or_a_machine_has_an_outcome_and_a_reason", of_vendors);
    trials.add("faults::a_plugin_that_is_broken_keeps_nobody_else_waiting", of_plugins);
}

/// Flags of scenes in which much is bought and the sweep is not waited for long.
pub(crate) fn busy() -> Setting {
    let flags = ["--sweep-every", "1s", "--sweep-grace", "1s", "--max-usd-per-hour", "1000"];
    let mut setting = Setting::default();
    setting.controller_flags.extend(flags.map(str::to_owned));
    setting
}

async fn of_vendors(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let rules = [creating::RULES, joining::RULES, leaving::RULES].concat();
    let setting = Setting { faults: Some(format!("rules:\n{rules}")), ..busy() };
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        let case = Case::new(stage);
        let impatient = json!({"spec": {
            "vendors": {"aws": {}},
            "join": {"registrationDeadline": "12s"},
        }});
        case.class("impatient", impatient).await?;
        case.pool("impatient", "impatient", json!({})).await?;
        let cases = [creating::cases(case), joining::cases(case), leaving::cases(case)];
        together(cases.into_iter().flatten().collect()).await
    })
    .await
}

async fn of_plugins(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let setting = Setting { faults: Some("rules: []".to_owned()), ..busy() };
    scene(plane, setting, async |stage| plugins::play(stage).await).await
}
