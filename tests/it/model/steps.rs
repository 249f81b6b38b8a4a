//! Random sequences of events of a pipeline, and their execution.

use std::collections::BTreeMap;

use lakemill::domain::job::ChangedKeys;
use lakemill::domain::pipeline::WhenRemoved;
use lakemill::ports::store::Bucket;

use super::oracle::{Oracle, SOURCES, is_of_log};
use super::world::{Outage, RunOptions, Style, TableConfig, World};

/// SplitMix64: small and portable.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    /// Adds or changes a source; there are few texts, so that old ones recur.
    Put {
        source: &'static str,
        text: String,
    },
    Remove {
        source: &'static str,
    },
    /// A removed or replaced source is restored to its earlier content.
    Restore {
        source: &'static str,
    },
    Rename {
        from: &'static str,
        to: &'static str,
    },
    Config {
        tables: Vec<TableConfig>,
    },
    Run {
        prefix: &'static str,
        /// Keys of events, independent of actual changes: some are missing, some repeat, some don't exist.
        hints: Option<Vec<&'static str>>,
        /// Readers read the tables after this write of the run.
        verify_and_repair: Option<u64>,
        clean: bool,
        outage: Option<Outage>,
        dry_first: bool,
        again: bool,
    },
    /// Another program changes the nth object of the warehouse.
    Tamper {
        nth: u64,
        how: Tampering,
    },
    /// A verification that repairs, and a run.
    Repair,
    Wait {
        ms: i64,
    },
}

#[derive(Debug, Clone, Copy)]
pub enum Tampering {
    Delete,
    Append,
    /// The same bytes, written once more.
    Rewrite,
    /// Creates an object beside it.
    Stray,
}

#[derive(Debug, Clone)]
pub struct Sequence {
    pub style: Style,
    /// Whether the first table begins with a Delta log.
    pub delta: bool,
    pub steps: Vec<Step>,
}

impl Sequence {
    pub fn random(seed: u64) -> Self {
        let mut random = Random(seed);
        let style = Style { content_tags: random.one_in(2), listed_tags: !random.one_in(3) };
        let delta = random.one_in(2);
        let length = 6 + random.below(14);
        Self { style, delta, steps: (0..length).map(|_| step(&mut random)).collect() }
    }

    /// # Errors
    /// The divergence, and its step.
    pub fn play(&self) -> Result<(), String> {
        let first = TableConfig { delta: self.delta, ..TableConfig::new("t") };
        let mut world = World::new(self.style, vec![first]);
        let mut oracle = Oracle::default();
        let mut gone = BTreeMap::new();
        for (i, step) in self.steps.iter().enumerate() {
            play(&mut world, &mut oracle, &mut gone, step).map_err(|e| format!("step {i}: {e}"))?;
        }
        play(&mut world, &mut oracle, &mut gone, &Step::Wait { ms: 5000 })?;
        oracle.run(&world, RunOptions::default(), None).map_err(|e| format!("last run: {e}"))?;
        if world.run(RunOptions::default()).is_ok() {
            oracle.compare_with_clean(&world).map_err(|e| format!("at the end: {e}"))?;
        }
        Ok(())
    }

    /// The shortest sequence that still fails in any way, found by leaving out steps one at a time.
    pub fn shrink(mut self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut i = self.steps.len();
        while i > 0 {
            i -= 1;
            let mut shorter = self.clone();
            shorter.steps.remove(i);
            if fails(&shorter) {
                self = shorter;
                i = self.steps.len().min(i + 1);
            }
        }
        self
    }
}

/// The last texts of sources that were removed or replaced.
type RemovedSources = BTreeMap<&'static str, String>;

fn play(world: &mut World, oracle: &mut Oracle, gone: &mut RemovedSources, step: &Step) -> Result<(), String> {
    match step {
        Step::Put { source, text } => {
            gone.extend(world.text(source).map(|text| (*source, text)));
            world.put(source, text);
        }
        Step::Remove { source } => {
            gone.extend(world.text(source).map(|text| (*source, text)));
            world.remove(source);
        }
        Step::Restore { source } => {
            if let Some(text) = gone.get(source) {
                world.put(source, text);
            }
        }
        Step::Rename { from, to } => {
            if let Some(text) = world.text(from) {
                world.remove(from);
                world.put(to, &text);
                gone.insert(from, text);
            }
        }
        Step::Repair => repair(world, oracle)?,
        Step::Config { tables } => world.tables.clone_from(tables),
        Step::Wait { ms } => world.clock.advance(*ms),
        Step::Tamper { nth, how } => tamper(world, oracle, *nth, *how),
        Step::Run { prefix, hints, verify_and_repair, clean, outage, dry_first, again } => {
            let changed = hints.as_ref().map(|keys| keys.iter().copied().collect::<ChangedKeys>());
            let options = RunOptions { prefix, changed: changed.as_ref(), clean: *clean, dry_run: false };
            if *dry_first {
                dry(world, options)?;
            }
            match verify_and_repair {
                Some(write) => oracle.run_beside_readers(world, options, *outage, *write)?,
                None => oracle.run(world, options, *outage)?,
            }
            if *again && outage.is_none() {
                unchanged(world, oracle)?;
            }
        }
    }
    Ok(())
}

/// After a repair and a run everything matches the manifests.
fn repair(world: &World, oracle: &mut Oracle) -> Result<(), String> {
    world.repair();
    oracle.run(world, RunOptions::default(), None)?;
    if oracle.has_succeeded {
        let (faults, stay) = world.repair();
        if !faults.is_empty() {
            return Err(format!("faults after a repair: {faults:?}"));
        }
        world.tables.iter().for_each(|table| oracle.repaired(table.name, &stay));
        oracle.compare_with_clean(world)?;
    }
    Ok(())
}

