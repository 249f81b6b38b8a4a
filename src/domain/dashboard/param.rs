//! Parameters of a dashboard document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::*;
use super::preset::{DayPreset, RangePreset};

/// Declares the kinds of parameter, with their common fields.
macro_rules! params {
    ($($(#[$doc:meta])* $kind:ident => $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                /// Name for use in queries: 1 to 63 of a-z, 0-9 and `_`, starting with a letter.
                #[schemars(length(min = 1, max = NAME_BYTES_MAX), pattern("^[a-z][a-z0-9_]*$"))]
                pub name: String,
                /// Label; default: the name.
                #[serde(default)]
                #[schemars(length(max = TITLE_CHARS_MAX))]
                pub title: String,
                /// Description of the parameter.
                #[serde(default)]
                #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
                pub description: String,
                /// The column that an editor suggests values from. Queries don't depend on it.
                #[serde(default)]
                #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
                pub column_hint: Option<String>,
                $($(#[$field_doc])* pub $field: $ty,)*
            }
        )*

        /// A parameter of the queries, with its control.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum Param {
            $($(#[$doc])* $kind($name),)*
        }

        impl Param {
            /// Name for use in queries.
            pub fn name(&self) -> &str {
                match self { $(Self::$kind(param) => &param.name,)* }
            }

            /// The column that values are suggested from.
            pub fn column_hint(&self) -> Option<&str> {
                match self { $(Self::$kind(param) => param.column_hint.as_deref(),)* }
            }
        }
    };
}

impl Param {
    /// The names of its placeholders in queries.
    pub(super) fn placeholders(&self) -> Vec<String> {
        match self {
            Self::Text(_) | Self::Number(_) | Self::Select(_) | Self::Date(_) => vec![self.name().to_owned()],
            Self::DateRange(range) => vec![format!("{}_start", range.name), format!("{}_end", range.name)],
        }
    }

    /// The query of its options, if they come from one.
    pub fn options_query(&self) -> Option<&OptionsQuery> {
        match self {
            Self::Select(SelectParam { options: Options::Query(options), .. }) => Some(options),
            Self::Select(_) | Self::Text(_) | Self::Number(_) | Self::Date(_) | Self::DateRange(_) => None,
        }
    }
}

impl OptionDocument {
    /// A text.
    pub(super) fn value(&self) -> &Scalar {
        match self {
            Self::Labelled(option) => &option.value,
            Self::Value(value) => value,
        }
    }
}

params! {
    /// A text.
    Text => TextParam {
        /// Default value; default: null.
        #[serde(default)]
        #[schemars(length(max = VALUE_CHARS_MAX))]
        default: Option<String>,
        /// Shown while the field is empty.
        #[serde(default)]
        #[schemars(length(max = TITLE_CHARS_MAX))]
        placeholder: String,
    }
    /// A number: a DOUBLE, or a BIGINT with `integer`.
    Number => NumberParam {
        /// Default value; default: null.
        #[serde(default)]
        default: Option<f64>,
        /// Minimum.
        #[serde(default)]
        min: Option<f64>,
        /// Maximum.
        #[serde(default)]
        max: Option<f64>,
        /// Step between choices.
        #[serde(default)]
        #[schemars(extend("exclusiveMinimum" = 0))]
        step: Option<f64>,
        /// Accepts whole numbers only.
        #[serde(default)]
        integer: bool,
    }
    /// One of several values, or, with `multiple`, a list of them. No choice is null.
    Select => SelectParam {
        /// The options.
        options: Options,
        /// Default value; with `multiple` a list.
        #[serde(default)]
        default: Option<Choice>,
        /// Whether several values can be chosen.
        #[serde(default)]
        multiple: bool,
    }
    /// A day.
    Date => DateParam {
        /// Default: a day (`2013-01-31`), or its distance from today (UTC); null if it is missing.
        #[serde(default)]
        default: Option<DayDefault>,
        /// The earliest day.
        #[serde(default)]
        #[schemars(pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
        min: Option<String>,
        /// The latest day.
        #[serde(default)]
        #[schemars(pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
        max: Option<String>,
    }
    /// Days from `$name_start` to `$name_end`, both included.
    DateRange => DateRangeParam {
        /// Default: a preset, or a first and a last day; null if it is missing.
        #[serde(default)]
        default: Option<RangeDefault>,
        /// The presets to offer; default: all.
        #[serde(default)]
        #[schemars(length(max = 32))]
        presets: Vec<RangePreset>,
        /// The earliest day.
        #[serde(default)]
        #[schemars(pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
        min: Option<String>,
        /// The latest day.
        #[serde(default)]
        #[schemars(pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
        max: Option<String>,
    }
}

/// The options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Options {
    /// These.
    List(#[schemars(length(min = 1, max = OPTIONS_MAX))] Vec<OptionDocument>),
    /// The results of a query.
    Query(OptionsQuery),
}

/// One option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OptionDocument {
    /// A value with a label.
    Labelled(LabelledOption),
    /// A value that is its own label.
    Value(Scalar),
}

/// A value with a label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelledOption {
    /// The value for queries.
    pub value: Scalar,
    /// Label.
    #[schemars(length(max = TITLE_CHARS_MAX))]
    pub label: String,
}

/// Options that a query returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionsQuery {
    /// The query's name.
    pub query: String,
    /// The column of the values; default `value`.
    #[serde(default = "value_column")]
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub value: String,
    /// The column of the labels; default: the values themselves.
    #[serde(default)]
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub label: Option<String>,
}

fn value_column() -> String {
    "value".into()
}

/// A value that can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(#[schemars(length(max = VALUE_CHARS_MAX))] String),
}

/// The chosen value of a select.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Choice {
    One(Scalar),
    Many(#[schemars(length(max = CHOICES_MAX))] Vec<Scalar>),
}

/// A day, or its distance from today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DayDefault {
    Preset(DayPreset),
    Day(#[schemars(pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))] String),
}

/// A range of days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RangeDefault {
    Preset(RangePreset),
    Days(RangeDocument),
}

/// A first and a last day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeDocument {
    /// The first day.
    #[schemars(pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub start: String,
    /// The last day.
    #[schemars(pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub end: String,
}
