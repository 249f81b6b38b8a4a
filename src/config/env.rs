//! Reads variables and collects their faults.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{EnvironmentError, Fault};
use super::secret::Secret;

/// The source of variables and of the files that they name.
pub struct Environment<'a> {
    /// A variable's value.
    pub get: &'a dyn Fn(&str) -> Option<OsString>,
    /// A file's content.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

impl Environment<'static> {
    /// The process's own.
    pub fn from_process() -> Self {
        Self { get: &|name| std::env::var_os(name), read: &|path| std::fs::read(path) }
    }

    /// Whether a service manager expects notifications of this process (`NOTIFY_SOCKET`).
    pub fn has_service_manager() -> bool {
        std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty())
    }

    /// The folder of the system's time-zone data, if it is set (`TZDIR`).
    pub fn zoneinfo() -> Option<PathBuf> {
        std::env::var_os("TZDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from)
    }

    /// The variables by which the loader finds this program's libraries, for child processes without other variables.
    pub fn loader_variables() -> Vec<(OsString, OsString)> {
        const NAMES: &[&str] = &["LD_LIBRARY_PATH"];
        NAMES.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect()
    }
}

impl Environment<'_> {
    /// Whether the secret `name` is set, directly or by a file; its content is not checked.
    pub fn has_secret(&self, name: &str) -> bool {
        let value = |name: &str| (self.get)(name).filter(|value| !value.is_empty());
        let credential = || {
            let path = Path::new(&value(CREDENTIALS)?).join(name);
            // An unreadable file counts as set, and is reported when it is read.
            let missing = (self.read)(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            (!missing).then_some(())
        };
        value(name).is_some() || value(&format!("{name}_FILE")).is_some() || credential().is_some()
    }
}

/// The folder of a service's secrets, set by systemd.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// A config with warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct WithWarnings<T> {
    pub config: T,
    /// Values that were adjusted.
    pub warnings: Vec<String>,
}

/// A variable's name and purpose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Var(pub(super) &'static str, pub(super) &'static str);

/// The form that a malformed value should have.
pub(super) type Expected = String;

/// Reads variables. Records missing and malformed ones, using defaults for them until [`VariableReader::finish`].
pub(super) struct VariableReader<'a> {
    env: &'a Environment<'a>,
    faults: RefCell<Vec<Fault>>,
    warnings: RefCell<Vec<String>>,
}

impl<'a> VariableReader<'a> {
    pub(super) fn new(env: &'a Environment<'a>) -> Self {
        Self { env, faults: RefCell::default(), warnings: RefCell::default() }
    }

    /// The variable, or its default; an empty one counts as missing.
    pub(super) fn or<T>(&self, var: Var, default: T, parse: impl Fn(&str) -> Result<T, Expected>) -> T {
        self.optional(var, parse).unwrap_or(default)
    }

    pub(super) fn optional<T>(&self, var: Var, parse: impl Fn(&str) -> Result<T, Expected>) -> Option<T> {
        let found = (self.env.get)(var.0).filter(|value| !value.is_empty())?;
        let parsed = match found.to_str() {
            Some(text) => parse(text),
            None => Err("UTF-8".to_owned()),
        };
        parsed.map_err(|expected| self.malformed(var, &found.to_string_lossy(), expected)).ok()
    }

    pub(super) fn required<T: Default>(&self, var: Var, parse: impl Fn(&str) -> Result<T, Expected>) -> T {
        if (self.env.get)(var.0).is_none_or(|value| value.is_empty()) {
            self.fault(Fault::Missing { name: var.0, purpose: var.1 });
        }
        self.optional(var, parse).unwrap_or_default()
    }

    /// A secret from the variable, from the file named by `<name>_FILE`, or from `$CREDENTIALS_DIRECTORY/<name>`, in this
    /// order. Drops one line ending at the end of a file. An empty secret counts as missing.
    pub(super) fn optional_secret<T>(&self, var: Var, parse: impl Fn(&str) -> Result<T, Expected>) -> Option<T> {
        let text = self.secret_text(var)?;
        parse(&text)
            .map_err(|expected| self.fault(Fault::MalformedSecret { name: var.0, purpose: var.1, expected }))
            .ok()
    }

    pub(super) fn required_secret<T: Default>(&self, var: Var, parse: impl Fn(&str) -> Result<T, Expected>) -> T {
        let faults = self.faults.borrow().len();
        let secret = self.optional_secret(var, parse);
        if secret.is_none() && self.faults.borrow().len() == faults {
            self.fault(Fault::Missing { name: var.0, purpose: var.1 });
        }
        secret.unwrap_or_default()
    }

    pub(super) fn malformed(&self, Var(name, purpose): Var, found: &str, expected: impl Into<Expected>) {
        if found.contains('@') {
            // A URL may carry a password.
            return self.fault(Fault::MalformedSecret { name, purpose, expected: expected.into() });
        }
        let found = crate::domain::text::clipped(found);
        self.fault(Fault::Malformed { name, purpose, found, expected: expected.into() });
    }

    pub(super) fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }

    /// # Errors
    /// All faults, if there are any.
    pub(super) fn finish<T>(self, config: T) -> Result<WithWarnings<T>, EnvironmentError> {
        let faults = self.faults.into_inner();
        if faults.is_empty() {
            Ok(WithWarnings { config, warnings: self.warnings.into_inner() })
        } else {
            Err(EnvironmentError { faults })
        }
    }

    fn fault(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    fn secret_text(&self, var @ Var(name, purpose): Var) -> Option<String> {
        let not_empty = |value: &OsString| !value.is_empty();
        let direct = (self.env.get)(name).filter(not_empty);
        let named = (self.env.get)(&format!("{name}_FILE")).filter(not_empty).map(PathBuf::from);
        if direct.is_some() && named.is_some() {
            self.fault(Fault::Ambiguous { name, purpose });
            return None;
        }
        let bytes = match (direct, named) {
            (Some(value), _) => value.into_encoded_bytes(),
            (None, Some(path)) => self.file(var, &path, true)?,
            (None, None) => {
                let folder = (self.env.get)(CREDENTIALS).filter(not_empty)?;
                self.file(var, &Path::new(&folder).join(name), false)?
            }
        };
        match String::from_utf8(bytes) {
            Ok(text) if text.is_empty() => None,
            Ok(text) => Some(text),
            Err(_) => {
                self.fault(Fault::MalformedSecret { name, purpose, expected: "UTF-8".into() });
                None
            }
        }
    }

    fn file(&self, Var(name, purpose): Var, path: &Path, must_be: bool) -> Option<Vec<u8>> {
        match (self.env.read)(path) {
            Ok(mut bytes) => {
                let ends = [&b"\r\n"[..], &b"\n"[..]];
                let end = ends.iter().find(|end| bytes.ends_with(end)).map_or(0, |end| end.len());
                bytes.truncate(bytes.len() - end);
                Some(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_be => None,
            Err(error) => {
                let path = path.display().to_string();
                self.fault(Fault::Unreadable { name, purpose, path, why: error.to_string() });
                None
            }
        }
    }
}

/// Reads a secret of any content.
pub(super) fn secret(text: &str) -> Result<Secret, Expected> {
    Ok(Secret::new(text))
}
