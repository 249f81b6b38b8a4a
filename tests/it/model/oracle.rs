//! Says what the tables must be after a run, naively: from all versions of all sources, and what was published before.

use std::collections::{BTreeMap, BTreeSet};

use lakemill::domain::digest::sha256_hex;
use lakemill::domain::job::{RunErrorCode, RunResult};
use lakemill::domain::layout::{relative_part_key, relative_rejects_key, relative_rejects_prefix};
use lakemill::domain::manifest::partition_of;
use lakemill::ports::store::Bucket;

use super::convert::{Parsed, encode, encode_rejects, parse, sources_in};
use crate::support::memory_store::{Object, Objects};

use super::world::{Ask, Outage, TableConfig, World};

type Files = BTreeMap<String, Object>;
/// Text by key, partition by partition.
type Content = BTreeMap<String, BTreeMap<String, Vec<u8>>>;

pub const SOURCES: [&str; 6] = ["a/1.csv", "a/2.csv", "a/deep/3.csv", "b/1.csv", "b/2.csv", "b/readme.txt"];

/// Naive on purpose: the few globs that the tests use.
fn glob_matches(glob: &str, key: &str) -> bool {
    let segments = key.split('/').count();
    key.ends_with(".csv")
        && match glob {
            "**/*.csv" => true,
            "*/*.csv" => segments == 2,
            "a/*.csv" => segments == 2 && key.starts_with("a/"),
            "b/*.csv" => segments == 2 && key.starts_with("b/"),
            other => unreachable!("glob {other}"),
        }
}

/// A table as it was last published in full.
#[derive(Debug, Clone, Default)]
struct Committed {
    canonical: Option<String>,
    layout: Option<(bool, bool)>,
    /// Tag of each source.
    accepted: BTreeMap<String, String>,
    /// Everything in the warehouse, rejects too.
    files: Files,
    /// What runs that died since then may have written.
    died: Vec<Content>,
}

/// What a run must do to a table.
#[derive(Debug, Clone)]
struct Expected {
    whole: bool,
    dirty: bool,
    accepted: BTreeMap<String, String>,
    touched: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct Oracle {
    /// Every version of every source, by key and tag.
    versions: BTreeMap<(String, String), Vec<u8>>,
    tables: BTreeMap<String, Committed>,
}

macro_rules! ensure {
    ($holds:expr, $($says:tt)*) => {
        if !$holds {
            return Err(format!($($says)*));
        }
    };
}

impl Oracle {
    /// Runs the world's pipeline and checks everything about it.
    pub fn run(&mut self, world: &World, ask: Ask<'_>, outage: Option<Outage>) -> Result<(), String> {
        let before = world.memory.objects();
        self.remember(world, &before);
        let expected: BTreeMap<&str, Expected> =
            world.tables.iter().map(|t| (t.name, self.expect(world, t, ask, &before))).collect();
        let failure = self.expected_failure(world, ask, &expected, &before);
        let planned = (outage.is_some() && failure.is_none()).then(|| world.fork()).map(|fork| {
            let result = fork.run(ask);
            (fork, result)
        });
        world.take_log();
        world.set_outage(outage);
        let result = world.run(ask);
        world.set_outage(None);
        let (writes, _) = world.take_log();
        let after = world.memory.objects();

        match (result, failure) {
            (Err(error), Some(code)) => {
                ensure!(error.error.code == code, "expected {code:?}, found {error:?}");
                ensure!(!error.partially_published, "nothing was to be published: {error:?}");
                let published = |objects: &Objects| -> Objects {
                    objects
                        .iter()
                        .filter(|((_, key), _)| !key.contains("/jobs/"))
                        .map(|(k, o)| (k.clone(), o.clone()))
                        .collect()
                };
                ensure!(published(&before) == published(&after), "a failed run changed the store");
                Ok(())
            }
            (Ok(result), Some(code)) => Err(format!("expected {code:?}, found {result:?}")),
            (Ok(result), None) => self.check_success(world, ask, &expected, &before, &after, &result),
            (Err(error), None) => {
                let Some((fork, planned)) = planned else { return Err(format!("expected success, found {error:?}")) };
                ensure!(planned.is_ok(), "without the outage: {planned:?}");
                ensure!(error.error.code == RunErrorCode::S3Error, "in an outage: {error:?}");
                ensure!(error.partially_published != writes.is_empty(), "{writes:?} written, yet {error:?}");
                self.after_crash(world, ask, &expected, &before, &after, &fork.memory.objects())
            }
        }
    }

