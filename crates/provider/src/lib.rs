//! The provider contract: generated types, client, server scaffold and conformance suite.
