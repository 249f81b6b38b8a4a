//! Lays out the segments of one partition in files.
//!
//! Invariant: the files depend on the segments, their cuts and `file_bytes_max` alone. A closed group has its segments
//! one after the other; each segment of the tail has files of its own. Segments are first written into files of the
//! expected kind; if the expectation was wrong, the row groups are copied.

use super::assemble::{FileFormat, RowGroups};
use super::conversion::SpooledFile;
use super::encoding::Encoding;
use super::error::ConvertError;
use super::parquet_file::{ParquetFile, StoredRowGroups};
use super::partitions::PartitionPath;
use super::spill::ScratchFolder;
use crate::domain::table_log::cuts::Cut;
use crate::engine::encode::ColumnChunk;

/// The end of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentEnd {
    pub cut: Cut,
    /// Whether the next segment should go into the same file, because a file boundary is expected after it.
    pub join: bool,
    /// Its first source.
    pub first: u32,
}

/// A segment that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EncodedSegment {
    pub cut: Cut,
    pub rows: u64,
    pub row_groups: usize,
    /// Its first source.
    pub first: u32,
}

/// The files of a group.
#[derive(Debug)]
pub(super) struct EncodedGroup {
    pub files: Vec<SpooledFile>,
    pub segments: Vec<EncodedSegment>,
}

/// The context for writing files of a partition.
#[derive(Clone, Copy)]
pub(super) struct PartitionFiles<'a> {
    pub encoding: &'a Encoding<'a>,
    pub scratch: &'a ScratchFolder,
    pub path: &'a PartitionPath,
}

impl PartitionFiles<'_> {
    fn format(&self) -> FileFormat<'_> {
        let Encoding { schema, options, durable_in_place, .. } = self.encoding;
        FileFormat { schema, options, scratch: self.scratch, durable_in_place: *durable_in_place }
    }

    /// Reports a file of the group whose first source is `first`.
    fn report(&self, first: u32, nth: usize, file: &SpooledFile) {
        if !self.encoding.segments_apart {
            (self.encoding.made)(self.path, first, nth, file);
        }
    }

    /// Writes one row group to a separate file.
    pub(super) fn write_draft(&self, chunks: Vec<ColumnChunk>, rows: u64) -> Result<SpooledFile, ConvertError> {
        let mut file = FileFormat { durable_in_place: false, ..self.format() }.create()?;
        file.append(chunks, rows)?;
        file.finish()
    }
}

/// A finished file with row groups of the open group.
#[derive(Debug)]
struct Piece {
    file: SpooledFile,
    row_groups: usize,
    /// Whether it reached `file_bytes_max` with its last row group. May be false even if it did.
    is_full: bool,
    /// Whether it is the final file of a group, and was reported as such.
    is_made: bool,
}

/// The files of one partition.
#[derive(Default)]
pub(super) struct GroupFiles {
    open: Option<(ParquetFile, usize)>,
    /// Files of the segments after the last file cut.
    pieces: Vec<Piece>,
    /// The segments after the last file cut.
    segments: Vec<EncodedSegment>,
    /// Rows and row groups of the segment being written.
    rows: u64,
    row_groups: usize,
    done: Vec<EncodedGroup>,
    /// The last row group, if it was requested as a draft.
    pub draft: Option<SpooledFile>,
}

impl GroupFiles {
    /// Appends a row group to the open file, and closes the file once it is large enough. `first`: the first source of its
    /// segment.
    pub(super) fn append(
        &mut self,
        partition: &PartitionFiles<'_>,
        first: u32,
        rows: u64,
        write: impl FnOnce(&mut ParquetFile) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let format = partition.format();
        let (file, row_groups) = match &mut self.open {
            Some(open) => open,
            None => self.open.insert((format.create()?, 0)),
        };
        write(file)?;
        *row_groups += 1;
        self.rows += rows;
        self.row_groups += 1;
        if !format.is_full(file) {
            return file.suspend();
        }
        self.close_file(true)?;
        // The first segment of a group has the same files regardless of what follows.
        if self.segments.is_empty() && self.pieces.iter().all(|piece| piece.is_full) {
            let nth = self.pieces.len() - 1;
            partition.report(first, nth, &self.pieces[nth].file);
            self.pieces[nth].is_made = true;
        }
        Ok(())
    }

