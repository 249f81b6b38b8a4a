//! Takes records out of an index that aren't valid text.

use super::chunk::Chunk;
use super::index::{Malformed, RecordIndex};
use crate::domain::reject::RejectReason;

/// A stretch of a chunk whose records were just indexed.
pub(super) struct Validity<'a> {
    pub chunk: &'a Chunk,
    pub from: usize,
    pub to: usize,
}

impl Validity<'_> {
    /// Makes malformed ones of the records that hold a sequence their encoding doesn't have.
    pub fn reject_invalid(&self, out: &mut RecordIndex) {
        let chunk = self.chunk;
        if chunk.is_transcoded() {
            let first = chunk.invalid.partition_point(|place| place.pos < self.from);
            if chunk.invalid.get(first).is_some_and(|place| place.pos < self.to) {
                self.reject(out, |start, end| {
                    let first = chunk.invalid.partition_point(|place| place.pos < start);
                    chunk.invalid.get(first).filter(|place| place.pos < end).map(|place| place.offset)
                });
            }
        } else if simdutf8::basic::from_utf8(&chunk.text[self.from..self.to]).is_err() {
            self.reject(out, |start, end| {
                let error = simdutf8::compat::from_utf8(&chunk.text[start..end]).err()?;
                Some(chunk.offset_at(start + error.valid_up_to()))
            });
        }
    }

    /// `invalid` gives the source offset of the first malformed sequence in a record, if it has one.
    #[cold]
    fn reject(&self, out: &mut RecordIndex, invalid: impl Fn(usize, usize) -> Option<u64>) {
        let width = out.width;
        let mut kept = 0;
        for row in 0..out.records.len() {
            let (start, end) = out.records[row];
            if let Some(offset) = invalid(start as usize, end as usize) {
                let message =
                    format!("found bytes that are not `{}` at byte offset {offset}", self.chunk.encoding.name());
                out.malformed.push(Malformed { start, end, reason: RejectReason::InvalidEncoding, message });
            } else {
                out.fields.copy_within(row * width..(row + 1) * width, kept * width);
                out.records[kept] = (start, end);
                kept += 1;
            }
        }
        out.records.truncate(kept);
        out.fields.truncate(kept * width);
        out.malformed.sort_by_key(|malformed| malformed.start);
    }
}
