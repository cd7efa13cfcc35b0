//! `bootstrap render`: the document that a claim's machine would boot with.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use scarpenter_api::ScarpenterNodeClass;
use scarpenter_bootstrap::{Document, Join, masked};
use scarpenter_controller::preview;
use scarpenter_core::name::Vendor;

use super::inputs::Inputs;
use super::size;
use crate::BadInput;
use crate::plan::documents::Source;
use crate::print::print;

/// Exit code of a document that a vendor of the class does not take.
const TOO_LARGE: u8 = 3;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is printed is the inner document; vendors get it packed, within a small outer one. Token, mesh key \
                  and node password are made up and masked.\n\
                  Exit code: 0; with --size 3 when a vendor of the class does not take it; 2 for bad input."
)]
pub(crate) struct Args {
    /// A NodeClaim in YAML or JSON, or `-` for the standard input; its class and the ConfigMaps that the class names may be
    /// in the same file.
    #[arg(short = 'f', long = "filename", value_name = "NODECLAIM", required = true)]
    pub(super) filenames: Vec<Source>,
    /// The ScarpenterNodeClass of the claim, and ConfigMaps that it names.
    #[arg(long, value_name = "FILE")]
    pub(super) nodeclass: Option<Source>,
    /// Ignition to merge, JSON, instead of that of the ConfigMap that the class names.
    #[arg(long, value_name = "FILE")]
    pub(super) extra: Option<PathBuf>,
    /// The cluster's CA, PEM, instead of that of the ConfigMap that the class names.
    #[arg(long, value_name = "FILE")]
    pub(super) ca_certificate: Option<PathBuf>,
    /// URL of the API server, where the class names none.
    #[arg(long, value_name = "URL", default_value = "https://api.example.com:6443")]
    pub(super) server: String,
    /// Version of the API server, where the class names none [default: v1.37.2, of k3s v1.37.2+k3s1].
    #[arg(long, value_name = "VERSION")]
    pub(super) kubernetes_version: Option<String>,
    /// Print instead how many bytes each vendor counts, and how many it takes.
    #[arg(long)]
    size: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let inputs = Inputs::read(args).context(BadInput)?;
    for note in &inputs.notes {
        eprintln!("scarpenter: {note}");
    }
    if !args.size {
        let (join, document) = document(&inputs, &inputs.launch.offering.vendor).context(BadInput)?;
        print(&masked(&join, &document))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for vendor in ScarpenterNodeClass::VENDORS {
        let (_, document) = document(&inputs, &Vendor::new(vendor)).context(BadInput)?;
        rows.push(size::Row::new(vendor, document.inner().len(), document.bytes().len()));
    }
    print(&size::table(&rows))?;
    let named = |row: &&size::Row| inputs.class.spec.vendors.contains_key(row.vendor);
    let fits = rows.iter().filter(named).all(size::Row::fits);
    Ok(if fits { ExitCode::SUCCESS } else { ExitCode::from(TOO_LARGE) })
}

/// The document as `vendor`'s machine would get it.
fn document(inputs: &Inputs, vendor: &Vendor) -> anyhow::Result<(Join, Document)> {
    let mut launch = inputs.launch.clone();
    launch.offering.vendor = vendor.clone();
    let join = preview(inputs.claim.clone(), &launch, &inputs.class, inputs.surroundings.clone())?;
    let document = scarpenter_bootstrap::render(&join)?;
    Ok((join, document))
}
