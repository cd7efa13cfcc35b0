//! Watch events in, a view of the cluster out, ready to be planned on.
