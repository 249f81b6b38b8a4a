//! Objects in an S3-compatible store.
//!
//! Invariant: no write of a run starts on the store's side after the run's lease has expired; every such request is
//! signed to expire earlier (see `expiry`), in the query or, as a setting, in headers. A body over a threshold is uploaded
//! in parts, so that the request that takes effect is a small one at the end, which carries the precondition and the expiry.
//! Must not: read the environment, send a request to an address from a response (see `redirect`), or send a request without
//! a timeout for each of its phases.
//!
//! A `request` is signed by `sign` and sent by `client`; `response`, `failure` and `error` interpret the result. Stores
//! differ in which preconditions they enforce: `probe` tests each bucket once, `preconditions` emulates the rest.

mod bucket;
mod checksum;
mod client;
mod conditions;
mod copy;
mod delete;
mod error;
mod expiry;
mod failure;
mod key;
mod list;
mod mount;
mod multipart;
mod notification;
mod object_store;
mod options;
mod preconditions;
mod probe;
mod read;
mod redirect;
mod request;
mod resolve;
mod response;
mod sign;
mod store;
mod store_clock;
mod write;
mod xml;

pub use conditions::Conditions;
pub use mount::S3Mount;
pub use notification::{ConfigurationElement, NotificationConfiguration, NotificationError, Rule, RuleKind};
pub use options::{S3OpenError, S3Options, Timeouts};
pub use store::S3Store;
