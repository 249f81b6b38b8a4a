//! Encodes values without a dictionary, and decides how long a dictionary is tried.

use arrow::datatypes::ToByteSlice;
use parquet::basic::Encoding;

use super::bounds::{self, ValueBounds, ValueOrder};
use super::delta::{Delta, put_deltas};
use super::dictionary::{ByteDictionary, Bytes, Dictionary, DictionaryLimits, Word, WordDictionary, WordValues};
use super::values::{TextStart, Texts, WORD_BYTES};
use crate::domain::pipeline::Encodings;

/// The percentage of distinct values among a column's first ones above which no dictionary is built: text costs more to
/// look up, and compression finds its repetitions.
const TEXT_DISTINCT_PERCENT_MAX: usize = 75;
const FIRST_NUMBERS_PERCENT_MAX: usize = 90;
/// As above, for numbers that take at most five eighths of their bytes without a dictionary.
const FIRST_PACKED_PERCENT_MAX: usize = 50;

/// Times are stored in microseconds, and most are whole milliseconds.
const COMMON_FACTOR: i64 = 1_000;

fn range_of_texts(texts: Texts<'_>) -> Option<(&[u8], &[u8])> {
    let mut range: Option<TextRange<'_>> = None;
    texts.each(|text, prefix| match &mut range {
        Some(range) => range.take(text, prefix),
        None => range = Some(TextRange::of(text, text)),
    });
    range.map(|range| (range.min, range.max))
}

/// The minimum and maximum of texts.
struct TextRange<'a> {
    min: &'a [u8],
    max: &'a [u8],
    /// Length of the common prefix of both, and therefore of all texts between them, in words.
    common: usize,
    /// The words after the common prefix of minimum and maximum, padded with zeros.
    words: (u64, u64),
}

impl<'a> TextRange<'a> {
    fn of(min: &'a [u8], max: &'a [u8]) -> Self {
        let (words, others) = (min.as_chunks::<WORD_BYTES>().0, max.as_chunks::<WORD_BYTES>().0);
        let common = words.iter().zip(others).take_while(|(word, other)| word == other).count() * WORD_BYTES;
        let word_of = |text: &[u8]| TextStart::of(&text[common..]).words[0];
        Self { min, max, common, words: (word_of(min), word_of(max)) }
    }

    /// Widens to include `text`, whose first word is `prefix`.
    #[inline(always)]
    fn take(&mut self, text: &'a [u8], prefix: u64) {
        if self.word_of(text, prefix).is_none_or(|word| word <= self.words.0 || word >= self.words.1) {
            self.widen(text);
        }
    }

    /// The word of `text` after the common prefix, if it has the prefix and a whole word.
    #[inline(always)]
    fn word_of(&self, text: &[u8], prefix: u64) -> Option<u64> {
        if self.common == 0 {
            return Some(prefix);
        }
        let (before, after) = text.split_at_checked(self.common)?;
        let word = u64::from_be_bytes(*after.first_chunk()?);
        // Word by word, since there are few.
        let mut pairs = before.as_chunks::<WORD_BYTES>().0.iter().zip(self.min.as_chunks::<WORD_BYTES>().0);
        pairs.all(|(a, b)| u64::from_ne_bytes(*a) == u64::from_ne_bytes(*b)).then_some(word)
    }

    #[inline(never)]
    fn widen(&mut self, text: &'a [u8]) {
        if text < self.min {
            *self = Self::of(text, self.max);
        } else if text > self.max {
            *self = Self::of(self.min, text);
        }
    }
}

/// The current page, and an alternative.
#[derive(Default)]
pub(super) struct PageBuffers {
    pub codes: Vec<u32>,
    pub lengths: Vec<i32>,
    pub body: Vec<u8>,
    pub compressed: Vec<u8>,
    pub other_body: Vec<u8>,
    pub other_compressed: Vec<u8>,
}

/// How values are encoded without a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectEncoding {
    /// Packed, if the type allows it and it is smaller.
    Packed,
    Plain,
}

/// A page's values, and their encoding without a dictionary.
pub(super) trait PageValues {
    type Dictionary: Dictionary + Default;

    fn words(&self) -> <Self::Dictionary as Dictionary>::Values<'_>;

    /// The bounds; cheaper to find with codes.
    fn bounds(&self, coded: Option<(&Self::Dictionary, &[u32])>) -> Option<ValueBounds>;

    fn put_direct(&self, direct: DirectEncoding, buffers: &mut PageBuffers) -> Encoding;

    /// The limits of the first page's dictionary, if the values take `direct_bytes` without it.
    fn limits(&self, direct_bytes: usize) -> DictionaryLimits;

    /// For text, the bytes of its values.
    fn text_bytes(&self) -> Option<usize> {
        None
    }

    /// Whether values without a dictionary are packed, so that compression gains little.
    fn is_packed(&self) -> bool {
        false
    }

    /// Whether all values are multiples of 1000, as times of whole seconds or milliseconds are. Packing hides this
    /// redundancy from compression.
    fn all_multiples_of_1000(&self) -> bool {
        false
    }
}

pub(super) struct DirectNumbers<'a, T> {
    words: WordValues<'a, T>,
    bounds: Option<ValueBounds>,
    is_float: bool,
}

impl<'a, T: Word> DirectNumbers<'a, T> {
    pub(super) fn new(values: &'a [T], range: Option<(T, T)>, bounds: Option<ValueBounds>, order: ValueOrder) -> Self {
        // The signed range of mixed signs differs from the unsigned one.
        let range = range.filter(|(min, max)| min <= max);
        Self { words: WordValues { values, range }, bounds, is_float: order == ValueOrder::Float }
    }
}

