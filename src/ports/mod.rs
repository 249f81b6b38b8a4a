//! What the rest of the program needs from outside: traits with their contracts, and their errors. No implementation.

pub mod arrow_types;
pub mod expressions;
pub mod jobs;
pub mod kv;
pub mod lake_changes;
pub mod observer;
pub mod queries;
pub mod rechecks;
pub mod schedule;
pub mod sessions;
pub mod store;

pub use expressions::Expressions;
pub use kv::Kv;
pub use observer::RunObserver;
pub use store::ObjectStore;
