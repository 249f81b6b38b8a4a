//! Chosen values of a dashboard's parameters, checked against the document.

use chrono::NaiveDate;
use serde_json::{Map, Number, Value, json};

use super::limits::{CHOICES_MAX, VALUE_CHARS_MAX};
use super::param::{
    Choice, DateParam, DateRangeParam, DayDefault, NumberParam, OptionDocument, Options, Param, RangeDefault, Scalar,
    SelectParam,
};
use super::preset::{DayPreset, DayRange, RangePreset};
use crate::domain::text::{did_you_mean, quoted, suggest};

/// A value for a statement's placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundValue {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Date(NaiveDate),
    List(Vec<BoundValue>),
}

/// The chosen value of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    Value(BoundValue),
    /// With its preset, if one was chosen.
    Range(Option<(DayRange, Option<RangePreset>)>),
}

/// The chosen value of each parameter, in the document's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParamSettings(Vec<(String, Setting)>);

impl ParamSettings {
    /// The `given` values by name, and defaults for the others.
    ///
    /// # Errors
    /// A message for each invalid value, which names its parameter.
    pub fn choose<'a>(
        params: impl IntoIterator<Item = &'a Param>,
        given: &Map<String, Value>,
        today: NaiveDate,
    ) -> Result<Self, Vec<String>> {
        let params: Vec<&Param> = params.into_iter().collect();
        let mut wrong = Vec::new();
        for name in given.keys() {
            if !params.iter().any(|param| param.name() == name) {
                let hint = did_you_mean(suggest(name, params.iter().map(|param| param.name())));
                wrong.push(format!("there is no parameter {}{hint}", quoted(name)));
            }
        }
        let mut settings = Vec::new();
        for param in params {
            let setting = match given.get(param.name()) {
                None => Ok(default_of(param, today)),
                Some(value) => read(param, value, today),
            };
            match setting {
                Ok(setting) => settings.push((param.name().to_owned(), setting)),
                Err(message) => wrong.push(format!("the parameter `{}`: {message}", param.name())),
            }
        }
        if wrong.is_empty() { Ok(Self(settings)) } else { Err(wrong) }
    }

    /// The defaults, or any value of the right type, for statements that are bound but not run.
    pub fn sample<'a>(params: impl IntoIterator<Item = &'a Param>, today: NaiveDate) -> Self {
        let sample = |param: &Param| match (default_of(param, today), param) {
            (Setting::Value(BoundValue::Null), Param::Number(number)) if number.integer => {
                Setting::Value(BoundValue::Integer(0))
            }
            (Setting::Value(BoundValue::Null), Param::Number(_)) => Setting::Value(BoundValue::Float(0.0)),
            (Setting::Value(BoundValue::Null), Param::Date(_)) => Setting::Value(BoundValue::Date(today)),
            (Setting::Value(BoundValue::Null), Param::Text(_)) => Setting::Value(BoundValue::Text(String::new())),
            (
                Setting::Value(BoundValue::Null),
                Param::Select(SelectParam { options: Options::List(options), multiple, .. }),
            ) => {
                let first = options.first().map_or(BoundValue::Null, |option| bound(option.value()));
                Setting::Value(if *multiple { BoundValue::List(vec![first]) } else { first })
            }
            (Setting::Range(None), _) => Setting::Range(Some((DayRange { start: today, end: today }, None))),
            (setting, _) => setting,
        };
        Self(params.into_iter().map(|param| (param.name().to_owned(), sample(param))).collect())
    }

    /// By placeholder name.
    pub fn bound(&self) -> Vec<(String, BoundValue)> {
        let mut all = Vec::new();
        for (name, setting) in &self.0 {
            match setting {
                Setting::Value(value) => all.push((name.clone(), value.clone())),
                Setting::Range(range) => {
                    let day = |day: Option<NaiveDate>| day.map_or(BoundValue::Null, BoundValue::Date);
                    all.push((format!("{name}_start"), day(range.map(|(range, _)| range.start))));
                    all.push((format!("{name}_end"), day(range.map(|(range, _)| range.end))));
                }
            }
        }
        all
    }

    /// The same with one date range moved; `None` if there is no range or no target.
    pub fn moved(&self, name: &str, to: impl Fn(DayRange) -> Option<DayRange>) -> Option<(Self, DayRange)> {
        let mut moved = self.clone();
        let setting = moved.0.iter_mut().find(|(own, _)| own == name).map(|(_, setting)| setting)?;
        let Setting::Range(Some((range, _))) = setting else { return None };
        let other = to(*range)?;
        *setting = Setting::Range(Some((other, None)));
        Some((moved, other))
    }

    /// The JSON of an API response.
    pub fn to_json(&self) -> Map<String, Value> {
        let setting = |setting: &Setting| match setting {
            Setting::Value(value) => value.to_json(),
            Setting::Range(None) => Value::Null,
            Setting::Range(Some((range, preset))) => {
                json!({ "start": range.start.to_string(), "end": range.end.to_string(), "preset": preset })
            }
        };
        self.0.iter().map(|(name, value)| (name.clone(), setting(value))).collect()
    }
}

