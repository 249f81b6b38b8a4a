//! What the operating system gives a process: folders that are removed with it.
//!
//! Must not: know what the folders hold.

pub mod process_folder;

pub use process_folder::ProcessFolder;
