//! Panels of a dashboard document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::format::Format;
use super::limits::*;
use crate::domain::name::SLUG_PATTERN;

/// Declares the kinds of panel, with their common fields.
macro_rules! panels {
    ($($(#[$doc:meta])* $kind:ident => $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                /// Unique in the dashboard: 1 to 63 of a-z, 0-9, `_` and `-`, starting with a letter or digit.
                #[schemars(length(min = 1, max = NAME_BYTES_MAX), pattern(SLUG_PATTERN))]
                pub id: String,
                /// The heading.
                #[serde(default)]
                #[schemars(length(max = TITLE_CHARS_MAX))]
                pub title: String,
                /// Description, shown on request.
                #[serde(default)]
                #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
                pub description: String,
                /// Width in columns of the 12-column grid; a panel that doesn't fit starts a new row.
                #[serde(default = "all_columns")]
                #[schemars(range(min = 1, max = GRID_COLUMNS))]
                pub width: u8,
                /// Height in CSS pixels; default: depends on the kind.
                #[serde(default)]
                #[schemars(range(min = HEIGHT_PX_MIN, max = HEIGHT_PX_MAX))]
                pub height: Option<u16>,
                $($(#[$field_doc])* pub $field: $ty,)*
            }
        )*

        /// A part of a dashboard.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum Panel {
            $($(#[$doc])* $kind($name),)*
        }

        impl Panel {
            /// Unique in the dashboard.
            pub fn id(&self) -> &str {
                match self { $(Self::$kind(panel) => &panel.id,)* }
            }
        }
    };
}

panels! {
    /// One number.
    Kpi => KpiPanel {
        /// The query's name.
        query: String,
        /// The value: an aggregate over all rows of the query, or the first row's value.
        value: Measure,
        /// Also shows the value for a comparison date range.
        #[serde(default)]
        compare: Option<Compare>,
        /// The date range that `compare` shifts; required if the query uses several.
        #[serde(default)]
        compare_param: Option<String>,
        /// Which direction counts as good.
        #[serde(default)]
        better: Better,
    }
    /// Lines.
    Line => LinePanel {
        /// The query's name.
        query: String,
        /// The column along the x axis.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The numeric columns; one line each.
        #[schemars(length(min = 1, max = FIELDS_MAX))]
        y: Vec<Field>,
        /// A column that splits each line by its values.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// Format of columns without a format of their own.
        #[serde(default)]
        format: Option<Format>,
        /// Also draws the values for a comparison date range.
        #[serde(default)]
        compare: Option<Compare>,
        /// The date range that `compare` shifts; required if the query uses several.
        #[serde(default)]
        compare_param: Option<String>,
        /// Whether lines connect across nulls.
        #[serde(default)]
        connect_nulls: bool,
    }
    /// Lines with a filled area below.
    Area => AreaPanel {
        /// The query's name.
        query: String,
        /// The column along the x axis.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The numeric columns; one area each.
        #[schemars(length(min = 1, max = FIELDS_MAX))]
        y: Vec<Field>,
        /// A column that splits each area by its values.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// Whether areas are stacked.
        #[serde(default)]
        stacked: bool,
        /// Format of columns without a format of their own.
        #[serde(default)]
        format: Option<Format>,
    }
    /// Bars.
    Bar => BarPanel {
        /// The query's name.
        query: String,
        /// The column of categories.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The numeric columns; one bar each.
        #[schemars(length(min = 1, max = FIELDS_MAX))]
        y: Vec<Field>,
        /// A column that splits each bar by its values.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// Whether bars are stacked.
        #[serde(default)]
        stacked: bool,
        /// Whether bars are horizontal.
        #[serde(default)]
        horizontal: bool,
        /// Format of columns without a format of their own.
        #[serde(default)]
        format: Option<Format>,
        /// Also draws the values for a comparison date range.
        #[serde(default)]
        compare: Option<Compare>,
        /// The date range that `compare` shifts; required if the query uses several.
        #[serde(default)]
        compare_param: Option<String>,
    }
    /// Parts of a whole.
    Pie => PiePanel {
        /// The query's name.
        query: String,
        /// The column of categories.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The numeric column.
        y: Field,
        /// Whether it is a ring.
        #[serde(default)]
        donut: bool,
    }
    /// One point per row.
    Scatter => ScatterPanel {
        /// The query's name.
        query: String,
        /// The column along the x axis.
        x: Field,
        /// The column along the y axis.
        y: Field,
        /// A column that sets the points' colours.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// A numeric column that sets the points' sizes.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        size: Option<String>,
        /// A column with the points' names.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        label: Option<String>,
    }
    /// A grid of coloured cells.
    Heatmap => HeatmapPanel {
        /// The query's name.
        query: String,
        /// The column along the x axis.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The column along the y axis.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        y: String,
        /// The numeric column that sets the colours.
        value: Field,
    }
    /// The rows of a query.
    Table => TablePanel {
        /// The query's name.
        query: String,
        /// The columns; default: all columns of the query.
        #[serde(default)]
        #[schemars(length(max = FIELDS_MAX))]
        columns: Vec<Field>,
    }
    /// Aggregates grouped by the values of some columns, as rows and as columns.
    Pivot => PivotPanel {
        /// The query's name.
        query: String,
        /// The columns whose values become rows.
        #[schemars(length(min = 1, max = 8))]
        rows: Vec<Field>,
        /// The columns whose values become columns.
        #[serde(default)]
        #[schemars(length(max = 8))]
        columns: Vec<Field>,
        /// The aggregates.
        #[schemars(length(min = 1, max = 16))]
        values: Vec<PivotMeasure>,
        /// Whether a row and a column have the totals of measures that add up: sums and counts.
        #[serde(default)]
        totals: bool,
    }
    /// A text.
    Markdown => MarkdownPanel {
        /// The text, in CommonMark; HTML is shown as text.
        #[schemars(length(max = MARKDOWN_CHARS_MAX))]
        text: String,
    }
}

fn all_columns() -> u8 {
    GRID_COLUMNS
}

/// A column of a result: its name, or an object with display options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Field {
    /// Its name.
    Name(#[schemars(length(min = 1, max = FIELD_CHARS_MAX))] String),
    Shown(ShownField),
}

impl Field {
    /// The column's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Shown(ShownField { field: name, .. }) => name,
        }
    }

    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Name(_) => None,
            Self::Shown(shown) => shown.format,
        }
    }
}

