//! Reads the directory of a zip archive, strictly.
//!
//! Invariant: an archive whose parts could be read in two ways is refused: names that stand twice, entries that share
//! bytes, a local head that says something else than the directory, anything between directory and end. So each byte is
//! inflated at most once, and every reader sees the same objects.
//! Must not: inflate anything, or trust a size before it is bounded.
//!
//! The common readers keep the last of several entries of one name and say nothing, which is why this is our own.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use super::inspect::Problems;
use crate::domain::limits::{ARCHIVE_OBJECTS_MAX, KEY_BYTES_MAX};

const LOCAL_HEAD: u32 = 0x0403_4b50;
const CENTRAL_HEAD: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const END_BYTES: u64 = 22;
const END_64_BYTES: u64 = 56;
const LOCATOR_64_BYTES: u64 = 20;
const LOCAL_HEAD_BYTES: u64 = 30;
const EXTRA_64: u16 = 1;
/// Another name of the entry, which some readers take.
const EXTRA_NAME: u16 = 0x7075;
/// How an encrypted entry is compressed in truth.
const EXTRA_AES: u16 = 0x9901;
/// Encrypted, strongly encrypted, masked.
const FLAGS_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const FLAG_PATCHED: u16 = 1 << 5;
const FLAG_UTF8: u16 = 1 << 11;
const MODE_KIND: u32 = 0o170_000;
const MODE_FILE: u32 = 0o100_000;
const MODE_FOLDER: u32 = 0o040_000;
/// Longest name: the folder of a bucket, and a key.
const NAME_BYTES_MAX: usize = KEY_BYTES_MAX + 16;
/// Largest directory, in bytes.
const DIRECTORY_BYTES_MAX: u64 = (ARCHIVE_OBJECTS_MAX as u64 + 1) * (46 + 256);

/// How an entry is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
}

/// A file of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) method: Method,
    pub(super) crc: u32,
    /// Bytes in the archive.
    pub(super) packed: u64,
    /// Bytes once inflated, as the directory says.
    pub(super) size: u64,
    head: u64,
    /// Of the first of the `packed` bytes.
    pub(super) start: u64,
}

/// Little-endian fields, one after the other; zeros after the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.bytes(bytes).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    fn u64(&mut self) -> u64 {
        self.number(8)
    }
}

/// Where the directory lies, and how many entries it has.
struct Directory {
    start: u64,
    end: u64,
    entries: u64,
}

/// The files of an archive, in the order of their bytes; what is wrong with it goes to `problems`. Folders are passed
/// over.
///
/// # Errors
/// The file can't be read.
pub(super) fn read(file: &File, problems: &mut Problems) -> io::Result<Vec<Entry>> {
    let Some(directory) = find(file, problems)? else { return Ok(Vec::new()) };
    let mut entries = list(file, &directory, problems)?;
    for entry in &mut entries {
        locate(file, entry, &directory, problems)?;
    }
    entries.sort_unstable_by_key(|entry| entry.head);
    let ends = entries.iter().map(|entry| entry.start.saturating_add(entry.packed));
    let next = entries.iter().skip(1).map(|entry| entry.head).chain([directory.start]);
    for ((entry, end), next) in entries.iter().zip(ends).zip(next) {
        if end > next {
            problems.add(&entry.name, "its bytes are those of another entry, too");
        }
    }
    Ok(entries)
}

