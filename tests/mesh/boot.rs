//! One boot of a machine: its services in the order that their units ask for, as systemd would start them.
//!
//! Played are service units of the document with `Wants`, `Requires`, `After`, `Before`, `Type`, `Restart`, their
//! environment and folders. Targets and units of the image count as reached. Timers are not played.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use crate::namespace::Namespace;
use crate::service::{Service, State};
use crate::unit::Unit;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running machine.
pub(crate) struct Boot {
    services: BTreeMap<String, Service>,
    // After the services, which it would end.
    machine: Namespace,
}

impl Boot {
    /// Starts with those of `units` that start at boot and what they pull in.
    pub(crate) fn new(units: &BTreeMap<String, Unit>, machine: Namespace, logs: &Path) -> Self {
        let services = transaction(units)
            .into_iter()
            .map(|name| (name.clone(), Service::new(units[&name].clone(), logs)))
            .collect();
        Self { services, machine }
    }

    pub(crate) fn machine(&self) -> &Namespace {
        &self.machine
    }

    pub(crate) fn service(&self, name: &str) -> anyhow::Result<&Service> {
        self.services.get(name).ok_or_else(|| anyhow::anyhow!("{name} is not started at boot"))
    }

    pub(crate) fn service_mut(&mut self, name: &str) -> anyhow::Result<&mut Service> {
        self.services.get_mut(name).ok_or_else(|| anyhow::anyhow!("{name} is not started at boot"))
    }

    /// Plays until it is so.
    pub(crate) fn until(
        &mut self,
        within: Duration,
        what: &str,
        mut is: impl FnMut(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        loop {
            self.step()?;
            if is(self)? {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("not after {} s: {what}\n{}", within.as_secs(), self.words());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Plays for so long.
    pub(crate) fn play(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        self.until(time * 2, "time passes", |_| Ok(Instant::now() > end))
    }

    /// Starts what may start, and looks after what runs.
    fn step(&mut self) -> anyhow::Result<()> {
        for service in self.services.values_mut() {
            service.look(&self.machine)?;
        }
        let waiting: Vec<String> = self.names(|service| service.state == State::Waiting);
        let mut moved = false;
        for name in &waiting {
            let earlier = self.comes_after(name);
            if earlier.iter().any(|other| !self.services[other].is_settled()) {
                continue;
            }
            moved = true;
            let missing = self.services[name].unit.named("Requires").into_iter().find_map(|other| {
                let service = self.services.get(other)?;
                matches!(service.state, State::Failed(_)).then(|| other.to_owned())
            });
            let service = self.services.get_mut(name).expect("it is one of ours");
            match missing {
                Some(other) => service.state = State::Failed(format!("it requires {other}, which failed")),
                None => service.start(&self.machine),
            }
        }
        let busy = !self.names(|service| service.state == State::Starting).is_empty();
        ensure!(waiting.is_empty() || moved || busy, "these wait for one another: {}", waiting.join(", "));
        Ok(())
    }

    /// Those of our services that have to be settled before this one starts.
    fn comes_after(&self, name: &str) -> BTreeSet<String> {
        let after = self.services[name].unit.named("After").into_iter().map(str::to_owned);
        let before = self.names(|other| other.unit.named("Before").contains(&name));
        after.chain(before).filter(|other| self.services.contains_key(other)).collect()
    }

    fn names(&self, is: impl Fn(&Service) -> bool) -> Vec<String> {
        self.services.iter().filter(|(_, service)| is(service)).map(|(name, _)| name.clone()).collect()
    }

    /// How far each service is and its last words.
    fn words(&self) -> String {
        let service = |(name, service): (&String, &Service)| {
            let said = service.said();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(12)..].join("\n    ");
            format!("{name}: {:?}\n    {last}", service.state)
        };
        self.services.iter().map(service).collect::<Vec<_>>().join("\n")
    }
}

/// What starts at boot, and what that wants or requires.
fn transaction(units: &BTreeMap<String, Unit>) -> BTreeSet<String> {
    let mut todo: Vec<&Unit> = units.values().filter(|unit| unit.starts_at_boot()).collect();
    let mut out = BTreeSet::new();
    while let Some(unit) = todo.pop() {
        if out.insert(unit.name.clone()) {
            let pulled = ["Wants", "Requires", "BindsTo"].into_iter().flat_map(|key| unit.named(key));
            todo.extend(pulled.filter_map(|name| units.get(name)));
        }
    }
    out
}
