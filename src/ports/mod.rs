//! Traits of external services, with their contracts and errors. No implementations.

pub mod arrow_types;
pub mod event_queue;
pub mod event_topics;
pub mod expressions;
pub mod iceberg_catalog;
pub mod job_index;
pub mod jobs;
pub mod kv;
pub mod kv_error;
pub mod notification_target;
pub mod notifications;
pub mod observer;
pub mod pauses;
pub mod queries;
pub mod rechecks;
pub mod run_requests;
pub mod schedule;
pub mod sessions;
pub mod store;

pub use event_queue::EventQueue;
pub use event_topics::EventTopics;
pub use expressions::Expressions;
pub use iceberg_catalog::IcebergCatalog;
pub use kv::Kv;
pub use notification_target::NotificationTarget;
pub use observer::RunObserver;
pub use store::ObjectStore;
