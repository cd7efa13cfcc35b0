//! What the fake remembers, and how a machine joins.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use jiff::Timestamp;

use super::{API_KEY, TAG, USER};

/// In whose shapes it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 0.29: plain text for a wrong API key, `{code, message}` for the rest, 500 where it means 404.
    V029,
    /// Development of 0.30: `{title, status, detail}`, and no unknown field.
    V030,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every call is answered with this status.
    Status(u16),
    /// Every call is answered after this long.
    Slow(Duration),
    /// The answer to the making of a key is lost, and the key is made.
    LostKeys,
    /// Nodes are not deleted: it says 500.
    KeepsNodes,
}

/// A pre-auth key.
#[derive(Clone, Debug)]
pub struct FakeKey {
    /// All of it.
    pub secret: String,
    /// Whose.
    pub user: Option<u64>,
    /// Tags.
    pub tags: Vec<String>,
    /// More than one machine.
    pub reusable: bool,
    /// Nodes go by themselves.
    pub ephemeral: bool,
    /// A machine has joined with it.
    pub used: bool,
    /// End.
    pub expiration: Timestamp,
    /// When it was made.
    pub created: Timestamp,
}

/// A node.
#[derive(Clone, Debug)]
pub struct FakeNode {
    /// Host name.
    pub name: String,
    /// Its key, while that is there.
    pub key: Option<u64>,
    /// Address.
    pub address: IpAddr,
}

/// Everything that it knows. Tests read and change it.
#[derive(Debug)]
pub struct State {
    /// In whose shapes it answers.
    pub version: Version,
    /// The key of its API.
    pub api_key: String,
    /// Names by id.
    pub users: BTreeMap<u64, String>,
    /// Keys by id.
    pub keys: BTreeMap<u64, FakeKey>,
    /// Nodes by id.
    pub nodes: BTreeMap<u64, FakeNode>,
    /// Policy, as it was written; `None` was never set.
    pub policy: Option<String>,
    /// What goes wrong now.
    pub fault: Option<Fault>,
    /// Every request so far, `METHOD /path?query`.
    pub requests: Vec<String>,
    /// Fields of requests that a version does not know.
    pub unknown_fields: BTreeSet<String>,
    last: (u64, u64),
}

impl State {
    pub(super) fn new(version: Version) -> Self {
        Self {
            version,
            api_key: API_KEY.to_owned(),
            users: BTreeMap::from([(1, USER.to_owned())]),
            keys: BTreeMap::new(),
            nodes: BTreeMap::new(),
            policy: Some(format!(
                "{{\n // Written by hand.\n \"tagOwners\": {{\"{TAG}\": [\"{USER}@\"],}},\n}}"
            )),
            fault: None,
            requests: Vec::new(),
            unknown_fields: BTreeSet::new(),
            last: (0, 0),
        }
    }

    /// Makes a key as an API call would, and gives its id.
    pub fn make_key(&mut self, user: Option<u64>, tags: &[&str], expiration: Timestamp) -> u64 {
        let key = FakeKey {
            secret: String::new(),
            user,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            reusable: false,
            ephemeral: false,
            used: false,
            expiration,
            created: Timestamp::now(),
        };
        self.keep(key)
    }

    /// Keeps a key under the next id, which no other key ever had.
    pub(super) fn keep(&mut self, mut key: FakeKey) -> u64 {
        self.last.0 += 1;
        // As in the recorded ones, the part that lists show may hold both letters that look like separators.
        key.secret = format!("hskey-auth-a-_{:09}-{:064}", self.last.0, self.last.0);
        self.keys.insert(self.last.0, key);
        self.last.0
    }

    /// A machine joins with all of a key, as tailscaled does.
    ///
    /// # Errors
    /// Headscale's words when it does not let it in.
    pub fn join(&mut self, secret: &str, name: &str) -> Result<u64, &'static str> {
        let id = self.keys.iter().find(|(_, key)| key.secret == secret).map(|(id, _)| *id);
        self.join_with(id.ok_or("authkey not found")?, name)
    }

    /// The same for whoever knows only the key's id.
    ///
    /// # Errors
    /// Headscale's words when it does not let it in.
    pub fn join_with(&mut self, key: u64, name: &str) -> Result<u64, &'static str> {
        let found = self.keys.get_mut(&key).ok_or("authkey not found")?;
        if found.expiration < Timestamp::now() {
            return Err("authkey expired");
        }
        if found.used && !found.reusable {
            return Err("authkey already used");
        }
        found.used = true;
        self.last.1 += 1;
        let [.., high, low] = self.last.1.to_be_bytes();
        let address = IpAddr::V4(Ipv4Addr::new(100, 64, high, low));
        self.nodes.insert(self.last.1, FakeNode { name: name.to_owned(), key: Some(key), address });
        Ok(self.last.1)
    }

    /// Keys with which a machine could still join.
    #[must_use]
    pub fn open_keys(&self) -> usize {
        let now = Timestamp::now();
        self.keys.values().filter(|key| key.expiration > now && !key.used).count()
    }

    pub(super) fn delay(&self) -> Duration {
        match self.fault {
            Some(Fault::Slow(delay)) => delay,
            _ => Duration::ZERO,
        }
    }
}
