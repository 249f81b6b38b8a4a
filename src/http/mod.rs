//! HTTP for the services: an accept guard, a table of routes, requests, responses and errors.
//!
//! A connection is held by `front` until a head is complete, then served by a thread of its own: the head is
//! parsed and checked, the route found, the caller let in, the body read within the route's limit, and the request
//! handed, by way of tiny_http on a private socket, to a handler.
//!
//! Invariant: no client can hold more than the figures of [`limits`] say.
//! Must not: know the services; they bring their routes, their state, and who may do what.

mod address;
mod body;
mod chunked;
pub mod credentials;
mod descriptors;
mod error;
mod front;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod head;
mod headers;
mod hosts;
mod inner;
mod lanes;
pub mod limits;
mod method;
mod metrics;
pub mod multipart;
mod pass;
mod pattern;
mod pool;
mod query;
mod relay;
mod reply;
mod request;
mod request_id;
mod response;
mod router;
mod scan;
mod server;
mod shared;
mod wire;

pub use address::client_address;
pub use body::{BodyError, ClientBody};
pub use error::{ApiError, ErrorCode};
pub use head::{Framing, Head, PEER_HEADER};
pub use headers::Headers;
pub use hosts::{AllowedHosts, HostName};
pub use limits::GuardLimits;
pub use method::Method;
pub use metrics::{ConnectionCounts, HttpMetrics};
pub use query::Query;
pub use request::{Params, Request, body_failure, json_object};
pub use request_id::RequestId;
pub use response::{Body, Response, STANDARD_HEADERS};
pub use router::{BodyRule, Caller, ContentType, Handler, Lane, Route, Router, Service};
pub use server::{Server, ServerOptions, StartError};
