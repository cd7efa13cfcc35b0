//! Observes the cluster, asks core and planner what to do, and does it.
