//! Globs of source files.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use super::report::{Pointer, Report};
use crate::domain::limits::KEY_BYTES_MAX;
use crate::domain::pipeline::globs::{compile_glob, left_out};
use crate::domain::problem::ProblemKind;
use crate::domain::text::is_bidi_control;
use crate::domain::text::quoted;

/// The valid globs in Unicode normal form C, the form of keys.
pub(super) fn resolve(files: &[String], at: &Pointer, report: &mut Report) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut globs = Vec::with_capacity(files.len());
    for (index, glob) in files.iter().enumerate() {
        let at = at.index(index);
        let glob: String = glob.nfc().collect();
        if let Err(why) = check(&glob) {
            let kind = if glob.len() > KEY_BYTES_MAX { ProblemKind::Limit } else { ProblemKind::InvalidGlob };
            report.push(kind, &at, format!("{} is not a glob of source files: {why}", quoted(&glob)));
        } else if let Some(first) = seen.insert(glob.clone(), index) {
            report.push(ProblemKind::Duplicate, &at, format!("{} duplicates item {first}", quoted(&glob)));
        } else {
            globs.push(glob);
        }
    }
    if !globs.is_empty() && globs.len() == files.len() && globs.iter().all(|glob| left_out(glob).1) {
        report.push(ProblemKind::InvalidGlob, at, "all globs leave files out; expected one of the files that are read");
    }
    globs
}

fn check(glob: &str) -> Result<(), String> {
    let (glob, _) = left_out(glob);
    if glob.is_empty() {
        return Err("it is empty".into());
    }
    if glob.len() > KEY_BYTES_MAX {
        return Err(format!("expected at most {KEY_BYTES_MAX} bytes, found {}", glob.len()));
    }
    if glob.starts_with('/') || glob.contains("://") {
        return Err("expected a path relative to the pipeline's folder of the lake".into());
    }
    if glob.contains('\\') {
        return Err("it contains a backslash; folders are separated by `/`, and `[*]` is a plain `*`".into());
    }
    if glob.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        return Err("it contains a control or bidirectional formatting character".into());
    }
    if glob.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err("it has an empty, `.` or `..` segment".into());
    }
    compile_glob(glob).map(drop).map_err(|error| error.kind().to_string())
}
