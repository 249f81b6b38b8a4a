//! The proposal for a CSV, with the evidence for each part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::words::TOKENS;
use crate::domain::limits::TITLE_CHARS_MAX;
use crate::domain::pipeline::document::{CsvDocument, FromDocument, NumberFormatDocument, VERSION};

/// The type of columns of text.
pub(super) const TEXT: &str = "string";
/// Columns that one warning names.
const NAMED_MAX: usize = 5;

/// A mapping proposed for one CSV of the lake.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// The sampled file.
    pub key: String,
    /// A name for the table.
    pub table: String,
    /// Globs, relative to the pipeline's folder of the lake.
    pub files: Vec<String>,
    /// The `csv` of a mapping: what differs from the defaults.
    pub csv: Value,
    /// The same with the defaults filled in.
    pub csv_full: CsvDocument,
    /// The evidence for each item of `csv`.
    pub findings: Vec<Finding>,
    pub columns: Vec<ColumnProposal>,
    /// How the files of other formats are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantProposal>,
    /// Whether some files lack some of the columns, which are null there.
    pub partial: bool,
    /// Partitioning and sorting that would suit the file. Not part of [`Proposal::mapping`].
    pub suggestions: Vec<Suggestion>,
    /// How much of the file was sampled.
    pub sample: SampleInfo,
    /// Warnings to review.
    pub warnings: Vec<String>,
}

impl Proposal {
    /// The mapping in the form of a config.
    pub fn mapping(&self) -> Value {
        let mut mapping = Map::new();
        mapping.insert("table".into(), json!(self.table));
        mapping.insert("files".into(), json!(self.files));
        if self.csv.as_object().is_some_and(|csv| !csv.is_empty()) {
            mapping.insert("csv".into(), self.csv.clone());
        }
        if !self.variants.is_empty() {
            mapping.insert("variants".into(), self.variants.iter().map(VariantProposal::document).collect());
        }
        mapping.insert("columns".into(), self.columns.iter().map(ColumnProposal::document).collect());
        if self.partial {
            mapping.insert("missing_columns".into(), json!("null"));
        }
        if let Some(share) = self.sample.rejects_share() {
            mapping.insert("rejects".into(), json!({ "max_ratio": share }));
        }
        Value::Object(mapping)
    }

    /// The proposal with the warnings about values that are not of their column's type, and about texts that become null.
    pub(super) fn with_warnings(mut self) -> Self {
        self.columns.iter_mut().for_each(ColumnProposal::warn_of_misfits);
        for token in TOKENS.iter().filter(|token| !token.unmistakable) {
            let lost = |column: &ColumnProposal| {
                let found = column.evidence.tokens.iter().find(|found| found.null && found.token == token.text)?;
                let is_text = column.ty == TEXT && column.evidence.values > 0;
                (is_text && found.count > 0).then(|| format!("`{}` ({})", column.name, found.count))
            };
            let lost: Vec<String> = self.columns.iter().filter_map(lost).take(NAMED_MAX).collect();
            if !lost.is_empty() {
                self.warnings.push(format!("`{}` becomes null in text columns too: {}", token.text, lost.join(", ")));
            }
        }
        self
    }

    /// A whole PipelineConfig with this mapping. The title is cut to the length that a config allows.
    pub fn config(&self, title: &str) -> Value {
        let title: String = title.chars().take(TITLE_CHARS_MAX).collect();
        json!({ "version": VERSION, "title": title, "mappings": [self.mapping()] })
    }
}

/// The proposal for the files of another format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantProposal {
    /// The sampled files.
    pub keys: Vec<String>,
    /// Globs, relative to the pipeline's folder of the lake.
    pub files: Vec<String>,
    /// As of a [`Proposal`].
    pub csv: Value,
    pub csv_full: CsvDocument,
    /// The columns that these files write differently, as in a config.
    pub columns: Vec<Value>,
    /// The evidence for each item of `csv`.
    pub findings: Vec<Finding>,
}

impl VariantProposal {
    fn document(&self) -> Value {
        let mut variant = Map::new();
        variant.insert("files".into(), json!(self.files));
        variant.insert("csv".into(), self.csv.clone());
        if !self.columns.is_empty() {
            variant.insert("columns".into(), json!(self.columns));
        }
        Value::Object(variant)
    }
}

/// An item of the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    Encoding,
    RecordTerminator,
    Delimiter,
    TrailingDelimiter,
    Quote,
    Quotes,
    Escape,
    Comment,
    SkipRows,
    SkipFooterRows,
    FooterValues,
    Header,
    NullValues,
    QuotedNulls,
    Trim,
    Decimal,
    Thousands,
    Booleans,
    RaggedRows,
    RecordBytesMax,
}

/// A detected item of the dialect, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub item: Item,
    /// In the form of `csv`.
    pub value: Value,
    /// The evidence.
    pub why: String,
    /// Alternatives, or the parts (each null token), best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
}

/// A possible value of an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    pub value: Value,
    /// Records (or cells) that agree with it.
    pub count: u64,
    /// The number of records (or cells) compared.
    pub of: u64,
    pub why: String,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnProposal {
    /// In snake case, unique in the table.
    pub name: String,
    /// The header as written, or a position.
    pub from: FromDocument,
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_format: Option<NumberFormatDocument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    pub nullable: bool,
    /// What its numbers are, unless they may be a measure. Not part of a config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ColumnRole>,
    pub evidence: ColumnEvidence,
}

