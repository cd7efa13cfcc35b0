//! Machines that join, and machines that may not.

use std::time::Duration;

use anyhow::{Context, ensure};

use crate::exchange::{exchange, is_dropped};
use crate::machine::{ADDRESS, KUBELET, Machine, TAILSCALED, join};
use crate::programs::Programs;
use crate::service::State;
use crate::site::{Site, outer_address};

const SAYS_WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn through_the_relay(programs: &Programs) -> anyhow::Result<()> {
    let site = Site::start(programs, &["key-of-1", "key-of-2"])?;
    let mut one = Machine::install(&site, 1, &join(&site, 1, "key-of-1"))?;
    let mut two = Machine::install(&site, 2, &join(&site, 2, "key-of-2"))?;
    one.power_on()?;
    two.power_on()?;
    // Before any firewall: the control server reaches the second machine, the first one does not.
    let outer = outer_address(2);
    exchange(site.control(), two.namespace()?, &outer).context("the control server's way")?;
    let no_way = is_dropped(one.namespace()?, two.namespace()?, &outer)?;
    ensure!(no_way, "the machines have a way to each other without the mesh");

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
