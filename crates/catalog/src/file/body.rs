//! What stands after the first line, unpacked: texts once, types row by row, offers column by column.
//!
//! Everything refers to texts, places and types by number. Offers stand by type, place and capacity type, so that a
//! column's neighbours are alike and pack well. Whoever changes a struct here raises the version in the header.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub(super) texts: Vec<&'a str>,
    /// Sets of CPU flags, as texts.
    pub(super) flags: Vec<Vec<u32>>,
    pub(super) types: Vec<TypeRow>,
    pub(super) places: Vec<PlaceRow>,
    pub(super) offers: Columns,
    pub(super) measured: Vec<MeasuredRow>,
}

/// An [`InstanceType`](scarpenter_core::offering::InstanceType); texts and flag sets by number.
#[derive(Serialize, Deserialize)]
pub(super) struct TypeRow {
    pub(super) vendor: u32,
    pub(super) name: u32,
    pub(super) arm64: bool,
    pub(super) family: u32,
    pub(super) cpu: u32,
    pub(super) memory_mib: u64,
    pub(super) storage_gb: u64,
    pub(super) gpu_count: u32,
    pub(super) gpu_manufacturer: u32,
    pub(super) gpu_model: u32,
    pub(super) cpu_manufacturer: u32,
    pub(super) cpu_allocation: u32,
    pub(super) benchmarks: Vec<(u32, u64)>,
    pub(super) hardware: HardwareRow,
}

/// A [`Hardware`](scarpenter_core::offering::Hardware); texts and flag sets by number.
#[derive(Serialize, Deserialize)]
pub(super) struct HardwareRow {
    pub(super) cpu_cores: Option<u32>,
    pub(super) cpu_mhz: Option<u32>,
    pub(super) cpu_family: u32,
    pub(super) cpu_model: u32,
    pub(super) cpu_flags: u32,
    pub(super) l1d_kib: Option<u32>,
    pub(super) l1i_kib: Option<u32>,
    pub(super) l2_kib: Option<u32>,
    pub(super) l3_kib: Option<u32>,
    pub(super) l3_total_kib: Option<u32>,
    pub(super) memory_actual_mib: Option<u64>,
    pub(super) gpu_ten_thousandths: u32,
    pub(super) gpu_memory_min_mib: Option<u64>,
    pub(super) gpu_memory_total_mib: Option<u64>,
    pub(super) gpu_manufacturer: u32,
    pub(super) gpu_family: u32,
    pub(super) gpu_model: u32,
    pub(super) network_baseline_mbps: Option<u32>,
    pub(super) network_peak_mbps: Option<u32>,
    pub(super) local_storage_gb: u64,
    pub(super) local_storages: u32,
    pub(super) storage_type: u32,
    pub(super) ipv4: u32,
    pub(super) start_millis: Option<u32>,
    pub(super) retiring: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PlaceRow {
    pub(super) vendor: u32,
    pub(super) region: u32,
    pub(super) zone: Option<u32>,
    pub(super) zone_id: Option<u32>,
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Columns {
    pub(super) currencies: Vec<u32>,
    /// Seconds since 1970.
    pub(super) times: Vec<i64>,
    /// How many offers each type has; the other columns have a value for each offer.
    pub(super) of_type: Vec<u32>,
    pub(super) place: Vec<u32>,
    pub(super) spot: Vec<bool>,
    pub(super) native_micro: Vec<u64>,
    pub(super) currency: Vec<u32>,
    /// One more than the number of the time, 0 where it is unknown.
    pub(super) observed: Vec<u32>,
    /// Number of an offer and its monthly cap.
    pub(super) caps: Vec<(u32, u64)>,
}

/// A [`Measurement`](crate::Measurement); id and config are texts by number.
#[derive(Serialize, Deserialize)]
pub(super) struct MeasuredRow {
    pub(super) id: u32,
    pub(super) config: u32,
    pub(super) types: Vec<u32>,
    /// One more than the score in ten-thousandths; 0 for one that is not a whole number of them.
    pub(super) scores: Vec<u64>,
    /// The scores for which 0 stands, in order.
    pub(super) exact: Vec<f64>,
}
