//! The password of a k3s node's name: written before the machine is bought, so that nobody can take the name without it.
//!
//! A k3s server signs kubelet certificates for whatever name the holder of a token sends, and for the first who sends a
//! name it keeps a hash of the password that came with it. Later requests in that name must bring the same password.
//!
//! Facts, from k3s's source (`pkg/nodepassword`, `pkg/authenticator/hash`):
//! - The hash is in namespace kube-system, Secret `<node name>.node-password.k3s` (lower case), key `hash`, as
//!   `$1:<salt>:<log2 N>:<r>:<p>:<key>`: the salt in hex, the scrypt key of 64 bytes in base64 without padding.
//! - It is checked with the numbers that stand in it. k3s itself takes `15:8:1`, as passwords may be people's; ours are
//!   random, so a small one is as good and a burst of claims costs no minute.
//! - Newer servers give their own the type `k3s.cattle.io/node-password`, and delete one of that type that is older than
//!   ten minutes and has no Node. Machines may take longer than that, so ours has no type; it is found by name.
//!   A server that starts gives it the type, after which [`super::tidy`] may have to write it again.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use scarpenter_core::name::{Secret as Hidden, base36};
use scarpenter_index::ClaimRecord;
use scrypt::Params;

use super::{Error, secrets};

/// Key of the Secret that k3s reads.
const HASH: &str = "hash";
/// Version of the format.
const VERSION: &str = "1";
/// Binary logarithm of scrypt's N, its r and its p.
const COST: (u8, u32, u32) = (10, 8, 1);
/// Bytes of the key.
const KEY_BYTES: usize = 64;
/// What the name of every such Secret ends with.
pub(super) const SUFFIX: &str = ".node-password.k3s";

/// Name of the Secret of a node's name.
pub(super) fn name(node: &str) -> String {
    format!("{node}{SUFFIX}").to_lowercase()
}

/// A new password: 32 of a-z and 0-9, some 165 bits.
pub(super) fn fresh() -> Hidden {
    Hidden::new((0..4).map(|_| base36(rand::random(), 8)).collect::<String>())
}

/// Makes the Secret say that the claim's name has this password.
///
/// # Errors
/// [`Error::NameTaken`] when the name has another password that is not of this claim: it was used before.
pub(super) async fn put(api: &Api<Secret>, record: &ClaimRecord, password: &Hidden) -> Result<(), Error> {
    let secret = of(record, password);
    let name = secret.name_any();
    for _ in 0..3 {
        match api.create(&PostParams::default(), &secret).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(Error::kubernetes("store the node password")(error)),
        }
        let found = api.get_opt(&name).await.map_err(Error::kubernetes("read the node password"))?;
        let Some(found) = found else { continue };
        let hash = found.data.as_ref().and_then(|data| data.get(HASH));
        if hash.is_some_and(|hash| verify(&hash.0, password)) {
            return Ok(());
        }
        if !is_of(&found, record) {
            return Err(Error::NameTaken(name));
        }
        delete(api, &found).await?;
    }
    Err(Error::NameTaken(name))
}

/// Removes it if it is this claim's: the name is given up.
pub(super) async fn remove(api: &Api<Secret>, record: &ClaimRecord) -> Result<(), Error> {
    let found = api.get_opt(&name(&record.claim.name)).await;
    let found = found.map_err(Error::kubernetes("read the node password"))?;
    match found.filter(|found| is_of(found, record)) {
        Some(found) => delete(api, &found).await,
        None => Ok(()),
    }
}

/// Exactly the one that was read: k3s writes them, too.
async fn delete(api: &Api<Secret>, found: &Secret) -> Result<(), Error> {
    let preconditions = Preconditions { uid: found.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&found.name_any(), &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(Error::kubernetes("remove the node password")(error)),
    }
}

fn is_of(secret: &Secret, record: &ClaimRecord) -> bool {
    secrets::claim_of(secret).is_some_and(|claim| claim == record.claim.uid)
}

