//! Certificate requests as somebody makes them who has a token or a node's certificate.

use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::{ObjectMeta, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

use crate::case::Case;

const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";

/// What is asked for; each trial changes one thing.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) name: String,
    pub(super) organization: &'static str,
    pub(super) alternatives: Vec<SanType>,
    pub(super) usages: Vec<&'static str>,
    pub(super) signer: &'static str,
}

impl Ask {
    /// A kubelet's first request.
    pub(super) fn client(node: &str) -> Self {
        Self {
            name: format!("system:node:{node}"),
            organization: "system:nodes",
            alternatives: Vec::new(),
            usages: vec!["digital signature", "client auth"],
            signer: CLIENT,
        }
    }

    /// A kubelet's request for the certificate that it answers with.
    pub(super) fn serving(node: &str, alternatives: Vec<SanType>) -> Self {
        Self {
            alternatives,
            usages: vec!["digital signature", "server auth"],
            signer: SERVING,
            ..Self::client(node)
        }
    }

    fn request(&self, key: &KeyPair) -> anyhow::Result<Vec<u8>> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, self.organization);
        params.distinguished_name.push(DnType::CommonName, self.name.clone());
        params.subject_alt_names = self.alternatives.clone();
        Ok(params.serialize_request(key)?.pem()?.into_bytes())
    }
}

/// How a request ended.
#[derive(Debug)]
pub(super) enum Answer {
    /// The certificate, PEM.
    Issued(Vec<u8>),
    /// Why.
    Denied(String),
    /// The API server did not even take it.
    NotTaken(u16),
}

/// Somebody who asks.
pub(super) struct Asker<'a> {
    case: Case<'a>,
    requests: Api<CertificateSigningRequest>,
}

impl<'a> Asker<'a> {
    /// Somebody with a bootstrap token.
    pub(super) async fn with_token(case: Case<'a>, kubeconfig: &Path, token: String) -> anyhow::Result<Self> {
        let auth = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
        Self::with(case, kubeconfig, auth).await
    }

    /// Somebody with a client certificate.
    pub(super) async fn with_certificate(
        case: Case<'a>,
        kubeconfig: &Path,
        certificate: &[u8],
        key: &KeyPair,
    ) -> anyhow::Result<Self> {
        let auth = AuthInfo {
            client_certificate_data: Some(STANDARD.encode(certificate)),
            client_key_data: Some(STANDARD.encode(key.serialize_pem()).into()),
            ..AuthInfo::default()
        };
        Self::with(case, kubeconfig, auth).await
    }

    async fn with(case: Case<'a>, kubeconfig: &Path, auth: AuthInfo) -> anyhow::Result<Self> {
        let admin = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await?;
        config.auth_info = auth;
        Ok(Self { case, requests: Api::all(Client::try_from(config)?) })
    }

    /// Asks, and waits for the answer of the controller and of the signer.
    pub(super) async fn ask(&self, ask: &Ask, key: &KeyPair) -> anyhow::Result<Answer> {
        let spec = CertificateSigningRequestSpec {
            request: ByteString(ask.request(key)?),
            signer_name: ask.signer.to_owned(),
            usages: Some(ask.usages.iter().map(|usage| (*usage).to_owned()).collect()),
            ..CertificateSigningRequestSpec::default()
        };
        let metadata = ObjectMeta { generate_name: Some("trial-".to_owned()), ..ObjectMeta::default() };
        let request = CertificateSigningRequest { metadata, spec, status: None };
        let made = match self.requests.create(&PostParams::default(), &request).await {
            Err(kube::Error::Api(status)) => return Ok(Answer::NotTaken(status.code)),
            outcome => outcome.context("ask for a certificate")?,
        };
        let name = made.metadata.name.context("a name")?;
        let all: Api<CertificateSigningRequest> = Api::all(self.case.stage.client().clone());
        let mut answer = None;
        self.case
            .until(&format!("an answer to {name}"), async || {
                answer = answer_of(&all.get(&name).await?);
                Ok(if answer.is_some() { Ok(()) } else { Err("none".to_owned()) })
            })
            .await?;
        answer.context("there was one a moment ago")
    }

    /// Asks for what must be denied.
    pub(super) async fn denied(&self, what: &str, ask: &Ask, reason: &str) -> anyhow::Result<()> {
        match self.ask(ask, &KeyPair::generate()?).await? {
            Answer::Denied(own) if own == reason => Ok(()),
            other => bail!("{what}: {other:?}, not denied for {reason}"),
        }
    }

    /// Asks for what must be granted.
    pub(super) async fn granted(&self, what: &str, ask: &Ask, key: &KeyPair) -> anyhow::Result<Vec<u8>> {
        match self.ask(ask, key).await? {
            Answer::Issued(certificate) => Ok(certificate),
            other => bail!("{what}: {other:?}, not granted"),
        }
    }
}

fn answer_of(request: &CertificateSigningRequest) -> Option<Answer> {
    let status = request.status.as_ref()?;
    if let Some(certificate) = &status.certificate {
        return Some(Answer::Issued(certificate.0.clone()));
    }
    let denied = status.conditions.iter().flatten().find(|condition| condition.type_ == "Denied")?;
    Some(Answer::Denied(denied.reason.clone().unwrap_or_default()))
}
