//! Files with a wrong name, huge files, and unreadable ones.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::{check, check_files, check_files_fail};
use crate::support::children::Reaped as _;
use crate::support::lake::gzip;
use crate::support::program::{CommandOutput, Program, call};

const TEXT: &str = "a,b\nx,1\ny,2\n";
/// Memory limit of a run with its default settings.
const MEMORY_BYTES_MAX: u64 = 700 << 20;

/// Text that compresses poorly.
fn many_rows() -> String {
    let mut state = 1_u64;
    let mut row = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:x},{}\n", state, state >> 40)
    };
    format!("a,b\n{}", (0..20_000).map(|_| row()).collect::<String>())
}

#[test]
fn gzip_and_zstd_with_several_members_are_read() {
    let zstd = zstd::encode_all(TEXT.as_bytes(), 3).unwrap();
    let two = [gzip(b"a,b\nx"), gzip(b",1\ny,2\n")].concat();
    for (name, bytes) in [("x.csv.gz", gzip(TEXT.as_bytes())), ("x.csv.zst", zstd), ("x.csv.gz", two)] {
        check_files(&[(name, &bytes)], json!({}), &["x|1", "y|2"], &[]);
    }
}

#[test]
fn truncated_file_fails_the_run() {
    let zstd = zstd::encode_all(many_rows().as_bytes(), 3).unwrap();
    for (name, whole, format) in [("x.csv.gz", gzip(many_rows().as_bytes()), "gzip"), ("x.csv.zst", zstd, "zstd")] {
        let sees = format!("`in/{name}`: the {format} data ends too early, after ");
        let advice = "replace the source, or remove it from the lake";
        for end in [whole.len() - 1, whole.len() / 2, 100] {
            check_files_fail(&[(name, &whole[..end])], json!({}), &[&sees, advice, "(unreadable_source)"]);
        }
    }
}

#[test]
fn damaged_file_fails_the_run() {
    let mut damaged = gzip(many_rows().as_bytes());
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xa5);
    check_files_fail(
        &[("x.csv.gz", &damaged)],
        json!({}),
        &["`in/x.csv.gz`: the gzip data is damaged", "(unreadable_source)"],
    );
    let mut sum = gzip(TEXT.as_bytes());
    let at = sum.len() - 8;
    sum[at] ^= 1;
    check_files_fail(
        &[("x.csv.gz", &sum)],
        json!({}),
        &["`in/x.csv.gz`: the gzip data is damaged", "(unreadable_source)"],
    );
    let junk = [gzip(TEXT.as_bytes()), b"junk".to_vec()].concat();
    check_files_fail(&[("x.csv.gz", &junk)], json!({}), &["`in/x.csv.gz`", "(unreadable_source)"]);
}

#[test]
fn wrong_extension_fails_the_run() {
    let gz = gzip(TEXT.as_bytes());
    let zip = b"PK\x03\x04rest".to_vec();
    for (name, bytes, found) in [
        ("x.csv", &gz, "expected uncompressed text by its extension, found gzip data"),
        ("x.csv.gz", &TEXT.as_bytes().to_vec(), "expected gzip data by its extension, found other bytes"),
        ("x.csv.zst", &gz, "expected zstd data by its extension, found gzip data"),
        ("x.csv", &zip, "expected uncompressed text by its extension, found a zip archive"),
        ("x.csv.gz", &Vec::new(), "expected gzip data by its extension, found an empty object"),
    ] {
        check_files_fail(&[(name, bytes)], json!({}), &[&format!("`in/{name}`: {found}"), "(unreadable_source)"]);
    }
}

#[test]
fn decompression_bomb_fails_in_bounded_memory() {
    let zeros = vec![b'0'; 1 << 20];
    let mut gz = GzEncoder::new(Vec::new(), Compression::best());
    let mut zst = zstd::Encoder::new(Vec::new(), 3).unwrap();
    for _ in 0..256 {
        gz.write_all(&zeros).unwrap();
        zst.write_all(&zeros).unwrap();
    }
    for (name, bytes) in [("x.csv.gz", gz.finish().unwrap()), ("x.csv.zst", zst.finish().unwrap())] {
        let program = Program::of(&json!({ "csv": { "header": false } }));
        let ran = program.put(name, bytes).run(&[]);
        assert!(ran.memory_bytes < MEMORY_BYTES_MAX, "{} bytes", ran.memory_bytes);
        ran.exits_with(1, &[&format!("`in/{name}`: "), "inflate to more than", "(unreadable_source)"]);
    }
}

