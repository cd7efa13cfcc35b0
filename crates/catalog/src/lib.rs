//! Reads offerings from a Spare Cores catalog and builds core's snapshot.
