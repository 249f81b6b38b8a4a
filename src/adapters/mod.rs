//! Storage backends, one folder each, password hashing, catalogs of Iceberg tables, and notification targets.

pub mod aws;
pub mod counted;
pub mod fs;
pub mod iceberg;
mod network;
pub mod notify;
pub mod password;
pub mod redis;
pub mod s3;
pub mod split;
pub mod sqlite;
