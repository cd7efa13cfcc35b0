//! The hollow node: does what a Flatcar machine would do with its document, without the machine.
