//! Reads the environment once into typed structs, one per concern, whose docs name each variable with default and unit.
//!
//! Invariant: a config struct exists only if all its variables are present and well-formed; otherwise one
//! [`EnvironmentError`] lists all faults. Only this module and `bin` read the real environment.

mod aws;
mod catalog;
mod env;
mod error;
mod events;
mod kv;
mod logging;
mod network;
mod notify;
mod object_store;
mod operator;
mod secret;
mod sentinel;
mod server;
mod values;
mod web;
mod worker;

pub use aws::{AwsVariables, ContainerEndpoint, ContainerToken, WebIdentity};
pub use catalog::{CatalogAccess, CatalogConfig, OAUTH_SCOPE_DEFAULT};
pub use env::{Environment, WithWarnings};
pub use error::{EXIT_STATUS, EnvironmentError, Fault};
pub use events::{EventQueueConfig, EventsConfig};
pub use kv::{ClientCertificate, KvConfig, RedisConfig};
pub use logging::{LogConfig, LogFormat, LogLevel};
pub use network::{DirectHost, NetworkConfig, shown_proxy};
pub use notify::{MailRoute, MailTls, NotifyConfig, NotifyRoute, NotifyTarget};
pub use object_store::{
    Addressing, Buckets, Checksum, Encryption, ObjectStoreConfig, RequestStyle, SignaturePlace, StoreCredentials,
    StoreEndpoint,
};
pub use operator::{OperatorConfig, RunConfig};
pub use secret::Secret;
pub use sentinel::{SENTINEL_URL_FORM, SentinelUrl};
pub use server::{AddressRange, ListenConfig, ServerConfig};
pub use values::bucket as bucket_name;
pub use web::{SessionConfig, WebConfig};
pub use worker::{LeaseConfig, RECLAIM_IDLE_MS_DEFAULT, WorkerConfig};
