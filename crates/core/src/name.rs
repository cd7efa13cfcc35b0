//! Ids and names: newtypes, and how each is made from the other.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
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
                write!(f, "{:?}", self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

text_newtype!(
    /// UID of a NodeClaim: idempotency key of create, tag on the machine, argument of delete.
    ClaimUid
);
text_newtype!(
    /// The vendor's id of a machine.
    MachineId
);
text_newtype!(
    /// Id of a vendor as the catalog has it, such as `hcloud`.
    Vendor
);
text_newtype!(
    /// UID of Namespace `kube-system`: tags everything that this cluster pays for.
    ClusterId
);

const SCHEME: &str = "scarpenter://";

/// `scarpenter://<vendor>/<claim uid>`: ours, known before the machine exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId {
    /// Whose machine it is.
    pub vendor: Vendor,
    /// Whose claim it serves.
    pub claim: ClaimUid,
}

impl ProviderId {
    /// Parses a Node's `spec.providerID`; `None` when it is not one of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (vendor, claim) = text.strip_prefix(SCHEME)?.split_once('/')?;
        let plain = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        (plain(vendor) && plain(claim)).then(|| Self { vendor: vendor.into(), claim: claim.into() })
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.vendor, self.claim)
    }
}

const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Name of a claim, its node and its host: the pool's with `.` as `-`, cut to 52, then `-` and ten characters.
///
/// `random` is used modulo 36^10; two equal numbers give two equal names.
#[must_use]
pub fn claim_name(pool: &str, random: u64) -> String {
    let base: String = pool.replace('.', "-").chars().take(52).collect();
    format!("{}-{}", base.trim_end_matches('-'), base36(random, 10))
}

/// Id of a claim's bootstrap token: six base-36 characters of SHA-256 of its UID.
///
/// `clash` counts ids that were found taken; each gives the next six.
#[must_use]
pub fn bootstrap_token_id(claim: &ClaimUid, clash: usize) -> String {
    let digest = Sha256::digest(claim.as_str().as_bytes());
    let at = clash % 4 * 8;
    let word = digest[at..at + 8].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    base36(word, 6)
}

/// `digits` base-36 characters of `number`, least significant last.
#[must_use]
pub fn base36(mut number: u64, digits: usize) -> String {
    let mut out = vec![b'0'; digits];
    for digit in out.iter_mut().rev() {
        *digit = BASE36[usize::try_from(number % 36).unwrap_or_default()];
        number /= 36;
    }
    out.into_iter().map(char::from).collect()
}

/// Lower-case hex of SHA-256 over `bytes`.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text that must not be seen: its `Debug` and `Display` print nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The hidden text, for the one place that must send it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_id_survives_the_round_trip_and_garbage_does_not() {
        let id = ProviderId { vendor: "hcloud".into(), claim: "0a1b-2c".into() };
        assert_eq!(ProviderId::parse(&id.to_string()), Some(id));
        for garbage in
            ["", "scarpenter://", "scarpenter://hcloud/", "aws:///us-west-2a/i-1", "scarpenter://a/b/c"]
        {
            assert_eq!(ProviderId::parse(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn a_claim_name_is_a_host_name() {
        let name = claim_name(&"a.b".repeat(40), u64::MAX);
        assert!(name.len() <= 63 && !name.contains('.'), "{name}");
    }

    #[test]
    fn a_clash_gives_another_token_id() {
        let uid = ClaimUid::new("u");
        assert_ne!(bootstrap_token_id(&uid, 0), bootstrap_token_id(&uid, 1));
        assert_eq!(bootstrap_token_id(&uid, 0).len(), 6);
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?} {0}", Secret::new("hush")), "[secret] [secret]");
    }
}
