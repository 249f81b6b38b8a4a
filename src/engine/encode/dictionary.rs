//! Assigns codes to the distinct values of a column, in order of first appearance.
//!
//! Invariant: codes, and whether a dictionary is full, depend on the values alone, so the hash has no seed.
//! [`PROBES_MAX`] bounds the cost of values that collide on purpose.

use arrow::datatypes::{ArrowNativeType, ToByteSlice};

use super::bounds::{ValueOrder, compare_bytes};
use super::values::{START_BYTES, TextStart, Texts};

/// Largest dictionary, in bytes of its plain form.
const BYTES_MAX: usize = 1 << 20;
/// Number of first values by which an unprofitable dictionary is detected and abandoned.
const FIRST_VALUES: usize = 4_096;
/// Failed probes per page; only colliding values need more.
const PROBES_MAX: usize = 1 << 20;
/// Integers of a smaller range than this are looked up in a direct table.
const DIRECT_RANGE_MAX: usize = 4_096;
/// An empty slot; used slots hold the code plus 1.
const EMPTY: u32 = 0;
const SLOTS_MIN: usize = 64;
/// Smaller tables grow faster.
const GROWN_SLOTS: usize = 1 << 14;
/// Smaller tables are kept mostly empty.
const SPARSE_SLOTS: usize = 1 << 12;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The values don't fit a dictionary, or would gain nothing from it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DictionaryFull;

/// The limits of a profitable dictionary.
#[derive(Debug, Clone, Copy)]
pub(super) struct DictionaryLimits {
    /// Maximum bytes of its plain form.
    bytes_max: usize,
    /// Distinct values among the first ones.
    first_distinct_max: usize,
}

impl DictionaryLimits {
    /// For a dictionary in use.
    pub(super) fn in_use() -> Self {
        Self { bytes_max: BYTES_MAX, first_distinct_max: usize::MAX }
    }

    /// For a new dictionary: its bytes, and distinct values among the first ones, in percent.
    pub(super) fn for_first_page(bytes_max: usize, first_distinct_percent: usize) -> Self {
        Self { bytes_max: bytes_max.min(BYTES_MAX), first_distinct_max: FIRST_VALUES * first_distinct_percent / 100 }
    }

    fn check(self, bytes: usize, distinct: usize, seen: usize) -> Result<(), DictionaryFull> {
        let over = bytes > self.bytes_max || seen <= FIRST_VALUES && distinct > self.first_distinct_max;
        if over { Err(DictionaryFull) } else { Ok(()) }
    }
}

/// Looks up the values of a page.
pub(super) trait Dictionary {
    type Values<'a>: Copy;

    /// Writes the codes of `values` to `codes`. If full, some values may have been added.
    fn encode(
        &mut self,
        values: Self::Values<'_>,
        limits: DictionaryLimits,
        codes: &mut Vec<u32>,
    ) -> Result<(), DictionaryFull>;

    fn len(&self) -> usize;

    /// Removes the values after `length`; ends lookups.
    fn close(&mut self, length: usize);

    /// Size of the values in plain form.
    fn plain_bytes(&self) -> usize;

    /// Appends the values in plain form.
    fn put_plain(&self, out: &mut Vec<u8>);

    /// Memory held, in bytes.
    fn held_bytes(&self) -> usize;
}

/// An integer of 4 or 8 bytes, or a float of the same bits.
pub(super) trait Word: ArrowNativeType + Eq {
    fn bits(self) -> u64;
    /// The signed distance above `base`; for lower values, something large.
    fn offset_from(self, base: Self) -> usize;
}

impl Word for i32 {
    fn bits(self) -> u64 {
        u64::from(self as u32)
    }

    fn offset_from(self, base: Self) -> usize {
        (i64::from(self) - i64::from(base)) as usize
    }
}

impl Word for i64 {
    fn bits(self) -> u64 {
        self as u64
    }

    fn offset_from(self, base: Self) -> usize {
        if self < base { usize::MAX } else { self.wrapping_sub(base) as usize }
    }
}

/// The first slot to probe for a hash, in a table of `1 << (64 - shift)` slots.
fn slot_of(hash: u64, shift: u32) -> usize {
    (hash >> shift) as usize
}

fn hash_word(bits: u64) -> u64 {
    // Floats of few digits differ only in their high bits, which a multiplication doesn't move down.
    (bits ^ bits >> 32).wrapping_mul(MULTIPLIER)
}

