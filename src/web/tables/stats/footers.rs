//! The footers of many files: fetched here, read by a child.

use parking_lot::Mutex;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::http::ApiError;
use crate::ports::store::{Bucket, StoreError};
use crate::sql::sandbox::{RelationColumn, StagingFolder};
use crate::sync::parallel_map;
use crate::web::Web;
use crate::web::failure::from_store;
use crate::web::parquet::footer::{OPERATION, Request, Told, Unread, bytes};
use crate::web::parquet::{ReadError, Reader};
use crate::web::snapshot::selection::Chosen;
use crate::web::sql::failure::from_sandbox;

/// Footers that are fetched at a time for one answer.
const FOOTERS_AT_ONCE: usize = 16;
/// Longest time in which footers are fetched, and in which those that kill a child are looked for.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Footers of one answer together, in bytes.
const BYTES_MAX: u64 = 256 << 20;
/// Children that may die for one answer, besides the first. Further files are left out of it.
const DEATHS_MAX: usize = 3;
/// The footers' name in the folder in which they are gathered.
const FILE: &str = "footers";

/// A footer that was fetched: its file, where it lies, its length.
struct Fetched<'a> {
    file: &'a Chosen,
    offset: u64,
    length: u64,
}

/// What the footers of `files` say of `columns`, or, if `columns_of_first`, of the columns that the first readable file
/// has. Files that have changed, or can't be read, are left out.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `overloaded`, `internal`.
pub(super) fn read(
    web: &Web,
    pipeline: &Slug,
    files: &[&Chosen],
    columns: Vec<RelationColumn>,
    columns_of_first: bool,
) -> Result<Told, ApiError> {
    let staging = web.sql.sandbox.staging().map_err(from_sandbox)?;
    let fetched = fetch(web, pipeline, files, &staging)?;
    let path = staging.path().join(FILE);
    let mut reader = Reader::new(&web.sql.sandbox, &path);
    let mut ask = |fetched: &[&Fetched<'_>]| -> Result<Result<Told, String>, ApiError> {
        let footers = fetched.iter().map(|footer| (footer.offset, footer.length)).collect();
        let request = Request { footers, columns: columns.clone(), columns_of_first };
        if request.footers.is_empty() {
            return Ok(Ok(Told::nothing(request.columns)));
        }
        match reader.ask::<Told>(OPERATION, &request) {
            Ok(told) if told.answers(&request) => Ok(Ok(told)),
            Ok(_) => Ok(Err("its reader gave no answer that can be one".to_owned())),
            Err(ReadError::Unreadable(reason)) => Ok(Err(reason)),
            Err(ReadError::Failed(error)) => Err(error),
        }
    };
    let remember = |footer: &Fetched<'_>, reason: &str| {
        web.unreadable.add(&key_of(pipeline, footer.file), &footer.file.etag, reason);
    };
    let all: Vec<&Fetched<'_>> = fetched.iter().collect();
    let told = match ask(&all)? {
        Ok(told) => (all, told),
        Err(_) => {
            // Some footer kills its reader: each alone, to find out which.
            let until = Instant::now() + TIME_MAX;
            let (mut sound, mut deaths) = (Vec::new(), 0);
            for footer in &fetched {
                if deaths > DEATHS_MAX || Instant::now() >= until {
                    break;
                }
                match ask(&[footer])? {
                    Ok(_) => sound.push(footer),
                    Err(reason) => {
                        remember(footer, &reason);
                        deaths += 1;
                    }
                }
            }
            let told = ask(&sound)?;
            (sound, told.unwrap_or_else(|_| Told::nothing(columns.clone())))
        }
    };
    let (asked, told) = told;
    for (at, reason) in &told.unreadable {
        if let Some(footer) = asked.get(*at) {
            remember(footer, reason);
        }
    }
    Ok(told)
}

fn key_of(pipeline: &Slug, file: &Chosen) -> String {
    format!("{}{}", pipeline_prefix(pipeline), file.key)
}

/// Fetches footers into one file, as many as come in time; in the order of their files.
fn fetch<'a>(
    web: &Web,
    pipeline: &Slug,
    files: &[&'a Chosen],
    staging: &StagingFolder,
) -> Result<Vec<Fetched<'a>>, ApiError> {
    let until = Instant::now() + TIME_MAX;
    let into = File::create_new(staging.path().join(FILE)).map_err(ApiError::internal)?;
    let end = Mutex::new(0_u64);
    let fetched = parallel_map(files, FOOTERS_AT_ONCE, |file| -> Result<Option<Fetched<'a>>, ApiError> {
        let file: &'a Chosen = file;
        let key = key_of(pipeline, file);
        if Instant::now() >= until || web.unreadable.reason(&key, &file.etag).is_some() {
            return Ok(None);
        }
        let range = |range| match web.store.get_range(Bucket::Warehouse, &key, range, Some(&file.etag)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::NotFound { .. } | StoreError::PreconditionFailed { .. }) => Ok(None),
            Err(error) => Err(from_store(error)),
        };
        let bytes = match bytes(file.size, range)? {
            Ok(bytes) => bytes,
            Err(Unread::Changed) => return Ok(None),
            Err(Unread::Malformed(reason)) => {
                web.unreadable.add(&key, &file.etag, &reason);
                return Ok(None);
            }
        };
        let length = bytes.len() as u64;
        let offset = {
            let mut end = end.lock();
            if *end + length > BYTES_MAX {
                return Ok(None);
            }
            *end += length;
            *end - length
        };
        into.write_all_at(&bytes, offset).map_err(ApiError::internal)?;
        Ok(Some(Fetched { file, offset, length }))
    })?;
    Ok(fetched.into_iter().flatten().collect())
}
