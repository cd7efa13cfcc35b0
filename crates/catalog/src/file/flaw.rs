/// What is wrong with a snapshot file, and what to do; reads on after its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Something else, or ours with its first bytes spoiled.
    #[error(
        "is no snapshot file of scarpenter's: fetch it again, or make one by `scarpenter catalog snapshot`"
    )]
    NotOurs,
    /// Written by another version of the program.
    #[error(
        "is of version {version} of its format and this program reads version {known}: make it anew by this program's \
         `scarpenter catalog snapshot`, or read it with the program that made it"
    )]
    OtherVersion {
        /// The file's.
        version: u64,
        /// Ours.
        known: u64,
    },
    /// Ours, with a first line that cannot be read.
    #[error("has a damaged first line: fetch it again")]
    Header,
    /// Shorter than its first line says.
    #[error("is cut off after {bytes} of {expected} bytes: fetch it again")]
    CutOff {
        /// How long it is.
        bytes: u64,
        /// How long it should be.
        expected: u64,
    },
    /// Longer than its first line says.
    #[error("has {bytes} bytes where {expected} are right: fetch it again")]
    TooLong {
        /// How long it is.
        bytes: u64,
        /// How long it should be.
        expected: u64,
    },
    /// A byte is not what it was when the file was written.
    #[error("is damaged, its content has another checksum than it names: fetch it again")]
    Checksum,
    /// Larger than any catalog.
    #[error("claims {bytes} bytes, and no catalog has more than {most}: fetch it again")]
    TooLarge {
        /// How long it is, or says it is.
        bytes: u64,
        /// The most that is read.
        most: u64,
    },
    /// The checksum is right, and yet it is no catalog.
    #[error("is damaged, {0}: fetch it again, or make one by `scarpenter catalog snapshot`")]
    Content(&'static str),
}