impl<T: Word + Delta> PageValues for DirectNumbers<'_, T> {
    type Dictionary = WordDictionary<T>;

    fn words(&self) -> WordValues<'_, T> {
        self.words
    }

    fn bounds(&self, _coded: Option<(&WordDictionary<T>, &[u32])>) -> Option<ValueBounds> {
        self.bounds.clone()
    }

    fn put_direct(&self, direct: DirectEncoding, buffers: &mut PageBuffers) -> Encoding {
        let plain = self.words.values.to_byte_slice();
        let start = buffers.body.len();
        if direct == DirectEncoding::Packed && !self.is_float {
            put_deltas(self.words.values, &mut buffers.body);
            if buffers.body.len() - start <= plain.len() / 20 * 19 {
                return Encoding::DELTA_BINARY_PACKED;
            }
            buffers.body.truncate(start);
        }
        buffers.body.extend_from_slice(plain);
        Encoding::PLAIN
    }

    fn limits(&self, direct_bytes: usize) -> DictionaryLimits {
        let is_small = direct_bytes <= size_of_val(self.words.values) / 8 * 5;
        let percent = if is_small { FIRST_PACKED_PERCENT_MAX } else { FIRST_NUMBERS_PERCENT_MAX };
        DictionaryLimits::for_first_page(direct_bytes, percent)
    }

    fn is_packed(&self) -> bool {
        !self.is_float
    }

    fn all_multiples_of_1000(&self) -> bool {
        !self.is_float && self.words.values.iter().all(|value| value.wide() % COMMON_FACTOR == 0)
    }
}

/// Texts, and their encoding without a dictionary.
pub(super) struct DirectTexts<'a> {
    pub texts: Texts<'a>,
    pub encodings: Encodings,
}

impl PageValues for DirectTexts<'_> {
    type Dictionary = ByteDictionary;

    fn words(&self) -> Bytes<'_> {
        Bytes::Texts(self.texts)
    }

    fn bounds(&self, coded: Option<(&ByteDictionary, &[u32])>) -> Option<ValueBounds> {
        let range = match coded {
            Some((dictionary, codes)) => dictionary.range_of(codes, ValueOrder::Text),
            None => range_of_texts(self.texts),
        };
        ValueBounds::from_bytes(range, ValueOrder::Text)
    }

    fn put_direct(&self, _: DirectEncoding, buffers: &mut PageBuffers) -> Encoding {
        match self.encodings {
            Encodings::Compatible => {
                buffers.body.reserve(self.texts.total_bytes());
                self.texts.each(|text, _| {
                    buffers.body.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    buffers.body.extend_from_slice(text);
                });
                Encoding::PLAIN
            }
            Encodings::Compact => {
                self.texts.lengths(&mut buffers.lengths);
                put_deltas(&buffers.lengths, &mut buffers.body);
                self.texts.bytes(&mut buffers.body);
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
        }
    }

    fn limits(&self, direct_bytes: usize) -> DictionaryLimits {
        DictionaryLimits::for_first_page(direct_bytes, TEXT_DISTINCT_PERCENT_MAX)
    }

    fn text_bytes(&self) -> Option<usize> {
        Some(self.texts.total_bytes())
    }
}

pub(super) struct FixedBytes<'a> {
    pub bytes: &'a [u8],
    pub width: usize,
    pub order: ValueOrder,
}

impl PageValues for FixedBytes<'_> {
    type Dictionary = ByteDictionary;

    fn words(&self) -> Bytes<'_> {
        Bytes::Fixed(self.bytes, self.width)
    }

    fn bounds(&self, coded: Option<(&ByteDictionary, &[u32])>) -> Option<ValueBounds> {
        if let Some((dictionary, codes)) = coded {
            return ValueBounds::from_bytes(dictionary.range_of(codes, self.order), self.order);
        }
        let range = self.bytes.chunks_exact(self.width).fold(None, |range, value| {
            let (min, max): (&[u8], &[u8]) = range.unwrap_or((value, value));
            let lower = bounds::compare_bytes(value, min, self.order).is_lt();
            let higher = bounds::compare_bytes(value, max, self.order).is_gt();
            Some((if lower { value } else { min }, if higher { value } else { max }))
        });
        ValueBounds::from_bytes(range, self.order)
    }

    fn put_direct(&self, _: DirectEncoding, buffers: &mut PageBuffers) -> Encoding {
        buffers.body.extend_from_slice(self.bytes);
        Encoding::PLAIN
    }

    fn limits(&self, direct_bytes: usize) -> DictionaryLimits {
        DictionaryLimits::for_first_page(direct_bytes, TEXT_DISTINCT_PERCENT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn range_of_texts_matches_byte_order(
            pieces in prop::collection::vec(
                prop::collection::vec((0usize..3, 0usize..20, "[ab\u{0}é]{0,10}"), 0..30),
                0..4,
            ),
            common in "[a-c]{0,20}",
        ) {
            // Some texts share a prefix, and some end within the shared prefix.
            let text = |(kind, length, rest): &(usize, usize, String)| match kind {
                0 => common[..common.len().min(*length)].to_owned(),
                _ => format!("{common}{rest}"),
            };
            let texts: Vec<Vec<String>> = pieces.iter().map(|piece| piece.iter().map(text).collect()).collect();
            let arrays: Vec<ArrayRef> =
                texts.iter().map(|piece| Arc::new(StringArray::from_iter_values(piece)) as ArrayRef).collect();
            let all = || texts.iter().flatten().map(String::as_bytes);
            prop_assert_eq!(range_of_texts(Texts::new(&arrays)), all().min().zip(all().max()));
        }
    }
}
