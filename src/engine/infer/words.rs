//! Words with a special meaning: null tokens, true and false, totals.

/// A token that may mean null.
#[derive(Debug, Clone, Copy)]
pub(super) struct NullToken {
    pub text: &'static str,
    /// It has no other meaning, even in text columns.
    pub unmistakable: bool,
}

const fn unmistakable(text: &'static str) -> NullToken {
    NullToken { text, unmistakable: true }
}

const fn ambiguous(text: &'static str) -> NullToken {
    NullToken { text, unmistakable: false }
}

/// The empty cell is first; it is a null token by default.
pub(super) const TOKENS: &[NullToken] = &[
    unmistakable(""),
    unmistakable("\\N"),
    unmistakable("NULL"),
    unmistakable("null"),
    unmistakable("Null"),
    unmistakable("<NULL>"),
    unmistakable("<null>"),
    unmistakable("(null)"),
    unmistakable("#N/A"),
    unmistakable("<NA>"),
    ambiguous("NA"),
    ambiguous("N/A"),
    ambiguous("n/a"),
    ambiguous("na"),
    ambiguous("NaN"),
    ambiguous("nan"),
    ambiguous("-"),
    ambiguous("--"),
    ambiguous("---"),
    ambiguous("."),
    ambiguous("?"),
    ambiguous("None"),
    ambiguous("none"),
    ambiguous("nil"),
    ambiguous("NIL"),
    ambiguous("NONE"),
    ambiguous("N.A."),
    ambiguous("n.a."),
    ambiguous("k.A."),
    ambiguous("#NV"),
    ambiguous("#VALUE!"),
    ambiguous("#REF!"),
    ambiguous("#DIV/0!"),
    ambiguous("\u{2013}"),
    ambiguous("\u{2014}"),
    ambiguous("missing"),
    ambiguous("unknown"),
];

const TOKEN_BYTES_MAX: usize = 7;

/// The index of `text` in [`TOKENS`].
pub(super) fn token(text: &[u8]) -> Option<usize> {
    if text.len() > TOKEN_BYTES_MAX {
        return None;
    }
    TOKENS.iter().position(|token| token.text.as_bytes() == text)
}

/// Pairs of words for true and false. A column is boolean if all its values are from such pairs and both words of one
/// pair occur.
const PAIRS: &[(&str, &str)] = &[
    ("true", "false"),
    ("TRUE", "FALSE"),
    ("True", "False"),
    ("t", "f"),
    ("T", "F"),
    ("yes", "no"),
    ("Yes", "No"),
    ("YES", "NO"),
    ("y", "n"),
    ("Y", "N"),
    ("on", "off"),
    ("On", "Off"),
    ("ON", "OFF"),
    ("wahr", "falsch"),
    ("ja", "nein"),
    ("Ja", "Nein"),
    ("oui", "non"),
    ("Oui", "Non"),
    ("OUI", "NON"),
    ("JA", "NEIN"),
    ("Wahr", "Falsch"),
    ("WAHR", "FALSCH"),
    ("ja", "nej"),
    ("Ja", "Nej"),
    ("ja", "nee"),
    ("Ja", "Nee"),
    ("si", "no"),
    ("Si", "No"),
    ("SI", "NO"),
    ("sí", "no"),
    ("Sí", "No"),
    ("SÍ", "NO"),
    ("sì", "no"),
    ("Sì", "No"),
    ("sim", "não"),
    ("Sim", "Não"),
    ("tak", "nie"),
    ("Tak", "Nie"),
    ("vrai", "faux"),
    ("Vrai", "Faux"),
    ("VRAI", "FAUX"),
    ("vero", "falso"),
    ("Vero", "Falso"),
    ("verdadero", "falso"),
    ("Verdadero", "Falso"),
];

/// The first pairs are unambiguous, so one of their words is enough.
const PLAIN_PAIRS: usize = 3;

pub(super) const WORD_BYTES_MAX: usize = 9;

/// Whether `text` is from a pair.
pub(super) fn is_boolean_word(text: &[u8]) -> bool {
    text.len() <= WORD_BYTES_MAX && PAIRS.iter().any(|(t, f)| t.as_bytes() == text || f.as_bytes() == text)
}

/// Whether `text` is from an unambiguous pair.
pub(super) fn is_plain_boolean(text: &[u8]) -> bool {
    PAIRS[..PLAIN_PAIRS].iter().any(|(t, f)| t.as_bytes() == text || f.as_bytes() == text)
}

/// The words for true and for false among `words`, all of which are from pairs; `None` if they are not boolean.
pub(super) fn booleans(words: &[Vec<u8>]) -> Option<(Vec<String>, Vec<String>)> {
    let has = |word: &str| words.iter().any(|w| w == word.as_bytes());
    let mut known = (Vec::new(), Vec::new());
    let mut whole = false;
    for (nth, (yes, no)) in PAIRS.iter().enumerate() {
        let (t, f) = (has(yes), has(no));
        if (t && f) || ((t || f) && nth < PLAIN_PAIRS) {
            whole = true;
            for (list, word) in [(&mut known.0, yes), (&mut known.1, no)] {
                if !list.iter().any(|w| w == word) {
                    list.push((*word).to_owned());
                }
            }
        }
    }
    let covered = words.iter().all(|word| known.0.iter().chain(&known.1).any(|k| k.as_bytes() == word));
    (whole && covered).then_some(known)
}

/// Words of lines of totals.
const TOTALS: [&str; 26] = [
    "total",
    "totals",
    "grand total",
    "subtotal",
    "sub-total",
    "sum",
    "overall",
    "summe",
    "gesamt",
    "gesamtsumme",
    "zwischensumme",
    "insgesamt",
    "endsumme",
    "saldo",
    "somme",
    "totaux",
    "total général",
    "sous-total",
    "totale",
    "suma",
    "total general",
    "totaal",
    "subtotaal",
    "razem",
    "totalt",
    "итого",
];

/// Whether a cell marks its line as a total.
pub(super) fn is_total(cell: &str) -> bool {
    let text = cell.trim().trim_end_matches([':', '=']).trim();
    text.len() <= TOTAL_BYTES_MAX && TOTALS.contains(&text.to_lowercase().as_str())
}

const TOTAL_BYTES_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boolean_needs_a_pair_of_words_or_one_unambiguous_word() {
        let words = |list: &[&str]| list.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>();
        assert!(booleans(&words(&["yes", "no"])).is_some());
        assert!(booleans(&words(&["true"])).is_some());
        assert!(booleans(&words(&["TRUE", "false"])).is_some());
        for bad in [&["yes"][..], &["Y"], &["y", "N"], &[]] {
            assert_eq!(booleans(&words(bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn tokens_and_words_fit_their_length_limits() {
        assert!(TOKENS.iter().all(|t| t.text.len() <= TOKEN_BYTES_MAX && token(t.text.as_bytes()).is_some()));
        assert!(PAIRS.iter().all(|(t, f)| t.len() <= WORD_BYTES_MAX && f.len() <= WORD_BYTES_MAX));
    }
}
