//! What every machine has, however it joins.

use crate::join::Join;
use crate::parts::Parts;

const TIME_WAIT_SYNC: &str = include_str!("../../../../ignition/units/time-wait-sync.conf");
const NEVER_JOINED_UNIT: &str = include_str!("../../../../ignition/units/scarpenter-never-joined.service");
const NEVER_JOINED_TIMER: &str = include_str!("../../../../ignition/units/scarpenter-never-joined.timer");
const LIFETIME_UNIT: &str = include_str!("../../../../ignition/units/scarpenter-lifetime.service");
const LIFETIME_TIMER: &str = include_str!("../../../../ignition/units/scarpenter-lifetime.timer");
const API_WATCH: &str = include_str!("../../../../ignition/files/api-watch");
const API_WATCH_UNIT: &str = include_str!("../../../../ignition/units/scarpenter-api-watch.service");
const API_WATCH_TIMER: &str = include_str!("../../../../ignition/units/scarpenter-api-watch.timer");
const MODULES: &str = include_str!("../../../../ignition/files/modules.conf");
const SYSCTL: &str = include_str!("../../../../ignition/files/sysctl.conf");

pub(crate) const HOSTNAME_PATH: &str = "/etc/hostname";
pub(crate) const CA_PATH: &str = "/etc/kubernetes/ca.crt";
pub(crate) const NEVER_JOINED: &str = "scarpenter-never-joined.timer";
pub(crate) const LIFETIME: &str = "scarpenter-lifetime.timer";
pub(crate) const DEADLINE_DROPIN: &str = "deadline.conf";

pub(super) fn add(parts: &mut Parts, join: &Join) {
    parts.file(HOSTNAME_PATH, &format!("{}\n", join.node_name));
    parts.file(CA_PATH, &join.ca_pem);
    parts.file("/etc/modules-load.d/scarpenter.conf", MODULES);
    parts.file("/etc/sysctl.d/90-scarpenter.conf", SYSCTL);
    parts.dropin("systemd-time-wait-sync.service", "timeout.conf", TIME_WAIT_SYNC);
    parts.enable("systemd-time-wait-sync.service");
    // A bought machine lives for hours: an update that reboots it costs its pods.
    parts.masked("update-engine.service");
    parts.masked("locksmithd.service");
    dead_man(parts, join);
}

fn dead_man(parts: &mut Parts, join: &Join) {
    if let Some(seconds) = join.never_joined_after {
        parts.unit("scarpenter-never-joined.service", NEVER_JOINED_UNIT);
        timer(parts, NEVER_JOINED, NEVER_JOINED_TIMER, seconds);
    }
    if let Some(seconds) = join.lifetime {
        parts.unit("scarpenter-lifetime.service", LIFETIME_UNIT);
        timer(parts, LIFETIME, LIFETIME_TIMER, seconds);
    }
    if let Some(seconds) = join.api_unreachable_after {
        parts.program("/opt/scarpenter/api-watch", API_WATCH);
        parts.unit("scarpenter-api-watch.service", API_WATCH_UNIT);
        let limit = format!("[Service]\nEnvironment=UNREACHABLE_AFTER={seconds}\n");
        parts.dropin("scarpenter-api-watch.service", DEADLINE_DROPIN, &limit);
        parts.enabled("scarpenter-api-watch.timer", API_WATCH_TIMER);
    }
}

fn timer(parts: &mut Parts, name: &str, contents: &str, seconds: u64) {
    parts.enabled(name, contents);
    let deadline = format!("[Timer]\nOnBootSec={seconds}s\nAccuracySec=1s\n");
    parts.dropin(name, DEADLINE_DROPIN, &deadline);
}
