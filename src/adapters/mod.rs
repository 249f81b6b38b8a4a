//! Who keeps the objects: one folder a backend.

pub mod clock;
pub mod fs;
pub mod redis;
pub mod sqlite;