    /// Appends the draft, which is the last row group of its segment.
    pub(super) fn append_draft(
        &mut self,
        partition: &PartitionFiles<'_>,
        first: u32,
        draft: SpooledFile,
    ) -> Result<(), ConvertError> {
        if self.open.is_some() {
            let from = StoredRowGroups::open(&draft.path)?;
            self.append(partition, first, draft.rows, |file| file.append_copy(&from, 0))?;
            let _ = std::fs::remove_file(&draft.path);
            return Ok(());
        }
        // A file of one row group has the same bytes either way.
        self.rows += draft.rows;
        self.row_groups += 1;
        self.pieces.push(Piece { file: draft, row_groups: 1, is_full: false, is_made: false });
        Ok(())
    }

    fn close_file(&mut self, is_full: bool) -> Result<(), ConvertError> {
        if let Some((file, row_groups)) = self.open.take() {
            self.pieces.push(Piece { file: file.finish()?, row_groups, is_full, is_made: false });
        }
        Ok(())
    }

    pub(super) fn end_segment(&mut self, partition: &PartitionFiles<'_>, end: SegmentEnd) -> Result<(), ConvertError> {
        let (rows, row_groups) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.row_groups));
        self.segments.push(EncodedSegment { cut: end.cut, rows, row_groups, first: end.first });
        if end.cut == Cut::File || partition.encoding.segments_apart {
            self.close_file(false)?;
            let segments = std::mem::take(&mut self.segments);
            self.lay_out(partition, vec![segments])
        } else if end.join {
            Ok(())
        } else {
            self.close_file(false)
        }
    }

    /// Makes each segment of the tail a group, after the last segment has ended.
    pub(super) fn close(&mut self, partition: &PartitionFiles<'_>) -> Result<(), ConvertError> {
        self.close_file(false)?;
        let segments = std::mem::take(&mut self.segments);
        self.lay_out(partition, segments.into_iter().map(|segment| vec![segment]).collect())
    }

    /// Makes the files of groups that consist of all pieces.
    fn lay_out(
        &mut self,
        partition: &PartitionFiles<'_>,
        groups: Vec<Vec<EncodedSegment>>,
    ) -> Result<(), ConvertError> {
        let mut layout = Layout::new(std::mem::take(&mut self.pieces));
        for segments in groups {
            let row_groups = segments.iter().map(|segment| segment.row_groups).sum();
            let mut files = Vec::new();
            let first = segments.first().map(|segment| segment.first).unwrap_or_default();
            for (nth, (file, is_made)) in layout.take(partition, row_groups)?.into_iter().enumerate() {
                if !is_made {
                    partition.report(first, nth, &file);
                }
                files.push(file);
            }
            self.done.push(EncodedGroup { files, segments });
        }
        layout.delete_copied();
        Ok(())
    }

    /// The groups in order, once the partition is closed.
    pub(super) fn take_groups(&mut self) -> Vec<EncodedGroup> {
        debug_assert!(self.open.is_none() && self.pieces.is_empty());
        std::mem::take(&mut self.done)
    }
}

/// Divides pieces into the files of groups.
struct Layout {
    pieces: std::vec::IntoIter<Piece>,
    /// A piece whose row groups belong to several groups, and how many of them were used.
    partly_used: Option<(Piece, usize)>,
    /// Pieces whose row groups were copied.
    copied: Vec<Piece>,
}

impl Layout {
    fn new(pieces: Vec<Piece>) -> Self {
        Self { pieces: pieces.into_iter(), partly_used: None, copied: Vec::new() }
    }

    /// The files of a group that has the next `row_groups`, and whether each was reported as made. Pieces are used
    /// unchanged where assembling would give the same bytes.
    fn take(
        &mut self,
        partition: &PartitionFiles<'_>,
        mut row_groups: usize,
    ) -> Result<Vec<(SpooledFile, bool)>, ConvertError> {
        let mut files = Vec::new();
        let mut parts = Vec::new();
        while row_groups > 0 {
            let Some((piece, used)) = self.partly_used.take().or_else(|| self.pieces.next().map(|piece| (piece, 0)))
            else {
                break;
            };
            let taken = row_groups.min(piece.row_groups - used);
            row_groups -= taken;
            if parts.is_empty() && taken == piece.row_groups && (piece.is_full || row_groups == 0) {
                files.push((piece.file, piece.is_made));
                continue;
            }
            parts.push(RowGroups { path: piece.file.path.clone(), range: used..used + taken });
            match used + taken < piece.row_groups {
                true => self.partly_used = Some((piece, used + taken)),
                false => self.copied.push(piece),
            }
        }
        files.extend(partition.format().assemble(&parts)?.into_iter().map(|file| (file, false)));
        Ok(files)
    }

