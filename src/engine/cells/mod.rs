//! Parses cells of text to typed values, strictly: only the declared formats and null tokens, no rounding, no lossy
//! cast.
//!
//! Invariant: a value in an array means exactly what its cell says under the declared type, or the cell is a null
//! token; every other cell leaves a null and a [`CellFault`].
//!
//! Must not: decide the outcome of a faulty row (`on_error` is the caller's).

#[cfg(target_arch = "x86_64")]
mod avx2;
mod boolean;
mod column_builder;
mod decimal;
mod fault;
mod float;
mod formatted;
mod integer;
#[cfg(target_arch = "aarch64")]
mod neon;
mod number;
mod probe;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod simd;
mod text;
mod time;
mod typed;
mod utf8;
mod uuid;
mod word;

#[cfg(test)]
mod tests;

pub use column_builder::ColumnBuilder;
#[cfg(any(test, feature = "fuzzing"))]
pub use decimal::decimal_by_digits;
pub use fault::{CellFault, FaultKind};
pub use probe::{CellProbe, NumberShape, number_shape};
pub use text::cell_text;
#[cfg(any(test, feature = "fuzzing"))]
pub use time::check_format;
pub use utf8::gather_texts;
