//! How a browser is told to save an answer under a name, and never to show it.

use std::fmt::Write as _;

/// The value of `Content-Disposition` for a file of that name: as RFC 6266 has it, in ASCII for those who read no more,
/// and in UTF-8.
pub fn attachment(name: &str) -> String {
    let plain = |c: char| if (c.is_ascii_graphic() || c == ' ') && !"\"\\%/".contains(c) { c } else { '_' };
    let fallback: String = name.chars().map(plain).collect();
    if fallback == name {
        return format!("attachment; filename=\"{name}\"");
    }
    let mut encoded = String::new();
    for byte in name.bytes() {
        // The characters of RFC 5987 that stand for themselves.
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    format!("attachment; filename=\"{fallback}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_so_that_no_reader_takes_them_for_something_else() {
        for (name, told) in [
            ("a b.csv", r#"attachment; filename="a b.csv""#),
            ("é.csv", r#"attachment; filename="_.csv"; filename*=UTF-8''%C3%A9.csv"#),
            (r#"a";x=".csv"#, r#"attachment; filename="a_;x=_.csv"; filename*=UTF-8''a%22%3Bx%3D%22.csv"#),
            ("100%.csv", r#"attachment; filename="100_.csv"; filename*=UTF-8''100%25.csv"#),
            ("a\r\nb", r#"attachment; filename="a__b"; filename*=UTF-8''a%0D%0Ab"#),
        ] {
            assert_eq!(attachment(name), told);
        }
    }
}
