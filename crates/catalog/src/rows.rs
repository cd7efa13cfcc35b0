//! The catalog's rows as they are stored, whatever stores them: ids, raw numbers, nothing judged yet.

/// A table and those of its columns that are read, in the order in which they are read.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
}

/// The cells of one row, in the order of [`Table::columns`].
pub(crate) trait Cells {
    /// Text, empty for null and for what is not text.
    fn text(&self, column: usize) -> &str;
    /// A number, `None` for null and for what is no number.
    fn number(&self, column: usize) -> Option<f64>;
}

/// A region of a vendor.
pub(crate) struct RegionRow<'a> {
    pub(crate) vendor: &'a str,
    pub(crate) id: &'a str,
    pub(crate) api_reference: &'a str,
    /// JSON list of further names.
    pub(crate) aliases: &'a str,
    pub(crate) active: bool,
}

impl<'a> RegionRow<'a> {
    pub(crate) const TABLE: Table =
        Table { name: "region", columns: &["vendor_id", "region_id", "api_reference", "aliases", "status"] };

    pub(crate) fn read(cells: &'a impl Cells) -> Self {
        Self {
            vendor: cells.text(0),
            id: cells.text(1),
            api_reference: cells.text(2),
            aliases: cells.text(3),
            active: is_active(cells.text(4)),
        }
    }
}

/// A zone of a region.
pub(crate) struct ZoneRow<'a> {
    pub(crate) vendor: &'a str,
    pub(crate) region_id: &'a str,
    pub(crate) id: &'a str,
    pub(crate) api_reference: &'a str,
    pub(crate) active: bool,
}

impl<'a> ZoneRow<'a> {
    pub(crate) const TABLE: Table =
        Table { name: "zone", columns: &["vendor_id", "region_id", "zone_id", "api_reference", "status"] };

    pub(crate) fn read(cells: &'a impl Cells) -> Self {
        Self {
            vendor: cells.text(0),
            region_id: cells.text(1),
            id: cells.text(2),
            api_reference: cells.text(3),
            active: is_active(cells.text(4)),
        }
    }
}

/// An instance type.
#[derive(Default)]
pub(crate) struct ServerRow<'a> {
    pub(crate) vendor: &'a str,
    pub(crate) id: &'a str,
    pub(crate) api_reference: &'a str,
    pub(crate) family: &'a str,
    pub(crate) vcpus: Option<f64>,
    pub(crate) cpu_architecture: &'a str,
    pub(crate) cpu_allocation: &'a str,
    pub(crate) cpu_manufacturer: &'a str,
    pub(crate) memory_mib: Option<f64>,
    pub(crate) storage_gb: Option<f64>,
    pub(crate) storage_type: &'a str,
    pub(crate) gpu_count: Option<f64>,
    pub(crate) gpu_manufacturer: &'a str,
    pub(crate) gpu_model: &'a str,
    pub(crate) active: bool,
    /// Still sold, and known to end.
    pub(crate) retiring: bool,
    pub(crate) cpu_cores: Option<f64>,
    pub(crate) cpu_ghz: Option<f64>,
    pub(crate) cpu_family: &'a str,
    pub(crate) cpu_model: &'a str,
    /// JSON list of words.
    pub(crate) cpu_flags: &'a str,
    pub(crate) l1d_kib: Option<f64>,
    pub(crate) l1i_kib: Option<f64>,
    pub(crate) l2_kib: Option<f64>,
    pub(crate) l3_kib: Option<f64>,
    pub(crate) l3_total_kib: Option<f64>,
    pub(crate) memory_actual_mib: Option<f64>,
    pub(crate) gpu_memory_min_mib: Option<f64>,
    pub(crate) gpu_memory_total_mib: Option<f64>,
    pub(crate) gpu_family: &'a str,
    /// JSON list of objects.
    pub(crate) storages: &'a str,
    /// In Gbit/s, of ovh in Mbit/s.
    pub(crate) network_baseline: Option<f64>,
    /// As the baseline.
    pub(crate) network_peak: Option<f64>,
    pub(crate) ipv4: Option<f64>,
    /// In seconds.
    pub(crate) time_to_start: Option<f64>,
}

impl<'a> ServerRow<'a> {
    pub(crate) const TABLE: Table = Table {
        name: "server",
        columns: &[
            "vendor_id",
            "server_id",
            "api_reference",
            "family",
            "vcpus",
            "cpu_architecture",
            "cpu_allocation",
            "cpu_manufacturer",
            "memory_amount",
            "storage_size",
            "storage_type",
            "gpu_count",
            "gpu_manufacturer",
            "gpu_model",
            "status",
            "cpu_cores",
            "cpu_speed",
            "cpu_family",
            "cpu_model",
            "cpu_flags",
            "cpu_l1d_cache",
            "cpu_l1i_cache",
            "cpu_l2_cache",
            "cpu_l3_cache",
            "cpu_l3_cache_total",
            "memory_amount_actual",
            "gpu_memory_min",
            "gpu_memory_total",
            "gpu_family",
            "storages",
            "network_speed_baseline",
            "network_speed_max",
            "ipv4",
            "average_time_to_start",
        ],
    };

