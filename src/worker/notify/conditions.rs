//! Conditions that don't come with the end of a job: silent sources, runs without progress, jobs that can't run, full disks.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::jobs::{events, stuck_key};
use super::{Condition, SILENCE_PAUSES, STATE_PAUSES, end, link, raise};
use crate::domain::job::{Job, Progress};
use crate::domain::name::Slug;
use crate::domain::notification::{Notification, NotificationEvent};
use crate::domain::pipeline::{NotifyEvent, Pipeline};
use crate::domain::text::clipped;
use crate::pipelines;
use crate::pipelines::tables::TableStore;
use crate::ports::kv::KvResult;
use crate::ports::store::Bucket;
use crate::runtime::threads::Instant;
use crate::runtime::{WatchedThread, failpoint, rfc3339};
use crate::sync::parallel_map;
use crate::system::disk_space;
use crate::worker::config;
use crate::worker::retry::OutageLog;
use crate::worker::run::Run;
use crate::worker::shared::WorkerShared;
use crate::worker::stopping::Phase;

/// How often conditions are checked.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// Freshness is checked by one worker at a time. The pause is this many times as long as the check was, so that the store
/// serves runs and little else, and at most an hour.
const PAUSE_PER_CHECK: u32 = 50;
const FRESHNESS_INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// Longest time of a step of that check.
const STEP_TIME_MAX: Duration = Duration::from_secs(600);
/// The lock of the worker that checks freshness.
const FRESHNESS: &str = "checking freshness";
/// Pipelines that are read at the same time, and per step.
const READERS_MAX: usize = 8;
const PIPELINES_PER_STEP: usize = 100;
/// Time without progress after which a run counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(30 * 60);
/// Time without any job running after which jobs count as blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(5 * 60);
/// A disk is nearly full if less than this fraction is free, within these bounds, but never if more than half is free.
const FREE_FRACTION: u64 = 20;
const FREE_BYTES_MIN: u64 = 1 << 30;
const FREE_BYTES_MAX: u64 = 50 << 30;

/// Checks until the worker stops.
pub fn run(shared: &WorkerShared, watched: &WatchedThread) {
    let mut outage = OutageLog::new("checking for conditions to notify of");
    let mut freshness: Option<(Instant, Duration)> = None;
    loop {
        let checked = watched.waiting(|| {
            disk(shared)?;
            blocked(shared)?;
            if freshness.is_none_or(|(at, pause)| at.elapsed() >= pause) {
                let began = Instant::now();
                let is_mine = lock(shared, STEP_TIME_MAX)?;
                if is_mine {
                    all_fresh(shared)?;
                    tracing::debug!("freshness checked");
                }
                let pause = (began.elapsed() * PAUSE_PER_CHECK).clamp(check_every(), FRESHNESS_INTERVAL_MAX);
                if is_mine {
                    lock(shared, pause + 4 * CHECK_EVERY)?;
                }
                freshness = Some((Instant::now(), pause));
            }
            Ok::<_, crate::ports::kv::KvError>(())
        });
        match checked {
            Ok(()) => outage.recovered(),
            Err(error) => outage.failed(&error),
        }
        if shared.stopping.wait_for(Phase::Drain, check_every()) {
            // Another worker takes over at once.
            let _ = shared.kv.unlock(FRESHNESS, &shared.options.name);
            return;
        }
    }
}

/// Takes or extends the lock of the worker that checks freshness.
fn lock(shared: &WorkerShared, ttl: Duration) -> KvResult<bool> {
    shared.kv.try_lock(FRESHNESS, &shared.options.name, ttl)
}

fn check_every() -> Duration {
    failpoint::millis("notify::check_every_ms").unwrap_or(CHECK_EVERY)
}

/// The name of this machine: that of the worker, without process and random part.
fn machine(shared: &WorkerShared) -> &str {
    shared.options.name.rsplitn(3, '-').last().unwrap_or("worker")
}

