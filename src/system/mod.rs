//! What the operating system gives a process: folders that are removed with it, and newer time-zone data.
//!
//! Must not: know what the folders hold.

pub mod process_folder;
pub mod tzdata;

pub use process_folder::ProcessFolder;
