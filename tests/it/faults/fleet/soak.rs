//! The long set: every scenario in turn until the time limit, and a table of the results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::batches::LONG;
use super::report::{RoundReport, Table};
use super::scenarios::{SCENARIOS, Scenario};
use crate::faults::checker::Violation;

/// The first round of these scenarios runs in full size: S3 unavailable for ten minutes, 60 signals, 500 jobs.
const FULL: [(&str, u64); 3] = [("s3-away", 75), ("sigterm", 10), ("rolling", 10)];
/// Scenarios that mostly wait run once, concurrently with the others.
const CONCURRENT: &str = "s3-away";
/// The first scenarios, in this order, before those that load the machine.
const FIRST: [&str; 5] = ["rhythm", "windows", "seeds", "rolling", "sigterm"];
/// Time that must remain for a long first round. Others start as long as any time is left.
const NEEDED: [(&str, u64); 4] = [("s3-away", 660), ("rhythm", 330), ("windows", 300), ("seeds", 300)];

fn of<T: Copy>(list: &[(&str, T)], name: &str) -> Option<T> {
    list.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Parameters of a soak.
struct Settings {
    time: Duration,
    seed: u64,
    intensity: u64,
    only: Option<String>,
    folder: PathBuf,
}

impl Settings {
    fn read() -> Self {
        let text = |name: &str| std::env::var(format!("LAKEMILL_SOAK_{name}")).ok().filter(|text| !text.is_empty());
        let number = |name: &str, default: u64| {
            let text = text(name);
            text.map_or(default, |t| t.parse().unwrap_or_else(|_| panic!("{name} is `{t}`, expected a number")))
        };
        Self {
            time: Duration::from_secs(60 * number("MINUTES", 30)),
            seed: number("SEED", 1),
            intensity: number("MUCH", 3),
            only: text("ONLY"),
            folder: text("FOLDER").expect("LAKEMILL_SOAK_FOLDER: scripts/soak sets it").into(),
        }
    }
}

/// Results so far.
#[derive(Default)]
struct SoakProgress {
    table: Table,
    seeds: u64,
    longest: BTreeMap<&'static str, Duration>,
}

struct Soak {
    settings: Settings,
    began: Instant,
    book: Mutex<SoakProgress>,
}

impl Soak {
    fn time_left(&self) -> Duration {
        self.settings.time.saturating_sub(self.began.elapsed())
    }

    fn book(&self) -> std::sync::MutexGuard<'_, SoakProgress> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self) -> String {
        let minutes = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
        format!("{} of {}", minutes(self.began.elapsed()), minutes(self.settings.time))
    }

    fn play(&self, (name, scenario): Scenario, intensity: u64) {
        let seed = {
            let mut book = self.book();
            book.seeds += 1;
            self.settings.seed + book.seeds - 1
        };
        println!("[{}] {name}, seed {seed}: begins", self.time());
        let began = Instant::now();
        let report = catch_unwind(AssertUnwindSafe(|| scenario(seed, intensity)));
        let report = report.unwrap_or_else(|_| RoundReport {
            violations: vec![Violation::Unchecked { scenario: format!("{name}, which panicked (see above)") }],
            ..RoundReport::default()
        });
        let took = began.elapsed();
        println!("[{}] {name}, seed {seed}: {}; {} s", self.time(), report.line(), took.as_secs());
        for violation in &report.violations {
            println!("    WRONG: {violation:?}");
        }
        if !report.violations.is_empty() {
            keep(&self.settings.folder, name, seed, &report);
        }
        let mut book = self.book();
        book.table.add(name, &report, took);
        let longest = book.longest.entry(name).or_default();
        *longest = took.max(*longest);
        // In case the soak is stopped early.
        std::fs::write(self.settings.folder.join("figures.txt"), book.table.text()).unwrap();
    }

    /// Whether a round may start: a long one only if enough time remains.
    fn has_time_for(&self, name: &'static str) -> bool {
        let left = self.time_left();
        let longest = self.book().longest.get(name).copied();
        match (longest, of(&NEEDED, name)) {
            (Some(longest), Some(_)) => left > longest,
            (None, Some(needed)) => left >= Duration::from_secs(needed),
            (_, None) => !left.is_zero(),
        }
    }

    /// Runs one round of each scenario, and more until the time limit. Returns the names of scenarios without a round.
    fn play_all(&self, scenarios: &[Scenario]) -> Vec<&'static str> {
        let mut unreached = Vec::new();
        for (pass, alone) in (0..).map(|pass| (pass, self.settings.only.is_some())) {
            let mut played = false;
            for scenario in scenarios {
                let name = scenario.0;
                if self.has_time_for(name) || (pass == 0 && alone) {
                    let full = of(&FULL, name).filter(|_| pass == 0 && !alone && name != CONCURRENT);
                    self.play(*scenario, full.unwrap_or(self.settings.intensity));
                    played = true;
                } else if pass == 0 && (name != CONCURRENT || alone) {
                    unreached.push(name);
                }
            }
            if !played || self.time_left().is_zero() {
                break;
            }
        }
        unreached
    }
}

fn keep(folder: &Path, name: &str, seed: u64, report: &RoundReport) {
    let folder = folder.join(format!("{name}-{seed}"));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in &report.files {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

/// Puts long scenarios that need a quiet machine first; the others keep their order.
fn in_order(only: Option<&str>) -> Vec<Scenario> {
    let mut all: Vec<Scenario> = SCENARIOS.into_iter().chain(LONG).collect();
    all.sort_by_key(|(name, _)| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    all.retain(|(name, _)| only.is_none_or(|only| only == *name));
    assert!(!all.is_empty(), "no scenario is called {only:?}; there are {}", names.join(", "));
    all
}

#[test]
#[ignore = "runs as long as requested; scripts/soak runs it"]
fn soak() {
    let settings = Settings::read();
    let scenarios = in_order(settings.only.as_deref());
    let soak = Soak { settings, began: Instant::now(), book: Mutex::default() };
    let beside = scenarios.iter().find(|(name, _)| *name == CONCURRENT && soak.settings.only.is_none());
    let mut report = String::new();
    let (unreached, is_full) = std::thread::scope(|scope| {
        let full = of(&FULL, CONCURRENT).unwrap();
        let beside = beside.filter(|(name, _)| soak.has_time_for(name));
        let soak = &soak;
        let waiting = beside.map(|scenario| scope.spawn(move || soak.play(*scenario, full)));
        (soak.play_all(&scenarios), waiting.is_some())
    });
    if soak.settings.only.is_none() && !is_full {
        report.push_str("not reached: S3 away for ten minutes, which wants 11 minutes\n");
    }
    for name in unreached {
        writeln!(report, "not reached: {name}").unwrap();
    }
    let book = soak.book();
    let wrong = book.table.violations();
    println!("\n{}{report}{} with {wrong} violations", book.table.text(), soak.time());
    drop(book);
    assert_eq!(wrong, 0, "`{}` has what happened", soak.settings.folder.display());
}

#[test]
fn long_scenarios_come_first_and_none_is_skipped() {
    let names: Vec<&str> = in_order(None).iter().map(|(name, _)| *name).collect();
    assert_eq!(names[..FIRST.len()], FIRST);
    assert_eq!(names.len(), SCENARIOS.len() + LONG.len());
    let known = FULL.iter().chain(&NEEDED).all(|(name, _)| names.contains(name));
    assert!(known, "{names:?}");
    assert_eq!(in_order(Some("kill")).len(), 1);
}
