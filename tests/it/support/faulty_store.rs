//! A store that injects faults into another store.
//!
//! Every put, copy and deleted key is one write; writes are counted from 1 over all buckets, as are the GETs (ranges
//! too). A fault is set by that count, so that a test can iterate over all of them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{
    Bucket, Capabilities, ETag, Lease, ListPage, LocalStore, ObjectMeta, ObjectReader, RequestCounts, StagedFile,
    StoreError, StoreResult, WriteOptions,
};

/// Whether the write at which the process died was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashTiming {
    BeforeWrite,
    AfterWrite,
}

/// Calls on a bucket. A HEAD is not a GET; `deletes` counts keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub lists: u64,
    pub heads: u64,
    pub gets: u64,
    pub puts: u64,
    pub deletes: u64,
}

/// Time within which the expected concurrent GETs must arrive.
const GATHER_DEADLINE: Duration = Duration::from_secs(60);

type MakeError = Box<dyn FnOnce(Bucket, &str) -> StoreError + Send>;
type Before = Box<dyn FnOnce() + Send>;
type During = Box<dyn FnOnce() -> io::Result<()> + Send>;

#[derive(Default)]
struct State {
    counts: [Counts; 3],
    writes: u64,
    written: Vec<String>,
    gets: u64,
    crash: Option<(u64, CrashTiming)>,
    crashed: bool,
    failing_writes: BTreeMap<u64, MakeError>,
    after_writes: BTreeMap<u64, Before>,
    before_gets: BTreeMap<u64, Before>,
    before_gets_of: BTreeMap<String, Before>,
    before_puts_of: BTreeMap<String, Before>,
    during_gets: BTreeMap<u64, (u64, During)>,
}

/// The wrapper; clones share its state.
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    state: Mutex<State>,
    staged: Arc<Mutex<Vec<String>>>,
    far: Option<RemoteCounters>,
}

/// Counters of a remote store: the concurrent GETs of the lake.
#[derive(Default)]
struct RemoteCounters {
    under_way: Mutex<InFlightGuard>,
    changed: Condvar,
}

#[derive(Default)]
struct InFlightGuard {
    now: usize,
    most: usize,
    /// No GET is answered before this many are in progress.
    wanted: usize,
}

impl RemoteCounters {
    fn begin(&self) {
        let mut under_way = self.under_way.lock().unwrap();
        under_way.now += 1;
        under_way.most = under_way.most.max(under_way.now);
        self.changed.notify_all();
        let missing = |under_way: &mut InFlightGuard| under_way.most < under_way.wanted;
        let (under_way, waited) = self.changed.wait_timeout_while(under_way, GATHER_DEADLINE, missing).unwrap();
        assert!(!waited.timed_out(), "of {} GETs at once there came {}", under_way.wanted, under_way.most);
    }

    fn end(&self) {
        self.under_way.lock().unwrap().now -= 1;
    }
}

