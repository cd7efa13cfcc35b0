//! What the person sees: a picture redrawn in place on a terminal, plain lines elsewhere.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Plain lines about one thing that goes on come this far apart.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// Standard output, as a terminal or as anything else.
pub(super) struct Screen {
    terminal: bool,
    drawn: usize,
    told: Option<(String, Instant)>,
}

impl Screen {
    pub(super) fn of_stdout() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { terminal: std::io::stdout().is_terminal() && !dumb, drawn: 0, told: None }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A line that stays.
    pub(super) fn say(&mut self, line: &str) {
        self.put(&[line.to_owned()], false);
        self.drawn = 0;
    }

    /// How something goes on: redrawn on a terminal, elsewhere said when `what` changes and from time to time.
    pub(super) fn progress(&mut self, what: &str, line: &str) {
        if self.terminal {
            self.put(&[line.to_owned()], self.terminal);
            self.drawn = 1;
        } else if self.told.as_ref().is_none_or(|(told, at)| told != what || at.elapsed() > REPEAT_AFTER) {
            self.told = Some((what.to_owned(), Instant::now()));
            self.put(&[line.to_owned()], self.terminal);
        }
    }

    /// Redraws a picture in place of the one before; nothing where that cannot be done.
    pub(super) fn draw(&mut self, lines: &[String]) {
        if self.terminal {
            self.put(lines, true);
            self.drawn = lines.len();
        }
    }

    /// Leaves what is drawn where it is.
    pub(super) fn settle(&mut self) {
        self.drawn = 0;
    }

    /// A reader that has gone away is no reason to stop half way.
    fn put(&self, lines: &[String], redrawn: bool) {
        let mut out = Vec::new();
        if self.drawn > 0 {
            out.extend(format!("\x1b[{}A\x1b[J", self.drawn).into_bytes());
        }
        // A wrapped line would be two, and the next picture would start too low.
        let (start, end) = if redrawn { ("\x1b[?7l", "\x1b[?7h") } else { ("", "") };
        let width = if redrawn { width() } else { usize::MAX };
        for line in lines {
            out.extend(format!("{start}{}{end}\n", cut(line, width)).into_bytes());
        }
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&out).and_then(|()| stdout.flush()).ok();
    }
}

/// How wide the terminal is now; without limit where it does not say.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(usize::MAX)
}

/// The line, or as much of it as there is room for before a mark that says so.
fn cut(line: &str, width: usize) -> Cow<'_, str> {
    if line.chars().count() <= width {
        return line.into();
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end()).into()
}

/// Columns as wide as their widest cell, two spaces apart.
pub(super) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let rows =
            [vec!["POD".to_owned(), "STATE".to_owned()], vec!["exact-aws".to_owned(), "gone".to_owned()]];
        assert_eq!(columns(&rows), ["POD        STATE", "exact-aws  gone"]);
    }

    #[test]
    fn a_line_is_cut_to_the_width_of_the_terminal() {
        assert_eq!(cut("exact-aws  gone", 15), "exact-aws  gone");
        assert_eq!(cut("exact-aws  gone", 14), "exact-aws  go…");
        assert_eq!(cut("exact-aws  gone", 11), "exact-aws…");
    }
}
