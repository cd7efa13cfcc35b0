//! What a serial console would have shown.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// As much as vendors keep.
const KEPT: usize = 64 << 10;

/// Lines with the seconds since power on, the last 64 KiB of them. Nothing secret may be written here.
pub(crate) struct Console {
    on: Instant,
    text: Mutex<String>,
}

impl Console {
    pub(crate) fn new() -> Self {
        Self { on: Instant::now(), text: Mutex::default() }
    }

    pub(crate) fn say(&self, line: impl AsRef<str>) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = self.on.elapsed().as_secs_f64();
        writeln!(text, "[{seconds:12.6}] {}", line.as_ref()).expect("a String takes every write");
        if let Some(over) = text.len().checked_sub(KEPT) {
            // The byte of a line's end is part of no other character.
            let line = text.bytes().skip(over).position(|byte| byte == b'\n').map_or(0, |at| over + at + 1);
            text.drain(..line);
        }
    }

    /// Says what failed, with every cause.
    pub(crate) fn failed(&self, what: &str, error: &dyn std::error::Error) {
        let mut line = format!("{what}: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !line.contains(&text) {
                line.push_str(": ");
                line.push_str(&text);
            }
            cause = error.source();
        }
        self.say(line);
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_last_lines_are_kept() {
        let console = Console::new();
        for number in 0..4000 {
            console.say(format!("line {number} ü"));
        }
        let text = console.text();
        assert!(text.len() <= KEPT + 64, "{}", text.len());
        assert!(text.starts_with('[') && text.ends_with("line 3999 ü\n"), "{}", &text[..40]);
    }
}
