//! The one place that asks what time it is.

use jiff::Timestamp;
use scarpenter_core::lifecycle::Time;

/// Now, to the millisecond.
pub(crate) fn now() -> Time {
    Time::from_millis(Timestamp::now().as_millisecond())
}

/// A time as RFC 3339 with milliseconds.
pub(crate) fn rfc3339(time: Time) -> String {
    timestamp(time).to_string()
}

/// A time as Kubernetes' own type holds it.
pub(crate) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_millisecond(time.millis()).unwrap_or(Timestamp::UNIX_EPOCH)
}
