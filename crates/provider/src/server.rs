//! The plugin's side: a plugin implements [`Provider`] in domain types, the rest is here.

mod listener;
mod service;

use std::future::Future;
use std::sync::Arc;

use scarpenter_core::name::ClusterId;
use tonic::transport::Server;

use crate::capabilities::Capabilities;
use crate::client::LARGEST_MESSAGE;
use crate::endpoint::Endpoint;
use crate::error::Deleted;
use crate::failure::{Cause, Failure};
use crate::machine::{Machine, MachineList};
use crate::pb;
use crate::pb::provider_server::ProviderServer;
use crate::request::{ClassCheck, CreateMachine, DeleteMachine, FindMachine, LiveOfferings, Problem};

pub use listener::{Listener, ServeError};
pub use service::Service;

/// One vendor's API behind the contract; what each call promises is written in `provider.proto`.
///
/// Arguments were checked: no empty id, a usable host name, user data within the declared limit, a capacity type
/// that is sold. A create or delete that was begun runs to its end even when the caller has gone.
pub trait Provider: Send + Sync + 'static {
    /// Who this is and what it can do; no call to the vendor.
    fn capabilities(&self) -> Capabilities;

    /// Problems of a class that a person can put right.
    fn validate(&self, check: ClassCheck) -> impl Future<Output = Result<Vec<Problem>, Failure>> + Send;

    /// Makes the machine of a claim, once; returns when the vendor has accepted.
    fn create_machine(&self, create: CreateMachine) -> impl Future<Output = Result<Machine, Failure>> + Send;

    /// The machine of a claim, `None` when the vendor knows none.
    fn get_machine(&self, find: FindMachine)
    -> impl Future<Output = Result<Option<Machine>, Failure>> + Send;

    /// Every machine of a cluster within the regions named as covered.
    fn list_machines(&self, cluster: ClusterId) -> impl Future<Output = Result<MachineList, Failure>> + Send;

    /// Asks for the end of the machines of a claim and of all that came with them.
    fn delete_machine(&self, delete: DeleteMachine) -> impl Future<Output = Result<Deleted, Failure>> + Send;

    /// Live price and availability. Optional: say so in [`Capabilities::lists_offerings`].
    fn list_offerings(
        &self,
        regions: Vec<String>,
    ) -> impl Future<Output = Result<LiveOfferings, Failure>> + Send {
        let _ = regions;
        async { Err(Failure::new(Cause::Unimplemented, "this plugin lists no offerings")) }
    }

    /// The end of what a machine printed. Optional: say so in [`Capabilities::has_console`].
    fn console_output(
        &self,
        find: FindMachine,
    ) -> impl Future<Output = Result<Option<String>, Failure>> + Send {
        let _ = find;
        async { Err(Failure::new(Cause::Unimplemented, "this plugin has no console")) }
    }
}

/// A plugin that its owner keeps a hand on.
impl<P: Provider> Provider for Arc<P> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    async fn validate(&self, check: ClassCheck) -> Result<Vec<Problem>, Failure> {
        (**self).validate(check).await
    }

    async fn create_machine(&self, create: CreateMachine) -> Result<Machine, Failure> {
        (**self).create_machine(create).await
    }

    async fn get_machine(&self, find: FindMachine) -> Result<Option<Machine>, Failure> {
        (**self).get_machine(find).await
    }

    async fn list_machines(&self, cluster: ClusterId) -> Result<MachineList, Failure> {
        (**self).list_machines(cluster).await
    }

    async fn delete_machine(&self, delete: DeleteMachine) -> Result<Deleted, Failure> {
        (**self).delete_machine(delete).await
    }

    async fn list_offerings(&self, regions: Vec<String>) -> Result<LiveOfferings, Failure> {
        (**self).list_offerings(regions).await
    }

    async fn console_output(&self, find: FindMachine) -> Result<Option<String>, Failure> {
        (**self).console_output(find).await
    }
}

/// Serves a plugin with health and reflection until `shutdown` ends, then waits for the calls it has begun.
///
/// # Errors
/// When it cannot listen, or the listener breaks.
pub async fn serve(
    provider: impl Provider,
    endpoint: &Endpoint,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let listener = Listener::bind(endpoint).await?;
    let service = Service::new(provider);
    serve_on(listener, service.clone(), shutdown).await?;
    service.quiesce().await;
    Ok(())
}

/// Serves a plugin until the process is asked to end: all that a plugin's `main` needs after its arguments.
///
/// ```no_run
/// # use scarpenter_provider::{Endpoint, Provider};
/// # async fn plugin(provider: impl Provider, arguments: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint: Endpoint = arguments[1].parse()?;
/// scarpenter_provider::server::serve_until_signal(provider, &endpoint).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`serve`], and when the signals cannot be watched.
pub async fn serve_until_signal(provider: impl Provider, endpoint: &Endpoint) -> Result<(), ServeError> {
    let signal = shutdown_signal().map_err(|source| ServeError::Signal { source })?;
    serve(provider, endpoint, signal).await
}

/// Serves any implementation of the generated service; for who must answer what the domain types cannot say.
///
/// # Errors
/// When the listener breaks.
pub async fn serve_on(
    listener: Listener,
    service: impl pb::provider_server::Provider,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let server = ProviderServer::new(service)
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE);
    let (health, health_server) = tonic_health::server::health_reporter();
    serving(&health, &server).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(pb::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the committed descriptors are those of the contract");
    // Many streams, since a create that hangs must not keep a delete out.
    let mut builder = listener.protect(Server::builder().max_concurrent_streams(4096))?;
    let router = builder.add_service(server).add_service(health_server).add_service(reflection);
    listener.accept(router, shutdown).await
}

async fn serving<S: pb::provider_server::Provider>(
    health: &tonic_health::server::HealthReporter,
    _server: &ProviderServer<S>,
) {
    health.set_serving::<ProviderServer<S>>().await;
}

/// Ends when the process is asked to: SIGTERM or SIGINT. Handlers are set when this is called, not when it is awaited.
///
/// # Errors
/// When the signals cannot be watched.
pub fn shutdown_signal() -> std::io::Result<impl Future<Output = ()> + Send + use<>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
