//! Plays any vendor: machines are hollow nodes, faults are set by file.
