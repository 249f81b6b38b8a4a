//! Tables as logs of immutable files: which files a table has, and the manifest that names them.
//!
//! The manifest of a table is a small [`root::Root`] and shards of sorted entries. Replacing the root is the commit of a
//! run. The files of a table are a pure function of its sources and its config: [`cuts`] decides where segments and
//! files end, [`regroup`] which of them a change affects.
//!
//! Must not: read a CSV or the store.

pub mod cuts;
pub mod diff;
pub mod entries;
pub mod history;
pub mod merge;
pub mod regroup;
pub mod root;
pub mod shards;