    /// A clean run into an empty store gives the same bytes for all that current sources feed.
    pub fn compare_with_clean(&self, world: &World) -> Result<(), String> {
        let fresh = world.fresh();
        let result = fresh.run(Ask { clean: true, ..Ask::default() });
        ensure!(result.is_ok(), "a clean run into an empty store: {result:?}");
        let ours = world.warehouse();
        let theirs = fresh.warehouse();
        for (key, text) in &theirs {
            ensure!(ours.get(key) == Some(text), "`{key}` differs from a clean run's: {:?}, {text:?}", ours.get(key));
        }
        for table in &world.tables {
            let (Some(mine), Some(clean)) = (world.manifest(table.name), fresh.manifest(table.name)) else { continue };
            let fed: Vec<_> = mine.partitions.iter().filter(|(_, p)| !p.retained).map(|(k, _)| k).collect();
            let clean: Vec<_> = clean.partitions.keys().collect();
            ensure!(fed == clean, "partitions {fed:?}, of a clean run {clean:?}");
        }
        Ok(())
    }

    fn remember(&mut self, world: &World, objects: &Objects) {
        for (key, object) in lake(world, objects) {
            self.versions.insert((key, object.etag.0.clone()), object.bytes.to_vec());
        }
    }

    fn parsed(&self, config: &TableConfig, key: &str, etag: &str) -> Parsed {
        let bytes = &self.versions[&(key.to_owned(), etag.to_owned())];
        parse(&config.mapping(), key, &String::from_utf8_lossy(bytes))
    }

    fn partitions(&self, config: &TableConfig, key: &str, etag: &str) -> BTreeSet<String> {
        self.parsed(config, key, etag).rows.into_iter().map(|(p, _)| p).collect()
    }

    fn committed(&self, table: &str) -> Committed {
        self.tables.get(table).cloned().unwrap_or_default()
    }

    fn expect(&self, world: &World, config: &TableConfig, ask: Ask<'_>, before: &Objects) -> Expected {
        let was = self.committed(config.name);
        let current: BTreeMap<String, String> = lake(world, before)
            .into_iter()
            .filter(|(key, _)| config.globs.iter().any(|g| glob_matches(g, key)))
            .map(|(key, object)| (key, object.etag.0))
            .collect();
        let whole = ask.clean || was.canonical.as_ref().is_some_and(|c| *c != config.mapping().canonical);
        let output = output(world, config.name, before);
        let mark = world.manifest(config.name).and_then(|m| m.publishing);
        let mut dirty_partitions: BTreeSet<String> = mark.iter().flat_map(|m| m.partitions.iter().cloned()).collect();
        let keys: BTreeSet<&String> = output.keys().chain(was.files.keys()).collect();
        let mut dirty = mark.is_some();
        for key in keys {
            let same = output.get(key).zip(was.files.get(key)).is_some_and(|(a, b)| {
                if world.style.listed_tags { a.etag == b.etag } else { a.bytes.len() == b.bytes.len() }
            });
            dirty |= !same;
            if let Some(partition) = partition_of(config.name, key).filter(|_| !same) {
                dirty_partitions.insert(partition.to_owned());
            }
        }
        let prefix = if dirty { "" } else { ask.prefix };
        if whole {
            return Expected { whole, dirty, accepted: current, touched: dirty_partitions };
        }
        let changed: BTreeSet<&String> = was
            .accepted
            .keys()
            .chain(current.keys())
            .filter(|key| was.accepted.get(*key) != current.get(*key))
            .collect();
        let mut entered: BTreeSet<&String> = changed.iter().filter(|k| k.starts_with(prefix)).copied().collect();
        let had = |key: &String| -> BTreeSet<String> {
            let old = was.accepted.get(key).map(|etag| self.partitions(config, key, etag)).unwrap_or_default();
            let fed = contents(config.name, &was.files)
                .into_iter()
                .filter(|(_, files)| files.values().any(|bytes| sources_in(bytes).contains(key)));
            old.into_iter().chain(fed.map(|(p, _)| p)).collect()
        };
        loop {
            let mut touched = dirty_partitions.clone();
            for key in &entered {
                touched.extend(had(key));
                touched.extend(current.get(*key).map(|etag| self.partitions(config, key, etag)).unwrap_or_default());
            }
            let more: Vec<&String> = changed
                .iter()
                .filter(|key| !entered.contains(*key) && had(key).iter().any(|p| touched.contains(p)))
                .copied()
                .collect();
            if more.is_empty() {
                let mut accepted = was.accepted.clone();
                for key in entered {
                    match current.get(key) {
                        Some(etag) => accepted.insert(key.clone(), etag.clone()),
                        None => accepted.remove(key),
                    };
                }
                return Expected { whole, dirty, accepted, touched };
            }
            entered.extend(more);
        }
    }

