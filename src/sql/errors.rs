//! Words DuckDB's messages for people, and tells a row's fault from DuckDB's own.

/// Longest message that is passed on, in characters.
const MESSAGE_CHARS_MAX: usize = 600;
/// For DuckDB's own words, which name a setting that nobody may change.
const TOO_DEEP: &str = "nested too deep; give parts of it names with `WITH`";
/// Kinds of error that say nothing of the values at hand.
const OWN_FAULTS: &[&str] = &["Out of Memory", "INTERNAL", "FATAL", "IO", "Interrupt", "INTERRUPT", "Permission"];

/// Whether `error` is a failure of the engine, not of a value.
pub fn is_own_fault(error: &duckdb::Error) -> bool {
    let duckdb::Error::DuckDBFailure(_, Some(message)) = error else { return true };
    let kind = message.split(" Error: ").next().unwrap_or_default();
    !message.contains(" Error: ") || OWN_FAULTS.contains(&kind)
}

/// DuckDB's message without its kind, the quoted query (which is not the person's text) and the end of a long list.
pub fn plain(message: &str) -> String {
    let message = message.split("\n\nLINE ").next().unwrap_or_default();
    let message = match message.split_once(" Error: ") {
        Some((kind, rest)) if kind.len() < 40 && !kind.contains('\n') => rest,
        _ => message,
    };
    if message.contains("max_expression_depth") {
        return TOO_DEEP.to_owned();
    }
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut text = lines.next().unwrap_or_default().to_owned();
    for (count, line) in lines.enumerate() {
        if count == 4 {
            text.push_str("; …");
            break;
        }
        text.push_str(if text.ends_with([':', '.', ';']) { " " } else { "; " });
        text.push_str(line);
    }
    if text.chars().count() > MESSAGE_CHARS_MAX {
        text = text.chars().take(MESSAGE_CHARS_MAX).chain(['…']).collect();
    }
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_ascii_lowercase() => {
            first.to_ascii_lowercase().to_string() + &text[1..]
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_kind_and_the_query() {
        let raw = "Conversion Error: Could not convert string 'x' to INT32\n\nLINE 1: select cast(\n  ^";
        assert_eq!(plain(raw), "could not convert string 'x' to INT32");
        assert_eq!(
            plain("Binder Error: No function.\n\tCandidate functions:\n\tf(A)\n"),
            "no function. Candidate functions: f(A)"
        );
        let raw = "Parser Error: Max expression depth limit of 1000 exceeded. Use \"SET max_expression_depth TO x\" to";
        assert_eq!(plain(raw), TOO_DEEP);
    }
}
