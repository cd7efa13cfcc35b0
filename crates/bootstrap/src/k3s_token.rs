//! The token of a k3s agent: the claim's bootstrap token behind a hash of the cluster's CA.
//!
//! With the hash the agent checks whom it talks to before it sends the token; without, it trusts the first that
//! answers (<https://docs.k3s.io/cli/token>, `hashCA` in k3s's `pkg/clientaccess`).

use scarpenter_core::name::sha256_hex;
use sha2::{Digest, Sha256};
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

use crate::join::{Error, Join};

/// `K10<hash>::<id>.<secret>`.
///
/// # Errors
/// [`Error::Ca`] when the CA is a bundle that cannot be read.
pub(crate) fn of(join: &Join) -> Result<String, Error> {
    let hash = ca_hash(&join.ca_pem).ok_or(Error::Ca)?;
    Ok(format!("K10{hash}::{}.{}", join.token_id, join.token_secret.reveal()))
}

/// SHA-256 as k3s computes it: of the file when it holds one certificate, of the root (DER) that the first of several
/// leads to, and of the file again when it leads to none. `None` when several cannot be read.
fn ca_hash(pem: &str) -> Option<String> {
    if pem.matches("-----BEGIN CERTIFICATE-----").count() < 2 {
        return Some(sha256_hex(pem.as_bytes()));
    }
    let blocks = Pem::iter_from_buffer(pem.as_bytes()).collect::<Result<Vec<_>, _>>().ok()?;
    let certificates = blocks.iter().map(|block| block.parse_x509()).collect::<Result<Vec<_>, _>>().ok()?;
    let (first, others) = certificates.split_first()?;
    Some(match root_of(first, others) {
        Some(at) => hex(&Sha256::digest(&blocks[at + 1].contents)),
        None => sha256_hex(pem.as_bytes()),
    })
}

/// Which of `others` is the root that `first` leads to.
fn root_of(first: &X509Certificate<'_>, others: &[X509Certificate<'_>]) -> Option<usize> {
    let mut now = first;
    for _ in others {
        let signed_by = |issuer: &X509Certificate<'_>| {
            now.issuer() == issuer.subject() && now.verify_signature(Some(issuer.public_key())).is_ok()
        };
        let at = others.iter().position(signed_by)?;
        if others[at].issuer() == others[at].subject() {
            return Some(at);
        }
        now = &others[at];
    }
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    #[test]
    fn one_certificate_is_hashed_as_the_file_that_it_is() {
        let pem = params("k3s-server-ca").self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        assert_eq!(ca_hash(&pem).unwrap(), sha256_hex(pem.as_bytes()));
        assert_ne!(ca_hash(&format!("{pem}\n")).unwrap(), ca_hash(&pem).unwrap());
    }

    #[test]
    fn a_bundle_is_hashed_by_the_root_that_its_first_certificate_leads_to() {
        let (root_key, middle_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let root = params("root").self_signed(&root_key).unwrap();
        let root_issuer = Issuer::new(params("root"), root_key);
        let middle = params("middle").signed_by(&middle_key, &root_issuer).unwrap();
        let middle_issuer = Issuer::new(params("middle"), middle_key);
        let server =
            params("k3s-server-ca").signed_by(&KeyPair::generate().unwrap(), &middle_issuer).unwrap();
        let other = params("root").self_signed(&KeyPair::generate().unwrap()).unwrap();
        let bundle = [server.pem(), other.pem(), root.pem(), middle.pem()].concat();
        assert_eq!(ca_hash(&bundle).unwrap(), hex(&Sha256::digest(root.der())));
    }

    #[test]
    fn two_roots_are_hashed_as_the_file_that_they_are() {
        let root = |name| params(name).self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        let bundle = root("new") + &root("old");
        assert_eq!(ca_hash(&bundle).unwrap(), sha256_hex(bundle.as_bytes()));
    }

    #[test]
    fn a_bundle_that_cannot_be_read_has_no_hash() {
        let half = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(ca_hash(&half.repeat(2)), None);
    }
}
