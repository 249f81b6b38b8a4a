//! The folder of `lakemill up`: objects, queue and secrets.
//!
//! ```text
//! DIR/objects/svc-{pipelines,lake,warehouse}   the store
//! DIR/kv.db                                    the queue
//! DIR/secrets/                                 created once, readable by their owner only
//! DIR/scratch/                                 temporary files of runs
//! DIR/cache/                                   files cached for queries
//! DIR/up.lock                                  locked by the process that serves the folder, with its addresses
//! ```
//!
//! Folders are created accessible to their owner only. Existing ones keep their mode, so that the owner can give others
//! access: to the folder itself (`chmod 750` or `711`), then to `objects`.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::adapters::password::PasswordHash;
use crate::config::Environment;
use crate::system::ProcessLock;

const PIPELINES: &str = "svc-pipelines";
const LAKE: &str = "svc-lake";
const WAREHOUSE: &str = "svc-warehouse";
/// Names allowed in a folder that is adopted.
const OWN: &[&str] =
    &["objects", "kv.db", "kv.db-wal", "kv.db-shm", "secrets", "scratch", "cache", "up.lock", "lakemill.log"];
/// Secrets to generate if the environment has none.
const SECRETS: &[&str] = &["SVC_WORKER_TOKEN", "SVC_WEBHOOK_SECRET"];
/// The file with the hash of the generated password.
const PASSWORD_HASH: &str = "SVC_ADMIN_PASSWORD_HASH";
/// Characters of the password, without easily confused ones: 32, so each carries 5 bits.
const PASSWORD_ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Groups of a password, and characters of a group: 100 bits.
const PASSWORD_GROUPS: usize = 4;
const PASSWORD_GROUP_CHARS: usize = 5;
const LOCK: &str = "up.lock";
/// Mode of the folder itself, and of secrets and copies of data.
const PRIVATE: u32 = 0o700;
/// Mode of the store: accessible to the group as well, once the folder is.
const OBJECTS: u32 = 0o750;

/// Where the services of a folder listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    pub worker: SocketAddr,
    pub web: SocketAddr,
}

/// Locks a folder for one process until dropped.
#[derive(Debug)]
pub struct FolderLock {
    lock: ProcessLock,
    path: PathBuf,
}

impl FolderLock {
    /// Records the process that serves the folder, and its addresses, for other processes and for `doctor`.
    ///
    /// # Errors
    /// A message that names the file.
    pub fn announce(&self, at: Addresses) -> Result<(), String> {
        self.write(&format!("worker {}\nweb {}\n", at.worker, at.web))
    }

    fn write(&self, addresses: &str) -> Result<(), String> {
        let Some(mut file) = self.lock.file() else { return Ok(()) };
        let text = format!("{}\n{addresses}", std::process::id());
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("--data: `{}`: {error}", self.path.display()))
    }

    /// The addresses of the last start.
    fn read(&self) -> String {
        let mut text = String::new();
        // Without it, they are written when they are known.
        let _ = self.lock.file().map(|mut file| file.read_to_string(&mut text));
        text
    }
}

/// The folder of a `lakemill up`.
#[derive(Debug)]
pub struct Embedded {
    /// Absolute.
    root: PathBuf,
}

impl Embedded {
    /// Creates missing folders and secrets.
    ///
    /// # Errors
    /// A message that names the folder or file.
    pub fn make(root: &Path) -> Result<Self, String> {
        let failed = |path: &Path, error: io::Error| format!("--data: `{}`: {error}", path.display());
        let folder = |path: &Path, mode| DirBuilder::new().recursive(true).mode(mode).create(path);
        if root.exists() && !root.is_dir() {
            return Err(format!("--data: `{}` is a file; expected a folder, or a name for a new one", root.display()));
        }
        if let Some(above) = root.parent().filter(|above| !above.as_os_str().is_empty()) {
            std::fs::create_dir_all(above).map_err(|e| failed(above, e))?;
        }
        folder(root, PRIVATE).map_err(|e| failed(root, e))?;
        let others = std::fs::read_dir(root).map_err(|e| failed(root, e))?.flatten();
        let foreign = others.map(|entry| entry.file_name()).find(|name| !OWN.iter().any(|own| name == own));
        if let Some(name) = foreign.filter(|_| !root.join("objects").is_dir()) {
            let name = name.to_string_lossy();
            return Err(format!(
                "--data: `{}` is not a data folder: it contains `{name}`; name an empty or a new folder",
                root.display()
            ));
        }
        let root = root.canonicalize().map_err(|e| failed(root, e))?;
        let embedded = Self { root };
        for path in [embedded.pipelines(), embedded.lake().join("pipelines"), embedded.warehouse()] {
            folder(&path, OBJECTS).map_err(|e| failed(&path, e))?;
        }
        for name in ["secrets", "scratch", "cache"] {
            let path = embedded.root.join(name);
            folder(&path, PRIVATE).map_err(|e| failed(&path, e))?;
        }
        for name in SECRETS {
            let path = embedded.secret(name);
            make_secret(&path).map_err(|e| failed(&path, e))?;
        }
        Ok(embedded)
    }

    /// Locks the folder: two processes would watch, run and cache everything twice.
    ///
    /// # Errors
    /// The folder is served by another process, or the file can't be locked.
    pub fn lock(&self) -> Result<FolderLock, String> {
        let path = self.root.join(LOCK);
        let failed = |error: &dyn std::fmt::Display| format!("--data: `{}`: {error}", path.display());
        match ProcessLock::try_acquire(&path, 0o600).map_err(|e| failed(&e))? {
            Ok(lock) => {
                let served = FolderLock { lock, path };
                // The addresses of the last start, until new ones are recorded.
                let found = served.read();
                served.write(found.split_once('\n').map_or("", |(_, addresses)| addresses))?;
                Ok(served)
            }
            Err(holder) => Err(format!(
                "--data: `{}` is used by another `lakemill up` (process {}): stop it, or name another folder",
                self.root.display(),
                holder.text.lines().next().unwrap_or("unknown"),
            )),
        }
    }