/// The action for a write.
enum Verdict {
    Do,
    DoThenDie,
    Fail(StoreError),
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, state: Mutex::default(), staged: Arc::default(), far: None }
    }

    /// A store that reports to be remote, and answers no GET of the lake before `wanted` are in progress.
    pub fn remote(inner: Arc<dyn ObjectStore>, wanted: usize) -> Self {
        let under_way = Mutex::new(InFlightGuard { wanted, ..InFlightGuard::default() });
        Self { far: Some(RemoteCounters { under_way, changed: Condvar::new() }), ..Self::new(inner) }
    }

    /// The maximum number of concurrent GETs of the lake, of a remote store.
    pub fn most_at_once(&self) -> usize {
        self.far.as_ref().map_or(0, |far| far.under_way.lock().unwrap().most)
    }

    /// From the nth write on (counted from the first ever), every call fails.
    pub fn crash_at_write(&self, n: u64, dies: CrashTiming) {
        self.lock().crash = Some((n, dies));
    }

    pub fn is_crashed(&self) -> bool {
        self.lock().crashed
    }

    /// Calls `act` once the nth write from now has completed.
    pub fn after_write(&self, n: u64, act: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        let nth = state.writes + n;
        state.after_writes.insert(nth, Box::new(act));
    }

    /// Another process takes over, and no crash is pending.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.crash = None;
        state.crashed = false;
    }

    /// The nth write is not applied and returns this error; later ones are applied.
    pub fn fail_write(&self, n: u64, error: impl FnOnce(Bucket, &str) -> StoreError + Send + 'static) {
        self.lock().failing_writes.insert(n, Box::new(error));
    }

    /// Runs before the nth GET.
    pub fn before_get(&self, n: u64, act: impl FnOnce() + Send + 'static) {
        self.lock().before_gets.insert(n, Box::new(act));
    }

    /// Runs before the next GET of a key.
    pub fn before_get_of(&self, key: &str, act: impl FnOnce() + Send + 'static) {
        self.lock().before_gets_of.insert(key.to_owned(), Box::new(act));
    }

    /// Runs when the body of the nth GET has yielded `offset` bytes (or all, if it has fewer) and is read again. Its
    /// error, if any, is the body's from then on: `BodyChanged.into()` simulates a file that changed under the reader.
    /// A ranged GET, which has no body, runs it after the read and fails with the error as `Transient`.
    pub fn during_get(&self, n: u64, offset: u64, act: impl FnOnce() -> io::Result<()> + Send + 'static) {
        self.lock().during_gets.insert(n, (offset, Box::new(act)));
    }

    pub fn counts(&self, bucket: Bucket) -> Counts {
        self.lock().counts[bucket as usize]
    }

    /// Attempted writes so far, in all buckets, including failed ones.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// `put key` and `delete key` for each of them, in order.
    pub fn written(&self) -> Vec<String> {
        self.lock().written.clone()
    }

    /// Keys of staged files, in order.
    pub fn staged(&self) -> Vec<String> {
        self.staged.lock().unwrap().clone()
    }

    /// The next put of `key` waits until `files` files are staged.
    pub fn await_staged(&self, key: &str, files: usize) {
        let staged = Arc::clone(&self.staged);
        let wait = move || {
            let until = Instant::now() + GATHER_DEADLINE;
            while staged.lock().unwrap().len() < files {
                assert!(Instant::now() < until, "of {files} files these were staged: {:?}", staged.lock().unwrap());
                std::thread::yield_now();
            }
        };
        self.lock().before_puts_of.insert(key.to_owned(), Box::new(wait));
    }

    /// Attempted GETs so far, in all buckets.
    pub fn gets(&self) -> u64 {
        self.lock().gets
    }

    /// Resets all counters to 0, and with them the numbers of the faults.
    pub fn reset_counts(&self) {
        let mut state = self.lock();
        state.counts = Default::default();
        state.writes = 0;
        state.written.clear();
        self.staged.lock().unwrap().clear();
        state.gets = 0;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn call(&self, bucket: Bucket, key: &str, count: impl FnOnce(&mut Counts)) -> StoreResult<()> {
        let mut state = self.lock();
        if state.crashed {
            return Err(died(bucket, key));
        }
        count(&mut state.counts[bucket as usize]);
        Ok(())
    }

    fn verdict(&self, bucket: Bucket, key: &str, count: impl FnOnce(&mut Counts)) -> StoreResult<(u64, Verdict)> {
        let mut what = "put";
        self.call(bucket, key, |counts| {
            let deletes = counts.deletes;
            count(counts);
            what = if counts.deletes > deletes { "delete" } else { "put" };
        })?;
        let mut state = self.lock();
        state.written.push(format!("{what} {key}"));
        state.writes += 1;
        let n = state.writes;
        if let Some(error) = state.failing_writes.remove(&n) {
            drop(state);
            return Ok((n, Verdict::Fail(error(bucket, key))));
        }
        let verdict = match state.crash {
            Some((at, dies)) if n >= at => {
                state.crashed = true;
                match dies {
                    CrashTiming::BeforeWrite => Verdict::Fail(died(bucket, key)),
                    CrashTiming::AfterWrite => Verdict::DoThenDie,
                }
            }
            _ => Verdict::Do,
        };
        Ok((n, verdict))
    }

    fn write<T>(
        &self,
        bucket: Bucket,
        key: &str,
        count: impl FnOnce(&mut Counts),
        act: impl FnOnce() -> StoreResult<T>,
    ) -> StoreResult<T> {
        let (nth, verdict) = self.verdict(bucket, key, count)?;
        let done = match verdict {
            Verdict::Do => act(),
            Verdict::DoThenDie => act().and_then(|_| Err(died(bucket, key))),
            Verdict::Fail(error) => Err(error),
        };
        let after = self.lock().after_writes.remove(&nth);
        after.into_iter().for_each(|act| act());
        done
    }

    fn start_get(&self, bucket: Bucket, key: &str) -> StoreResult<Option<(u64, During)>> {
        self.call(bucket, key, |counts| counts.gets += 1)?;
        let mut state = self.lock();
        state.gets += 1;
        let n = state.gets;
        let before = [state.before_gets.remove(&n), state.before_gets_of.remove(key)];
        let during = state.during_gets.remove(&n);
        drop(state);
        before.into_iter().flatten().for_each(|act| act());
        Ok(during)
    }
}

