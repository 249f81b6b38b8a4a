//! Results of rounds, and their table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::faults::checker::Violation;

/// Outcomes of a round's jobs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jobs {
    pub accepted: u64,
    pub done: u64,
    /// Failed for a reason that the faults cause.
    pub failed: u64,
    /// Lost with the data of the key-value store.
    pub excused: u64,
}

/// The result of a round.
#[derive(Debug, Default)]
pub struct RoundReport {
    pub violations: Vec<Violation>,
    pub jobs: Jobs,
    /// Injected faults, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Other counts and measurements.
    pub notes: BTreeMap<String, u64>,
    /// Logs and history, by file name.
    pub files: BTreeMap<String, String>,
}

impl RoundReport {
    /// Joined to one line.
    pub fn line(&self) -> String {
        let Jobs { accepted, done, failed, excused } = self.jobs;
        let mut line = format!("{accepted} accepted, {done} done, {failed} failed as they should");
        if excused > 0 {
            write!(line, ", {excused} gone with Redis's data").unwrap();
        }
        let (lost, doubled) = losses(&self.violations);
        let faults: u64 = self.faults.values().sum();
        write!(line, ", lost {lost}, doubled {doubled}; {faults} faults: {}", listed(&self.faults)).unwrap();
        if !self.notes.is_empty() {
            write!(line, "; {}", listed(&self.notes)).unwrap();
        }
        line
    }
}

fn losses(violations: &[Violation]) -> (usize, usize) {
    let count = |is: fn(&Violation) -> bool| violations.iter().filter(|violation| is(violation)).count();
    (count(Violation::is_loss), count(Violation::is_duplicate))
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
}

/// All rounds of a scenario.
#[derive(Debug, Default)]
struct Row {
    rounds: u64,
    jobs: Jobs,
    faults: BTreeMap<String, u64>,
    notes: BTreeMap<String, u64>,
    violations: Vec<Violation>,
    took: Duration,
}

/// The rounds so far, by scenario.
#[derive(Debug, Default)]
pub struct Table(BTreeMap<String, Row>);

impl Table {
    pub fn add(&mut self, scenario: &str, report: &RoundReport, took: Duration) {
        let row = self.0.entry(scenario.to_owned()).or_default();
        row.rounds += 1;
        row.took += took;
        row.jobs.accepted += report.jobs.accepted;
        row.jobs.done += report.jobs.done;
        row.jobs.failed += report.jobs.failed;
        row.jobs.excused += report.jobs.excused;
        for (to, from) in [(&mut row.faults, &report.faults), (&mut row.notes, &report.notes)] {
            for (what, count) in from {
                // Measurements are not added up.
                let join = |so_far: u64| match what.ends_with(" ms") {
                    true if what.starts_with("shortest") => so_far.min(*count),
                    true => so_far.max(*count),
                    false => so_far + count,
                };
                let sum = to.get(what).map_or(*count, |so_far| join(*so_far));
                to.insert(what.clone(), sum);
            }
        }
        row.violations.extend(report.violations.iter().cloned());
    }

    pub fn violations(&self) -> usize {
        self.0.values().map(|row| row.violations.len()).sum()
    }

    /// A line for each scenario and one for all, then faults and measurements by scenario.
    pub fn text(&self) -> String {
        let head = ["rounds", "accepted", "done", "failed", "excused", "faults", "lost", "doubled", "wrong", "seconds"];
        let mut text = format!("{:12}", "scenario");
        head.iter().for_each(|name| write!(text, " {name:>8}").unwrap());
        let mut all = [0; 10];
        for (name, row) in &self.0 {
            let cells = row.cells();
            write!(text, "\n{name:12}").unwrap();
            for (sum, cell) in all.iter_mut().zip(cells) {
                *sum += cell;
                write!(text, " {cell:8}").unwrap();
            }
        }
        write!(text, "\n{:12}", "all").unwrap();
        all.iter().for_each(|cell| write!(text, " {cell:8}").unwrap());
        text.push_str("\n\nfaults and measures:\n");
        for (name, row) in &self.0 {
            for (what, count) in row.faults.iter().chain(&row.notes) {
                writeln!(text, "{name:12} {count:8}  {what}").unwrap();
            }
        }
        for (name, row) in &self.0 {
            row.violations.iter().for_each(|violation| writeln!(text, "WRONG in {name}: {violation:?}").unwrap());
        }
        text
    }
}

impl Row {
    fn cells(&self) -> [u64; 10] {
        let Jobs { accepted, done, failed, excused } = self.jobs;
        let (lost, doubled) = losses(&self.violations);
        let faults = self.faults.values().sum();
        let wrong = self.violations.len() as u64;
        [self.rounds, accepted, done, failed, excused, faults, lost as u64, doubled as u64, wrong, self.took.as_secs()]
    }
}

#[test]
fn table_sums_rounds_and_separates_losses_from_duplicates() {
    let fault = |count| BTreeMap::from([("kill -9".to_owned(), count)]);
    let measure = |ms| BTreeMap::from([("longest ms".to_owned(), ms), ("shortest ms".to_owned(), ms)]);
    let jobs = Jobs { accepted: 5, done: 3, failed: 1, excused: 0 };
    let lost = vec![Violation::NoRecord { job: "j".into() }, Violation::JobsOfWindow { pipeline: "p".into(), jobs: 2 }];
    let mut table = Table::default();
    let sound = RoundReport { jobs, faults: fault(2), notes: measure(30), ..RoundReport::default() };
    assert_eq!(
        sound.line(),
        "5 accepted, 3 done, 1 failed as they should, lost 0, doubled 0; 2 faults: kill -9 2; longest ms 30, shortest ms 30"
    );
    table.add("kill", &sound, Duration::from_secs(4));
    table.add(
        "kill",
        &RoundReport { violations: lost, faults: fault(1), notes: measure(20), ..sound },
        Duration::from_secs(5),
    );
    let cells = |line: &str| line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let text = table.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(cells(lines[1]), ["2", "10", "6", "2", "0", "3", "1", "1", "2", "9"], "{text}");
    assert_eq!(cells(lines[2]), cells(lines[1]));
    assert!(text.contains("       30  longest ms") && text.contains("       20  shortest ms"), "{text}");
    assert!(text.contains("WRONG in kill: NoRecord"), "{text}");
    assert_eq!(table.violations(), 2);
}
