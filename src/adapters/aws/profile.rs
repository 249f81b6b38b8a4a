//! A profile with keys in the shared files of AWS's tools.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use super::keys::{CredentialsError, SigningKeys};
use crate::config::{AwsVariables, Secret};

const DEFAULT: &str = "default";
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Settings by which a profile has others make its keys.
const INDIRECT: &[&str] = &["role_arn", "credential_process", "sso_session", "sso_start_url", "source_profile"];

/// `None` if no profile is asked for and the files have no default one with keys.
///
/// # Errors
/// If the profile that is asked for is missing or has no keys.
pub(super) fn read(variables: &AwsVariables) -> Result<Option<SigningKeys>, CredentialsError> {
    let name = variables.profile.as_deref().unwrap_or(DEFAULT);
    let failed = |reason: String| CredentialsError::new(format!("profile `{name}`"), reason);
    let mut settings = HashMap::new();
    let headings = [format!("profile {name}"), name.to_owned()];
    let config =
        variables.config_file.iter().map(|path| (path, if name == DEFAULT { &headings[1] } else { &headings[0] }));
    // Keys of the credentials file win over those of the other one.
    for (path, heading) in config.chain(variables.credentials_file.iter().map(|path| (path, &headings[1]))) {
        let text = bounded(path).map_err(|error| failed(format!("`{}`: {error}", path.display())))?;
        settings.extend(text.as_deref().map(|text| section(text, heading)).unwrap_or_default());
    }
    let of = |setting: &str| settings.get(setting).filter(|value| !value.is_empty()).map(Secret::new);
    match (of("aws_access_key_id"), of("aws_secret_access_key")) {
        (Some(id), Some(secret)) => {
            Ok(Some(SigningKeys { id, secret, session_token: of("aws_session_token"), end: None }))
        }
        (None, None) if variables.profile.is_none() => Ok(None),
        _ => {
            let indirect = INDIRECT.iter().find(|setting| settings.contains_key(**setting));
            Err(failed(match indirect {
                Some(setting) => format!(
                    "it has `{setting}`, which isn't supported; expected `aws_access_key_id` and \
                                          `aws_secret_access_key`"
                ),
                None => {
                    "expected `aws_access_key_id` and `aws_secret_access_key` in the shared credentials file".into()
                }
            }))
        }
    }
}

/// `None` if there is no such file.
fn bounded(path: &Path) -> std::io::Result<Option<String>> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// The settings under a heading. Nested settings, which are indented, are left out.
fn section(text: &str, heading: &str) -> HashMap<String, String> {
    let mut settings = HashMap::new();
    let mut is_in = false;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(found) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            is_in = found.split_whitespace().eq(heading.split_whitespace());
        } else if is_in
            && !is_nested
            && !line.starts_with(['#', ';'])
            && let Some((name, value)) = line.split_once('=')
        {
            let value = value.split(" #").next().unwrap_or_default().trim();
            settings.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(credentials: &str, config: &str, profile: Option<&str>) -> Result<Option<(String, String)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            Some(folder.path().join(name))
        };
        let variables = AwsVariables {
            profile: profile.map(str::to_owned),
            credentials_file: file("credentials", credentials),
            config_file: file("config", config),
            ..AwsVariables::default()
        };
        let keys = read(&variables).map_err(|error| error.to_string())?;
        Ok(keys.map(|keys| {
            (keys.id.reveal().to_owned(), keys.session_token.map_or(String::new(), |t| t.reveal().to_owned()))
        }))
    }

    #[test]
    fn profiles_are_read_as_by_other_tools() {
        let credentials = "# made by hand\n[default]\naws_access_key_id = ONE\naws_secret_access_key=s\n\n[ other ]\n\
                           aws_access_key_id=TWO # old\naws_secret_access_key = s=\naws_session_token = t\n";
        let keys = |profile| found(credentials, "", profile).unwrap().unwrap();
        assert_eq!(keys(None), ("ONE".into(), String::new()));
        assert_eq!(keys(Some("other")), ("TWO".into(), "t".into()));
        let config = "[profile dev]\nregion = x\ns3 =\n  aws_access_key_id = nested\naws_access_key_id = THREE\n\
                      aws_secret_access_key = s\n[profile sso]\nsso_session = me\n";
        assert_eq!(found("", config, Some("dev")).unwrap().unwrap().0, "THREE");
        assert_eq!(found("", config, None), Ok(None));
        assert!(found("", config, Some("sso")).unwrap_err().contains("it has `sso_session`, which isn't supported"));
        let missing = found(credentials, "", Some("none")).unwrap_err();
        assert!(missing.starts_with("no AWS credentials: profile `none`: expected `aws_access_key_id`"), "{missing}");
    }

    #[test]
    fn missing_files_give_no_profile() {
        assert_eq!(
            read(&AwsVariables { credentials_file: Some("/nowhere/x".into()), ..AwsVariables::default() }).unwrap(),
            None
        );
    }
}
