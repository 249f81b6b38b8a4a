//! Who keeps the objects: one folder a backend.

pub mod clock;
pub mod fs;
pub mod sqlite;
pub mod s3;
pub mod password;
