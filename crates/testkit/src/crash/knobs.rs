//! What kind of world a run has, and which part of the controller is broken on purpose.

use rand::Rng;
use rand::rngs::SmallRng;

/// Longest from writing `attempt` to sending the create (`may_send`), milliseconds like all times here.
pub(super) const SEND: i64 = 15_000;
/// Longest that a create is on its way.
pub(super) const FLIGHT: i64 = 10_000;
/// Longest that the vendor's list hides a machine.
pub(super) const LAG: i64 = 8_000;
/// Most that two clocks differ, as `lifecycle::settle` has it.
pub(super) const SKEW: i64 = 5_000;
/// Longest that a scheduler binds pods to a node that is tainted already.
pub(super) const BIND: i64 = 4_000;
/// What flight, list, clocks and sending add up to: exactly enough, so that a wait one too short shows.
pub(super) const SETTLE: i64 = SEND + FLIGHT + LAG + SKEW;

/// How long the trouble lasts.
pub(super) const TROUBLE: i64 = 150_000;
/// When a run that is not at rest is called stuck.
pub(super) const END: i64 = 2_000_000;

/// The controller as it is, or with one thing broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// As it is.
    Real,
    /// A create counts as settled at once.
    NoSettle,
    /// `settle` leaves out what the vendor's list hides.
    SettleWithoutLag,
    /// `settle` leaves out what is on its way.
    SettleWithoutFlight,
    /// Release does not wait for the latest create to settle.
    ReleaseUnsettled,
    /// `settle` is counted from the first create and not from the latest.
    SettleFromFirst,
    /// The create is sent without writing `attempt`.
    NoAttempt,
    /// `attempt` is written whatever the claim's version is.
    AttemptAnyVersion,
    /// The create is sent however long ago `attempt` was written.
    SendLate,
    /// A second create does not look for what the first one made.
    NoFind,
    /// A refusal is written whatever the claim's version is.
    RefusalAnyVersion,
    /// An answer that never came counts as a refusal.
    LostIsRefused,
    /// Delete goes by id alone, never by UID.
    DeleteById,
    /// Release believes the vendor's word that it is gone and asks for no list.
    ReleaseWithoutList,
    /// The sweep reads claims first and machines after, and has no grace.
    SweepBackwards,
    /// A drained node is not left time for the pods that are just being bound.
    NoRest,
    /// Release leaves the join Secret.
    ReleaseKeepsSecret,
    /// A mesh key is on its claim alone, and not noted for when the claim is gone.
    KeyIsNotNoted,
}

/// One world. Chances are in a thousand.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    pub(super) claims: usize,
    pub(super) leaders: usize,
    pub(super) idempotent: bool,
    /// The vendor answers a used UID with the machine it made then, though that is gone.
    pub(super) remembers: bool,
    pub(super) crash: u32,
    pub(super) lost: u32,
    pub(super) unsent: u32,
    /// An answer takes up to a minute.
    pub(super) slow: u32,
    pub(super) refused: u32,
    pub(super) twice: u32,
    pub(super) limited: u32,
    pub(super) down: u32,
    /// The vendor says that a machine is gone while it is not.
    pub(super) liar: u32,
    /// A process stands still, for up to a minute.
    pub(super) freeze: u32,
    /// Every delay is as short or as long as it can be.
    pub(super) brink: bool,
    pub(super) lag: i64,
    pub(super) flight: i64,
    pub(super) skew: i64,
    pub(super) stale: i64,
    pub(super) dies: u32,
    /// Machines died by themselves at some time of the run.
    pub(super) mortal: bool,
    /// People delete claims.
    pub(super) deletes: u32,
    /// People delete nodes, Secrets and finalizers.
    pub(super) hands: u32,
    pub(super) sweeps: bool,
    /// Machines join a mesh first.
    pub(super) mesh: bool,
    /// Kubernetes collects what its owner left and cleans tokens that ran out.
    pub(super) collector: bool,
}

impl Knobs {
    pub(super) fn draw(rng: &mut SmallRng) -> Self {
        let mut pick = |choices: &[u32]| choices[rng.random_range(0..choices.len())];
        let leaders = usize::from(pick(&[0, 0, 1]) == 1) + 1;
        let hands = pick(&[0, 0, 0, 300]);
        let dies = pick(&[0, 0, 0, 300]);
        Self {
            claims: usize::try_from(pick(&[1, 1, 1, 2, 3])).unwrap_or(1),
            leaders,
            idempotent: pick(&[0, 0, 1]) == 1,
            remembers: pick(&[0, 1]) == 1,
            crash: pick(&[0, 20, 80, 200]),
            lost: pick(&[0, 50, 300, 800]),
            unsent: pick(&[0, 0, 100, 400]),
            slow: pick(&[0, 50, 50, 500]),
            refused: pick(&[0, 0, 150, 600]),
            twice: pick(&[0, 0, 200]),
            limited: pick(&[0, 0, 200]),
            down: pick(&[0, 0, 50, 300]),
            liar: pick(&[0, 0, 300]),
            freeze: pick(&[0, 0, 40]),
            brink: pick(&[0, 0, 1]) == 1,
            lag: LAG * i64::from(pick(&[0, 1, 4, 4])) / 4,
            flight: FLIGHT * i64::from(pick(&[0, 1, 4, 4])) / 4,
            skew: SKEW * i64::from(pick(&[0, 1])),
            stale: i64::from(pick(&[5, 200, 3_000, 60_000])),
            dies,
            mortal: dies > 0,
            deletes: pick(&[0, 500, 1000]),
            hands,
            sweeps: pick(&[0, 1]) == 1,
            mesh: pick(&[0, 1]) == 1,
            collector: leaders > 1 || hands > 0,
        }
    }

    /// The same world without trouble.
    pub(super) fn at_rest(&self) -> Self {
        Self {
            leaders: 1,
            crash: 0,
            lost: 0,
            unsent: 0,
            slow: 0,
            refused: 0,
            twice: 0,
            limited: 0,
            down: 0,
            liar: 0,
            freeze: 0,
            brink: false,
            stale: 50,
            dies: 0,
            deletes: 0,
            hands: 0,
            sweeps: true,
            ..self.clone()
        }
    }
}