    fn delete_copied(self) {
        for piece in self.copied {
            let _ = std::fs::remove_file(&piece.file.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use proptest::prelude::*;

    use super::*;
    use crate::domain::pipeline::{Compression, Encodings, ParquetOptions};
    use crate::domain::table_log::cuts::CutTargets;
    use crate::engine::convert::inputs::BuildLayout;

    const CUTS: CutTargets = CutTargets { file_text_bytes: 1, tail_text_bytes: 1 };

    /// A segment: the rows of each of its row groups, and the boundary after it.
    type Segment = (Vec<u64>, Cut);

    fn batch(from: u64, rows: u64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((from..from + rows).map(|n| n as i64)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((from..from + rows).map(|n| format!("{n:0>9}"))));
        RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
    }

    /// The groups as their segments, and the digest of each file. `joins` and `drafts` determine how each segment is
    /// written.
    fn groups(segments: &[Segment], joins: &[bool], drafts: &[bool]) -> Vec<(Vec<EncodedSegment>, Vec<String>)> {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(folder.path());
        let (compression, encodings) = (Compression::None, Encodings::Compatible);
        let options =
            ParquetOptions { compression, encodings, row_group_rows: 1_000, file_bytes_max: 4_000, cuts: CUTS };
        let made = parking_lot::Mutex::new(Vec::new());
        let add = |_: &str, first: u32, nth: usize, file: &SpooledFile| {
            made.lock().push((first, nth, file.sha256.clone()));
        };
        let encoding =
            Encoding::new(batch(0, 1).schema(), options, 1, 1 << 20, false, BuildLayout::Groups, &add).unwrap();
        let path = "p=1".into();
        let partition = PartitionFiles { encoding: &encoding, scratch: &scratch, path: &path };
        let (mut files, mut at) = (GroupFiles::default(), 0);
        for (nth, (row_groups, cut)) in segments.iter().enumerate() {
            for (index, rows) in row_groups.iter().enumerate() {
                let batch = batch(at, *rows);
                at += rows;
                if drafts[nth] && index + 1 == row_groups.len() {
                    let mut draft = partition.format().create().unwrap();
                    draft.write_row_group(&batch, &options).unwrap();
                    files.append_draft(&partition, nth as u32, draft.finish().unwrap()).unwrap();
                } else {
                    files.append(&partition, nth as u32, *rows, |file| file.write_row_group(&batch, &options)).unwrap();
                }
            }
            files.end_segment(&partition, SegmentEnd { cut: *cut, join: joins[nth], first: nth as u32 }).unwrap();
        }
        files.close(&partition).unwrap();
        let groups = files.take_groups();
        let hashes = |group: &EncodedGroup| group.files.iter().map(|file| file.sha256.clone()).collect::<Vec<_>>();
        let all: Vec<(u32, usize, String)> = groups
            .iter()
            .flat_map(|group| {
                hashes(group).into_iter().enumerate().map(|(nth, hash)| (group.segments[0].first, nth, hash))
            })
            .collect();
        assert_eq!(*made.lock(), all, "each file is reported once, in order");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), all.len(), "copied files are deleted");
        groups.iter().map(|group| (group.segments.clone(), hashes(group))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn layout_depends_on_segments_and_cuts_alone(
            segments in prop::collection::vec(
                (
                    prop::collection::vec(1_u64..150, 1..4),
                    prop::sample::select(vec![Cut::Segment, Cut::Segment, Cut::Segment, Cut::File]),
                ),
                1..10,
            ),
            joins in prop::collection::vec(any::<bool>(), 10),
            drafts in prop::collection::vec(any::<bool>(), 10),
        ) {
            let found = groups(&segments, &joins, &drafts);
            prop_assert_eq!(&found, &groups(&segments, &[true; 10], &[false; 10]));
            prop_assert_eq!(&found, &groups(&segments, &[false; 10], &[false; 10]));
            let last_cut = segments.iter().rposition(|(_, cut)| *cut == Cut::File).map_or(0, |at| at + 1);
            let closed = segments.iter().filter(|(_, cut)| *cut == Cut::File).count();
            prop_assert_eq!(found.len(), closed + segments.len() - last_cut);
            for (nth, (group, hashes)) in found.iter().enumerate() {
                // Each group alone gives the same files, except for the rows' values.
                let is_closed = group.last().is_some_and(|segment| segment.cut == Cut::File);
                prop_assert!(is_closed || (group.len() == 1 && nth >= closed));
                prop_assert!(!hashes.is_empty());
            }
        }
    }
}
