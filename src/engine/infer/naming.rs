//! Names for tables and columns, and globs for files.

use std::collections::HashSet;

use crate::domain::limits::TABLE_NAME_BYTES_MAX;
use crate::domain::pipeline::globs::escape_glob;
use crate::domain::source_name::without_endings;

/// Bytes at which proposed column names are truncated, before a suffix that makes them unique.
const COLUMN_BYTES_MAX: usize = 60;

/// Snake case: letters and digits of any script in lower case, everything else `_`, camel case split into words.
pub(super) fn snake(text: &str) -> String {
    let mut out = String::new();
    let mut before: Option<char> = None;
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() {
            let ends_word = before.is_some_and(|b| b.is_lowercase() || b.is_numeric());
            let starts_word = before.is_some_and(char::is_uppercase) && chars.peek().is_some_and(|n| n.is_lowercase());
            if c.is_uppercase() && (ends_word || starts_word) && !out.ends_with('_') {
                out.push('_');
            }
            out.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        before = Some(c);
    }
    out.truncate(out.floor_char_boundary(COLUMN_BYTES_MAX));
    out.trim_end_matches('_').to_owned()
}

/// Unique column names for the cells of a header.
pub(super) fn columns(header: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::with_capacity(header.len());
    let name = |(at, cell): (usize, &String)| {
        let mut base = snake(cell);
        if base.is_empty() {
            base = format!("column_{}", at + 1);
        } else if base.starts_with(|c: char| c.is_numeric()) {
            base.insert(0, 'c');
        }
        let mut name = base.clone();
        let mut suffix = 2;
        while !taken.insert(name.to_lowercase()) {
            name = format!("{base}_{suffix}");
            suffix += 1;
        }
        name
    };
    header.iter().enumerate().map(name).collect()
}

/// Words that can't name a table in SQL without quotes.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "all", "analyse", "analyze", "and", "anti", "any", "array", "as", "asc", "asof", "asymmetric", "at",
    "authorization", "binary", "both", "by", "case", "cast", "check", "collate", "collation", "column", "columns",
    "concurrently", "constraint", "create", "cross", "default", "deferrable", "desc", "describe", "distinct", "do",
    "else", "end", "except", "false", "fetch", "for", "foreign", "freeze", "from", "full", "generated", "glob",
    "group", "having", "ilike", "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lambda",
    "lateral", "leading", "left", "like", "limit", "map", "natural", "not", "notnull", "null", "offset", "on", "only",
    "or", "order", "outer", "overlaps", "pivot", "pivot_longer", "pivot_wider", "placing", "positional", "primary",
    "qualify", "references", "returning", "right", "select", "semi", "show", "similar", "some", "struct", "summarize",
    "symmetric", "table", "tablesample", "then", "to", "trailing", "true", "try_cast", "union", "unique", "unpack",
    "unpivot", "using", "variadic", "verbose", "when", "where", "window", "with",
];

/// File names without information about the contents.
const GENERIC_NAMES: [&str; 8] = ["part", "data", "file", "export", "chunk", "output", "out", "dump"];

/// The parts of a key: folders within its pipeline, name without extensions, extensions.
struct KeyParts<'a> {
    folder: &'a str,
    stem: &'a str,
    endings: &'a str,
}

/// The part of a key within its pipeline.
fn relative(key: &str) -> &str {
    key.strip_prefix("pipelines/").and_then(|rest| rest.split_once('/')).map_or(key, |(_, relative)| relative)
}

fn parts(key: &str) -> KeyParts<'_> {
    let relative = relative(key);
    let (folder, name) = relative.rsplit_once('/').unwrap_or(("", relative));
    let (stem, endings) = name.split_at(without_endings(name).len());
    KeyParts { folder, stem, endings }
}

/// Words of a period, before or after digits.
const PERIODS: [&str; 5] = ["q", "h", "w", "kw", "week"];
const MONTHS: [&str; 24] = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "sept",
];
const SEPARATORS: [char; 4] = ['-', '_', '.', ' '];

/// The stem without the dates, numbers and periods that distinguish the files of a table: `sales_q1_2024` is of `sales`.
fn series(stem: &str) -> &str {
    let mut rest = stem.trim_end_matches(SEPARATORS);
    while !rest.is_empty() {
        let start = rest.rfind(SEPARATORS).map_or(0, |at| at + 1);
        let word = &rest[start..];
        // `utf8` or `q1` alone are words.
        if !is_number(word) && (start == 0 || !is_period(word)) {
            break;
        }
        rest = rest[..start].trim_end_matches(SEPARATORS);
    }
    rest
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_period(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let letters = word.trim_matches(|c: char| c.is_ascii_digit());
    MONTHS.contains(&word.as_str()) || letters.len() < word.len() && PERIODS.contains(&letters)
}

/// The common prefix of a series' names, including a separator before a word, and a word of a period at the end.
fn common<'a>(start: &str, stem: &'a str) -> &'a str {
    let separator = stem[start.len()..].chars().take_while(|c| "-_. ".contains(*c)).count();
    let rest = &stem[start.len() + separator..];
    let word = rest.chars().take_while(char::is_ascii_alphabetic).count();
    match PERIODS.contains(&rest[..word].to_ascii_lowercase().as_str()) {
        true if rest[word..].chars().all(|c| c.is_ascii_digit()) => &stem[..start.len() + separator + word],
        _ if word > 0 => &stem[..start.len() + separator],
        _ => &stem[..start.len()],
    }
}

