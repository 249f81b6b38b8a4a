use std::io::{self, Cursor, Read};

use proptest::prelude::*;

use super::*;

const TYPE: &str = "multipart/form-data; boundary=XyZ";

/// Yields its bytes in pieces of these lengths, cyclically.
struct SlowReader<'a> {
    bytes: Cursor<&'a [u8]>,
    pieces: Vec<usize>,
    next: usize,
}

impl Read for SlowReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = self.pieces[self.next % self.pieces.len()].clamp(1, out.len());
        self.next += 1;
        self.bytes.read(&mut out[..most])
    }
}

type Parts = Vec<(String, Option<String>, Vec<u8>)>;

fn parse_in(content_type: &str, body: &[u8], pieces: &[usize]) -> Result<Parts, String> {
    let source = SlowReader { bytes: Cursor::new(body), pieces: pieces.to_vec(), next: 0 };
    let mut form = Multipart::new(Some(content_type), source).map_err(|error| error.to_string())?;
    let mut parts = Vec::new();
    while let Some(head) = form.next_part().map_err(|error| error.to_string())? {
        let mut bytes = Vec::new();
        form.body().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        parts.push((head.name, head.file_name, bytes));
    }
    assert!(form.next_part().unwrap().is_none(), "the end stays the end");
    Ok(parts)
}

fn parse(body: &[u8]) -> Result<Parts, String> {
    parse_in(TYPE, body, &[usize::MAX])
}

fn part(head: &str, body: &[u8]) -> Vec<u8> {
    [b"--XyZ\r\n", head.as_bytes(), b"\r\n\r\n", body, b"\r\n"].concat()
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), b"--XyZ--\r\n".to_vec()].concat()
}

const FILE: &str = "Content-Disposition: form-data; name=\"file\"; filename=\"a.zip\"\r\nContent-Type: application/zip";
const SLUG: &str = "content-disposition:form-data;name=slug";

#[test]
fn parts_come_with_their_names_and_bytes() {
    let body = form(&[part(FILE, b"PK\r\n--Xy\r\n-\r\n"), part(SLUG, b"trips"), part(SLUG, b"")]);
    let parts = parse(&body).unwrap();
    assert_eq!(parts[0], ("file".into(), Some("a.zip".into()), b"PK\r\n--Xy\r\n-\r\n".to_vec()));
    assert_eq!(parts[1], ("slug".into(), None, b"trips".to_vec()));
    assert_eq!(parts[2].2, b"");
    assert_eq!(parse(b"--XyZ--").unwrap(), vec![]);
    assert_eq!(parse(b"--XyZ--\r\n").unwrap(), vec![]);
}

#[test]
fn rest_of_a_part_is_skipped() {
    let body = form(&[part(FILE, &vec![b'-'; 300_000]), part(SLUG, b"x")]);
    let mut form = Multipart::new(Some(TYPE), Cursor::new(body)).unwrap();
    assert_eq!(form.next_part().unwrap().unwrap().name, "file");
    let mut some = [0; 10];
    form.body().read_exact(&mut some).unwrap();
    assert_eq!(form.next_part().unwrap().unwrap().name, "slug");
    assert!(form.next_part().unwrap().is_none());
    assert_eq!(form.body().read(&mut some).unwrap(), 0);
}

#[test]
fn boundaries_follow_the_standard() {
    let body = |boundary: &str| format!("--{boundary}\r\n{SLUG}\r\n\r\nx\r\n--{boundary}--").into_bytes();
    for (content_type, boundary) in [
        ("multipart/form-data; boundary=a", "a"),
        ("Multipart/Form-Data;boundary=\"a b:?\"", "a b:?"),
        ("multipart/form-data; charset=utf-8; BOUNDARY=----WebKit123", "----WebKit123"),
        (&format!("multipart/form-data; boundary={}", "b".repeat(70)), &"b".repeat(70)),
    ] {
        assert_eq!(parse_in(content_type, &body(boundary), &[3]).unwrap().len(), 1, "{content_type}");
    }
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a",
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data; boundary=a\u{e9}",
        "multipart/form-data; boundary=\"a \"",
        "multipart/mixed; boundary=a",
        "application/json",
        "",
        &format!("multipart/form-data; boundary={}", "b".repeat(71)),
    ] {
        assert!(parse_in(content_type, &body("a"), &[3]).is_err(), "{content_type}");
    }
    assert!(Multipart::new(None, io::empty()).is_err());
}

