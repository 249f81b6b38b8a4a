//! The sources of a segment.

use crate::engine::encode::{put_varint, take_varint};

/// A source of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its index in [`super::Converted::keys`].
    pub source: u32,
    /// Its rows in the partition, at least one.
    pub rows: u64,
    /// Bytes of its text attributed to the partition.
    pub share: u64,
}

/// The sources of a segment in key order, in a few bytes each, since there may be as many as sources times partitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    bytes: Vec<u8>,
    last: u32,
}

impl Members {
    /// Adds a source after all others.
    pub fn push(&mut self, member: Member) {
        for number in [u64::from(member.source - self.last), member.rows, member.share] {
            put_varint(number, &mut self.bytes);
        }
        self.last = member.source;
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        let (mut rest, mut source) = (&self.bytes[..], 0);
        std::iter::from_fn(move || {
            source += take_varint(&mut rest)? as u32;
            Some(Member { source, rows: take_varint(&mut rest)?, share: take_varint(&mut rest)? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order() {
        let all: Vec<Member> = [(0, 1, 0), (1, 127, 128), (300, u64::MAX, 16_384), (u32::MAX, 5, u64::MAX)]
            .map(|(source, rows, share)| Member { source, rows, share })
            .to_vec();
        let mut members = Members::default();
        assert!(members.is_empty());
        all.iter().for_each(|member| members.push(*member));
        assert_eq!(members.iter().collect::<Vec<_>>(), all);
    }
}
