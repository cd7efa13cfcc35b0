//! Durations as Go writes them, such as `1m30s` or `500ms`.

use std::time::Duration;

/// Reads what `time.ParseDuration` reads, without a sign; `None` when it is none.
pub(crate) fn parse_go(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_len = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_len);
        sum =
            sum.checked_add(Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds(unit)?).ok()?)?;
        rest = next;
    }
    (!text.is_empty()).then_some(sum)
}

fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read_as_go_reads_them() {
        for (text, millis) in
            [("0", 0), ("15s", 15_000), ("1m30s", 90_000), ("1.5h", 5_400_000), ("500ms", 500)]
        {
            assert_eq!(parse_go(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "1d", "-1s", "1s2", "1..2s"] {
            assert_eq!(parse_go(text), None, "{text}");
        }
    }
}