    fn expected_failure(
        &self,
        world: &World,
        ask: Ask<'_>,
        expected: &BTreeMap<&str, Expected>,
        before: &Objects,
    ) -> Option<RunErrorCode> {
        let lake = lake(world, before);
        let globs = || world.tables.iter().flat_map(|t| &t.globs);
        if !ask.clean && !lake.keys().any(|key| globs().any(|g| glob_matches(g, key))) {
            return Some(RunErrorCode::NoInput);
        }
        for config in world.tables.iter().filter(|_| !ask.clean) {
            let was = self.committed(config.name);
            let orphaned = contents(config.name, &was.files)
                .keys()
                .any(|p| contributors(config.name, &was, p).iter().all(|key| !lake.contains_key(key)));
            if was.layout.is_some_and(|l| l != (config.partitioned, config.wide)) && orphaned {
                return Some(RunErrorCode::CleanRunRequired);
            }
        }
        for config in &world.tables {
            let rejected = expected[config.name].accepted.iter().map(|(k, e)| self.parsed(config, k, e).rejected.len());
            if rejected.sum::<usize>() as u64 > config.max_rejects {
                return Some(RunErrorCode::TooManyRejects);
            }
        }
        None
    }

    fn check_success(
        &mut self,
        world: &World,
        ask: Ask<'_>,
        expected: &BTreeMap<&str, Expected>,
        before: &Objects,
        after: &Objects,
        result: &RunResult,
    ) -> Result<(), String> {
        for config in &world.tables {
            self.check_table(world, config, ask, &expected[config.name], before, after)?;
            let rows: u64 = world
                .manifest(config.name)
                .map_or(0, |m| m.partitions.values().flat_map(|p| &p.files).map(|f| f.rows).sum());
            let told = &result.tables[config.name];
            ensure!(told.rows_written == rows, "{} rows told, {rows} there", told.rows_written);
        }
        self.check_others(world, ask.clean, before, after)
    }

    /// Tables that aren't in the config stay, or go in a clean run.
    fn check_others(&mut self, world: &World, clean: bool, before: &Objects, after: &Objects) -> Result<(), String> {
        for name in ["t", "u"].into_iter().filter(|n| world.tables.iter().all(|t| t.name != *n)) {
            if clean {
                self.tables.remove(name);
                ensure!(output(world, name, after).is_empty(), "table `{name}` was dropped, but not its output");
                ensure!(world.manifest(name).is_none(), "table `{name}` was dropped, but not its manifest");
            } else {
                let same = output(world, name, before) == output(world, name, after);
                ensure!(same, "table `{name}` is not in the config, and was changed");
            }
        }
        Ok(())
    }

    /// Each table is published, or marked, or as before.
    fn after_crash(
        &mut self,
        world: &World,
        ask: Ask<'_>,
        expected: &BTreeMap<&str, Expected>,
        before: &Objects,
        after: &Objects,
        planned: &Objects,
    ) -> Result<(), String> {
        for config in &world.tables {
            let manifest = |objects: &Objects| {
                let key = world.key(&format!("manifests/{}.json", config.name));
                objects.get(&(Bucket::Pipelines, key)).map(|o| o.bytes.clone())
            };
            let same_manifest = manifest(before) == manifest(after);
            if same_manifest && output(world, config.name, before) == output(world, config.name, after) {
                continue;
            }
            let Some(now) = world.manifest(config.name) else { return Err(format!("`{}` has no mark", config.name)) };
            if now.publishing.is_none() {
                self.check_table(world, config, ask, &expected[config.name], before, after)?;
                continue;
            }
            ensure!(!same_manifest, "`{}` was changed under the mark of another run", config.name);
            let planned = contents(config.name, &output(world, config.name, planned));
            self.tables.entry(config.name.to_owned()).or_default().died.push(planned);
        }
        for name in ["t", "u"].into_iter().filter(|n| world.tables.iter().all(|t| t.name != *n)) {
            if world.manifest(name).is_none() {
                self.tables.remove(name);
            }
        }
        Ok(())
    }

