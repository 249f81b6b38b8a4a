//! A listing of the lake in scratch, so that memory doesn't depend on how many objects there are.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::domain::job::RunError;
use crate::domain::limits::KEY_BYTES_MAX;
use crate::domain::table_log::diff::ListedSource;
use crate::engine::run_error::scratch_error;

/// Bytes of an ETag; longer ones are left out, so that a HEAD asks for them.
const ETAG_BYTES_MAX: usize = 1_024;
const BUFFER_BYTES: usize = 256 << 10;

/// Writes a listing in key order.
pub(super) struct ListingWriter {
    file: BufWriter<File>,
    listing: Listing,
}

/// Objects of the lake in key order.
pub(super) struct Listing {
    file: File,
    /// How many.
    len: u64,
    /// The folder of the file, for messages.
    scratch: PathBuf,
}

impl ListingWriter {
    /// Creates a file without a name in `scratch`.
    pub fn create(scratch: &Path) -> Result<Self, RunError> {
        let failed = |error| scratch_error(scratch, &error);
        let file = tempfile::tempfile_in(scratch).map_err(failed)?;
        let listing = Listing { file: file.try_clone().map_err(failed)?, len: 0, scratch: scratch.to_owned() };
        Ok(Self { file: BufWriter::with_capacity(BUFFER_BYTES, file), listing })
    }

    pub fn push(&mut self, source: &ListedSource) -> Result<(), RunError> {
        self.listing.len += 1;
        write(&mut self.file, source).map_err(|error| scratch_error(&self.listing.scratch, &error))
    }

    pub fn finish(mut self) -> Result<Listing, RunError> {
        self.file.flush().map_err(|error| scratch_error(&self.listing.scratch, &error))?;
        Ok(self.listing)
    }
}

fn write(out: &mut impl Write, source: &ListedSource) -> io::Result<()> {
    let etag = source.etag.as_deref().filter(|etag| etag.len() <= ETAG_BYTES_MAX).unwrap_or_default();
    let lengths = [source.key.len() as u16, etag.len() as u16].map(u16::to_le_bytes);
    lengths.iter().try_for_each(|length| out.write_all(length))?;
    out.write_all(&source.size.to_le_bytes())?;
    out.write_all(&source.modified.timestamp().to_le_bytes())?;
    out.write_all(&source.modified.timestamp_subsec_nanos().to_le_bytes())?;
    out.write_all(source.key.as_bytes())?;
    out.write_all(etag.as_bytes())
}

impl Listing {
    pub fn iter(&self) -> impl Iterator<Item = Result<ListedSource, RunError>> + '_ {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, SharedFileReader { file: &self.file, offset: 0 });
        let mut left = self.len;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            Some(read(&mut file).map_err(|error| scratch_error(&self.scratch, &error)))
        })
    }
}

/// Reads a file that others read at the same time.
struct SharedFileReader<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for SharedFileReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

fn read(file: &mut impl Read) -> io::Result<ListedSource> {
    let (key, etag) = (u16::from_le_bytes(bytes(file)?), u16::from_le_bytes(bytes(file)?));
    let size = u64::from_le_bytes(bytes(file)?);
    let (second, nanos) = (i64::from_le_bytes(bytes(file)?), u32::from_le_bytes(bytes(file)?));
    let key = text(file, usize::from(key), KEY_BYTES_MAX)?;
    let etag = Some(text(file, usize::from(etag), ETAG_BYTES_MAX)?).filter(|etag| !etag.is_empty());
    let modified = DateTime::<Utc>::from_timestamp(second, nanos).ok_or(io::ErrorKind::InvalidData)?;
    Ok(ListedSource { key, size, etag, modified, variant: None })
}

fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn text(file: &mut impl Read, len: usize, len_max: usize) -> io::Result<String> {
    let mut text = vec![0; len.min(len_max)];
    file.read_exact(&mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listing_is_read_as_it_was_written_by_any_number_of_readers() {
        let folder = tempfile::tempdir().unwrap();
        let at = |second, nanos| DateTime::from_timestamp(second, nanos).unwrap();
        let source = |key: &str, etag: Option<&str>, modified| ListedSource {
            key: key.to_owned(),
            size: 1 << 40,
            etag: etag.map(str::to_owned),
            modified,
            variant: None,
        };
        let all = [
            source("a", Some("t"), at(1_700_000_000, 123_456_789)),
            source(&"é".repeat(KEY_BYTES_MAX / 2), None, at(-5, 1)),
            source("c", Some("u"), DateTime::<Utc>::MAX_UTC),
        ];
        let mut writer = ListingWriter::create(folder.path()).unwrap();
        all.iter().for_each(|source| writer.push(source).unwrap());
        let listing = writer.finish().unwrap();
        let (mut one, mut other) = (listing.iter(), listing.iter());
        for source in &all {
            assert_eq!(&one.next().unwrap().unwrap(), source);
            assert_eq!(&other.next().unwrap().unwrap(), source);
        }
        assert!(one.next().is_none());
    }
}
