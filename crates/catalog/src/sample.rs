//! The catalog that is part of the program.

use crate::{Catalog, Rates, file};

const BYTES: &[u8] = include_bytes!("../data/sample.scc");

/// The built-in sample: real prices and scores of all eight vendors, a hundred or so offerings, no file needed.
///
/// It is a snapshot file (see [`crate::file`]), whose first line says from where it is, under which licences, and at
/// which rates prices in EUR and CNY are read; these are round figures fixed for the sample, and what `rates` says goes
/// before them.
#[must_use]
pub fn sample(rates: &Rates) -> Catalog {
    file::decode(BYTES, "built-in sample", rates)
        .expect("the sample is part of the program and a test reads it")
}

#[cfg(test)]
mod tests;
