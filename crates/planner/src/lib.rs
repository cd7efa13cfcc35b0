//! Pods, pools and a catalog snapshot in; a plan with its reasons out.