fn died(bucket: Bucket, key: &str) -> StoreError {
    StoreError::Transient { bucket, key: key.to_owned(), operation: "crashed at", source: io::Error::other("crash") }
}

struct FaultyBody {
    inner: Box<dyn Read + Send>,
    until: u64,
    act: Option<During>,
    failed: bool,
}

impl Read for FaultyBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other("the body failed before"));
        }
        if self.until > 0 {
            let most = buffer.len().min(usize::try_from(self.until).unwrap_or(usize::MAX));
            let read = self.inner.read(&mut buffer[..most])?;
            self.until -= read as u64;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
        }
        if let Some(Err(error)) = self.act.take().map(|act| act()) {
            self.failed = true;
            return Err(error);
        }
        self.inner.read(buffer)
    }
}

struct FaultyStaged<'a> {
    store: &'a FaultyStore,
    bucket: Bucket,
    key: String,
    inner: Box<dyn StagedFile + 'a>,
}

impl StagedFile for FaultyStaged<'_> {
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let Self { store, bucket, key, inner } = *self;
        store.write(bucket, &key, |counts| counts.puts += 1, || inner.put(options))
    }
}

impl ObjectStore for FaultyStore {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        self.call(bucket, prefix, |counts| counts.lists += 1)?;
        self.inner.list(bucket, prefix, delimiter, after, limit)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        self.call(bucket, key, |counts| counts.heads += 1)?;
        self.inner.head(bucket, key)
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        let during = self.start_get(bucket, key)?;
        let ObjectReader { meta, body } = self.inner.get(bucket, key, if_match)?;
        Ok(match during {
            None => ObjectReader { meta, body },
            Some((until, act)) => {
                ObjectReader { meta, body: Box::new(FaultyBody { inner: body, until, act: Some(act), failed: false }) }
            }
        })
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        let during = self.start_get(bucket, key)?;
        let far = self.far.as_ref().filter(|_| bucket == Bucket::Lake);
        far.inspect(|far| far.begin());
        let bytes = self.inner.get_range(bucket, key, range, if_match);
        far.inspect(|far| far.end());
        let bytes = bytes?;
        if let Some((_, act)) = during {
            let key = key.to_owned();
            act().map_err(|source| StoreError::Transient { bucket, key, operation: "reading", source })?;
        }
        Ok(bytes)
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        let before = self.lock().before_puts_of.remove(key);
        before.into_iter().for_each(|act| act());
        self.write(bucket, key, |counts| counts.puts += 1, || self.inner.put(bucket, key, body, options))
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write(bucket, key, |counts| counts.puts += 1, || self.inner.put_file(bucket, key, file, options))
    }

    /// Staging is not a write; publishing the staged file is one.
    fn stage_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        sha256: &str,
        lease: &'s dyn Lease,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        self.call(bucket, key, |_| {})?;
        let staged = self.inner.stage_file(bucket, key, file, sha256, lease, keep_going)?;
        let faulty = |inner| Box::new(FaultyStaged { store: self, bucket, key: key.to_owned(), inner });
        Ok(staged.map(|inner| {
            self.staged.lock().unwrap().push(key.to_owned());
            faulty(inner) as Box<dyn StagedFile>
        }))
    }

    fn sync(&self, writes: usize) -> StoreResult<()> {
        self.call(Bucket::Warehouse, "", |_| {})?;
        self.inner.sync(writes)
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write(to.0, to.1, |counts| counts.puts += 1, || self.inner.copy(from, to, options))
    }

    /// Key by key, so that a crash may happen between them.
    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        self.call(bucket, "", |_| {})?;
        keys.iter().try_for_each(|key| {
            let act = || self.inner.delete(bucket, std::slice::from_ref(key), options);
            self.write(bucket, key, |counts| counts.deletes += 1, act)
        })
    }

    fn local(&self) -> Option<&dyn LocalStore> {
        self.inner.local().filter(|_| self.far.is_none())
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        self.call(Bucket::Pipelines, "", |_| {})?;
        self.inner.capabilities()
    }

    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String> {
        self.inner.address(bucket, key)
    }

    fn clock_skew(&self) -> Option<TimeDelta> {
        self.inner.clock_skew()
    }

    fn request_counts(&self) -> RequestCounts {
        self.inner.request_counts()
    }
}