    /// The addresses of the folder's services, now or when they were last started; `None` if they never were.
    ///
    /// # Errors
    /// A message that names the file, which only its owner can read.
    pub fn addresses(&self) -> Result<Option<Addresses>, String> {
        let path = self.root.join(LOCK);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("--data: `{}`: {error}", path.display())),
        };
        let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Ok(of("worker ").zip(of("web ")).map(|(worker, web)| Addresses { worker, web }))
    }

    /// Generates a password if the folder has none yet, and stores only its hash. Deleting the file of the hash makes
    /// the next start generate another.
    ///
    /// # Errors
    /// A message that names the file.
    pub fn make_password(&self) -> Result<Option<String>, String> {
        let path = self.secret(PASSWORD_HASH);
        let failed = |error: &dyn std::fmt::Display| format!("--data: `{}`: {error}", path.display());
        if path.exists() {
            return Ok(None);
        }
        let password = new_password().map_err(|e| failed(&e))?;
        let hash = PasswordHash::of(&password).map_err(|e| failed(&e))?;
        // Atomically: a partial hash would lock everybody out.
        let mut file = tempfile::NamedTempFile::new_in(self.root.join("secrets")).map_err(|e| failed(&e))?;
        writeln!(file, "{hash}").and_then(|()| file.as_file().sync_all()).map_err(|e| failed(&e))?;
        match file.persist_noclobber(&path) {
            Ok(_) => Ok(Some(password)),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The file with the hash of the password.
    pub fn password_file(&self) -> PathBuf {
        self.secret(PASSWORD_HASH)
    }

    /// Opens the folder, which may exist already.
    ///
    /// # Errors
    /// A message if `root` is not such a folder.
    pub fn open(root: &Path) -> Result<Self, String> {
        match root.canonicalize() {
            Ok(found) if found.join("kv.db").is_file() => Ok(Self { root: found }),
            Ok(_) => Err(format!("--data `{}` is not a folder of `lakemill up`: it has no `kv.db`", root.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("--data `{}` does not exist: expected the data folder of a `lakemill up`", root.display()))
            }
            Err(error) => Err(format!("--data `{}`: {error}", root.display())),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn pipelines(&self) -> PathBuf {
        self.objects().join(PIPELINES)
    }

    pub fn lake(&self) -> PathBuf {
        self.objects().join(LAKE)
    }

    pub fn warehouse(&self) -> PathBuf {
        self.objects().join(WAREHOUSE)
    }

    fn objects(&self) -> PathBuf {
        self.root.join("objects")
    }

    fn secret(&self, name: &str) -> PathBuf {
        self.root.join("secrets").join(name)
    }

    /// A variable for this folder: locations are the folder's, other variables the process's if it has them.
    pub fn variable(&self, name: &str, process: &Environment<'_>) -> Option<OsString> {
        let url = |scheme: &str, path: PathBuf| {
            let mut url = OsString::from(scheme);
            url.push(path);
            Some(url)
        };
        match name {
            "OBJ_ENDPOINT_URL" => return url("file://", self.objects()),
            "KV_URL" => return url("sqlite://", self.root.join("kv.db")),
            "KV_URL_FILE" | "OBJ_ACCESS_KEY_ID_FILE" | "OBJ_SECRET_ACCESS_KEY_FILE" => return None,
            "S3_BUCKET_PIPELINES" => return Some(PIPELINES.into()),
            "S3_BUCKET_LAKE" => return Some(LAKE.into()),
            "S3_BUCKET_WAREHOUSE" => return Some(WAREHOUSE.into()),
            _ => {}
        }
        let own = |name: &str| (process.get)(name).filter(|value| !value.is_empty());
        if let Some(value) = own(name) {
            return Some(value);
        }
        let made = |secret: &&str| SECRETS.contains(secret) || *secret == PASSWORD_HASH;
        if let Some(secret) = name.strip_suffix("_FILE").filter(made) {
            let path = self.secret(secret);
            return (!process.has_secret(secret) && path.try_exists().unwrap_or(true)).then(|| path.into_os_string());
        }
        match name {
            "OBJ_ACCESS_KEY_ID" | "OBJ_SECRET_ACCESS_KEY" | "OBJ_REGION" => Some("embedded".into()),
            "SVC_BIND" => Some("127.0.0.1".into()),
            "SVC_SCRATCH_DIR" => Some(self.root.join("scratch").into_os_string()),
            "SVC_CACHE_DIR" => Some(self.root.join("cache").into_os_string()),
            _ => None,
        }
    }
}

fn new_password() -> Result<String, getrandom::Error> {
    let mut bytes = [0; PASSWORD_GROUPS * PASSWORD_GROUP_CHARS];
    getrandom::fill(&mut bytes)?;
    let chars = bytes.map(|byte| char::from(PASSWORD_ALPHABET[usize::from(byte % 32)]));
    let groups: Vec<String> = chars.chunks(PASSWORD_GROUP_CHARS).map(|group| group.iter().collect()).collect();
    Ok(groups.join("-"))
}

/// 244 random bits in hex, readable by the owner only; an existing one is kept.
fn make_secret(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    };
    let halves = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    writeln!(file, "{}{}", halves[0].simple(), halves[1].simple())
}
