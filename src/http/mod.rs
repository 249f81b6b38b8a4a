//! HTTP server of the services.
//!
//! Path of a request, in the order of the modules:
//!
//! ```text
//! acceptor       one thread: accepts, holds connections until a head is complete     shared: who is served
//!    │ serve_connection, on a thread of thread_pool                                     ▲ evict, cut
//! serve          head: parse · router: find the route, authorize · body: read it       │
//!    │ handler_slots: wait for a permit ───────────────────────────────────────────────┘
//! handler        a function of the service: Request -> Response, on the same thread
//!    │
//! respond        tiny_http formats the head and chunks the body; the client's pace is limited
//!    └─> the next request that is buffered, or back to the acceptor
//! ```
//!
//! tiny_http's own server is not used: it has no limits, and one failed `accept` ends it.
//!
//! Invariant: no client can use more than [`limits`] allow. Must not: know the services; they supply their routes,
//! state and authorization.

mod acceptor;
mod address;
mod body;
mod buffered;
mod chunked;
mod connection;
pub mod credentials;
mod descriptors;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod handler_slots;
mod head;
mod headers;
mod hosts;
pub mod limits;
mod method;
mod metrics;
pub mod multipart;
mod pattern;
mod query;
mod refusal;
mod request;
mod request_id;
mod respond;
mod response;
mod router;
mod scan;
mod serve;
mod server;
mod shared;
mod thread_pool;

pub use address::client_address;
pub use body::{BodyError, ClientBody};
pub use error::{ApiError, ErrorCode};
pub use head::{Framing, PEER_HEADER, RequestHead};
pub use headers::Headers;
pub use hosts::{AllowedHosts, HostName};
pub use limits::GuardLimits;
pub use method::Method;
pub use metrics::{ConnectionCounts, HttpMetrics};
pub use query::QueryString;
pub use request::{PathParams, Request, body_failure, json_object};
pub use request_id::RequestId;
pub use response::{Body, Response, STANDARD_HEADERS};
pub use router::{BodyRule, Caller, CompletedRequest, ContentType, Handler, Priority, Route, Router, Service};
pub use server::{Server, ServerOptions, StartError};
