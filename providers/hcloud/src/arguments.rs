//! Command line, the same for `scarpenter-provider-hcloud` and `scarpenter provider hcloud`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use scarpenter_provider::{Endpoint, TlsFiles};

use crate::api::{Api, PUBLIC_API};
use crate::provider::Hcloud;
use crate::token::{Token, VARIABLE};

/// An answer of the API that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than [`PATIENCE`], and than a create that was not waited for may stay unseen.
const SETTLE: Duration = Duration::from_secs(90);

/// Buy machines of Hetzner Cloud. The API token is read from HCLOUD_TOKEN or a file, never from the command line.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where to listen: unix:///path, or https://host:port with certificates.
    #[arg(long, value_name = "ENDPOINT")]
    pub listen: Endpoint,
    /// File that holds the API token; it is read before every call, so that it may be replaced.
    #[arg(long, value_name = "FILE", env = "HCLOUD_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Where the vendor's API is.
    #[arg(long, value_name = "URL", env = "HCLOUD_ENDPOINT", default_value = PUBLIC_API)]
    pub api: String,
    /// Certificate authority of the callers, for https.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// Certificate, for https.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, for https.
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    pub tls_key: Option<PathBuf>,
}

impl Args {
    fn endpoint(&self) -> Endpoint {
        let tls = match (&self.tls_ca, &self.tls_cert, &self.tls_key) {
            (Some(ca), Some(certificate), Some(key)) => {
                Some(TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() })
            }
            _ => None,
        };
        self.listen.clone().with_tls(tls)
    }
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// When the address of the API cannot be used, or the plugin cannot listen; never for want of a token.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let token = Token::from(args.token_file.clone(), std::env::var(VARIABLE).ok());
    if let Err(words) = token.read().await {
        tracing::warn!(reason = words, "no token: nothing but Validate is served");
    }
    let api = Api::new(&args.api, token, PATIENCE).context("--api")?;
    let endpoint = args.endpoint();
    tracing::info!(%endpoint, api = args.api, "serving");
    scarpenter_provider::server::serve_until_signal(Hcloud::new(api, SETTLE), &endpoint).await?;
    Ok(())
}

#[derive(Debug, Parser)]
#[command(name = "scarpenter-provider-hcloud", version, about)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// The whole process: arguments, log lines on stderr, serving.
#[must_use]
pub fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    let args = Command::parse().args;
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG_LEVEL").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("scarpenter-provider-hcloud: {error:#}");
    ExitCode::FAILURE
}
