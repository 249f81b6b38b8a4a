//! Storage backends, one folder each, and password hashing.

pub mod counted;
pub mod fs;
pub mod password;
pub mod redis;
pub mod s3;
pub mod sqlite;