    pub(crate) fn read(cells: &'a impl Cells) -> Self {
        Self {
            vendor: cells.text(0),
            id: cells.text(1),
            api_reference: cells.text(2),
            family: cells.text(3),
            vcpus: cells.number(4),
            cpu_architecture: cells.text(5),
            cpu_allocation: cells.text(6),
            cpu_manufacturer: cells.text(7),
            memory_mib: cells.number(8),
            storage_gb: cells.number(9),
            storage_type: cells.text(10),
            gpu_count: cells.number(11),
            gpu_manufacturer: cells.text(12),
            gpu_model: cells.text(13),
            active: is_active(cells.text(14)),
            retiring: is_retiring(cells.text(14)),
            cpu_cores: cells.number(15),
            cpu_ghz: cells.number(16),
            cpu_family: cells.text(17),
            cpu_model: cells.text(18),
            cpu_flags: cells.text(19),
            l1d_kib: cells.number(20),
            l1i_kib: cells.number(21),
            l2_kib: cells.number(22),
            l3_kib: cells.number(23),
            l3_total_kib: cells.number(24),
            memory_actual_mib: cells.number(25),
            gpu_memory_min_mib: cells.number(26),
            gpu_memory_total_mib: cells.number(27),
            gpu_family: cells.text(28),
            storages: cells.text(29),
            network_baseline: cells.number(30),
            network_peak: cells.number(31),
            ipv4: cells.number(32),
            time_to_start: cells.number(33),
        }
    }
}

/// A measurement of an instance type.
pub(crate) struct ScoreRow<'a> {
    pub(crate) vendor: &'a str,
    pub(crate) server_id: &'a str,
    pub(crate) benchmark_id: &'a str,
    /// JSON object.
    pub(crate) config: &'a str,
    pub(crate) score: Option<f64>,
    pub(crate) active: bool,
}

impl<'a> ScoreRow<'a> {
    pub(crate) const TABLE: Table = Table {
        name: "benchmark_score",
        columns: &["vendor_id", "server_id", "benchmark_id", "config", "score", "status"],
    };

    pub(crate) fn read(cells: &'a impl Cells) -> Self {
        Self {
            vendor: cells.text(0),
            server_id: cells.text(1),
            benchmark_id: cells.text(2),
            config: cells.text(3),
            score: cells.number(4),
            active: is_active(cells.text(5)),
        }
    }
}

/// A price of an instance type in a zone.
pub(crate) struct PriceRow<'a> {
    pub(crate) vendor: &'a str,
    pub(crate) region_id: &'a str,
    pub(crate) zone_id: &'a str,
    pub(crate) server_id: &'a str,
    pub(crate) operating_system: &'a str,
    pub(crate) allocation: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) price: Option<f64>,
    pub(crate) currency: &'a str,
    pub(crate) active: bool,
    /// UTC, without saying so.
    pub(crate) observed_at: &'a str,
    /// JSON list of objects.
    pub(crate) price_tiered: &'a str,
}

impl<'a> PriceRow<'a> {
    pub(crate) const TABLE: Table = Table {
        name: "server_price",
        columns: &[
            "vendor_id",
            "region_id",
            "zone_id",
            "server_id",
            "operating_system",
            "allocation",
            "unit",
            "price",
            "currency",
            "status",
            "observed_at",
            "price_tiered",
        ],
    };

    pub(crate) fn read(cells: &'a impl Cells) -> Self {
        Self {
            vendor: cells.text(0),
            region_id: cells.text(1),
            zone_id: cells.text(2),
            server_id: cells.text(3),
            operating_system: cells.text(4),
            allocation: cells.text(5),
            unit: cells.text(6),
            price: cells.number(7),
            currency: cells.text(8),
            active: is_active(cells.text(9)),
            observed_at: cells.text(10),
            price_tiered: cells.text(11),
        }
    }
}

/// The database writes `ACTIVE`, the Keeper `active`. What is planned for retirement is sold until then.
pub(crate) fn is_active(status: &str) -> bool {
    status.eq_ignore_ascii_case("active") || is_retiring(status)
}

pub(crate) fn is_retiring(status: &str) -> bool {
    status.eq_ignore_ascii_case("planned_for_retirement")
}
