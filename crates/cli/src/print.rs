//! What a command answers, on the standard output.

use std::io::{ErrorKind, Write};

use anyhow::Context;

/// Prints `text`. A reader that goes away early, such as `head`, is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("write the answer"))
        }
        _ => Ok(()),
    }
}

/// `document` as indented JSON.
pub(crate) fn json(document: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(document).context("write the answer as JSON")? + "\n")
}
