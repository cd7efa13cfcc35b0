//! Stands between the wire and the plugin and does what the rules say: late, twice, never, refused, spoilt.

mod spoil;

use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use scarpenter_core::name::Vendor;
use scarpenter_provider::error::Call;
use scarpenter_provider::pb;
use scarpenter_provider::pb::provider_server::Provider as Wire;
use scarpenter_provider::server::Service;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status};

use crate::cloud::Cloud;
use crate::faults::{Fault, LostAs, Subject, over_rate};
use crate::provider::Player;

use spoil::Spoil;

type Answer<A> = Result<Response<A>, Status>;

pub(crate) struct Tampered {
    plugin: Service<Player>,
    cloud: Arc<Cloud>,
    vendor: Vendor,
    stop: CancellationToken,
}

impl Tampered {
    pub(crate) fn new(
        plugin: Service<Player>,
        cloud: Arc<Cloud>,
        vendor: Vendor,
        stop: CancellationToken,
    ) -> Self {
        Self { plugin, cloud, vendor, stop }
    }

    /// One call with all that is to go wrong around it.
    async fn around<Q: Clone, A: Spoil, F>(
        &self,
        call: Call,
        subject: Subject,
        ask: Q,
        run: impl Fn(Request<Q>) -> F,
    ) -> Answer<A>
    where
        F: Future<Output = Answer<A>>,
    {
        self.before(call, &subject).await?;
        let outcome = if self.is_struck(call, &subject, &Fault::Twice) {
            tokio::join!(run(Request::new(ask.clone())), run(Request::new(ask))).1
        } else {
            run(Request::new(ask)).await
        };
        self.after(call, &subject, outcome).await
    }

    async fn before(&self, call: Call, subject: &Subject) -> Result<(), Status> {
        let delays = self.pick(call, subject, |fault| match fault {
            Fault::Delay(span) => Some(span.0),
            _ => None,
        });
        if self.pause(delays.into_iter().sum()).await.is_break() {
            return Err(ending());
        }
        if self.is_struck(call, subject, &Fault::Hang) {
            return Err(self.never().await);
        }
        if let Some(wait) = self.cloud.faults.over_rate(subject, call, Instant::now()) {
            return Err(over_rate(wait));
        }
        let errors = self.pick(call, subject, |fault| match fault {
            Fault::Error(error) => Some(error.status()),
            _ => None,
        });
        errors.into_iter().next().map_or(Ok(()), Err)
    }

    async fn after<A: Spoil>(&self, call: Call, subject: &Subject, outcome: Answer<A>) -> Answer<A> {
        let delays = self.pick(call, subject, |fault| match fault {
            Fault::DelayAnswer(span) => Some(span.0),
            _ => None,
        });
        // Of a call that was carried out the answer goes out in any case, at the end sooner.
        let _ = self.pause(delays.into_iter().sum()).await;
        let lost = self.pick(call, subject, |fault| match fault {
            Fault::LoseAnswer(how) => Some(*how),
            _ => None,
        });
        match lost.first() {
            Some(LostAs::Aborted) => return Err(Status::aborted("the answer was lost")),
            Some(LostAs::Hang) => return Err(self.never().await),
            Some(LostAs::Die) => std::process::exit(137),
            None => {}
        }
        let nonsense = self.pick(call, subject, |fault| match fault {
            Fault::Nonsense(how) => Some(*how),
            _ => None,
        });
        outcome.map(|mut answer| {
            nonsense.into_iter().for_each(|how| answer.get_mut().spoil(how));
            answer
        })
    }

    /// Hangs until the plugin ends, so that it can end.
    async fn never(&self) -> Status {
        self.stop.cancelled().await;
        ending()
    }

    /// Waits; breaks off when the plugin ends.
    async fn pause(&self, length: Duration) -> ControlFlow<()> {
        tokio::select! {
            () = sleep(length) => ControlFlow::Continue(()),
            () = self.stop.cancelled() => ControlFlow::Break(()),
        }
    }

    fn pick<T>(&self, call: Call, subject: &Subject, pick: impl Fn(&Fault) -> Option<T>) -> Vec<T> {
        self.cloud.faults.strike(subject, call, pick)
    }

    fn is_struck(&self, call: Call, subject: &Subject, by: &Fault) -> bool {
        !self.pick(call, subject, |fault| (fault == by).then_some(())).is_empty()
    }

    fn nothing(&self) -> Subject {
        self.cloud.faults.refresh();
        Subject { vendor: self.vendor.to_string(), ..Subject::default() }
    }

