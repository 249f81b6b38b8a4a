//! Checks references between the parts of a document: names must exist, be unique, and have the right type.

use std::collections::HashSet;

use super::examined::{Dashboard, ExaminedDashboard, Names};
use super::limits::NAME_BYTES_MAX;
use super::panel::Panel;
use super::param::{
    Choice, DateParam, DateRangeParam, DayDefault, NumberParam, OptionDocument, Options, Param, RangeDefault, Scalar,
    SelectParam,
};
use super::problem::DashboardProblemKind;
use super::settings::{parse_day, same_scalar};
use super::statements::ranges_of;
use super::yaml::child;
use crate::domain::text::{Position, did_you_mean, quoted, suggest};

/// Adds the problems of references.
pub(super) fn check(examined: &mut ExaminedDashboard, names: &Names) {
    let dashboard = examined.dashboard.clone();
    let mut placeholders: Vec<(String, usize)> = Vec::new();
    let mut taken = HashSet::new();
    for (index, param) in &dashboard.params {
        let at = format!("/params/{index}");
        for name in param.placeholders() {
            if !taken.insert(name.clone()) {
                let message = format!("another parameter already defines `${name}`");
                examined.add(DashboardProblemKind::Duplicate, &format!("{at}/name"), message);
            }
            placeholders.push((name, *index));
        }
        check_param(examined, &at, param, names);
    }
    let mut used = HashSet::new();
    for query in &dashboard.queries {
        let at = child("/queries", &query.name);
        if !is_name(&query.name) {
            let message = format!(
                "{} is not a name of a query, expected 1 to {NAME_BYTES_MAX} of a-z, 0-9 and `_`, starting with a letter",
                quoted(&query.name)
            );
            let position = examined.source.name_position(&at);
            examined.add_at(DashboardProblemKind::InvalidValue, &at, message, position);
        }
        if let Some(more) = query.scanned.more {
            let position = position_in_sql(examined, &at, &query.query.sql, more);
            let message = "expected one statement, found more after its end";
            examined.add_at(DashboardProblemKind::InvalidSql, &format!("{at}/sql"), message, position);
        }
        for placeholder in &query.scanned.placeholders {
            let known = placeholders.iter().find(|(name, _)| *name == placeholder.name);
            used.extend(known.map(|(_, index)| *index));
            if known.is_none() && !names.params.iter().any(|name| belongs(&placeholder.name, name, &dashboard.params)) {
                unknown_placeholder(examined, &at, &query.query.sql, placeholder, &placeholders, names);
            }
        }
    }
    let mut asked: HashSet<&str> = HashSet::new();
    asked.extend(dashboard.options().map(|(_, options)| options.query.as_str()));
    for (at, name) in &names.in_invalid_panels {
        known_query(examined, at, name, names);
    }
    let mut ids = HashSet::new();
    for (index, panel) in &dashboard.panels {
        let at = format!("/panels/{index}");
        if !ids.insert(panel.id().to_owned()) {
            let message = format!("another panel already has the id {}", quoted(panel.id()));
            examined.add(DashboardProblemKind::Duplicate, &format!("{at}/id"), message);
        }
        if let Some(name) = panel.query() {
            asked.insert(name);
            known_query(examined, &format!("{at}/query"), name, names);
        }
        check_compare(examined, &at, panel);
    }
    warn_of_unused(examined, &used, &asked, names, &dashboard);
}

fn warn_of_unused(
    examined: &mut ExaminedDashboard,
    used: &HashSet<usize>,
    asked: &HashSet<&str>,
    names: &Names,
    dashboard: &Dashboard,
) {
    // Parts with problems may reference the others.
    if !examined.problems.is_empty() || names.queries.len() != dashboard.queries.len() {
        return;
    }
    for (index, param) in dashboard.params.iter().filter(|(index, _)| !used.contains(index)) {
        let message = format!("no query uses the parameter `{}`", param.name());
        examined.warn(DashboardProblemKind::Unused, &format!("/params/{index}"), message);
    }
    for query in dashboard.queries.iter().filter(|query| !asked.contains(query.name.as_str())) {
        let message = format!("no panel uses the query `{}`", query.name);
        examined.warn(DashboardProblemKind::Unused, &child("/queries", &query.name), message);
    }
}

