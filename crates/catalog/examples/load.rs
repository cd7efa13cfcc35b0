//! Loads a catalog some times over and prints the report, the seconds each load took and the memory it took.
//!
//! `cargo run --release -p scarpenter-catalog --example load -- [PATH [SNAPSHOT]] [CURRENCY=USD]...`; without a path, the
//! sample. With a second path, what was loaded is written there as a snapshot file.
//! Memory is read from `/proc/self/status`, and is left out where there is none.

use std::path::{Path, PathBuf};
use std::time::Instant;

use scarpenter_catalog::{Catalog, Error, Rate, Rates, file, open, sample};

const LOADS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (rates, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|text| text.contains('='));
    let rates: Rates = rates.iter().map(|text| text.parse::<Rate>()).collect::<Result<_, _>>()?;
    let path = paths.first().map(PathBuf::from);
    let load = || -> Result<Catalog, Error> {
        match &path {
            Some(path) => open(path, &rates),
            None => Ok(sample(&rates)),
        }
    };
    let before = memory("VmRSS");
    for number in 1..=LOADS {
        let start = Instant::now();
        let catalog = load()?;
        let seconds = start.elapsed().as_secs_f64();
        if number == 1 {
            println!("{}", catalog.report);
        }
        println!(
            "load {number}: {seconds:.3} s, RSS {} (before {}, peak {})",
            memory("VmRSS"),
            before,
            memory("VmHWM")
        );
    }
    if let Some(snapshot) = paths.get(1) {
        file::write(Path::new(snapshot), &load()?)?;
        println!("wrote {snapshot}: {} bytes", std::fs::metadata(snapshot)?.len());
    }
    Ok(())
}

fn memory(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{:.1} MiB", kib / 1024.0))
}
