//! Objects in folders of the file system.
