//! The controller's side: domain types in, checked domain types out.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use scarpenter_core::name::{ClaimUid, ClusterId, Vendor};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, ClientTlsConfig};
use tonic::{Request, Response, Status};

use crate::capabilities::{CONTRACT_VERSION, Capabilities};
use crate::endpoint::{Endpoint, TlsError, TlsMaterial};
use crate::error::{Call, Created, Deleted, Error, refusal_of};
use crate::failure::{Cause, Failure, readable};
use crate::machine::{Machine, MachineList};
use crate::pb;
use crate::pb::provider_client::ProviderClient;
use crate::request::{ClassCheck, CreateMachine, DeleteMachine, FindMachine, LiveOfferings, Problem};
use crate::wire::{Wrong, answer};

/// Largest message either side reads: some forty thousand machines.
pub(crate) const LARGEST_MESSAGE: usize = 16 << 20;
const DEADLINE: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(60);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Calls the plugin of one vendor. Cheap to clone; clones share the connection.
///
/// # Guarantees
/// - No answer is believed that names another claim or cluster, or leaves out what others decide by.
/// - A create is never cut off: not by a deadline, and not by dropping the future that waits for it.
///   [`Client::quiesce`] waits for those in flight.
#[derive(Clone)]
pub struct Client {
    vendor: Vendor,
    stub: ProviderClient<Channel>,
    deadline: Duration,
    patience: Duration,
    creates: TaskTracker,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The files of mutual TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address, or what the files hold.
    #[error("set up the connection to {endpoint}")]
    Endpoint {
        /// Which.
        endpoint: String,
        /// Why not.
        #[source]
        source: tonic::transport::Error,
    },
}

