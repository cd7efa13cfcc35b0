//! The life of a claim: facts and observation in, the next step out.
