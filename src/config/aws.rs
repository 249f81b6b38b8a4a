//! The variables of AWS's SDKs that say where credentials come from (`OBJ_CREDENTIALS=chain`).

use std::path::PathBuf;

use super::env::{Var, VariableReader, secret};
use super::secret::Secret;
use super::values::{absolute_path, http_url, word};

/// Where AWS credentials come from. All variables are optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AwsVariables {
    /// `AWS_ACCESS_KEY_ID`.
    pub access_key_id: Option<Secret>,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: Option<Secret>,
    /// `AWS_SESSION_TOKEN`.
    pub session_token: Option<Secret>,
    pub web_identity: Option<WebIdentity>,
    /// `AWS_PROFILE`.
    pub profile: Option<String>,
    /// `AWS_SHARED_CREDENTIALS_FILE`; default `~/.aws/credentials`.
    pub credentials_file: Option<PathBuf>,
    /// `AWS_CONFIG_FILE`; default `~/.aws/config`.
    pub config_file: Option<PathBuf>,
    pub container: Option<ContainerEndpoint>,
    /// `AWS_EC2_METADATA_SERVICE_ENDPOINT`, without a `/` at the end.
    pub metadata_endpoint: Option<String>,
    /// `AWS_EC2_METADATA_DISABLED`.
    pub is_metadata_disabled: bool,
}

/// A role of a Kubernetes service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebIdentity {
    /// `AWS_ROLE_ARN`.
    pub role_arn: String,
    /// `AWS_WEB_IDENTITY_TOKEN_FILE`.
    pub token_file: PathBuf,
    /// `AWS_ROLE_SESSION_NAME`; default `lakemill`.
    pub session_name: String,
    /// `AWS_ENDPOINT_URL_STS`; default that of `AWS_REGION`.
    pub sts_endpoint: String,
}

/// The endpoint that a container's platform offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerEndpoint {
    /// `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI`, a path.
    Relative(String),
    /// `AWS_CONTAINER_CREDENTIALS_FULL_URI`.
    Full { url: String, token: Option<ContainerToken> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerToken {
    /// `AWS_CONTAINER_AUTHORIZATION_TOKEN`.
    Text(Secret),
    /// `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE`.
    File(PathBuf),
}

impl AwsVariables {
    /// `region`: of the object store, where `AWS_REGION` isn't set.
    pub(super) fn read(reader: &VariableReader<'_>, region: &str) -> Self {
        let path = |var: Var| reader.optional(var, absolute_path);
        let home =
            reader.optional(Var("HOME", "home folder"), any).map(PathBuf::from).filter(|home| home.is_absolute());
        let in_home = |name: &str| home.as_deref().map(|home| home.join(".aws").join(name));
        let key = |var: Var| reader.optional_secret(var, secret);
        Self {
            access_key_id: key(Var("AWS_ACCESS_KEY_ID", "AWS access key")),
            secret_access_key: key(Var("AWS_SECRET_ACCESS_KEY", "AWS secret key")),
            session_token: key(Var("AWS_SESSION_TOKEN", "AWS session token")),
            web_identity: WebIdentity::read(reader, region),
            profile: reader.optional(Var("AWS_PROFILE", "profile of the shared credentials file"), any),
            credentials_file: path(Var("AWS_SHARED_CREDENTIALS_FILE", "shared credentials file"))
                .or_else(|| in_home("credentials")),
            config_file: path(Var("AWS_CONFIG_FILE", "shared config file")).or_else(|| in_home("config")),
            container: ContainerEndpoint::read(reader),
            metadata_endpoint: reader
                .optional(Var("AWS_EC2_METADATA_SERVICE_ENDPOINT", "address of the EC2 metadata service"), |text| {
                    http_url(text.trim_end_matches('/'))
                }),
            is_metadata_disabled: reader
                .optional(Var("AWS_EC2_METADATA_DISABLED", "whether the EC2 metadata service is disabled"), any)
                .is_some_and(|text| text.eq_ignore_ascii_case("true")),
        }
    }
}

impl WebIdentity {
    fn read(reader: &VariableReader<'_>, region: &str) -> Option<Self> {
        let token_file =
            reader.optional(Var("AWS_WEB_IDENTITY_TOKEN_FILE", "token of a service account"), absolute_path)?;
        let named = |var: Var| reader.optional(var, word);
        let region = named(Var("AWS_REGION", "AWS region"))
            .or_else(|| named(Var("AWS_DEFAULT_REGION", "AWS region")))
            .unwrap_or_else(|| region.to_owned());
        // China's regions have a domain of their own.
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        let default = format!("https://sts.{region}.amazonaws.com{suffix}");
        Some(Self {
            role_arn: reader.required(Var("AWS_ROLE_ARN", "role that the web identity token is exchanged for"), any),
            token_file,
            session_name: reader.or(
                Var("AWS_ROLE_SESSION_NAME", "name of the role's sessions"),
                "lakemill".into(),
                any,
            ),
            sts_endpoint: reader.or(Var("AWS_ENDPOINT_URL_STS", "address of STS"), default, http_url),
        })
    }
}

impl ContainerEndpoint {
    fn read(reader: &VariableReader<'_>) -> Option<Self> {
        let relative = Var("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "path of the container's credentials");
        if let Some(path) = reader.optional(relative, path_of_url) {
            return Some(Self::Relative(path));
        }
        let url =
            reader.optional(Var("AWS_CONTAINER_CREDENTIALS_FULL_URI", "URL of the container's credentials"), any)?;
        let file = Var("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "token for the container's credentials");
        let text = Var("AWS_CONTAINER_AUTHORIZATION_TOKEN", "token for the container's credentials");
        let token = match reader.optional(file, absolute_path) {
            Some(path) => Some(ContainerToken::File(path)),
            None => reader.optional(text, secret).map(ContainerToken::Text),
        };
        Some(Self::Full { url, token })
    }
}

fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn path_of_url(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && !text.starts_with("//");
    if is_path { Ok(text.to_owned()) } else { Err("a path that begins with one `/`".into()) }
}
