//! The generated service on top of [`Provider`]: reads and refuses requests, carries begun calls to their end.

use std::future::Future;
use std::sync::Arc;

use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status};

use super::Provider;
use crate::capabilities::Capabilities;
use crate::error::Deleted;
use crate::failure::{Cause, Failure, Scope};
use crate::pb;
use crate::request::{CreateMachine, DeleteMachine, FindMachine};

const CONSOLE_LIMIT: usize = 64 << 10;

/// The generated service for a [`Provider`]. Clones share it.
#[derive(Debug)]
pub struct Service<P> {
    provider: Arc<P>,
    begun: TaskTracker,
}

impl<P> Clone for Service<P> {
    fn clone(&self) -> Self {
        Self { provider: self.provider.clone(), begun: self.begun.clone() }
    }
}

impl<P: Provider> Service<P> {
    /// Wraps a plugin.
    pub fn new(provider: P) -> Self {
        Self { provider: Arc::new(provider), begun: TaskTracker::new() }
    }

    /// Waits for every create and delete that was begun.
    pub async fn quiesce(&self) {
        self.begun.close();
        self.begun.wait().await;
    }

    /// Runs to the end even when the caller goes: a dropped handler in the midst of a vendor's call loses machines.
    async fn carry<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Status> {
        match self.begun.spawn(work).await {
            Ok(outcome) => outcome.map_err(Status::from),
            Err(_) => Err(Failure::new(Cause::Unknown, "the plugin broke off").into()),
        }
    }
}

/// What the declared capabilities rule out, before anything is made.
fn refuse(create: &CreateMachine, capabilities: &Capabilities) -> Result<(), Failure> {
    let limit = capabilities.user_data_limit;
    if !limit.takes(create.user_data.len()) {
        let counted = limit.counted(create.user_data.len());
        let message =
            format!("user data counts {counted} bytes, {} takes {}", capabilities.vendor, limit.bytes);
        return Err(Failure::new(Cause::Invalid, message).with_scope(Scope::Account));
    }
    if !capabilities.capacity_types.contains(&create.capacity_type) {
        let message = format!("{} sells no {}", capabilities.vendor, create.capacity_type.as_str());
        return Err(Failure::new(Cause::Invalid, message));
    }
    if !capabilities.archs.contains(&create.arch) {
        let message = format!("{} sells no {}", capabilities.vendor, create.arch.as_str());
        return Err(Failure::new(Cause::Invalid, message));
    }
    Ok(())
}

fn invalid(wrong: String) -> Status {
    Failure::new(Cause::Invalid, wrong).with_scope(Scope::Account).into()
}

fn not_found() -> Status {
    Failure::new(Cause::NotFound, "no such machine").into()
}

#[tonic::async_trait]
impl<P: Provider> pb::provider_server::Provider for Service<P> {
    async fn get_capabilities(
        &self,
        _: Request<pb::GetCapabilitiesRequest>,
    ) -> Result<Response<pb::GetCapabilitiesResponse>, Status> {
        Ok(Response::new(self.provider.capabilities().into()))
    }

    async fn validate(
        &self,
        request: Request<pb::ValidateRequest>,
    ) -> Result<Response<pb::ValidateResponse>, Status> {
        let check = request.into_inner().try_into().map_err(invalid)?;
        let problems = self.provider.validate(check).await?;
        Ok(Response::new(pb::ValidateResponse { problems: problems.into_iter().map(Into::into).collect() }))
    }

    async fn create_machine(
        &self,
        request: Request<pb::CreateMachineRequest>,
    ) -> Result<Response<pb::CreateMachineResponse>, Status> {
        let create = CreateMachine::try_from(request.into_inner()).map_err(invalid)?;
        refuse(&create, &self.provider.capabilities())?;
        let provider = self.provider.clone();
        let machine = self.carry(async move { provider.create_machine(create).await }).await?;
        Ok(Response::new(pb::CreateMachineResponse { machine: Some(machine.into()) }))
    }

    async fn get_machine(
        &self,
        request: Request<pb::GetMachineRequest>,
    ) -> Result<Response<pb::GetMachineResponse>, Status> {
        let find = FindMachine::try_from(request.into_inner()).map_err(invalid)?;
        let machine = self.provider.get_machine(find).await?.ok_or_else(not_found)?;
        Ok(Response::new(pb::GetMachineResponse { machine: Some(machine.into()) }))
    }

    async fn list_machines(
        &self,
        request: Request<pb::ListMachinesRequest>,
    ) -> Result<Response<pb::ListMachinesResponse>, Status> {
        let cluster = request.into_inner().cluster_id;
        if cluster.is_empty() {
            return Err(invalid("cluster_id is empty".to_owned()));
        }
        let list = self.provider.list_machines(cluster.as_str().into()).await?;
        Ok(Response::new(list.into()))
    }

    async fn delete_machine(
        &self,
        request: Request<pb::DeleteMachineRequest>,
    ) -> Result<Response<pb::DeleteMachineResponse>, Status> {
        let delete = DeleteMachine::try_from(request.into_inner()).map_err(invalid)?;
        let provider = self.provider.clone();
        match self.carry(async move { provider.delete_machine(delete).await }).await? {
            Deleted::Asked => Ok(Response::new(pb::DeleteMachineResponse {})),
            Deleted::Gone => Err(not_found()),
        }
    }

    async fn list_offerings(
        &self,
        request: Request<pb::ListOfferingsRequest>,
    ) -> Result<Response<pb::ListOfferingsResponse>, Status> {
        let live = self.provider.list_offerings(request.into_inner().regions).await?;
        Ok(Response::new(live.into()))
    }

    async fn get_console_output(
        &self,
        request: Request<pb::GetConsoleOutputRequest>,
    ) -> Result<Response<pb::GetConsoleOutputResponse>, Status> {
        let find = FindMachine::try_from(request.into_inner()).map_err(invalid)?;
        let text = self.provider.console_output(find).await?.ok_or_else(not_found)?;
        let mut output = text.into_bytes();
        output.drain(..output.len().saturating_sub(CONSOLE_LIMIT));
        Ok(Response::new(pb::GetConsoleOutputResponse { output }))
    }
}
