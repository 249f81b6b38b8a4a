//! Finds out from a file's first records how it is to be cut: encoding, delimiter, quotes, comments, preamble, header.

pub(super) mod delimiter;
pub(super) mod encoding;
pub(super) mod header;
pub(super) mod kind;
pub(super) mod plan;
