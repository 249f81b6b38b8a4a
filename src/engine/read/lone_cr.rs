//! Notices a line that holds a CR with more text after it, as all of a source does whose lines end in a lone CR.

/// What was seen of one line.
#[derive(Debug, Default)]
pub(super) struct LoneCr {
    ends_in_cr: bool,
    found: bool,
}

impl LoneCr {
    /// Takes in more of the line, without its terminator.
    pub fn see(&mut self, text: &[u8]) {
        let Some(last) = text.len().checked_sub(1) else { return };
        self.found |= self.ends_in_cr || memchr::memchr(b'\r', &text[..last]).is_some();
        self.ends_in_cr = text[last] == b'\r';
    }

    pub fn found(&self) -> bool {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cr_counts_if_more_of_the_line_follows_in_whatever_pieces() {
        for (line, expected) in [("", false), ("x\r", false), ("x\ry", true), ("\r\r", true), ("xy", false)] {
            for step in 1..=4 {
                let mut seen = LoneCr::default();
                line.as_bytes().chunks(step).for_each(|piece| seen.see(piece));
                assert_eq!(seen.found(), expected, "{line:?} in steps of {step}");
            }
        }
    }
}
