use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequestCondition, CertificateSigningRequestSpec, CertificateSigningRequestStatus,
};
use rcgen::{
    Attribute, CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair,
    PKCS_ECDSA_P384_SHA384, SanType,
};

use super::*;

const NAME: &str = "default-0123456789";
const USER: &str = "system:bootstrap:abc123";
const NODE: &str = "system:node:default-0123456789";
const CLIENT_USAGES: [&str; 2] = ["digital signature", "client auth"];
const SERVING_USAGES: [&str; 2] = ["digital signature", "server auth"];
/// Made by `openssl req -newkey rsa:2048`.
const RSA: &str = include_str!("rsa.csr.pem");

struct Cluster(Vec<Candidate>);

impl Claims for Cluster {
    fn by_token(&self, token_id: &str) -> Option<Candidate> {
        self.0.iter().find(|claim| claim.token_id == token_id).cloned()
    }

    fn by_name(&self, name: &str) -> Option<Candidate> {
        self.0.iter().find(|claim| claim.name == name).cloned()
    }

    fn is_our_node(&self, name: &str) -> bool {
        name == "default-ofaclaimgone"
    }
}

fn claim() -> Candidate {
    Candidate {
        uid: "uid-1".into(),
        name: NAME.to_owned(),
        token_id: "abc123".to_owned(),
        live: true,
        registered: false,
        name_taken: false,
        client_key_sha256: None,
        addresses: vec!["100.64.0.7".parse().unwrap(), "fd00::7".parse().unwrap()],
    }
}

fn other_claim() -> Candidate {
    Candidate {
        uid: "uid-2".into(),
        name: "default-zzzzzzzzzz".to_owned(),
        token_id: "zzz999".to_owned(),
        ..claim()
    }
}

/// A request as a kubelet makes it; a test changes what matters.
struct Ask {
    user: &'static str,
    groups: Vec<&'static str>,
    signer: &'static str,
    usages: Vec<&'static str>,
    params: CertificateParams,
    attributes: Vec<Attribute>,
    key: KeyPair,
}

fn subject(parts: &[(DnType, &str)]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in parts {
        name.push(kind.clone(), *value);
    }
    name
}

fn client() -> Ask {
    let mut params = CertificateParams::default();
    params.distinguished_name = node_subject(NAME);
    Ask {
        user: USER,
        groups: vec!["system:bootstrappers", BOOTSTRAP_GROUP, "system:authenticated"],
        signer: CLIENT_SIGNER,
        usages: CLIENT_USAGES.to_vec(),
        params,
        attributes: Vec::new(),
        key: KeyPair::generate().unwrap(),
    }
}

fn node_subject(name: &str) -> DistinguishedName {
    let common_name = format!("system:node:{name}");
    subject(&[(DnType::OrganizationName, "system:nodes"), (DnType::CommonName, &common_name)])
}

fn renewal() -> Ask {
    Ask { user: NODE, groups: vec!["system:nodes", "system:authenticated"], ..client() }
}

fn serving() -> Ask {
    let mut ask = Ask { signer: SERVING_SIGNER, usages: SERVING_USAGES.to_vec(), ..renewal() };
    ask.params.subject_alt_names = vec![dns(NAME), ip("100.64.0.7")];
    ask
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn ip(address: &str) -> SanType {
    SanType::IpAddress(address.parse().unwrap())
}

impl Ask {
    fn pem(&self) -> String {
        let request = self.params.serialize_request_with_attributes(&self.key, self.attributes.clone());
        request.unwrap().pem().unwrap()
    }

    fn key_sha256(&self) -> String {
        use rcgen::PublicKeyData;
        scarpenter_core::name::sha256_hex(&self.key.subject_public_key_info())
    }

    fn csr(&self) -> CertificateSigningRequest {
        self.csr_with(self.pem())
    }

    fn csr_with(&self, pem: String) -> CertificateSigningRequest {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(pem.into_bytes()),
                signer_name: self.signer.to_owned(),
                usages: Some(owned(&self.usages)),
                username: Some(self.user.to_owned()),
                groups: Some(owned(&self.groups)),
                ..Default::default()
            },
            ..Default::default()
        }
    }
}

