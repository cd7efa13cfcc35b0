//! What is asked for, and into which parts a question falls when its answer is too much.

use reqwest::Url;

/// Most regions that a caller without a key may name in one question.
const REGIONS_AT_ONCE: usize = 3;

/// Vendors with no more price rows than this are asked for in one question.
///
/// A row comes with its whole server, region and zone, some 3 kB.
const ROWS_AT_ONCE: usize = 10_000;

/// Vendors that charge in another currency than USD.
///
/// The Keeper converts prices and rounds them to four digits, so each vendor is asked for in the currency that it
/// charges, which leaves the price as it is. A vendor that is not here is asked for in USD, as the Keeper converts.
const CHARGES: [(&str, &str); 3] = [("hcloud", "EUR"), ("ovh", "EUR"), ("upcloud", "EUR")];

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) path: &'static str,
    pub(crate) query: Vec<(&'static str, String)>,
}

impl Ask {
    pub(crate) fn new(path: &'static str) -> Self {
        Self { path, query: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// The whole address.
    pub(crate) fn url(&self, base: &str) -> String {
        let plain = format!("{base}{}", self.path);
        if self.query.is_empty() {
            return plain;
        }
        Url::parse_with_params(&plain, &self.query).map_or(plain, String::from)
    }
}

/// The prices of one vendor, or a part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prices {
    pub(crate) vendor: String,
    /// Regions that are open, of which the Keeper is told only unless all are asked for.
    regions: Vec<String>,
    all_regions: bool,
    allocation: Option<&'static str>,
    /// Callers with a key may read the bare table, whose prices are not converted.
    keyed: bool,
}

impl Prices {
    /// The questions for all prices of a vendor that has about `rows` of them.
    pub(crate) fn of(vendor: &str, regions: Vec<String>, rows: usize, keyed: bool) -> Vec<Self> {
        let all = Self { vendor: vendor.to_owned(), regions, all_regions: true, allocation: None, keyed };
        if keyed || rows <= ROWS_AT_ONCE { vec![all] } else { all.parts() }
    }

    /// Whether the whole vendor is asked for.
    pub(crate) fn is_whole(&self) -> bool {
        self.all_regions && self.allocation.is_none()
    }

    /// Whether it is the table without all that belongs to a row.
    pub(crate) fn is_bare(&self) -> bool {
        self.keyed
    }

    /// The same in smaller parts; none when it is the smallest.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let at_once = if self.all_regions { REGIONS_AT_ONCE } else { 1 };
        if self.all_regions || self.regions.len() > 1 {
            let part =
                |regions: &[String]| Self { regions: regions.to_vec(), all_regions: false, ..self.clone() };
            return self.regions.chunks(at_once).map(part).collect();
        }
        match self.allocation {
            None => ["ondemand", "spot"].map(|one| Self { allocation: Some(one), ..self.clone() }).into(),
            Some(_) => Vec::new(),
        }
    }

    pub(crate) fn ask(&self) -> Ask {
        let mut ask = Ask::new(if self.keyed { "/table/server_prices" } else { "/server_prices" });
        if self.all_regions {
            ask = ask.with("vendor", &self.vendor);
        } else {
            for region in &self.regions {
                ask = ask.with("vendor_regions", format!("{}~{region}", self.vendor));
            }
        }
        if let Some(allocation) = self.allocation {
            ask = ask.with("allocation", allocation);
        }
        if self.keyed {
            return ask;
        }
        ask.with("currency", charges(&self.vendor)).with("limit", "-1").with("add_total_count_header", "true")
    }

    /// For people.
    pub(crate) fn what(&self) -> String {
        let vendor = &self.vendor;
        if self.all_regions {
            format!("prices of {vendor}")
        } else {
            format!("prices of {vendor}: {}", self.regions.join(", "))
        }
    }
}

/// The currency that a vendor charges in, as far as is known.
fn charges(vendor: &str) -> &'static str {
    CHARGES.iter().find(|(known, _)| *known == vendor).map_or("USD", |(_, currency)| currency)
}

/// The vendor's dearest prices, in USD as the Keeper converts them.
pub(crate) fn dearest(vendor: &str) -> Ask {
    Ask::new("/server_prices")
        .with("vendor", vendor)
        .with("currency", "USD")
        .with("order_by", "price")
        .with("order_dir", "desc")
        .with("limit", "25")
}

