//! The firewall of the document, loaded by the kernel of this machine.

use anyhow::{Context, ensure};
use scarpenter_bootstrap::Join;

use crate::exchange::{exchange, exchange_with, is_dropped, is_dropped_at, listen};
use crate::machine::{Machine, join};
use crate::namespace::Namespace;
use crate::programs::Programs;
use crate::site::{CONTROL, Site, outer_address};

/// Behind the control server, and what the class allows of it.
const ALLOWED: &str = "10.98.1.1";
const ALLOWED_RANGE: &str = "10.98.1.0/24";
const NOT_ALLOWED: &str = "10.98.2.1";
const DNS: u16 = 53;

pub(crate) fn what_comes_in(programs: &Programs) -> anyhow::Result<()> {
    let site = Site::start(programs, &["key-of-1", "key-of-2"])?;
    let control = site.control();
    for address in [ALLOWED, NOT_ALLOWED] {
        control.run(&format!("ip address add {address}/32 dev lo"))?;
    }
    let allowed = Join { firewall: Some(vec![ALLOWED_RANGE.to_owned()]), ..join(&site, 1, "key-of-1") };
    let mut machine = Machine::install(&site, 1, &allowed)?;
    let mut other = Machine::install(&site, 2, &join(&site, 2, "key-of-2"))?;
    machine.power_on()?;
    other.power_on()?;
    let outer = outer_address(1);
    come_from(control, NOT_ALLOWED)?;
    exchange(control, machine.namespace()?, &outer).context("before there is a firewall")?;

    let (own, _) = (machine.joined()?, other.joined()?);
    let inside = machine.namespace()?;
    ensure!(is_dropped(control, inside, &outer)?, "a connection from outside came in");
    come_from(control, ALLOWED)?;
    exchange(control, inside, &outer).context("from a range that is allowed")?;
    come_from(control, NOT_ALLOWED)?;
    exchange(other.namespace()?, inside, &own).context("from the mesh")?;
    exchange(inside, inside, "127.0.0.1").context("from the machine itself")?;
    exchange(inside, control, CONTROL).context("an answer from outside")?;
    // The port of a Service is closed as well: its packets get another address before they are filtered as input.
    let pod = Pod::start(&site, inside)?;
    let service = "add table ip services; add chain ip services in { type nat hook prerouting priority dstnat; }; \
        add rule ip services in tcp dport 30000 dnat to 10.42.0.2:30000";
    ensure!(inside.output(&["nft", service])?.status.success(), "the Service's rule is not taken");
    let _listener = listen(&pod.namespace, POD, 30000)?;
    let port = format!("{outer}:30000").parse()?;
    ensure!(is_dropped_at(control, port)?, "a Service's port is open to the outside");
    come_from(control, ALLOWED)?;
    ensure!(!is_dropped_at(control, port)?, "a Service's port is closed to a range that is allowed");
    Ok(())
}

pub(crate) fn metadata(programs: &Programs) -> anyhow::Result<()> {
    const SERVERS: [&str; 2] = ["169.254.169.254", "100.100.100.200"];
    let site = Site::start(programs, &["key-of-1"])?;
    let control = site.control();
    for address in SERVERS.into_iter().chain([ALLOWED]) {
        control.run(&format!("ip address add {address}/32 dev lo"))?;
    }
    let mut machine = Machine::install(&site, 1, &join(&site, 1, "key-of-1"))?;
    machine.power_on()?;
    control.run(&format!("ip route add {POD_RANGE} via {}", outer_address(1)))?;
    let pod = Pod::start(&site, machine.namespace()?)?;
    for server in SERVERS {
        exchange(&pod.namespace, control, server).context("before there is a firewall")?;
    }

    machine.joined()?;
    let inside = machine.namespace()?;
    for server in SERVERS {
        ensure!(is_dropped(&pod.namespace, control, server)?, "a pod reached {server}");
        let dns = listen(control, server, DNS)?;
        exchange_with(&pod.namespace, &dns).with_context(|| format!("a pod asks {server} for a name"))?;
    }
    // Ignition and the agents of the image need it.
    exchange(inside, control, SERVERS[0]).context("the machine itself asks for its metadata")?;
    exchange(&pod.namespace, control, ALLOWED).context("from a pod to the outside")?;
    exchange(&pod.namespace, inside, BRIDGE).context("from a pod to its machine")?;
    exchange(inside, &pod.namespace, POD).context("from a machine to its pod")?;
    Ok(())
}

const POD_RANGE: &str = "10.42.0.0/24";
const POD: &str = "10.42.0.2";
const BRIDGE: &str = "10.42.0.1";

/// A pod as the usual networks attach it: a veth to a bridge of the machine.
struct Pod {
    namespace: Namespace,
}

impl Pod {
    fn start(site: &Site, machine: &Namespace) -> anyhow::Result<Self> {
        let namespace = Namespace::bare(&site.folder().join("pod.log"))?;
        machine.run("ip link add cni0 type bridge")?;
        machine.run(&format!("ip address add {BRIDGE}/24 dev cni0"))?;
        machine.run("ip link set cni0 up")?;
        machine.run("ip link add pod0 type veth peer name eth1")?;
        machine.run("ip link set pod0 master cni0 up")?;
        machine.give("eth1", &namespace)?;
        namespace.run(&format!("ip address add {POD}/24 dev eth1"))?;
        namespace.run("ip link set eth1 up")?;
        namespace.run(&format!("ip route add default via {BRIDGE}"))?;
        machine.inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
        Ok(Self { namespace })
    }
}

/// Chooses the address that the control server's connections to the first machine come from.
fn come_from(control: &Namespace, address: &str) -> anyhow::Result<()> {
    control.run(&format!("ip route replace 10.99.1.0/30 dev port1 src {address}"))?;
    Ok(())
}
