//! The contract, for servers of Hetzner Cloud.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use scarpenter_core::name::{ClaimUid, ClusterId, MachineId, Vendor};
use scarpenter_core::offering::{Arch, CapacityType};
use scarpenter_provider::capabilities::{Encoding, RateBudget, UserDataLimit};
use scarpenter_provider::failure::{Cause, Scope};
use scarpenter_provider::request::{ClassCheck, LiveOfferings, Problem};
use scarpenter_provider::{
    Capabilities, Coverage, CreateMachine, DeleteMachine, Deleted, Failure, FindMachine, Machine,
    MachineList, Provider,
};

use crate::api::{Api, Fault};
use crate::bucket::CALLS_AN_HOUR;
use crate::lookup::{Lookup, Missing};
use crate::machine::{self, CLAIM, CLUSTER, belongs, labels, selector};
use crate::settings::Settings;
use crate::wire::{NewFirewall, NewPublicNet, NewServer, Server};
use crate::{VENDOR, offerings, validate};

/// Source: the vendor's API documentation of `POST /servers`, `user_data`.
const USER_DATA_LIMIT: UserDataLimit = UserDataLimit { bytes: 32 << 10, encoding: Encoding::Raw };

/// One project of Hetzner Cloud as a plugin.
#[derive(Clone, Debug)]
pub struct Hcloud {
    pub(crate) api: Api,
    pub(crate) lookup: Arc<Lookup>,
    settle: Duration,
}

impl Hcloud {
    /// With the settle time that is declared: longer than the API may take to answer, and than a list may lag.
    #[must_use]
    pub fn new(api: Api, settle: Duration) -> Self {
        Self { api, lookup: Arc::default(), settle }
    }

    /// All that has to be known before the creating request.
    async fn order(&self, create: &CreateMachine) -> Result<NewServer, Failure> {
        let settings = Settings::read(&create.settings).map_err(|wrong| {
            let words: Vec<_> =
                wrong.iter().map(|wrong| format!("settings.{}: {}", wrong.key, wrong.words)).collect();
            Failure::new(Cause::Invalid, words.join("; ")).with_scope(Scope::Account)
        })?;
        if selector(&create.cluster, &create.claim).is_none() {
            let words =
                "the ids of cluster and claim must be labels: up to 63 letters, digits, '-', '_' and '.'";
            return Err(Failure::new(Cause::Invalid, words).with_scope(Scope::Account));
        }
        let location = &create.place.region;
        if create.place.zone.as_ref().is_some_and(|zone| zone != location) {
            return Err(Failure::new(Cause::Invalid, format!("location {location} has no zones")));
        }
        let user_data = String::from_utf8(create.user_data.clone()).map_err(|_| {
            Failure::new(Cause::Invalid, "the vendor takes user data only as UTF-8")
                .with_scope(Scope::Account)
        })?;
        let (api, lookup) = (&self.api.urgently(), &self.lookup);
        let image = lookup
            .image(api, &create.image, &settings, create.arch)
            .await
            .map_err(absent(Scope::Offering))?;
        let account = || absent(Scope::Account);
        let firewalls =
            lookup.ids(api, "/firewalls", "firewall", &settings.firewalls).await.map_err(account())?;
        let networks = lookup.ids(api, "/networks", "network", &settings.networks).await.map_err(account())?;
        let placement_group = match &settings.placement_group {
            Some(group) => {
                Some(lookup.id(api, "/placement_groups", "placement group", group).await.map_err(account())?)
            }
            None => None,
        };
        Ok(NewServer {
            name: create.name.clone(),
            location: location.clone(),
            server_type: create.instance_type.clone(),
            image,
            start_after_create: true,
            labels: labels(create, &settings.labels),
            user_data,
            public_net: NewPublicNet { enable_ipv4: settings.public_ipv4, enable_ipv6: settings.public_ipv6 },
            ssh_keys: settings.ssh_keys,
            networks,
            firewalls: firewalls.into_iter().map(|firewall| NewFirewall { firewall }).collect(),
            placement_group,
        })
    }

