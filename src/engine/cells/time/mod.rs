//! Dates, times of day and timestamps: ISO 8601, or the declared formats.
//!
//! - [`iso`]: the form without declared formats; [`serial`]: epoch times and Excel's
//!   dates; [`format`]: a strftime pattern, through [`layout`] if its fields have
//!   fixed positions and through `chrono` otherwise; [`zone`]: local times; [`calendar`]: arithmetic.
//!
//! Invariant: a value has one meaning: two formats that read a cell differently refuse it. No part of a cell is dropped. A date has no time of day but midnight, a `timestamp` takes no offset, and
//! nothing is finer than a microsecond.

mod calendar;
mod format;
mod iso;
mod layout;
mod moment;
mod parsers;
mod serial;
mod zone;

#[cfg(any(test, feature = "fuzzing"))]
pub use format::check_format;
#[cfg(test)]
pub(super) use format::check_layout;
pub(super) use parsers::{DateParser, TimeFormats, TimeParser, TimestampParser, TimestampTzParser};
