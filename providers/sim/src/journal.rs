//! JSON lines of what was asked and what came of it, with wall-clock time in microseconds; for benchmarks and audits.
//!
//! `received` is a create or delete as it came in, before any fault; `answered` its status code; `made` and `gone`
//! are machines, with the number that there are afterwards; `kept` is what a start finds of an earlier run, which may
//! have been killed before it wrote that a machine was made or gone. No user data.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Where the lines go.
#[derive(Debug)]
pub struct Journal {
    file: Option<Mutex<File>>,
}

impl Journal {
    /// Nowhere.
    #[must_use]
    pub fn none() -> Self {
        Self { file: None }
    }

    /// To the end of a file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn append_to(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file: Some(Mutex::new(file)) })
    }

    /// Writes one line: the time, the event, and what belongs to it.
    pub(crate) fn note(&self, event: &'static str, facts: Value) {
        let Some(file) = &self.file else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = json!({"us": u64::try_from(now.as_micros()).unwrap_or(u64::MAX), "event": event});
        if let (Value::Object(line), Value::Object(facts)) = (&mut line, facts) {
            line.extend(facts);
        }
        // In one piece, so that a process that is killed leaves a whole line or none.
        let line = format!("{line}\n");
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        if let Err(error) = written {
            tracing::error!(%error, "journal line lost");
        }
    }
}