    /// The name is taken, which is how this vendor says that a create was sent before.
    async fn adopt(&self, create: &CreateMachine) -> Result<Machine, Failure> {
        // The request for more is over and something was there: whatever goes wrong now, the outcome is not known.
        let found = self.api.urgently().server_named(&create.name).await.map_err(|fault| {
            let failure = fault.of_other();
            Failure { cause: Cause::Unknown, ..failure }
        })?;
        let Some(server) = found else {
            return Err(Failure::new(
                Cause::Unknown,
                format!("the name {} is taken, and not to be seen", create.name),
            ));
        };
        let id = server.id;
        if !belongs(&server.labels, &create.cluster, &create.claim) {
            let words =
                format!("the name {} is taken by server {id}, which is not of this claim", create.name);
            return Err(Failure::new(Cause::Conflict, words));
        }
        let machine = machine::machine(server, Timestamp::now());
        if machine.params != create.params() {
            return Err(Failure::new(
                Cause::Conflict,
                format!("server {id} has this claim and other parameters"),
            ));
        }
        tracing::info!(claim = %create.claim, machine = id, "adopted a machine that was made before");
        Ok(machine)
    }

    /// Servers of a claim, and the one with the id if it is of the claim too.
    async fn servers_of(
        api: &Api,
        cluster: &ClusterId,
        claim: &ClaimUid,
        machine: Option<&MachineId>,
    ) -> Result<Vec<Server>, Fault> {
        let Some(selector) = selector(cluster, claim) else { return Ok(Vec::new()) };
        let mut servers = api.servers(&selector).await?;
        servers.retain(|server| belongs(&server.labels, cluster, claim));
        if let Some(id) = machine.and_then(number)
            && servers.iter().all(|server| server.id != id)
        {
            servers.extend(Self::server_of(api, cluster, claim, id).await?);
        }
        Ok(servers)
    }

    /// The server with an id, if it is of the claim.
    async fn server_of(
        api: &Api,
        cluster: &ClusterId,
        claim: &ClaimUid,
        id: u64,
    ) -> Result<Option<Server>, Fault> {
        let found = api.server(id).await?;
        Ok(found.filter(|server| belongs(&server.labels, cluster, claim)))
    }

    async fn destroy(&self, server: &Server) -> Result<(), Fault> {
        if server.status == "deleting" {
            return Ok(());
        }
        self.mark_address(server).await?;
        self.api.delete_server(server.id).await?;
        tracing::info!(machine = server.id, name = server.name, "asked for the end of a server");
        Ok(())
    }

    /// The public IPv4 address of a server is made with it, cannot be labelled then, costs on its own, and is to go
    /// with it. Labelled before the server goes, it is found should it stay. One that does not go by itself is a
    /// person's, who attached it later.
    async fn mark_address(&self, server: &Server) -> Result<(), Fault> {
        let Some(id) = server.public_net.ipv4.as_ref().and_then(|address| address.id) else { return Ok(()) };
        let Some(address) = self.api.urgently().primary_ip(id).await? else { return Ok(()) };
        let marked = [CLUSTER, CLAIM].iter().all(|key| address.labels.contains_key(*key));
        if !address.auto_delete || marked {
            return Ok(());
        }
        let mut labels = address.labels;
        labels.extend([CLUSTER, CLAIM].iter().filter_map(|key| {
            let value = server.labels.get(*key)?;
            Some(((*key).to_owned(), value.clone()))
        }));
        self.api.label_primary_ip(id, labels).await
    }

    /// Deletes addresses that outlived the server of a claim.
    async fn clear(&self, cluster: &ClusterId, claim: &ClaimUid) -> Result<Deleted, Fault> {
        let Some(selector) = selector(cluster, claim) else { return Ok(Deleted::Gone) };
        let mut left = self.api.urgently().primary_ips(&selector).await?;
        left.retain(|address| belongs(&address.labels, cluster, claim) && address.assignee_id.is_none());
        for address in &left {
            tracing::warn!(address = address.id, %claim, "an address outlived its server");
            self.api.delete_primary_ip(address.id).await?;
        }
        Ok(if left.is_empty() { Deleted::Gone } else { Deleted::Asked })
    }

