//! The client of an Iceberg REST catalog, as the Iceberg project's OpenAPI document describes it.
//!
//! Invariant: every response is bounded in size and time. Redirects are not followed, since requests carry credentials.
//!
//! Must not: decide what a table's metadata is; that is `domain::iceberg`.

mod access;
mod rest;

pub use rest::RestCatalog;
