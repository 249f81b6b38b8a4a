//! The columns of a query's result that panels and options require.

use super::format::Format;
use super::format::ValueClass;
use super::panel::{Aggregate, Field, Panel};
use super::param::OptionsQuery;

/// A reference to a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnReference {
    /// The position of the reference, relative to its panel or parameter (a JSON Pointer).
    pub at: String,
    pub column: String,
    /// The required kind of column; `None`: any.
    pub family: Option<ValueClass>,
    /// The use of the column, for messages.
    pub purpose: &'static str,
}

#[derive(Default)]
struct ColumnReferences(Vec<ColumnReference>);

impl ColumnReferences {
    fn add(&mut self, at: impl Into<String>, column: &str, family: Option<ValueClass>, purpose: &'static str) {
        self.0.push(ColumnReference { at: at.into(), column: column.to_owned(), family, purpose });
    }

    fn named(&mut self, at: &str, column: &str) {
        self.add(at, column, None, "");
    }

    /// `least`: the kind that the use requires regardless of the format.
    fn field(&mut self, at: &str, field: &Field, least: Option<ValueClass>) {
        let at = match field {
            Field::Name(_) => at.to_owned(),
            Field::Shown(_) => format!("{at}/field"),
        };
        self.formatted(&at, field.name(), field.format(), least);
    }

    fn formatted(&mut self, at: &str, column: &str, format: Option<Format>, least: Option<ValueClass>) {
        match (least, format.and_then(Format::column_references)) {
            (Some(family), _) => self.add(at, column, Some(family), "it is drawn or aggregated"),
            (None, Some(family)) => self.add(at, column, Some(family), "its format requires it"),
            (None, None) => self.named(at, column),
        }
    }

    fn fields(&mut self, at: &str, fields: &[Field], least: Option<ValueClass>) {
        for (index, field) in fields.iter().enumerate() {
            self.field(&format!("{at}/{index}"), field, least);
        }
    }

    fn optional(&mut self, at: &str, column: Option<&String>) {
        if let Some(column) = column {
            self.named(at, column);
        }
    }

    /// A column that is aggregated.
    fn aggregate(&mut self, at: &str, column: &str, aggregate: Aggregate, format: Option<Format>) {
        match aggregate {
            Aggregate::Sum | Aggregate::Avg | Aggregate::Median => {
                self.add(at, column, Some(ValueClass::Number), "it is aggregated");
            }
            Aggregate::Count | Aggregate::CountDistinct => self.named(at, column),
            Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last => {
                self.formatted(at, column, format, None);
            }
        }
    }
}

const NUMBER: Option<ValueClass> = Some(ValueClass::Number);

/// The columns that a panel requires.
pub fn column_references(panel: &Panel) -> Vec<ColumnReference> {
    let mut column_references = ColumnReferences::default();
    match panel {
        Panel::Kpi(panel) => {
            let value = &panel.value;
            match value.aggregate {
                Some(aggregate) => column_references.aggregate("/value/field", &value.field, aggregate, value.format),
                None => column_references.formatted("/value/field", &value.field, value.format, None),
            }
        }
        Panel::Line(panel) => {
            column_references.named("/x", &panel.x);
            column_references.fields("/y", &panel.y, NUMBER);
            column_references.optional("/series", panel.series.as_ref());
        }
        Panel::Area(panel) => {
            column_references.named("/x", &panel.x);
            column_references.fields("/y", &panel.y, NUMBER);
            column_references.optional("/series", panel.series.as_ref());
        }
        Panel::Bar(panel) => {
            column_references.named("/x", &panel.x);
            column_references.fields("/y", &panel.y, NUMBER);
            column_references.optional("/series", panel.series.as_ref());
        }
        Panel::Pie(panel) => {
            column_references.named("/x", &panel.x);
            column_references.field("/y", &panel.y, NUMBER);
        }
        Panel::Scatter(panel) => {
            column_references.field("/x", &panel.x, None);
            column_references.field("/y", &panel.y, None);
            column_references.optional("/series", panel.series.as_ref());
            if let Some(size) = &panel.size {
                column_references.add("/size", size, NUMBER, "it is drawn or aggregated");
            }
            column_references.optional("/label", panel.label.as_ref());
        }
        Panel::Heatmap(panel) => {
            column_references.named("/x", &panel.x);
            column_references.named("/y", &panel.y);
            column_references.field("/value", &panel.value, NUMBER);
        }
        Panel::Table(panel) => column_references.fields("/columns", &panel.columns, None),
        Panel::Pivot(panel) => {
            column_references.fields("/rows", &panel.rows, None);
            column_references.fields("/columns", &panel.columns, None);
            for (index, value) in panel.values.iter().enumerate() {
                column_references.aggregate(
                    &format!("/values/{index}/field"),
                    &value.field,
                    value.aggregate,
                    value.format,
                );
            }
        }
        Panel::Markdown(_) => {}
    }
    column_references.0
}

/// The columns that options require.
pub(super) fn options_column_references(options: &OptionsQuery) -> Vec<ColumnReference> {
    let mut column_references = ColumnReferences::default();
    // The default is the column `value`.
    column_references.named("/options/value", &options.value);
    column_references.optional("/options/label", options.label.as_ref());
    column_references.0
}
