//! Reads one source from end to end and cuts it into chunks of whole records.

/// A piece of a source: whole records, decoded to UTF-8 (UTF-8 sources are not yet checked for validity).
#[derive(Debug, Default)]
pub struct Chunk {
    pub text: Vec<u8>,
    /// Physical line of the first byte, counted from 1.
    pub first_line: u64,
    /// Offset of the first byte in the decompressed source.
    pub offset: u64,
}
