//! What a machine is made of: a hollow node, or nothing.

use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scarpenter_core::resources::Resources;
use scarpenter_hollow::{Node, Spec, State};

use crate::faults::MachineFault;

/// Makes machines run.
pub trait Metal: Send + Sync + 'static {
    /// Switches a machine on.
    fn power_on(&self, order: Order) -> Box<dyn Powered>;
}

/// What is switched on.
pub struct Order {
    /// What the machine boots with.
    pub user_data: Vec<u8>,
    /// What it has.
    pub capacity: Resources,
    /// How long it takes until its first program runs.
    pub boot_delay: Duration,
    /// Its address.
    pub address: IpAddr,
    /// Where its disk is kept, if anywhere; a machine that finds one runs on as the same.
    pub disk: Option<PathBuf>,
    /// What goes wrong inside it.
    pub faults: MachineFault,
}

/// A machine that was switched on.
pub trait Powered: Send + Sync {
    /// Whether it has switched itself off.
    fn is_off(&self) -> bool;

    /// What it printed.
    fn console(&self) -> String;

    /// Switches it off.
    fn power_off(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Machines on paper.
#[derive(Clone, Copy, Debug)]
pub struct Paper;

impl Metal for Paper {
    fn power_on(&self, order: Order) -> Box<dyn Powered> {
        Box::new(Sheet { console: format!("booted with {} bytes of user data\n", order.user_data.len()) })
    }
}

struct Sheet {
    console: String,
}

impl Powered for Sheet {
    fn is_off(&self) -> bool {
        false
    }

    fn console(&self) -> String {
        self.console.clone()
    }

    fn power_off(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

/// Machines that are hollow nodes.
#[derive(Clone, Copy, Debug)]
pub struct Hollow;

impl Metal for Hollow {
    fn power_on(&self, order: Order) -> Box<dyn Powered> {
        let Order { user_data, capacity, boot_delay, address, disk, faults } = order;
        let faults = scarpenter_hollow::Faults {
            never_joins: faults.never_joins,
            joins_as: faults.joins_as,
            memory_percent: faults.memory_percent.unwrap_or(100),
            drop_labels: faults.drop_labels,
            drop_taints: faults.drop_taints,
            never_ready: faults.never_ready,
        };
        let spec = Spec { user_data, capacity, boot_delay, address: Some(address), faults };
        Box::new(Body(Mutex::new(Power::On(Node::start_with_disk(spec, disk)))))
    }
}

struct Body(Mutex<Power>);

enum Power {
    On(Node),
    /// What it printed until then.
    Off(String),
}

impl Body {
    fn power(&self) -> MutexGuard<'_, Power> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Powered for Body {
    fn is_off(&self) -> bool {
        match &*self.power() {
            Power::On(node) => *node.state().borrow() == State::Off,
            Power::Off(_) => true,
        }
    }

    fn console(&self) -> String {
        match &*self.power() {
            Power::On(node) => node.console(),
            Power::Off(printed) => printed.clone(),
        }
    }

    fn power_off(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let printed = self.console();
        match std::mem::replace(&mut *self.power(), Power::Off(printed)) {
            Power::On(node) => Box::pin(node.stop()),
            Power::Off(_) => Box::pin(std::future::ready(())),
        }
    }
}
