//! Computes the expected tables after a run, naively: from all versions of all sources.

use std::collections::{BTreeMap, BTreeSet};

use lakemill::domain::digest::sha256_hex;
use lakemill::domain::job::{ChangedKeys, RunErrorCode, RunResult};
use lakemill::domain::layout::{relative_data_key, relative_rejects_key, relative_rejects_prefix};
use lakemill::ports::store::Bucket;

use super::convert::{Parsed, SourceRows, encode, encode_rejects, groups, parse, segments};
use crate::support::delta_log::DeltaLog;
use crate::support::memory_store::{Object, Objects};

use super::world::{Outage, RunOptions, TableConfig, World};
use crate::support::manifests::Manifest;

type Files = BTreeMap<String, Object>;

pub const SOURCES: [&str; 8] =
    ["a/1.csv", "a/2.csv", "a/3.csv", "a/deep/3.csv", "b/1.csv", "b/2.csv", "b/3.csv", "b/readme.txt"];

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

/// A table as of its last commit.
#[derive(Debug, Clone, Default)]
struct Committed {
    canonical: Option<String>,
    /// Tag of each source.
    accepted: BTreeMap<String, String>,
    /// Sources that were removed from the lake.
    archived: BTreeSet<String>,
}

/// The expected work of a run on a table.
#[derive(Debug, Clone)]
struct Expected {
    /// The table is rebuilt from all its sources.
    rebuild: bool,
    accepted: BTreeMap<String, String>,
    /// Accepted sources that are not in the lake.
    archived: BTreeSet<String>,
    /// Sources that must be read.
    read: BTreeSet<String>,
    /// Whether the run would lose rows of archived sources that the config keeps.
    loses_rows: bool,
    /// All sources in the lake. Sources of damaged files are read as they are now.
    current: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub struct Oracle {
    /// Every version of every source, by key and tag.
    versions: BTreeMap<(String, String), Vec<u8>>,
    tables: BTreeMap<String, Committed>,
    /// Objects of the warehouse that other programs changed: they stay until a run rebuilds their files.
    tampered: BTreeSet<String>,
    /// Whether the last run succeeded.
    pub has_succeeded: bool,
}

macro_rules! ensure {
    ($holds:expr, $($says:tt)*) => {
        if !$holds {
            return Err(format!($($says)*));
        }
    };
}

impl Oracle {
    /// Another program wrote or deleted this object of the warehouse.
    pub fn tamper(&mut self, key: &str) {
        self.tampered.insert(key.to_owned());
    }

    /// A verification and the next run rebuilt all damaged files of a table but those that `stay`.
    pub fn repaired(&mut self, table: &str, stay: &BTreeSet<String>) {
        self.tampered.retain(|key| !is_of(table, key) || stay.contains(key));
    }

    /// Runs the world's pipeline, while readers read its tables after its nth write.
    pub fn run_beside_readers(
        &mut self,
        world: &World,
        options: RunOptions<'_>,
        outage: Option<Outage>,
        verify_and_repair: u64,
    ) -> Result<(), String> {
        let before = world.fork();
        let seen = world.verify_and_repair(verify_and_repair);
        let tampered = self.tampered.clone();
        self.run(world, options, outage)?;
        let Some(seen) = seen.lock().unwrap().take() else { return Ok(()) };
        let seen = world.with_store(seen);
        let left = self.tampered.clone();
        self.tampered.extend(tampered);
        let is_whole = outage.is_none() && self.has_succeeded;
        let checked =
            ["t", "u"].iter().try_for_each(|table| self.check_readers(table, &before, &seen, world, is_whole));
        self.tampered = left;
        checked
    }