    async fn delete(&self, delete: &DeleteMachine) -> Result<Deleted, Fault> {
        let DeleteMachine { cluster, claim, machine, only_this_machine, .. } = delete;
        let (id, api) = (machine.as_ref().and_then(number), self.api.urgently());
        let servers = match (only_this_machine, id) {
            (true, Some(id)) => Self::server_of(&api, cluster, claim, id).await?.into_iter().collect(),
            (true, None) => Vec::new(),
            (false, _) => Self::servers_of(&api, cluster, claim, machine.as_ref()).await?,
        };
        if servers.is_empty() {
            return self.clear(cluster, claim).await;
        }
        let mut outcome = Ok(Deleted::Asked);
        for server in &servers {
            if let Err(fault) = self.destroy(server).await {
                outcome = Err(fault);
            }
        }
        outcome
    }
}

fn absent(scope: Scope) -> impl FnOnce(Missing) -> Failure {
    move |missing| match missing {
        Missing::Absent(words) => Failure::new(Cause::Invalid, words).with_scope(scope),
        // Nothing was sent that could make a machine: looking up is over before it.
        Missing::Fault(fault) => fault.of_other(),
    }
}

/// The vendor's ids are numbers; another text is the id of nothing.
fn number(id: &MachineId) -> Option<u64> {
    id.as_str().parse().ok()
}

impl Provider for Hcloud {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            vendor: Vendor::from(VENDOR),
            user_data_limit: USER_DATA_LIMIT,
            capacity_types: vec![CapacityType::OnDemand],
            archs: vec![Arch::Amd64, Arch::Arm64],
            settle: self.settle,
            rate_budget: Some(RateBudget { calls: CALLS_AN_HOUR, per: Duration::from_secs(3600) }),
            lists_offerings: true,
            has_console: false,
        }
    }

    async fn validate(&self, check: ClassCheck) -> Result<Vec<Problem>, Failure> {
        validate::problems(self, check).await.map_err(Fault::of_other)
    }

    async fn create_machine(&self, create: CreateMachine) -> Result<Machine, Failure> {
        let order = self.order(&create).await?;
        let mut outcome = self.api.create_server(&order).await;
        if matches!(&outcome, Err(fault) if fault.is_unmapped()) {
            outcome = self.api.create_server(&order).await;
        }
        match outcome {
            Ok(server) => {
                tracing::info!(claim = %create.claim, machine = server.id, name = server.name, "made a server");
                Ok(machine::machine(server, Timestamp::now()))
            }
            Err(fault) if fault.is_taken_name() => self.adopt(&create).await,
            Err(fault) => {
                let failure = fault.of_create();
                if failure.cause == Cause::Invalid {
                    self.lookup.forget();
                }
                Err(failure)
            }
        }
    }

    async fn get_machine(&self, find: FindMachine) -> Result<Option<Machine>, Failure> {
        let FindMachine { cluster, claim, machine, .. } = &find;
        let servers =
            Self::servers_of(&self.api, cluster, claim, machine.as_ref()).await.map_err(Fault::of_other)?;
        let known = machine.as_ref().and_then(number);
        let first =
            servers.into_iter().min_by_key(|server| (Some(server.id) != known, server.created, server.id));
        Ok(first.map(|server| machine::machine(server, Timestamp::now())))
    }

    async fn list_machines(&self, cluster: ClusterId) -> Result<MachineList, Failure> {
        let Some(selector) = machine::cluster_selector(&cluster) else {
            return Err(
                Failure::new(Cause::Invalid, "the id of the cluster is no label").with_scope(Scope::Account)
            );
        };
        let servers = self.api.servers(&selector).await.map_err(Fault::of_other)?;
        let now = Timestamp::now();
        let ours = servers.into_iter().map(|server| machine::machine(server, now));
        Ok(MachineList {
            machines: ours.filter(|machine| machine.cluster == cluster).collect(),
            covered: Coverage::All,
        })
    }

    async fn delete_machine(&self, delete: DeleteMachine) -> Result<Deleted, Failure> {
        self.delete(&delete).await.map_err(Fault::of_other)
    }

    async fn list_offerings(&self, regions: Vec<String>) -> Result<LiveOfferings, Failure> {
        offerings::live(&self.api, &regions).await.map_err(Fault::of_other)
    }
}