impl Client {
    /// A client that connects when it is first used, and again whenever the connection breaks.
    ///
    /// # Errors
    /// When certificate files cannot be read or the address cannot be used; never because the plugin is away.
    pub fn connect(vendor: Vendor, endpoint: &Endpoint) -> Result<Self, ConnectError> {
        let unusable = |source| ConnectError::Endpoint { endpoint: endpoint.to_string(), source };
        let mut target = tonic::transport::Endpoint::from_shared(endpoint.to_string())
            .map_err(unusable)?
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE);
        if let Endpoint::Tls { files, .. } = endpoint {
            let TlsMaterial { ca, identity } = TlsMaterial::read(files.as_ref())?;
            let tls = ClientTlsConfig::new().ca_certificate(ca).identity(identity);
            target = target.tls_config(tls).map_err(unusable)?;
        }
        let stub = ProviderClient::new(target.connect_lazy()).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self { vendor, stub, deadline: DEADLINE, patience: PATIENCE, creates: TaskTracker::new() })
    }

    /// The same with another deadline for every call but create; 30 s unless set.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The same with another time after which [`Client::create_machine`] stops waiting; 60 s unless set.
    #[must_use]
    pub fn with_create_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Whose plugin this calls.
    #[must_use]
    pub fn vendor(&self) -> &Vendor {
        &self.vendor
    }

    /// Who the plugin is and what it can do.
    ///
    /// # Errors
    /// [`Error::OtherVendor`], [`Error::OtherContract`]: it must not be used.
    pub async fn capabilities(&self) -> Result<Capabilities, Error> {
        let call = Call::GetCapabilities;
        let mut stub = self.stub.clone();
        let answer = self.ask(call, pb::GetCapabilitiesRequest {}, |r| stub.get_capabilities(r)).await?;
        if answer.contract_version != CONTRACT_VERSION {
            return Err(Error::OtherContract { expected: CONTRACT_VERSION, found: answer.contract_version });
        }
        let capabilities = checked(call, answer::capabilities(answer))?;
        if capabilities.vendor == self.vendor {
            Ok(capabilities)
        } else {
            Err(Error::OtherVendor { expected: self.vendor.clone(), found: capabilities.vendor })
        }
    }

    /// What stands in the way of a class, as far as it concerns this vendor; empty when nothing does.
    ///
    /// # Errors
    /// Nothing was learned.
    pub async fn validate(&self, check: ClassCheck) -> Result<Vec<Problem>, Error> {
        let mut stub = self.stub.clone();
        let answer = self.ask(Call::Validate, pb::ValidateRequest::from(check), |r| stub.validate(r)).await?;
        checked(Call::Validate, answer.problems.into_iter().map(answer::problem).collect())
    }

    /// Makes the machine of a claim, or finds it if it was made before.
    ///
    /// The call has no deadline. When nothing came back within the patience the outcome is [`Error::Unknown`],
    /// and the call goes on without its caller.
    ///
    /// # Errors
    /// Only [`Error::had_no_effect`] says that the same request may be sent again without looking first.
    pub async fn create_machine(&self, create: CreateMachine) -> Result<Created, Error> {
        let unknown =
            |message: &str| Error::Unknown { call: Call::CreateMachine, message: message.to_owned() };
        let (answer, answered) = oneshot::channel();
        let (client, claim) = (self.clone(), create.claim.clone());
        self.creates.spawn(async move {
            if let Err(Ok(late)) = answer.send(client.send_create(create).await) {
                tracing::info!(vendor = %client.vendor, %claim, outcome = late.word(), "late answer to a create");
            }
        });
        match tokio::time::timeout(self.patience, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(unknown("the call broke off")),
            Err(_) => Err(unknown("no answer yet")),
        }
    }

    /// Waits until no create is in flight. For the end of the process.
    pub async fn quiesce(&self) {
        self.creates.close();
        self.creates.wait().await;
        self.creates.reopen();
    }

    /// How many creates are in flight.
    #[must_use]
    pub fn creates_in_flight(&self) -> usize {
        self.creates.len()
    }

    /// One create, cut off when dropped.
    pub(crate) async fn send_create(&self, create: CreateMachine) -> Result<Created, Error> {
        let call = Call::CreateMachine;
        let expected = create.clone();
        match self.stub.clone().create_machine(pb::CreateMachineRequest::from(create)).await {
            Ok(answer) => {
                let machine = answer::machine(&self.vendor, answer.into_inner().machine);
                checked(call, machine.and_then(|machine| as_asked(machine, &expected))).map(Created::Machine)
            }
            Err(status) => match local(call, &status) {
                Some(error) => Err(error),
                None => refusal_of(Failure::from_status(&status)).map(Created::Refused),
            },
        }
    }

    /// For what the domain types cannot say.
    pub(crate) fn raw(&self) -> ProviderClient<Channel> {
        self.stub.clone()
    }

    /// The machine of a claim as the vendor reports it now; of several the one with the id, else the oldest.
    ///
    /// # Errors
    /// Nothing was learned.
    pub async fn get_machine(&self, find: FindMachine) -> Result<Option<Machine>, Error> {
        let call = Call::GetMachine;
        let (cluster, claim) = (find.cluster.clone(), find.claim.clone());
        let mut stub = self.stub.clone();
        let found = self.find(call, pb::GetMachineRequest::from(find), |r| stub.get_machine(r)).await?;
        let Some(answer) = found else { return Ok(None) };
        let machine = answer::machine(&self.vendor, answer.machine);
        checked(call, machine.and_then(|machine| owned_by(machine, &cluster, &claim))).map(Some)
    }

    /// Every machine of a cluster, and where the list is complete.
    ///
    /// # Errors
    /// Nothing was learned: nothing may be taken for gone.
    pub async fn list_machines(&self, cluster: &ClusterId) -> Result<MachineList, Error> {
        let call = Call::ListMachines;
        let request = pb::ListMachinesRequest { cluster_id: cluster.to_string() };
        let mut stub = self.stub.clone();
        let answer = self.ask(call, request, |r| stub.list_machines(r)).await?;
        let list = checked(call, answer::machine_list(&self.vendor, answer))?;
        match list.machines.iter().find(|machine| machine.cluster != *cluster) {
            Some(machine) => Err(Error::Nonsense {
                call,
                problem: format!("machine {} is of another cluster", machine.id),
            }),
            None => Ok(list),
        }
    }

    /// Asks for the end of the machines of a claim.
    ///
    /// # Errors
    /// Not known: ask again; deleting twice does no harm.
    pub async fn delete_machine(&self, delete: DeleteMachine) -> Result<Deleted, Error> {
        let mut stub = self.stub.clone();
        let request = pb::DeleteMachineRequest::from(delete);
        let asked = self.find(Call::DeleteMachine, request, |r| stub.delete_machine(r)).await?;
        Ok(asked.map_or(Deleted::Gone, |_| Deleted::Asked))
    }

    /// Live price and availability.
    ///
    /// # Errors
    /// [`Error::Unimplemented`]: the catalog alone counts. Others: keep the last answer.
    pub async fn list_offerings(&self, regions: Vec<String>) -> Result<LiveOfferings, Error> {
        let call = Call::ListOfferings;
        let mut stub = self.stub.clone();
        let answer = self.ask(call, pb::ListOfferingsRequest { regions }, |r| stub.list_offerings(r)).await?;
        checked(call, answer::live_offerings(&self.vendor, answer))
    }

    /// The end of what a machine printed; `None` when there is nothing.
    ///
    /// # Errors
    /// [`Error::Unimplemented`]: this vendor has no console.
    pub async fn console_output(&self, find: FindMachine) -> Result<Option<String>, Error> {
        let mut stub = self.stub.clone();
        let request = pb::GetConsoleOutputRequest::from(find);
        let found = self.find(Call::GetConsoleOutput, request, |r| stub.get_console_output(r)).await?;
        Ok(found.map(|answer| String::from_utf8_lossy(&answer.output).into_owned()))
    }

    async fn ask<Q, A, F>(&self, call: Call, ask: Q, send: impl FnOnce(Request<Q>) -> F) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let answered = self.send(ask, send).await;
        answered.map_err(|status| {
            local(call, &status).unwrap_or_else(|| Error::from_failure(call, Failure::from_status(&status)))
        })
    }

    /// As [`Client::ask`], with `NOT_FOUND` as an answer.
    async fn find<Q, A, F>(
        &self,
        call: Call,
        ask: Q,
        send: impl FnOnce(Request<Q>) -> F,
    ) -> Result<Option<A>, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        match self.send(ask, send).await {
            Ok(answer) => Ok(Some(answer)),
            Err(status) => match local(call, &status) {
                Some(error) => Err(error),
                None => match Failure::from_status(&status) {
                    Failure { cause: Cause::NotFound, .. } => Ok(None),
                    failure => Err(Error::from_failure(call, failure)),
                },
            },
        }
    }

    async fn send<Q, A, F>(&self, ask: Q, send: impl FnOnce(Request<Q>) -> F) -> Result<A, Status>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let mut request = Request::new(ask);
        request.set_timeout(self.deadline);
        send(request).await.map(Response::into_inner)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("vendor", &self.vendor).finish_non_exhaustive()
    }
}