fn decided(ask: &Ask, claims: Vec<Candidate>) -> Decision {
    decide(&ask.csr(), &Cluster(claims))
}

fn reason_of(decision: Decision) -> Option<Reason> {
    match decision {
        Decision::Deny { reason, message, .. } => {
            assert!(!message.is_empty());
            Some(reason)
        }
        _ => None,
    }
}

fn assert_denied(what: &str, ask: &Ask, expected: Reason) {
    assert_eq!(reason_of(decided(ask, vec![claim(), other_claim()])), Some(expected), "{what}");
}

#[test]
fn a_machine_gets_its_client_certificate_and_its_key_is_recorded() {
    let ask = client();
    let key_sha256 = Some(ask.key_sha256());
    assert_eq!(decided(&ask, vec![claim()]), Decision::Approve { claim: "uid-1".into(), key_sha256 });
}

#[test]
fn both_sets_of_usages_are_right_for_ecdsa_and_rsa_keys() {
    let with_encipherment = vec!["digital signature", "key encipherment", "client auth"];
    for usages in [CLIENT_USAGES.to_vec(), with_encipherment] {
        let p384 = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        for ask in [
            Ask { usages: usages.clone(), ..client() },
            Ask { usages: usages.clone(), key: p384, ..client() },
        ] {
            assert!(matches!(decided(&ask, vec![claim()]), Decision::Approve { .. }), "{usages:?}");
        }
        let rsa = Ask { usages: usages.clone(), ..client() }.csr_with(RSA.to_owned());
        assert!(matches!(decide(&rsa, &Cluster(vec![claim()])), Decision::Approve { .. }), "rsa {usages:?}");
    }
}

#[test]
fn the_same_key_may_ask_again_and_another_may_not() {
    let ask = client();
    let known = Candidate { client_key_sha256: Some(ask.key_sha256()), ..claim() };
    let again = Decision::Approve { claim: "uid-1".into(), key_sha256: None };
    assert_eq!(decided(&ask, vec![known.clone()]), again);
    let registered = Candidate { registered: true, ..known.clone() };
    assert_eq!(decided(&ask, vec![registered]), again);
    assert_eq!(reason_of(decided(&client(), vec![known])), Some(Reason::OtherKey));
    let no_key = Candidate { registered: true, ..claim() };
    assert_eq!(reason_of(decided(&client(), vec![no_key])), Some(Reason::AlreadyJoined));
}

#[test]
fn a_node_renews_with_a_new_key() {
    let known =
        Candidate { registered: true, client_key_sha256: Some("of the first key".to_owned()), ..claim() };
    let expected = Decision::Approve { claim: "uid-1".into(), key_sha256: None };
    assert_eq!(decided(&renewal(), vec![known]), expected);
}

#[test]
fn a_node_gets_a_serving_certificate_for_the_names_it_is_known_by() {
    let expected = Decision::Approve { claim: "uid-1".into(), key_sha256: None };
    let names: [Vec<SanType>; 4] = [
        vec![dns(NAME)],
        vec![ip("100.64.0.7")],
        vec![dns(NAME), ip("100.64.0.7"), ip("fd00::7")],
        vec![ip("::ffff:100.64.0.7")],
    ];
    for names in names {
        let mut ask = serving();
        ask.params.subject_alt_names = names.clone();
        assert_eq!(decided(&ask, vec![claim()]), expected, "{names:?}");
    }
    let with_encipherment = vec!["key encipherment", "digital signature", "server auth"];
    assert_eq!(decided(&Ask { usages: with_encipherment, ..serving() }, vec![claim()]), expected);
}

