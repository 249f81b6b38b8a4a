//! Proposes a mapping for a CSV of the lake, with the evidence for each part of it.
//!
//! - [`sniff`]: by the first records, how the file is cut; [`survey`]: in one pass over all that is read, what each
//!   column's cells are like; [`settle`]: one dialect and a type a column; [`nearly`]: the same for columns that are of a
//!   type but for a few cells; then the converter itself reads the file by the proposal, and what it refuses is taken back.
//!
//! Invariant: where the whole file was read and confirmed, a run with the proposal rejects no row but those that
//! `sample.rows_refused` and `sample.rows_misfit` count. Must not: guess silently; what the file doesn't decide is told as a warning.

mod column_stats;
mod confirm;
mod counterexample;
mod misfits;
mod naming;
mod numbers;
pub mod proposal;
mod propose;
mod settle;
mod sniff;
mod suggest;
mod survey;
mod times;
mod words;

pub use proposal::Proposal;
pub use propose::{InferError, InferOptions, infer, propose};
