//! Reads the directory of a zip archive, strictly.
//!
//! Invariant: an archive that two readers could interpret differently is rejected. Local headers, entries and the directory
//! follow each other without gaps from the first byte to the last; local headers agree with the directory; no extra field
//! changes an entry's name or meaning. So each byte is inflated at most once, and readers that use the directory see the
//! same objects as readers that scan from the start.
//!
//! Must not: inflate anything, or trust a size before it is bounded.
//!
//! The `zip` crate reads the directory once its size and number of entries are bounded ([`find`]); it accepts more than
//! this reader, which checks the rest.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt;

use zip::read::{ArchiveOffset, Config, ZipArchive, ZipFileEntry};
use zip::result::ZipError;

use super::package::Problems;
use crate::domain::limits::{ARCHIVE_OBJECTS_MAX, KEY_BYTES_MAX};

const LOCAL_HEAD: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const END_BYTES: u64 = 22;
const END_64_BYTES: u64 = 56;
const LOCATOR_64_BYTES: u64 = 20;
/// Sizes that don't fit 32 bits.
const EXTRA_64: u16 = 1;
/// An alternative name of the entry, which some readers use.
const EXTRA_NAME: u16 = 0x7075;
/// The actual compression of an encrypted entry.
const EXTRA_AES: u16 = 0x9901;
/// Times and owners, as common programs write them, and Java's archive marker.
const EXTRA_HARMLESS: &[u16] = &[0x000a, 0x5455, 0x5855, 0x7855, 0x7875, 0xcafe];
/// Encrypted, strongly encrypted, masked.
const FLAGS_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
/// Sizes and checksum follow the entry.
const FLAG_STREAMED: u16 = 1 << 3;
const FLAG_PATCHED: u16 = 1 << 5;
const FLAG_UTF8: u16 = 1 << 11;
const MODE_KIND: u32 = 0o170_000;
const MODE_FILE: u32 = 0o100_000;
const MODE_FOLDER: u32 = 0o040_000;
/// Longest name: the folders of an escaped key, and a fully percent-encoded key.
const NAME_BYTES_MAX: usize = 3 * (KEY_BYTES_MAX + 1) + 32;
/// Largest directory, in bytes.
const DIRECTORY_BYTES_MAX: u64 = (ARCHIVE_OBJECTS_MAX as u64 + 1) * (46 + 256);

/// How an entry is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompressionMethod {
    Stored,
    Deflated,
}

/// A file of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveEntry {
    pub(super) name: String,
    pub(super) method: CompressionMethod,
    pub(super) crc: u32,
    /// Bytes in the archive.
    pub(super) packed: u64,
    /// Inflated size, from the directory.
    pub(super) size: u64,
    /// Offset of its local header.
    head: u64,
    /// Offset of the `packed` bytes.
    pub(super) start: u64,
}

/// Reads consecutive little-endian fields; zeros past the end.
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

/// The directory's offsets and number of entries.
struct Directory {
    start: u64,
    end: u64,
    entries: u64,
}