/// Whether a placeholder may belong to a parameter that is invalid itself.
fn belongs(placeholder: &str, param: &str, whole: &[(usize, Param)]) -> bool {
    let stem = placeholder.strip_suffix("_start").or_else(|| placeholder.strip_suffix("_end"));
    (placeholder == param || stem == Some(param)) && !whole.iter().any(|(_, p)| p.name() == param)
}

fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn unknown_placeholder(
    examined: &mut ExaminedDashboard,
    query: &str,
    sql: &str,
    placeholder: &super::sql_text::Placeholder,
    known: &[(String, usize)],
    names: &Names,
) {
    let name = &placeholder.name;
    let (kind, message) = if name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) {
        (DashboardProblemKind::InvalidSql, "use parameters by name, such as `$period_start`".to_owned())
    } else if names.params.contains(name) {
        let message = format!("`{name}` is a date range: use `${name}_start` and `${name}_end`");
        (DashboardProblemKind::UnknownParam, message)
    } else {
        let hint = did_you_mean(suggest(name, known.iter().map(|(name, _)| name.as_str())));
        (DashboardProblemKind::UnknownParam, format!("there is no parameter {}{hint}", quoted(name)))
    };
    let at = format!("{query}/sql");
    let position = position_in_sql(examined, query, sql, placeholder.offset);
    examined.add_at(kind, &at, message, position);
}

/// The position in the document of a byte offset in a query's SQL.
fn position_in_sql(examined: &ExaminedDashboard, query: &str, sql: &str, byte: usize) -> Position {
    let Position { line, column } = Position::at_byte(sql, byte);
    examined.source.position_within(&format!("{query}/sql"), line, column)
}

fn known_query(examined: &mut ExaminedDashboard, at: &str, name: &str, names: &Names) {
    if !names.queries.contains(name) {
        let hint = did_you_mean(suggest(name, names.queries.iter().map(String::as_str)));
        examined.add(DashboardProblemKind::UnknownQuery, at, format!("there is no query {}{hint}", quoted(name)));
    }
}

fn check_compare(examined: &mut ExaminedDashboard, at: &str, panel: &Panel) {
    let (compare, named) = panel.compare();
    let at = |field: &str| format!("{at}/{field}");
    if compare.is_none() {
        if named.is_some() {
            let message = "`compare_param` has no effect without `compare`";
            examined.add(DashboardProblemKind::InvalidValue, &at("compare_param"), message);
        }
        return;
    }
    let dashboard = &examined.dashboard;
    let Some(query) = panel.query().and_then(|name| dashboard.query(name)) else { return };
    let ranges = ranges_of(dashboard, query);
    let name = query.name.clone();
    match named {
        None if ranges.is_empty() => {
            let message = format!("the query `{name}` uses no date range to compare");
            examined.add(DashboardProblemKind::InvalidValue, &at("compare"), message);
        }
        None if ranges.len() > 1 => {
            let message = format!("the query `{name}` uses several date ranges: choose one with `compare_param`");
            examined.add(DashboardProblemKind::InvalidValue, &at("compare"), message);
        }
        Some(param) if !ranges.contains(&param) => {
            let hint = did_you_mean(suggest(param, ranges.iter().copied()));
            let message = format!("the query `{name}` uses no date range {}{hint}", quoted(param));
            examined.add(DashboardProblemKind::UnknownParam, &at("compare_param"), message);
        }
        None | Some(_) => {}
    }
}

fn check_param(examined: &mut ExaminedDashboard, at: &str, param: &Param, names: &Names) {
    match param {
        Param::Text(_) => {}
        Param::Number(number) => check_number(examined, at, number),
        Param::Select(select) => check_select(examined, at, select, names),
        Param::Date(date) => check_date(examined, at, date),
        Param::DateRange(range) => check_range(examined, at, range),
    }
}

fn check_number(examined: &mut ExaminedDashboard, at: &str, param: &NumberParam) {
    let mut refuse = |field: &str, message: String| {
        examined.add(DashboardProblemKind::InvalidValue, &format!("{at}/{field}"), message);
    };
    if let (Some(min), Some(max)) = (param.min, param.max)
        && min > max
    {
        refuse("max", format!("expected {min} or more, as `min` says, found `{max}`"));
    }
    let Some(default) = param.default else { return };
    if param.integer && default.fract() != 0.0 {
        refuse("default", format!("expected a whole number, found `{default}`"));
    }
    if param.min.is_some_and(|min| default < min) || param.max.is_some_and(|max| default > max) {
        refuse("default", format!("`{default}` is not within `min` and `max`"));
    }
}

