//! Machines that join, and machines that may not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::machine::{ADDRESS, KUBELET, Machine, TAILSCALED, join};
use crate::namespace::Namespace;
use crate::programs::Programs;
use crate::service::State;
use crate::site::{Site, outer_address};

const CONNECTS_WITHIN: Duration = Duration::from_secs(20);
const SAYS_WITHIN: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(700);

/// Sends a word from one machine to an address of another, and back.
pub(crate) fn exchange(from: &Namespace, to: &Namespace, address: &str) -> anyhow::Result<()> {
    exchange_within(from, to, address, CONNECTS_WITHIN)
}

pub(crate) fn exchange_within(
    from: &Namespace,
    to: &Namespace,
    address: &str,
    within: Duration,
) -> anyhow::Result<()> {
    let listener =
        to.inside(|| TcpListener::bind((address, 0)))?.with_context(|| format!("listen on {address}"))?;
    let to: SocketAddr = listener.local_addr()?;
    let mut stream = from.inside(|| TcpStream::connect_timeout(&to, within))?.context("connect")?;
    stream.set_read_timeout(Some(within))?;
    stream.write_all(b"ping")?;
    let (mut accepted, _) = listener.accept()?;
    accepted.set_read_timeout(Some(within))?;
    let mut word = [0; 4];
    accepted.read_exact(&mut word)?;
    accepted.write_all(&word)?;
    stream.read_exact(&mut word)?;
    ensure!(&word == b"ping", "another word came back");
    Ok(())
}

pub(crate) fn through_the_relay(programs: &Programs) -> anyhow::Result<()> {
    let site = Site::start(programs, &["key-of-1", "key-of-2"])?;
    let mut one = Machine::install(&site, 1, &join(&site, 1, "key-of-1"))?;
    let mut two = Machine::install(&site, 2, &join(&site, 2, "key-of-2"))?;
    one.power_on()?;
    two.power_on()?;
    // Before any firewall: the control server reaches the second machine, the first one does not.
    let outer = outer_address(2);
    exchange_within(site.control(), two.namespace()?, &outer, SOON).context("the control server's way")?;
    let direct = exchange_within(one.namespace()?, two.namespace()?, &outer, SOON);
    ensure!(direct.is_err(), "the machines have a way to each other without the mesh");

    let (first, second) = (one.joined()?, two.joined()?);
    ensure!(first != second, "both have the address {first}");
    exchange(one.namespace()?, two.namespace()?, &second).context("from the first to the second")?;
    exchange(two.namespace()?, one.namespace()?, &first).context("from the second to the first")?;
    for machine in [&one, &two] {
        let status = machine.status()?;
        let peers = status["Peer"].as_object().context("no peers")?;
        let peer = peers.values().next().context("no peer")?;
        ensure!(peer["Relay"] == "test" && peer["CurAddr"] == "", "not through the relay: {peer}");
    }
    check_names(&mut one)
}

/// What the document says of names reaches everybody.
fn check_names(one: &mut Machine<'_>) -> anyhow::Result<()> {
    let arguments = one.kubelet()?;
    ensure!(arguments.contains(&"--hostname-override=worker-1".to_owned()), "{arguments:?}");
    let status = one.status()?;
    ensure!(status["Self"]["HostName"] == "worker-1", "{}", status["Self"]);
    Ok(())
}

pub(crate) fn reboot(programs: &Programs) -> anyhow::Result<()> {
    let site = Site::start(programs, &["key-of-1"])?;
    let mut machine = Machine::install(&site, 1, &join(&site, 1, "key-of-1"))?;
    machine.power_on()?;
    let address = machine.joined()?;

    machine.power_on()?;
    let after = machine.joined().context("after a reboot")?;
    ensure!(after == address, "{address} became {after} by a reboot");

    let boot = machine.boot()?;
    boot.service_mut(TAILSCALED)?.kill();
    boot.until(SAYS_WITHIN, "tailscaled is started again", |boot| {
        Ok(boot.service(TAILSCALED)?.state == State::Active)
    })?;
    let mut own = String::new();
    boot.until(SAYS_WITHIN, "the mesh is up again", |boot| {
        own = boot.machine().run("tailscale ip -4").unwrap_or_default();
        Ok(!own.is_empty())
    })?;
    ensure!(own.trim() == address, "{address} became {own} by a crash");
    let registered = site.said().matches("registered worker-1").count();
    ensure!(registered >= 2, "it came back {registered} times: {}", site.said());
    Ok(())
}

pub(crate) fn refused(programs: &Programs) -> anyhow::Result<()> {
    let site = Site::start(programs, &["key-of-1"])?;
    let mut owner = Machine::install(&site, 1, &join(&site, 1, "key-of-1"))?;
    owner.power_on()?;
    owner.joined()?;
    let mut thief = Machine::install(&site, 2, &join(&site, 2, "key-of-1"))?;
    let mut stranger = Machine::install(&site, 3, &join(&site, 3, "key-of-nobody"))?;
    for (machine, why) in [(&mut thief, "authkey already used"), (&mut stranger, "authkey not found")] {
        let boot = machine.power_on()?;
        boot.until(SAYS_WITHIN, why, |boot| Ok(boot.service(ADDRESS)?.said().contains(why)))?;
        // Longer than any pause before a service is started again.
        boot.play(Duration::from_secs(6))?;
        ensure!(boot.service(ADDRESS)?.state == State::Starting, "{:?}", boot.service(ADDRESS)?.state);
        ensure!(boot.service(KUBELET)?.state == State::Waiting, "{:?}", boot.service(KUBELET)?.state);
        let said = boot.service(ADDRESS)?.said();
        ensure!(!said.contains("key-of-"), "the key is told: {said}");
        ensure!(!machine.is_kubelet_started()?, "a kubelet was started without an address");
    }
    Ok(())
}
