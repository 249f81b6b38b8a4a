//! Checks whether the Iceberg catalog can be used.

use super::check::CheckResult;
use super::objects::without;
use super::surroundings::Surroundings;
use crate::cli::services::open_catalog;

pub(super) fn access(around: &Surroundings) -> Vec<CheckResult> {
    let Ok(loaded) = &around.worker else {
        return vec![CheckResult::skipped("the worker's environment is incomplete")];
    };
    let backend = match around.backend() {
        Ok(backend) => backend,
        Err(missing) => return vec![without(missing)],
    };
    let catalog = match open_catalog(loaded.config.catalog.as_ref(), &loaded.config.objects, backend) {
        Ok(Some(catalog)) => catalog,
        Ok(None) => return vec![CheckResult::skipped("SVC_ICEBERG_CATALOG_URL is not set")],
        Err(error) => return vec![CheckResult::problem(error, "correct SVC_ICEBERG_CATALOG_URL")],
    };
    vec![match catalog.probe() {
        Ok(()) => CheckResult::ok(format!("{} answers", catalog.name())),
        Err(error) => CheckResult::problem(
            error.to_string(),
            "check SVC_ICEBERG_CATALOG_URL, the network, and the credentials of SVC_ICEBERG_CATALOG_…",
        ),
    }]
}
