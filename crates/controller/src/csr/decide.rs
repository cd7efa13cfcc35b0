//! Which certificate requests of our machines are granted. Pure: every fact is an argument.
//!
//! Three kinds are granted: a bootstrap token of a live claim asks for the claim's client certificate, a node
//! of a live claim renews it, and the same node asks for a serving certificate.
//! What else comes from our bootstrap group or our nodes is denied; the rest of the cluster is not ours.

use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use scarpenter_core::name::ClaimUid;

use self::request::Request;

mod request;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

/// Group of every bootstrap token that scarpenter makes.
pub const BOOTSTRAP_GROUP: &str = "system:bootstrappers:scarpenter";
/// Signer of the certificates with which kubelets call the API server.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of the certificates with which kubelets answer the API server.
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

const BOOTSTRAP_USER: &str = "system:bootstrap:";
const NODE_USER: &str = "system:node:";

/// What the decision needs to know of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Name of claim and node.
    pub name: String,
    /// Id of its bootstrap token.
    pub token_id: String,
    /// Whether the claim exists and is not being deleted.
    pub live: bool,
    /// Whether its node is registered.
    pub registered: bool,
    /// Whether a Node of that name exists that is not this claim's: a claim that was given an existing
    /// node's name must not get that node's certificate.
    pub name_taken: bool,
    /// SHA-256 of the public key that has the client certificate, once one was granted.
    pub client_key_sha256: Option<String>,
    /// Addresses that provider and mesh report for the machine.
    pub addresses: Vec<IpAddr>,
}

/// How the decision finds claims.
pub trait Claims {
    /// The claim whose bootstrap token has this id.
    fn by_token(&self, token_id: &str) -> Option<Candidate>;
    /// The claim of this name.
    fn by_name(&self, name: &str) -> Option<Candidate>;
    /// Whether a node of this name is or was one of ours: by its labels, providerID or a claim seen before.
    fn is_our_node(&self, name: &str) -> bool;
}

/// What to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Somebody else's, or decided already: leave it.
    NotOurs,
    /// Grant it.
    Approve {
        /// The claim that it serves.
        claim: ClaimUid,
        /// What to write to the claim **before** the approval. `None`: nothing.
        key_sha256: Option<String>,
    },
    /// Refuse it, with an event on the claim when there is one.
    Deny {
        /// One word, for conditions, events and metrics.
        reason: Reason,
        /// A sentence.
        message: String,
        /// The claim that it concerns.
        claim: Option<ClaimUid>,
    },
}

/// Why a request is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No claim belongs to the token or node.
    NoClaim,
    /// The claim is being deleted.
    ClaimNotLive,
    /// A node of that name belongs to something else.
    NameTaken,
    /// The claim has joined already.
    AlreadyJoined,
    /// Another key has the claim's client certificate.
    OtherKey,
    /// Our token or node asks a signer that it has no business with.
    WrongSigner,
    /// The requester may not ask this.
    WrongRequester,
    /// Not a certificate request, or one with parts that a kubelet never sends.
    Malformed,
    /// The request is not signed by its own key.
    BadSignature,
    /// The subject is not exactly the claim's node.
    WrongSubject,
    /// Names that it may not have, or none where one is needed.
    WrongNames,
    /// Usages that it may not have, or none where one is needed.
    WrongUsages,
}

impl Reason {
    /// The word as conditions and events have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoClaim => "NoClaim",
            Self::ClaimNotLive => "ClaimNotLive",
            Self::NameTaken => "NameTaken",
            Self::AlreadyJoined => "AlreadyJoined",
            Self::OtherKey => "OtherKey",
            Self::WrongSigner => "WrongSigner",
            Self::WrongRequester => "WrongRequester",
            Self::Malformed => "Malformed",
            Self::BadSignature => "BadSignature",
            Self::WrongSubject => "WrongSubject",
            Self::WrongNames => "WrongNames",
            Self::WrongUsages => "WrongUsages",
        }
    }
}

struct Refusal(Reason, String);

/// Decides one request.
#[must_use]
pub fn decide(csr: &CertificateSigningRequest, claims: &dyn Claims) -> Decision {
    if is_decided(csr) {
        return Decision::NotOurs;
    }
    let Some(asker) = Asker::of(csr, claims) else { return Decision::NotOurs };
    let candidate = match &asker {
        Asker::Token(id) => claims.by_token(id),
        Asker::Node(name) => claims.by_name(name),
        Asker::Other(_) => None,
    };
    let claim = candidate.as_ref().map(|candidate| candidate.uid.clone());
    match grant(csr, &asker, candidate.as_ref()) {
        Ok((claim, key_sha256)) => Decision::Approve { claim, key_sha256 },
        Err(Refusal(reason, message)) => Decision::Deny { reason, message, claim },
    }
}

fn is_decided(csr: &CertificateSigningRequest) -> bool {
    csr.status.as_ref().is_some_and(|status| {
        status.certificate.is_some()
            || status.conditions.as_ref().is_some_and(|conditions| !conditions.is_empty())
    })
}

/// Who asks, as far as it concerns us.
enum Asker {
    /// A bootstrap token of our group, by id.
    Token(String),
    /// One of our nodes, by name.
    Node(String),
    /// Somebody else who is in our bootstrap group.
    Other(String),
}

