//! Checksums of bodies, which the store compares with what arrived (`OBJ_CHECKSUM`).

use std::io;

use crc64fast_nvme::Digest as Crc64;
use sha2::{Digest, Sha256};
use ureq::http::Method;

use crate::config::Checksum;
use crate::domain::digest::base64;

use super::request::{Header, Payload, S3Request, SectionReader};

/// The checksum's header, in requests with a body and in their responses.
pub(super) fn header_name(checksum: Checksum) -> &'static str {
    match checksum {
        Checksum::Crc64Nvme => "x-amz-checksum-crc64nvme",
        Checksum::Sha256 => "x-amz-checksum-sha256",
    }
}

/// The headers of a request whose body becomes an object or a part of one, or that starts such an upload.
pub(super) fn headers(checksum: Checksum, request: &S3Request<'_>) -> io::Result<Vec<Header>> {
    if request.key.is_empty() {
        return Ok(Vec::new());
    }
    if request.starts_upload() {
        return Ok(match checksum {
            // Of the whole object, so that completing the upload needs none of a part.
            Checksum::Crc64Nvme => {
                vec![("x-amz-checksum-algorithm", "CRC64NVME".into()), ("x-amz-checksum-type", "FULL_OBJECT".into())]
            }
            Checksum::Sha256 => vec![("x-amz-checksum-algorithm", "SHA256".into())],
        });
    }
    if request.method != Method::PUT || request.is_copy() {
        return Ok(Vec::new());
    }
    let digest = match checksum {
        Checksum::Crc64Nvme => {
            let mut state = Crc64::new();
            read(request.payload, |bytes| state.write(bytes))?;
            base64(&state.sum64().to_be_bytes())
        }
        Checksum::Sha256 => {
            let mut state = Sha256::new();
            read(request.payload, |bytes| state.update(bytes))?;
            base64(&state.finalize())
        }
    };
    Ok(vec![(header_name(checksum), digest)])
}

fn read(payload: Payload<'_>, mut add: impl FnMut(&[u8])) -> io::Result<()> {
    match payload {
        Payload::None => Ok(()),
        Payload::Bytes(bytes) => {
            add(bytes);
            Ok(())
        }
        Payload::Section { file, start, length } => {
            let mut reader = SectionReader { file, at: start, left: length };
            let mut writer = Added(add);
            io::copy(&mut reader, &mut writer).map(drop)
        }
    }
}

/// Passes what is written to a function.
struct Added<F>(F);

impl<F: FnMut(&[u8])> io::Write for Added<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::s3::request::COPY_SOURCE_HEADER;
    use crate::ports::store::Bucket;

    fn request(method: Method, payload: Payload<'static>) -> S3Request<'static> {
        S3Request::new(method, Bucket::Lake, "k", "").payload(payload)
    }

    #[test]
    fn bodies_of_objects_and_parts_have_checksums() {
        let of = |checksum, request: &S3Request<'_>| headers(checksum, request).unwrap();
        // The check values of the algorithms' definitions: the CRC catalogue's, and FIPS 180-4's "abc".
        let digits = request(Method::PUT, Payload::Bytes(b"123456789"));
        let crc = base64(&0xae8b_1486_0a79_9888_u64.to_be_bytes());
        assert_eq!(of(Checksum::Crc64Nvme, &digits), [("x-amz-checksum-crc64nvme", crc)]);
        let abc = request(Method::PUT, Payload::Bytes(b"abc")).query("partNumber", "1");
        let sha = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=".to_owned();
        assert_eq!(of(Checksum::Sha256, &abc), [("x-amz-checksum-sha256", sha)]);
    }

    #[test]
    fn section_of_a_file_has_the_checksum_of_its_bytes() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"--123456789--", 0).unwrap();
        let section = S3Request::new(Method::PUT, Bucket::Lake, "k", "").payload(Payload::Section {
            file: &file,
            start: 2,
            length: 9,
        });
        let whole = request(Method::PUT, Payload::Bytes(b"123456789"));
        for checksum in [Checksum::Crc64Nvme, Checksum::Sha256] {
            assert_eq!(headers(checksum, &section).unwrap(), headers(checksum, &whole).unwrap());
        }
        let truncated = S3Request::new(Method::PUT, Bucket::Lake, "k", "").payload(Payload::Section {
            file: &file,
            start: 2,
            length: 90,
        });
        assert!(headers(Checksum::Sha256, &truncated).is_err());
    }

    #[test]
    fn copies_reads_and_requests_to_buckets_have_none() {
        let copy = request(Method::PUT, Payload::Bytes(b"")).header(COPY_SOURCE_HEADER, "/b/k");
        let bucket = S3Request::new(Method::PUT, Bucket::Lake, "", "").payload(Payload::Bytes(b"x"));
        let complete = request(Method::POST, Payload::Bytes(b"x")).query("uploadId", "u");
        for one in [copy, bucket, complete, request(Method::GET, Payload::None)] {
            assert_eq!(headers(Checksum::Sha256, &one).unwrap(), []);
        }
        let start = request(Method::POST, Payload::Bytes(b"")).query("uploads", "");
        assert_eq!(headers(Checksum::Sha256, &start).unwrap(), [("x-amz-checksum-algorithm", "SHA256".to_owned())]);
    }
}