impl Created {
    fn word(&self) -> &'static str {
        match self {
            Self::Machine(_) => "machine",
            Self::Refused(refusal) => refusal.reason.as_str(),
        }
    }
}

/// What a status means that this side made, since a plugin's word has no source: only a connection that
/// was never made proves that nothing was sent.
fn local(call: Call, status: &Status) -> Option<Error> {
    let mut cause = std::error::Error::source(status)?;
    let message = readable(status.message());
    loop {
        if cause.is::<tonic::ConnectError>() {
            return Some(Error::Unavailable { call, sent: false, retry_after: None, message });
        }
        match cause.source() {
            Some(next) => cause = next,
            None => return Some(Error::Unknown { call, message }),
        }
    }
}

fn checked<T>(call: Call, answer: Result<T, Wrong>) -> Result<T, Error> {
    answer.map_err(|problem| {
        let problem = readable(&problem);
        tracing::warn!(%call, problem, "answer breaks the contract");
        Error::Nonsense { call, problem }
    })
}

fn owned_by(machine: Machine, cluster: &ClusterId, claim: &ClaimUid) -> Result<Machine, Wrong> {
    if machine.claim != *claim {
        return Err(format!("machine {} is of claim {}, not {claim}", machine.id, machine.claim));
    }
    if machine.cluster != *cluster {
        return Err(format!("machine {} is of another cluster", machine.id));
    }
    Ok(machine)
}

fn as_asked(machine: Machine, asked: &CreateMachine) -> Result<Machine, Wrong> {
    let machine = owned_by(machine, &asked.cluster, &asked.claim)?;
    let wrong = |what: &str, is: &str, asked: &str| {
        Err(format!("machine {}: {what} is {is:?}, asked for was {asked:?}", machine.id))
    };
    if machine.instance_type != asked.instance_type {
        return wrong("instance type", &machine.instance_type, &asked.instance_type);
    }
    if machine.region != asked.place.region {
        return wrong("region", &machine.region, &asked.place.region);
    }
    if asked.place.zone.is_some() && machine.zone != asked.place.zone {
        let text = |zone: &Option<String>| zone.clone().unwrap_or_default();
        return wrong("zone", &text(&machine.zone), &text(&asked.place.zone));
    }
    if machine.capacity_type != asked.capacity_type {
        return wrong("capacity type", machine.capacity_type.as_str(), asked.capacity_type.as_str());
    }
    if machine.params != asked.params() {
        return wrong("params", &machine.params, &asked.params());
    }
    Ok(machine)
}