/// A table name: the file's without dates and numbers, otherwise the folder's.
pub(super) fn table(key: &str) -> String {
    let KeyParts { folder, stem, .. } = parts(key);
    let folder = folder.rsplit('/').next().unwrap_or_default();
    let ascii = |text: &str| {
        let name: String = snake(text).chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
        let squeezed: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
        squeezed.join("_")
    };
    let says_something = |name: &String| !name.is_empty() && !GENERIC_NAMES.contains(&name.as_str());
    let mut names = [series(stem), folder, stem].into_iter().map(ascii);
    let mut name = names.find(says_something).unwrap_or_else(|| "data".to_owned());
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "t_");
    }
    name.truncate(TABLE_NAME_BYTES_MAX);
    if RESERVED.contains(&name.as_str()) {
        name.push_str("_table");
    }
    name
}

/// A glob: the files with the same extension in the file's folder; without a folder, the files of its series.
pub(super) fn glob(key: &str) -> String {
    let KeyParts { folder, endings, .. } = parts(key);
    let endings = escape_glob(endings);
    if !folder.is_empty() && !endings.is_empty() {
        return format!("{}/*{endings}", escape_glob(folder));
    }
    series_glob(key)
}

/// A glob: the files with the same ending in the file's folder.
pub(super) fn folder_glob(key: &str) -> String {
    let KeyParts { folder, endings, .. } = parts(key);
    if folder.is_empty() {
        format!("*{}", escape_glob(endings))
    } else {
        format!("{}/*{}", escape_glob(folder), escape_glob(endings))
    }
}

/// A glob: the files of the file's series in its folder.
pub(super) fn series_glob(key: &str) -> String {
    let KeyParts { folder, stem, endings } = parts(key);
    let endings = escape_glob(endings);
    let start = series(stem);
    let name = if start.is_empty() || start == stem {
        escape_glob(stem)
    } else {
        format!("{}*", escape_glob(common(start, stem)))
    };
    if folder.is_empty() { format!("{name}{endings}") } else { format!("{}/{name}{endings}", escape_glob(folder)) }
}

/// A glob of one file.
pub(super) fn exactly(key: &str) -> String {
    escape_glob(relative(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_snake_case_and_unique() {
        let header =
            ["Trip ID", "tripId", "trip_id", "", "2019", "Größe (cm)", "HTTPStatus", "№", " %"].map(String::from);
        let names = columns(&header);
        let expected = [
            "trip_id",
            "trip_id_2",
            "trip_id_3",
            "column_4",
            "c2019",
            "größe_cm",
            "http_status",
            "column_8",
            "column_9",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn keys_yield_table_names_and_globs() {
        for (key, name, files) in [
            ("pipelines/x/trips/2013-01.csv.gz", "trips", "trips/*.csv.gz"),
            ("pipelines/x/a/b/Trips_2024-01-31.CSV", "trips", "a/b/*.CSV"),
            ("pipelines/x/trips/part-00001.csv.gz", "trips", "trips/*.csv.gz"),
            ("pipelines/x/data.csv", "data", "data.csv"),
            ("pipelines/x/airlines.csv", "airlines", "airlines.csv"),
            ("pipelines/x/trips-2024.csv", "trips", "trips*.csv"),
            ("pipelines/x/semi.csv", "semi_table", "semi.csv"),
            ("pipelines/x/order/2024.csv", "order_table", "order/*.csv"),
            ("pipelines/x/orders.csv", "orders", "orders.csv"),
            ("pipelines/x/2024.csv", "t_2024", "2024.csv"),
            ("pipelines/x/utf8.csv", "utf8", "utf8.csv"),
            ("loose.tsv", "loose", "loose.tsv"),
            ("pipelines/x/f[1]/été.csv.zst", "t", "f[[]1[]]/*.csv.zst"),
            ("pipelines/x/dir/noending", "noending", "dir/noending"),
        ] {
            assert_eq!((table(key).as_str(), glob(key).as_str()), (name, files), "{key}");
            assert!(crate::domain::name::TableName::parse(&table(key)).is_ok(), "{key}");
            assert!(crate::domain::pipeline::globs::compile_glob(&glob(key)).is_ok(), "{key}");
        }
    }
}
