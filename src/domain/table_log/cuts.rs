//! Where segments and files of a partition end.
//!
//! Invariant: whether something ends after a source is decided by that source alone, so that changing one source moves
//! no other boundary.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Average number of sources per file, and per segment, if sources are too small to reach the size targets.
pub const FILE_SOURCES: u64 = 65_536;
const SEGMENT_SOURCES: u64 = 4_096;

/// The boundary after a source. The end of a file is also the end of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    None,
    Segment,
    File,
}

/// Average text size of a file and of a segment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutTargets {
    pub file_text_bytes: u64,
    /// At most `file_text_bytes`.
    pub tail_text_bytes: u64,
}

/// The boundary after the source `key`. `share`: the bytes of its text attributed to the partition, see [`text_share`].
/// A share of at least the target always makes a boundary; a smaller one does with a probability of `share / target`.
pub fn cut_after(key: &str, share: u64, targets: CutTargets) -> Cut {
    cut_at(key_hash(key), share, targets)
}

/// The hash of a source's key, which decides boundaries.
pub fn key_hash(key: &str) -> u64 {
    Sha256::digest(key.as_bytes())[..8].iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Like [`cut_after`], by the hash of the key.
pub fn cut_at(hash: u64, share: u64, targets: CutTargets) -> Cut {
    let hash = u128::from(hash);
    let is_below = |target: u64, sources: u64| {
        let by_text = (u128::from(share) << 64) / u128::from(target.max(1));
        hash < by_text.max((1 << 64) / u128::from(sources))
    };
    if is_below(targets.file_text_bytes, FILE_SOURCES) {
        Cut::File
    } else if is_below(targets.tail_text_bytes, SEGMENT_SOURCES) {
        Cut::Segment
    } else {
        Cut::None
    }
}

/// The bytes of a source's text attributed to a partition, in proportion to the partition's rows.
pub fn text_share(text_bytes: u64, rows_in_partition: u64, rows_read: u64) -> u64 {
    let share = u128::from(text_bytes) * u128::from(rows_in_partition) / u128::from(rows_read.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TARGETS: CutTargets = CutTargets { file_text_bytes: 256 << 20, tail_text_bytes: 16 << 20 };

    /// The number of cuts of each kind among sources of this share.
    fn cuts(sources: u64, share: u64) -> (u64, u64) {
        let cuts = (0..sources).map(|n| cut_after(&format!("in/{n}.csv"), share, TARGETS));
        cuts.fold((0, 0), |(segments, files), cut| {
            (segments + u64::from(cut >= Cut::Segment), files + u64::from(cut == Cut::File))
        })
    }

    #[test]
    fn segments_and_files_have_their_target_on_average() {
        let (segments, files) = cuts(25_600, 1 << 20);
        assert!((1_440..1_760).contains(&segments), "{segments} segments of 25,600 MiB of text, expected about 1,600");
        assert!((70..130).contains(&files), "{files} files, expected about 100");
        let (segments, files) = cuts(655_360, 1);
        assert!((120..200).contains(&segments), "{segments} segments of tiny sources, expected about 160");
        assert!((3..22).contains(&files), "{files} files, expected about 10");
    }

    #[test]
    fn large_source_always_ends_its_segment_and_file() {
        assert_eq!(cuts(1_000, TARGETS.tail_text_bytes).0, 1_000);
        assert_eq!(cuts(1_000, TARGETS.file_text_bytes), (1_000, 1_000));
        assert_eq!(cuts(1_000, u64::MAX), (1_000, 1_000));
    }

    #[test]
    fn share_is_that_of_the_rows() {
        assert_eq!(text_share(1_000, 1, 4), 250);
        assert_eq!(text_share(1_000, 4, 4), 1_000);
        assert_eq!(text_share(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(text_share(30, 0, 0), 0);
    }
    proptest! {
        #[test]
        fn larger_shares_and_smaller_targets_never_cut_less(
            key in "[a-z0-9/]{0,24}",
            shares in (any::<u64>(), any::<u64>()),
            targets in (1_u64..1 << 41, 1_u64..1 << 41),
        ) {
            let (smaller, larger) = (shares.0.min(shares.1), shares.0.max(shares.1));
            let of = |file, tail| CutTargets { file_text_bytes: file, tail_text_bytes: tail };
            let (tail, file) = (targets.0.min(targets.1), targets.0.max(targets.1));
            let cut = |share, targets| cut_after(&key, share, targets);
            prop_assert!(cut(smaller, of(file, tail)) <= cut(larger, of(file, tail)));
            prop_assert!(cut(smaller, of(file, file)) <= cut(smaller, of(file, tail)));
        }

        #[test]
        fn shares_of_all_partitions_are_at_most_the_text(
            text in any::<u64>(),
            rows in prop::collection::vec(0_u64..1 << 40, 1..20),
            rejected in 0_u64..1 << 40,
        ) {
            let read = rows.iter().sum::<u64>() + rejected;
            let shares: u128 = rows.iter().map(|rows| u128::from(text_share(text, *rows, read))).sum();
            prop_assert!(shares <= u128::from(text));
        }
    }
}
