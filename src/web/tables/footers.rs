//! Reads the footers of many Parquet files: fetches their bytes, which a child process parses.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::http::ApiError;
use crate::ports::store::{Bucket, StoreError};
use crate::sql::sandbox::{RelationColumn, Sandbox, StagingFolder};
use crate::sync::parallel_map;
use crate::web::failure::from_store;
use crate::web::parquet::footer::{FooterError, FooterSummary, FootersRequest, OPERATION, bytes};
use crate::web::parquet::{ParquetReadError, Reader, UnreadableFiles};
use crate::web::snapshot::selection::TableFile;
use crate::web::sql::failure::from_sandbox;
use crate::web::stores::Objects;

/// Concurrent fetches.
const PARALLEL_FOOTERS_MAX: usize = 16;
/// Timeout for fetching footers, and for finding those that crash a child.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum size of all footers in bytes.
const BYTES_MAX: u64 = 256 << 20;
/// Maximum number of child crashes after the first; then the remaining files are skipped.
const CRASHES_MAX: usize = 3;
/// Name of the file that gathers the footers.
const FILE: &str = "footers";

/// A fetched footer.
struct Fetched<'a> {
    file: &'a TableFile,
    offset: u64,
    length: u64,
}

/// Reads footers.
pub struct Footers {
    store: Objects,
    sandbox: Arc<Sandbox>,
    unreadable: Arc<UnreadableFiles>,
}

impl Footers {
    pub fn new(store: Objects, sandbox: Arc<Sandbox>, unreadable: Arc<UnreadableFiles>) -> Self {
        Self { store, sandbox, unreadable }
    }

    /// Summarises the footers of `files` over `columns`. Missing and unreadable files are skipped.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`, `overloaded`, `internal`.
    pub fn read(
        &self,
        pipeline: &Slug,
        files: &[&TableFile],
        columns: Vec<RelationColumn>,
    ) -> Result<FooterSummary, ApiError> {
        let staging = self.sandbox.staging().map_err(from_sandbox)?;
        let fetched = self.fetch(pipeline, files, &staging)?;
        let path = staging.path().join(FILE);
        let mut reader = Reader::new(&self.sandbox, &path);
        let mut ask = |fetched: &[&Fetched<'_>]| -> Result<Result<FooterSummary, String>, ApiError> {
            let footers = fetched.iter().map(|footer| (footer.offset, footer.length)).collect();
            let request = FootersRequest { footers, columns: columns.clone() };
            if request.footers.is_empty() {
                return Ok(Ok(FooterSummary::empty(&columns)));
            }
            match reader.call::<FooterSummary>(OPERATION, &request) {
                Ok(summary) if summary.is_valid_for(&request) => Ok(Ok(summary)),
                Ok(_) => Ok(Err("malformed answer from its reader".to_owned())),
                Err(ParquetReadError::Unreadable(reason)) => Ok(Err(reason)),
                Err(ParquetReadError::Failed(error)) => Err(error),
            }
        };
        let remember = |footer: &Fetched<'_>, reason: &str| {
            self.unreadable.add(&key_of(pipeline, footer.file), &footer.file.sha256, reason);
        };
        let all: Vec<&Fetched<'_>> = fetched.iter().collect();
        let (asked, summary) = match ask(&all)? {
            Ok(summary) => (all, summary),
            Err(_) => {
                // A footer crashed the child: try each alone.
                let until = Instant::now() + TIME_MAX;
                let (mut readable, mut crashes) = (Vec::new(), 0);
                for footer in &fetched {
                    if crashes > CRASHES_MAX || Instant::now() >= until {
                        break;
                    }
                    match ask(&[footer])? {
                        Ok(_) => readable.push(footer),
                        Err(reason) => {
                            remember(footer, &reason);
                            crashes += 1;
                        }
                    }
                }
                let summary = ask(&readable)?;
                (readable, summary.unwrap_or_else(|_| FooterSummary::empty(&columns)))
            }
        };
        for (at, reason) in &summary.unreadable {
            if let Some(footer) = asked.get(*at) {
                remember(footer, reason);
            }
        }
        Ok(summary)
    }

    /// Fetches footers into one file until the timeout, in the order of their files.
    fn fetch<'a>(
        &self,
        pipeline: &Slug,
        files: &[&'a TableFile],
        staging: &StagingFolder,
    ) -> Result<Vec<Fetched<'a>>, ApiError> {
        let until = Instant::now() + TIME_MAX;
        let into = File::create_new(staging.path().join(FILE)).map_err(ApiError::internal)?;
        let end = Mutex::new(0_u64);
        let fetched = parallel_map(files, PARALLEL_FOOTERS_MAX, |file| -> Result<Option<Fetched<'a>>, ApiError> {
            let file: &'a TableFile = file;
            let key = key_of(pipeline, file);
            if Instant::now() >= until || self.unreadable.reason(&key, &file.sha256).is_some() {
                return Ok(None);
            }
            let range = |range| match self.store.get_range(Bucket::Warehouse, &key, range, None) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(StoreError::NotFound { .. } | StoreError::PreconditionFailed { .. }) => Ok(None),
                Err(error) => Err(from_store(error)),
            };
            let bytes = match bytes(file.size, range)? {
                Ok(bytes) => bytes,
                Err(FooterError::Changed) => return Ok(None),
                Err(FooterError::Malformed(reason)) => {
                    self.unreadable.add(&key, &file.sha256, &reason);
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
}

fn key_of(pipeline: &Slug, file: &TableFile) -> String {
    format!("{}{}", pipeline_prefix(pipeline), file.key)
}