/// Runs on `head`, 200 MB of `x`, `tail`.
fn with_huge_field(change: serde_json::Value, head: &str, tail: &str) -> (Program, CommandOutput) {
    let program = Program::of(&change);
    program.put("x.csv", "");
    let mut file = std::fs::File::create(program.source("x.csv")).unwrap();
    file.write_all(head.as_bytes()).unwrap();
    let part = vec![b'x'; 1_000_000];
    (0..200).for_each(|_| file.write_all(&part).unwrap());
    file.write_all(tail.as_bytes()).unwrap();
    drop(file);
    let ran = program.run(&[]);
    assert!(ran.memory_bytes > 1 << 20 && ran.memory_bytes < MEMORY_BYTES_MAX, "{} bytes", ran.memory_bytes);
    (program, ran)
}

#[test]
fn field_of_200_mb_is_rejected_in_bounded_memory() {
    for bytes_max in [2 << 20, 64 << 20] {
        let change = json!({ "csv": { "record_bytes_max": bytes_max } });
        let (program, ran) = with_huge_field(change, "a,b\n", ",1\ny,2\nz,q\n");
        ran.ok();
        assert_eq!(program.rows("t"), ["y|2"]);
        let rejected = program.rejected("t");
        let places: Vec<_> = rejected.iter().map(|r| (r.line, r.byte_offset, r.reason.as_str())).collect();
        assert_eq!(places, [(2, 4, "record_too_long"), (4, 200_000_011, "wrong_type")]);
        assert_eq!(rejected[0].raw.len(), 65_536);
    }
}

#[test]
fn unclosed_quote_over_200_mb_is_reported() {
    let (program, ran) = with_huge_field(json!({}), "a,b\nw,1\n\"", "\n");
    ran.ok();
    assert_eq!(program.rows("t"), ["w|1"]);
    let rejected = program.rejected("t");
    assert_eq!(rejected.len(), 1);
    assert_eq!((rejected[0].line, rejected[0].byte_offset, rejected[0].reason.as_str()), (3, 8, "unclosed_quote"));
}

#[test]
fn header_of_200_mb_fails_in_bounded_memory() {
    let (_, ran) = with_huge_field(json!({}), "a,b", "\nx,1\n");
    ran.exits_with(1, &["`in/x.csv` line 1", "record_bytes_max", "(header_mismatch)"]);
}

#[test]
fn run_without_files_fails_and_clean_run_empties_tables() {
    let program = Program::of(&json!({}));
    program.run(&[]).exits_with(1, &["(no_input)", "in/**/*.csv", "the lake has no files", "--clean"]);
    program.put("x.csv", "a,b\nx,1\ny,q\n").run(&[]).ok();
    let before = program.published();
    std::fs::rename(program.source("x.csv"), program.source("x.txt")).unwrap();
    program.run(&[]).exits_with(1, &["(no_input)", "other files, such as `in/x.txt`", "nothing was published"]);
    assert!(program.published() == before);
    program.run(&["--clean"]).ok();
    assert_eq!((program.rows("t"), program.rejected("t")), (vec![], vec![]));
}

