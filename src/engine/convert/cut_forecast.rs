//! Forecasts whether a file boundary follows in a partition.
//!
//! A wrong forecast costs a copy of the file; the result is the same.

use crate::domain::table_log::cuts::{CutTargets, FILE_SOURCES};

/// The smallest hashes of the remaining sources.
pub(super) struct CutForecast {
    targets: CutTargets,
    /// Sources, ascending, each with the minimum of hash divided by bytes of text over it and all later sources.
    by_text: Vec<(u32, f64)>,
    /// The same for the hash itself.
    by_hash: Vec<(u32, f64)>,
}

impl CutForecast {
    /// `sources`: the hash of the key and the estimated bytes of text of each source, in order.
    pub(super) fn new(targets: CutTargets, sources: &[(u64, u64)]) -> Self {
        let by_text = suffix_minima(sources.iter().map(|(hash, text)| *hash as f64 / (*text).max(1) as f64));
        let by_hash = suffix_minima(sources.iter().map(|(hash, _)| *hash as f64));
        Self { targets, by_text, by_hash }
    }

    /// Whether a file boundary is expected after source `after` in a partition that has `fraction` of the text.
    pub(super) fn expects_file_cut(&self, after: u32, fraction: f64) -> bool {
        let hashes = (1_u128 << 64) as f64;
        let is_below = |minima: &[(u32, f64)], threshold: f64| {
            let next = minima.partition_point(|(source, _)| *source <= after);
            minima.get(next).is_some_and(|(_, minimum)| *minimum < threshold)
        };
        is_below(&self.by_text, fraction * hashes / self.targets.file_text_bytes as f64)
            || is_below(&self.by_hash, hashes / FILE_SOURCES as f64)
    }
}

/// The elements that are smaller than all after them: few for numbers in random order.
fn suffix_minima(numbers: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator) -> Vec<(u32, f64)> {
    let mut minima: Vec<(u32, f64)> = Vec::new();
    for (at, number) in numbers.enumerate().rev() {
        if minima.last().is_none_or(|(_, least)| number < *least) {
            minima.push((at as u32, number));
        }
    }
    minima.reverse();
    minima
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_cut_is_expected_up_to_the_last_source_that_makes_one() {
        let targets = CutTargets { file_text_bytes: 1_000, tail_text_bytes: 100 };
        let (cuts, stays) = ((u64::MAX / 20, 100), (u64::MAX / 2, 100));
        let forecast = CutForecast::new(targets, &[stays, cuts, stays, cuts, stays, stays]);
        let expected = |fraction| (0..6).map(|after| forecast.expects_file_cut(after, fraction)).collect::<Vec<_>>();
        assert_eq!(expected(1.0), [true, true, true, false, false, false]);
        assert_eq!(expected(0.1), [false; 6], "of a tenth of the text, a source makes a tenth of the cuts");
    }
}
