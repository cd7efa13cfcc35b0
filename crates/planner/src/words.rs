use scarpenter_core::label;
use scarpenter_core::offering::Price;
use scarpenter_core::requirements::{Requirement, ValueSet};
use scarpenter_core::resources::{EPHEMERAL_STORAGE, MEMORY, MICRO_USD_PER_HOUR, format_quantity};

/// The stable identifier of the rule that a label key is.
pub(crate) fn rule(key: &str) -> &str {
    match key {
        label::VENDOR => "vendor",
        label::INSTANCE_TYPE => "instance-type",
        label::ARCH => "arch",
        label::OS => "os",
        label::REGION => "region",
        label::ZONE => "zone",
        label::CAPACITY_TYPE => "capacity-type",
        label::PRICE => "price",
        other => other,
    }
}

/// `In [a, b]`: what a set says of its key.
pub(crate) fn said(key: &str, set: &ValueSet) -> String {
    let lines = set.to_requirements(key);
    lines.iter().map(Requirement::to_string).collect::<Vec<_>>().join(" and ")
}

/// `a, b or c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// `1 offering`, `2 offerings`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// An amount for a person: money in dollars, bytes that are no whole number of units in GiB, rounded down.
pub(crate) fn amount(name: &str, amount: i64) -> String {
    const GIB: i64 = 1 << 30;
    match name {
        MICRO_USD_PER_HOUR => Price::from_micro_usd(amount.unsigned_abs()).to_string(),
        MEMORY | EPHEMERAL_STORAGE if amount > GIB && amount % (1 << 20) != 0 => {
            format!("{}.{}Gi", amount / GIB, amount % GIB * 10 / GIB)
        }
        _ => format_quantity(name, amount),
    }
}

/// Seconds since 1970 as `2026-11-30T14:38:00Z`.
pub(crate) fn utc(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Days since 1970 as year, month, day, counting years from March so that the leap day comes last.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_as_a_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_051_880, "2026-11-30T15:18:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