/// A column of a result with display options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShownField {
    /// The column's name.
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub field: String,
    /// Label; default: the column's name.
    #[serde(default)]
    #[schemars(length(max = TITLE_CHARS_MAX))]
    pub title: String,
    /// Format of its values.
    #[serde(default)]
    pub format: Option<Format>,
}

/// A number computed from a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The column's name.
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub field: String,
    /// The aggregate over all rows; default: the first row's value.
    #[serde(default)]
    pub aggregate: Option<Aggregate>,
    /// Format of the number.
    #[serde(default)]
    pub format: Option<Format>,
}

/// An aggregate in a pivot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PivotMeasure {
    /// The column's name.
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub field: String,
    /// The aggregate of its values.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// Label.
    #[serde(default)]
    #[schemars(length(max = TITLE_CHARS_MAX))]
    pub title: String,
    /// Format of the values.
    #[serde(default)]
    pub format: Option<Format>,
}

/// Aggregates the non-null values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    #[default]
    Sum,
    Avg,
    Min,
    Max,
    Median,
    Count,
    CountDistinct,
    /// Value of the first row.
    First,
    /// Value of the last row.
    Last,
}

/// The date range to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// The same number of days immediately before.
    PreviousPeriod,
    /// The same days a year before.
    PreviousYear,
}

/// Which direction of a number counts as good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    #[default]
    Higher,
    Lower,
    Neither,
}

impl Panel {
    /// The name of its query; a text panel has none.
    pub fn query(&self) -> Option<&str> {
        match self {
            Self::Kpi(panel) => Some(&panel.query),
            Self::Line(panel) => Some(&panel.query),
            Self::Area(panel) => Some(&panel.query),
            Self::Bar(panel) => Some(&panel.query),
            Self::Pie(panel) => Some(&panel.query),
            Self::Scatter(panel) => Some(&panel.query),
            Self::Heatmap(panel) => Some(&panel.query),
            Self::Table(panel) => Some(&panel.query),
            Self::Pivot(panel) => Some(&panel.query),
            Self::Markdown(_) => None,
        }
    }

    /// The comparison, and the date range that the panel names for it.
    pub fn compare(&self) -> (Option<Compare>, Option<&str>) {
        match self {
            Self::Kpi(panel) => (panel.compare, panel.compare_param.as_deref()),
            Self::Line(panel) => (panel.compare, panel.compare_param.as_deref()),
            Self::Bar(panel) => (panel.compare, panel.compare_param.as_deref()),
            Self::Area(_)
            | Self::Pie(_)
            | Self::Scatter(_)
            | Self::Heatmap(_)
            | Self::Table(_)
            | Self::Pivot(_)
            | Self::Markdown(_) => (None, None),
        }
    }
}