#[test]
fn what_other_people_ask_is_left_alone() {
    let kubeadm = Ask { groups: vec!["system:bootstrappers", "system:authenticated"], ..client() };
    let person = Ask { user: "jane", groups: vec!["system:masters"], ..client() };
    let other_node = Ask { user: "system:node:control-plane-1", ..serving() };
    let no_name = Ask { user: "", groups: vec![], ..client() };
    for ask in [kubeadm, person, other_node, no_name] {
        assert_eq!(decided(&ask, vec![claim()]), Decision::NotOurs, "{}", ask.user);
    }
}

#[test]
fn what_is_decided_is_left_alone() {
    let status = |certificate: Option<&str>, condition: Option<&str>| CertificateSigningRequestStatus {
        certificate: certificate.map(|text| ByteString(text.as_bytes().to_vec())),
        conditions: condition.map(|kind| {
            vec![CertificateSigningRequestCondition { type_: kind.to_owned(), ..Default::default() }]
        }),
    };
    for status in [status(None, Some("Approved")), status(None, Some("Denied")), status(Some("pem"), None)] {
        let mut csr = client().csr();
        csr.status = Some(status);
        assert_eq!(decide(&csr, &Cluster(vec![claim()])), Decision::NotOurs);
    }
    let mut fresh = client().csr();
    fresh.status = Some(CertificateSigningRequestStatus::default());
    assert!(matches!(decide(&fresh, &Cluster(vec![claim()])), Decision::Approve { .. }));
}

#[test]
fn a_denial_names_the_claim_it_concerns() {
    let mut ask = client();
    ask.params.subject_alt_names = vec![dns(NAME)];
    let Decision::Deny { claim: Some(uid), .. } = decided(&ask, vec![claim()]) else { panic!("not denied") };
    assert_eq!(uid, ClaimUid::new("uid-1"));
}

#[test]
fn a_token_asks_only_for_its_own_claims_node() {
    let subjects = [
        ("another claim's node", node_subject("default-zzzzzzzzzz")),
        ("a control plane's name", node_subject("control-plane-1")),
        ("a provisional name", node_subject("talos-1x2-3yz")),
        ("another spelling", node_subject("DEFAULT-0123456789")),
        ("a longer name", node_subject("default-0123456789x")),
        (
            "the name without prefix",
            subject(&[(DnType::OrganizationName, "system:nodes"), (DnType::CommonName, NAME)]),
        ),
        ("masters", subject(&[(DnType::OrganizationName, "system:masters"), (DnType::CommonName, NODE)])),
        ("no organization", subject(&[(DnType::CommonName, NODE)])),
        ("no name", subject(&[(DnType::OrganizationName, "system:nodes")])),
        ("nothing", DistinguishedName::new()),
        (
            "masters as well",
            subject(&[
                (DnType::OrganizationName, "system:nodes"),
                (DnType::CustomDnType(vec![2, 5, 4, 10]), "system:masters"),
                (DnType::CommonName, NODE),
            ]),
        ),
        (
            "a second name",
            subject(&[
                (DnType::OrganizationName, "system:nodes"),
                (DnType::CommonName, NODE),
                (DnType::CustomDnType(vec![2, 5, 4, 3]), "system:node:control-plane-1"),
            ]),
        ),
        (
            "an organizational unit",
            subject(&[
                (DnType::OrganizationName, "system:nodes"),
                (DnType::CommonName, NODE),
                (DnType::OrganizationalUnitName, "x"),
            ]),
        ),
    ];
    for (what, subject) in subjects {
        for mut ask in [client(), renewal(), serving()] {
            ask.params.distinguished_name = subject.clone();
            assert_denied(what, &ask, Reason::WrongSubject);
        }
    }
}

#[test]
fn no_claim_no_certificate() {
    let gone = |claims: Vec<Candidate>, ask: Ask| reason_of(decided(&ask, claims));
    assert_eq!(gone(vec![], client()), Some(Reason::NoClaim));
    let deleting = Candidate { live: false, ..claim() };
    for ask in [client(), renewal(), serving()] {
        assert_eq!(gone(vec![deleting.clone()], ask), Some(Reason::ClaimNotLive));
    }
    let mut ghost = Ask { user: "system:node:default-ofaclaimgone", ..renewal() };
    ghost.params.distinguished_name = node_subject("default-ofaclaimgone");
    assert_eq!(gone(vec![claim()], ghost), Some(Reason::NoClaim));
}

