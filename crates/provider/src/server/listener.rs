//! Listening: a unix socket that only its user may open, or TCP with mutual TLS.

use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::server::Router;
use tonic::transport::{Server, ServerTlsConfig};

use crate::endpoint::{Endpoint, TlsError, TlsFiles, TlsMaterial};

static BINDS: AtomicU64 = AtomicU64::new(0);

/// A bound address: callers may connect from now on and are answered once it is served.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unix { listener: UnixListener, path: PathBuf, inode: u64 },
    Tls { listener: TcpListener, files: Option<TlsFiles> },
}

/// Why a plugin does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address.
    #[error("listen on {endpoint}")]
    Bind {
        /// Which.
        endpoint: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The files of mutual TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The signals that end a process.
    #[error("watch for signals")]
    Signal {
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What the files hold, or the listener.
    #[error("serve")]
    Serve {
        /// Why not.
        #[source]
        source: tonic::transport::Error,
    },
}

impl Listener {
    /// Binds. A stale socket file is replaced; one on which somebody still answers is not.
    ///
    /// # Errors
    /// When the address is taken or cannot be used.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, ServeError> {
        let kind = match endpoint {
            Endpoint::Unix(path) => bind_unix(path).await,
            Endpoint::Tls { authority, files } => {
                let bound = TcpListener::bind(authority).await;
                bound.map(|listener| Kind::Tls { listener, files: files.clone() })
            }
        };
        match kind {
            Ok(kind) => Ok(Self { kind }),
            Err(source) => Err(ServeError::Bind { endpoint: endpoint.to_string(), source }),
        }
    }

    /// Where it listens, of TCP: the port when 0 was asked for.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tls { listener, .. } => listener.local_addr().ok(),
            Kind::Unix { .. } => None,
        }
    }

    pub(super) fn protect(&self, server: Server) -> Result<Server, ServeError> {
        match &self.kind {
            Kind::Unix { .. } => Ok(server),
            Kind::Tls { files, .. } => {
                let TlsMaterial { ca, identity } = TlsMaterial::read(files.as_ref())?;
                let tls = ServerTlsConfig::new().identity(identity).client_ca_root(ca);
                server.tls_config(tls).map_err(|source| ServeError::Serve { source })
            }
        }
    }

    pub(super) async fn accept(
        self,
        router: Router,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let served = match self.kind {
            Kind::Unix { listener, path, inode } => {
                let incoming = UnixListenerStream::new(listener);
                let served = router.serve_with_incoming_shutdown(incoming, shutdown).await;
                remove_own(&path, inode);
                served
            }
            Kind::Tls { listener, .. } => {
                let incoming = TcpListenerStream::new(listener);
                router.serve_with_incoming_shutdown(incoming, shutdown).await
            }
        };
        served.map_err(|source| ServeError::Serve { source })
    }
}

/// Binds inside a directory that only we may enter and moves the socket out: there is no moment at which
/// another user could connect, and a stale file is replaced in one step.
async fn bind_unix(path: &Path) -> io::Result<Kind> {
    if UnixStream::connect(path).await.is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "somebody answers there"));
    }
    if fs::symlink_metadata(path).is_ok_and(|found| !is_socket(&found)) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket is in the way"));
    }
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let private = parent.join(format!(".{}-{}", std::process::id(), BINDS.fetch_add(1, Ordering::Relaxed)));
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let inside = private.join(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    let bound = (|| {
        let listener = UnixListener::bind(&inside)?;
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o600))?;
        fs::rename(&inside, path)?;
        Ok(Kind::Unix { listener, path: path.to_owned(), inode: fs::symlink_metadata(path)?.ino() })
    })();
    fs::remove_dir_all(&private).ok();
    bound
}

fn is_socket(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_socket()
}

/// Removes the socket file unless another process has put its own there.
fn remove_own(path: &Path, inode: u64) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.ino() == inode) {
        fs::remove_file(path).ok();
    }
}
