//! Any bytes as an archive: what the strict reader lets pass means the same to the `zip` crate.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Write};

use super::entries::{self, Method};
use super::inspect::Problems;

/// The whole input is the archive.
pub fn archive(input: &[u8]) {
    let mut file: File = tempfile::tempfile().expect("there is a folder for temporary files");
    file.write_all(input).expect("there is room");
    let mut problems = Problems::default();
    let entries = entries::read(&file, &mut problems).expect("the file can be read");
    for entry in &entries {
        let end = entry.start.checked_add(entry.packed);
        assert!(end.is_some_and(|end| end <= input.len() as u64) || !problems.is_empty(), "{entry:?} lies outside");
    }
    if !problems.is_empty() {
        return;
    }
    for pair in entries.windows(2) {
        assert!(pair[0].start + pair[0].packed <= pair[1].start, "{pair:?} share bytes");
    }
    // What the crate refuses no pipeline is made of: reading the contents comes later.
    let Ok(mut theirs) = zip::ZipArchive::new(Cursor::new(input)) else { return };
    let mut found = BTreeMap::new();
    for at in 0..theirs.len() {
        let Ok(entry) = theirs.by_index_raw(at) else { return };
        let Ok(name) = entry.name().map(std::borrow::Cow::into_owned) else { return };
        if !name.ends_with('/') {
            let method = match entry.compression() {
                zip::CompressionMethod::Stored => Some(Method::Stored),
                zip::CompressionMethod::Deflated => Some(Method::Deflated),
                _ => None,
            };
            let sizes = (entry.compressed_size(), entry.size(), entry.crc32());
            found.insert(name, (method, entry.data_start(), sizes));
        }
    }
    let ours: BTreeMap<_, _> =
        entries.into_iter().map(|e| (e.name, (Some(e.method), Some(e.start), (e.packed, e.size, e.crc)))).collect();
    assert_eq!(ours, found);
}
