//! Encodes the database as ICU's resource bundle `zoneinfo64`, which DuckDB reads.
//!
//! A zone has explicit transitions up to [`RULES_FROM`] and from then on a yearly rule. The few kinds of rules that ICU
//! can't represent (none is in use) have transitions up to [`TRANSITIONS_UNTIL`] instead.
//!
//! The format is that of `uresdata.h`, version 1.1: a header, a root, indexes, keys, then resources, each addressed by its
//! place in words of 32 bits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::{Dst, TimeZone};

use super::rule::{DaylightRule, YearlyRule};

/// From this year on rules apply. The last explicit transitions of any zone are in 2087.
const RULES_FROM: i16 = 2100;
const TRANSITIONS_UNTIL: i16 = 2500;
/// Daylight-saving time of ICU's types, in s. Only its sum with the standard offset is used.
const SAVING: i32 = 3_600;

/// Words before the keys: the root and the indexes.
const HEAD_WORDS: usize = 1 + INDEXES;
const INDEXES: usize = 6;

const STRING: u32 = 0;
const BINARY: u32 = 1;
const TABLE: u32 = 2;
const INTEGER: u32 = 7;
const ARRAY: u32 = 8;
const VECTOR: u32 = 14;
/// The bits of a resource's word with its offset or its value.
const VALUE_BITS: u32 = 28;

/// The bundle of `zones`, which are sorted by name, plus a zone `marker`.
pub fn bundle<'a>(
    version: &str,
    zones: impl Iterator<Item = (&'a str, &'a TimeZone, &'a [u8])>,
    marker: &str,
) -> Vec<u8> {
    let utc = TimeZone::UTC;
    let mut all: BTreeMap<&str, (&TimeZone, &[u8])> = zones.map(|(name, rules, data)| (name, (rules, data))).collect();
    all.insert(marker, (&utc, b""));
    // Names with the same data become one zone with aliases.
    let mut same: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (at, (_, data)) in all.values().enumerate() {
        same.entry(data).or_default().push(at);
    }

    let mut out = Words::new();
    let mut rules = Rules::default();
    let mut made = Vec::with_capacity(all.len());
    for (at, (zone, data)) in all.values().enumerate() {
        let links = same.get(data).map_or(&[] as &[usize], Vec::as_slice);
        made.push(match links.first() {
            Some(first) if *first != at => integer(as_i32(*first)),
            _ => out.zone(zone, data, links, &mut rules),
        });
    }
    let names: Vec<u32> = all.keys().map(|name| out.string(name)).collect();
    let (zones, names) = (out.array(&made), out.array(&names));
    // DuckDB doesn't use the region of a zone.
    let world = out.string("001");
    let regions = out.array(&vec![world; made.len()]);
    let rules = rules.0.into_iter().map(|(values, name)| (name, out.vector(&values))).collect();
    let rules = out.table(rules);
    let version = out.string(version);
    let root = out.table(BTreeMap::from([
        ("Names".to_owned(), names),
        ("Regions".to_owned(), regions),
        ("Rules".to_owned(), rules),
        ("TZVersion".to_owned(), version),
        ("Zones".to_owned(), zones),
    ]));
    out.finish(root)
}

/// Rules that zones share, with their names.
#[derive(Default)]
struct Rules(BTreeMap<DaylightRule, String>);

impl Rules {
    fn name(&mut self, rule: DaylightRule) -> String {
        let next = format!("rule-{:04}", self.0.len());
        self.0.entry(rule).or_insert(next).clone()
    }
}

/// Resources, addressed from the end of a header that is written last: it contains the keys, whose number isn't known
/// before.
struct Words {
    words: Vec<u32>,
    keys: Vec<u8>,
    key_offsets: BTreeMap<String, u16>,
}

/// Maximum size of keys in bytes: there are a few, and a name for each rule.
const KEYS_BYTES: usize = 8_192;
const KEYS_WORDS: usize = KEYS_BYTES / 4;

impl Words {
    fn new() -> Self {
        Self { words: Vec::new(), keys: Vec::new(), key_offsets: BTreeMap::new() }
    }