#[test]
fn malformed_forms_are_errors() {
    let good = form(&[part(FILE, b"abc")]);
    let disposition = |value: &str| form(&[part(&format!("Content-Disposition: {value}"), b"x")]);
    let many = form(&vec![part(SLUG, b"x"); PARTS_MAX + 1]);
    let bad: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"--".to_vec(),
        b"preamble\r\n--XyZ--".to_vec(),
        b"\r\n--XyZ--".to_vec(),
        b"--XyZ".to_vec(),
        b"--XyZ-".to_vec(),
        b"--XyZ\r\n".to_vec(),
        b"--XyZother\r\n\r\n--XyZ--".to_vec(),
        b"--XyZ\r\n\r\nno head\r\n--XyZ--".to_vec(),
        b"--XyZ \r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--XyZ--".to_vec(),
        [&good[..], b"trailing"].concat(),
        [&good[..], &good[..]].concat(),
        good[..good.len() - 4].to_vec(),
        form(&[part(FILE, b"x\r\n--XyZz")]),
        form(&[part("Content-Type: text/plain", b"x")]),
        form(&[part(&format!("{SLUG}\r\n{SLUG}"), b"x")]),
        form(&[part(&format!("{SLUG}\r\nContent-Transfer-Encoding: base64"), b"x")]),
        form(&[part("no colon", b"x")]),
        disposition("form-data"),
        disposition("attachment; name=a"),
        disposition("form-data; name=\"a"),
        disposition("form-data; name=a; name=b"),
        disposition("form-data; name=\"a\"x"),
        disposition("form-data; =a"),
        form(&[part(&format!("{SLUG}\r\nX: {}", "y".repeat(HEAD_BYTES_MAX)), b"x")]),
        form(&[part(&format!("{SLUG}{}", "\r\nX: y".repeat(HEAD_FIELDS_MAX)), b"x")]),
        many,
    ];
    for body in &bad {
        let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        assert!(parse(body).is_err(), "{text}");
        assert!(parse_in(TYPE, body, &[1]).is_err(), "{text}");
    }
    let mut undecodable = form(&[part(SLUG, b"x")]);
    let at = memmem::find(&undecodable, b"slug").unwrap();
    undecodable[at] = 0xff;
    assert!(parse(&undecodable).is_err());
}

#[test]
fn every_truncated_form_is_an_error() {
    let whole = form(&[part(FILE, b"abc\r\n"), part(SLUG, b"x")]);
    // The line ending after the last delimiter may be missing, or incomplete.
    for end in 0..whole.len() - 2 {
        assert!(parse(&whole[..end]).is_err(), "{end}");
    }
    assert!(parse(&whole[..whole.len() - 2]).is_ok());
}

#[test]
fn file_names_are_parsed_as_browsers_write_them() {
    for (written, read) in [
        (r#"filename="a b.zip""#, "a b.zip"),
        (r#"filename="a\"b.zip""#, "a\"b.zip"),
        (r#"filename="C:\x\y.zip""#, r"C:\x\y.zip"),
        (r#"filename="a;b=c.zip""#, "a;b=c.zip"),
        ("filename=\"ü.zip\"", "ü.zip"),
        ("filename=plain.zip", "plain.zip"),
    ] {
        let head = format!("Content-Disposition: form-data; name=\"file\"; {written}");
        assert_eq!(parse(&form(&[part(&head, b"x")])).unwrap()[0].1.as_deref(), Some(read), "{written}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_bytes_round_trip_in_any_chunks(
        // Consists of a delimiter's characters, so that many parts resemble one.
        bodies in prop::collection::vec("[\r\n\\-XyZa]{0,80}", 0..4),
        pieces in prop::collection::vec(1_usize..40, 1..6),
    ) {
        prop_assume!(bodies.iter().all(|body| !format!("\r\n{body}\r\n").contains("\r\n--XyZ")));
        let parts: Vec<Vec<u8>> = bodies.iter().map(|body| part(SLUG, body.as_bytes())).collect();
        let read = parse_in(TYPE, &form(&parts), &pieces).unwrap();
        let read: Vec<Vec<u8>> = read.into_iter().map(|(_, _, bytes)| bytes).collect();
        let sent: Vec<Vec<u8>> = bodies.iter().map(|body| body.clone().into_bytes()).collect();
        prop_assert_eq!(read, sent);
    }

    #[test]
    fn arbitrary_bytes_are_read_alike_in_any_chunks(
        bytes in "(--XyZ|\r\n|content-disposition:form-data;name=a|--|[a-z:;= ]|\u{0}|ÿ){0,40}",
        pieces in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let at_once = parse(bytes.as_bytes());
        prop_assert_eq!(parse_in(TYPE, bytes.as_bytes(), &pieces).ok(), at_once.ok());
    }
}