    /// The product's reader and a reader by globs saw the table before or after a run, whole. `is_whole`: the run left
    /// no objects behind.
    fn check_readers(
        &self,
        table: &str,
        before: &World,
        seen: &World,
        after: &World,
        is_whole: bool,
    ) -> Result<(), String> {
        let Ok(manifest) = Manifest::try_read(&*seen.memory, &seen.slug, table) else {
            return Err(format!("a reader of `{table}` misses a shard"));
        };
        let others = [before, after].map(|world| world.manifest(table));
        ensure!(others.contains(&manifest), "a reader of `{table}` saw neither the table before nor after the run");
        self.check_files(seen, table, &seen.memory.objects())?;
        let files =
            |world: &World| -> BTreeSet<String> { output(world, table, &world.memory.objects()).into_keys().collect() };
        let known: BTreeSet<String> = files(before).into_iter().chain(files(after)).collect();
        let odd: Vec<String> = files(seen).into_iter().filter(|key| is_whole && !known.contains(key)).collect();
        ensure!(odd.is_empty(), "a reader that globs `{table}` saw files of neither: {odd:?}");
        let id = |manifest: &Option<Manifest>| Some(manifest.as_ref()?.root.delta.as_ref()?.id.clone());
        let log = match delta_log(seen, table) {
            Ok(Some(log)) => log,
            Ok(None) => return Ok(()),
            // While a log is deleted, it is incomplete.
            Err(_) if id(&others[0]).is_none() || id(&others[0]) != id(&others[1]) => return Ok(()),
            Err(error) => return Err(error),
        };
        // A run that died may have left the log a version behind.
        let earlier = match delta_log(before, table) {
            Err(_) if id(&others[0]).is_none() => None,
            found => found?.map(|log| log.files),
        };
        let named = others.iter().flatten().map(|manifest| data_files(table, manifest));
        let known: Vec<BTreeSet<String>> = named.chain(earlier).collect();
        ensure!(known.contains(&log.files), "a reader of the log of `{table}` saw {:?}, of {known:?}", log.files);
        let there = output(seen, table, &seen.memory.objects());
        let is_there = |key: &String| there.contains_key(key) || self.tampered.contains(key);
        let lost = log.files.iter().find(|path| !is_there(&format!("{table}/{path}")));
        ensure!(lost.is_none(), "the log of `{table}` names {lost:?}, which isn't there");
        Ok(())
    }

    /// Runs the world's pipeline and checks all results.
    pub fn run(&mut self, world: &World, options: RunOptions<'_>, outage: Option<Outage>) -> Result<(), String> {
        self.has_succeeded = false;
        let before = world.memory.objects();
        self.remember(world, &before);
        let options = RunOptions {
            changed: options.changed.filter(|keys| self.are_enough(world, options, keys, &before)),
            ..options
        };
        let expected: BTreeMap<&str, Expected> =
            world.tables.iter().map(|t| (t.name, self.expect(world, t, options, &before))).collect();
        let failure = self.expected_failure(world, options, &expected, &before);
        let planned = (outage.is_some() && failure.is_none()).then(|| world.fork().run(options));
        world.take_log();
        world.set_outage(outage);
        let result = world.run(options);
        world.set_outage(None);
        let (_, gets) = world.take_log();
        let after = world.memory.objects();
        self.has_succeeded = result.is_ok();
        match (result, failure) {
            (Err(error), Some(code)) => {
                // A store failure may come first, while it deletes leftovers of an earlier run.
                let is_outage = outage.is_some() && error.error.code == RunErrorCode::S3Error;
                let is_lost = self.lost_archived(&expected, error.error.code);
                ensure!(error.error.code == code || is_outage || is_lost, "expected {code:?}, found {error:?}");
                ensure!(!error.partially_published, "nothing was to be published: {error:?}");
                // It may have deleted leftovers of an earlier run.
                ensure!(roots(&before) == roots(&after), "a failed run changed the tables");
                world.tables.iter().try_for_each(|table| self.check_files(world, table.name, &after))
            }
            (Ok(result), Some(code)) => Err(format!("expected {code:?}, found {result:?}")),
            (Ok(result), None) => {
                if self.tampered.is_empty() {
                    let wanted: usize = expected.values().map(|table| table.read.len()).sum();
                    ensure!(gets as usize == wanted, "{gets} sources were read, expected {wanted}: {expected:?}");
                }
                // After its commit a run deletes what it retired; if that fails, the next run does it.
                self.check_success(world, options, &expected, (&before, &after), &result, outage.is_some())
            }
            (Err(error), None) if self.lost_archived(&expected, error.error.code) => {
                ensure!(roots(&before) == roots(&after), "a failed run changed the tables");
                Ok(())
            }
            (Err(error), None) => {
                let Some(planned) = planned else { return Err(format!("expected success, found {error:?}")) };
                ensure!(planned.is_ok(), "without the outage: {planned:?}");
                ensure!(error.error.code == RunErrorCode::S3Error, "in an outage: {error:?}");
                self.after_crash(world, &expected, &before, &after, error.partially_published)
            }
        }
    }