    fn zone(&mut self, zone: &TimeZone, data: &[u8], links: &[usize], rules: &mut Rules) -> u32 {
        let yearly = YearlyRule::of(data);
        let until = match &yearly {
            Some(YearlyRule::Unsupported) => TRANSITIONS_UNTIL,
            Some(YearlyRule::Rule { .. }) | None => RULES_FROM,
        };
        let first = zone.to_offset_info(Timestamp::MIN);
        let mut types = vec![split(first.offset().seconds(), first.dst())];
        let (mut early, mut middle, mut late, mut map) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for transition in zone.following(Timestamp::MIN) {
            let at = transition.timestamp();
            if TimeZone::UTC.to_datetime(at).year() >= until {
                break;
            }
            let ty = split(transition.offset().seconds(), transition.dst());
            let number = types.iter().position(|known| *known == ty).unwrap_or_else(|| {
                types.push(ty);
                types.len() - 1
            });
            let seconds = at.as_second();
            let [high, low] = [(seconds >> 32) as i32, seconds as i32];
            match i32::try_from(seconds) {
                Ok(seconds) => middle.push(seconds),
                Err(_) if seconds < 0 => early.extend([high, low]),
                Err(_) => late.extend([high, low]),
            }
            map.push(u8::try_from(number).unwrap_or(u8::MAX));
        }
        let links: Vec<i32> = links.iter().map(|at| as_i32(*at)).collect();
        let types: Vec<i32> = types.into_iter().flatten().collect();
        // ICU would read a table with a single resource as an alias.
        let mut table = BTreeMap::from([
            ("links".to_owned(), self.vector(&links)),
            ("typeOffsets".to_owned(), self.vector(&types)),
        ]);
        if !map.is_empty() {
            table.insert("typeMap".to_owned(), self.binary(&map));
        }
        for (key, values) in [("transPre32", early), ("trans", middle), ("transPost32", late)] {
            if !values.is_empty() {
                table.insert(key.to_owned(), self.vector(&values));
            }
        }
        if let Some(YearlyRule::Rule { standard, rule }) = yearly {
            let name = rules.name(rule);
            table.insert("finalRule".to_owned(), self.string(&name));
            table.insert("finalRaw".to_owned(), integer(standard));
            table.insert("finalYear".to_owned(), integer(i32::from(RULES_FROM)));
        }
        self.table(table)
    }

    fn place(&self, kind: u32) -> u32 {
        kind << VALUE_BITS | as_u32(HEAD_WORDS + KEYS_WORDS + self.words.len())
    }

    fn string(&mut self, text: &str) -> u32 {
        let place = self.place(STRING);
        let mut units: Vec<u16> = text.encode_utf16().collect();
        self.words.push(as_u32(units.len()));
        units.push(0);
        self.units(&units);
        place
    }

    fn vector(&mut self, values: &[i32]) -> u32 {
        let place = self.place(VECTOR);
        self.words.push(as_u32(values.len()));
        self.words.extend(values.iter().map(|value| *value as u32));
        place
    }

    fn array(&mut self, resources: &[u32]) -> u32 {
        let place = self.place(ARRAY);
        self.words.push(as_u32(resources.len()));
        self.words.extend(resources);
        place
    }

    fn binary(&mut self, bytes: &[u8]) -> u32 {
        let place = self.place(BINARY);
        self.words.push(as_u32(bytes.len()));
        self.words.extend(words_of(bytes));
        place
    }

    /// Keys are sorted, as lookups expect.
    fn table(&mut self, entries: BTreeMap<String, u32>) -> u32 {
        let mut units = vec![u16::try_from(entries.len()).unwrap_or(u16::MAX)];
        units.extend(entries.keys().map(|key| self.key(key)));
        let place = self.place(TABLE);
        self.units(&units);
        self.words.extend(entries.values());
        place
    }

    /// The offset of a key in bytes.
    fn key(&mut self, key: &str) -> u16 {
        let next = u16::try_from(HEAD_WORDS * 4 + self.keys.len()).unwrap_or(u16::MAX);
        *self.key_offsets.entry(key.to_owned()).or_insert_with(|| {
            self.keys.extend_from_slice(key.as_bytes());
            self.keys.push(0);
            next
        })
    }

    /// Pairs of 16 bits, padded to whole words.
    fn units(&mut self, units: &[u16]) {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_ne_bytes()).collect();
        self.words.extend(words_of(&bytes));
    }

    fn finish(mut self, root: u32) -> Vec<u8> {
        const NO_FALLBACK: u32 = 1;
        let top = as_u32(HEAD_WORDS + KEYS_WORDS + self.words.len());
        let longest_table = 1_000;
        self.keys.resize(KEYS_BYTES, 0);
        let indexes = [as_u32(INDEXES), as_u32(HEAD_WORDS + KEYS_WORDS), top, top, longest_table, NO_FALLBACK];
        let words = std::iter::once(root).chain(indexes).chain(words_of(&self.keys)).chain(self.words);
        header().into_iter().chain(words.flat_map(u32::to_ne_bytes)).collect()
    }
}

/// The first bytes of every ICU data file.
fn header() -> Vec<u8> {
    const LENGTH: u16 = 32;
    let is_big_endian = u8::from(cfg!(target_endian = "big"));
    let mut bytes = LENGTH.to_ne_bytes().to_vec();
    bytes.extend([0xda, 0x27]);
    bytes.extend(20_u16.to_ne_bytes());
    bytes.extend([0, 0, is_big_endian, 0, 2, 0]);
    bytes.extend(b"ResB");
    bytes.extend([1, 1, 0, 0, 1, 4, 0, 0]);
    bytes.resize(usize::from(LENGTH), 0);
    bytes
}

/// Standard offset and daylight saving of a type.
fn split(offset: i32, dst: Dst) -> [i32; 2] {
    let saving = if dst.is_dst() { SAVING } else { 0 };
    [offset - saving, saving]
}

fn integer(value: i32) -> u32 {
    INTEGER << VALUE_BITS | (value as u32 & ((1 << VALUE_BITS) - 1))
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks(4).map(|piece| {
        let mut word = [0; 4];
        word[..piece.len()].copy_from_slice(piece);
        u32::from_ne_bytes(word)
    })
}

/// All counts are far below the limit.
fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn as_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
