//! The sources of a segment.

/// A source of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its index in [`super::Converted::keys`].
    pub source: u32,
    /// Its rows in the partition, at least one.
    pub rows: u64,
    /// Bytes of its text that count for the partition.
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
            push_number(&mut self.bytes, number);
        }
        self.last = member.source;
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        let (mut rest, mut source) = (&self.bytes[..], 0);
        std::iter::from_fn(move || {
            source += take_number(&mut rest)? as u32;
            Some(Member { source, rows: take_number(&mut rest)?, share: take_number(&mut rest)? })
        })
    }
}

/// Appends 7 bits per byte, the lowest first; all bytes but the last have the highest bit set.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(number);
        }
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
