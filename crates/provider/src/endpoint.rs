//! Where a plugin listens: `unix:///path`, or `https://host:port` with TLS on both sides.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use scarpenter_core::name::Vendor;
use tonic::transport::{Certificate, Identity};

/// Address of a plugin, for both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A unix socket; its file mode is the protection.
    Unix(PathBuf),
    /// TCP; both sides show a certificate.
    Tls {
        /// `host:port`.
        authority: String,
        /// Files of this side; [`Endpoint::with_tls`] sets them.
        files: Option<TlsFiles>,
    },
}

/// PEM files of one side of mutual TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate authority that signed the other side.
    pub ca: PathBuf,
    /// Our certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A text that is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no endpoint: expected unix:///path or https://host:port")]
pub struct BadEndpoint {
    /// What was written.
    pub text: String,
}

/// A text that is no `VENDOR=ENDPOINT`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAssignment {
    /// No `=`, or nothing before it.
    #[error("{text:?} is not VENDOR=ENDPOINT")]
    Shape {
        /// What was written.
        text: String,
    },
    /// The part after the `=`.
    #[error(transparent)]
    Endpoint(#[from] BadEndpoint),
}

/// Why the files of mutual TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// TCP without certificates is not served or called.
    #[error("https needs the files of a certificate authority, a certificate and a key")]
    NoFiles,
    /// One of them cannot be read.
    #[error("read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

impl Endpoint {
    /// The same with the files of mutual TLS; no change for a unix socket.
    #[must_use]
    pub fn with_tls(self, tls: Option<TlsFiles>) -> Self {
        match self {
            Self::Tls { authority, .. } => Self::Tls { authority, files: tls },
            unix @ Self::Unix(_) => unix,
        }
    }
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        let bad = || BadEndpoint { text: text.to_owned() };
        if let Some(path) = text.strip_prefix("unix://") {
            let socket = Path::new(path);
            return (socket.is_absolute() && socket.file_name().is_some())
                .then(|| Self::Unix(socket.to_owned()))
                .ok_or_else(bad);
        }
        let authority =
            text.strip_prefix("https://").map(|rest| rest.trim_end_matches('/')).ok_or_else(bad)?;
        let (host, port) = authority.rsplit_once(':').ok_or_else(bad)?;
        let usable = !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok();
        usable.then(|| Self::Tls { authority: authority.to_owned(), files: None }).ok_or_else(bad)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tls { authority, .. } => write!(f, "https://{authority}"),
        }
    }
}

/// Reads `VENDOR=ENDPOINT`, as `--provider` and `--play` take it.
///
/// # Errors
/// When either part is missing or not usable.
pub fn parse_assignment(text: &str) -> Result<(Vendor, Endpoint), BadAssignment> {
    let shape = || BadAssignment::Shape { text: text.to_owned() };
    let (vendor, endpoint) = text.split_once('=').ok_or_else(shape)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if vendor.is_empty() || !vendor.chars().all(plain) {
        return Err(shape());
    }
    Ok((vendor.into(), endpoint.parse()?))
}

/// What the files hold.
pub(crate) struct TlsMaterial {
    pub(crate) ca: Certificate,
    pub(crate) identity: Identity,
}

impl TlsMaterial {
    pub(crate) fn read(files: Option<&TlsFiles>) -> Result<Self, TlsError> {
        let files = files.ok_or(TlsError::NoFiles)?;
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
        };
        Ok(Self {
            ca: Certificate::from_pem(read(&files.ca)?),
            identity: Identity::from_pem(read(&files.certificate)?, read(&files.key)?),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_survives_the_round_trip_and_garbage_does_not() {
        for text in ["unix:///run/hcloud.sock", "https://plugin.example:7443", "https://[::1]:1"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for garbage in [
            "",
            "unix://",
            "unix://relative",
            "unix:///",
            "http://host:1",
            "https://host",
            "https://:1",
            "host:1",
        ] {
            assert!(garbage.parse::<Endpoint>().is_err(), "{garbage}");
        }
    }

    #[test]
    fn an_assignment_needs_both_sides() {
        assert_eq!(parse_assignment("hcloud=unix:///a").unwrap().0, Vendor::from("hcloud"));
        for garbage in ["hcloud", "=unix:///a", "hcloud=", "a b=unix:///a"] {
            assert!(parse_assignment(garbage).is_err(), "{garbage}");
        }
    }
}