/// Lists the files of an archive by offset; its problems are added to `problems`. Folders are skipped.
///
/// # Errors
/// The file can't be read.
pub(super) fn read(file: &File, problems: &mut Problems) -> io::Result<Vec<ArchiveEntry>> {
    let Some(directory) = find(file, problems)? else { return Ok(Vec::new()) };
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let archive = match ZipArchive::with_config(config, BufReader::new(file)) {
        Ok(archive) => archive,
        Err(ZipError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        Err(error) => {
            problems.add("", format!("its directory is malformed: {error}"));
            return Ok(Vec::new());
        }
    };
    if archive.has_duplicate_names() {
        problems.add("", "it has several entries of one name");
        return Ok(Vec::new());
    }
    let mut at = directory.start;
    let mut heads = Vec::with_capacity(archive.len());
    for entry in (0..archive.len()).map_while(|at| archive.by_index_data(at).ok()) {
        let Some(central) = Head::central(file, at, directory.end)? else { break };
        at = central.end;
        match described(&entry, &central) {
            Ok(entry) => heads.push((entry, central)),
            Err(why) => problems.add(&String::from_utf8_lossy(&central.name), why),
        }
    }
    if at != directory.end || archive.len() as u64 != directory.entries {
        problems.add("", "its directory disagrees with its end record");
    }
    if !problems.is_empty() {
        return Ok(Vec::new());
    }
    heads.sort_unstable_by_key(|(entry, _)| entry.head);
    let next = heads.iter().skip(1).map(|(entry, _)| entry.head.min(directory.start));
    let next: Vec<u64> = next.chain([directory.start]).collect();
    if heads.first().map_or(directory.start, |(entry, _)| entry.head) != 0 {
        problems.add("", "it has data before its first entry");
    }
    let mut entries = Vec::with_capacity(heads.len());
    for ((mut entry, central), next) in heads.into_iter().zip(next) {
        match locate(file, &mut entry, &central, next)? {
            Ok(()) if entry.name.ends_with('/') => {}
            Ok(()) => entries.push(entry),
            Err(why) => problems.add(&entry.name, why),
        }
    }
    Ok(entries)
}

/// A raw header.
struct Head {
    fixed: Vec<u8>,
    name: Vec<u8>,
    extra: Vec<u8>,
    end: u64,
}

impl Head {
    /// A header of the directory, `None` if it goes beyond `bound`.
    fn central(file: &File, at: u64, bound: u64) -> io::Result<Option<Self>> {
        let head = Self::read(file, at, bound, 46, 28)?;
        let comment = |head: &Self| Fields(&head.fixed[32..]).u16();
        Ok(head.map(|head| Self { end: head.end + u64::from(comment(&head)), ..head }).filter(|head| head.end <= bound))
    }

    /// The header before an entry's bytes.
    fn local(file: &File, at: u64, bound: u64) -> io::Result<Option<Self>> {
        Self::read(file, at, bound, 30, 26)
    }

    /// `lengths`: the offset of the lengths of name and extra fields.
    fn read(file: &File, at: u64, bound: u64, fixed: usize, lengths: usize) -> io::Result<Option<Self>> {
        let fits = |end: u64| end <= bound;
        let Some(start) = at.checked_add(fixed as u64).filter(|end| fits(*end)) else { return Ok(None) };
        let mut fixed = vec![0; fixed];
        file.read_exact_at(&mut fixed, at)?;
        let mut fields = Fields(&fixed[lengths..]);
        let (name, extra) = (usize::from(fields.u16()), usize::from(fields.u16()));
        let end = start + (name + extra) as u64;
        if !fits(end) {
            return Ok(None);
        }
        let mut name_and_extra = vec![0; name + extra];
        file.read_exact_at(&mut name_and_extra, start)?;
        let extra = name_and_extra.split_off(name);
        Ok(Some(Self { fixed, name: name_and_extra, extra, end }))
    }

    /// The extra field of large sizes, if there is one.
    ///
    /// # Errors
    /// An extra field is malformed, repeated, or not known to be harmless.
    fn large_sizes(&self) -> Result<Option<&[u8]>, &'static str> {
        let (mut fields, mut large) = (Fields(&self.extra), None);
        while !fields.0.is_empty() {
            let whole = fields.0.len() >= 4;
            let (id, length) = (fields.u16(), usize::from(fields.u16()));
            if !whole || fields.0.len() < length {
                return Err("its extra fields are malformed");
            }
            let value = fields.bytes(length);
            match id {
                EXTRA_64 if large.is_none() => large = Some(value),
                EXTRA_NAME => return Err("it has a second name"),
                EXTRA_AES => return Err("it is encrypted"),
                id if EXTRA_HARMLESS.contains(&id) => {}
                _ => return Err("it has an unknown extra field"),
            }
        }
        Ok(large)
    }
}

/// Parses an entry of the directory.
///
/// # Errors
/// Why it can't be an object of a pipeline.
fn described(entry: &ZipFileEntry<'_>, central: &Head) -> Result<ArchiveEntry, &'static str> {
    let mut fields = Fields(&central.fixed[8..]);
    let (flags, method) = (fields.u16(), fields.u16());
    let (mut sizes, mut place) = (Fields(&central.fixed[20..]), Fields(&central.fixed[34..]));
    let (packed, size) = (sizes.u32(), sizes.u32());
    let (disk, _attributes, head) = (place.u16(), place.bytes(6), place.u32());
    let large = central.large_sizes()?;
    let name = std::str::from_utf8(&central.name).map_err(|_| "its name is not UTF-8")?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err("its name is empty or too long");
    }
    if !name.is_ascii() && flags & FLAG_UTF8 == 0 {
        return Err("its name is not marked as UTF-8");
    }
    if flags & FLAGS_ENCRYPTED != 0 {
        return Err("it is encrypted");
    }
    let method = match method {
        0 => CompressionMethod::Stored,
        8 => CompressionMethod::Deflated,
        _ => return Err("unsupported compression method, expected stored or deflated"),
    };
    let is_folder = name.ends_with('/');
    let kind = entry.external_attributes() >> 16 & MODE_KIND;
    if kind != 0 && kind != if is_folder { MODE_FOLDER } else { MODE_FILE } {
        return Err("it is not a regular file");
    }
    if flags & FLAG_PATCHED != 0 || disk != 0 {
        return Err("it is a patch, or part of another archive");
    }
    if entry.name_raw() != central.name || entry.central_header_start() + 46 > central.end {
        return Err("its directory is ambiguous");
    }
    let numbers = [(size, entry.size()), (packed, entry.compressed_size()), (head, entry.header_start())];
    if !sizes_agree(&numbers, large, |found, true_one| found == true_one) {
        return Err("its sizes are malformed");
    }
    let (crc, packed, size, head) = (entry.crc32(), entry.compressed_size(), entry.size(), entry.header_start());
    if is_folder && size != 0 {
        return Err("it is a folder with contents");
    }
    Ok(ArchiveEntry { name: name.to_owned(), method, crc, packed, size, head, start: 0 })
}