mod tests {
    use super::super::memory_store::MemoryStore;
    use super::*;
    use lakemill::ports::store::BodyChanged;

    const LAKE: Bucket = Bucket::Lake;

    fn put(store: &dyn ObjectStore, key: &str) -> StoreResult<ObjectMeta> {
        store.put(LAKE, key, key.as_bytes(), &WriteOptions::default())
    }

    fn keys(store: &MemoryStore) -> Vec<String> {
        store.contents(LAKE).into_keys().collect()
    }

    fn stores() -> (Arc<MemoryStore>, FaultyStore) {
        let memory = Arc::new(MemoryStore::new());
        (Arc::clone(&memory), FaultyStore::new(memory))
    }

    #[test]
    fn every_call_fails_between_crash_and_restart() {
        for (dies, expected) in [(CrashTiming::BeforeWrite, vec!["a"]), (CrashTiming::AfterWrite, vec!["a", "b"])] {
            let (memory, store) = stores();
            store.crash_at_write(2, dies);
            put(&store, "a").unwrap();
            put(&store, "b").unwrap_err();
            assert!(store.is_crashed());
            store.head(LAKE, "a").unwrap_err();
            store.list(LAKE, "", None, None, 1).unwrap_err();
            store.get(LAKE, "a", None).unwrap_err();
            store.delete(LAKE, &["a".to_owned()], &WriteOptions::default()).unwrap_err();
            assert_eq!(keys(&memory), expected);
            store.restart();
            put(&store, "c").unwrap();
        }
    }

    #[test]
    fn crash_may_interrupt_a_delete_between_keys() {
        let (memory, store) = stores();
        let all: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        all.iter().for_each(|key| drop(put(&store, key).unwrap()));
        store.crash_at_write(5, CrashTiming::AfterWrite);
        store.delete(LAKE, &all, &WriteOptions::default()).unwrap_err();
        assert_eq!(keys(&memory), ["c"]);
        assert_eq!(memory.fork().contents(LAKE), memory.contents(LAKE));
        assert_eq!(store.counts(LAKE), Counts { puts: 3, deletes: 2, ..Counts::default() });
    }

    #[test]
    fn chosen_write_fails_with_the_chosen_error() {
        let (memory, store) = stores();
        store.fail_write(1, |bucket, key| StoreError::DiskFull { bucket, key: key.to_owned() });
        assert!(matches!(put(&store, "a"), Err(StoreError::DiskFull { .. })));
        put(&store, "a").unwrap();
        assert_eq!((keys(&memory), store.writes()), (vec!["a".to_owned()], 2));
        store.reset_counts();
        assert_eq!(store.writes(), 0);
    }

    #[test]
    fn object_changes_before_or_during_a_get() {
        let (memory, store) = stores();
        let tag = put(&store, "key").unwrap().etag;
        let inner = Arc::clone(&memory);
        store.before_get(1, move || drop(inner.put(LAKE, "key", b"other", &WriteOptions::default())));
        assert!(matches!(store.get(LAKE, "key", tag.as_ref()), Err(StoreError::PreconditionFailed { .. })));
        for (n, offset, whole) in [(2, 3, b"oth".as_slice()), (3, 0, b""), (4, 99, b"other")] {
            store.during_get(n, offset, || Err(BodyChanged.into()));
            let mut body = store.get(LAKE, "key", None).unwrap().body;
            let mut read = Vec::new();
            let error = body.read_to_end(&mut read).unwrap_err();
            assert!(BodyChanged::is_in(&error));
            assert_eq!(read, whole);
            body.read_to_end(&mut read).unwrap_err();
        }
        store.during_get(5, 2, || Err(io::ErrorKind::ConnectionReset.into()));
        assert!(matches!(store.get_range(LAKE, "key", 0..2, None), Err(StoreError::Transient { .. })));
        assert_eq!(store.gets(), 5);
        assert_eq!(store.get_range(LAKE, "key", 1..3, None).unwrap(), b"th");
    }
}
