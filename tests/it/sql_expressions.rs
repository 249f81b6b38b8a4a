//! Expressions in child processes: the same results as in process, and no text, cell or child can disrupt the service.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int64Array,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use lakemill::domain::problem::ProblemKind;
use lakemill::engine::validate::{ValidateError, validate};
use lakemill::ports::expressions::{
    EvaluationCrashed, EvaluationError, ExpressionId, ExpressionProblem, ExpressionSet, Expressions,
};
use lakemill::sql::sandbox::greeting::Greeting;
use lakemill::sql::sandbox::{ChildProgram, ExpressionLimits, SandboxExpressions};
use serde_json::json;

use crate::sql_support::{SQL, batch, int64s, set};
use crate::support::site::await_that;

fn expressions_with(program: &Path, limits: ExpressionLimits) -> SandboxExpressions {
    SandboxExpressions::new(ChildProgram::at(program), 4, Vec::new(), limits)
}

/// Limits that are short enough for a test.
fn expressions() -> SandboxExpressions {
    let limits = ExpressionLimits {
        check_cpu_seconds: 1,
        // A busy machine ends children slowly.
        replacement_wall: Duration::from_secs(60),
        batch_cpu_seconds: 2,
        part_cpu_seconds: 1,
        ..ExpressionLimits::default()
    };
    expressions_with(&PathBuf::from(env!("CARGO_BIN_EXE_lakemill-sql")), limits)
}

fn ended(error: EvaluationError) -> EvaluationCrashed {
    match error {
        EvaluationError::Ended(ended) => ended,
        other => panic!("expected a process that ended, found {other:?}"),
    }
}

fn texts(values: Vec<Option<String>>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

#[test]
fn child_and_in_process_results_agree_for_every_type() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("boolean", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("int64", int64s([Some(i64::MIN), None, Some(7)])),
        ("float64", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(f64::NAN)]))),
        (
            "decimal(38,2)",
            Arc::new(
                Decimal128Array::from(vec![Some(-12_345), None, Some(1)]).with_precision_and_scale(38, 2).unwrap(),
            ),
        ),
        ("string", texts(vec![Some("größe".into()), None, Some(String::new())])),
        ("json", texts(vec![Some("{\"a\": [1]}".into()), None, Some("null".into())])),
        ("date", Arc::new(Date32Array::from(vec![Some(-1), None, Some(20_000)]))),
        ("time", Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_399_999_999)]))),
        ("timestamp", Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1)]))),
        ("timestamptz", Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1)]).with_timezone("UTC"))),
        (
            "uuid",
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    vec![Some([7_u8; 16]), None, Some([255; 16])].into_iter(),
                    16,
                )
                .unwrap(),
            ),
        ),
    ];
    let inputs: Vec<(String, &str)> = (0..).zip(&columns).map(|(at, (ty, _))| (format!("c{at}"), *ty)).collect();
    let inputs: Vec<(&str, &str)> = inputs.iter().map(|(name, ty)| (name.as_str(), *ty)).collect();
    let sqls: Vec<(String, String)> =
        inputs.iter().map(|(name, _)| (format!("{name}_made"), format!("CASE WHEN true THEN {name} END"))).collect();
    let mut computed: Vec<(&str, &str, &str)> =
        sqls.iter().zip(&inputs).map(|((name, sql), (_, ty))| (name.as_str(), *ty, sql.as_str())).collect();
    computed.push(("fails", "int64", "CAST(c4 AS BIGINT)"));
    let set = set(&inputs, &computed, &["c1 > 0", "CAST(c4 AS INTEGER) = 1", "c1_made IS NULL"]);
    let batch = batch(&set, columns.into_iter().map(|(_, array)| array).collect());
    let (near, far) = (&*SQL, expressions());
    assert_eq!(far.check(&set).unwrap(), near.check(&set).unwrap());
    let expect = near.bind(&set).unwrap().evaluate(&batch).unwrap();
    let mut evaluator = far.bind(&set).unwrap();
    for part in [batch.clone(), batch.slice(1, 2), batch.slice(0, 0), batch.slice(0, 3)] {
        let found = evaluator.evaluate(&part).unwrap();
        if part.num_rows() == 3 {
            assert_eq!((&found.computed, &found.predicates), (&expect.computed, &expect.predicates));
            assert_eq!(found.errors, expect.errors);
            assert!(!found.errors.is_empty());
        }
        assert!(found.computed.iter().all(|array| array.len() == part.num_rows()));
    }
    assert_eq!(far.version().unwrap(), near.version().unwrap());
}

