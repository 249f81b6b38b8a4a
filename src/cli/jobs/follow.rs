//! Follows the active jobs of a pipeline until none is left: bars on a terminal, elsewhere a line whenever one has
//! got somewhere.
//!
//! The key-value store tells nobody of a job's progress by itself, so it is asked again and again.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::table::{json_line, note, status};
use crate::cli::services::Services;
use crate::domain::job::{Job, JobId, JobStatus, Stage, Waiting};
use crate::domain::limits::ACTIVE_JOBS_SHOWN_MAX;
use crate::domain::name::Slug;
use crate::pipelines::history;
use crate::ports::kv::KvResult;

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Looks that may fail one after another before following is given up: a minute.
const FAILED_LOOKS_MAX: u32 = 120;
/// Bars that are drawn at a time; further jobs are followed in lines.
const BARS_MAX: usize = 20;

/// Follows `active`, and what becomes active meanwhile. False if a job that was followed failed.
///
/// # Errors
/// What a store says, if it goes on saying so.
pub(super) fn run(services: &Services, pipeline: &Slug, active: Vec<Job>, json: bool) -> Result<bool, String> {
    let mut view: Box<dyn View> = match (json, std::io::stderr().is_terminal()) {
        (true, _) => Box::new(Lines { json: true, told: BTreeMap::new() }),
        (false, true) => Box::new(Bars::new()),
        (false, false) => Box::new(Lines { json: false, told: BTreeMap::new() }),
    };
    let mut followed: BTreeMap<JobId, Job> = active.into_iter().map(|job| (job.job_id.clone(), job)).collect();
    let (mut all_well, mut failed_looks) = (true, 0);
    loop {
        match look(services, pipeline, &followed) {
            Ok(Look { active, ended }) => {
                failed_looks = 0;
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
            Err(error) if failed_looks == FAILED_LOOKS_MAX => return Err(error),
            Err(error) => {
                if failed_looks == 0 {
                    view.warn(&format!("{error}; trying again"));
                }
                failed_looks += 1;
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

struct Look {
    active: Vec<Job>,
    /// Jobs that were followed and aren't active any more.
    ended: Vec<Job>,
}

fn look(services: &Services, pipeline: &Slug, followed: &BTreeMap<JobId, Job>) -> Result<Look, String> {
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
        // Of a job without a record its pipeline was deleted: there is no more to tell of it.
        ended.push(known.unwrap_or_else(|| last_seen.clone()));
    }
    Ok(Look { active, ended })
}

trait View {
    fn show(&mut self, job: &Job) -> std::io::Result<()>;

    fn warn(&self, text: &str);
}

/// What of a job, if it changes, is worth another line.
type Told = (JobStatus, Option<(Stage, u64)>, Option<Waiting>, u32, bool);

fn told(job: &Job) -> Told {
    let progress = job.progress.as_ref().map(|progress| (progress.stage, progress.files_done));
    (job.status, progress, job.reason, job.attempt, job.silent_ms.is_some())
}

struct Lines {
    json: bool,
    told: BTreeMap<JobId, Told>,
}

impl View for Lines {
    fn show(&mut self, job: &Job) -> std::io::Result<()> {
        if self.told.insert(job.job_id.clone(), told(job)) == Some(told(job)) {
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
        let lines = Lines { json: false, told: BTreeMap::new() };
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
