//! Metrics in Prometheus' text format, and health checks of dependencies.
//!
//! Must not: know what a service measures or depends on.

pub mod health_check;
mod metrics;
mod process;

pub use health_check::CachedHealthCheck;
pub use metrics::{Histogram, METRICS_CONTENT_TYPE, MetricKind, MetricsText};
pub use process::write_process;
