//! The present keys of a process, and when they are fetched.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::{Mutex, MutexGuard};

use super::http::HttpClient;
use super::keys::{CredentialsError, SigningKeys};
use super::{container, instance, profile, web_identity};
use crate::adapters::network::client;
use crate::config::{AwsVariables, NetworkConfig, StoreCredentials};
use crate::system::http_client::{self, CaFileError};

/// Pause between fetches while the present keys are valid: they may be given out shortly before their end, or can't be
/// renewed.
const RENEWAL_PAUSE: TimeDelta = TimeDelta::seconds(30);
/// If the store rejects keys this soon after they were fetched, no new ones are fetched: they would be rejected, too.
const REJECTED_AFTER: TimeDelta = TimeDelta::seconds(10);

/// The credentials that sign a process's requests.
pub enum Credentials {
    Fixed(Arc<SigningKeys>),
    Chain(Box<CredentialChain>),
}

impl Credentials {
    /// # Errors
    /// The file of certificate authorities can't be used.
    pub fn new(credentials: StoreCredentials, network: &NetworkConfig) -> Result<Self, CaFileError> {
        Ok(match credentials {
            StoreCredentials::Key { id, secret } => {
                Self::Fixed(Arc::new(SigningKeys { id, secret, session_token: None, end: None }))
            }
            StoreCredentials::Chain(variables) => {
                let near = http_client::config(http_client::tls("https://", network.ca_file.as_deref())?);
                let sts = variables.web_identity.as_ref().map_or("https://", |identity| &identity.sts_endpoint);
                let sts = HttpClient::new(client(sts, network)?);
                Self::Chain(Box::new(CredentialChain::new(*variables, HttpClient::new(near), sts)))
            }
        })
    }

    /// Valid keys. `now`: the store's time.
    ///
    /// # Errors
    /// If there are none, or if they have expired and can't be renewed.
    pub fn keys(&self, now: DateTime<Utc>) -> Result<Arc<SigningKeys>, CredentialsError> {
        match self {
            Self::Fixed(keys) => Ok(Arc::clone(keys)),
            Self::Chain(chain) => chain.keys(now),
        }
    }

    /// Reports that the store rejected these keys as ended or unknown. Whether the next ones may be others.
    pub fn reject(&self, rejected: &SigningKeys, now: DateTime<Utc>) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Chain(chain) => chain.reject(rejected, now),
        }
    }
}

/// The keys of the first place that is set up.
pub struct CredentialChain {
    variables: AwsVariables,
    /// For containers' endpoints and instance metadata.
    http: HttpClient,
    sts: HttpClient,
    present: Mutex<Present>,
    /// Held while keys are fetched.
    renewal: Mutex<()>,
}

#[derive(Default)]
struct Present {
    keys: Option<Arc<SigningKeys>>,
    /// When keys were last asked for.
    asked_at: Option<DateTime<Utc>>,
}

impl CredentialChain {
    fn new(variables: AwsVariables, http: HttpClient, sts: HttpClient) -> Self {
        Self { variables, http, sts, present: Mutex::default(), renewal: Mutex::default() }
    }

    /// Valid keys. `now`: the store's time.
    ///
    /// # Errors
    /// If there are none, or if they have expired and can't be renewed.
    fn keys(&self, now: DateTime<Utc>) -> Result<Arc<SigningKeys>, CredentialsError> {
        if let Some(keys) = self.fresh(now) {
            return Ok(keys);
        }
        let usable = || self.present.lock().keys.clone().filter(|keys| !keys.has_ended(now));
        // Until the keys are stored, so that no other thread fetches them, too.
        let _held: MutexGuard<'_, ()> = match (self.renewal.try_lock(), usable()) {
            (Some(held), _) => held,
            // Another thread renews them.
            (None, Some(keys)) => return Ok(keys),
            (None, None) => self.renewal.lock(),
        };
        if let Some(keys) = self.fresh(now) {
            return Ok(keys);
        }
        let fetched = self.fetch();
        let mut present = self.present.lock();
        match fetched {
            Ok(keys) => {
                let keys = Arc::new(keys);
                *present = Present { keys: Some(Arc::clone(&keys)), asked_at: Some(now) };
                Ok(keys)
            }
            Err(error) => match present.keys.clone().filter(|keys| !keys.has_ended(now)) {
                Some(keys) => {
                    tracing::warn!(%error, "AWS credentials couldn't be renewed; the present ones are still valid");
                    present.asked_at = Some(now);
                    Ok(keys)
                }
                None => Err(error),
            },
        }
    }

    /// The present keys, unless it is time to renew them.
    fn fresh(&self, now: DateTime<Utc>) -> Option<Arc<SigningKeys>> {
        let present = self.present.lock();
        let keys = present.keys.as_ref()?;
        let is_paused = present.asked_at.is_some_and(|at| now - at < RENEWAL_PAUSE);
        (!keys.expires_soon(now) || is_paused && !keys.has_ended(now)).then(|| Arc::clone(keys))
    }

    /// Has the next request fetch keys, unless these were fetched just now. Those that were renewed meanwhile stay.
    fn reject(&self, rejected: &SigningKeys, now: DateTime<Utc>) -> bool {
        let mut present = self.present.lock();
        if present.keys.as_deref() != Some(rejected) {
            return true;
        }
        let is_new = present.asked_at.is_some_and(|at| now - at < REJECTED_AFTER) && !rejected.expires_soon(now);
        if !is_new {
            *present = Present::default();
        }
        !is_new
    }

    fn fetch(&self) -> Result<SigningKeys, CredentialsError> {
        let Self { variables, http, sts, .. } = self;
        if let Some(keys) = from_variables(variables)? {
            return Ok(keys);
        }
        if let Some(identity) = &variables.web_identity {
            return web_identity::fetch(identity, sts);
        }
        if let Some(keys) = profile::read(variables)? {
            return Ok(keys);
        }
        match &variables.container {
            Some(endpoint) => container::fetch(endpoint, http),
            None => instance::fetch(variables, http),
        }
    }
}

fn from_variables(variables: &AwsVariables) -> Result<Option<SigningKeys>, CredentialsError> {
    match (&variables.access_key_id, &variables.secret_access_key) {
        (Some(id), Some(secret)) => {
            let session_token = variables.session_token.clone();
            Ok(Some(SigningKeys { id: id.clone(), secret: secret.clone(), session_token, end: None }))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(CredentialsError::new("the environment", "AWS_SECRET_ACCESS_KEY is not set")),
        (None, Some(_)) => Err(CredentialsError::new("the environment", "AWS_ACCESS_KEY_ID is not set")),
    }
}