fn of(record: &ClaimRecord, password: &Hidden) -> Secret {
    let hash = hash(password, &rand::random::<[u8; 8]>());
    Secret {
        metadata: secrets::meta(record, name(&record.claim.name)),
        data: Some([(HASH.to_owned(), ByteString(hash.into_bytes()))].into()),
        immutable: Some(true),
        ..Secret::default()
    }
}

fn hash(password: &Hidden, salt: &[u8]) -> String {
    let (log_n, r, p) = COST;
    let key = key(password, salt, COST, KEY_BYTES).expect("the cost is one that scrypt takes");
    let salt: String = salt.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("${VERSION}:{salt}:{log_n}:{r}:{p}:{}", STANDARD_NO_PAD.encode(key))
}

/// Whether a stored hash is of this password; one that cannot be read is of none.
fn verify(stored: &[u8], password: &Hidden) -> bool {
    let parsed = std::str::from_utf8(stored).ok().and_then(|text| {
        let mut parts = text.strip_prefix('$')?.split(':');
        let mut next = || parts.next();
        (next()? == VERSION).then_some(())?;
        let salt = bytes(next()?)?;
        let cost = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        let stored = STANDARD_NO_PAD.decode(next()?).ok()?;
        Some((key(password, &salt, cost, stored.len())?, stored))
    });
    parsed.is_some_and(|(key, stored)| key == stored)
}

/// `None` for a cost that scrypt does not take, or that would take very long.
fn key(password: &Hidden, salt: &[u8], (log_n, r, p): (u8, u32, u32), len: usize) -> Option<Vec<u8>> {
    let params = Params::new(log_n, r, p, len).ok().filter(|_| log_n <= 20 && r <= 32 && p <= 8)?;
    let mut key = vec![0; len];
    scrypt::scrypt(password.reveal().as_bytes(), salt, &params, &mut key).ok()?;
    Some(key)
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let even = hex.len().is_multiple_of(2) && hex.is_ascii();
    let pairs = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok());
    even.then(|| pairs.collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By another implementation of scrypt (RFC 7914), put together as k3s does.
    const OURS: &str = "$1:0123456789abcdef:10:8:1:TqjkZlQ7urOJacfk81TKvRvKfRQnZdefxjAa1nVbjOYX8WULbiWwt1Q8Mxi3Pq64R9mHDqx/A1dnku0hAhTtMQ";
    /// The same with k3s's own cost.
    const K3S: &str = "$1:0123456789abcdef:15:8:1:/+NnBTICXTtXHuYLfnSf7SseZZ9aEchnzwaTYS9lnRRPO0azWL6hfjRNFocmIdy/OYEI/O6NDL4WDcyx2FsaPA";

    fn hello() -> Hidden {
        Hidden::new("hello world")
    }

    #[test]
    fn the_hash_is_the_one_that_k3s_reads() {
        assert_eq!(hash(&hello(), &[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]), OURS);
    }

    #[test]
    fn a_hash_is_checked_with_the_numbers_in_it() {
        for stored in [OURS, K3S] {
            assert!(verify(stored.as_bytes(), &hello()), "{stored}");
            assert!(!verify(stored.as_bytes(), &Hidden::new("hello worlds")), "{stored}");
        }
        for broken in
            ["", "$1", "$2:00:10:8:1:AAAA", "$1:0:10:8:1:AAAA", "$1:00:99:8:1:AAAA", "$1:00:x:8:1:AA"]
        {
            assert!(!verify(broken.as_bytes(), &hello()), "{broken}");
        }
    }

    #[test]
    fn the_secret_has_the_name_that_k3s_looks_for() {
        assert_eq!(name("Pool-X7f"), "pool-x7f.node-password.k3s");
    }

    #[test]
    fn passwords_are_words_and_never_the_same() {
        let [one, other] = [fresh(), fresh()].map(|password| password.reveal().to_owned());
        assert_ne!(one, other);
        assert_eq!(one.len(), 32);
        assert!(one.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{one}");
    }
}
