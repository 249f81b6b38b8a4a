//! The choices of a config: enums as people write them, with their counterparts in the checked form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares an enum of the document whose first variant is the default, and its counterpart in the checked form.
macro_rules! choice {
    ($(#[$doc:meta])* $document:ident => $checked:ident { $(#[$first_doc:meta])* $first:ident, $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $document {
            #[default]
            $(#[$first_doc])* $first,
            $($(#[$variant_doc])* $variant,)*
        }

        impl From<$document> for super::$checked {
            fn from(document: $document) -> Self {
                match document {
                    $document::$first => Self::$first,
                    $($document::$variant => Self::$variant,)*
                }
            }
        }

        impl From<super::$checked> for $document {
            fn from(checked: super::$checked) -> Self {
                match checked {
                    super::$checked::$first => Self::$first,
                    $(super::$checked::$variant => Self::$variant,)*
                }
            }
        }
    };
}

choice! {
    /// The events of a pipeline that send notifications.
    NotifyDocument => NotifyEvent {
        /// A run failed after its last attempt.
        RunFailed,
        /// A condition with a notification is over.
        Recovered,
        /// A run rejected rows.
        RowsRejected,
        /// Files have columns that the config doesn't.
        Drift,
        /// A table got no rows for longer than its `freshness`.
        SourceSilent,
        /// A run makes no progress.
        JobStuck,
    }
}

choice! {
    /// How to treat a quote in the middle of a cell.
    QuotesDocument => Quotes {
        /// It rejects the row.
        Strict,
        /// It is text.
        Lenient,
    }
}

choice! {
    /// How a column writes negative numbers. A minus sign before a number is read in any case.
    NegativeDocument => Negative {
        /// With a leading minus sign: `-95.00`.
        Minus,
        /// In parentheses: `(95.00)`.
        Parentheses,
        /// With a minus sign at the end: `95.00-`.
        TrailingMinus,
    }
}

choice! {
    /// What ends a record.
    RecordTerminatorDocument => RecordTerminator {
        /// LF or CRLF.
        Auto,
        /// A lone CR.
        Cr,
    }
}

choice! {
    /// How to treat empty lines.
    BlankLinesDocument => BlankLines {
        /// They are skipped and counted.
        Skip,
        /// Each is a row of nulls.
        Null,
        /// They are rejected.
        Reject,
    }
}

choice! {
    /// How to treat records with more or fewer cells than columns.
    RaggedRowsDocument => RaggedRows {
        /// They are rejected.
        Reject,
        /// Short ones are filled with nulls, long ones cut.
        Pad,
        /// They fail the run.
        Fail,
    }
}

choice! {
    /// How to treat a row whose cell can't be parsed.
    OnErrorDocument => OnError {
        /// The row is rejected.
        Reject,
        /// The cell is null.
        Null,
        /// The run fails.
        Fail,
    }
}

choice! {
    /// How to treat a row that fails a check.
    OnFailDocument => OnFail {
        /// The row is rejected.
        Reject,
        /// The row is written and counted.
        Warn,
        /// The run fails.
        Fail,
    }
}

choice! {
    /// How to treat columns of a file that the config doesn't name.
    ExtraColumnsDocument => ExtraColumns {
        /// They are not read.
        Ignore,
        /// They fail the run.
        Fail,
    }
}

choice! {
    /// How to treat columns of the config that a file doesn't have.
    MissingColumnsDocument => MissingColumns {
        /// They fail the run.
        Fail,
        /// They are null.
        Null,
    }
}

choice! {
    /// How to treat an empty file (0 bytes) where a header is expected.
    EmptyFilesDocument => EmptyFiles {
        /// It has no rows, and a note in the job's record.
        Load,
        /// It fails the run.
        Fail,
    }
}

choice! {
    /// How to treat a file that has a column twice.
    DuplicateColumnsDocument => DuplicateColumns {
        /// It fails the run.
        Fail,
        /// The first one is read.
        First,
    }
}

choice! {
    /// How values are written in pages.
    EncodingsDocument => Encodings {
        /// So that all readers read them right: text without a dictionary as `PLAIN`.
        Compatible,
        /// Text without a dictionary as `DELTA_LENGTH_BYTE_ARRAY`, which is 4 to 8 % smaller. Spark before 3.5.9 and
        /// 4.0.5 misreads it.
        Compact,
    }
}

choice! {
    /// How to treat texts that readers with type inference on paths read as another value.
    InferableTextsDocument => InferableTexts {
        /// The row is rejected.
        Reject,
        /// The row is written; readers must be given the column's type.
        Keep,
    }
}

choice! {
    /// How to treat rows whose CSV was removed from the lake.
    WhenRemovedDocument => WhenRemoved {
        /// The next run removes them.
        RemoveRows,
        /// They stay, and the CSV counts as archived.
        KeepRows,
    }
}

choice! {
    /// A format of tables that other engines read.
    TableFormatDocument => TableFormat {
        /// Delta Lake: a log in `_delta_log`, beside the data files.
        Delta,
        /// Apache Iceberg: metadata in `metadata`, beside the data files.
        Iceberg,
    }
}

choice! {
    /// The transform of a partition column's values.
    TransformDocument => Transform {
        /// The value itself; the column leaves the file, since the path has it.
        Identity,
        /// The year of a date or timestamp.
        Year,
        /// Its year and month.
        Month,
        /// Its day.
        Day,
        /// Its day and hour.
        Hour,
    }
}