    fn check_table(
        &mut self,
        world: &World,
        config: &TableConfig,
        ask: Ask<'_>,
        expected: &Expected,
        before: &Objects,
        after: &Objects,
    ) -> Result<(), String> {
        let table = config.name;
        let mapping = config.mapping();
        let lake = lake(world, before);
        let was = self.committed(table);
        let found = output(world, table, after);
        let there = output(world, table, before);
        let manifest = world.manifest(table);
        let accepted: BTreeMap<String, String> = manifest
            .iter()
            .flat_map(|m| &m.sources)
            .map(|(k, s)| (k.clone(), s.etag.clone().unwrap_or_default()))
            .collect();
        ensure!(accepted == expected.accepted, "`{table}`: sources {accepted:?}, expected {expected:?}");
        ensure!(manifest.iter().all(|m| m.publishing.is_none()), "`{table}`: the mark was left");

        let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (key, etag) in &accepted {
            let parsed = self.parsed(config, key, etag);
            for (partition, row) in parsed.rows {
                rows.entry(partition).or_default().push(row);
            }
            if !parsed.rejected.is_empty() {
                all.insert(relative_rejects_key(table, key), encode_rejects(&mapping, &parsed.rejected));
            }
        }
        for (partition, rows) in &rows {
            for (i, bytes) in encode(&mapping, rows).into_iter().enumerate() {
                all.insert(relative_part_key(table, partition, i), bytes);
            }
        }
        let mut retained = BTreeSet::new();
        for (partition, files) in contents(table, &was.files) {
            if rows.contains_key(&partition) || ask.clean {
                continue;
            }
            if !expected.whole && !expected.touched.contains(&partition) {
                retained.insert(partition);
                all.extend(files);
                continue;
            }
            if contributors(table, &was, &partition).iter().any(|key| lake.contains_key(key)) {
                continue;
            }
            let ours = |key: &String, bytes: &[u8]| {
                let died = was.died.iter().filter_map(|d| d.get(&partition)?.get(key));
                files.get(key).into_iter().chain(died).any(|known| known == bytes)
            };
            let here = there.iter().filter(|(key, _)| partition_of(table, key) == Some(&partition));
            let kept: Vec<_> = here.filter(|(key, o)| ours(key, &o.bytes)).collect();
            if !kept.is_empty() {
                all.extend(kept.into_iter().map(|(key, o)| (key.clone(), o.bytes.to_vec())));
                retained.insert(partition);
            }
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let found_text: BTreeMap<&String, String> = found.iter().map(|(k, o)| (k, text(&o.bytes))).collect();
        let all_text: BTreeMap<&String, String> = all.iter().map(|(k, b)| (k, text(b))).collect();
        ensure!(found_text == all_text, "`{table}` is {found_text:#?}, expected {all_text:#?}");

        for key in was.files.keys().filter(|_| !expected.whole && !expected.dirty) {
            let untouched = partition_of(table, key).is_some_and(|p| !expected.touched.contains(p));
            ensure!(!untouched || found.get(key) == there.get(key), "`{key}` was not touched, but written");
        }
        if let Some(manifest) = &manifest {
            let marked: BTreeSet<_> =
                manifest.partitions.iter().filter(|(_, p)| p.retained).map(|(k, _)| k.clone()).collect();
            ensure!(marked == retained, "`{table}`: retained {marked:?}, expected {retained:?}");
            ensure!(manifest.files().count() == found.len(), "`{table}`: the manifest has other files");
            for file in manifest.files() {
                let object = &found[&file.key];
                let lineage: BTreeSet<String> = file.sources.iter().cloned().collect();
                // Bytes that someone wrote once more have another tag; it can't be seen where listings have none.
                let tags = world.style.listed_tags;
                let same = (!tags || file.etag.as_ref() == Some(&object.etag.0))
                    && file.size == object.bytes.len() as u64
                    && file.sha256 == sha256_hex(&object.bytes)
                    && lineage == sources_in(&object.bytes);
                ensure!(same, "`{}` is not what the manifest says: {file:?}, {:?}", file.key, text(&object.bytes));
            }
        }
        let committed = Committed {
            canonical: manifest.as_ref().map(|_| mapping.canonical),
            layout: manifest.as_ref().map(|_| (config.partitioned, config.wide)),
            accepted,
            files: found,
            died: Vec::new(),
        };
        self.tables.insert(table.to_owned(), committed);
        Ok(())
    }
}

/// The sources whose rows lie in a partition, or may since a run died.
fn contributors(table: &str, was: &Committed, partition: &str) -> BTreeSet<String> {
    let published = contents(table, &was.files);
    let files = published.get(partition).into_iter().chain(was.died.iter().filter_map(|d| d.get(partition)));
    files.flat_map(|f| f.values()).flat_map(|bytes| sources_in(bytes)).collect()
}

fn contents(table: &str, files: &Files) -> Content {
    let mut content = Content::new();
    for (key, object) in files {
        if let Some(partition) = partition_of(table, key) {
            content.entry(partition.to_owned()).or_default().insert(key.clone(), object.bytes.to_vec());
        }
    }
    content
}

/// By relative key.
fn relative(world: &World, objects: &Objects, bucket: Bucket) -> Files {
    let prefix = world.key("");
    let own = objects.iter().filter(|((b, _), _)| *b == bucket);
    own.filter_map(|((_, key), o)| Some((key.strip_prefix(&prefix)?.to_owned(), o.clone()))).collect()
}

pub fn lake(world: &World, objects: &Objects) -> Files {
    relative(world, objects, Bucket::Lake)
}

fn output(world: &World, table: &str, objects: &Objects) -> Files {
    let rejects = relative_rejects_prefix(table);
    let all = relative(world, objects, Bucket::Warehouse);
    all.into_iter().filter(|(key, _)| partition_of(table, key).is_some() || key.starts_with(&rejects)).collect()
}
