//! Who keeps the objects: one folder a backend.

pub mod counted;
pub mod fs;
pub mod password;
pub mod redis;
pub mod s3;
pub mod sqlite;
