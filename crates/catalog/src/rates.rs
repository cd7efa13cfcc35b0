//! What one unit of a currency is worth in USD. Only what the user, or the sample's header, says.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::civil::Date;

const USD: &str = "USD";

/// One currency's rate, written `EUR=1.10`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    currency: String,
    usd: f64,
    date: Option<Date>,
}

impl Rate {
    /// One unit of `currency` is worth `usd` US dollars.
    ///
    /// # Errors
    /// [`BadRate`] for a code that is not three letters, a rate that is not a positive number, and for USD.
    pub fn new(currency: &str, usd: f64) -> Result<Self, BadRate> {
        let code = currency.trim().to_ascii_uppercase();
        if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(BadRate::Currency { currency: currency.to_owned() });
        }
        if !(usd.is_finite() && usd > 0.0) {
            return Err(BadRate::Amount { currency: code, amount: usd.to_string() });
        }
        if code == USD && usd.to_bits() != 1f64.to_bits() {
            return Err(BadRate::Dollar);
        }
        Ok(Self { currency: code, usd, date: None })
    }

    /// The same with the day on which it was so.
    #[must_use]
    pub fn of(self, date: Date) -> Self {
        Self { date: Some(date), ..self }
    }

    /// Three-letter code, upper case.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// US dollars for one unit.
    #[must_use]
    pub fn usd(&self) -> f64 {
        self.usd
    }

    /// The day on which it was so, where that is known.
    #[must_use]
    pub fn date(&self) -> Option<Date> {
        self.date
    }
}

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Self, BadRate> {
        let (currency, amount) =
            text.split_once('=').ok_or_else(|| BadRate::Form { text: text.to_owned() })?;
        let (amount, day) =
            amount.split_once('@').map_or((amount, None), |(amount, day)| (amount, Some(day)));
        let bad =
            |_| BadRate::Amount { currency: currency.trim().to_owned(), amount: amount.trim().to_owned() };
        let rate = Self::new(currency, amount.trim().parse().map_err(bad)?)?;
        let Some(day) = day.map(str::trim) else { return Ok(rate) };
        let day = day.parse().map_err(|_| BadRate::Day { day: day.to_owned() })?;
        Ok(rate.of(day))
    }
}

/// A rate that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRate {
    /// No `=` in it.
    #[error("{text:?} is not a rate: write the US dollars for one unit of a currency, such as EUR=1.10")]
    Form {
        /// What was written.
        text: String,
    },
    /// Not an ISO 4217 code.
    #[error("{currency:?} is not a currency code: write three letters, such as EUR=1.10")]
    Currency {
        /// What was written.
        currency: String,
    },
    /// Zero, negative, infinite or no number.
    #[error(
        "{amount:?} is not a rate for {currency}: write a number above 0, with a point, such as {currency}=1.10"
    )]
    Amount {
        /// Whose rate.
        currency: String,
        /// What was written.
        amount: String,
    },
    /// Behind the `@` is no day.
    #[error("{day:?} is not a day: write one like 2026-11-30, as in EUR=1.10@2026-11-30")]
    Day {
        /// What was written.
        day: String,
    },
    /// USD is the unit of all prices.
    #[error("USD has no rate but 1: all prices are in USD")]
    Dollar,
}

/// Rates by currency. The default knows USD alone and guesses nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(BTreeMap<String, Rate>);

impl Default for Rates {
    fn default() -> Self {
        let dollar = Rate { currency: USD.to_owned(), usd: 1.0, date: None };
        Self(BTreeMap::from([(USD.to_owned(), dollar)]))
    }
}

impl Rates {
    /// Sets one rate, in place of an earlier one.
    ///
    /// # Errors
    /// As [`Rate::new`].
    pub fn set(&mut self, currency: &str, usd: f64) -> Result<(), BadRate> {
        self.extend([Rate::new(currency, usd)?]);
        Ok(())
    }

