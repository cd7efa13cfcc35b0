use crate::Caps;

/// What is left of the caps; `None` is not capped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapsLeft {
    pub(crate) machines: Option<u64>,
    pub(crate) micro_usd: Option<u64>,
}

impl CapsLeft {
    pub(super) fn new(caps: &Caps) -> Self {
        Self {
            machines: caps.max_machines.map(|most| most.saturating_sub(caps.used_machines)),
            micro_usd: caps
                .max_micro_usd_per_hour
                .map(|most| most.saturating_sub(caps.used_micro_usd_per_hour)),
        }
    }

    /// Whether one more machine of this price is allowed.
    pub(crate) fn allow(&self, price: u64) -> bool {
        self.machines != Some(0) && self.micro_usd.is_none_or(|left| price <= left)
    }

    pub(crate) fn reserve(&mut self, price: u64) {
        self.machines = self.machines.map(|left| left.saturating_sub(1));
        self.micro_usd = self.micro_usd.map(|left| left.saturating_sub(price));
    }

    pub(crate) fn give_back(&mut self, price: u64) {
        self.machines = self.machines.map(|left| left + 1);
        self.micro_usd = self.micro_usd.map(|left| left.saturating_add(price));
    }
}