/// Whether 32-bit fields and the extra field of 64-bit sizes agree with these numbers: each in one of them, or equal in
/// both.
fn sizes_agree(numbers: &[(u32, u64)], large: Option<&[u8]>, is_said: impl Fn(u64, u64) -> bool) -> bool {
    let is_large = |(narrow, _): &(u32, u64)| *narrow == u32::MAX && large.is_some();
    let fits = |large: &[u8], those: &[(u32, u64)]| {
        let mut fields = Fields(large);
        large.len() == 8 * those.len() && those.iter().all(|(_, number)| is_said(fields.u64(), *number))
    };
    let narrow =
        numbers.iter().filter(|number| !is_large(number)).all(|(narrow, number)| is_said((*narrow).into(), *number));
    let only_large: Vec<(u32, u64)> = numbers.iter().copied().filter(is_large).collect();
    narrow && large.is_none_or(|large| fits(large, &only_large) || fits(large, numbers) || fits(large, &numbers[..2]))
}

/// Locates the bytes of an entry after its local header, which must agree with the directory. They end where the next
/// header begins.
fn locate(file: &File, entry: &mut ArchiveEntry, central: &Head, next: u64) -> io::Result<Result<(), &'static str>> {
    const HEADER_MISMATCH: Result<(), &str> = Err("its local header disagrees with the directory");
    let Some(local) = Head::local(file, entry.head, next)? else {
        return Ok(Err("its bytes overlap another entry, or are outside the archive"));
    };
    entry.start = local.end;
    let mut fields = Fields(&local.fixed);
    let (signature, _needed) = (fields.u32(), fields.u16());
    let flags_and_method = fields.bytes(4);
    let (_time, crc, packed, size) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    if signature != LOCAL_HEAD || local.name != central.name || flags_and_method != &central.fixed[8..12] {
        return Ok(HEADER_MISMATCH);
    }
    let large = match local.large_sizes() {
        Ok(large) => large,
        Err(why) => return Ok(Err(why)),
    };
    let streamed = Fields(flags_and_method).u16() & FLAG_STREAMED != 0;
    let is_said = |found: u64, true_one: u64| found == true_one || (streamed && found == 0);
    let sizes = [(size, entry.size), (packed, entry.packed)];
    if !is_said(crc.into(), entry.crc.into()) || !sizes_agree(&sizes, large, is_said) {
        return Ok(HEADER_MISMATCH);
    }
    let Some(rest) = entry.start.checked_add(entry.packed).and_then(|end| next.checked_sub(end)) else {
        return Ok(Err("its bytes overlap another entry, or are outside the archive"));
    };
    match (streamed, rest) {
        (false, 0) => Ok(Ok(())),
        (true, 16 | 24) => {
            let mut bytes = vec![0; rest as usize];
            file.read_exact_at(&mut bytes, next - rest)?;
            let (mut fields, width) = (Fields(&bytes), (rest as usize - 8) / 2);
            let same = fields.u32() == DESCRIPTOR
                && fields.u32() == entry.crc
                && fields.number(width) == entry.packed
                && fields.number(width) == entry.size;
            Ok(if same { Ok(()) } else { HEADER_MISMATCH })
        }
        (false, _) | (true, _) => Ok(Err("unexpected data after it")),
    }
}

