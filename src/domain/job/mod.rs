//! A job: one run of a pipeline that somebody asked for.
//!
//! [`message`] is the asking, as it travels on the stream; [`record`] is what is known of the job, from `queued` to its
//! end; [`retry`] decides what follows a failure; [`window`] when a batch of new files becomes a job; [`run`] is what the
//! run itself says.

pub mod message;
pub mod record;
pub mod retry;
pub mod run;
pub mod window;

pub use message::{Arrival, JobId, JobMessage};
pub use record::{Job, JobStatus, Waiting};
pub use retry::{AttemptCost, Next};
pub use run::*;