/// The kind of numbers that aren't summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnRole {
    /// Identifies something, such as an order.
    Identifier,
    /// A code such as a postal code, whose leading zeros matter.
    Code,
    Year,
}

impl ColumnProposal {
    /// Adds the warning about values that are not of the type.
    pub(super) fn warn_of_misfits(&mut self) {
        let Some(Misfits { count, first }) = &self.evidence.misfits else { return };
        let shown: Vec<String> = first.iter().map(|one| format!("line {} has `{}`", one.line, one.value)).collect();
        let one = *count == 1;
        let warning = format!(
            "{count} of {} values {} not of type {}: {}{}; a run rejects {} unless `on_error` of the column makes {} null",
            self.evidence.values,
            if one { "is" } else { "are" },
            self.ty,
            shown.join(", "),
            if *count > shown.len() as u64 { " and so on" } else { "" },
            if one { "its row" } else { "their rows" },
            if one { "it" } else { "them" },
        );
        self.evidence.warnings.push(warning);
    }

    fn document(&self) -> Value {
        let mut column = Map::new();
        column.insert("name".into(), json!(self.name));
        let mut reading = self.reading();
        column.extend(reading.shift_remove_entry("from"));
        column.insert("type".into(), json!(self.ty));
        column.extend(reading);
        if !self.nullable {
            column.insert("nullable".into(), json!(false));
        }
        Value::Object(column)
    }

    /// How the files write it: the fields that differ from their defaults.
    pub(super) fn reading(&self) -> Map<String, Value> {
        let mut column = Map::new();
        let own = matches!(&self.from, FromDocument::Name(name) if name.to_lowercase() == self.name.to_lowercase());
        if !own {
            column.insert("from".into(), json!(self.from));
        }
        if !self.formats.is_empty() {
            column.insert("formats".into(), json!(self.formats));
        }
        if let Some(format) = &self.number_format {
            let mut format = json!(format);
            // Defaults are omitted.
            if let Some(members) = format.as_object_mut() {
                let defaults = [json!(null), json!(false), json!([]), json!("minus")];
                members.retain(|_, value| !defaults.contains(value));
            }
            column.insert("number_format".into(), format);
        }
        if let Some(timezone) = &self.timezone {
            column.insert("timezone".into(), json!(timezone));
        }
        column
    }
}

/// The evidence for a column's type.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ColumnEvidence {
    /// In one sentence.
    pub why: String,
    /// Cells that are not null.
    pub values: u64,
    /// Cells that the proposed dialect reads as null, and rows of files without the column.
    pub nulls: u64,
    /// Null tokens among its cells, whether proposed or not.
    pub tokens: Vec<TokenCount>,
    /// Distinct values, counted up to a bound.
    pub distinct: u64,
    /// False: there are more than `distinct`.
    pub distinct_exact: bool,
    /// Some of its values, cut.
    pub samples: Vec<String>,
    /// The smallest and greatest of whole numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// Types that some value rules out.
    pub ruled_out: Vec<RuledOut>,
    /// Other ways to read it, that nothing in the file rules out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// Values that are not of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfits: Option<Misfits>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The few values of a column that are not of its proposed type. A run rejects their rows, or, with `on_error`, makes them
/// null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Misfits {
    pub count: u64,
    /// The first of them.
    pub first: Vec<Misfit>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Misfit {
    /// Physical line of its record.
    pub line: u64,
    /// Cut.
    pub value: String,
}

/// A null token of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCount {
    pub token: String,
    pub count: u64,
    /// Whether it is one of the proposed `null_values`.
    pub null: bool,
}

/// The first value that a type doesn't take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    #[serde(rename = "type")]
    pub ty: String,
    /// Physical line of its record.
    pub line: u64,
    /// Cut.
    pub value: String,
    /// `not int64: line 17 has `1.5``
    pub why: String,
}

/// Another way to read a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    pub why: String,
}

/// The purpose of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuggestionKind {
    PartitionBy,
    SortBy,
}

/// An item of `partition_by` or `sort_by`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestion {
    pub kind: SuggestionKind,
    /// In the form of the mapping.
    pub value: Value,
    pub why: String,
}

/// How much of the file was sampled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SampleInfo {
    /// Decompressed bytes.
    pub bytes_read: u64,
    /// Bytes of the object, as stored.
    pub bytes_total: u64,
    /// Records that are rows under the proposed dialect.
    pub rows_read: u64,
    /// Records that are not rows, which a run would reject.
    pub rows_refused: u64,
    /// Rows that a run would reject for a value that is not of its column's type: the `misfits` of all columns.
    pub rows_misfit: u64,
    /// Whether every record of the file was looked at.
    pub whole: bool,
    /// Rows that the converter itself then read with the proposed mapping, without a reject but those of
    /// `rows_refused` and `rows_misfit`.
    pub rows_confirmed: u64,
    /// Why it wasn't the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
}

/// Reject ratios that may be proposed.
const REJECT_SHARES: [f64; 3] = [0.01, 0.1, 1.0];

impl SampleInfo {
    /// The proposed reject ratio, about twice the observed one; `None` without rejects.
    fn rejects_share(&self) -> Option<f64> {
        let (lost, of) = (self.rows_refused + self.rows_misfit, self.rows_read + self.rows_refused);
        #[expect(clippy::cast_precision_loss, reason = "a share to two digits")]
        let share = lost as f64 / of.max(1) as f64;
        (lost > 0).then(|| REJECT_SHARES.into_iter().find(|bound| *bound >= share * 2.0).unwrap_or(1.0))
    }
}