fn find(file: &File, problems: &mut Problems) -> io::Result<Option<Directory>> {
    let length = file.metadata()?.len();
    let mut refuse = |what: &str| {
        problems.add("", what);
        Ok(None)
    };
    let Some(at) = length.checked_sub(END_BYTES) else { return refuse("it is not a zip archive") };
    let mut end = [0; END_BYTES as usize];
    file.read_exact_at(&mut end, at)?;
    let mut fields = Fields(&end);
    if fields.u32() != END {
        return refuse("it is not a zip archive, is truncated, or has data after its end");
    }
    let (disk, first_disk) = (fields.u16(), fields.u16());
    let (here, entries) = (fields.u16(), fields.u16());
    let (size, start, comment) = (fields.u32(), fields.u32(), fields.u16());
    let wide = entries == u16::MAX || size == u32::MAX || start == u32::MAX;
    if comment != 0 || (!wide && (disk != 0 || first_disk != 0 || here != entries)) {
        return refuse("it is part of a multi-part archive, or has a comment");
    }
    let directory = if wide {
        match find_zip64_directory(file, at)? {
            Some(directory) => directory,
            None => return refuse("its end record is malformed"),
        }
    } else {
        let start = u64::from(start);
        Directory { start, end: start + u64::from(size), entries: entries.into() }
    };
    let tail = if wide { END_64_BYTES + LOCATOR_64_BYTES } else { 0 };
    if directory.end.checked_add(tail) != Some(at) {
        return refuse("its directory isn't where its end record says");
    }
    if !wide && has_two_end_records(file, at)? {
        return refuse("it has two end records");
    }
    if directory.entries > ARCHIVE_OBJECTS_MAX as u64 + 1 || directory.end - directory.start > DIRECTORY_BYTES_MAX {
        return refuse(&format!("it has more than {ARCHIVE_OBJECTS_MAX} objects"));
    }
    Ok(Some(directory))
}

/// Whether a ZIP64 end record precedes the plain one: some readers use it regardless of the plain one.
fn has_two_end_records(file: &File, at: u64) -> io::Result<bool> {
    let Some(start) = at.checked_sub(LOCATOR_64_BYTES) else { return Ok(false) };
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, start)?;
    Ok(Fields(&bytes).u32() == LOCATOR_64)
}

