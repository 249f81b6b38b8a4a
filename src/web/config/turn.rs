//! Keeps a save apart from whoever moves or deletes the pipeline.
//!
//! Who renames or deletes holds the pipeline's run lock. A save beside it could be lost (written to the old name after
//! it was copied) or leave half a pipeline behind. So a save takes the lock for its one write where it is free. Where a
//! run holds it, the save needs none: while the run lasts, nobody can move the pipeline, and a run reads its config once,
//! when it starts. Where neither is so, somebody moves it: the save waits for a while and is then refused.

use std::time::Duration;

use crate::domain::job::{JobId, JobStatus};
use crate::domain::limits::ACTIVE_JOBS_SHOWN_MAX;
use crate::domain::name::Slug;
use crate::http::ApiError;
use crate::ports::jobs::{Release, RunHold};
use crate::web::Web;
use crate::web::failure::{from_kv, from_store};

/// How long the lock lasts if the process dies: longer than one small write takes with its repetitions.
const HOLD_TTL: Duration = Duration::from_secs(30);

/// While it stands, nobody moves the pipeline.
pub(super) struct Turn<'a> {
    web: &'a Web,
    slug: &'a Slug,
    by: Option<By>,
}

enum By {
    /// We hold the lock.
    Us(RunHold),
    /// This run does.
    Run(JobId),
}

impl<'a> Turn<'a> {
    /// `None` if somebody holds the lock who is no run.
    ///
    /// # Errors
    /// `kv_unavailable`, `s3_error`.
    pub(super) fn take(web: &'a Web, slug: &'a Slug) -> Result<Option<Self>, ApiError> {
        let floor = web.store.highest_fence(slug).map_err(from_store)?;
        let by = match web.kv.hold(slug, HOLD_TTL, floor).map_err(from_kv)? {
            Some(hold) => Some(By::Us(hold)),
            None => running(web, slug)?.map(By::Run),
        };
        Ok(by.map(|by| Self { web, slug, by: Some(by) }))
    }

    /// Whether it stood until now.
    ///
    /// # Errors
    /// `kv_unavailable`.
    pub(super) fn end(mut self) -> Result<bool, ApiError> {
        match self.by.take() {
            Some(By::Us(hold)) => Ok(self.web.kv.release(&hold).map_err(from_kv)? == Release::Done),
            Some(By::Run(job)) => Ok(running(self.web, self.slug)?.as_ref() == Some(&job)),
            None => Ok(false),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(By::Us(hold)) = &self.by
            && let Err(error) = self.web.kv.release(hold)
        {
            // It runs out by itself.
            tracing::debug!(%error, pipeline = %hold.pipeline, "a lock could not be given back");
        }
    }
}

fn running(web: &Web, slug: &Slug) -> Result<Option<JobId>, ApiError> {
    let active = web.kv.active(slug, ACTIVE_JOBS_SHOWN_MAX).map_err(from_kv)?;
    Ok(active.into_iter().find(|job| job.status == JobStatus::Running).map(|job| job.job_id))
}