fn disk(shared: &WorkerShared) -> KvResult<()> {
    let Some((free, total)) = disk_space(&shared.options.scratch_dir) else { return Ok(()) };
    let least = (total / FREE_FRACTION).clamp(FREE_BYTES_MIN, FREE_BYTES_MAX).min(total / 2);
    let machine = machine(shared);
    let key = format!("disk:{machine}");
    let condition = Condition { key: &key, pauses: STATE_PAUSES, fence: None };
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let now = shared.clock.now();
    if free < least {
        let title = format!("{machine}: disk nearly full");
        let text = format!(
            "{} of {} are free where runs keep temporary files (SVC_SCRATCH_DIR); expected at least {}.",
            gib(free),
            gib(total),
            gib(least)
        );
        raise(shared, condition, &[], &Notification::new(NotificationEvent::DiskNearlyFull, now, &title, &text))
    // Not at the limit itself, where the condition would come and go.
    } else if free >= least.saturating_add(least / 2).min(total / 2) {
        let title = format!("{machine}: disk has free space again");
        let text = format!("{} of {} are free.", gib(free), gib(total));
        let recovered = Notification::new(NotificationEvent::Recovered, now, &title, &text);
        end(shared, condition, false, Some(&recovered))
    } else {
        Ok(())
    }
}

/// A dependency of all jobs fails for long, so that this worker runs none.
fn blocked(shared: &WorkerShared) -> KvResult<()> {
    let machine = machine(shared);
    let key = format!("blocked:{machine}");
    let condition = Condition { key: &key, pauses: STATE_PAUSES, fence: None };
    let now = shared.clock.now();
    let after = failpoint::millis("notify::blocked_after_ms").unwrap_or(BLOCKED_AFTER);
    match shared.state.breakers.longest_open() {
        Some((dependency, since, reason)) if since >= after => {
            let title = format!("{machine}: jobs can't run, the {dependency} fails");
            let text = format!("For {}: {}", age(since), clipped(&reason));
            raise(shared, condition, &[], &Notification::new(NotificationEvent::JobStuck, now, &title, &text))
        }
        Some(_) => Ok(()),
        None => {
            let recovered =
                Notification::new(NotificationEvent::Recovered, now, &format!("{machine}: jobs run again"), "");
            end(shared, condition, false, Some(&recovered))
        }
    }
}

/// Compares the age of every table's newest rows with its mapping's `freshness`.
fn all_fresh(shared: &WorkerShared) -> KvResult<()> {
    let mut slugs = pipelines::slugs(&*shared.store, Bucket::Pipelines);
    loop {
        let step: Result<Vec<Slug>, _> = slugs.by_ref().take(PIPELINES_PER_STEP).collect();
        let step = match step {
            Ok(step) => step,
            Err(error) => {
                tracing::warn!(%error, "listing pipelines failed; freshness is checked later");
                return Ok(());
            }
        };
        if step.is_empty() || shared.stopping.phase() != Phase::Working {
            return Ok(());
        }
        parallel_map(&step, READERS_MAX, |slug| fresh(shared, slug))?;
        // Goes on while the lock lasts.
        if !lock(shared, STEP_TIME_MAX)? {
            return Ok(());
        }
    }
}

/// Pipelines without `freshness` cost one read, of the config. A config that is invalid is reported by runs.
fn fresh(shared: &WorkerShared, slug: &Slug) -> KvResult<()> {
    let Ok(text) = config::read_text(shared, slug) else { return Ok(()) };
    if !text.contains("\"freshness\"") {
        return Ok(());
    }
    let wanted = events(Some(&text));
    if !wanted.contains(&NotifyEvent::SourceSilent) {
        return Ok(());
    }
    let Ok(Pipeline { mappings, .. }) = crate::domain::pipeline::validate::parse(&text) else { return Ok(()) };
    let recovers = wanted.contains(&NotifyEvent::Recovered);
    for mapping in &mappings {
        let Some(freshness) = mapping.freshness else { continue };
        let table = mapping.table.as_str();
        let added = match (TableStore::new(&*shared.store, slug, table)).root() {
            Ok(found) => {
                let root = found.readable();
                root.and_then(|root| root.rows_added_at.as_ref().or(Some(&root.committed_at))).cloned()
            }
            Err(error) => {
                tracing::warn!(pipeline = %slug, table, %error, "manifest not readable; freshness not checked");
                continue;
            }
        };
        // A table that never had rows isn't silent yet.
        let Some(added) = added.and_then(|at| DateTime::parse_from_rfc3339(&at).ok()) else { continue };
        table_fresh(shared, slug, table, added.with_timezone(&Utc), freshness, recovers)?;
    }
    Ok(())
}

