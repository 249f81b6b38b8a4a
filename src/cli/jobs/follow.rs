//! Follows the active jobs of a pipeline until none is left: progress bars on a terminal, otherwise a line per change.
//!
//! The key-value store doesn't publish progress, so it is polled.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::table::{json_line, note, status};
use crate::cli::services::Services;
use crate::domain::job::{Job, JobId, JobStatus, Stage, WaitReason};
use crate::domain::limits::ACTIVE_JOBS_SHOWN_MAX;
use crate::domain::name::Slug;
use crate::pipelines::history;
use crate::ports::kv::KvResult;

const POLL_EVERY: Duration = Duration::from_millis(500);
/// Consecutive polls that may fail: a minute.
const FAILED_POLLS_MAX: u32 = 120;
/// Bars at a time; further jobs are followed in lines.
const BARS_MAX: usize = 20;

/// Follows `active` and jobs that become active meanwhile. False if a followed job failed.
///
/// # Errors
/// A store keeps failing.
pub(super) fn run(services: &Services, pipeline: &Slug, active: Vec<Job>, json: bool) -> Result<bool, String> {
    let mut view: Box<dyn View> = match (json, std::io::stderr().is_terminal()) {
        (true, _) => Box::new(Lines { json: true, shown: BTreeMap::new() }),
        (false, true) => Box::new(Bars::new()),
        (false, false) => Box::new(Lines { json: false, shown: BTreeMap::new() }),
    };
    let mut followed: BTreeMap<JobId, Job> = active.into_iter().map(|job| (job.job_id.clone(), job)).collect();
    let (mut all_well, mut failed_polls) = (true, 0);
    loop {
        match poll(services, pipeline, &followed) {
            Ok(Poll { active, ended }) => {
                failed_polls = 0;
                for job in ended {
                    all_well &= job.status != JobStatus::Failed;
                    followed.remove(&job.job_id);
                    view.show(&job).map_err(|error| error.to_string())?;
                }
                for job in active {
                    view.show(&job).map_err(|error| error.to_string())?;
                    followed.insert(job.job_id.clone(), job);
                }
                if followed.is_empty() {
                    return Ok(all_well);
                }
            }
            Err(error) if failed_polls == FAILED_POLLS_MAX => return Err(error),
            Err(error) => {
                if failed_polls == 0 {
                    view.warn(&format!("{error}; retrying"));
                }
                failed_polls += 1;
            }
        }
        std::thread::sleep(POLL_EVERY);
    }
}

struct Poll {
    active: Vec<Job>,
    /// Followed jobs that are no longer active.
    ended: Vec<Job>,
}

fn poll(services: &Services, pipeline: &Slug, followed: &BTreeMap<JobId, Job>) -> Result<Poll, String> {
    let active = services.kv.active(pipeline, ACTIVE_JOBS_SHOWN_MAX).map_err(|error| error.to_string())?;
    let mut ended = Vec::new();
    for (id, last_seen) in followed {
        if active.iter().any(|job| job.job_id == *id) {
            continue;
        }
        let known: KvResult<Option<Job>> = services.kv.job(pipeline, id);
        let known = known.map_err(|error| error.to_string())?.filter(|job| job.status.is_terminal());
        let known = match known {
            Some(job) => Some(job),
            None => history::record(&*services.store, pipeline, id).map_err(|error| error.to_string())?,
        };
        // A missing record means that the pipeline was deleted.
        ended.push(known.unwrap_or_else(|| last_seen.clone()));
    }
    Ok(Poll { active, ended })
}

trait View {
    fn show(&mut self, job: &Job) -> std::io::Result<()>;

    fn warn(&self, text: &str);
}

/// The state of a job whose changes are shown.
type DisplayedState = (JobStatus, Option<(Stage, u64)>, Option<WaitReason>, u32, bool);

fn shown(job: &Job) -> DisplayedState {
    let progress = job.progress.as_ref().map(|progress| (progress.stage, progress.files_done));
    (job.status, progress, job.reason, job.attempt, job.silent_ms.is_some())
}

struct Lines {
    json: bool,
    shown: BTreeMap<JobId, DisplayedState>,
}

impl View for Lines {
    fn show(&mut self, job: &Job) -> std::io::Result<()> {
        if self.shown.insert(job.job_id.clone(), shown(job)) == Some(shown(job)) {
            return Ok(());
        }
        let line = if self.json { json_line(job) } else { format!("{}\n", line(job)) };
        std::io::stdout().lock().write_all(line.as_bytes())
    }

    fn warn(&self, text: &str) {
        crate::cli::warnings::warn(text);
    }
}

fn line(job: &Job) -> String {
    format!("{}  {:<9}  {}", job.job_id, status(job.status), note(job)).trim_end().to_owned()
}

struct Bars {
    all: MultiProgress,
    bars: BTreeMap<JobId, ProgressBar>,
    lines: Lines,
}

impl Bars {
    fn new() -> Self {
        let lines = Lines { json: false, shown: BTreeMap::new() };
        Self { all: MultiProgress::new(), bars: BTreeMap::new(), lines }
    }

    fn bar(&mut self, id: &JobId) -> &ProgressBar {
        self.bars.entry(id.clone()).or_insert_with(|| {
            let bar = self.all.add(ProgressBar::new(1));
            if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:16} {percent:>3}% {wide_msg} {elapsed}") {
                bar.set_style(style.progress_chars("▓▓░"));
            }
            bar.set_prefix(id.to_string());
            bar
        })
    }
}

impl View for Bars {
    fn show(&mut self, job: &Job) -> std::io::Result<()> {
        if job.status.is_terminal() {
            if let Some(bar) = self.bars.remove(&job.job_id) {
                bar.finish_and_clear();
            }
            return self.all.suspend(|| self.lines.show(job));
        }
        if self.bars.len() >= BARS_MAX && !self.bars.contains_key(&job.job_id) {
            return self.all.suspend(|| self.lines.show(job));
        }
        let bar = self.bar(&job.job_id);
        let (done, total) = job.progress.as_ref().map_or((0, 1), |p| (p.bytes_done, p.bytes_total.max(1)));
        bar.set_length(total);
        bar.set_position(done.min(total));
        bar.set_message(format!("{}  {}", status(job.status), note(job)));
        Ok(())
    }

    fn warn(&self, text: &str) {
        self.all.suspend(|| crate::cli::warnings::warn(text));
    }
}