    /// Whether a run may fail since others touched files with rows of sources that have left the lake.
    fn lost_archived(&self, expected: &BTreeMap<&str, Expected>, code: RunErrorCode) -> bool {
        let mut tables = expected.values();
        let is_one_gone = tables.any(|table| table.accepted.keys().any(|key| !table.current.contains_key(key)));
        code == RunErrorCode::ArchivedSourcesMissing && is_one_gone && !self.tampered.is_empty()
    }

    /// A clean run of the same sources into an empty store gives the same files.
    pub fn compare_with_clean(&self, world: &World) -> Result<(), String> {
        for table in &world.tables {
            let mut fresh = world.empty_store();
            // Archived sources may have other keys than those that the globs match now.
            fresh.tables = vec![TableConfig { globs: vec!["**/*.csv"], ..table.clone() }];
            let was = self.tables.get(table.name).cloned().unwrap_or_default();
            for (key, tag) in &was.accepted {
                let text = &self.versions[&(key.clone(), tag.clone())];
                fresh.put(key, &String::from_utf8_lossy(text));
            }
            let result = fresh.run(RunOptions { clean: true, ..RunOptions::default() });
            ensure!(result.is_ok(), "a clean run into an empty store: {result:?}");
            let (Some(mine), Some(clean)) = (world.manifest(table.name), fresh.manifest(table.name)) else { continue };
            let files =
                |manifest: &Manifest| -> BTreeSet<String> { manifest.files().map(|file| file.key.clone()).collect() };
            ensure!(files(&mine) == files(&clean), "files {:?}, of a clean run {:?}", files(&mine), files(&clean));
            ensure!(mine.members == clean.members, "members differ from a clean run's");
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

    /// Whether a run checks only the keys named by events: no table is rebuilt, and there is a source.
    fn are_enough(&self, world: &World, options: RunOptions<'_>, keys: &ChangedKeys, before: &Objects) -> bool {
        let hinted = RunOptions { changed: Some(keys), ..options };
        let mut any = false;
        for config in &world.tables {
            let Some(manifest) = world.manifest(config.name) else { return false };
            // After a run with a prefix, sources may be new to its globs.
            if manifest.root.schema.globs.as_ref() != Some(&config.mapping().files) {
                return false;
            }
            if !config.keeps_rows() && manifest.root.totals.archived > 0 {
                return false;
            }
            let expected = self.expect(world, config, hinted, before);
            if expected.rebuild {
                return false;
            }
            any |= expected.accepted.keys().any(|key| !expected.archived.contains(key));
        }
        any && matches!(keys, ChangedKeys::Only(_))
    }

    fn expect(&self, world: &World, config: &TableConfig, options: RunOptions<'_>, before: &Objects) -> Expected {
        let was = self.tables.get(config.name).cloned().unwrap_or_default();
        let all = lake(world, before);
        let current: BTreeMap<String, String> = all
            .iter()
            .filter(|(key, _)| config.globs.iter().any(|g| glob_matches(g, key)))
            .map(|(key, object)| (key.clone(), object.etag.0.clone()))
            .collect();
        let rebuild = options.clean || was.canonical.as_ref() != Some(&config.mapping().canonical);
        if rebuild {
            let of_prefix = |key: &&String| key.starts_with(options.prefix);
            let read: BTreeSet<String> = current.keys().filter(of_prefix).cloned().collect();
            let accepted = current.iter().filter(|(key, _)| read.contains(*key));
            let accepted = accepted.map(|(key, tag)| (key.clone(), tag.clone())).collect();
            let loses_rows = config.keeps_rows() && was.accepted.keys().any(|key| !all.contains_key(key));
            return Expected { rebuild, accepted, archived: BTreeSet::new(), read, loses_rows, current };
        }
        let (mut accepted, mut archived, mut read) = (was.accepted.clone(), was.archived.clone(), BTreeSet::new());
        let known: BTreeSet<&String> = was.accepted.keys().chain(current.keys()).collect();
        let is_seen = |key: &str| match options.changed {
            Some(ChangedKeys::Only(keys)) => keys.contains(key),
            Some(ChangedKeys::All) | None => true,
        };
        for key in known.into_iter().filter(|key| key.starts_with(options.prefix) && is_seen(key)) {
            archived.remove(key);
            match current.get(key) {
                None if config.keeps_rows() && !all.contains_key(key) => drop(archived.insert(key.clone())),
                None => drop(accepted.remove(key)),
                Some(tag) if was.accepted.get(key) != Some(tag) => {
                    accepted.insert(key.clone(), tag.clone());
                    read.insert(key.clone());
                }
                Some(_) => {}
            }
        }
        Expected { rebuild, accepted, archived, read, loses_rows: false, current }
    }

    fn expected_failure(
        &self,
        world: &World,
        options: RunOptions<'_>,
        expected: &BTreeMap<&str, Expected>,
        before: &Objects,
    ) -> Option<RunErrorCode> {
        if expected.values().any(|expected| expected.loses_rows) {
            return Some(RunErrorCode::ArchivedSourcesMissing);
        }
        let lake = lake(world, before);
        let globs = || world.tables.iter().flat_map(|t| &t.globs);
        let keeps_all = world.tables.iter().all(TableConfig::keeps_rows)
            && world.tables.iter().any(|table| self.tables.get(table.name).is_some_and(|was| !was.accepted.is_empty()));
        if !options.clean
            && !keeps_all
            && options.changed.is_none()
            && !lake.keys().any(|key| globs().any(|g| glob_matches(g, key)))
        {
            return Some(RunErrorCode::NoInput);
        }
        for config in &world.tables {
            let expected = &expected[config.name];
            let was = self.tables.get(config.name).map(|was| &was.accepted);
            let is_unchanged = !expected.rebuild && was == Some(&expected.accepted);
            let rejected = expected.accepted.iter().map(|(k, e)| self.parsed(config, k, e).rejected.len());
            if !is_unchanged && rejected.sum::<usize>() as u64 > config.max_rejects {
                return Some(RunErrorCode::TooManyRejects);
            }
        }
        None
    }

    fn check_success(
        &mut self,
        world: &World,
        options: RunOptions<'_>,
        expected: &BTreeMap<&str, Expected>,
        (before, after): (&Objects, &Objects),
        result: &RunResult,
        may_leave: bool,
    ) -> Result<(), String> {
        for config in &world.tables {
            self.check_table(world, config, &expected[config.name], after, may_leave)?;
            check_log(world, config, may_leave)?;
            let rows = world.manifest(config.name).map_or(0, |manifest| manifest.rows());
            let reported = &result.tables[config.name];
            ensure!(reported.rows_written == rows, "{} rows reported, {rows} stored", reported.rows_written);
        }
        self.check_others(world, options.clean, before, after)
    }

    /// Tables that aren't in the config stay; a clean run deletes them.
    fn check_others(&mut self, world: &World, clean: bool, before: &Objects, after: &Objects) -> Result<(), String> {
        for name in ["t", "u"].into_iter().filter(|n| world.tables.iter().all(|t| t.name != *n)) {
            if clean {
                self.tables.remove(name);
                let left: Vec<String> = output(world, name, after).into_keys().collect();
                let left: Vec<&String> = left.iter().filter(|key| !self.tampered.contains(*key)).collect();
                ensure!(left.is_empty(), "table `{name}` was dropped, but not its output: {left:?}");
                ensure!(world.manifest(name).is_none(), "table `{name}` was dropped, but not its manifest");
                ensure!(delta_log(world, name)?.is_none(), "table `{name}` was dropped, but not its log");
            } else {
                let same = output(world, name, before) == output(world, name, after);
                ensure!(same, "table `{name}` is not in the config, and was changed");
            }
        }
        Ok(())
    }

    /// Each table is committed, or as before.
    fn after_crash(
        &mut self,
        world: &World,
        expected: &BTreeMap<&str, Expected>,
        before: &Objects,
        after: &Objects,
        partially_published: bool,
    ) -> Result<(), String> {
        let mut any = false;
        for config in &world.tables {
            let root = |objects: &Objects| {
                let key = world.key(&format!("manifests/{}.json", config.name));
                objects.get(&(Bucket::Pipelines, key)).map(|o| o.bytes.clone())
            };
            if root(before) == root(after) {
                self.check_files(world, config.name, after)?;
            } else {
                any = true;
                self.check_table(world, config, &expected[config.name], after, true)?;
            }
        }
        for name in ["t", "u"].into_iter().filter(|n| world.tables.iter().all(|t| t.name != *n)) {
            if world.manifest(name).is_none() {
                any |= self.tables.remove(name).is_some();
            }
        }
        ensure!(partially_published || !any, "a table was committed, yet the run says that none was");
        Ok(())
    }

    /// All files of the manifest exist, unless other programs changed them.
    fn check_files(&self, world: &World, table: &str, objects: &Objects) -> Result<(), String> {
        let found = output(world, table, objects);
        for file in world.manifest(table).iter().flat_map(|manifest| manifest.files()) {
            let object = found.get(&file.key);
            let same = object.is_some_and(|o| o.bytes.len() as u64 == file.size && sha256_hex(&o.bytes) == file.sha256);
            ensure!(same || self.tampered.contains(&file.key), "`{}` is not what the manifest says", file.key);
        }
        Ok(())
    }

    /// `may_leave`: the run died after its commit, and files that it retired may remain.
    fn check_table(
        &mut self,
        world: &World,
        config: &TableConfig,
        expected: &Expected,
        after: &Objects,
        may_leave: bool,
    ) -> Result<(), String> {
        let (table, mapping) = (config.name, config.mapping());
        let found = output(world, table, after);
        let manifest = world.manifest(table);
        let accepted: BTreeMap<String, String> = manifest
            .iter()
            .flat_map(|m| &m.sources)
            // A source of a lost file has no tag until a run reads it.
            .map(|(k, s)| (k.clone(), s.etag.clone().or_else(|| expected.accepted.get(k).cloned()).unwrap_or_default()))
            .collect();
        let all: BTreeSet<&String> = accepted.keys().chain(expected.accepted.keys()).collect();
        for key in all {
            let (is, planned, now) = (accepted.get(key), expected.accepted.get(key), expected.current.get(key));
            let is_right = is == planned || (is == now && !self.tampered.is_empty());
            ensure!(is_right, "`{table}`: source `{key}` is {is:?}, expected {expected:?}");
        }
        let all = self.files(config, &accepted);
        let named: BTreeSet<&String> = manifest.iter().flat_map(|m| m.files()).map(|file| &file.key).collect();
        ensure!(named == all.keys().collect(), "`{table}`: the manifest names {named:?}, expected {:?}", all.keys());
        if expected.rebuild && !may_leave {
            self.tampered.retain(|key| !is_of(table, key));
        }
        for (key, bytes) in &all {
            let same = found.get(key).is_some_and(|object| *object.bytes == **bytes);
            ensure!(same || self.tampered.contains(key), "`{key}` is {:?}, expected {bytes:?}", found.get(key));
        }
        for key in found.keys().filter(|key| !all.contains_key(*key) && !may_leave) {
            ensure!(self.tampered.contains(key), "`{key}` belongs to nothing");
        }
        if let Some(manifest) = &manifest {
            self.check_manifest(world, config, manifest, after, may_leave)?;
        }
        let canonical = manifest.as_ref().map(|_| mapping.canonical);
        let archived = manifest.iter().flat_map(|manifest| &manifest.sources).filter(|(_, source)| source.archived);
        let archived: BTreeSet<String> = archived.map(|(key, _)| key.clone()).collect();
        ensure!(archived == expected.archived, "`{table}`: archived are {archived:?}, expected {expected:?}");
        self.tables.insert(table.to_owned(), Committed { canonical, accepted, archived });
        Ok(())
    }

    /// The files of the sources, by key.
    fn files(&self, config: &TableConfig, accepted: &BTreeMap<String, String>) -> BTreeMap<String, Vec<u8>> {
        let (table, mapping) = (config.name, config.mapping());
        let mut partitions: BTreeMap<String, Vec<SourceRows>> = BTreeMap::new();
        let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (key, etag) in accepted {
            let parsed = self.parsed(config, key, etag);
            for (partition, rows) in parsed.by_partition(key) {
                partitions.entry(partition).or_default().push(rows);
            }
            if !parsed.rejected.is_empty() {
                let bytes = encode_rejects(&mapping, &parsed.rejected);
                all.insert(relative_rejects_key(table, key, &sha256_hex(&bytes)), bytes);
            }
        }
        for (partition, sources) in partitions {
            for group in groups(segments(&mapping, sources)) {
                let first = group[0].0[0].source.clone();
                let text: String = group.iter().map(|(segment, _)| encode(&mapping, segment)).collect();
                let key = relative_data_key(table, &partition, &first, &sha256_hex(text.as_bytes()), 0);
                all.insert(key, text.into_bytes());
            }
        }
        all
    }

    fn check_manifest(
        &self,
        world: &World,
        config: &TableConfig,
        manifest: &Manifest,
        after: &Objects,
        may_leave: bool,
    ) -> Result<(), String> {
        let totals = manifest.root.totals;
        let sum = |of: fn(&lakemill::domain::table_log::entries::SourceEntry) -> u64| -> u64 {
            manifest.sources.values().map(of).sum()
        };
        let files = manifest.groups.values().flat_map(|group| &group.files);
        let expected = (
            manifest.sources.len() as u64,
            sum(|source| source.rows_read),
            sum(|source| source.rows_rejected),
            manifest.rows(),
            files.clone().count() as u64,
            files.map(|file| file.size).sum::<u64>(),
            manifest.partitions().len() as u64,
            manifest.rejects.len() as u64,
        );
        let found = (
            totals.sources,
            totals.rows_read,
            totals.rows_rejected,
            totals.rows,
            totals.files,
            totals.bytes,
            totals.partitions,
            totals.rejects_files,
        );
        ensure!(found == expected, "totals are {found:?}, expected {expected:?}");
        if may_leave {
            return Ok(());
        }
        let prefix = world.key(&format!("manifests/{}/", config.name));
        let shards: BTreeSet<String> = manifest.root.shards().map(|name| format!("{prefix}{name}.json.zst")).collect();
        let objects = after.keys().filter(|(bucket, key)| *bucket == Bucket::Pipelines && key.starts_with(&prefix));
        let objects: BTreeSet<String> = objects.map(|(_, key)| key.clone()).collect();
        ensure!(objects == shards, "the manifest has the objects {objects:?}, and names {shards:?}");
        Ok(())
    }
}

/// The roots of all tables.
fn roots(objects: &Objects) -> Vec<(&String, &Object)> {
    let is_root = |key: &str| key.rsplit_once("/manifests/").is_some_and(|(_, name)| !name.contains('/'));
    objects.iter().filter(|((_, key), _)| is_root(key)).map(|((_, key), object)| (key, object)).collect()
}

fn is_of(table: &str, key: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.starts_with('/'))
        || key.starts_with(&relative_rejects_prefix(table))
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

/// Without its log.
fn output(world: &World, table: &str, objects: &Objects) -> Files {
    let output = relative(world, objects, Bucket::Warehouse).into_iter();
    output.filter(|(key, _)| is_of(table, key) && !is_of_log(key)).collect()
}

pub fn is_of_log(key: &str) -> bool {
    key.contains("/_delta_log/")
}

/// A table's Delta log as its readers replay it.
fn delta_log(world: &World, table: &str) -> Result<Option<DeltaLog>, String> {
    let prefix = format!("{table}/_delta_log/");
    let all = relative(world, &world.memory.objects(), Bucket::Warehouse);
    DeltaLog::replay(all.iter().filter_map(|(key, object)| Some((key.strip_prefix(&prefix)?, &*object.bytes))))
}

/// Relative to the table's folder.
fn data_files(table: &str, manifest: &Manifest) -> BTreeSet<String> {
    let files = manifest.groups.values().flat_map(|group| &group.files);
    files.map(|file| file.key[table.len() + 1..].to_owned()).collect()
}

/// The log has each commit since it began once, and the files of the last. `may_leave`: the last may be missing.
fn check_log(world: &World, config: &TableConfig, may_leave: bool) -> Result<(), String> {
    let table = config.name;
    let log = match delta_log(world, table) {
        // A run that died while it deleted the log.
        Err(_) if may_leave => return Ok(()),
        log => log?,
    };
    let Some(manifest) = world.manifest(table).filter(|manifest| manifest.root.delta.is_some()) else {
        ensure!(log.is_none() || may_leave, "table `{table}` has a log, and its manifest none");
        return Ok(());
    };
    ensure!(config.delta, "the manifest of `{table}` has a log, and its config none");
    let Some(DeltaLog { files, sequences, .. }) = log else {
        ensure!(may_leave, "table `{table}` has no log");
        return Ok(());
    };
    let last = manifest.root.sequence;
    let is_behind = may_leave && sequences.last().is_some_and(|sequence| *sequence < last);
    let first = sequences[0];
    let unbroken: Vec<u64> = (first..first + sequences.len() as u64).collect();
    ensure!(sequences == unbroken, "the log of `{table}` has the commits {sequences:?}");
    ensure!(is_behind || sequences.last() == Some(&last), "the log ends with {sequences:?}, the table with {last}");
    let named = data_files(table, &manifest);
    ensure!(is_behind || files == named, "the log of `{table}` has {files:?}, the table {named:?}");
    Ok(())
}