impl Asker {
    fn of(csr: &CertificateSigningRequest, claims: &dyn Claims) -> Option<Self> {
        let user = csr.spec.username.as_deref().unwrap_or_default();
        if let Some(name) = user.strip_prefix(NODE_USER) {
            let ours = claims.by_name(name).is_some() || claims.is_our_node(name);
            return ours.then(|| Self::Node(name.to_owned()));
        }
        if !csr.spec.groups.iter().flatten().any(|group| group == BOOTSTRAP_GROUP) {
            return None;
        }
        Some(match user.strip_prefix(BOOTSTRAP_USER) {
            Some(id) => Self::Token(id.to_owned()),
            None => Self::Other(user.to_owned()),
        })
    }
}

type Grant = (ClaimUid, Option<String>);

fn grant(
    csr: &CertificateSigningRequest,
    asker: &Asker,
    candidate: Option<&Candidate>,
) -> Result<Grant, Refusal> {
    let signer = csr.spec.signer_name.as_str();
    if signer != CLIENT_SIGNER && signer != SERVING_SIGNER {
        return Err(Refusal(Reason::WrongSigner, format!("signer {signer:?} is not for machines")));
    }
    if let Asker::Other(user) = asker {
        return Err(Refusal(Reason::WrongRequester, format!("{user:?} is not a bootstrap token")));
    }
    let claim = live(candidate)?;
    let request = Request::parse(&csr.spec.request.0)?;
    check_subject(&request, claim)?;
    match (signer, asker) {
        (SERVING_SIGNER, Asker::Node(_)) => serving(csr, &request, claim),
        (SERVING_SIGNER, _) => {
            let message = "a bootstrap token may not ask for a serving certificate".to_owned();
            Err(Refusal(Reason::WrongRequester, message))
        }
        (_, Asker::Token(_)) => first_client(csr, &request, claim),
        _ => renewal(csr, &request, claim),
    }
}

fn live(candidate: Option<&Candidate>) -> Result<&Candidate, Refusal> {
    let Some(claim) = candidate else {
        return Err(Refusal(Reason::NoClaim, "no claim belongs to the requester".to_owned()));
    };
    if !claim.live {
        return Err(Refusal(Reason::ClaimNotLive, format!("claim {} is being deleted", claim.name)));
    }
    if claim.name_taken {
        let message = format!("a node {} exists that is not this claim's", claim.name);
        return Err(Refusal(Reason::NameTaken, message));
    }
    Ok(claim)
}

fn check_subject(request: &Request, claim: &Candidate) -> Result<(), Refusal> {
    let expected = format!("{NODE_USER}{}", claim.name);
    let exact = request.common_names == [expected.clone()]
        && request.organizations == ["system:nodes"]
        && !request.has_other_attributes;
    if exact {
        return Ok(());
    }
    Err(Refusal(Reason::WrongSubject, format!("the subject is not exactly CN={expected}, O=system:nodes")))
}

fn first_client(
    csr: &CertificateSigningRequest,
    request: &Request,
    claim: &Candidate,
) -> Result<Grant, Refusal> {
    check_client(csr, request)?;
    let key = &request.key_sha256;
    match &claim.client_key_sha256 {
        Some(known) if known == key => Ok((claim.uid.clone(), None)),
        Some(_) => {
            let message = format!("another key has the client certificate of claim {}", claim.name);
            Err(Refusal(Reason::OtherKey, message))
        }
        None if claim.registered => {
            Err(Refusal(Reason::AlreadyJoined, format!("claim {} has joined already", claim.name)))
        }
        None => Ok((claim.uid.clone(), Some(key.clone()))),
    }
}

/// The kubelet rotates its key when it renews, so the recorded one is not asked for.
fn renewal(csr: &CertificateSigningRequest, request: &Request, claim: &Candidate) -> Result<Grant, Refusal> {
    check_client(csr, request)?;
    Ok((claim.uid.clone(), None))
}

fn check_client(csr: &CertificateSigningRequest, request: &Request) -> Result<(), Refusal> {
    if request.has_names() {
        return Err(Refusal(
            Reason::WrongNames,
            "a client certificate takes no alternative names".to_owned(),
        ));
    }
    check_usages(csr, "client auth")
}

fn serving(csr: &CertificateSigningRequest, request: &Request, claim: &Candidate) -> Result<Grant, Refusal> {
    if request.has_other_names || (request.dns.is_empty() && request.ips.is_empty()) {
        let message = "a serving certificate takes DNS names and IP addresses, and at least one".to_owned();
        return Err(Refusal(Reason::WrongNames, message));
    }
    if let Some(name) = request.dns.iter().find(|name| **name != claim.name) {
        return Err(Refusal(Reason::WrongNames, format!("DNS name {name:?} is not the claim's")));
    }
    let known =
        |ip: &IpAddr| claim.addresses.iter().any(|address| address.to_canonical() == ip.to_canonical());
    if let Some(ip) = request.ips.iter().find(|ip| !known(ip)) {
        return Err(Refusal(
            Reason::WrongNames,
            format!("address {ip} is not one that the machine is known by"),
        ));
    }
    check_usages(csr, "server auth")?;
    Ok((claim.uid.clone(), None))
}

/// Since 1.27 a request with an ECDSA key comes without key encipherment; both sets are right.
fn check_usages(csr: &CertificateSigningRequest, needed: &str) -> Result<(), Refusal> {
    let usages = csr.spec.usages.as_deref().unwrap_or_default();
    let allowed =
        |usage: &String| usage == needed || usage == "digital signature" || usage == "key encipherment";
    if usages.iter().all(allowed) && usages.iter().any(|usage| usage == needed) {
        return Ok(());
    }
    Err(Refusal(Reason::WrongUsages, format!("usages {usages:?} are not those of a {needed:?} certificate")))
}