#[test]
fn a_claim_with_the_name_of_an_existing_node_gets_nothing() {
    let taken = Candidate { name_taken: true, ..claim() };
    for ask in [client(), serving()] {
        assert_eq!(reason_of(decided(&ask, vec![taken.clone()])), Some(Reason::NameTaken));
    }
}

#[test]
fn a_client_certificate_takes_no_alternative_names() {
    let names = [
        dns(NAME),
        ip("100.64.0.7"),
        SanType::Rfc822Name("a@b.c".try_into().unwrap()),
        SanType::URI("https://a".try_into().unwrap()),
    ];
    for name in names {
        for mut ask in [client(), renewal()] {
            ask.params.subject_alt_names = vec![name.clone()];
            assert_denied("client with names", &ask, Reason::WrongNames);
        }
    }
}

#[test]
fn a_serving_certificate_takes_only_the_names_the_machine_is_known_by() {
    let good = [dns(NAME), ip("100.64.0.7")];
    let two_too_many = [good.to_vec(), vec![dns("api.example.com"), ip("10.0.0.1")]].concat();
    let cases: [(&str, Vec<SanType>); 9] = [
        ("none", vec![]),
        ("two too many", two_too_many),
        ("another claim's name", vec![dns("default-zzzzzzzzzz")]),
        ("a wildcard", vec![dns("*")]),
        ("a service's name", vec![dns("kubernetes.default.svc")]),
        ("another address", vec![dns(NAME), ip("100.64.0.8")]),
        ("the loopback address", vec![dns(NAME), ip("127.0.0.1")]),
        ("a mail address", vec![dns(NAME), SanType::Rfc822Name("a@b.c".try_into().unwrap())]),
        ("a URI", vec![dns(NAME), SanType::URI("spiffe://a/b".try_into().unwrap())]),
    ];
    for (what, names) in cases {
        let mut ask = serving();
        ask.params.subject_alt_names = names;
        assert_denied(what, &ask, Reason::WrongNames);
    }
}

#[test]
fn usages_beyond_the_kind_are_denied() {
    let cases: [(Ask, Vec<&str>); 8] = [
        (client(), vec![]),
        (client(), vec!["digital signature"]),
        (client(), vec!["client auth", "server auth"]),
        (client(), vec!["client auth", "cert sign"]),
        (client(), vec!["client auth", "any"]),
        (serving(), vec!["digital signature", "client auth"]),
        (serving(), vec!["digital signature", "server auth", "client auth"]),
        (serving(), vec!["digital signature", "key encipherment"]),
    ];
    for (ask, usages) in cases {
        let what = format!("{usages:?}");
        assert_denied(&what, &Ask { usages, ..ask }, Reason::WrongUsages);
    }
}

#[test]
fn our_tokens_and_nodes_ask_no_other_signer() {
    let signers =
        ["kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown", "example.com/signer"];
    for signer in signers {
        for ask in [client(), renewal()] {
            assert_denied(signer, &Ask { signer, ..ask }, Reason::WrongSigner);
        }
    }
}

#[test]
fn requester_and_kind_must_belong_together() {
    let mut by_token = Ask { user: USER, groups: vec![BOOTSTRAP_GROUP], ..serving() };
    assert_denied("serving by a token", &by_token, Reason::WrongRequester);
    by_token = Ask { user: "system:serviceaccount:a:b", groups: vec![BOOTSTRAP_GROUP], ..client() };
    assert_denied("a service account in our group", &by_token, Reason::WrongRequester);
    let unknown_token = Ask { user: "system:bootstrap:nobody", ..client() };
    assert_denied("a token of no claim", &unknown_token, Reason::NoClaim);
    let mut for_another = Ask { user: "system:node:default-zzzzzzzzzz", ..renewal() };
    assert_denied("one node for another", &for_another, Reason::WrongSubject);
    for_another.signer = SERVING_SIGNER;
    for_another.usages = SERVING_USAGES.to_vec();
    for_another.params.subject_alt_names = vec![dns(NAME)];
    assert_denied("one node serving as another", &for_another, Reason::WrongSubject);
}

