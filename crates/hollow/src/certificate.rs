//! How the machine reaches the API server, and how it gets its certificates.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::{ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Config};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData, SanType};
use scarpenter_bootstrap::Opened;
use scarpenter_core::name::{Secret, sha256_hex};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::console::Console;
use crate::disk::Disk;
use crate::registration::Identity;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";
/// The kubelet's own patience with an approver.
const ISSUED_WITHIN: Duration = Duration::from_secs(3600);
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(900);
/// A call that takes longer is given up and made again.
pub(crate) const CALL_WITHIN: Duration = Duration::from_secs(30);

/// What went wrong on the way to a certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] kube::config::KubeconfigError),
    #[error("cannot make a client")]
    MakeClient(#[source] kube::Error),
    #[error("cannot make a certificate request")]
    MakeRequest(#[source] rcgen::Error),
    #[error("cannot create certificate signing request {name}")]
    CreateRequest { name: String, source: kube::Error },
    #[error("cannot watch certificate signing request {name}")]
    WatchRequest { name: String, source: kube::runtime::wait::Error },
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    #[error("certificate signing request {name} is {how}, reason: {reason}, message: {message}")]
    Refused { name: String, how: String, reason: String, message: String },
    #[error("certificate signing request {0} is gone")]
    Gone(String),
}

/// The API servers, their authority, and who we are to them.
#[derive(Clone)]
pub(crate) struct Access {
    servers: Vec<String>,
    turn: usize,
    tls_server_name: Option<String>,
    ca_pem: String,
    user: Secret,
}

impl Access {
    /// With the bootstrap token.
    pub(crate) fn new(opened: &Opened) -> Self {
        Self {
            servers: opened.servers.clone(),
            turn: 0,
            tls_server_name: opened.tls_server_name.clone(),
            ca_pem: opened.ca_pem.clone(),
            user: Secret::new(json!({"token": opened.token.reveal()}).to_string()),
        }
    }

    pub(crate) fn server(&self) -> &str {
        &self.servers[self.turn % self.servers.len()]
    }

    pub(crate) fn next_server(&mut self) {
        self.turn = (self.turn + 1) % self.servers.len();
    }

    /// With the client certificate from now on.
    pub(crate) fn identify(&mut self, certificate_pem: &[u8], key: &KeyPair) {
        let user = json!({
            "client-certificate-data": STANDARD.encode(certificate_pem),
            "client-key-data": STANDARD.encode(key.serialize_pem()),
        });
        self.user = Secret::new(user.to_string());
    }

    pub(crate) async fn client(&self) -> Result<Client, Error> {
        let user: Value = serde_json::from_str(self.user.reveal()).expect("written above");
        let mut cluster = json!({
            "server": self.server(),
            "certificate-authority-data": STANDARD.encode(&self.ca_pem),
        });
        if let Some(name) = &self.tls_server_name {
            cluster["tls-server-name"] = json!(name);
        }
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "machine", "user": user}],
            "contexts": [{"name": "machine", "context": {"cluster": "cluster", "user": "machine"}}],
            "current-context": "machine",
        }))
        .expect("this is a kubeconfig");
        let options = KubeConfigOptions::default();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(Error::Kubeconfig)?;
        config.default_retry = false;
        Client::try_from(config).map_err(Error::MakeClient)
    }
}

/// Asks for the client certificate; PEM.
pub(crate) async fn client(
    access: &Access,
    opened: &Opened,
    name: &str,
    key: &KeyPair,
) -> Result<Vec<u8>, Error> {
    let client = access.client().await?;
    let spec = CertificateSigningRequestSpec {
        request: request(name, &[], key)?,
        signer_name: CLIENT_SIGNER.to_owned(),
        usages: Some(vec!["digital signature".to_owned(), "client auth".to_owned()]),
        ..Default::default()
    };
    // From key and token, as a kubelet's: after a restart it finds its own request again.
    let digest = sha256_hex(format!("{}{:?}", opened.token_id(), key.subject_public_key_info()).as_bytes());
    ask(&client, &format!("node-csr-{}", &digest[..40]), spec).await
}

/// Asks for the serving certificate until it is issued, then sleeps for ever.
///
/// What it is good for is somebody else's matter: nobody dials a hollow node.
pub(crate) async fn serving(client: &Client, identity: &Identity, disk: &mut Disk, console: &Console) {
    while !disk.is_serving() {
        match serving_once(client, identity).await {
            Ok(()) => {
                console.say("kubelet: serving certificate issued");
                disk.keep_serving(console);
            }
            Err(error) => {
                console.failed("kubelet: no serving certificate", &error);
                sleep(ASK_AGAIN_AFTER).await;
            }
        }
    }
    std::future::pending().await
}

async fn serving_once(client: &Client, identity: &Identity) -> Result<(), Error> {
    let key = KeyPair::generate().map_err(Error::MakeRequest)?;
    let mut names = vec![SanType::DnsName(identity.name.as_str().try_into().map_err(Error::MakeRequest)?)];
    names.extend(identity.address.map(|address: IpAddr| SanType::IpAddress(address)));
    let spec = CertificateSigningRequestSpec {
        request: request(&identity.name, &names, &key)?,
        signer_name: SERVING_SIGNER.to_owned(),
        usages: Some(vec!["digital signature".to_owned(), "server auth".to_owned()]),
        ..Default::default()
    };
    let digest = sha256_hex(&key.subject_public_key_info());
    ask(client, &format!("csr-{}", &digest[..40]), spec).await.map(|_| ())
}

fn request(name: &str, names: &[SanType], key: &KeyPair) -> Result<ByteString, Error> {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, format!("system:node:{name}"));
    params.distinguished_name = subject;
    params.subject_alt_names = names.to_vec();
    let pem = params.serialize_request(key).and_then(|request| request.pem()).map_err(Error::MakeRequest)?;
    Ok(ByteString(pem.into_bytes()))
}

/// Creates the request, or finds it, and waits for the certificate.
async fn ask(client: &Client, name: &str, spec: CertificateSigningRequestSpec) -> Result<Vec<u8>, Error> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
    let csr = CertificateSigningRequest { metadata, spec, status: None };
    let created = timeout(CALL_WITHIN, api.create(&PostParams::default(), &csr)).await;
    match created.map_err(|_| Error::NoAnswer(CALL_WITHIN))? {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(source) => return Err(Error::CreateRequest { name: name.to_owned(), source }),
    }
    let settled = |csr: Option<&CertificateSigningRequest>| csr.is_none_or(|csr| outcome(csr).is_some());
    let waited = timeout(ISSUED_WITHIN, await_condition(api, name, settled)).await;
    let csr = waited.map_err(|_| Error::NoAnswer(ISSUED_WITHIN))?;
    let csr = csr.map_err(|source| Error::WatchRequest { name: name.to_owned(), source })?;
    csr.as_ref().and_then(outcome).unwrap_or_else(|| Err(Error::Gone(name.to_owned())))
}

/// `None` while nothing is decided, or approved and not yet signed.
fn outcome(csr: &CertificateSigningRequest) -> Option<Result<Vec<u8>, Error>> {
    let status = csr.status.as_ref()?;
    let refused = status.conditions.iter().flatten().find(|condition| condition.type_ != "Approved");
    if let Some(condition) = refused {
        return Some(Err(Error::Refused {
            name: csr.metadata.name.clone().unwrap_or_default(),
            how: condition.type_.to_lowercase(),
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
        }));
    }
    status.certificate.as_ref().map(|certificate| Ok(certificate.0.clone()))
}