fn find(file: &File, problems: &mut Problems) -> io::Result<Option<Directory>> {
    let length = file.metadata()?.len();
    let mut refuse = |what: &str| {
        problems.add("", what);
        Ok(None)
    };
    let Some(at) = length.checked_sub(END_BYTES) else { return refuse("it is no zip archive") };
    let mut end = [0; END_BYTES as usize];
    file.read_exact_at(&mut end, at)?;
    let mut fields = Fields(&end);
    if fields.u32() != END {
        return refuse("it is no zip archive, is cut off, or has something after its end");
    }
    let (disk, first_disk) = (fields.u16(), fields.u16());
    let (here, entries) = (fields.u16(), fields.u16());
    let (size, start, comment) = (fields.u32(), fields.u32(), fields.u16());
    let wide = entries == u16::MAX || size == u32::MAX || start == u32::MAX;
    if comment != 0 || (!wide && (disk != 0 || first_disk != 0 || here != entries)) {
        return refuse("it is one of several parts, or has a comment");
    }
    let directory = if wide {
        match find_64(file, at)? {
            Some(directory) => directory,
            None => return refuse("its end is malformed"),
        }
    } else {
        let start = u64::from(start);
        Directory { start, end: start + u64::from(size), entries: entries.into() }
    };
    let tail = if wide { END_64_BYTES + LOCATOR_64_BYTES } else { 0 };
    if directory.end.checked_add(tail) != Some(at) {
        return refuse("its directory doesn't lie where its end says");
    }
    if !wide && ends_twice(file, at)? {
        return refuse("it has two ends");
    }
    if directory.entries > ARCHIVE_OBJECTS_MAX as u64 + 1 || directory.end - directory.start > DIRECTORY_BYTES_MAX {
        return refuse(&format!("it has more than {ARCHIVE_OBJECTS_MAX} objects"));
    }
    Ok(Some(directory))
}

/// Whether what stands before the plain end reads as the end of an archive with large numbers: there are readers that
/// believe it whatever the plain end says.
fn ends_twice(file: &File, at: u64) -> io::Result<bool> {
    let Some(start) = at.checked_sub(LOCATOR_64_BYTES) else { return Ok(false) };
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, start)?;
    Ok(Fields(&bytes).u32() == LOCATOR_64)
}

/// The end of an archive with large numbers; `at`: where the plain end begins.
fn find_64(file: &File, at: u64) -> io::Result<Option<Directory>> {
    let mut bytes = [0; (END_64_BYTES + LOCATOR_64_BYTES) as usize];
    let Some(start) = at.checked_sub(bytes.len() as u64) else { return Ok(None) };
    file.read_exact_at(&mut bytes, start)?;
    let mut fields = Fields(&bytes);
    let (signature, rest) = (fields.u32(), fields.u64());
    let _versions = fields.u32();
    let (disk, first_disk) = (fields.u32(), fields.u32());
    let (here, entries, size, directory) = (fields.u64(), fields.u64(), fields.u64(), fields.u64());
    let (locator, locator_disk, end, disks) = (fields.u32(), fields.u32(), fields.u64(), fields.u32());
    let fits = signature == END_64
        && rest == END_64_BYTES - 12
        && (disk, first_disk, here) == (0, 0, entries)
        && locator == LOCATOR_64
        && (locator_disk, end) == (0, start)
        && disks <= 1;
    let last = directory.checked_add(size).filter(|_| fits);
    Ok(last.map(|end| Directory { start: directory, end, entries }))
}

