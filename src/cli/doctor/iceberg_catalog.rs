//! Checks whether the Iceberg catalog can be used.

use super::check::CheckResult;
use super::context::DoctorContext;
use super::objects::store_missing;
use super::worker;
use crate::cli::services::open_catalog;

pub(super) fn access(context: &DoctorContext) -> Vec<CheckResult> {
    vec![checked(context).unwrap_or_else(|result| result)]
}

fn checked(context: &DoctorContext) -> Result<CheckResult, CheckResult> {
    let config = worker::config(context)?;
    let opened = open_catalog(config.catalog.as_ref(), &config.objects, context.backend().map_err(store_missing)?);
    let opened = opened.map_err(|error| CheckResult::problem(error, "correct SVC_ICEBERG_CATALOG_URL"))?;
    let catalog = opened.ok_or_else(|| CheckResult::skipped("SVC_ICEBERG_CATALOG_URL is not set"))?;
    catalog.probe().map_err(|error| {
        CheckResult::problem(
            error.to_string(),
            "check SVC_ICEBERG_CATALOG_URL, the network, and the credentials of SVC_ICEBERG_CATALOG_…",
        )
    })?;
    Ok(CheckResult::ok(format!("{} answers", catalog.name())))
}
