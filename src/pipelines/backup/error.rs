//! Why a backup can't be made or used.

use crate::domain::backup::BackupIndexError;
use crate::domain::layout::PIPELINES_PREFIX;
use crate::domain::table_log::shards::ShardError;
use crate::pipelines::tables::TableError;
use crate::ports::store::StoreError;

/// Why a backup can't be made or used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Of the store whose pipelines are backed up or restored.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Table(#[from] TableError),
    /// Of the backup's place. The error without the names that the place has inside a store.
    #[error("the backup: {}", message_of(.0))]
    Place(StoreError),
    #[error("the index of backup `{id}`: {error}")]
    Root { id: String, error: BackupIndexError },
    #[error("the index of the backup: {0}")]
    Shard(#[from] ShardError),
    /// The data of an object is not what the index says.
    #[error("`{key}`: {found}")]
    Damaged { key: String, found: String },
    /// An object of a table is not what its manifest says.
    #[error("`{key}`: {found}")]
    DamagedSource { key: String, found: String },
    #[error("stopped by a signal")]
    Interrupted,
    #[error("{0}")]
    Refused(String),
    #[error("temporary file: {0}")]
    Scratch(std::io::Error),
}

pub type BackupResult<T> = Result<T, BackupError>;

impl BackupError {
    pub fn of_place(error: StoreError) -> Self {
        Self::Place(error)
    }

    /// Whether a table must be read again from its present root, or is damaged if that is the same.
    pub(super) fn is_of_table(&self) -> bool {
        match self {
            Self::Store(error) => matches!(error, StoreError::NotFound { .. }),
            Self::Table(error) => error.is_broken() || matches!(error, TableError::Manifest { .. }),
            Self::DamagedSource { .. } => true,
            Self::Place(_)
            | Self::Root { .. }
            | Self::Shard(_)
            | Self::Damaged { .. }
            | Self::Interrupted
            | Self::Refused(_)
            | Self::Scratch(_) => false,
        }
    }
}

fn message_of(error: &StoreError) -> String {
    match error {
        StoreError::BucketNotFound { name, .. } => format!("`{name}` does not exist"),
        error => {
            let text = error.to_string();
            let text = text.strip_prefix("pipelines bucket: ").unwrap_or(&text);
            text.replace(&format!("`{}", PIPELINES_PREFIX), "`").replace("`local/", "`")
        }
    }
}
