//! The program as users call it: a folder with a lake, a config and an output, and the result of a run.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::children::Reaped as _;

/// Time limit of a call.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(900);

/// A lake, a config and an output folder for one test.
pub struct Program {
    home: tempfile::TempDir,
}

/// The result of a call.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    /// Peak resident memory, in bytes.
    pub memory_bytes: u64,
}

/// A row of a rejects file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    pub source: String,
    pub line: u64,
    pub byte_offset: u64,
    pub column: Option<String>,
    pub value: Option<String>,
    pub reason: String,
    pub message: String,
    pub raw: String,
}

impl Rejected {
    /// `line@offset column=value reason raw`, on one line.
    pub fn summary(&self) -> String {
        let cell = match (&self.column, &self.value) {
            (Some(column), Some(value)) => format!("{column}={}", escaped(value)),
            (Some(column), None) => column.clone(),
            (None, _) => "-".into(),
        };
        format!("{}@{} {cell} {} {}", self.line, self.byte_offset, self.reason, escaped(&self.raw))
    }
}

fn escaped(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}

/// `base` with the members of `change` merged in, recursively.
pub fn merged(mut base: Value, change: &Value) -> Value {
    match (&mut base, change) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                let old = members.remove(name).unwrap_or(Value::Null);
                members.insert(name.clone(), if old.is_object() { merged(old, change) } else { change.clone() });
            }
            base
        }
        _ => change.clone(),
    }
}

/// Table `t` of all CSVs, with columns `a` (string) and `b` (int64), changed by `change`. Rejects are allowed.
pub fn mapping(change: &Value) -> Value {
    let base = json!({
        "table": "t",
        "files": ["in/**/*.csv", "in/**/*.csv.gz", "in/**/*.csv.zst"],
        "columns": [{ "name": "a", "type": "string" }, { "name": "b", "type": "int64" }],
        "rejects": { "max_ratio": 1.0 }
    });
    merged(base, change)
}

impl Program {
    /// With a config of these mappings.
    pub fn new(mappings: &[Value]) -> Self {
        let program = Self { home: tempfile::tempdir().unwrap() };
        std::fs::create_dir(program.lake()).unwrap();
        program.configure(mappings);
        program
    }

    /// With [`mapping`] as its only one.
    pub fn of(change: &Value) -> Self {
        Self::new(&[mapping(change)])
    }

    pub fn configure(&self, mappings: &[Value]) {
        let config = json!({ "version": 1, "mappings": mappings });
        std::fs::write(self.config(), serde_json::to_string_pretty(&config).unwrap()).unwrap();
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn lake(&self) -> PathBuf {
        self.home.path().join("lake")
    }

    pub fn output(&self) -> PathBuf {
        self.home.path().join("out")
    }

    pub fn config(&self) -> PathBuf {
        self.home.path().join("pipeline.json")
    }

    /// Writes a file into the lake, below `in/` unless its key has a folder.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.source(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    pub fn source(&self, name: &str) -> PathBuf {
        if name.contains('/') { self.lake().join(name) } else { self.lake().join("in").join(name) }
    }

    /// `lakemill run` with the folders and `more`.
    pub fn run(&self, more: &[&str]) -> CommandOutput {
        call(self.command().args(more))
    }

