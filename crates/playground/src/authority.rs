//! The certificate authority of one control plane.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// OID of organizationName: rcgen holds each kind of attribute once, and this is its second kind of the same name.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// A certificate and its key, both PEM; the key never shows.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// Signs the certificates of one control plane.
pub(crate) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    pub(crate) fn make() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject("scarpenter-playground", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    pub(crate) fn certificate(&self) -> String {
        self.certificate.pem()
    }

    pub(crate) fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    pub(crate) fn sign_server(&self, names: &[&str]) -> Result<Identity, rcgen::Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = subject("kube-apiserver", &[]);
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client: Kubernetes reads the user from the common name and the groups from the organizations.
    pub(crate) fn sign_client(&self, user: &str, groups: &[&str]) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(user, groups);
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, rcgen::Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

/// At most two groups fit.
fn subject(name: &str, groups: &[&str]) -> DistinguishedName {
    let kinds = [DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec())];
    let mut subject = DistinguishedName::new();
    for (kind, group) in kinds.into_iter().zip(groups) {
        subject.push(kind, *group);
    }
    subject.push(DnType::CommonName, name);
    subject
}

/// The files that the programs read.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) authority: PathBuf,
    pub(crate) authority_key: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) server_key: PathBuf,
    /// With it the API server reads logs from kubelets.
    pub(crate) kubelet_client: PathBuf,
    pub(crate) kubelet_client_key: PathBuf,
    pub(crate) service_account: PathBuf,
    pub(crate) service_account_public: PathBuf,
}

impl Files {
    /// Writes all of them into the folder.
    pub(crate) fn write(folder: &Path, authority: &Authority, names: &[&str]) -> Result<Self, WriteError> {
        let files = Self {
            authority: folder.join("ca.crt"),
            authority_key: folder.join("ca.key"),
            server: folder.join("server.crt"),
            server_key: folder.join("server.key"),
            kubelet_client: folder.join("kubelet-client.crt"),
            kubelet_client_key: folder.join("kubelet-client.key"),
            service_account: folder.join("service-account.key"),
            service_account_public: folder.join("service-account.pub"),
        };
        let server = authority.sign_server(names)?;
        let kubelet_client = authority.sign_client("kube-apiserver-kubelet-client", &["system:masters"])?;
        let service_account = KeyPair::generate()?;
        write_private(&files.authority, &authority.certificate())?;
        write_private(&files.authority_key, &authority.key())?;
        write_private(&files.server, &server.certificate)?;
        write_private(&files.server_key, &server.key)?;
        write_private(&files.kubelet_client, &kubelet_client.certificate)?;
        write_private(&files.kubelet_client_key, &kubelet_client.key)?;
        write_private(&files.service_account, &service_account.serialize_pem())?;
        write_private(&files.service_account_public, &service_account.public_key_pem())?;
        Ok(files)
    }
}

/// Why a certificate or its file could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("write a file")]
    Write(#[from] io::Error),
}

/// Writes a file that only this user may read, in one step.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    fs::rename(unfinished, path)
}
