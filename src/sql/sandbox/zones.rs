//! The time-zone database for children: a folder that they may read besides their own.
//!
//! DuckDB's time zones are ICU's, which reads `zoneinfo64.res` from the folder in an environment variable and otherwise uses
//! built-in data. A child checks that its DuckDB uses the folder's data.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::error::SandboxError;
use crate::domain::zones;
use crate::system::ProcessFolder;

/// The variable by which ICU finds the folder.
pub const VARIABLE: &str = "ICU_TIMEZONE_FILES_DIR";
const PREFIX: &str = "lakemill-zones-";
const DUCKDB_ZONES_FILE: &str = "zoneinfo64.res";
/// The database for the child's Rust code; absent if it is the bundled one.
const ZONES_FILE: &str = "zones.bin";

/// Writes the database of this process into a new folder.
///
/// # Errors
/// The folder can't be created or written.
pub fn write() -> Result<ProcessFolder, SandboxError> {
    let temporary = std::env::temp_dir();
    let failed = |source| SandboxError::Folder {
        what: "writing time-zone data to a folder in",
        path: temporary.display().to_string(),
        source,
    };
    let folder = ProcessFolder::make_shared(&temporary, PREFIX).map_err(failed)?;
    write_files(folder.path()).map_err(failed)?;
    Ok(folder)
}

fn write_files(folder: &Path) -> io::Result<()> {
    let database = zones::database();
    std::fs::write(folder.join(DUCKDB_ZONES_FILE), database.zoneinfo64())?;
    if database.is_bundled() {
        return Ok(());
    }
    let mut out = BufWriter::new(File::create(folder.join(ZONES_FILE))?);
    for part in [database.version().as_bytes()].into_iter().chain(database.files().flat_map(|(n, d)| [n.as_bytes(), d]))
    {
        out.write_all(&(part.len() as u64).to_le_bytes())?;
        out.write_all(part)?;
    }
    out.flush()
}

/// Installs the database that the parent wrote to `folder`, in the child.
///
/// # Errors
/// The file exists and can't be read.
pub fn install(folder: &Path) -> io::Result<()> {
    let bytes = match std::fs::read(folder.join(ZONES_FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut rest = bytes.as_slice();
    let mut next = || {
        let length = rest.split_off(..8)?;
        let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
        rest.split_off(..length)
    };
    let text = |part: &[u8]| String::from_utf8(part.to_vec()).ok();
    let version = next().and_then(text).ok_or_else(|| io::Error::other("the time-zone data has no version"))?;
    let mut files = BTreeMap::new();
    while let (Some(name), Some(data)) = (next().and_then(text), next()) {
        files.insert(name, data.to_vec());
    }
    zones::install(version, files);
    Ok(())
}

/// A query that fails unless DuckDB uses the database of this process.
pub fn probe() -> String {
    format!("SELECT timezone('{}', TIMESTAMPTZ '2000-01-01 00:00:00+00')::VARCHAR", zones::database().marker())
}
