//! Endings of source files: CSVs that trigger runs, and compressions.

/// A compression of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceCompression {
    Gzip,
    Zstd,
}

/// Compressions, each with its ending.
pub const COMPRESSIONS: [(&str, SourceCompression); 2] =
    [(".gz", SourceCompression::Gzip), (".zst", SourceCompression::Zstd)];

/// Endings of CSVs in the lake; a file with one triggers a run. The first is the contract's.
pub const CSV_ENDINGS: [&str; 3] = [".csv", ".csv.gz", ".csv.zst"];

/// The compression of an object by its key, ignoring case.
pub fn compression(key: &str) -> Option<SourceCompression> {
    COMPRESSIONS.into_iter().find(|(ending, _)| ends_with(key, ending)).map(|(_, compression)| compression)
}

/// Whether a key of the lake is that of a CSV, which triggers its pipeline, ignoring case.
pub fn is_csv(key: &str) -> bool {
    CSV_ENDINGS.iter().any(|ending| ends_with(key, ending))
}

fn ends_with(key: &str, ending: &str) -> bool {
    key.len().checked_sub(ending.len()).is_some_and(|at| key.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
