//! Objects in folders of the file system.
//!
//! Invariant: a key's file is either the whole old object or the whole new one, also after a crash; no key reaches a file
//! outside of its folder.
//!
//! The store keeps its own files in a folder `.lakemill`, which is never listed and unreachable by keys: `tmp/` in every
//! writable folder, `locks/` and `fence/` once per store. Two locks guard the moment at which an object changes (never the
//! writing of its body, nor an fsync): one of 64 for the key, so that preconditions hold between threads and processes,
//! and within it, for writes of a run, the lock of the pipeline's fence.
//!
//! Symbolic links are followed in read-only folders (except loops, and links into writable folders of this store), and
//! are not objects in writable folders.

mod being_written;
mod error;
mod etag;
mod folder;
mod list;
mod lock;
mod object_store;
mod output_lock;
mod read;
mod remove;
mod snapshot;
mod stage;
mod store;
mod sync;
#[cfg(test)]
mod tests;
mod walk;
mod watch;
mod write;

pub use folder::{BucketNames, DOT_FILES, Mount, MountError, OWN_FOLDER};
pub use output_lock::{OutputLock, OutputLockError};
pub use store::FsStore;
pub use watch::{LakeWatch, WatchError};
