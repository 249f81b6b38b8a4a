//! Limits of SQL texts, checked before any parser reads them.

/// Brackets that may be open at a time.
pub const BRACKETS_MAX: usize = 200;
/// Deepest nesting of expressions and queries; more is refused, so that no stack overflows.
pub const DEPTH_MAX: usize = 250;

/// Deepest nesting that DuckDB parses outside `json_serialize_sql`; above what the allow-lists pass.
pub const PARSER_DEPTH_MAX: usize = 1_000;
/// Memory limit of DuckDB in a child that evaluates expressions, in bytes.
pub const EVALUATOR_MEMORY_BYTES: u64 = 256 << 20;

/// The first character that no SQL text needs, with its byte.
pub fn control_character(text: &str) -> Option<(usize, char)> {
    text.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// Whether more than [`BRACKETS_MAX`] brackets are open at a time, including those in quotes and comments.
pub fn too_many_brackets(text: &str) -> bool {
    let mut open = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open > BRACKETS_MAX
    })
}

/// ` at character N` for a byte of `text`, counted from 1.
pub fn at_character(text: &str, byte: usize) -> String {
    let before = text.char_indices().take_while(|(at, _)| *at < byte).count();
    format!(" (at character {})", before + 1)
}
