//! What Headscale knows, as far as we care.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use scarpenter_core::name::Secret;

macro_rules! number_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes what Headscale's ids are: digits, as a text. `None` for anything else.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let fine = !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit());
                fine.then(|| Self(text.to_owned()))
            }

            /// The digits.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

number_newtype!(
    /// Id of a pre-auth key. Headscale never gives one a second time while its database lives.
    KeyId
);
number_newtype!(
    /// Id of a mesh node.
    NodeId
);

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Id, digits.
    pub id: String,
    /// Name.
    pub name: String,
    /// Who vouches for it, such as `oidc`; empty for a local one.
    pub provider: String,
}

/// A pre-auth key to be made: single use, and never ephemeral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// Id of the user that machines join as.
    pub user: String,
    /// Tags that their nodes get.
    pub tags: Vec<String>,
    /// End of the key.
    pub expiration: Timestamp,
}

/// A pre-auth key, without what it opens with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Id.
    pub id: KeyId,
    /// Whose it is; a tagged key may have none.
    pub user: Option<User>,
    /// Tags that its nodes get.
    pub tags: Vec<String>,
    /// Whether it admits more than one machine.
    pub reusable: bool,
    /// Whether its nodes go when they are out of reach.
    pub ephemeral: bool,
    /// Whether a machine has joined with it.
    pub used: bool,
    /// Its end; `None` is never.
    pub expiration: Option<Timestamp>,
    /// When it was made. With the id it tells a key from one of another database under the same URL.
    pub created: Option<Timestamp>,
}

impl Key {
    /// Whether nobody can join with it any more.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expiration.is_some_and(|end| end <= now)
    }
}

/// A key that was made just now: the only time at which Headscale shows what it opens with.
#[derive(Clone, Debug)]
pub struct MadeKey {
    /// What is kept of it.
    pub key: Key,
    /// What a machine joins with. It may hold `-` and `_`.
    pub secret: Secret,
}

/// A node of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Id.
    pub id: NodeId,
    /// The host's own name; twins have the same.
    pub name: String,
    /// Its name in the mesh; the second of twins gets another.
    pub given_name: String,
    /// Addresses in the mesh.
    pub addresses: Vec<IpAddr>,
    /// The key that it joined with, if it was one.
    pub key: Option<Key>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether it is connected, as far as Headscale knows: one that died without a word is for a quarter of an hour.
    pub online: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_digits_and_nothing_that_would_change_a_path() {
        assert_eq!(NodeId::parse("12").map(|id| id.to_string()).as_deref(), Some("12"));
        for bad in ["", "1/2", "-1", "a", "1?x", "..", "111111111111111111111"] {
            assert_eq!(NodeId::parse(bad), None, "{bad}");
        }
    }
}
