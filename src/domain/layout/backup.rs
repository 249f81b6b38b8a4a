//! Keys of a backup place, which is stored as a pipeline.

use super::pipeline_prefix;
use crate::domain::name::Slug;

/// The prefix of the roots of all backups.
pub fn backups_prefix(place: &Slug) -> String {
    format!("{}backups/", pipeline_prefix(place))
}

/// The root of a backup's index.
pub fn backup_root_key(place: &Slug, id: &str) -> String {
    format!("{}{id}.json", backups_prefix(place))
}

/// The prefix of the shards of all indexes.
pub fn backup_shards_prefix(place: &Slug) -> String {
    format!("{}index/", pipeline_prefix(place))
}

/// A shard of an index.
pub fn backup_shard_key(place: &Slug, name: &str) -> String {
    format!("{}{name}.json.zst", backup_shards_prefix(place))
}

/// The prefix of the data of all backups.
pub fn backup_data_prefix(place: &Slug) -> String {
    format!("{}data/", pipeline_prefix(place))
}

/// A part of an object's data, counted from 0.
pub fn backup_part_key(place: &Slug, data: &str, part: u64) -> String {
    format!("{}{}/{data}-{part:06}", backup_data_prefix(place), data.get(..2).unwrap_or_default())
}
