//! What the metal is told, and what its state does to the machine.

#![allow(clippy::unwrap_used)]

mod common;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{create, delete, find, stage_with};
use scarpenter_provider::MachineState;
use scarpenter_provider_sim::metal::{Metal, Order, Powered};

/// Writes down what is switched on and can be found switched off.
#[derive(Clone, Default)]
struct Witness {
    orders: Arc<Mutex<Vec<Order>>>,
    off: Arc<AtomicBool>,
}

impl Metal for Witness {
    fn power_on(&self, order: Order) -> Box<dyn Powered> {
        self.orders.lock().unwrap().push(order);
        Box::new(self.clone())
    }
}

impl Powered for Witness {
    fn is_off(&self) -> bool {
        self.off.load(Ordering::SeqCst)
    }

    fn console(&self) -> String {
        String::new()
    }

    fn power_off(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.off.store(true, Ordering::SeqCst);
        Box::pin(ready(()))
    }
}

#[tokio::test]
async fn the_metal_gets_document_capacity_and_the_faults_of_its_offering() {
    let rules = "rules:
      - {instanceType: cx22, fault: {machine: {memoryPercent: 94, joinsAs: other}}}
      - {region: fsn1, fault: {machine: {bootDelay: 1m, dropTaints: true}}}
      - {instanceType: cx32, fault: {machine: {neverJoins: true}}}";
    let metal = Witness::default();
    let stage = stage_with("hcloud", rules, metal.clone()).await;
    stage.client.create_machine(create("a")).await.unwrap();
    let orders = metal.orders.lock().unwrap();
    let [order] = orders.as_slice() else { panic!("{} orders", orders.len()) };
    assert_eq!((order.user_data.as_slice(), order.capacity.get("cpu")), (b"{}".as_slice(), 2000));
    assert_eq!(order.boot_delay, Duration::from_secs(60));
    let faults = &order.faults;
    assert_eq!((faults.memory_percent, faults.joins_as.as_deref()), (Some(94), Some("other")));
    assert!(faults.drop_taints && !faults.never_joins && !faults.drop_labels);
}

#[tokio::test]
async fn a_machine_is_pending_while_it_boots_and_stopped_when_it_switches_itself_off() {
    let metal = Witness::default();
    let stage = stage_with("hcloud", "rules: [{fault: {machine: {bootDelay: 1h}}}]", metal.clone()).await;
    stage.client.create_machine(create("a")).await.unwrap();
    let machine = || async { stage.client.get_machine(find("a")).await.unwrap().unwrap() };
    assert_eq!(machine().await.state, MachineState::Pending);
    metal.off.store(true, Ordering::SeqCst);
    assert_eq!(machine().await.state, MachineState::Stopped);
}

#[tokio::test]
async fn a_deleted_machine_is_switched_off_at_once_and_seen_until_it_is_gone() {
    let metal = Witness::default();
    let stage = stage_with("hcloud", "rules: [{fault: {deleteTakes: 1h}}]", metal.clone()).await;
    stage.client.create_machine(create("a")).await.unwrap();
    stage.client.delete_machine(delete("a")).await.unwrap();
    while !metal.off.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    let machine = stage.client.get_machine(find("a")).await.unwrap().unwrap();
    assert_eq!(machine.state, MachineState::Stopping);
    // A claim that is on its way out gets no second machine.
    let again = stage.client.create_machine(create("a")).await.unwrap_err();
    assert_eq!((again.category(), stage.cloud.machines()), ("unavailable", 1));
}
