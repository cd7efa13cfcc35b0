//! From the catalog to what emission reads.

use jiff::Timestamp;
use scarpenter_catalog::Catalog;
use scarpenter_emission::{Facts, Measurement};

/// All of a catalog that emission reads.
pub(super) fn facts(catalog: &Catalog) -> Facts<'_> {
    let measurements = catalog.scores.iter().map(|own| Measurement {
        id: own.id(),
        config: own.config(),
        scores: own.iter().collect(),
    });
    Facts {
        snapshot: &catalog.snapshot,
        measurements: measurements.collect(),
        timestamp: catalog.snapshot.observed().map(|(_, newest)| newest),
        hash: catalog.report.provenance.hash.as_deref(),
        auto_mode: None,
    }
}

/// When the data was last updated, in RFC 3339.
pub(super) fn timestamp(facts: &Facts<'_>) -> Option<String> {
    let time = Timestamp::from_millisecond(facts.timestamp?.millis()).ok()?;
    Some(time.to_string())
}