/// A batch in which the cell of row 5 is `hostile`.
fn with_a_cell(set: &ExpressionSet, hostile: &str) -> arrow::array::RecordBatch {
    let cells = (0..9).map(|row| Some(if row == 5 { hostile.to_owned() } else { "{\"a\": 1}".to_owned() })).collect();
    batch(set, vec![texts(cells)])
}

#[test]
fn cells_that_crash_their_process_fail_only_their_batch_and_are_reported() {
    let expressions = expressions();
    let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let mut any_ended = false;
    for (sql, levels) in [
        ("CAST(json_structure(a) AS VARCHAR)", 30_000),
        ("CAST(json_contains(a, '1') AS VARCHAR)", 30_000),
        ("CAST(json_merge_patch(a, a) AS VARCHAR)", 60_000),
        ("CAST(json_merge_patch(a, a) AS VARCHAR)", 2_000_000),
        ("CAST(json_structure(a) AS VARCHAR)", 2_000_000),
    ] {
        let set = set(&[("a", "string")], &[("fine", "string", "upper(a)"), ("b", "string", sql)], &["a IS NOT NULL"]);
        assert_eq!(expressions.check(&set).unwrap(), [], "{sql}");
        let mut evaluator = expressions.bind(&set).unwrap();
        match evaluator.evaluate(&with_a_cell(&set, &deep(levels))) {
            Ok(found) => assert_eq!(found.computed[1].len(), 9),
            Err(error) => {
                let ended = ended(error);
                assert_eq!((ended.rows, ended.id), (5..6, Some(ExpressionId::Computed(1))), "{sql}: {}", ended.cause);
                any_ended = true;
            }
        }
        let found = evaluator.evaluate(&with_a_cell(&set, "{}")).unwrap();
        assert_eq!(found.computed[0].null_count(), 0, "the evaluator goes on with the next batch");
    }
    assert!(any_ended, "one of them overflows the deepest stack");
}

#[test]
fn endless_expression_is_ended_at_its_processor_time_and_reported() {
    let expressions = expressions();
    let (left, right) = ("ab".repeat(200_000), "ba".repeat(200_000));
    let set = set(&[("a", "string"), ("b", "string")], &[("n", "int64", "length(a)")], &["levenshtein(a, b) < 10"]);
    let column =
        |long: &str| texts((0..40).map(|row| Some(if row == 33 { long.into() } else { "x".into() })).collect());
    let mut evaluator = expressions.bind(&set).unwrap();
    let ended = ended(evaluator.evaluate(&batch(&set, vec![column(&left), column(&right)])).unwrap_err());
    assert_eq!((ended.rows, ended.id), (33..34, Some(ExpressionId::Predicate(0))), "{}", ended.cause);
    assert!(ended.cause.contains("processor time"), "{}", ended.cause);
}

#[test]
fn checks_that_crash_their_process_are_problems_of_the_expression() {
    let expressions = expressions();
    let endless = "levenshtein(repeat(repeat('ab',2000),100),repeat(repeat('ba',2000),100))";
    let brackets = |bracket: char| format!("repeat(repeat('{bracket}',10000),100)");
    let deep = format!("length(from_json('1', {} || '\"INTEGER\"' || {})::VARCHAR)", brackets('['), brackets(']'));
    // DuckDB folds constants during preparation; those that fail then fail in the run.
    for (hostile, is_problem) in [
        (deep.as_str(), true),
        (endless, true),
        ("length(repeat(repeat(repeat('a',10000),10000),40))", false),
        ("length(format('{:{}}','x',2000000000))", false),
        ("damerau_levenshtein(repeat('ab',10000),repeat('ba',10000))", false),
    ] {
        let computed = [("before", "int64", "a + 1"), ("made", "int64", hostile), ("after", "int64", "a + before")];
        let found = expressions.check(&set(&[("a", "int64")], &computed, &[])).unwrap();
        assert!(found.len() == 1 || (found.is_empty() && !is_problem), "{hostile}: {found:?}");
        let of_it = |problem: &ExpressionProblem| {
            problem.id == ExpressionId::Computed(1) && problem.kind == ProblemKind::InvalidExpression
        };
        assert!(found.iter().all(of_it), "{hostile}: {found:?}");
    }
    let computed =
        [("before", "int64", "a + nope"), ("made", "int64", deep.as_str()), ("after", "int64", "a + no_such")];
    let found = expressions.check(&set(&[("a", "int64")], &computed, &[])).unwrap();
    let found: Vec<(ExpressionId, ProblemKind)> = found.iter().map(|problem| (problem.id, problem.kind)).collect();
    let kinds = [ProblemKind::UnknownColumn, ProblemKind::InvalidExpression, ProblemKind::UnknownColumn];
    assert_eq!(found, (0..).map(ExpressionId::Computed).zip(kinds).collect::<Vec<_>>());
    assert_eq!(expressions.check(&set(&[("a", "int64")], &[("b", "int64", "a + 1")], &[])).unwrap(), []);
}

