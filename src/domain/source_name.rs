//! Endings of source files: CSVs, other delimited text, and compressions.

/// A compression of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceCompression {
    Gzip,
    Zstd,
}

/// Compressions, each with its ending.
pub const COMPRESSIONS: [(&str, SourceCompression); 2] =
    [(".gz", SourceCompression::Gzip), (".zst", SourceCompression::Zstd)];

/// Endings of CSVs in the lake; an event about a file with one triggers a run. The first is the contract's.
pub const CSV_ENDINGS: [&str; 3] = [".csv", ".csv.gz", ".csv.zst"];

/// Endings of delimited text.
pub const TEXT_ENDINGS: [&str; 6] = [".csv", ".tsv", ".tab", ".txt", ".psv", ".dat"];

/// The compression of an object by its key, ignoring case.
pub fn compression(key: &str) -> Option<SourceCompression> {
    COMPRESSIONS.into_iter().find(|(ending, _)| ends_with(key, ending)).map(|(_, compression)| compression)
}

/// Whether a key of the lake is that of a CSV, ignoring case.
pub fn is_csv(key: &str) -> bool {
    CSV_ENDINGS.iter().any(|ending| ends_with(key, ending))
}

/// Whether a file of this key may be delimited text, also compressed: by its ending, ignoring case, or without one. Its
/// upload triggers a run. Hidden files, such as `.a.txt` or those of `.b/`, are only if they are CSVs: the UI's samples
/// are hidden.
pub fn is_text(key: &str) -> bool {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let plain = without_compression(name);
    let is_hidden = key.split('/').any(|segment| segment.starts_with('.'));
    is_csv(key)
        || !is_hidden
            && !plain.is_empty()
            && (!plain.contains('.') || TEXT_ENDINGS.iter().any(|ending| ends_with(plain, ending)))
}

/// A key without the endings of compression and of delimited text.
pub fn without_endings(key: &str) -> &str {
    without_one_of(without_compression(key), TEXT_ENDINGS)
}

fn without_compression(key: &str) -> &str {
    without_one_of(key, COMPRESSIONS.map(|(ending, _)| ending))
}

fn without_one_of(key: &str, endings: impl IntoIterator<Item = &'static str>) -> &str {
    let found = endings.into_iter().find(|ending| ends_with(key, ending));
    found.map_or(key, |ending| &key[..key.len() - ending.len()])
}

fn ends_with(key: &str, ending: &str) -> bool {
    key.len().checked_sub(ending.len()).is_some_and(|at| key.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_recognized_by_their_extension() {
        for text in ["a.csv", "a/b.TXT", "a.tsv.gz", "a.Dat.ZST", ".a.csv", "\u{e9}.tab", "a.b/report", "report.gz"] {
            assert!(is_text(text), "{text}");
        }
        for other in ["a.txt.bak", "a.pdf", "", "a/", ".gz", ".a.txt", ".b/report", "\u{e9}.md"] {
            assert!(!is_text(other), "{other}");
        }
    }

    #[test]
    fn csvs_are_recognized_by_their_extension() {
        for csv in ["a.csv", "a/b.CSV", "a.csv.gz", "a.Csv.ZST", ".csv"] {
            assert!(is_csv(csv), "{csv}");
        }
        for other in ["a.csv.bak", "a.tsv", "csv", "a.gz", "a.csv/b"] {
            assert!(!is_csv(other), "{other}");
        }
        assert_eq!(compression("a.tsv.GZ"), Some(SourceCompression::Gzip));
        assert_eq!(compression("gz"), None);
    }

    #[test]
    fn every_compression_has_a_csv_extension() {
        let compressed: Vec<String> = COMPRESSIONS.iter().map(|(ending, _)| format!(".csv{ending}")).collect();
        assert_eq!(compressed, CSV_ENDINGS[1..]);
    }
}
