//! The keys of an EC2 instance's role, by version 2 of its metadata service.

use super::http::{HttpClient, SmallRequest, keys_of_json};
use super::keys::{CredentialsError, SigningKeys};
use crate::config::AwsVariables;
use crate::system::http_client::TextResponse;

const ENDPOINT: &str = "http://169.254.169.254";
const ROLES: &str = "latest/meta-data/iam/security-credentials/";
const SESSION_SECONDS: &str = "21600";

/// # Errors
/// If there is no metadata service, or the instance has no role.
pub(super) fn fetch(variables: &AwsVariables, http: &HttpClient) -> Result<SigningKeys, CredentialsError> {
    let failed = |reason: String| CredentialsError::new("the metadata of an EC2 instance", reason);
    if variables.is_metadata_disabled {
        let reason = "no other place is set up, and AWS_EC2_METADATA_DISABLED is set";
        return Err(failed(reason.to_owned()));
    }
    let endpoint = variables.metadata_endpoint.as_deref().unwrap_or(ENDPOINT).trim_end_matches('/');
    let session = session(endpoint, http).map_err(failed)?;
    let get = |path: &str| {
        let url = format!("{endpoint}/{path}");
        let headers = vec![("x-aws-ec2-metadata-token", session.as_str())];
        http.send(&SmallRequest { method: "GET", url: &url, headers, ..SmallRequest::default() })
    };
    let role = match get(ROLES).map_err(failed)? {
        TextResponse { status: 404, .. } => {
            return Err(failed("the instance has no role; attach an instance profile".into()));
        }
        response => response.success().map_err(failed)?,
    };
    let role = role.lines().next().unwrap_or_default().trim();
    if role.is_empty() {
        return Err(failed("the instance has no role; attach an instance profile".into()));
    }
    let response = get(&format!("{ROLES}{role}")).and_then(TextResponse::success).map_err(failed)?;
    keys_of_json(&response).map_err(|reason| failed(format!("role `{role}`: {reason}")))
}

/// Fetches a token for further requests. The hop limit of its response is lower than that of others.
fn session(endpoint: &str, http: &HttpClient) -> Result<String, String> {
    let url = format!("{endpoint}/latest/api/token");
    let headers = vec![("x-aws-ec2-metadata-token-ttl-seconds", SESSION_SECONDS)];
    let response = http.send(&SmallRequest { method: "PUT", url: &url, headers, ..SmallRequest::default() });
    match response.map(TextResponse::success) {
        Ok(Ok(token)) if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(token),
        Ok(Ok(_)) => Err("it returned no token".into()),
        Ok(Err(found)) => Err(format!("it returned no token: {found}")),
        Err(found) => Err(format!(
            "{found}. No other place is set up. In a container on EC2, set the instance's hop limit \
             (`HttpPutResponseHopLimit`) to 2"
        )),
    }
}
