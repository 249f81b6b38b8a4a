//! A job: one run of a pipeline.
//!
//! [`message`] is its stream entry; [`record`] its state; [`retry`] the retry policy; [`window`] the debounce window of new
//! files; [`run`] progress, result and error of the run.

pub mod message;
pub mod record;
pub mod retry;
pub mod run;
pub mod window;

pub use message::{JobId, JobMessage, ParsedEntry};
pub use record::{Job, JobStatus, WaitReason};
pub use retry::{AttemptCost, RetryDecision};
pub use run::*;