    pub fn command(&self) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_lakemill")))
    }

    /// Like [`Self::command`], of another `lakemill`.
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = without_environment(program);
        command.arg("run").arg(self.config()).arg("--input").arg(self.lake()).arg("--output").arg(self.output());
        command
    }

    /// The rows of a table, cells joined by `|`, null as `∅`; prefixed by `partition: ` if it is partitioned. In the
    /// order of partitions, files and rows.
    pub fn rows(&self, table: &str) -> Vec<String> {
        let root = self.output().join(table);
        let mut rows = Vec::new();
        for file in files(&root) {
            let partition = file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}: "));
            for batch in batches(&root.join(&file)) {
                rows.extend(cells(&batch).into_iter().map(|row| format!("{partition}{row}")));
            }
        }
        rows
    }

    /// The rejected rows of a table.
    pub fn rejected(&self, table: &str) -> Vec<Rejected> {
        let root = self.output().join("_rejected_rows").join(format!("table={table}"));
        files(&root).iter().flat_map(|file| rejects_of(&root.join(file))).collect()
    }

    /// Every file below the output folder with its bytes, except for the store's own files.
    pub fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let read = |name: String| {
            let bytes = std::fs::read(self.output().join(&name)).unwrap();
            (name, bytes)
        };
        files(&self.output())
            .into_iter()
            .filter(|f| !f.split('/').any(|part| part.starts_with('.')))
            .map(read)
            .collect()
    }

    /// The tables and manifests of [`Self::tree`]: the published files.
    pub fn published(&self) -> BTreeMap<String, Vec<u8>> {
        self.tree().into_iter().filter(|(name, _)| !name.starts_with("_lakemill/jobs/")).collect()
    }
}

impl CommandOutput {
    /// Panics unless the call succeeded.
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 0, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Panics unless the call ended with `status` and its error contains each of `parts`.
    #[track_caller]
    pub fn exits_with(self, status: i32, parts: &[&str]) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.stdout, self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "expected `{part}` in:\n{}", self.stderr);
        }
        let odd = self.stderr.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(odd, None, "a control character in {:?}", self.stderr);
        self
    }
}

/// The program, without the tester's environment.
pub fn lakemill() -> Command {
    without_environment(Path::new(env!("CARGO_BIN_EXE_lakemill")))
}

fn without_environment(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("FAILPOINTS").env_remove("RUST_BACKTRACE").env("COLUMNS", "100").stdin(Stdio::null());
    command
}

pub fn call(command: &mut Command) -> CommandOutput {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn_reaped().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            from.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let mut memory_bytes = 0;
    let until = Instant::now() + CALL_TIME_MAX;
    let status = loop {
        if let Some(peak) = std::fs::read_to_string(&status).ok().and_then(|text| peak_bytes(&text)) {
            memory_bytes = peak;
        }
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > until => {
                let _ = child.kill();
                panic!("{command:?} did not end within {} s", CALL_TIME_MAX.as_secs());
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let status = status.code().unwrap_or(-1);
    CommandOutput { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap(), memory_bytes }
}

/// `VmHWM` of a `/proc/PID/status`.
pub fn peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The files below `root`, relative to it, in order.
pub fn files(root: &Path) -> Vec<String> {
    fn walk(folder: &Path, prefix: &str, out: &mut Vec<String>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() { walk(&entry.path(), &format!("{name}/"), out) } else { out.push(name) }
        }
    }
    let mut out = Vec::new();
    walk(root, "", &mut out);
    out.sort();
    out
}

pub fn batches(file: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

/// The rows of a batch, cells joined by `|`, null as `∅`.
pub fn cells(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("∅");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    let row = |at: usize| columns.iter().map(|c| c.value(at).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

/// The rows of one file of rejects.
pub fn rejects_of(file: &Path) -> Vec<Rejected> {
    let mut rows = Vec::new();
    for batch in batches(file) {
        let options = FormatOptions::new().with_null("\0");
        let get = |name: &str, row: usize| {
            let array = batch.column_by_name(name).unwrap();
            let text = ArrayFormatter::try_new(array.as_ref(), &options).unwrap().value(row).to_string();
            (text != "\0").then_some(text)
        };
        for row in 0..batch.num_rows() {
            let text = |name| get(name, row).unwrap();
            rows.push(Rejected {
                source: text("source"),
                line: text("line").parse().unwrap(),
                byte_offset: text("byte_offset").parse().unwrap(),
                column: get("column", row),
                value: get("value", row),
                reason: text("reason"),
                message: text("message"),
                raw: text("raw"),
            });
            assert_eq!((text("source_sha256").len(), text("job_id").len()), (64, 36));
        }
    }
    rows
}
