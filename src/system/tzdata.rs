//! Loads the system's time-zone database if it is newer than the bundled one.
//!
//! It is read once, at the start of a process, so that nothing changes during a run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::domain::zones;

/// Its usual folder.
pub const FOLDER: &str = "/usr/share/zoneinfo";
/// The database as one text; its first line is `# version 2026f`.
const SOURCE: &str = "tzdata.zi";

const SOURCE_BYTES_MAX: u64 = 4 << 20;
const ZONE_BYTES_MAX: u64 = 64 << 10;
const ZONES_MAX: usize = 4_000;

/// Installs the database in `folder` if it is newer than the bundled one. Ignores a folder without a readable version.
/// Must be called before zones are used.
pub fn install_newer(folder: &Path) {
    let Ok(version) = version(&folder.join(SOURCE)) else { return };
    if version.as_str() <= zones::bundled_version() {
        return;
    }
    if let Ok(files) = read(folder) {
        zones::install(version, files);
    }
}

fn version(source: &Path) -> io::Result<String> {
    const FIRST_LINE_BYTES_MAX: u64 = 100;
    let mut text = String::new();
    File::open(source)?.take(FIRST_LINE_BYTES_MAX).read_to_string(&mut text)?;
    let version = text.lines().next().and_then(|line| line.strip_prefix("# version "));
    let is_release = |version: &&str| {
        let (year, letters) = version.split_at_checked(4).unwrap_or_default();
        !letters.is_empty()
            && year.bytes().all(|b| b.is_ascii_digit())
            && letters.bytes().all(|b| b.is_ascii_lowercase())
    };
    version.filter(is_release).map(str::to_owned).ok_or_else(|| io::Error::other("it has no version"))
}

/// The zones that the source names, with their data. A link without a file has the data of its target.
fn read(folder: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut source = String::new();
    File::open(folder.join(SOURCE))?.take(SOURCE_BYTES_MAX).read_to_string(&mut source)?;
    let mut files = BTreeMap::new();
    let names = source.lines().filter_map(|line| {
        let mut words = line.split(' ');
        match (words.next()?, words.next()?, words.next()) {
            ("Z", name, _) => Some((name, name)),
            ("L", target, Some(name)) => Some((name, target)),
            _ => None,
        }
    });
    for (name, target) in names.filter(|(name, target)| is_name(name) && is_name(target)).take(ZONES_MAX) {
        let data = zone(&folder.join(name)).or_else(|_| zone(&folder.join(target)));
        if let Ok(data) = data {
            files.insert(name.to_owned(), data);
        }
    }
    Ok(files)
}

fn zone(path: &Path) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    File::open(path)?.take(ZONE_BYTES_MAX).read_to_end(&mut data)?;
    Ok(data)
}

/// Whether it is a path below the folder.
fn is_name(name: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-+".contains(&b));
    name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_and_links_are_read_and_names_outside_the_folder_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("Europe")).unwrap();
        std::fs::write(at("Europe/Berlin"), "berlin").unwrap();
        std::fs::write(
            at(SOURCE),
            "# version 2031c\nR x 1 2\nZ Europe/Berlin 1 - CET\nL Europe/Berlin Old\nZ ../x 1\n",
        )
        .unwrap();
        assert_eq!(version(&at(SOURCE)).unwrap(), "2031c");
        let files = read(folder.path()).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["Europe/Berlin", "Old"]);
        assert_eq!(files["Old"], b"berlin");
        for text in ["", "# version ", "# version 2031", "# version unknown", "2031c"] {
            std::fs::write(at(SOURCE), text).unwrap();
            assert!(version(&at(SOURCE)).is_err(), "{text}");
        }
    }
}
