//! Fuzz target: any bytes as the start of a connection. Checks where the head ends, and that its body has one length.

use std::net::SocketAddr;

use super::head::{Framing, RequestHead};
use super::scan::{HeadScanner, HeadState};

const BYTES_MAX: usize = 16 << 10;
const FIELDS_MAX: usize = 64;

/// The first byte says in which steps the rest arrives.
pub fn head(input: &[u8]) {
    let Some((&step, bytes)) = input.split_first() else { return };
    let mut scan = HeadScanner::default();
    let mut in_steps = HeadScanner::default();
    let scanned = scan.advance(bytes, BYTES_MAX, FIELDS_MAX);
    let steps = (0..bytes.len()).step_by(usize::from(step) + 1).chain([bytes.len()]);
    let last =
        steps.map(|end| in_steps.advance(&bytes[..end], BYTES_MAX, FIELDS_MAX)).find(|s| *s != HeadState::Partial);
    assert_eq!(last.unwrap_or(HeadState::Partial), scanned, "however slowly it comes");
    let HeadState::Complete(length) = scanned else { return };

    let peer = SocketAddr::from(([192, 0, 2, 1], 9));
    let head = match RequestHead::parse(&bytes[..length], FIELDS_MAX, peer, &[]) {
        Ok(head) => head,
        Err(refusal) => {
            assert!([400, 417, 431, 505].contains(&refusal.status), "{refusal:?}");
            return;
        }
    };
    // Bytes after a head belong to the body, so no parser may see another end of the head.
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let status = httparse::Request::new(&mut fields).parse(bytes);
    assert_eq!(status, Ok(httparse::Status::Complete(length)));

    let named = |name: &str| fields_of(&bytes[..length], name);
    let (lengths, encodings) = (named("content-length"), named("transfer-encoding"));
    match head.framing() {
        Framing::None => assert!(encodings.is_empty() && lengths.iter().all(|text| text.iter().all(|b| *b == b'0'))),
        Framing::Length(bytes) => {
            assert!(encodings.is_empty() && lengths.len() == 1 && bytes > 0);
            assert_eq!(String::from_utf8_lossy(&lengths[0]).trim_start_matches('0'), bytes.to_string());
        }
        Framing::Chunked => {
            assert!(lengths.is_empty() && encodings.len() == 1);
            assert!(encodings[0].eq_ignore_ascii_case(b"chunked"));
        }
    }
    assert!(named("host").len() <= 1);
    assert!(!head.segments().is_empty() && head.segments().iter().all(|segment| !segment.contains('\0')));
    assert_eq!(head.headers().all(super::PEER_HEADER).collect::<Vec<_>>(), [peer.to_string().as_bytes()]);
    assert!(!head.is_local());
}

/// The values of all fields of a name, read line by line.
fn fields_of(head: &[u8], name: &str) -> Vec<Vec<u8>> {
    let lines = head.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii().to_vec())
    });
    lines.collect()
}