/// Parses the ZIP64 end record; `at`: the offset of the plain one.
fn find_zip64_directory(file: &File, at: u64) -> io::Result<Option<Directory>> {
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

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<ArchiveEntry>, String> {
        let mut problems = Problems::default();
        let entries = read(&file(bytes), &mut problems).unwrap();
        if problems.is_empty() { Ok(entries) } else { Err(format!("{problems:?}")) }
    }

    /// An archive as an export writes it.
    fn streamed(count: usize, options: SimpleFileOptions) -> Vec<u8> {
        let mut zip = ZipWriter::new_stream(Vec::new());
        for at in 0..count {
            zip.start_file(format!("lake/{at:06}.csv"), options).unwrap();
            zip.write_all(b"a").unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn zip64_archives_are_read() {
        let entries = read_all(&streamed(70_000, SimpleFileOptions::default())).unwrap();
        assert_eq!(entries.len(), 70_000);
        assert_eq!((entries[69_999].name.as_str(), entries[69_999].size), ("lake/069999.csv", 1));
        let wide = read_all(&streamed(3, SimpleFileOptions::default().large_file(true))).unwrap();
        assert_eq!(wide.iter().map(|entry| entry.size).collect::<Vec<_>>(), [1, 1, 1]);
    }

    /// Archives found by the fuzz target that other readers interpret differently from their directory.
    #[test]
    fn ambiguous_archives_are_rejected() {
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/corpus/archive/");
        let read = |name: &str| read_all(&std::fs::read(format!("{kept}{name}.in")).unwrap());
        assert!(read("unicode-path").unwrap_err().contains("second name"));
        assert!(read("two-ends").unwrap_err().contains("two end records"));
        assert!(read("aes-extra").unwrap_err().contains("encrypted"));
        // Rejected regardless of its content: readers differ in when they use it.
        assert!(read("unicode-path-same").unwrap_err().contains("second name"));
        assert_eq!(read("streamed").map(|entries| entries.len()), Ok(1));
    }

    /// The bytes of one entry (`lake/a`), its directory and the end record; tests change each of them.
    fn parts() -> (Vec<u8>, Vec<u8>) {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("lake/a", SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored))
            .unwrap();
        zip.write_all(b"12345").unwrap();
        let mut bytes = zip.finish().unwrap().into_inner();
        let at = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
        let tail = bytes.split_off(at);
        (bytes, tail)
    }

    /// Joins an entry and a tail, adjusting the tail's offsets to the entry's new length.
    fn joined(entry: &[u8], tail: &[u8]) -> Vec<u8> {
        let mut tail = tail.to_vec();
        let end = tail.len() - END_BYTES as usize;
        tail[end + 16..end + 20].copy_from_slice(&(entry.len() as u32).to_le_bytes());
        [entry, &tail].concat()
    }

    /// Adds an extra field to an entry whose header has its lengths at `lengths`, and its six-byte name after `fixed`
    /// bytes.
    fn with_extra(head: &[u8], lengths: usize, fixed: usize, field: &[u8]) -> Vec<u8> {
        let mut head = head.to_vec();
        head[lengths + 2..lengths + 4].copy_from_slice(&(field.len() as u16).to_le_bytes());
        head.splice(fixed + 6..fixed + 6, field.iter().copied());
        head
    }

    #[test]
    fn data_outside_entries_is_rejected() {
        let (entry, tail) = parts();
        assert_eq!(read_all(&joined(&entry, &tail)).map(|entries| entries.len()), Ok(1));
        // After an entry: a gap, another local header that is missing from the directory, a descriptor without its
        // flag.
        for more in [&b"x"[..], &entry, b"PK\x07\x08\0\0\0\0\x05\0\0\0\x05\0\0\0"] {
            let message = read_all(&joined(&[&entry[..], more].concat(), &tail)).unwrap_err();
            assert!(message.contains("unexpected data"), "{message}");
        }
        // A gap before the first entry, with adjusted offsets.
        let mut moved = tail.clone();
        moved[42..46].copy_from_slice(&2_u32.to_le_bytes());
        let message = read_all(&joined(&[b"MZ", &entry[..]].concat(), &moved)).unwrap_err();
        assert!(message.contains("before its first entry"), "{message}");
        // Only a directory: sequential readers see the content of the gap.
        let mut none = tail[tail.len() - END_BYTES as usize..].to_vec();
        none[8..16].fill(0);
        assert!(read_all(&joined(&entry, &none)).is_err());
    }

    #[test]
    fn local_headers_must_agree_with_the_directory() {
        let (entry, tail) = parts();
        // Flags, method, checksum, packed size, size, name, each in the local header alone, then in the directory alone.
        for (at, in_directory) in [(6, 8), (8, 10), (14, 16), (18, 20), (22, 24), (30, 46)] {
            let (mut local, mut central) = (entry.clone(), tail.clone());
            local[at] ^= 2;
            central[in_directory] ^= 2;
            assert!(read_all(&joined(&local, &tail)).is_err(), "local {at}");
            assert!(read_all(&joined(&entry, &central)).is_err(), "central {at}");
        }
        // A streamed entry's descriptor, too.
        let good = streamed(1, SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored));
        assert!(read_all(&good).is_ok());
        let at = good.windows(4).position(|four| four == b"PK\x07\x08").unwrap();
        for byte in [0, 4, 8, 12] {
            let mut bytes = good.clone();
            bytes[at + byte] ^= 2;
            assert!(read_all(&bytes).is_err(), "{byte}");
        }
    }

    #[test]
    fn unknown_extra_fields_are_rejected_in_both_headers() {
        let (entry, tail) = parts();
        let field =
            |id: u16, value: &[u8]| [&id.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), value].concat();
        let name = field(EXTRA_NAME, b"\x01\0\0\0\0lake/b");
        let large = field(EXTRA_64, &[5, 0, 0, 0, 0, 0, 0, 0]);
        for wrong in [
            name,
            field(EXTRA_AES, &[1, 0, b'A', b'E', 3, 8, 0]),
            field(0x6375, b"\x01\0\0\0\0x"),
            field(0x0017, &[0; 4]),
            field(0x4242, b"x"),
            [large.clone(), large].concat(),
            b"\x55\x54\xff\x00\x01".to_vec(),
            b"\x55\x54".to_vec(),
        ] {
            let local = joined(&with_extra(&entry, 26, 30, &wrong), &tail);
            assert!(read_all(&local).is_err(), "local {wrong:?}");
            let mut central = with_extra(&tail, 28, 46, &wrong);
            let end = central.len() - END_BYTES as usize;
            let size = (end as u32).to_le_bytes();
            central[end + 12..end + 16].copy_from_slice(&size);
            assert!(read_all(&joined(&entry, &central)).is_err(), "central {wrong:?}");
        }
        let time = field(0x5455, &[1, 0, 0, 0, 0]);
        assert!(read_all(&joined(&with_extra(&entry, 26, 30, &time), &tail)).is_ok());
    }

    #[test]
    fn single_byte_corruption_never_panics_or_reads_outside() {
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
