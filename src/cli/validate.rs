//! `lakemill validate FILE`: reports every problem of a `pipeline.json` or a dashboard with its position, like a
//! compiler.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::domain::dashboard;
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::pipeline::validate::{TextSpan, spans};
use crate::domain::problem::{Problem, ProblemKind};
use crate::engine::validate::{ValidateError, validate_with_warnings};
use crate::ports::Expressions;

/// Maximum length of a source line, in characters.
const LINE_CHARS_MAX: usize = 100;
/// Characters shown before the problem in a long line.
const LEAD_CHARS: usize = 30;

/// Validates `file` (`-`: standard input) and writes the problems to `out`. True if there are none.
///
/// # Errors
/// `out` can't be written. A file that can't be read is reported on `out`.
pub fn run(file: &Path, expressions: &dyn Expressions, out: &mut dyn Write) -> io::Result<bool> {
    let (name, bytes) = if file == Path::new("-") {
        ("<stdin>".to_owned(), read(io::stdin().lock()))
    } else {
        (file.display().to_string(), File::open(file).and_then(read))
    };
    match bytes {
        Ok(bytes) => report(&name, &bytes, expressions, out),
        Err(error) => {
            writeln!(out, "{name}: can't be read: {error}")?;
            Ok(false)
        }
    }
}

/// Validates the content of a file called `name`.
///
/// # Errors
/// `out` can't be written.
pub fn report(name: &str, bytes: &[u8], expressions: &dyn Expressions, out: &mut dyn Write) -> io::Result<bool> {
    if is_dashboard(name, bytes) {
        return report_dashboard(name, bytes, out);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            writeln!(out, "{name}:{line}: the file is not UTF-8, as JSON must be")?;
            return Ok(false);
        }
    };
    let (pipeline, warnings) = validate_with_warnings(text, expressions);
    if let Err(ValidateError::Invalid(problems)) = &pipeline {
        show_all(name, text, "", problems, out)?;
    }
    show_all(name, text, "warning: ", &warnings, out)?;
    let warned = if warnings.is_empty() { String::new() } else { format!(", {}", counted(warnings.len(), "warning")) };
    match &pipeline {
        Ok(pipeline) => writeln!(out, "{name}: ok, {}{warned}", counted(pipeline.mappings.len(), "table"))?,
        Err(ValidateError::Invalid(problems)) => {
            writeln!(out, "{name}: {}{warned}", counted(problems.len(), "problem"))?;
        }
        Err(error @ ValidateError::Unchecked { .. }) => writeln!(out, "{name}: {error}{warned}")?,
    }
    Ok(pipeline.is_ok())
}

fn show_all(name: &str, text: &str, prefix: &str, problems: &[Problem], out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').collect();
    for (problem, span) in problems.iter().zip(spans(text, problems)) {
        let (kind, message) = (kind_name(problem.kind), format!("{prefix}{}", problem.message));
        let finding = Finding { message: &message, kind: &kind, path: &problem.path, span };
        finding.show(name, lines.get(span.line - 1).unwrap_or(&""), out)?;
    }
    Ok(())
}

/// Decides by the file name or, if that is inconclusive, by the first words.
fn is_dashboard(name: &str, bytes: &[u8]) -> bool {
    let extension = Path::new(name).extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("yaml" | "yml") => true,
        Some("json") => false,
        Some(_) | None => String::from_utf8_lossy(bytes).lines().any(|line| line.starts_with("version:")),
    }
}

fn report_dashboard(name: &str, bytes: &[u8], out: &mut dyn Write) -> io::Result<bool> {
    let examined = dashboard::examine(bytes);
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').collect();
    let warnings = examined.warnings.iter().map(|problem| (problem, "warning: "));
    for (problem, prefix) in examined.problems.iter().map(|problem| (problem, "")).chain(warnings) {
        let span = TextSpan { line: problem.line as usize, column: problem.column as usize, width: 1 };
        let message = format!("{prefix}{}", problem.message);
        let finding = Finding { message: &message, kind: problem.kind.as_str(), path: &problem.path, span };
        finding.show(name, lines.get(span.line - 1).unwrap_or(&""), out)?;
    }
    let good = examined.problems.is_empty();
    let count = if good {
        format!("ok, {}", counted(examined.dashboard.panels().count(), "panel"))
    } else {
        counted(examined.problems.len(), "problem")
    };
    writeln!(out, "{name}: {count}; its SQL is not checked here, since that requires the pipeline's tables")?;
    Ok(good)
}

fn read(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than the limit, so that validation detects a longer file.
    source.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A problem with its source line.
struct Finding<'a> {
    message: &'a str,
    kind: &'a str,
    path: &'a str,
    span: TextSpan,
}

impl Finding<'_> {
    fn show(&self, name: &str, line: &str, out: &mut dyn Write) -> io::Result<()> {
        let span = self.span;
        // A syntax error's message starts with its position, for readers of the message alone.
        let stated = format!("line {} column {}: ", span.line, span.column);
        let message = self.message.strip_prefix(&stated).unwrap_or(self.message);
        writeln!(out, "{name}:{}:{}: {message}", span.line, span.column)?;
        let number = span.line.to_string();
        let margin = " ".repeat(number.len());
        let (shown, before) = excerpt(line, span.column);
        let width = span.width.min(shown.chars().count().saturating_sub(before)).max(1);
        let at = if self.path.is_empty() { "the document" } else { self.path };
        writeln!(out, " {margin} |")?;
        writeln!(out, " {number} | {shown}")?;
        writeln!(out, " {margin} | {}{}", " ".repeat(before), "^".repeat(width))?;
        writeln!(out, " {margin} = {} at {at}\n", self.kind)
    }
}

/// The part of a line around a column, with the number of characters before the column in it.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let before = column - 1;
    let length = line.trim_end().chars().count();
    let from = if length > LINE_CHARS_MAX && before > LEAD_CHARS { before - LEAD_CHARS } else { 0 };
    let part = line.trim_end().chars().skip(from).take(LINE_CHARS_MAX);
    // Every character is one column wide, so that the caret is below the character that it marks.
    let mut shown: String = part.map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lead = before - from;
    if from > 0 {
        shown.insert(0, '…');
        lead += 1;
    }
    if length > from + LINE_CHARS_MAX {
        shown.push('…');
    }
    (shown, lead)
}

fn kind_name(kind: ProblemKind) -> String {
    serde_json::to_value(kind).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
