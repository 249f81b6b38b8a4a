//! Keeps a write to a pipeline's own objects apart from whoever makes, moves or deletes the pipeline.
//!
//! Who does that holds the pipeline's run lock. A write beside it could be lost (made under the old name after that was
//! copied) or leave half a pipeline behind. So a write takes the lock for its moment where it is free. Where a run holds
//! it, the write needs none: while the run lasts, nobody can move the pipeline, and a run reads its config once, when it
//! starts. Where neither is so, somebody moves it: the write waits for a while and is then refused. What a request that
//! was cut off left half made or half moved takes no writes at all until that request is repeated.

use std::time::{Duration, Instant};

use super::Web;
use super::failure::{from_kv, from_store};
use super::pipelines::refuse_unfinished;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::ports::jobs::{LockHolder, PipelineLock, ReleaseOutcome};
use crate::ports::store::Bucket;

/// How long the lock lasts if the process dies: longer than one small write takes with its repetitions.
const HOLD_TTL: Duration = Duration::from_secs(30);
/// How long a write waits for who renames or deletes the pipeline, and for other writes.
const WAIT_MAX: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// While it stands, nobody moves the pipeline.
struct Turn<'a> {
    web: &'a Web,
    slug: &'a Slug,
    by: Option<By>,
}

enum By {
    /// We hold the lock.
    Us(PipelineLock),
    /// A run does, under this token.
    Run(String),
}

impl Web {
    /// Does `write`, one small write of the object `key` of the pipelines bucket. `meanwhile` is asked before
    /// each try to get the turn, so that who has lost already needn't wait.
    ///
    /// # Errors
    /// `pipeline_busy` if the pipeline is being moved or deleted, or was left half made; what `meanwhile` and `write`
    /// say; `kv_unavailable`, `s3_error`.
    pub fn in_turn<T>(
        &self,
        slug: &Slug,
        key: &str,
        meanwhile: impl Fn() -> Result<(), ApiError>,
        write: impl FnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let until = Instant::now() + WAIT_MAX;
        let mut pause = PAUSE_MIN;
        let turn = loop {
            meanwhile()?;
            match Turn::take(self, slug)? {
                Some(turn) => break turn,
                None if Instant::now() >= until => return Err(busy(slug)),
                None => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        };
        refuse_unfinished(self, slug)?;
        let written = write()?;
        // What was written when the turn was over may lie where the pipeline is no more.
        if turn.end()? || stands(self, slug, key)? { Ok(written) } else { Err(busy(slug)) }
    }

    /// [`Web::in_turn`] for what only a pipeline that exists can have.
    ///
    /// # Errors
    /// `pipeline_not_found`, and as [`Web::in_turn`].
    pub fn in_turn_of_existing<T>(
        &self,
        slug: &Slug,
        key: &str,
        write: impl FnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        self.in_turn(slug, key, || Ok(()), || if self.exists(slug)? { write() } else { Err(not_found(slug)) })
    }
}

impl<'a> Turn<'a> {
    /// `None` if somebody holds the lock who is no run.
    fn take(web: &'a Web, slug: &'a Slug) -> Result<Option<Self>, ApiError> {
        let floor = web.store.highest_fence(slug).map_err(from_store)?;
        let by = match web.kv.lock_pipeline(slug, HOLD_TTL, floor).map_err(from_kv)? {
            Some(hold) => Some(By::Us(hold)),
            None => running(web, slug)?.map(By::Run),
        };
        Ok(by.map(|by| Self { web, slug, by: Some(by) }))
    }

    /// Whether it stood until now.
    fn end(mut self) -> Result<bool, ApiError> {
        match self.by.take() {
            Some(By::Us(hold)) => Ok(self.web.kv.release(&hold).map_err(from_kv)? == ReleaseOutcome::Released),
            Some(By::Run(token)) => Ok(running(self.web, self.slug)?.as_ref() == Some(&token)),
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

/// The token of the run that holds the lock. A job may show as running after its lock is over: the lock alone tells.
fn running(web: &Web, slug: &Slug) -> Result<Option<String>, ApiError> {
    match web.kv.lock_holder(slug).map_err(from_kv)? {
        Some(LockHolder::Run { token }) => Ok(Some(token)),
        Some(LockHolder::Other) | None => Ok(None),
    }
}

/// Whether the object is there although the turn in which it was written was lost on the way.
fn stands(web: &Web, slug: &Slug, key: &str) -> Result<bool, ApiError> {
    match Turn::take(web, slug)? {
        Some(_turn) => Ok(web.store.head(Bucket::Pipelines, key).map_err(from_store)?.is_some()),
        None => Ok(false),
    }
}

fn busy(slug: &Slug) -> ApiError {
    let message = format!("the pipeline `{slug}` is being moved or deleted: look again in a moment");
    ApiError::new(ErrorCode::PipelineBusy, message)
}

fn not_found(slug: &Slug) -> ApiError {
    ApiError::new(ErrorCode::PipelineNotFound, format!("there is no pipeline `{slug}`"))
}
