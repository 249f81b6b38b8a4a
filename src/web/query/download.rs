//! The whole result of a query as a file, as it comes.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::DownloadRequest;
use super::params::{asked, query};
use super::running::Ticket;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::sql::sandbox::{Download, Format};
use crate::sync::Permit;
use crate::web::Web;
use crate::web::access::{clipped, optional_query, slug_param};
use crate::web::attachment::attachment;
use crate::web::failure::acquire;
use crate::web::sql::failure::from_sandbox;
use crate::web::sql::{Opened, TIMEOUTS_MAX, Wanted, may_list_tables, query_id, statement, tables_or_error};

/// Longest time that a download takes, from the start of the query to the last byte.
pub(in crate::web) const DOWNLOAD_MAX: Duration = Duration::from_secs(900);

pub(super) fn download(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let (format, extension, content_type) = format(request)?;
    let asked: DownloadRequest = asked(request)?;
    let asked_statement = query(asked.sql, asked.params)?;
    let ticket = match &asked.query_id {
        Some(id) => Some(web.running.announce(&pipeline, &query_id(id)?)?),
        None => None,
    };
    let stop = ticket.as_ref().map(|ticket| ticket.stop.clone()).unwrap_or_default();
    let catalog = web.catalog(&pipeline)?;
    let slow = acquire(&web.downloads)?;
    let permit = Arc::new(acquire(&web.gate)?);
    let mut lent = web.child(&permit, &stop)?;
    let sql = asked_statement.sql.as_str();
    let analyses = lent.analyse(&[sql], &catalog.names())?;
    let verdict = analyses.first().ok_or_else(|| ApiError::internal("one statement gave no analysis"))?;
    let tables = tables_or_error(verdict, &catalog.names())?;
    let until = Instant::now() + web.sql.timeout * TIMEOUTS_MAX;
    let all = may_list_tables(sql);
    let wanted = Wanted { pipeline: &pipeline, catalog: &catalog, named: &tables, all, span: None };
    let (lent, opened) = web.open(lent, &wanted, until, &stop)?;
    let (child, permit) = lent.into_parts();
    let deadline = Instant::now() + DOWNLOAD_MAX.max(web.sql.timeout);
    let begun = child.download(&statement(&asked_statement), format, deadline).map_err(from_sandbox)?;
    let body = Body { download: begun, _opened: opened, _ticket: ticket, _permits: (permit, slow) };
    let name = attachment(&format!("{pipeline}-query.{extension}"));
    Ok(Response::reader(200, content_type, body, None).with_header("Content-Disposition", name))
}

fn format(request: &Request) -> Result<(Format, &'static str, &'static str), ApiError> {
    match optional_query(request, "format")? {
        None | Some("csv") => Ok((Format::Csv, "csv", "text/csv; charset=utf-8")),
        Some("parquet") => Ok((Format::Parquet, "parquet", "application/vnd.apache.parquet")),
        Some("json") => Ok((Format::Json, "json", "application/json")),
        Some(other) => {
            let message = format!("the format is `{}`, expected `csv`, `parquet` or `json`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// What a download holds until its last byte is sent, or its client is gone.
struct Body {
    download: Download,
    _opened: Opened,
    _ticket: Option<Ticket>,
    _permits: (Arc<Permit>, Permit),
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.download.read(into)
    }
}
