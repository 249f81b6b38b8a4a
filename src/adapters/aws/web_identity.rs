//! Exchanges the token of a Kubernetes service account for keys of a role, at AWS's STS.

use quick_xml::de::from_str;
use serde::Deserialize;
use url::form_urlencoded;

use super::http::{HttpClient, SmallRequest, moment};
use super::keys::{CredentialsError, SigningKeys};
use crate::config::{Secret, WebIdentity};
use crate::domain::text::clipped;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Assumed {
    assume_role_with_web_identity_result: AssumedRole,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumedRole {
    credentials: AssumedKeys,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumedKeys {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    error: Reason,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Reason {
    code: String,
    #[serde(default)]
    message: String,
}

/// # Errors
/// If the token's file can't be read, or STS refuses the role.
pub(super) fn fetch(identity: &WebIdentity, http: &HttpClient) -> Result<SigningKeys, CredentialsError> {
    let failed = |reason: String| CredentialsError::new(format!("role `{}`", identity.role_arn), reason);
    let path = &identity.token_file;
    let token = std::fs::read_to_string(path)
        .map_err(|error| failed(format!("AWS_WEB_IDENTITY_TOKEN_FILE, `{}`: {error}", path.display())))?;
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("Action", "AssumeRoleWithWebIdentity")
        .append_pair("Version", "2011-06-15")
        .append_pair("RoleArn", &identity.role_arn)
        .append_pair("RoleSessionName", &identity.session_name)
        .append_pair("WebIdentityToken", token.trim())
        .finish();
    let headers = vec![("content-type", "application/x-www-form-urlencoded")];
    let url = &identity.sts_endpoint;
    let response = http.send(&SmallRequest { method: "POST", url, headers, body });
    let response = response.map_err(|found| failed(format!("STS at {url}: {found}")))?;
    match response.status {
        200 => keys(&response.text).map_err(|found| failed(format!("STS at {url}: {found}"))),
        status => Err(failed(format!("STS refused it with status {status}: {}", refusal(&response.text)))),
    }
}

fn keys(xml: &str) -> Result<SigningKeys, String> {
    let assumed: Assumed = from_str(xml).map_err(|error| format!("the response has no keys: {error}"))?;
    let keys = assumed.assume_role_with_web_identity_result.credentials;
    Ok(SigningKeys {
        id: Secret::new(keys.access_key_id),
        secret: Secret::new(keys.secret_access_key),
        session_token: Some(Secret::new(keys.session_token)),
        end: Some(moment(&keys.expiration)?),
    })
}

fn refusal(xml: &str) -> String {
    match from_str::<Refused>(xml) {
        Ok(Refused { error: Reason { code, message } }) => format!("`{}` {}", clipped(&code), clipped(&message)),
        Err(_) => clipped(xml.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of STS's documentation.
    #[test]
    fn answer_is_read_as_documented() {
        let xml = r#"<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>amzn1.account.AF6RHO7KZU5XRVQJGXK6HB56KR2A</SubjectFromWebIdentityToken>
    <Audience>client.5498841531868486423.1548@apps.example.com</Audience>
    <AssumedRoleUser>
      <Arn>arn:aws:sts::123456789012:assumed-role/FederatedWebIdentityRole/app1</Arn>
      <AssumedRoleId>AROACLKWSDQRAOEXAMPLE:app1</AssumedRoleId>
    </AssumedRoleUser>
    <Credentials>
      <SessionToken>AQoDYXdzEE0a8ANXXXXXXXXNO1ewxE5TijQyp+IEXAMPLE</SessionToken>
      <SecretAccessKey>wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY</SecretAccessKey>
      <Expiration>2014-10-24T23:00:23Z</Expiration>
      <AccessKeyId>ASgeIAIOSFODNN7EXAMPLE</AccessKeyId>
    </Credentials>
    <Provider>www.amazon.com</Provider>
  </AssumeRoleWithWebIdentityResult>
  <ResponseMetadata><RequestId>ad4156e9-bce1-11e2-82e6-6b6efEXAMPLE</RequestId></ResponseMetadata>
</AssumeRoleWithWebIdentityResponse>"#;
        let keys = keys(xml).unwrap();
        assert_eq!(keys.id.reveal(), "ASgeIAIOSFODNN7EXAMPLE");
        assert_eq!(keys.session_token.unwrap().reveal(), "AQoDYXdzEE0a8ANXXXXXXXXNO1ewxE5TijQyp+IEXAMPLE");
        assert_eq!(keys.end.unwrap().to_rfc3339(), "2014-10-24T23:00:23+00:00");
        let refused = "<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredTokenException</Code><Message>Token expired\
                       </Message></Error><RequestId>x</RequestId></ErrorResponse>";
        assert_eq!(refusal(refused), "`ExpiredTokenException` Token expired");
        assert_eq!(refusal("<html>"), "<html>");
    }
}