fn table_fresh(
    shared: &WorkerShared,
    slug: &Slug,
    table: &str,
    added: DateTime<Utc>,
    freshness: Duration,
    recovers: bool,
) -> KvResult<()> {
    let key = format!("silent:{slug}/{table}");
    let condition = Condition { key: &key, pauses: SILENCE_PAUSES, fence: None };
    let now = shared.clock.now();
    let silent = (now - added).to_std().unwrap_or_default();
    let notification = |event, title: &str, text: &str| Notification {
        pipeline: Some(slug.clone()),
        table: Some(table.to_owned()),
        link: link(shared, slug, None),
        ..Notification::new(event, now, title, text)
    };
    if silent <= freshness {
        let recovered = notification(NotificationEvent::Recovered, &format!("{slug}: {table} gets rows again"), "");
        return end(shared, condition, false, Some(&recovered).filter(|_| recovers));
    }
    let title = format!("{slug}: {table} got no rows for {}", age(silent));
    let text = format!("The newest rows came at {}; expected new rows every {}.", rfc3339(added), age(freshness));
    raise(shared, condition, &[], &notification(NotificationEvent::SourceSilent, &title, &text))
}

/// E.g. `3 days`, `26 h`, `5 min`.
fn age(of: Duration) -> String {
    match of.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Watches the progress of one run.
pub struct StuckRun<'a> {
    run: &'a Run<'a>,
    progress: Option<Progress>,
    since: Instant,
    is_notified: bool,
}

impl<'a> StuckRun<'a> {
    pub fn new(run: &'a Run<'a>) -> Self {
        Self { run, progress: None, since: Instant::now(), is_notified: false }
    }

    /// Notifies once if the run has made no progress for a long time.
    pub fn check(&mut self, job: &Job) {
        let shared = self.run.shared;
        if shared.targets.is_empty() || self.is_notified {
            return;
        }
        if self.progress != job.progress {
            (self.progress, self.since) = (job.progress.clone(), Instant::now());
            return;
        }
        let since = self.since.elapsed();
        if since < failpoint::millis("notify::stuck_after_ms").unwrap_or(STUCK_AFTER) {
            return;
        }
        let stored = self.notify(job, since);
        // Otherwise the next check tries again.
        self.is_notified =
            stored.inspect_err(|error| tracing::debug!(%error, "notification of a stuck run not stored")).is_ok();
    }

    fn notify(&self, job: &Job, since: Duration) -> KvResult<()> {
        let shared = self.run.shared;
        if !events(config::read_text(shared, &job.pipeline).ok().as_deref()).contains(&NotifyEvent::JobStuck) {
            return Ok(());
        }
        let key = stuck_key(&job.pipeline);
        let title = format!("{}: run makes no progress for {}", job.pipeline, age(since));
        let stage = job.progress.as_ref().map_or_else(String::new, |progress| {
            format!(" {} of {} files are done.", progress.files_done, progress.files_total)
        });
        let text = format!("Job {} on worker {}.{stage}", job.job_id, shared.options.name);
        let notification = Notification {
            pipeline: Some(job.pipeline.clone()),
            job_id: Some(job.job_id.clone()),
            link: link(shared, &job.pipeline, Some(&job.job_id)),
            ..Notification::new(NotificationEvent::JobStuck, shared.clock.now(), &title, &text)
        };
        // Its end has the run's fence.
        raise(shared, Condition { key: &key, pauses: STATE_PAUSES, fence: None }, &[], &notification)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in [(119, "119 s"), (7_199, "119 min"), (26 * 3_600, "26 h"), (172_800, "2 days")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