    fn claim(&self, cluster: &str, claim: &str) -> Subject {
        self.cloud.faults.refresh();
        self.cloud.subject_of_claim(&self.vendor, &cluster.into(), &claim.into())
    }

    fn offering(&self, create: &pb::CreateMachineRequest) -> Subject {
        let mut subject = self.nothing();
        if let Some(offering) = &create.offering {
            subject.region = offering.place.as_ref().map(|place| place.region.clone());
            subject.instance_type = Some(offering.instance_type.clone());
            subject.capacity_type = match offering.capacity_type() {
                pb::CapacityType::Unspecified => None,
                pb::CapacityType::OnDemand => Some("on-demand".to_owned()),
                pb::CapacityType::Spot => Some("spot".to_owned()),
            };
        }
        subject
    }

    fn note_received(&self, call: Call, claim: &str, subject: &Subject) {
        let facts = json!({
            "call": call.as_str(), "vendor": subject.vendor, "claim": claim, "region": subject.region,
            "instanceType": subject.instance_type, "capacityType": subject.capacity_type,
        });
        self.cloud.journal.note("received", facts);
    }

    fn note_answered<A>(&self, call: Call, claim: &str, answer: &Answer<A>) {
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        let facts = json!({
            "call": call.as_str(), "vendor": self.vendor, "claim": claim, "code": format!("{code:?}"),
        });
        self.cloud.journal.note("answered", facts);
    }
}

fn ending() -> Status {
    Status::unavailable("the plugin ends")
}

#[tonic::async_trait]
impl Wire for Tampered {
    async fn get_capabilities(
        &self,
        request: Request<pb::GetCapabilitiesRequest>,
    ) -> Answer<pb::GetCapabilitiesResponse> {
        let ask = request.into_inner();
        let run = |request| self.plugin.get_capabilities(request);
        self.around(Call::GetCapabilities, self.nothing(), ask, run).await
    }

    async fn validate(&self, request: Request<pb::ValidateRequest>) -> Answer<pb::ValidateResponse> {
        let run = |request| self.plugin.validate(request);
        self.around(Call::Validate, self.nothing(), request.into_inner(), run).await
    }

    async fn create_machine(
        &self,
        request: Request<pb::CreateMachineRequest>,
    ) -> Answer<pb::CreateMachineResponse> {
        let (call, ask) = (Call::CreateMachine, request.into_inner());
        let (subject, claim) = (self.offering(&ask), ask.claim_uid.clone());
        self.note_received(call, &claim, &subject);
        let answer = self.around(call, subject, ask, |request| self.plugin.create_machine(request)).await;
        self.note_answered(call, &claim, &answer);
        answer
    }

    async fn get_machine(&self, request: Request<pb::GetMachineRequest>) -> Answer<pb::GetMachineResponse> {
        let ask = request.into_inner();
        let subject = self.claim(&ask.cluster_id, &ask.claim_uid);
        self.around(Call::GetMachine, subject, ask, |request| self.plugin.get_machine(request)).await
    }

    async fn list_machines(
        &self,
        request: Request<pb::ListMachinesRequest>,
    ) -> Answer<pb::ListMachinesResponse> {
        let run = |request| self.plugin.list_machines(request);
        self.around(Call::ListMachines, self.nothing(), request.into_inner(), run).await
    }

    async fn delete_machine(
        &self,
        request: Request<pb::DeleteMachineRequest>,
    ) -> Answer<pb::DeleteMachineResponse> {
        let (call, ask) = (Call::DeleteMachine, request.into_inner());
        let (subject, claim) = (self.claim(&ask.cluster_id, &ask.claim_uid), ask.claim_uid.clone());
        self.note_received(call, &claim, &subject);
        let answer = self.around(call, subject, ask, |request| self.plugin.delete_machine(request)).await;
        self.note_answered(call, &claim, &answer);
        answer
    }

    async fn list_offerings(
        &self,
        request: Request<pb::ListOfferingsRequest>,
    ) -> Answer<pb::ListOfferingsResponse> {
        let run = |request| self.plugin.list_offerings(request);
        self.around(Call::ListOfferings, self.nothing(), request.into_inner(), run).await
    }

    async fn get_console_output(
        &self,
        request: Request<pb::GetConsoleOutputRequest>,
    ) -> Answer<pb::GetConsoleOutputResponse> {
        let ask = request.into_inner();
        let subject = self.claim(&ask.cluster_id, &ask.claim_uid);
        self.around(Call::GetConsoleOutput, subject, ask, |request| self.plugin.get_console_output(request))
            .await
    }
}