#[test]
fn hostile_expressions_bound_the_time_of_a_check() {
    let limits = ExpressionLimits { check_cpu_seconds: 1, ..ExpressionLimits::default() };
    let expressions = expressions_with(&PathBuf::from(env!("CARGO_BIN_EXE_lakemill-sql")), limits);
    let endless = "levenshtein(repeat(repeat('ab',2000),100),repeat(repeat('ba',2000),100))";
    let names: Vec<String> = (0..50).map(|at| format!("c{at}")).collect();
    let computed: Vec<(&str, &str, &str)> = names.iter().map(|name| (name.as_str(), "int64", endless)).collect();
    let sets = vec![set(&[("a", "int64")], &computed, &[]); 20];
    let found = expressions.check_all(&sets);
    let problems: usize = found.into_iter().map(|found| found.unwrap().len()).sum();
    assert!((1..20).contains(&problems), "some are problems, and the rest is left: {problems}");
}

#[test]
fn config_stays_unjudged_while_no_process_can_check_its_expressions() {
    let folder = tempfile::tempdir().unwrap();
    let expressions = expressions_with(&folder.path().join("absent"), ExpressionLimits::default());
    let config = |ty: &str| {
        let columns = json!([{ "name": "a", "type": ty }, { "name": "b", "type": "int64", "expr": "a + 1" }]);
        json!({ "version": 1, "mappings": [{ "table": "t", "files": ["*.csv"], "columns": columns }] }).to_string()
    };
    match validate(&config("int64"), &expressions) {
        Err(ValidateError::Unchecked { reason }) => assert!(reason.contains("absent"), "{reason}"),
        other => panic!("{other:?}"),
    }
    match validate(&config("int65"), &expressions) {
        Err(ValidateError::Invalid(problems)) => assert_eq!(problems.len(), 1, "{problems:?}"),
        other => panic!("{other:?}"),
    }
}