impl BoundValue {
    fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => json!(value),
            Self::Integer(value) => json!(value),
            Self::Float(value) => json!(value),
            Self::Text(value) => json!(value),
            Self::Date(value) => json!(value.to_string()),
            Self::List(values) => values.iter().map(Self::to_json).collect(),
        }
    }
}

/// Parses a day in the form of documents and requests, with a year from 1 to 9999.
pub(super) fn parse_day(text: &str) -> Option<NaiveDate> {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(i, b)| if matches!(i, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    let day = if shape { NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()? } else { return None };
    (day >= DayRange::ALL.start && day <= DayRange::ALL.end).then_some(day)
}

/// Whether two values are equal for a query.
pub(super) fn same_scalar(a: &Scalar, b: &Scalar) -> bool {
    let number = |value: &Scalar| match value {
        #[expect(clippy::cast_precision_loss, reason = "both sides lose the same")]
        Scalar::Integer(value) => Some(*value as f64),
        Scalar::Number(value) => Some(*value),
        Scalar::Boolean(_) | Scalar::Text(_) => None,
    };
    a == b || number(a).is_some_and(|a| Some(a) == number(b))
}

fn bound(value: &Scalar) -> BoundValue {
    match value {
        Scalar::Boolean(value) => BoundValue::Boolean(*value),
        Scalar::Integer(value) => BoundValue::Integer(*value),
        Scalar::Number(value) => BoundValue::Float(*value),
        Scalar::Text(value) => BoundValue::Text(value.clone()),
    }
}

fn default_of(param: &Param, today: NaiveDate) -> Setting {
    let value = match param {
        Param::Text(param) => param.default.clone().map_or(BoundValue::Null, BoundValue::Text),
        Param::Number(param) => param.default.map_or(BoundValue::Null, |value| number(value, param.integer)),
        Param::Select(param) => match &param.default {
            None => BoundValue::Null,
            Some(Choice::One(value)) => bound(value),
            Some(Choice::Many(values)) => list(values.iter().map(bound).collect()),
        },
        Param::Date(param) => match &param.default {
            None => BoundValue::Null,
            Some(DayDefault::Preset(preset)) => BoundValue::Date(preset.day(today)),
            Some(DayDefault::Day(day)) => parse_day(day).map_or(BoundValue::Null, BoundValue::Date),
        },
        Param::DateRange(param) => {
            return Setting::Range(match &param.default {
                None => None,
                Some(RangeDefault::Preset(preset)) => Some((preset.range(today), Some(*preset))),
                Some(RangeDefault::Days(days)) => {
                    parse_day(&days.start).zip(parse_day(&days.end)).map(|(start, end)| (DayRange { start, end }, None))
                }
            });
        }
    };
    Setting::Value(value)
}

/// An empty selection is null, which doesn't restrict the query.
fn list(values: Vec<BoundValue>) -> BoundValue {
    if values.is_empty() { BoundValue::Null } else { BoundValue::List(values) }
}

#[expect(clippy::cast_possible_truncation, reason = "whole, and within the bounds that were checked")]
fn number(value: f64, integer: bool) -> BoundValue {
    if integer { BoundValue::Integer(value as i64) } else { BoundValue::Float(value) }
}

fn read(param: &Param, value: &Value, today: NaiveDate) -> Result<Setting, String> {
    let value = match (param, value) {
        (Param::DateRange(param), value) => return read_range(param, value, today).map(Setting::Range),
        (_, Value::Null) => BoundValue::Null,
        (Param::Text(_), value) => BoundValue::Text(read_text(value)?),
        (Param::Number(param), value) => read_number(param, value)?,
        (Param::Select(param), value) => read_select(param, value)?,
        (Param::Date(param), value) => BoundValue::Date(read_date(param, value, today)?),
    };
    Ok(Setting::Value(value))
}

fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn read_text(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| format!("expected text, found {}", described(value)))?;
    let length = text.chars().count();
    if length > VALUE_CHARS_MAX {
        return Err(format!("expected at most {VALUE_CHARS_MAX} characters, found {length}"));
    }
    if text.contains('\0') {
        return Err("expected text without NUL characters".into());
    }
    Ok(text.to_owned())
}

fn read_number(param: &NumberParam, value: &Value) -> Result<BoundValue, String> {
    /// Largest integer that a float represents exactly.
    const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
    let given = value.as_f64().filter(|_| value.is_number());
    let given = given.ok_or_else(|| format!("expected a number, found {}", described(value)))?;
    if param.integer && (given.fract() != 0.0 || given.abs() > WHOLE_MAX) {
        return Err(format!("expected a whole number, found {}", described(value)));
    }
    if let Some(min) = param.min.filter(|min| given < *min) {
        return Err(format!("expected {min} or more, found `{given}`"));
    }
    if let Some(max) = param.max.filter(|max| given > *max) {
        return Err(format!("expected at most {max}, found `{given}`"));
    }
    Ok(number(given, param.integer))
}

