//! Errors of the key-value store.

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// No connection, or no reply in time. The operation may have taken effect.
    #[error("the key-value store can't be reached: {source} (step `{operation}`)")]
    Unavailable { operation: &'static str, source: std::io::Error },
    /// The store rejected the operation (out of memory, read-only, not permitted); nothing changed.
    #[error("the key-value store refused: {reason} (step `{operation}`)")]
    Refused { operation: &'static str, reason: String },
    /// A key holds data that this program did not write.
    #[error("unexpected data in the key-value store: expected {expected}, found `{found}` (step `{operation}`)")]
    Malformed { operation: &'static str, expected: &'static str, found: String },
}

pub type KvResult<T> = Result<T, KvError>;