#[test]
fn a_request_that_its_key_did_not_sign_is_denied() {
    let (mine, stolen) = (client(), client());
    let der = |ask: &Ask| x509_parser::pem::parse_x509_pem(ask.pem().as_bytes()).unwrap().1.contents;
    // Same length of everything but the signature: put the other's public key under my signature.
    let spki = |ask: &Ask| {
        use rcgen::PublicKeyData;
        ask.key.subject_public_key_info()
    };
    let mut forged = der(&mine);
    let at = forged.windows(spki(&mine).len()).position(|window| window == spki(&mine)).unwrap();
    forged[at..at + spki(&stolen).len()].copy_from_slice(&spki(&stolen));
    let csr = mine.csr_with(pem_of(&forged));
    assert_eq!(reason_of(decide(&csr, &Cluster(vec![claim()]))), Some(Reason::BadSignature));
}

fn pem_of(der: &[u8]) -> String {
    let file = base64(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{file}\n-----END CERTIFICATE REQUEST-----\n")
}

fn base64(der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let word =
            chunk.iter().chain([0, 0].iter()).take(3).fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
        let digit = |place: usize| char::from(ALPHABET[word >> (18 - 6 * place) & 63]);
        (0..4).map(|place| if place <= chunk.len() { digit(place) } else { '=' }).collect::<String>()
    };
    der.chunks(3).map(group).collect()
}

#[test]
fn what_is_not_exactly_one_request_is_denied() {
    let ask = client();
    let good = ask.pem();
    assert!(matches!(
        decide(&ask.csr_with(pem_of_pem(&good)), &Cluster(vec![claim()])),
        Decision::Approve { .. }
    ));
    let cases = [
        String::new(),
        "garbage".to_owned(),
        format!("{good}{}", client().pem()),
        format!("text before\n{good}"),
        good.replace("CERTIFICATE REQUEST", "CERTIFICATE"),
        good.replace("REQUEST-----\n", "REQUEST-----\nProc-Type: 4,ENCRYPTED\n\n"),
        good.replacen("MI", "!!", 1),
        "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n".to_owned(),
    ];
    for pem in cases {
        let csr = ask.csr_with(pem.clone());
        assert_eq!(reason_of(decide(&csr, &Cluster(vec![claim()]))), Some(Reason::Malformed), "{pem}");
    }
    let mut trailing = x509_parser::pem::parse_x509_pem(good.as_bytes()).unwrap().1.contents;
    trailing.extend([5, 0]);
    let csr = ask.csr_with(pem_of(&trailing));
    assert_eq!(reason_of(decide(&csr, &Cluster(vec![claim()]))), Some(Reason::Malformed));
}

fn pem_of_pem(pem: &str) -> String {
    pem_of(&x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap().1.contents)
}

#[test]
fn parts_that_a_kubelet_never_sends_are_denied() {
    let mut extension = client();
    extension.params.custom_extensions =
        vec![CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 0])];
    assert_denied("basic constraints", &extension, Reason::Malformed);
    let mut usage = client();
    usage.params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    assert_denied("an extended key usage", &usage, Reason::Malformed);
    let mut challenge = client();
    let oid: &'static [u64] = &[1, 2, 840, 113_549, 1, 9, 7];
    challenge.attributes = vec![Attribute { oid, values: vec![0x31, 0x03, 0x0c, 0x01, 0x61] }];
    assert_denied("a challenge password", &challenge, Reason::Malformed);
}