fn read_scalar(param: &SelectParam, value: &Value) -> Result<BoundValue, String> {
    let scalar = match value {
        Value::Bool(value) => Scalar::Boolean(*value),
        Value::Number(number) => {
            scalar_number(number).ok_or_else(|| format!("found {}, out of range", described(value)))?
        }
        Value::String(_) => Scalar::Text(read_text(value)?),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            return Err(format!("expected text, a number or a boolean, found {}", described(value)));
        }
    };
    let Options::List(options) = &param.options else { return Ok(bound(&scalar)) };
    match options.iter().map(OptionDocument::value).find(|option| same_scalar(option, &scalar)) {
        Some(option) => Ok(bound(option)),
        None => Err(format!("{} is not one of its options", described(value))),
    }
}

fn scalar_number(number: &Number) -> Option<Scalar> {
    match number.as_i64() {
        Some(whole) => Some(Scalar::Integer(whole)),
        None => number.as_f64().map(Scalar::Number),
    }
}

fn read_select(param: &SelectParam, value: &Value) -> Result<BoundValue, String> {
    match (value, param.multiple) {
        (Value::Array(values), true) if values.len() > CHOICES_MAX => {
            Err(format!("expected at most {CHOICES_MAX} values, found {}", values.len()))
        }
        (Value::Array(values), true) => {
            let read: Result<Vec<BoundValue>, String> = values.iter().map(|value| read_scalar(param, value)).collect();
            let mut values: Vec<BoundValue> = read?;
            // A list has one type: integers in a list with floats become floats.
            if values.iter().any(|value| matches!(value, BoundValue::Float(_))) {
                values.iter_mut().for_each(widen);
            }
            let kind = |value: &BoundValue| std::mem::discriminant(value);
            if values.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1])) {
                return Err("expected values of one type, found several".into());
            }
            Ok(list(values))
        }
        (_, true) => Err(format!("expected an array, found {}", described(value))),
        (_, false) => read_scalar(param, value),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the other values of the list have no more precision")]
fn widen(value: &mut BoundValue) {
    if let BoundValue::Integer(whole) = value {
        *value = BoundValue::Float(*whole as f64);
    }
}

fn read_day(value: &Value) -> Result<NaiveDate, String> {
    let day = value.as_str().and_then(parse_day);
    day.ok_or_else(|| format!("expected a day such as `2013-01-31`, found {}", described(value)))
}

fn within(day: NaiveDate, min: Option<&String>, max: Option<&String>) -> Result<NaiveDate, String> {
    let limit = |text: Option<&String>| text.and_then(|text| parse_day(text));
    if let Some(min) = limit(min).filter(|min| day < *min) {
        return Err(format!("expected a day not before `{min}`, found `{day}`"));
    }
    if let Some(max) = limit(max).filter(|max| day > *max) {
        return Err(format!("expected a day not after `{max}`, found `{day}`"));
    }
    Ok(day)
}

fn read_date(param: &DateParam, value: &Value, today: NaiveDate) -> Result<NaiveDate, String> {
    if let Ok(preset) = serde_json::from_value::<DayPreset>(value.clone()) {
        return Ok(preset.day(today));
    }
    within(read_day(value)?, param.min.as_ref(), param.max.as_ref())
}

type Chosen = Option<(DayRange, Option<RangePreset>)>;

fn read_range(param: &DateRangeParam, value: &Value, today: NaiveDate) -> Result<Chosen, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(name) => match serde_json::from_value::<RangePreset>(value.clone()) {
            Ok(preset) => Ok(Some((preset.range(today), Some(preset)))),
            Err(_) => Err(format!("there is no preset {}", quoted(name))),
        },
        Value::Object(members) => {
            // Accepts the JSON of a response, which has a preset with its days.
            if let Some(other) = members.keys().find(|name| !matches!(name.as_str(), "start" | "end" | "preset")) {
                return Err(format!("unknown field {}, expected `start` and `end`", quoted(other)));
            }
            if let Some(preset @ Value::String(_)) = members.get("preset") {
                return read_range(param, preset, today);
            }
            let day = |name: &str| {
                let day = read_day(members.get(name).unwrap_or(&Value::Null)).map_err(|e| format!("`{name}`: {e}"))?;
                within(day, param.min.as_ref(), param.max.as_ref())
            };
            let (start, end) = (day("start")?, day("end")?);
            if start > end {
                return Err(format!("expected an `end` not before `{start}`, found `{end}`"));
            }
            Ok(Some((DayRange { start, end }, None)))
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(format!("expected a preset or `start` and `end`, found {}", described(value)))
        }
    }
}