/// A dry run writes nothing, and reports the work of the real run.
fn dry(world: &World, options: RunOptions<'_>) -> Result<(), String> {
    let before = world.memory.objects();
    let real = world.fork().run(options);
    let foretold = world.run(RunOptions { dry_run: true, ..options });
    if world.memory.objects() != before {
        return Err("a dry run wrote".into());
    }
    match (foretold, real) {
        (Ok(foretold), Ok(real)) if foretold == real => Ok(()),
        (Err(foretold), Err(real)) if foretold.error.code == real.error.code => Ok(()),
        (foretold, real) => Err(format!("a dry run foretold {foretold:?}, but {real:?} came")),
    }
}

/// A second run with nothing changed reads no source and writes nothing.
fn unchanged(world: &World, oracle: &mut Oracle) -> Result<(), String> {
    oracle.run(world, RunOptions::default(), None)?;
    world.take_log();
    if world.run(RunOptions::default()).is_ok() {
        let (writes, reads) = world.take_log();
        if !writes.is_empty() || reads > 0 {
            return Err(format!("with nothing changed, {reads} sources were read and written: {writes:?}"));
        }
    }
    Ok(())
}

fn tamper(world: &World, oracle: &mut Oracle, nth: u64, how: Tampering) {
    let objects = world.memory.objects();
    let is_output = |bucket: Bucket, key: &str| bucket == Bucket::Warehouse && !is_of_log(key);
    let warehouse: Vec<_> = objects.iter().filter(|((bucket, key), _)| is_output(*bucket, key)).collect();
    let Some(((bucket, key), object)) = warehouse.get(nth as usize % warehouse.len().max(1)) else { return };
    let relative = key.strip_prefix(&world.key("")).unwrap_or(key);
    oracle.tamper(relative);
    match how {
        Tampering::Delete => world.unseed(*bucket, key),
        Tampering::Append => {
            world.seed(*bucket, key, &[&object.bytes, &b"!"[..]].concat());
        }
        Tampering::Rewrite => {
            world.seed(*bucket, key, &object.bytes);
        }
        Tampering::Stray => {
            let folder = key.rsplit_once('/').map_or("", |(folder, _)| folder);
            let stray = format!("{folder}/part-77777.parquet");
            oracle.tamper(stray.strip_prefix(&world.key("")).unwrap_or(&stray));
            world.seed(*bucket, &stray, b"?");
        }
    }
}

fn step(random: &mut Random) -> Step {
    match random.below(100) {
        0..30 => Step::Put { source: random.pick(&SOURCES), text: text(random) },
        30..33 => Step::Restore { source: random.pick(&SOURCES) },
        33..36 => Step::Rename { from: random.pick(&SOURCES), to: random.pick(&SOURCES) },
        36..38 => Step::Repair,
        38..45 => Step::Remove { source: random.pick(&SOURCES) },
        45..52 => Step::Config { tables: tables(random) },
        52..58 => Step::Tamper {
            nth: random.below(20),
            how: random.pick(&[Tampering::Delete, Tampering::Append, Tampering::Rewrite, Tampering::Stray]),
        },
        58..63 => Step::Wait { ms: random.pick(&[1, 700, 1500, 2500, 60_000]) },
        _ => run_step(random),
    }
}

fn run_step(random: &mut Random) -> Step {
    let outage = random.one_in(3).then(|| Outage { writes: random.below(14), last_applied: random.one_in(2) });
    let hints = random.one_in(4).then(|| {
        let keys = SOURCES.iter().chain(&["a/9.csv", "nothing", "a/", "b//1.csv"]);
        keys.copied().filter(|_| random.one_in(2)).collect::<Vec<_>>()
    });
    // Automatic runs have no prefix, and are not clean runs.
    let is_automatic = hints.is_some();
    Step::Run {
        prefix: if !is_automatic && random.one_in(3) { random.pick(&["a/", "b/", "a/1", "b/2.csv"]) } else { "" },
        hints,
        verify_and_repair: random.one_in(3).then(|| 1 + random.below(14)),
        clean: !is_automatic && random.one_in(7),
        outage,
        dry_first: random.one_in(8),
        again: random.one_in(4),
    }
}

/// One of a few texts, of up to five lines.
fn text(random: &mut Random) -> String {
    let mut of = Random(random.below(40));
    let lines = of.below(6);
    let line = |of: &mut Random| match of.below(10) {
        0 => "bad\n".to_owned(),
        1 => "-\n".to_owned(),
        _ => format!("{},{}\n", of.pick(&["p", "q", "r", "s"]), of.below(3)),
    };
    (0..lines).map(|_| line(&mut of)).collect()
}

fn tables(random: &mut Random) -> Vec<TableConfig> {
    let mut t = TableConfig::new("t");
    t.globs = random.pick(&[vec!["**/*.csv"], vec!["**/*.csv"], vec!["*/*.csv"], vec!["a/*.csv"]]);
    t.partitioned = !random.one_in(4);
    t.wide = random.one_in(4);
    t.salt = random.below(2) as u8;
    t.max_rejects = random.pick(&[1000, 1000, 1000, 1, 0]);
    t.when_removed = random.pick(&[WhenRemoved::RemoveRows, WhenRemoved::KeepRows]);
    t.delta = random.one_in(2);
    let mut u = TableConfig::new("u");
    u.globs = vec!["b/*.csv"];
    u.when_removed = random.pick(&[WhenRemoved::RemoveRows, WhenRemoved::RemoveRows, WhenRemoved::KeepRows]);
    match random.below(4) {
        0 => vec![t],
        1 => vec![u],
        _ => vec![t, u],
    }
}