fn check_select(examined: &mut ExaminedDashboard, at: &str, param: &SelectParam, names: &Names) {
    let listed: Option<Vec<&Scalar>> = match &param.options {
        Options::Query(options) => {
            known_query(examined, &format!("{at}/options/query"), &options.query, names);
            None
        }
        Options::List(options) => Some(options.iter().map(OptionDocument::value).collect()),
    };
    if let Some(options) = &listed {
        for (index, option) in options.iter().enumerate() {
            if options[..index].iter().any(|earlier| same_scalar(earlier, option)) {
                let message = "an earlier option has the same value";
                examined.add(DashboardProblemKind::Duplicate, &format!("{at}/options/{index}"), message);
            }
        }
    }
    let chosen: Vec<&Scalar> = match (&param.default, param.multiple) {
        (None, _) => Vec::new(),
        (Some(Choice::One(value)), false) => vec![value],
        (Some(Choice::Many(values)), true) => values.iter().collect(),
        (Some(Choice::One(_)), true) => {
            let message = "expected a list of values, since several can be chosen";
            return examined.add(DashboardProblemKind::WrongType, &format!("{at}/default"), message);
        }
        (Some(Choice::Many(_)), false) => {
            let message = "expected one value, or `multiple: true`";
            return examined.add(DashboardProblemKind::WrongType, &format!("{at}/default"), message);
        }
    };
    let Some(options) = listed else { return };
    if chosen.iter().any(|value| !options.iter().any(|option| same_scalar(option, value))) {
        examined.add(
            DashboardProblemKind::InvalidValue,
            &format!("{at}/default"),
            "the default is not one of the options",
        );
    }
}

/// Parses days of the document, and reports those that don't exist.
fn days<'a>(examined: &mut ExaminedDashboard, fields: &[(String, Option<&'a str>)]) -> Vec<Option<chrono::NaiveDate>> {
    let mut read = |(at, text): &(String, Option<&'a str>)| {
        let text = (*text)?;
        let day = parse_day(text);
        if day.is_none() {
            examined.add(DashboardProblemKind::InvalidValue, at, format!("{} is not a valid date", quoted(text)));
        }
        day
    };
    fields.iter().map(&mut read).collect()
}

fn check_date(examined: &mut ExaminedDashboard, at: &str, param: &DateParam) {
    let default = match &param.default {
        Some(DayDefault::Day(day)) => Some(day.as_str()),
        Some(DayDefault::Preset(_)) | None => None,
    };
    let fields = [
        (format!("{at}/min"), param.min.as_deref()),
        (format!("{at}/max"), param.max.as_deref()),
        (format!("{at}/default"), default),
    ];
    let found = days(examined, &fields);
    in_order(examined, &fields[1].0, found[0], found[1]);
    let outside =
        found[2].is_some_and(|day| found[0].is_some_and(|min| day < min) || found[1].is_some_and(|max| day > max));
    if outside {
        examined.add(DashboardProblemKind::InvalidValue, &fields[2].0, "the default is not within `min` and `max`");
    }
}

fn check_range(examined: &mut ExaminedDashboard, at: &str, param: &DateRangeParam) {
    let (start, end) = match &param.default {
        Some(RangeDefault::Days(days)) => (Some(days.start.as_str()), Some(days.end.as_str())),
        Some(RangeDefault::Preset(_)) | None => (None, None),
    };
    let fields = [
        (format!("{at}/min"), param.min.as_deref()),
        (format!("{at}/max"), param.max.as_deref()),
        (format!("{at}/default/start"), start),
        (format!("{at}/default/end"), end),
    ];
    let found = days(examined, &fields);
    in_order(examined, &fields[1].0, found[0], found[1]);
    in_order(examined, &fields[3].0, found[2], found[3]);
}

fn in_order(
    examined: &mut ExaminedDashboard,
    at: &str,
    first: Option<chrono::NaiveDate>,
    last: Option<chrono::NaiveDate>,
) {
    if let (Some(first), Some(last)) = (first, last)
        && first > last
    {
        let message = format!("expected a day not before `{first}`, found `{last}`");
        examined.add(DashboardProblemKind::InvalidValue, at, message);
    }
}