/// The bytes of a file from one offset to another.
pub(super) struct Section<'a> {
    pub(super) file: &'a File,
    pub(super) at: u64,
    pub(super) end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(out.len());
        let read = self.file.read_at(&mut out[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn list(file: &File, directory: &Directory, problems: &mut Problems) -> io::Result<Vec<Entry>> {
    let mut bytes = BufReader::new(Section { file, at: directory.start, end: directory.end });
    let mut entries = Vec::new();
    let mut names = HashSet::new();
    let mut left = directory.end - directory.start;
    for _ in 0..directory.entries {
        let mut head = [0; 46];
        let mut variable = Vec::new();
        let whole = left >= head.len() as u64 && {
            bytes.read_exact(&mut head)?;
            let length: u64 = [28, 30, 32].iter().map(|at| Fields(&head[*at..]).number(2)).sum();
            left -= head.len() as u64;
            let fits = length <= left;
            if fits {
                variable.resize(length as usize, 0);
                bytes.read_exact(&mut variable)?;
                left -= length;
            }
            fits
        };
        if !whole || Fields(&head).u32() != CENTRAL_HEAD {
            problems.add("", "its directory is malformed");
            return Ok(entries);
        }
        let Some(entry) = parse(&head, &variable, problems) else { continue };
        if !names.insert(entry.name.clone()) {
            problems.add(&entry.name, "it stands there twice");
        }
        if !entry.name.ends_with('/') {
            entries.push(entry);
        }
    }
    if left > 0 {
        problems.add("", "its directory is longer than its entries");
    }
    Ok(entries)
}

/// One entry of the directory; `None` if it can't be one of a pipeline, which `problems` tells.
fn parse(head: &[u8], variable: &[u8], problems: &mut Problems) -> Option<Entry> {
    let mut fields = Fields(&head[4..]);
    let (_made_by, _needed) = (fields.u16(), fields.u16());
    let (flags, method, _time) = (fields.u16(), fields.u16(), fields.u32());
    let (crc, packed, size) = (fields.u32(), fields.u32(), fields.u32());
    let (name_length, extra_length, _comment) = (fields.u16(), fields.u16(), fields.u16());
    let (disk, _internal, external, offset) = (fields.u16(), fields.u16(), fields.u32(), fields.u32());
    let mut rest = Fields(variable);
    let (raw, extra) = (rest.bytes(name_length.into()), rest.bytes(extra_length.into()));
    let shown = String::from_utf8_lossy(raw).into_owned();
    let mut refuse = |what: &str| {
        problems.add(&shown, what);
        None
    };
    let Ok(name) = std::str::from_utf8(raw) else { return refuse("its name is no UTF-8") };
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return refuse("its name is empty or too long");
    }
    if !name.is_ascii() && flags & FLAG_UTF8 == 0 {
        return refuse("its name is not marked as UTF-8");
    }
    if flags & FLAGS_ENCRYPTED != 0 {
        return refuse("it is encrypted");
    }
    let method = match method {
        0 => Method::Stored,
        8 => Method::Deflated,
        _ => return refuse("it is compressed in a way that isn't read: expected stored or deflated"),
    };
    let is_folder = name.ends_with('/');
    let kind = external >> 16 & MODE_KIND;
    if kind != 0 && kind != if is_folder { MODE_FOLDER } else { MODE_FILE } {
        return refuse("it is no plain file: a link, or something special");
    }
    if flags & FLAG_PATCHED != 0 || !(disk == 0 || disk == u16::MAX) {
        return refuse("it is a patch, or part of another archive");
    }
    let Some(fields) = extra_fields(extra) else { return refuse("its extra fields are malformed") };
    if fields.iter().any(|(id, value)| *id == EXTRA_NAME && value.get(5..) != Some(raw)) {
        return refuse("it has a second name");
    }
    if fields.iter().any(|(id, _)| *id == EXTRA_AES) {
        return refuse("it is encrypted");
    }
    let Some((size, packed, head)) = widened(&fields, size, packed, offset) else {
        return refuse("its sizes are malformed");
    };
    if is_folder && size != 0 {
        return refuse("it is a folder with contents");
    }
    Some(Entry { name: name.to_owned(), method, crc, packed, size, head, start: 0 })
}

/// The extra fields of an entry; `None` if one is cut.
fn extra_fields(extra: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut fields = Fields(extra);
    let mut all = Vec::new();
    while fields.0.len() >= 4 {
        let (id, length) = (fields.u16(), fields.u16());
        if fields.0.len() < length.into() {
            return None;
        }
        all.push((id, fields.bytes(length.into())));
    }
    Some(all)
}

/// Sizes and offset, those that don't fit 32 bits by the extra field, of which there may be one.
fn widened(extra: &[(u16, &[u8])], size: u32, packed: u32, offset: u32) -> Option<(u64, u64, u64)> {
    let mut found = extra.iter().filter(|(id, _)| *id == EXTRA_64).map(|(_, value)| *value);
    let mut wide = Fields(found.next().unwrap_or_default());
    if found.next().is_some() {
        return None;
    }
    let mut take = |narrow: u32| match narrow {
        u32::MAX if wide.0.len() >= 8 => Some(wide.u64()),
        u32::MAX => None,
        narrow => Some(narrow.into()),
    };
    Some((take(size)?, take(packed)?, take(offset)?))
}

/// Finds the bytes of an entry behind its local head, which must say what the directory does.
fn locate(file: &File, entry: &mut Entry, directory: &Directory, problems: &mut Problems) -> io::Result<()> {
    let mut head = [0; LOCAL_HEAD_BYTES as usize];
    let last = entry.head.checked_add(LOCAL_HEAD_BYTES + entry.name.len() as u64);
    if last.is_none_or(|last| last > directory.start) {
        problems.add(&entry.name, "it lies outside the archive");
        return Ok(());
    }
    file.read_exact_at(&mut head, entry.head)?;
    let mut fields = Fields(&head);
    let (signature, _needed, flags, method) = (fields.u32(), fields.u16(), fields.u16(), fields.u16());
    let (_time, _crc, _packed, _size) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let (name_length, extra_length) = (fields.u16(), fields.u16());
    let mut name = vec![0; entry.name.len()];
    file.read_exact_at(&mut name, entry.head + LOCAL_HEAD_BYTES)?;
    let same_method = match entry.method {
        Method::Stored => method == 0,
        Method::Deflated => method == 8,
    };
    let same = signature == LOCAL_HEAD
        && usize::from(name_length) == entry.name.len()
        && name == entry.name.as_bytes()
        && same_method
        && flags & (FLAGS_ENCRYPTED | FLAG_PATCHED) == 0;
    if !same {
        problems.add(&entry.name, "its own head says something else than the directory");
    }
    entry.start = entry.head + LOCAL_HEAD_BYTES + u64::from(name_length) + u64::from(extra_length);
    if entry.start.checked_add(entry.packed).is_none_or(|end| end > directory.start) {
        problems.add(&entry.name, "it lies outside the archive");
        // So that no sum overflows.
        entry.packed = 0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<Entry>, String> {
        let mut problems = Problems::default();
        let entries = read(&file(bytes), &mut problems).unwrap();
        if problems.is_empty() { Ok(entries) } else { Err(format!("{problems:?}")) }
    }

    /// As an export makes it.
    fn streamed(count: usize, options: SimpleFileOptions) -> Vec<u8> {
        let mut zip = ZipWriter::new_stream(Vec::new());
        for at in 0..count {
            zip.start_file(format!("lake/{at:06}.csv"), options).unwrap();
            zip.write_all(b"a").unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn archives_with_large_numbers_are_read() {
        let entries = read_all(&streamed(70_000, SimpleFileOptions::default())).unwrap();
        assert_eq!(entries.len(), 70_000);
        assert_eq!((entries[69_999].name.as_str(), entries[69_999].size), ("lake/069999.csv", 1));
        let wide = read_all(&streamed(3, SimpleFileOptions::default().large_file(true))).unwrap();
        assert_eq!(wide.iter().map(|entry| entry.size).collect::<Vec<_>>(), [1, 1, 1]);
    }

    /// The kept archives of the fuzz target that other readers take otherwise than their directory says.
    #[test]
    fn archives_that_can_be_read_in_two_ways_are_refused() {
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/corpus/archive/");
        let read = |name: &str| read_all(&std::fs::read(format!("{kept}{name}.in")).unwrap());
        assert!(read("unicode-path").unwrap_err().contains("second name"));
        assert!(read("two-ends").unwrap_err().contains("two ends"));
        assert!(read("aes-extra").unwrap_err().contains("encrypted"));
        assert_eq!(read("unicode-path-same").unwrap()[0].name, "lake/a.csv");
    }

    #[test]
    fn no_single_byte_that_is_changed_makes_a_reader_panic_or_read_outside() {
        let good = streamed(3, SimpleFileOptions::default());
        assert_eq!(read_all(&good).map(|entries| entries.len()), Ok(3));
        for at in 0..good.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= change;
                for entry in read_all(&bytes).unwrap_or_default() {
                    assert!(entry.start + entry.packed <= bytes.len() as u64, "byte {at}");
                }
            }
            let _ = read_all(&good[..at]);
        }
    }
}
