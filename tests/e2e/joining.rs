//! How machines join, on the running program: what keeps them from it is said before anything is bought, only a live
//! claim's machine gets certificates and only in its own name, and nothing that admits anybody is left.

mod bad_input;
mod certificates;
mod k3s;
mod requests;

use std::sync::Arc;

use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::stage::Setting;

use crate::case::{Case, together};
use crate::faults::busy;
use crate::scene;

pub(crate) fn add(trials: &mut Trials) {
    trials.add("joining::what_keeps_machines_from_joining_is_said_and_nothing_is_bought", bad_input::play);
    trials.add("joining::nobody_but_its_machine_gets_a_claims_certificates", certificates::play);
    trials.add("joining::a_name_at_a_k3s_server_has_its_password_first_and_is_given_up_last", agents);
}

async fn agents(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let setting = Setting { faults: Some(format!("rules:\n{}", k3s::RULES)), ..busy() };
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        let case = Case::new(stage);
        k3s::prepare(case).await?;
        together(k3s::cases(case)).await
    })
    .await
}
