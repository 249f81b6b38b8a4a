//! How messages about documents quote what they found, name what they expected, and guess what was meant.

/// Longest text that a suggestion is looked for, in bytes, and how many candidates are looked at.
const SUGGEST_BYTES_MAX: usize = 64;
const SUGGEST_CANDIDATES_MAX: usize = 1_024;
/// Characters of what was found that a message shows.
const QUOTED_CHARS_MAX: usize = 80;

/// The candidate that `found` is probably a misspelling of.
pub(crate) fn suggest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if found.is_empty() || found.len() > SUGGEST_BYTES_MAX {
        return None;
    }
    let folded = found.to_lowercase();
    let slack = (folded.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != found)
        .take(SUGGEST_CANDIDATES_MAX)
        .map(|c| (strsim::damerau_levenshtein(&folded, &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= slack && *distance < c.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// `: did you mean `x`?` or nothing.
pub(crate) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|s| format!(": did you mean `{s}`?")).unwrap_or_default()
}

/// A text as a message quotes it: cut, and without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let escape = |c: char| c.is_control() || crate::domain::layout::is_bidi_control(c);
    let mut cut = String::new();
    for c in text.chars().take(QUOTED_CHARS_MAX) {
        if escape(c) { cut.extend(c.escape_default()) } else { cut.push(c) }
    }
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() { format!("`{cut}…`") } else { format!("`{cut}`") }
}

/// `1 row` or `2 rows`: the number with the words that go with it.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `` `a`, `b` or `c` ``.
pub(crate) fn ticked(names: &[&str]) -> String {
    let ticked: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    list(&ticked.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `, expected one of …`, or nothing.
pub(crate) fn one_of(names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!(", expected one of {}", ticked(names)) }
}

/// `a, b or c`.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).into(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_near_misses_only() {
        let names = ["table", "files", "columns", "where"];
        assert_eq!(suggest("tabel", names), Some("table"));
        assert_eq!(suggest("Column", names), Some("columns"));
        assert_eq!(suggest("zzz", names), None);
        assert_eq!(suggest("x", ["y"]), None);
    }
}
