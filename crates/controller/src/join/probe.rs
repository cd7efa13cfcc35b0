//! A document that nobody boots: what is wrong with one is said on the class, before anything is bought.

use scarpenter_api::ScarpenterNodeClass;
use scarpenter_api::nodeclass::JoinMethod;
use scarpenter_bootstrap::{JoinError, Mesh, render};
use scarpenter_core::name::{Secret as Hidden, Vendor, base36};
use scarpenter_core::offering::Arch;

use super::input::{self, Facts, Given};
use super::{Error, password};
use crate::context::Context;

/// Room that the labels and taints of pools and the names of claims may take beyond those of the probe, in bytes.
const SPARE: usize = 512;
/// As long as the keys of Headscale: prefix, id and secret.
const MESH_KEY_LENGTH: usize = 88;

/// How many bytes a machine of `vendor` would be sent at least, with some room for what claims bring.
///
/// # Errors
/// What keeps every document of the class from being made.
pub(crate) async fn probe(
    context: &Context,
    class: &ScarpenterNodeClass,
    vendor: &Vendor,
) -> Result<usize, Error> {
    let given = given(context, class).await?;
    let outcome = size(context, class, vendor, &given);
    if outcome.is_err() {
        context.config_maps.forget();
    }
    outcome
}

/// A class may name the hashes of one architecture only: the other's machines are then not bought.
fn size(
    context: &Context,
    class: &ScarpenterNodeClass,
    vendor: &Vendor,
    given: &Given,
) -> Result<usize, Error> {
    let mut unverified = None;
    for arch in [Arch::Amd64, Arch::Arm64] {
        let facts = Facts::of_nobody(vendor, arch);
        let join = input::join(&context.server, class, facts, given.clone())?;
        match render(&join) {
            Ok(document) => return Ok(document.bytes().len() + SPARE),
            Err(error @ scarpenter_bootstrap::Error::Join(JoinError::Unverified { .. })) => {
                unverified.get_or_insert(error);
            }
            Err(error) => return Err(Error::Render(Box::new(error))),
        }
    }
    let error = unverified.expect("neither architecture rendered, and other errors have returned");
    Err(Error::Render(Box::new(error)))
}

async fn given(context: &Context, class: &ScarpenterNodeClass) -> Result<Given, Error> {
    // Random, since what repeats itself would be packed shorter than a real one.
    let long = |length: usize| {
        let blocks = (0..length.div_ceil(8)).map(|_| base36(rand::random(), 8));
        Hidden::new(&blocks.collect::<String>()[..length])
    };
    let mesh = class.spec.mesh.as_ref().map(|mesh| Mesh {
        login_server: mesh.headscale.url.clone(),
        auth_key: long(MESH_KEY_LENGTH),
        tailscale_version: mesh.tailscale.version.clone(),
        accept_routes: mesh.tailscale.accept_routes,
    });
    Ok(Given {
        ca_pem: context.config_maps.authority(context, class).await?,
        extra: context.config_maps.ignition(context, class).await?,
        token: ("000000".to_owned(), long(16)),
        node_password: (class.spec.join.method == JoinMethod::K3sAgent).then(password::fresh),
        mesh,
    })
}
