//! Amounts of CPU, memory and everything else a pod can ask for.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// `cpu`.
pub const CPU: &str = "cpu";
/// `memory`.
pub const MEMORY: &str = "memory";
/// `ephemeral-storage`.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// `pods`: how many pods a node takes.
pub const PODS: &str = "pods";
/// `nodes`: in limits, how many machines.
pub const NODES: &str = "nodes";
/// In limits, price per hour in micro-USD.
pub const MICRO_USD_PER_HOUR: &str = "scarpenter.sparecores.com/micro-usd-per-hour";

/// Amounts by resource name: `cpu` in millicores, everything else in units, as the kube-scheduler counts.
///
/// An absent name is zero when it is asked for, and "not limited" or "unknown" where the doc says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(BTreeMap<String, i64>);

impl Resources {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Amount of `name`, 0 when absent.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Amount of `name`, if it is named at all.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// Sets the amount of `name`.
    pub fn set(&mut self, name: &str, amount: i64) {
        self.0.insert(name.to_owned(), amount);
    }

    /// The same with `name` set; for building.
    #[must_use]
    pub fn with(mut self, name: &str, amount: i64) -> Self {
        self.set(name, amount);
        self
    }

    /// Adds `other`, name by name.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    /// Takes `other` off, name by name; may go below zero.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let rest = self.0.entry(name.clone()).or_default();
            *rest = rest.saturating_sub(*amount);
        }
    }

    /// Per name the larger of the two.
    pub fn max(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }

    /// Whether every amount asked for here is there in `available`; a negative entry there takes nothing (SCH-23).
    #[must_use]
    pub fn fits(&self, available: &Self) -> bool {
        available.0.values().all(|amount| *amount >= 0)
            && self.0.iter().all(|(name, amount)| *amount <= 0 || *amount <= available.get(name))
    }

    /// First resource of which there is not enough, with what is asked for and what is there.
    #[must_use]
    pub fn lacking(&self, available: &Self) -> Option<(&str, i64, i64)> {
        self.0
            .iter()
            .map(|(name, amount)| (name.as_str(), *amount, available.get(name)))
            .find(|(_, asked, there)| *asked > 0 && asked > there)
    }

    /// Names and amounts in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and amounts as Kubernetes quantities.
    #[must_use]
    pub fn to_quantities(&self) -> BTreeMap<String, String> {
        self.iter().map(|(name, amount)| (name.to_owned(), format_quantity(name, amount))).collect()
    }
}

impl FromIterator<(String, i64)> for Resources {
    fn from_iter<T: IntoIterator<Item = (String, i64)>>(iter: T) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, amount)) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {}", format_quantity(name, amount))?;
        }
        Ok(())
    }
}

/// A text that is not a Kubernetes quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a Kubernetes quantity, such as 500m, 2 or 4Gi")]
pub struct BadQuantity {
    /// What was written.
    pub text: String,
}

/// Reads a Kubernetes quantity: millicores for `cpu`, else units, rounded up as the kube-scheduler does.
///
/// # Errors
/// [`BadQuantity`] when the text is none.
pub fn parse_quantity(name: &str, text: &str) -> Result<i64, BadQuantity> {
    let bad = || BadQuantity { text: text.to_owned() };
    let trimmed = text.trim();
    let split = trimmed
        .char_indices()
        .find(|(i, c)| !(c.is_ascii_digit() || *c == '.' || (*i == 0 && matches!(c, '+' | '-'))))
        .map_or(trimmed.len(), |(i, _)| i);
    let (number, suffix) = trimmed.split_at(split);
    let (scale_num, scale_den) = scale(suffix).ok_or_else(bad)?;
    let (negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 || whole.len() > 19 {
        return Err(bad());
    }
    let plain: i128 = format!("{whole}{fraction}").parse().map_err(|_| bad())?;
    let unit = if name == CPU { 1000 } else { 1 };
    let numerator = plain.checked_mul(scale_num).and_then(|n| n.checked_mul(unit)).ok_or_else(bad)?;
    let fraction_digits = u32::try_from(fraction.len()).map_err(|_| bad())?;
    let denominator = scale_den * 10i128.pow(fraction_digits);
    let magnitude = numerator / denominator + i128::from(numerator % denominator != 0 && !negative);
    let value = if negative { -magnitude } else { magnitude };
    Ok(i64::try_from(value).unwrap_or(if negative { i64::MIN } else { i64::MAX }))
}

fn scale(suffix: &str) -> Option<(i128, i128)> {
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let power: i32 = digits.parse().ok()?;
            match power {
                0..=18 => (10i128.pow(power.unsigned_abs()), 1),
                -18..0 => (1, 10i128.pow(power.unsigned_abs())),
                _ => return None,
            }
        }
    })
}

/// Writes an amount as a Kubernetes quantity that [`parse_quantity`] reads back.
#[must_use]
pub fn format_quantity(name: &str, amount: i64) -> String {
    if name == CPU {
        return if amount % 1000 == 0 { (amount / 1000).to_string() } else { format!("{amount}m") };
    }
    if name == MEMORY || name == EPHEMERAL_STORAGE {
        for (shift, suffix) in [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")] {
            if amount != 0 && amount % (1 << shift) == 0 {
                return format!("{}{suffix}", amount >> shift);
            }
        }
    }
    amount.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (name, text, value) in [
            (CPU, "500m", 500),
            (CPU, "2", 2000),
            (CPU, "0.1", 100),
            (CPU, "1u", 1),
            (MEMORY, "4Gi", 4 << 30),
            (MEMORY, "1.5Gi", 3 << 29),
            (MEMORY, "128M", 128_000_000),
            (MEMORY, "1e3", 1000),
            (MEMORY, "1500m", 2),
            (MEMORY, "-1", -1),
            (MEMORY, "100E", i64::MAX),
        ] {
            assert_eq!(parse_quantity(name, text), Ok(value), "{name} {text}");
        }
        for text in ["", "Gi", "1Gb", "a", "1 2", "1e99", "--1"] {
            assert!(parse_quantity(MEMORY, text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (name, amount) in
            [(CPU, 1500), (CPU, 2000), (MEMORY, 3 << 29), (MEMORY, 7), (PODS, 110), (MEMORY, 0)]
        {
            assert_eq!(parse_quantity(name, &format_quantity(name, amount)), Ok(amount));
        }
    }

    #[test]
    fn a_negative_rest_takes_nothing() {
        let rest = Resources::new().with(CPU, 5000).with(MEMORY, -1);
        assert!(!Resources::new().with(CPU, 1).fits(&rest));
    }

    #[test]
    fn an_unknown_resource_does_not_fit() {
        let asked = Resources::new().with("example.com/fpga", 1);
        assert!(!asked.fits(&Resources::new().with(CPU, 1000)));
        assert_eq!(asked.lacking(&Resources::new()), Some(("example.com/fpga", 1, 0)));
    }
}
