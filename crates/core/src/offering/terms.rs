//! How a vendor itself states a price.

use std::fmt;

use crate::lifecycle::Time;

use super::Price;

/// Three-letter code of a currency, upper case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The US dollar.
    pub const USD: Self = Self(*b"USD");

    /// The currency of that code, in either case; `None` for what is no three letters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let code = <[u8; 3]>::try_from(text.trim().as_bytes()).ok()?.map(|byte| byte.to_ascii_uppercase());
        code.iter().all(u8::is_ascii_uppercase).then_some(Self(code))
    }

    /// Its code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a code is made of ASCII letters")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An amount in millionths of a currency's unit. Never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money {
    /// Millionths of one unit.
    pub micro: u64,
    /// Of which currency.
    pub currency: Currency,
}

impl Money {
    /// So many units, rounded half up; `None` for zero, negative, NaN and infinite.
    #[must_use]
    pub fn from_units(units: f64, currency: Currency) -> Option<Self> {
        Price::from_usd(units).map(|price| Self { micro: price.micro_usd(), currency })
    }

    /// What it is in USD where one unit is worth `rate`; `None` where that is no price.
    #[must_use]
    pub fn to_usd(self, rate: f64) -> Option<Price> {
        #[expect(clippy::cast_precision_loss, reason = "no price is that large")]
        let units = self.micro as f64 / 1e6;
        Price::from_usd(units * rate)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} {}", self.micro / 1_000_000, self.micro % 1_000_000, self.currency)
    }
}

/// What a price is before it is turned into USD an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Terms {
    /// Price per hour in the vendor's own currency.
    pub native: Money,
    /// The most that a month costs, in millionths of the same currency, where the vendor caps it.
    pub monthly_cap_micro: Option<u64>,
    /// When the price was seen, to the second.
    pub observed: Option<Time>,
}

impl Terms {
    /// A price in USD of which no more is known.
    #[must_use]
    pub fn usd(price: Price) -> Self {
        let native = Money { micro: price.micro_usd(), currency: Currency::USD };
        Self { native, monthly_cap_micro: None, observed: None }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_is_three_letters() {
        assert_eq!(Currency::parse(" eur ").unwrap().as_str(), "EUR");
        for bad in ["", "EU", "EURO", "E1R", "€", "éa"] {
            assert_eq!(Currency::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_price_is_turned_into_dollars_by_its_rate() {
        let price = Money::from_units(0.2219, Currency::parse("EUR").unwrap()).unwrap();
        assert_eq!(price.to_string(), "0.221900 EUR");
        assert_eq!(price.to_usd(1.1), Some(Price::from_micro_usd(244_090)));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(price.to_usd(rate), None, "{rate}");
        }
    }
}
