//! Metrics in Prometheus' text format, and health checks of dependencies.
//!
//! Must not: know what a service measures or depends on.

pub mod health_check;
mod histogram;
mod process;
mod text;

pub use health_check::CachedHealthCheck;
pub use histogram::Histogram;
pub use process::write_process;
pub use text::{METRICS_CONTENT_TYPE, MetricKind, MetricsText};
