//! Panels as people write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::format::Format;
use super::limits::*;
use crate::domain::name::SLUG_PATTERN;

/// Declares the kinds of panel, with the fields that all have.
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
                /// Shown on request.
                #[serde(default)]
                #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
                pub description: String,
                /// How many of the 12 columns it takes; a row that has no room for it is full.
                #[serde(default = "all_columns")]
                #[schemars(range(min = 1, max = GRID_COLUMNS))]
                pub width: u8,
                /// In CSS pixels; none: what its kind needs.
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
        /// The number: an aggregate over all rows of the query, or the first row's.
        value: Measure,
        /// Shows beside it what the query gives for another range of days.
        #[serde(default)]
        compare: Option<Compare>,
        /// The date range that is another for `compare`; needed if the query takes several.
        #[serde(default)]
        compare_param: Option<String>,
        /// Which way is good.
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
        /// The columns of numbers; a line each.
        #[schemars(length(min = 1, max = FIELDS_MAX))]
        y: Vec<Field>,
        /// A column by whose values each line is split.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// How numbers are written where a column doesn't say.
        #[serde(default)]
        format: Option<Format>,
        /// Draws also what the query gives for another range of days.
        #[serde(default)]
        compare: Option<Compare>,
        /// The date range that is another for `compare`; needed if the query takes several.
        #[serde(default)]
        compare_param: Option<String>,
        /// Whether nulls are bridged.
        #[serde(default)]
        connect_nulls: bool,
    }
    /// Lines that are filled below.
    Area => AreaPanel {
        /// The query's name.
        query: String,
        /// The column along the x axis.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The columns of numbers; an area each.
        #[schemars(length(min = 1, max = FIELDS_MAX))]
        y: Vec<Field>,
        /// A column by whose values each area is split.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// Whether areas stand on each other.
        #[serde(default)]
        stacked: bool,
        /// How numbers are written where a column doesn't say.
        #[serde(default)]
        format: Option<Format>,
    }
    /// Bars.
    Bar => BarPanel {
        /// The query's name.
        query: String,
        /// The column of what bars stand for.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The columns of numbers; a bar each.
        #[schemars(length(min = 1, max = FIELDS_MAX))]
        y: Vec<Field>,
        /// A column by whose values each bar is split.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// Whether bars stand on each other.
        #[serde(default)]
        stacked: bool,
        /// Whether bars lie.
        #[serde(default)]
        horizontal: bool,
        /// How numbers are written where a column doesn't say.
        #[serde(default)]
        format: Option<Format>,
        /// Draws also what the query gives for another range of days.
        #[serde(default)]
        compare: Option<Compare>,
        /// The date range that is another for `compare`; needed if the query takes several.
        #[serde(default)]
        compare_param: Option<String>,
    }
    /// Parts of a whole.
    Pie => PiePanel {
        /// The query's name.
        query: String,
        /// The column of what parts stand for.
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        x: String,
        /// The column of numbers.
        y: Field,
        /// Whether it is a ring.
        #[serde(default)]
        donut: bool,
    }
    /// A point for each row.
    Scatter => ScatterPanel {
        /// The query's name.
        query: String,
        /// The column along the x axis.
        x: Field,
        /// The column along the y axis.
        y: Field,
        /// A column by whose values points are coloured.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        series: Option<String>,
        /// A column of numbers that gives the points' sizes.
        #[serde(default)]
        #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
        size: Option<String>,
        /// A column that names the points.
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
        /// The column of numbers that gives the colours.
        value: Field,
    }
    /// The rows of a query.
    Table => TablePanel {
        /// The query's name.
        query: String,
        /// The columns; none: all of the query's.
        #[serde(default)]
        #[schemars(length(max = FIELDS_MAX))]
        columns: Vec<Field>,
    }
    /// Aggregates by the values of some columns, down and across.
    Pivot => PivotPanel {
        /// The query's name.
        query: String,
        /// The columns whose values stand down the side.
        #[schemars(length(min = 1, max = 8))]
        rows: Vec<Field>,
        /// The columns whose values stand across the top.
        #[serde(default)]
        #[schemars(length(max = 8))]
        columns: Vec<Field>,
        /// The aggregates.
        #[schemars(length(min = 1, max = 16))]
        values: Vec<PivotMeasure>,
    }
    /// A text.
    Markdown => MarkdownPanel {
        /// The text, in CommonMark; HTML in it is shown as text.
        #[schemars(length(max = MARKDOWN_CHARS_MAX))]
        text: String,
    }
}

fn all_columns() -> u8 {
    GRID_COLUMNS
}

/// A column of a result, by its name alone or with how it is shown.
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

/// A column of a result with how it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShownField {
    /// The column's name.
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub field: String,
    /// What people read; the column's name if it has none.
    #[serde(default)]
    #[schemars(length(max = TITLE_CHARS_MAX))]
    pub title: String,
    /// How its values are written.
    #[serde(default)]
    pub format: Option<Format>,
}

/// A number made of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The column's name.
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub field: String,
    /// The aggregate over all rows; none: the first row's value.
    #[serde(default)]
    pub aggregate: Option<Aggregate>,
    /// How it is written.
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
    /// What people read.
    #[serde(default)]
    #[schemars(length(max = TITLE_CHARS_MAX))]
    pub title: String,
    /// How it is written.
    #[serde(default)]
    pub format: Option<Format>,
}

/// Aggregates the values of a column, without nulls.
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
    /// Of the first row.
    First,
    /// Of the last row.
    Last,
}

/// Which other range of days is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// As many days, just before.
    PreviousPeriod,
    /// The same days a year before.
    PreviousYear,
}

/// Which way a number should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    #[default]
    Higher,
    Lower,
    Neither,
}

impl Panel {
    /// The name of its query; a text has none.
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

    /// What it compares with, and the date range that it names for it.
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
