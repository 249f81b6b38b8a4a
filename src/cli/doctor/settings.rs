//! The environments of the two services.

use super::check::CheckResult;
use super::context::DoctorContext;
use crate::config::{EnvironmentError, Fault, WebConfig, WithWarnings};

/// The variable that only a worker's environment (or a web service's) sets.
const WORKER_ONLY: &str = "SVC_WEBHOOK_SECRET";
const WEB_ONLY: &str = "SVC_ADMIN_PASSWORD_HASH";
const LIST: &str = "docs/configuration.md lists every variable";

pub(super) fn worker(context: &DoctorContext) -> Vec<CheckResult> {
    let web_alone = lacks(&context.worker, WORKER_ONLY) && !lacks(&context.web, WEB_ONLY);
    if web_alone {
        return vec![CheckResult::skipped(format!(
            "{WORKER_ONLY} is not set: this is not an environment of `lakemill worker`"
        ))];
    }
    check_config("worker", &context.worker, &[])
}

pub(super) fn web(context: &DoctorContext) -> Vec<CheckResult> {
    if lacks(&context.web, WEB_ONLY) && context.is_folder {
        let message = format!("the folder has no generated password, and {WEB_ONLY} is not set");
        return vec![CheckResult::skipped(format!("{message}: run `doctor` with the environment of `up`"))];
    }
    if lacks(&context.web, WEB_ONLY) {
        return vec![CheckResult::skipped(format!(
            "{WEB_ONLY} is not set: this is not an environment of `lakemill web`"
        ))];
    }
    let reported = context.worker.as_ref().err().map_or(&[][..], |error| &error.faults);
    let mut findings = check_config("web", &context.web, reported);
    findings.extend(context.web.as_ref().ok().and_then(|loaded| hosts(&loaded.config)));
    findings
}

/// A proxy forwards the `Host` of browsers.
fn hosts(config: &WebConfig) -> Option<CheckResult> {
    let has_no_name = config.public_url.is_none() && config.server.allowed_hosts.is_empty();
    (has_no_name && !config.server.trusted_proxies.is_empty()).then(|| {
        CheckResult::warning(
            "SVC_TRUSTED_PROXIES is set, but no host name of the service: requests that use a host name are answered \
             421",
            "set SVC_PUBLIC_URL to the URL that browsers use",
        )
    })
}

/// `reported`: faults already reported for the other service.
fn check_config<T>(
    service: &str,
    config: &Result<WithWarnings<T>, EnvironmentError>,
    reported: &[Fault],
) -> Vec<CheckResult> {
    match config {
        Ok(WithWarnings { warnings, .. }) if warnings.is_empty() => vec![CheckResult::ok("complete")],
        Ok(WithWarnings { warnings, .. }) => {
            let advice = "set the adjusted value, so that the environment shows the effective one";
            warnings.iter().map(|warning| CheckResult::warning(warning.clone(), advice)).collect()
        }
        Err(error) => {
            let own: Vec<&Fault> = error.faults.iter().filter(|fault| !reported.contains(fault)).collect();
            match own.is_empty() {
                true => {
                    vec![CheckResult::problem(format!("`lakemill {service}` can't start"), "fix the problems above")]
                }
                false => own.into_iter().map(fault_result).collect(),
            }
        }
    }
}

fn fault_result(fault: &Fault) -> CheckResult {
    let name = fault.name();
    let advice = match fault {
        Fault::Missing { .. } => format!("set {name}; {LIST}"),
        Fault::Malformed { .. } | Fault::MalformedSecret { .. } => format!("correct {name}"),
        Fault::Unreadable { .. } => "make the file readable for this user, or set another file".to_owned(),
        Fault::Ambiguous { .. } => "unset one of them".to_owned(),
    };
    CheckResult::problem(fault.to_string(), advice)
}

fn lacks<T>(config: &Result<WithWarnings<T>, EnvironmentError>, name: &str) -> bool {
    let missing = |fault: &Fault| fault.name() == name && matches!(fault, Fault::Missing { .. });
    config.as_ref().is_err_and(|error| error.faults.iter().any(missing))
}
