//! Null tokens.

/// The declared null tokens, with a quick test by length, since most cells are no token.
#[derive(Debug, Clone)]
pub(super) struct NullTokens {
    /// Bit `min(len, 63)` is set if a token has that length.
    lengths: u64,
    tokens: Vec<Box<[u8]>>,
}

impl NullTokens {
    pub fn new(tokens: &[String]) -> Self {
        let lengths = tokens.iter().fold(0, |bits, token| bits | 1 << token.len().min(63));
        Self { lengths, tokens: tokens.iter().map(|t| t.as_bytes().into()).collect() }
    }

    /// Bit `min(len, 63)` is set if a token has that length.
    pub fn lengths(&self) -> u64 {
        self.lengths
    }

    #[inline(always)]
    pub fn contains(&self, cell: &[u8]) -> bool {
        // The one token without bytes needs no look at them.
        self.lengths >> cell.len().min(63) & 1 != 0 && (cell.is_empty() || self.is_token(cell))
    }

    #[inline(never)]
    fn is_token(&self, cell: &[u8]) -> bool {
        self.tokens.iter().any(|token| **token == *cell)
    }
}