/// Scores of one benchmark, of all vendors or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scores {
    pub(crate) benchmark: String,
    /// As the Keeper has it stored: it compares text, blanks and all.
    pub(crate) config: String,
    pub(crate) vendor: Option<String>,
}

impl Scores {
    /// The same by vendor; none when it is for one already.
    pub(crate) fn parts<'v>(&self, vendors: impl Iterator<Item = &'v String>) -> Vec<Self> {
        if self.vendor.is_some() {
            return Vec::new();
        }
        vendors.map(|vendor| Self { vendor: Some(vendor.clone()), ..self.clone() }).collect()
    }

    /// Sorting by the score leaves out the servers without one, and `only_active` those without a price.
    pub(crate) fn ask(&self) -> Ask {
        let mut ask = Ask::new("/servers");
        if let Some(vendor) = &self.vendor {
            ask = ask.with("vendor", vendor);
        }
        ask.with("benchmark_id", &self.benchmark)
            .with("benchmark_config", &self.config)
            .with("only_active", "false")
            .with("order_by", "selected_benchmark_score")
            .with("limit", "-1")
            .with("add_total_count_header", "true")
    }

    /// For people.
    pub(crate) fn what(&self) -> String {
        format!("scores of {} {}", self.benchmark, self.config)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn regions(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("r{number}")).collect()
    }

    fn urls(prices: &[Prices]) -> Vec<String> {
        prices.iter().map(|prices| prices.ask().url("http://k")).collect()
    }

    #[test]
    fn a_small_vendor_is_one_question_and_a_large_one_three_regions_each() {
        let tail = "currency=USD&limit=-1&add_total_count_header=true";
        assert_eq!(
            urls(&Prices::of("vultr", regions(4), 400, false)),
            [format!("http://k/server_prices?vendor=vultr&{tail}")]
        );
        assert_eq!(
            urls(&Prices::of("aws", regions(4), 400_000, false)),
            [
                format!(
                    "http://k/server_prices?vendor_regions=aws%7Er0&vendor_regions=aws%7Er1&vendor_regions=aws%7Er2&{tail}"
                ),
                format!("http://k/server_prices?vendor_regions=aws%7Er3&{tail}")
            ]
        );
        assert_eq!(
            urls(&Prices::of("aws", regions(4), 400_000, true)),
            ["http://k/table/server_prices?vendor=aws"]
        );
    }

    #[test]
    fn a_vendor_is_asked_for_in_the_currency_that_it_charges() {
        for (vendor, currency) in
            [("hcloud", "EUR"), ("ovh", "EUR"), ("upcloud", "EUR"), ("aws", "USD"), ("new", "USD")]
        {
            let asked = urls(&Prices::of(vendor, regions(1), 1, false)).remove(0);
            assert!(asked.contains(&format!("currency={currency}")), "{asked}");
        }
    }

    #[test]
    fn a_question_falls_into_parts_down_to_one_region_and_allocation() {
        for keyed in [false, true] {
            let mut parts = vec![Prices::of("aws", regions(6), 1, keyed).remove(0)];
            let mut sizes = Vec::new();
            while !parts.is_empty() {
                sizes.push(parts.len());
                parts = parts.iter().flat_map(Prices::parts).collect();
            }
            assert_eq!(sizes, [1, 2, 6, 12]);
        }
    }

    #[test]
    fn scores_are_asked_for_with_the_config_as_it_is_stored() {
        let all = Scores {
            benchmark: "geekbench:score".into(),
            config: "{\"cores\": \"single\"}".into(),
            vendor: None,
        };
        let asked = all.ask().url("http://k");
        assert!(asked.contains("benchmark_config=%7B%22cores%22%3A+%22single%22%7D"), "{asked}");
        let parts = all.parts(["aws".to_owned(), "gcp".to_owned()].iter());
        assert_eq!(parts.len(), 2);
        assert!(
            parts[1].ask().url("http://k").contains("vendor=gcp")
                && parts[1].parts(["aws".to_owned()].iter()).is_empty()
        );
    }
}