/// A program that acts as a child: it sends the given bytes, then reads until the connection closes.
fn impostor(folder: &Path, answers: &[u8]) -> PathBuf {
    let answer = folder.join("answers");
    std::fs::write(&answer, answers).unwrap();
    let program = folder.join("impostor");
    let script = format!("#!/bin/sh\ncat '{}'\nexec cat >/dev/null\n", answer.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    [&[kind], &length[..], content].concat()
}

fn ready_and_bound() -> Vec<u8> {
    let confinement = r#"{"landlock":"fully","syscalls":true,"namespaces":true}"#;
    let ready = format!(r#"{{"reply":"ready","confinement":{confinement}}}"#);
    let mut answers = Vec::new();
    Greeting::write(&mut answers).unwrap();
    [answers, frame(b'M', ready.as_bytes()), frame(b'M', br#"{"reply":"bound","inputs":[0]}"#)].concat()
}

#[test]
fn replies_of_a_compromised_child_are_validated() {
    let set = set(&[("a", "int64")], &[("s", "string", "a::VARCHAR")], &["a > 0"]);
    let batch = batch(&set, vec![int64s([Some(1), Some(2)])]);
    let evaluated = |shapes: &str, errors: usize, columns: &[u8]| {
        let reply = format!(r#"{{"reply":"evaluated","shapes":{shapes},"errors":{errors},"messages":["m"]}}"#);
        [ready_and_bound(), frame(b'M', reply.as_bytes()), frame(b'C', columns)].concat()
    };
    let plain = |bytes: u64| format!(r#"[{{"nulls":false,"text_bytes":{bytes}}},{{"nulls":false,"text_bytes":0}}]"#);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let honest = [words(&[0, 1, 2]), b"12".to_vec(), vec![3]].concat();
    let mut fine = evaluated(&plain(2), 0, &honest);
    for (what, answers) in [
        ("offsets beyond the text", evaluated(&plain(2), 0, &[words(&[0, 1, 9]), b"12".to_vec(), vec![3]].concat())),
        ("text that is not UTF-8", evaluated(&plain(2), 0, &[words(&[0, 1, 2]), vec![255, 254], vec![3]].concat())),
        ("a column too few", evaluated(r#"[{"nulls":false,"text_bytes":2}]"#, 0, &honest[..14])),
        ("more text than can be", evaluated(&plain(u64::MAX), 0, &honest)),
        ("more text than may be", evaluated(&plain(3 << 30), 0, &honest)),
        ("fewer bytes than announced", evaluated(&plain(2), 0, &honest[..5])),
        ("an error of a row that is not there", evaluated(&plain(2), 1, &[honest.clone(), words(&[2, 0, 0])].concat())),
        ("an error of no expression", evaluated(&plain(2), 1, &[honest.clone(), words(&[0, 2, 0])].concat())),
        ("an error without its message", evaluated(&plain(2), 1, &[honest.clone(), words(&[0, 0, 1])].concat())),
        ("more errors than can be", evaluated(&plain(2), usize::MAX, &honest)),
        ("another answer", [ready_and_bound(), frame(b'M', br#"{"reply":"defined"}"#)].concat()),
        ("no answer at all", [ready_and_bound(), frame(b'M', b"nonsense")].concat()),
        ("a message that is too long", [ready_and_bound(), vec![b'M', 255, 255, 255, 255]].concat()),
        ("inputs that are not there", {
            let mut answers = ready_and_bound();
            let at = answers.len() - 2;
            answers[at - 1] = b'7';
            answers
        }),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let expressions = expressions_with(&impostor(folder.path(), &answers), ExpressionLimits::default());
        let outcome = expressions.bind(&set).and_then(|mut evaluator| evaluator.evaluate(&batch).map(|_| ()));
        assert!(outcome.is_err(), "{what}");
    }
    // The same bytes pass without the lie, so each lie above is the reason for its refusal.
    let folder = tempfile::tempdir().unwrap();
    fine.flush().unwrap();
    let expressions = expressions_with(&impostor(folder.path(), &fine), ExpressionLimits::default());
    let found = expressions.bind(&set).unwrap().evaluate(&batch).unwrap();
    assert_eq!(&found.computed[0], &texts(vec![Some("1".into()), Some("2".into())]));
    assert_eq!(found.predicates[0], BooleanArray::from(vec![true, true]));
}

#[test]
fn single_crash_is_retried_and_a_failed_start_is_unavailable() {
    let set = set(&[("a", "int64")], &[("s", "int64", "a + 1")], &[]);
    let batch = batch(&set, vec![int64s([Some(1), Some(2)])]);
    let folder = tempfile::tempdir().unwrap();
    // The first process ends as if killed for lack of memory.
    let first = folder.path().join("first");
    std::fs::write(&first, ready_and_bound()).unwrap();
    let program = folder.path().join("program");
    let real = env!("CARGO_BIN_EXE_lakemill-sql");
    let (mark, first) = (folder.path().join("mark").display().to_string(), first.display().to_string());
    let script =
        format!("#!/bin/sh\nif mkdir '{mark}' 2>/dev/null; then cat '{first}'; exit 9; fi\nexec '{real}' \"$@\"\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let expressions = expressions_with(&program, ExpressionLimits::default());
    let found = expressions.bind(&set).unwrap().evaluate(&batch).unwrap();
    assert_eq!(&found.computed[0], &(Arc::new(Int64Array::from(vec![2, 3])) as ArrayRef));
    assert!(Path::new(&mark).exists());
    let limits = ExpressionLimits { child_wait: Duration::from_millis(500), ..ExpressionLimits::default() };
    let error = expressions_with(Path::new("/nonexistent/program"), limits).bind(&set).map(|_| ()).unwrap_err();
    assert!(matches!(error, EvaluationError::Unavailable { .. }), "{error:?}");
}

/// A program that records its process id in a file, then executes Lakemill; and the recorded processes.
fn recording_program(folder: &Path) -> (PathBuf, impl Fn() -> Vec<i32>) {
    let (program, notes) = (folder.join("program"), folder.join("notes"));
    let script =
        format!("#!/bin/sh\necho $$ >> '{}'\nexec '{}' \"$@\"\n", notes.display(), env!("CARGO_BIN_EXE_lakemill-sql"));
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let pids = move || std::fs::read_to_string(&notes).unwrap().lines().map(|pid| pid.parse().unwrap()).collect();
    (program, pids)
}

#[test]
fn run_starts_one_child_for_check_version_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (program, children) = recording_program(folder.path());
    let expressions = expressions_with(&program, ExpressionLimits::default());
    let run_view = expressions.for_run().unwrap();
    let sets: Vec<ExpressionSet> = ["a + 1", "a + 2", "a + 3"]
        .iter()
        .map(|sql| set(&[("a", "int64")], &[("b", "int64", sql)], &["b > 0"]))
        .collect();
    assert!(run_view.check_all(&sets).into_iter().all(|found| found.unwrap().is_empty()));
    assert!(run_view.version().unwrap().starts_with("duckdb "));
    for (at, set) in (1..).zip(&sets) {
        let mut evaluator = run_view.bind(set).unwrap();
        for rows in [1, 3_000] {
            let found = evaluator.evaluate(&batch(set, vec![int64s((0..rows).map(Some))])).unwrap();
            assert_eq!(&found.computed[0], &int64s((0..rows).map(|row| Some(row + at))));
        }
    }
    assert_eq!(children().len(), 1);
    let side_by_side: Vec<_> = sets.iter().map(|set| run_view.bind(set).unwrap()).collect();
    assert_eq!(children().len(), 3, "each of three threads has one");
    drop(side_by_side);
    let _again: Vec<_> = sets.iter().map(|set| run_view.bind(set).unwrap()).collect();
    assert_eq!(children().len(), 4, "two are kept");
}

#[test]
fn children_of_a_run_serve_only_it_and_end_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (program, children) = recording_program(folder.path());
    let expressions = expressions_with(&program, ExpressionLimits::default());
    let set = set(&[("a", "int64")], &[("b", "int64", "a + 1")], &[]);
    for run in 1..=2 {
        let run_view = expressions.for_run().unwrap();
        assert_eq!(run_view.check(&set).unwrap(), []);
        assert_eq!(children().len(), run);
        drop(run_view.bind(&set).unwrap());
        assert_eq!(children().len(), run);
    }
    assert_eq!(expressions.check(&set).unwrap(), []);
    drop(expressions.bind(&set).unwrap());
    assert_eq!(children().len(), 4, "without a run a child has one task");
    await_that("their end", || expressions.borrowed() == 0);
}

#[test]
fn exited_child_is_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    let (program, children) = recording_program(folder.path());
    let limits = ExpressionLimits { batch_cpu_seconds: 1, part_cpu_seconds: 1, ..ExpressionLimits::default() };
    let expressions = expressions_with(&program, limits);
    let run_view = expressions.for_run().unwrap();
    let set = set(&[("a", "string")], &[("n", "int64", "levenshtein(a, reverse(a) || 'x')")], &[]);
    let (calm, endless) = (vec![texts(vec![Some("x".into())])], vec![texts(vec![Some("ab".repeat(200_000))])]);
    let idle = {
        let mut evaluator = run_view.bind(&set).unwrap();
        evaluator.evaluate(&batch(&set, calm.clone())).unwrap();
        *children().last().unwrap()
    };
    let idle = rustix::process::Pid::from_raw(idle).unwrap();
    rustix::process::kill_process(idle, rustix::process::Signal::KILL).unwrap();
    let mut evaluator = run_view.bind(&set).unwrap();
    evaluator.evaluate(&batch(&set, calm.clone())).unwrap();
    assert_eq!(children().len(), 2);
    ended(evaluator.evaluate(&batch(&set, endless)).unwrap_err());
    drop(evaluator);
    let before = children().len();
    run_view.bind(&set).unwrap().evaluate(&batch(&set, calm)).unwrap();
    assert_eq!(children().len(), before + 1);
}

#[test]
fn child_for_expressions_reads_no_file_and_makes_no_socket_or_process() {
    let expressions = expressions();
    let mut child = expressions.child().unwrap();
    let confinement = child.confinement().unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let proc = format!("/proc/{}", child.pid().unwrap());
    let status = std::fs::read_to_string(format!("{proc}/status")).unwrap();
    assert!(confinement.syscalls && status.contains("Seccomp:\t2"), "{confinement:?} {status}");
    assert!(status.contains("CapEff:\t0000000000000000") && status.contains("CapPrm:\t0000000000000000"), "{status}");
    if confinement.namespaces {
        let link = |process: &str| std::fs::read_link(format!("{process}/ns/net")).unwrap();
        assert_ne!(link(&proc), link("/proc/self"));
    }
    let mut probe = |name: &str, payload: &str| child.call(name, &serde_json::Value::from(payload), deadline);
    for (op, what) in [
        ("probe_read", "/etc/passwd"),
        ("probe_read", "/proc/self/environ"),
        ("probe_list", "/"),
        ("probe_write", "/tmp/lakemill-probe"),
        ("probe_connect", "127.0.0.1:1"),
        ("probe_listen", "127.0.0.1:0"),
        ("probe_socket", "/tmp/lakemill-probe.sock"),
        ("probe_execute", "/bin/true"),
    ] {
        assert_eq!(probe(op, what).unwrap(), "PermissionDenied", "{op} {what}");
    }
    assert!(probe("probe_namespace", "").is_err(), "a call that only attacks make ends the process");
}