    /// Reads a table of rates: one `EUR=1.10@2026-11-30` a line, the day optional, `#` before a remark.
    ///
    /// # Errors
    /// The number of the first line that is no rate, and why.
    pub fn parse_table(text: &str) -> Result<Self, (usize, BadRate)> {
        let mut out = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                out.extend([line.parse().map_err(|error| (number + 1, error))?]);
            }
        }
        Ok(out)
    }

    /// US dollars for one unit of `currency`, if that is known.
    #[must_use]
    pub fn get(&self, currency: &str) -> Option<f64> {
        self.0.get(currency).map(Rate::usd)
    }

    /// All of them, by currency.
    pub fn iter(&self) -> impl Iterator<Item = &Rate> {
        self.0.values()
    }

    /// These rates, with those of `other` where both have one.
    #[must_use]
    pub fn overridden_by(mut self, other: &Self) -> Self {
        self.extend(other.iter().cloned());
        self
    }
}

impl Extend<Rate> for Rates {
    fn extend<T: IntoIterator<Item = Rate>>(&mut self, rates: T) {
        self.0.extend(rates.into_iter().map(|rate| (rate.currency.clone(), rate)));
    }
}

impl FromIterator<Rate> for Rates {
    fn from_iter<T: IntoIterator<Item = Rate>>(rates: T) -> Self {
        let mut out = Self::default();
        out.extend(rates);
        out
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_as_it_is_written() {
        let rate: Rate = " eur = 1.10 ".parse().unwrap();
        assert_eq!((rate.currency(), rate.usd()), ("EUR", 1.1));
        let rates: Rates = ["EUR=1.10", "CNY=0.14", "EUR=1.2"]
            .into_iter()
            .map(|text| text.parse::<Rate>().unwrap())
            .collect();
        assert_eq!(
            (rates.get("EUR"), rates.get("CNY"), rates.get("USD")),
            (Some(1.2), Some(0.14), Some(1.0))
        );
    }

    #[test]
    fn a_rate_that_is_given_goes_before_an_older_one_with_its_day() {
        let day: Date = "2026-08-22".parse().unwrap();
        let older: Rates = [Rate::new("EUR", 1.1).unwrap().of(day), Rate::new("CNY", 0.14).unwrap().of(day)]
            .into_iter()
            .collect();
        let rates = older.overridden_by(&["EUR=2".parse::<Rate>().unwrap()].into_iter().collect());
        let all: Vec<_> = rates.iter().map(|rate| (rate.currency(), rate.usd(), rate.date())).collect();
        assert_eq!(all, [("CNY", 0.14, Some(day)), ("EUR", 2.0, None), ("USD", 1.0, None)]);
    }

    #[test]
    fn a_table_of_rates_is_read_line_by_line_with_its_days() {
        let table = "# of the central bank\nEUR=1.10@2026-11-30\n\nCNY = 0.14 # about\n";
        let rates = Rates::parse_table(table).unwrap();
        assert_eq!((rates.get("EUR"), rates.get("CNY")), (Some(1.1), Some(0.14)));
        let days: Vec<_> = rates.iter().map(|rate| rate.date().map(|day| day.to_string())).collect();
        assert_eq!(days, [None, Some("2026-11-30".to_owned()), None]);
        let (line, error) = Rates::parse_table("EUR=1.1\nCNY=0.14@soon").unwrap_err();
        assert_eq!((line, error), (2, BadRate::Day { day: "soon".to_owned() }));
    }

    #[test]
    fn nothing_is_known_but_the_dollar() {
        assert_eq!(Rates::default().get("USD"), Some(1.0));
        assert_eq!(Rates::default().get("EUR"), None);
    }

    #[test]
    fn nonsense_is_refused_and_says_what_to_write() {
        for text in [
            "EUR", "", "EUR=", "EUR=0", "EUR=-1", "EUR=NaN", "EUR=inf", "EUR=1,10", "EURO=1.1", "€=1.1",
            "E1R=1", "=1", "USD=2",
        ] {
            let refused = text.parse::<Rate>();
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
        assert_eq!(
            "EUR=1,10".parse::<Rate>().unwrap_err().to_string(),
            "\"1,10\" is not a rate for EUR: write a number above 0, with a point, such as EUR=1.10"
        );
        assert!("USD=1".parse::<Rate>().is_ok());
        assert_eq!(
            Rates::default().set("EUR", f64::NAN).unwrap_err().to_string().split(':').next(),
            Some("\"NaN\" is not a rate for EUR")
        );
    }

    #[test]
    fn a_refused_rate_changes_nothing() {
        let mut rates = Rates::default();
        rates.set("EUR", 1.1).unwrap();
        assert!(rates.set("EUR", 0.0).is_err());
        assert_eq!(rates.get("EUR"), Some(1.1));
    }
}
