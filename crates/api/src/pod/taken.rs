//! What a pod takes of its node besides amounts: ports, and volumes that are attached to it.

use k8s_openapi::api::core::v1::{Container, ContainerPort, PodSpec, Volume};
use scarpenter_core::pod::{Attachment, HostPort, Pod};

use crate::volume::driver;

/// Reads ports and volumes of a spec; the pod's own name is known by then.
pub(super) fn read(spec: &PodSpec, out: &mut Pod) {
    read_ports(spec, out);
    for volume in spec.volumes.iter().flatten() {
        out.volume_claims.extend(claim_name(&out.key.name, volume));
        if let Some((plugin, handle)) = in_line_disk(volume) {
            attach(plugin, handle, out);
        }
    }
    out.volume_claims.sort();
    out.volume_claims.dedup();
}

/// Ports of all that runs for as long as the pod does: init containers end before, unless they are sidecars.
///
/// With hostNetwork the API server makes every container port a host port.
fn read_ports(spec: &PodSpec, out: &mut Pod) {
    let host_network = spec.host_network.unwrap_or(false);
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    for port in spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten())
    {
        let number = match port.host_port.unwrap_or(0) {
            0 if host_network => port.container_port,
            number => number,
        };
        match u16::try_from(number) {
            Ok(0) => {}
            Ok(number) => out.host_ports.push(host_port(number, port)),
            Err(_) => out.invalid.push(format!("hostPort: {number} is not a port")),
        }
    }
    out.host_ports.sort();
    out.host_ports.dedup();
}

fn host_port(port: u16, from: &ContainerPort) -> HostPort {
    let protocol = from.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
    let ip = from.host_ip.as_deref().filter(|ip| !matches!(*ip, "0.0.0.0" | "::")).unwrap_or_default();
    HostPort { port, protocol: protocol.to_owned(), ip: ip.to_owned() }
}

/// The claim behind a volume; Kubernetes makes that of an ephemeral volume itself, and names it so.
fn claim_name(pod: &str, volume: &Volume) -> Option<String> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(claim.claim_name.clone());
    }
    volume.ephemeral.as_ref().map(|_| format!("{pod}-{}", volume.name))
}

/// In-tree plugin and disk of a volume that stands in the pod itself.
fn in_line_disk(volume: &Volume) -> Option<(&'static str, &str)> {
    let aws = volume.aws_elastic_block_store.as_ref().map(|disk| ("kubernetes.io/aws-ebs", &disk.volume_id));
    let azure = || volume.azure_disk.as_ref().map(|disk| ("kubernetes.io/azure-disk", &disk.disk_uri));
    let gce = || volume.gce_persistent_disk.as_ref().map(|disk| ("kubernetes.io/gce-pd", &disk.pd_name));
    let cinder = || volume.cinder.as_ref().map(|disk| ("kubernetes.io/cinder", &disk.volume_id));
    aws.or_else(azure).or_else(gce).or_else(cinder).map(|(plugin, handle)| (plugin, handle.as_str()))
}

/// Only the vendor is known of such a disk, not where it stands.
fn attach(plugin: &str, handle: &str, out: &mut Pod) {
    let driver = driver::csi_name(plugin);
    let place: Vec<_> = driver::vendor_line(driver).into_iter().collect();
    if out.volume_terms.is_empty() && !place.is_empty() {
        out.volume_terms.push(place);
    } else {
        for line in place {
            out.volume_terms[0].push(line);
        }
    }
    out.attachments.push(Attachment { driver: driver.to_owned(), volume: handle.to_owned() });
    out.attachments.sort();
    out.attachments.dedup();
}