/// Open addressing: codes by the hashes of their values.
#[derive(Debug)]
struct HashSlots {
    slots: Vec<u32>,
    shift: u32,
}

impl HashSlots {
    fn new(count: usize) -> Self {
        let count = count.next_power_of_two().max(SLOTS_MIN);
        // Not `vec!`: a page of zeroed system memory that is read before it is written faults twice.
        let mut slots = Vec::with_capacity(count);
        slots.resize(count, EMPTY);
        Self { slots, shift: 64 - count.trailing_zeros() }
    }

    /// Grows the table, for values of these hashes.
    fn grow(&mut self, hashes: impl Iterator<Item = u64>) {
        *self = Self::new(self.slots.len() * if self.slots.len() < GROWN_SLOTS { 4 } else { 2 });
        let mask = self.slots.len() - 1;
        for (code, hash) in hashes.enumerate() {
            let mut at = slot_of(hash, self.shift);
            while self.slots[at] != EMPTY {
                at = (at + 1) & mask;
            }
            self.slots[at] = code as u32 + 1;
        }
    }

    /// Whether collisions would be frequent. Small tables use more slots, since collisions cost more than memory.
    fn needs_growth(&self, values: usize) -> bool {
        values * if self.slots.len() < SPARSE_SLOTS { 4 } else { 2 } > self.slots.len()
    }
}

#[derive(Debug)]
enum Lookup<T> {
    /// By the distance above the base.
    Direct(T, Vec<u32>),
    Hashed(HashSlots),
}

/// Distinct words.
#[derive(Debug)]
pub(super) struct WordDictionary<T> {
    values: Vec<T>,
    lookup: Lookup<T>,
}

/// Word values to look up; integers with their range.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordValues<'a, T> {
    pub values: &'a [T],
    /// Signed minimum and maximum, if known.
    pub range: Option<(T, T)>,
}

impl<T: Word> Default for WordDictionary<T> {
    fn default() -> Self {
        Self { values: Vec::new(), lookup: Lookup::Direct(T::default(), Vec::new()) }
    }
}

impl<T: Word> WordDictionary<T> {
    /// Chooses the lookup for values of this range.
    fn prepare(&mut self, range: Option<(T, T)>) {
        let Lookup::Direct(base, table) = &self.lookup else { return };
        let mut wanted = range;
        if let Some((min, max)) = &mut wanted
            && !table.is_empty()
        {
            if min.offset_from(*base) < table.len() && max.offset_from(*base) < table.len() {
                return;
            }
            for &value in &self.values {
                *min = if value < *min { value } else { *min };
                *max = if value > *max { value } else { *max };
            }
        }
        self.lookup = match wanted {
            Some((min, max)) if max.offset_from(min) < DIRECT_RANGE_MAX => {
                let mut table = vec![EMPTY; max.offset_from(min) + 1];
                for (code, value) in self.values.iter().enumerate() {
                    table[value.offset_from(min)] = code as u32 + 1;
                }
                Lookup::Direct(min, table)
            }
            _ => {
                let mut slots = HashSlots::new(self.values.len());
                slots.grow(self.values.iter().map(|value| hash_word(value.bits())));
                Lookup::Hashed(slots)
            }
        };
    }

    fn encode_some(&mut self, values: &[T], codes: &mut Vec<u32>) -> Result<(), DictionaryFull> {
        match &mut self.lookup {
            Lookup::Direct(base, table) => {
                codes.extend(values.iter().map(|&value| {
                    let slot = &mut table[value.offset_from(*base)];
                    if *slot == EMPTY {
                        self.values.push(value);
                        *slot = self.values.len() as u32;
                    }
                    *slot - 1
                }));
                Ok(())
            }
            Lookup::Hashed(slots) => {
                let start = codes.len();
                codes.resize(start + values.len(), 0);
                let repeats = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
                // Comparing with the previous value only pays if most values repeat.
                let look_up = if repeats * 4 > values.len() * 3 { look_up::<T, true> } else { look_up::<T, false> };
                look_up(&mut self.values, slots, values, &mut codes[start..])
            }
        }
    }
}

