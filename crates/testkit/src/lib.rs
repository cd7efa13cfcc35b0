//! Fake cloud, crash simulator and builders for tests.
