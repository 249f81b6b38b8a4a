//! Detects texts that readers with type inference on paths may convert to another value.
//!
//! DuckDB infers dates and whole numbers; Polars also floats, booleans, times and dates of many forms; pyarrow whole numbers;
//! Spark numbers of every form, dates and timestamps. `tests/peers` reads the accepted texts with each.

/// Maximum number of digits that every reader represents exactly.
const WHOLE_DIGITS_MAX: usize = 18;

/// Whether a reader could convert `text` to a value with another text: `01` to 1, `1/2/2024` to a date. `1` and
/// `2024-01-31` round-trip.
pub fn is_inferable(text: &str) -> bool {
    let trimmed = text.trim();
    is_word(trimmed)
        || is_clock_time(trimmed)
        || is_based_number(trimmed)
        || (is_number(trimmed) && !is_plain_number(text))
        || (is_date(trimmed) && !is_plain_date(text))
}

fn is_word(text: &str) -> bool {
    const NUMBERS: &[&str] = &["nan", "inf", "infinity", "epoch"];
    const BOOLEANS: &[&str] = &["true", "false"];
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_one = |words: &[&str]| words.iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    is_one(NUMBERS) || (is_one(BOOLEANS) && !BOOLEANS.contains(&text))
}

/// Consumes leading digits of any script and returns their number.
fn digits(text: &mut &str) -> usize {
    let rest = text.trim_start_matches(char::is_numeric);
    let count = text[..text.len() - rest.len()].chars().count();
    *text = rest;
    count
}

/// `+1`, `1.`, `.5`, `1e3`, `1d`.
fn is_number(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = digits(&mut rest);
    let fraction = rest.strip_prefix('.').map_or(0, |after| {
        rest = after;
        digits(&mut rest)
    });
    if whole + fraction == 0 {
        return false;
    }
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        rest = after.strip_prefix(['+', '-']).unwrap_or(after);
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    matches!(rest, "" | "d" | "D" | "f" | "F")
}

/// A number in the form that readers write.
fn is_plain_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return unsigned.len() <= WHOLE_DIGITS_MAX && (!unsigned.starts_with('0') || text == "0");
    }
    text != "-0.0" && text.parse::<f64>().is_ok_and(|number| format!("{number:?}") == text)
}

/// `0x1F`, `0b1`, `0o7`.
fn is_based_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut chars = unsigned.chars();
    chars.next() == Some('0')
        && chars.next().is_some_and(|base| "xXbBoO".contains(base))
        && chars.clone().next().is_some()
        && chars.all(|c| c.is_ascii_hexdigit())
}

/// `10:00`, `10:00:00.5`.
fn is_clock_time(text: &str) -> bool {
    let mut rest = text;
    let mut parts = 0;
    loop {
        match digits(&mut rest) {
            1 | 2 => parts += 1,
            _ => return false,
        }
        match rest.strip_prefix(':') {
            Some(after) => rest = after,
            None => return parts > 1 && (rest.is_empty() || rest.starts_with(['.', ' '])),
        }
    }
}

/// Three numbers with one separator, and perhaps a time.
fn is_date(text: &str) -> bool {
    const NUMBER_DIGITS_MAX: usize = 7;
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = |rest: &mut &str| (1..=NUMBER_DIGITS_MAX).contains(&digits(rest));
    if !number(&mut rest) {
        return false;
    }
    let Some(sign) = rest.chars().next().filter(|c| "-/.\\ ".contains(*c)) else { return false };
    for _ in 0..2 {
        match rest.strip_prefix(sign) {
            Some(after) => rest = after,
            None => return false,
        }
        if !number(&mut rest) {
            return false;
        }
    }
    rest.is_empty() || rest.starts_with(['T', ' '])
}

/// `2024-01-31` or `2024-01-31 10:00:00`, the form that readers write.
fn is_plain_date(text: &str) -> bool {
    const DATE: &[u8] = b"0000-00-00";
    const TIME: &[u8] = b"0000-00-00 00:00:00";
    let has_form = |form: &[u8]| {
        let same = |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
        text.len() == form.len() && text.bytes().zip(form).all(same)
    };
    has_form(DATE) || has_form(TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inferable_texts_are_detected() {
        for text in [
            "01",
            "+1",
            "-0",
            "00",
            "1.50",
            "1.",
            ".5",
            "01.5",
            "1e3",
            "1E3",
            "1e400",
            "1d",
            "1F",
            "-0.0",
            " 1",
            "1 ",
            "９",
            "0x10",
            "0X1F",
            "0b1",
            "99999999999999999999",
            "0.12345678901234567890",
            "NaN",
            "inf",
            "+inf",
            "-Infinity",
            "epoch",
            "True",
            "FALSE",
            "2024-1-1",
            "99-01-01",
            "10000-01-01",
            "-0001-01-01",
            "2024-01-01 ",
            "2024 01 01",
            "2024/01/01",
            "1/2/2024",
            "01-02-2024",
            "2024.01.01",
            "2024-01-01T10:00:00Z",
            "2024-01-01 10:00",
            "10:00",
            "1:2",
            "12:30:00.5",
            "2024-01-01 (BC)",
        ] {
            assert!(is_inferable(text), "{text}");
        }
        for text in [
            "1",
            "0",
            "-1",
            "123456789012345678",
            "1.5",
            "0.1",
            "1.0",
            "-2.25",
            "true",
            "false",
            "2024-01-31",
            "2024-01-31 10:00:00",
            "2024-01",
            "2024",
            "2024-Q1",
            "abc",
            "a1",
            "1a",
            "1_000",
            "1,5",
            "1L",
            "--1",
            "e1",
            "1e",
            "-",
            "+",
            ".",
            "null",
            "NULL",
            "None",
            "t",
            "yes",
            "010-2345678-01x",
            "0800 12345678",
            "v1.2.3",
            "1.2.3.4",
            "00:11:22:33x",
            "é",
            "today",
            "00000000-0000-0000-0000-000000000000",
        ] {
            assert!(!is_inferable(text), "{text}");
        }
    }
}