/// Writes the codes of `words`; new ones are added to `values`.
fn look_up<T: Word, const REPEATING: bool>(
    values: &mut Vec<T>,
    slots: &mut HashSlots,
    words: &[T],
    codes: &mut [u32],
) -> Result<(), DictionaryFull> {
    let mut probes = 0;
    let mut last = None;
    for (code, &word) in codes.iter_mut().zip(words) {
        if REPEATING
            && let Some((value, code_of)) = last
            && value == word
        {
            *code = code_of;
            continue;
        }
        let mask = slots.slots.len() - 1;
        let mut at = slot_of(hash_word(word.bits()), slots.shift);
        *code = loop {
            let slot = slots.slots[at & mask];
            if slot == EMPTY {
                values.push(word);
                slots.slots[at & mask] = values.len() as u32;
                if slots.needs_growth(values.len()) {
                    slots.grow(values.iter().map(|value| hash_word(value.bits())));
                }
                break values.len() as u32 - 1;
            }
            if values[slot as usize - 1] == word {
                break slot - 1;
            }
            at += 1;
            probes += 1;
        };
        last = Some((word, *code));
    }
    if probes > PROBES_MAX { Err(DictionaryFull) } else { Ok(()) }
}

impl<T: Word + PartialOrd> Dictionary for WordDictionary<T> {
    type Values<'a> = WordValues<'a, T>;

    fn encode(
        &mut self,
        words: WordValues<'_, T>,
        limits: DictionaryLimits,
        codes: &mut Vec<u32>,
    ) -> Result<(), DictionaryFull> {
        codes.clear();
        if words.values.is_empty() {
            return Ok(());
        }
        self.prepare(words.range);
        codes.reserve(words.values.len());
        for some in words.values.chunks(FIRST_VALUES) {
            self.encode_some(some, codes)?;
            limits.check(self.plain_bytes(), self.values.len(), codes.len())?;
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn close(&mut self, length: usize) {
        self.values.truncate(length);
        self.values.shrink_to_fit();
        self.lookup = Lookup::Direct(T::default(), Vec::new());
    }

    fn plain_bytes(&self) -> usize {
        size_of_val(self.values.as_slice())
    }

    fn put_plain(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.values.to_byte_slice());
    }

    fn held_bytes(&self) -> usize {
        let lookup = match &self.lookup {
            Lookup::Direct(_, table) => table.capacity(),
            Lookup::Hashed(slots) => slots.slots.capacity(),
        };
        self.values.capacity() * size_of::<T>() + lookup * size_of::<u32>()
    }
}

/// Distinct byte values.
#[derive(Debug, Default)]
pub(super) struct ByteDictionary {
    /// Concatenated.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// The start, length and hash of each value, while values are looked up.
    heads: Vec<ValueHead>,
    slots: Option<HashSlots>,
    /// Whether the plain form has the length of each value.
    with_lengths: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct ValueHead {
    start: TextStart,
    length: u32,
    hash: u32,
}

impl ValueHead {
    #[inline(always)]
    fn of(value: &[u8], start: TextStart) -> Self {
        let mut hash = value.len() as u64;
        let mut take = |word: u64| hash = (hash.rotate_left(29) ^ word).wrapping_mul(MULTIPLIER);
        start.words.into_iter().for_each(&mut take);
        if value.len() > START_BYTES {
            value[START_BYTES..].as_chunks::<8>().0.iter().for_each(|word| take(u64::from_le_bytes(*word)));
            // The last word may overlap the previous ones.
            take(value.last_chunk::<8>().map_or(0, |last| u64::from_le_bytes(*last)));
        }
        let hash = hash_word(hash) >> 32;
        Self { start, length: value.len() as u32, hash: hash as u32 }
    }

    /// Whether the start contains the whole value.
    fn is_whole(&self) -> bool {
        self.length as usize <= START_BYTES
    }

    /// The hash with its bits in the position that slots use.
    fn hash(&self) -> u64 {
        u64::from(self.hash) << 32
    }
}

/// Byte values to look up.
#[derive(Clone, Copy)]
pub(super) enum Bytes<'a> {
    Texts(Texts<'a>),
    Fixed(&'a [u8], usize),
}

/// The state of looking up a page's values.
struct DictionaryLookup<'a> {
    slots: HashSlots,
    probes: usize,
    limits: DictionaryLimits,
    codes: &'a mut Vec<u32>,
}

impl ByteDictionary {
    fn value(&self, code: usize) -> &[u8] {
        let start = if code == 0 { 0 } else { self.ends[code - 1] as usize };
        &self.bytes[start..self.ends[code] as usize]
    }

