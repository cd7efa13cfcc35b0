//! How large each vendor finds a document.

use std::fmt::Write;

use scarpenter_provider::capabilities::{Encoding, UserDataLimit};
use scarpenter_provider_sim::vendor::Traits;

/// One vendor's view.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) vendor: &'static str,
    rendered: usize,
    sent: usize,
    limit: UserDataLimit,
}

impl Row {
    pub(super) fn new(vendor: &'static str, rendered: usize, sent: usize) -> Self {
        Self { vendor, rendered, sent, limit: Traits::of(vendor).user_data_limit }
    }

    pub(super) fn fits(&self) -> bool {
        self.limit.takes(self.sent)
    }

    fn counted(&self) -> u64 {
        self.limit.counted(self.sent)
    }

    fn verdict(&self) -> String {
        match self.counted().checked_sub(self.limit.bytes) {
            None | Some(0) => format!("{} left", self.limit.bytes - self.counted()),
            Some(over) => format!("{over} too many"),
        }
    }
}

/// A line for each vendor, numbers in bytes.
pub(super) fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<9} {:>9} {:>7} {:<8} {:>8} {:>8}\n",
        "VENDOR", "RENDERED", "SENT", "ENCODING", "COUNTED", "LIMIT"
    );
    for row in rows {
        let encoding = match row.limit.encoding {
            Encoding::Raw => "raw",
            Encoding::Base64 => "base64",
        };
        writeln!(
            out,
            "{:<9} {:>9} {:>7} {encoding:<8} {:>8} {:>8}  {}",
            row.vendor,
            row.rendered,
            row.sent,
            row.counted(),
            row.limit.bytes,
            row.verdict()
        )
        .expect("a String takes every write");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_counts_after_its_encoding() {
        let rows =
            [Row::new("aws", 30_000, 16_385), Row::new("ovh", 30_000, 49_151), Row::new("vultr", 9, 9)];
        assert_eq!(rows.iter().map(Row::fits).collect::<Vec<_>>(), [false, false, true]);
        let table = table(&rows);
        for words in ["16385    16384  1 too many", "65536    65535  1 too many", "12    65536  65524 left"] {
            assert!(table.contains(words), "{words} is not in\n{table}");
        }
    }
}
