//! Backups of pipelines in another place: making them ([`make`]), reading them back ([`check`]), and restoring them
//! ([`restore_pipeline`]).
//!
//! A place has the data of objects under names that determine their bytes, and the index of each backup. The root of an
//! index is written last, and never changes. Then what no index names is deleted.
//!
//! Invariant: a backup has every object that the root of a table in it names. An interrupted backup leaves earlier ones as
//! they were.
//! Must not: write to the store that a backup is made of, or trust names and numbers in an index.

mod check;
mod error;
mod former;
mod known;
mod make;
mod objects;
mod place;
mod restore;
mod source_tags;
mod sweep;
mod table;
mod transfer;

pub use check::check;
pub use error::{BackupError, BackupResult};
pub use make::{BackupOutcome, BackupRequest, make};
pub use place::BackupPlace;
pub use restore::{
    RestoreRequest, RestoredPipeline, pipelines_in, restore_config, restore_pipeline, restore_workspace,
};
pub use transfer::{TransferCounts, TransferWatch};
