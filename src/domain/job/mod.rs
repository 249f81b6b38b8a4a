//! A job: one run of a pipeline.
//!
//! [`message`] is its stream entry; [`order`] the order of claims; [`record`] its state; [`position`] the order of ended
//! jobs; [`retry`] the retry policy; [`window`] the debounce window of new files, [`changed_keys`] the keys from its events; [`run`] progress, result and error of the run.

pub mod changed_keys;
pub mod message;
pub mod order;
pub mod position;
pub mod record;
pub mod retry;
pub mod run;
pub mod window;

pub use changed_keys::ChangedKeys;
pub use message::{JobId, JobMessage, ParsedEntry};
pub use order::ClaimOrder;
pub use position::{JobPosition, PositionError};
pub use record::{Job, JobStatus, WaitReason};
pub use retry::{AttemptCost, RetryDecision};
pub use run::*;