#[test]
fn unreadable_file_fails_the_run_by_name() {
    let program = Program::of(&json!({}));
    program.put("1.csv", TEXT).run(&[]).ok();
    let before = program.published();
    program.put("2.csv", TEXT);
    std::fs::set_permissions(program.source("2.csv"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let ran = if std::fs::File::open(program.source("2.csv")).is_err() {
        program.run(&[])
    } else {
        // Permissions don't apply to a superuser, unless it drops the capability.
        let plain = program.command();
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set", "-dac_override,-dac_read_search"])
            .arg(plain.get_program())
            .args(plain.get_args());
        call(&mut command)
    };
    ran.exits_with(1, &["in/2.csv`", "ermission denied", "give this user read access", "nothing was published"]);
    assert!(program.published() == before);
}

#[test]
fn broken_symlink_is_reported() {
    let program = Program::of(&json!({}));
    program.put("1.csv", TEXT);
    symlink(program.home().join("gone"), program.source("2.csv")).unwrap();
    let ran = program.run(&[]).ok();
    assert!(ran.stderr.contains("2.csv"), "{}", ran.stderr);
}

#[test]
fn symlinks_are_followed() {
    let program = Program::of(&json!({}));
    let elsewhere = program.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("1.csv"), TEXT).unwrap();
    std::fs::create_dir(program.lake().join("in")).unwrap();
    symlink(&elsewhere, program.source("linked")).unwrap();
    symlink(elsewhere.join("1.csv"), program.source("2.csv")).unwrap();
    program.run(&[]).ok();
    assert_eq!(program.rows("t").len(), 4);
}

#[test]
fn special_files_are_ignored() {
    let program = Program::of(&json!({}));
    program.put("1.csv", TEXT);
    std::fs::create_dir(program.source("folder.csv")).unwrap();
    assert!(Command::new("mkfifo").arg(program.source("pipe.csv")).output_reaped().unwrap().status.success());
    let ran = program.run(&[]).ok();
    assert_eq!(program.rows("t"), ["x|1", "y|2"]);
    assert!(ran.stderr.contains("pipe.csv"), "{}", ran.stderr);
}

#[test]
fn invalid_keys_are_reported() {
    use std::os::unix::ffi::OsStrExt;
    let program = Program::of(&json!({}));
    program.put("1.csv", TEXT);
    let latin = std::ffi::OsStr::from_bytes(b"M\xfcller.csv");
    std::fs::write(program.lake().join("in").join(latin), TEXT).unwrap();
    let ran = program.run(&[]).ok();
    assert_eq!(program.rows("t"), ["x|1", "y|2"]);
    assert!(ran.stderr.contains("M\u{fffd}ller.csv"), "{}", ran.stderr);
}

#[test]
fn names_with_blanks_and_unicode_are_read() {
    for name in ["a b.csv", "日本.csv", "a=b/c%.csv", "in/#1.csv", "in/?.csv"] {
        let files = format!("in/{}", if name.contains('/') { "**/*.csv" } else { "*.csv" });
        let name = if name.starts_with("a=") { format!("in/{name}") } else { name.to_owned() };
        let program = Program::of(&json!({ "files": [files] }));
        program.put(&name, TEXT).run(&[]).ok();
        assert_eq!(program.rows("t"), ["x|1", "y|2"], "{name}");
    }
}

#[test]
fn hidden_files_are_ignored() {
    check_files(&[("1.csv", TEXT.as_bytes()), (".2.csv", b"junk")], json!({}), &["x|1", "y|2"], &[]);
}

#[test]
fn rows_are_in_order_of_file_names() {
    check_files(&[("b.csv", b"a,b\nx,2\n"), ("a.csv", b"a,b\nx,1\n")], json!({}), &["x|1", "x|2"], &[]);
    check("a,b\nx,1\n", json!({}), &["x|1"], &[]);
}

#[test]
fn empty_file_has_no_rows() {
    let zstd = zstd::encode_all(&b""[..], 3).unwrap();
    let cases: [(&str, &[u8]); 4] =
        [("e.csv", b""), ("e.csv", b"\xef\xbb\xbf"), ("e.csv.gz", &gzip(b"")), ("e.csv.zst", &zstd)];
    for (name, empty) in cases {
        check_files(&[(name, empty), ("x.csv", TEXT.as_bytes())], json!({}), &["x|1", "y|2"], &[]);
    }
    check("", json!({}), &[], &[]);
    check("", json!({ "missing_columns": "null" }), &[], &[]);
}

#[test]
fn empty_file_fails_the_run_if_configured() {
    for missing in ["fail", "null"] {
        check_files_fail(
            &[("e.csv", b""), ("x.csv", TEXT.as_bytes())],
            json!({ "empty_files": "fail", "missing_columns": missing }),
            &["`in/e.csv`", "the file is empty and has no header", "set `empty_files` to `load`", "(header_mismatch)"],
        );
    }
}

/// The file has bytes, but no line that could be its header.
#[test]
fn blank_lines_do_not_make_a_file_empty() {
    for text in ["\n\n", "# nothing\n"] {
        check_files_fail(
            &[("x.csv", text.as_bytes())],
            json!({ "csv": { "comment": "#" } }),
            &["`in/x.csv`", "has no column"],
        );
    }
}
