//! Infers a mapping for CSVs of the lake, with evidence for each part.
//!
//! - [`sniff`]: finds the dialect from the first records; [`survey`]: collects statistics of all columns in one pass;
//!   [`settle`]: decides one dialect and the type of each column; [`misfits`]: finds types of columns with a few other
//!   values; [`confirm`]: reads the file with the proposal by the converter, and revises types that reject rows.
//! - Of several files, [`tables`] groups those of one table, [`formats`] groups those of one format, and [`join`] merges
//!   their proposals.
//!
//! Invariant: if the whole file was read and confirmed, a run with the proposal rejects only the rows counted by
//! `sample.rows_refused` and `sample.rows_misfit`.
//!
//! Must not: guess silently; what the file doesn't decide is a warning.

mod adjust;
mod amounts;
mod column_stats;
mod confirm;
mod copies;
mod counterexample;
pub mod formats;
pub mod join;
mod misfits;
mod naming;
mod notes;
mod numbers;
pub mod proposal;
mod propose;
mod roles;
mod serials;
mod settle;
mod sniff;
mod suggest;
mod survey;
pub mod tables;
mod times;
mod totals;
mod typed;
mod words;

pub use proposal::Proposal;
pub use propose::{InferError, InferOptions, infer, propose};