    /// The value's code, or the free slot for it.
    #[inline(always)]
    fn find(&self, slots: &HashSlots, head: &ValueHead, value: &[u8], probes: &mut usize) -> Result<u32, usize> {
        let mask = slots.slots.len() - 1;
        let mut at = slot_of(head.hash(), slots.shift) & mask;
        loop {
            let slot = slots.slots[at];
            if slot == EMPTY {
                return Err(at);
            }
            let code = slot as usize - 1;
            if self.heads[code] == *head && (head.is_whole() || self.value(code) == value) {
                return Ok(slot - 1);
            }
            at = (at + 1) & mask;
            *probes += 1;
        }
    }

    /// Adds the value's code to the page.
    #[inline(always)]
    fn take(
        &mut self,
        lookup: &mut DictionaryLookup<'_>,
        value: &[u8],
        start: TextStart,
    ) -> Result<(), DictionaryFull> {
        let head = ValueHead::of(value, start);
        match self.find(&lookup.slots, &head, value, &mut lookup.probes) {
            Ok(code) => lookup.codes.push(code),
            Err(at) => {
                lookup.codes.push(self.insert(&mut lookup.slots, at, head, value));
                lookup.limits.check(self.plain_bytes(), self.ends.len(), lookup.codes.len())?;
            }
        }
        if lookup.probes > PROBES_MAX { Err(DictionaryFull) } else { Ok(()) }
    }

    #[inline(never)]
    fn insert(&mut self, slots: &mut HashSlots, at: usize, head: ValueHead, value: &[u8]) -> u32 {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
        self.heads.push(head);
        slots.slots[at] = self.ends.len() as u32;
        if slots.needs_growth(self.ends.len()) {
            slots.grow(self.heads.iter().map(ValueHead::hash));
        }
        self.ends.len() as u32 - 1
    }

    /// The minimum and maximum of the values with these codes.
    pub(super) fn range_of(&self, codes: &[u32], order: ValueOrder) -> Option<(&[u8], &[u8])> {
        let mut used = vec![false; self.ends.len()];
        codes.iter().for_each(|&code| used[code as usize] = true);
        let values = used.iter().enumerate().filter(|(_, used)| **used).map(|(code, _)| self.value(code));
        values.fold(None, |range, value| {
            let (min, max) = range.unwrap_or((value, value));
            let lower = compare_bytes(value, min, order).is_lt();
            let higher = compare_bytes(value, max, order).is_gt();
            Some((if lower { value } else { min }, if higher { value } else { max }))
        })
    }
}

impl Dictionary for ByteDictionary {
    type Values<'a> = Bytes<'a>;

    fn encode(
        &mut self,
        values: Bytes<'_>,
        limits: DictionaryLimits,
        codes: &mut Vec<u32>,
    ) -> Result<(), DictionaryFull> {
        codes.clear();
        self.with_lengths = matches!(values, Bytes::Texts(_));
        let mut lookup = DictionaryLookup {
            slots: self.slots.take().unwrap_or_else(|| HashSlots::new(0)),
            probes: 0,
            limits,
            codes,
        };
        match values {
            Bytes::Texts(texts) => texts.try_each(|value, start| self.take(&mut lookup, value, start))?,
            Bytes::Fixed(bytes, width) => {
                bytes.chunks_exact(width).try_for_each(|value| self.take(&mut lookup, value, TextStart::of(value)))?;
            }
        }
        self.slots = Some(lookup.slots);
        Ok(())
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn close(&mut self, length: usize) {
        self.ends.truncate(length);
        self.ends.shrink_to_fit();
        self.bytes.truncate(self.ends.last().map_or(0, |&end| end as usize));
        self.bytes.shrink_to_fit();
        self.heads = Vec::new();
        self.slots = None;
    }

    fn plain_bytes(&self) -> usize {
        self.bytes.len() + if self.with_lengths { self.ends.len() * size_of::<u32>() } else { 0 }
    }

    fn put_plain(&self, out: &mut Vec<u8>) {
        if !self.with_lengths {
            out.extend_from_slice(&self.bytes);
            return;
        }
        out.reserve(self.plain_bytes());
        for code in 0..self.ends.len() {
            let value = self.value(code);
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value);
        }
    }

    fn held_bytes(&self) -> usize {
        let slots = self.slots.as_ref().map_or(0, |slots| slots.slots.capacity());
        let words = self.ends.capacity() + slots;
        self.bytes.capacity() + words * size_of::<u32>() + self.heads.capacity() * size_of::<ValueHead>()
    }
}
