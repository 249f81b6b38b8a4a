//! Cells of text become typed values, strictly: only the declared formats and null tokens, no rounding, no lossy cast.
