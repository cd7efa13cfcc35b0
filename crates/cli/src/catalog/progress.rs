//! How far fetching has come, on the standard error: one line that changes on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use scarpenter_catalog::source::Progress;

/// Away from a terminal, a line is written each time so many percent are done.
const STEP_PERCENT: usize = 10;

/// Writes what it is told.
pub(super) struct Told<W> {
    out: Mutex<Lines<W>>,
    terminal: bool,
}

struct Lines<W> {
    out: W,
    /// The tenth that was written last.
    last: Option<usize>,
    /// Whether a line stands on the terminal without its end.
    open: bool,
}

impl Told<std::io::Stderr> {
    pub(super) fn on_stderr() -> Self {
        let out = std::io::stderr();
        let terminal = out.is_terminal();
        Self::new(out, terminal)
    }
}

impl<W: Write> Told<W> {
    fn new(out: W, terminal: bool) -> Self {
        Self { out: Mutex::new(Lines { out, last: None, open: false }), terminal }
    }

    /// Clears the changing line, so that what follows stands on its own.
    pub(super) fn end(&self) {
        let mut lines = self.lines();
        if std::mem::take(&mut lines.open) {
            lines.write("\r\x1b[K");
        }
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines<W>> {
        self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<W: Write> Lines<W> {
    /// Progress that cannot be shown is no failure.
    fn write(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

impl<W: Write + Send> Progress for Told<W> {
    fn told(&self, done: usize, of: usize, what: &str) {
        let mut lines = self.lines();
        if self.terminal {
            lines.open = true;
            return lines.write(&format!("\r\x1b[K{done}/{of} {what}"));
        }
        let step = (done * 100).checked_div(of).map(|percent| percent / STEP_PERCENT);
        if step > lines.last {
            lines.last = step;
            lines.write(&format!("scarpenter: {done} of {of} answers: {what}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(terminal: bool, tell: impl Fn(&Told<Vec<u8>>)) -> String {
        let told = Told::new(Vec::new(), terminal);
        tell(&told);
        String::from_utf8_lossy(&told.lines().out).into_owned()
    }

    #[test]
    fn on_a_terminal_one_line_changes_and_is_gone_at_the_end() {
        let text = written(true, |told| {
            told.told(1, 2, "aws");
            told.told(2, 2, "gcp");
            told.end();
            told.end();
        });
        assert_eq!(text, "\r\x1b[K1/2 aws\r\x1b[K2/2 gcp\r\x1b[K");
    }

    #[test]
    fn elsewhere_a_line_is_written_for_every_tenth() {
        let text = written(false, |told| {
            (0..=200).for_each(|done| told.told(done, 200, "aws"));
            told.end();
        });
        assert_eq!(text.lines().count(), 11, "{text}");
        assert!(text.ends_with("scarpenter: 200 of 200 answers: aws\n"), "{text}");
    }

    #[test]
    fn nothing_to_do_is_no_division_by_zero() {
        assert_eq!(written(false, |told| told.told(0, 0, "nothing")), "");
    }
}
