//! A certificate request, read strictly: what a kubelet never sends is refused, not skipped.

use std::net::IpAddr;

use scarpenter_core::name::sha256_hex;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension, SubjectAlternativeName};
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

use super::{Reason, Refusal};

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// What the request asks to be certified. Its signature was verified.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) common_names: Vec<String>,
    pub(super) organizations: Vec<String>,
    pub(super) has_other_attributes: bool,
    pub(super) dns: Vec<String>,
    pub(super) ips: Vec<IpAddr>,
    pub(super) has_other_names: bool,
    pub(super) key_sha256: String,
}

impl Request {
    pub(super) fn parse(pem: &[u8]) -> Result<Self, Refusal> {
        let der = single_block(pem).ok_or_else(|| malformed("not exactly one PEM certificate request"))?;
        let (rest, csr) =
            X509CertificationRequest::from_der(&der).map_err(|_| malformed("the request does not parse"))?;
        if !rest.is_empty() {
            return Err(malformed("something follows the request"));
        }
        csr.verify_signature().map_err(|_| {
            Refusal(Reason::BadSignature, "the request is not signed by its own key".to_owned())
        })?;
        let info = &csr.certification_request_info;
        let mut out = Self { key_sha256: sha256_hex(info.subject_pki.raw), ..Self::default() };
        out.read_subject(&info.subject);
        out.read_attributes(&csr)?;
        Ok(out)
    }

    /// Whether any alternative name is asked for.
    pub(super) fn has_names(&self) -> bool {
        self.has_other_names || !self.dns.is_empty() || !self.ips.is_empty()
    }

    fn read_subject(&mut self, subject: &X509Name<'_>) {
        for attribute in subject.iter_attributes() {
            let list = if *attribute.attr_type() == OID_X509_COMMON_NAME {
                &mut self.common_names
            } else if *attribute.attr_type() == OID_X509_ORGANIZATION_NAME {
                &mut self.organizations
            } else {
                self.has_other_attributes = true;
                continue;
            };
            match attribute.as_str() {
                Ok(text) => list.push(text.to_owned()),
                Err(_) => self.has_other_attributes = true,
            }
        }
    }

    fn read_attributes(&mut self, csr: &X509CertificationRequest<'_>) -> Result<(), Refusal> {
        let attributes = csr.certification_request_info.attributes();
        if attributes.len() > 1 {
            return Err(malformed("the request has more attributes than a kubelet sends"));
        }
        for attribute in attributes {
            let ParsedCriAttribute::ExtensionRequest(request) = attribute.parsed_attribute() else {
                return Err(malformed("the request has an attribute that a kubelet never sends"));
            };
            for extension in &request.extensions {
                match extension.parsed_extension() {
                    ParsedExtension::SubjectAlternativeName(names) => self.read_names(names),
                    _ => return Err(malformed("the request has an extension that a kubelet never sends")),
                }
            }
        }
        Ok(())
    }

    fn read_names(&mut self, names: &SubjectAlternativeName<'_>) {
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(dns) => self.dns.push((*dns).to_owned()),
                GeneralName::IPAddress(bytes) => match address(bytes) {
                    Some(ip) => self.ips.push(ip),
                    None => self.has_other_names = true,
                },
                _ => self.has_other_names = true,
            }
        }
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The DER of the one block that `pem` consists of. Headers, text around it and a second block are refused:
/// the signer's parser might take another part of them than ours.
fn single_block(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?.trim();
    let body = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\n' | '\r');
    if !body.chars().all(plain) {
        return None;
    }
    let (_, block) = x509_parser::pem::parse_x509_pem(text.as_bytes()).ok()?;
    Some(block.contents)
}

fn malformed(what: &str) -> Refusal {
    Refusal(Reason::Malformed, what.to_owned())
}
