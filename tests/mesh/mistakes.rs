//! Documents with one mistake each: proof that the trials would notice it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::machine::{ADDRESS, KUBELET, Machine, TAILSCALED, join};
use crate::programs::Programs;
use crate::site::Site;

const NOTICED_WITHIN: Duration = Duration::from_secs(30);

/// A mistake: in which file, what is said there and what is said instead, which service shows it, and how.
type Mistake = (&'static str, &'static str, &'static str, &'static str, &'static str);

const CONFIG: &str = "etc/tailscale/config.json";
const WAIT: &str = "opt/scarpenter/mesh-address";
const WAIT_UNIT: &str = "etc/systemd/system/scarpenter-mesh-address.service";
const DROPIN: &str = "etc/systemd/system/scarpenter-kubelet.service.d/mesh.conf";
const MISTAKES: [Mistake; 4] = [
    (
        DROPIN,
        "After=scarpenter-mesh-address.service",
        "",
        KUBELET,
        "environment file /run/scarpenter/mesh.env",
    ),
    (WAIT, "/run/scarpenter/mesh.env\n", "/run/scarpenter/other.env\n", KUBELET, "environment file"),
    (CONFIG, "/etc/tailscale/auth-key", "/etc/tailscale/authkey", TAILSCALED, "no such file"),
    (WAIT_UNIT, "ExecStart=/opt/scarpenter/", "ExecStart=/opt/", ADDRESS, "exit status: 127"),
];

pub(crate) fn are_noticed(programs: &Programs) -> anyhow::Result<()> {
    let keys: Vec<String> = (1..=MISTAKES.len()).map(|number| format!("key-of-{number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let site = Site::start(programs, &keys)?;
    for (number, ((file, right, wrong, service, shows), key)) in (1..).zip(MISTAKES.into_iter().zip(keys)) {
        let mut machine = Machine::install(&site, number, &join(&site, number, key))?;
        let path = machine.file(file);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(right), "{file} does not say {right}: {text}");
        fs::write(&path, text.replacen(right, wrong, 1))?;
        let boot = machine.power_on()?;
        boot.until(NOTICED_WITHIN, &format!("{service} shows {shows:?}"), |boot| {
            let service = boot.service(service)?;
            Ok(service.said().contains(shows) || format!("{:?}", service.state).contains(shows))
        })
        .with_context(|| format!("{right:?} became {wrong:?}"))?;
        ensure!(!machine.is_kubelet_started()?, "a kubelet was started though {right:?} became {wrong:?}");
    }
    Ok(())
}

pub(crate) fn state_in_memory(programs: &Programs) -> anyhow::Result<()> {
    const UNIT: &str = "etc/systemd/system/scarpenter-tailscaled.service";
    let site = Site::start(programs, &["key-of-1"])?;
    let mut machine = Machine::install(&site, 1, &join(&site, 1, "key-of-1"))?;
    let path = machine.file(UNIT);
    let text = fs::read_to_string(&path)?;
    let wrong = text.replace("--statedir=/var/lib/tailscale", "--statedir=/run/tailscale");
    ensure!(wrong != text, "the state is somewhere else: {text}");
    fs::write(&path, wrong)?;
    machine.power_on()?;
    machine.joined()?;
    let boot = machine.power_on()?;
    let why = "authkey already used";
    boot.until(NOTICED_WITHIN, why, |boot| Ok(boot.service(ADDRESS)?.said().contains(why)))?;
    ensure!(!machine.is_kubelet_started()?, "a kubelet was started without an address");
    Ok(())
}
