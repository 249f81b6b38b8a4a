//! Finds the dialect from a file's first records: encoding, delimiter, quotes, comments, preamble, header.

pub(super) mod delimiter;
pub(super) mod encoding;
pub(super) mod header;
pub(super) mod kind;
pub(super) mod plan;
