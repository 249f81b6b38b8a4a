//! Checks the Delta logs and the Iceberg metadata of published tables.

use std::time::{Duration, Instant};

use super::check::CheckResult;
use super::context::DoctorContext;
use super::objects::store_missing;
use crate::pipelines::slugs;
use crate::pipelines::tables::{PublishedLog, TableError, TableStore, published_log, tables};
use crate::ports::ObjectStore;
use crate::ports::store::Bucket;

/// The tables that can't be compared within this time are left out. Shorter than a check may take.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Broken logs that are named.
const LISTED_MAX: usize = 5;

#[derive(Default)]
struct Compared {
    sound: usize,
    pending: usize,
    broken: Vec<CheckResult>,
    /// Whether the time was over before the last table.
    is_cut: bool,
}

pub(super) fn logs(context: &DoctorContext) -> Vec<CheckResult> {
    let store = match context.store() {
        Ok(store) => store,
        Err(missing) => return vec![store_missing(missing)],
    };
    let mut compared = Compared::default();
    if let Err(error) = compared.run(store, Instant::now() + TIME_MAX) {
        return vec![CheckResult::problem(error.to_string(), "check the finding of `buckets`")];
    }
    compared.into_findings()
}

impl Compared {
    fn run(&mut self, store: &dyn ObjectStore, end: Instant) -> Result<(), TableError> {
        for slug in slugs(store, Bucket::Pipelines) {
            let slug = slug?;
            for name in tables(store, &slug)? {
                if Instant::now() >= end {
                    self.is_cut = true;
                    return Ok(());
                }
                let broken = match published_log(&TableStore::new(store, &slug, &name)) {
                    Ok(PublishedLog::Absent) => continue,
                    Ok(PublishedLog::Intact) => {
                        self.sound += 1;
                        continue;
                    }
                    Ok(PublishedLog::Pending) => {
                        self.pending += 1;
                        continue;
                    }
                    Ok(PublishedLog::Broken { key, found }) => format!("`{key}`: {found}"),
                    Err(error) if error.is_broken() => error.to_string(),
                    Err(error) => return Err(error),
                };
                let message = format!("table `{name}` of pipeline `{slug}`: {broken}");
                self.broken.push(CheckResult::problem(message, format!("run `lakemill verify {slug} --repair`")));
            }
        }
        Ok(())
    }

    fn into_findings(self) -> Vec<CheckResult> {
        let Self { sound, pending, mut broken, is_cut } = self;
        let more = broken.len().saturating_sub(LISTED_MAX);
        broken.truncate(LISTED_MAX);
        if more > 0 {
            let advice = "run `lakemill verify PIPELINE` for each pipeline";
            broken.push(CheckResult::problem(format!("{more} more are broken"), advice));
        }
        let waiting = if pending == 0 { String::new() } else { format!(", {pending} being published") };
        if is_cut {
            let seconds = TIME_MAX.as_secs();
            let message = format!("not all were compared within {seconds} s: {sound} match their manifests{waiting}");
            broken.push(CheckResult::warning(message, "run `lakemill verify PIPELINE` for those that matter"));
        } else if broken.is_empty() {
            broken.push(match sound + pending {
                0 => CheckResult::skipped("no table is published"),
                _ => CheckResult::ok(format!("{sound} match their manifests{waiting}")),
            });
        }
        broken
    }
}
