//! Sends a request: signs it, interprets the response, and retries where that is safe.
//!
//! Invariant: each attempt of a run's write is signed to expire before the run's lease; none is sent with less than a
//! second of it left.
//! Must not: read the environment, or follow redirects to addresses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use ureq::http::{Method, Request, Response};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, AsSendBody, Body as Received, Proxy, SendBody};

use crate::adapters::aws::{Credentials, SigningKeys};
use crate::adapters::network::{by_proxy, client};
use crate::config::{Addressing, SignaturePlace};
use crate::ports::store::Bucket;
use crate::runtime::Clock;

use super::checksum;
use super::expiry::{self, DATE_WINDOW, Validity};
use super::failure::RequestError;
use super::options::{S3OpenError, S3Options, Timeouts};
use super::redirect::{Redirects, RegionalEndpoint};
use super::request::{Header, Payload, S3Request, SectionReader};
use super::resolve::CachingResolver;
use super::response::StoreResponse;
use super::sign::{Unsigned, encode_path};
use super::store_clock::StoreClock;

/// Pauses before the quick retries of transient failures.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];
/// Idle connections kept for reuse (at least as many as a run has concurrent requests), and their maximum age.
const IDLE_CONNECTIONS_MAX: usize = 128;
const IDLE_AGE_MAX: Duration = Duration::from_secs(15);

/// How far the dates of a check are from the limit.
const DATE_TOLERANCE: TimeDelta = TimeDelta::seconds(10);

/// The connection of an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Connection {
    /// An idle one, if there is any.
    Pooled,
    /// A new one. Drops all idle ones: a proxy or firewall may have cut more of them than there are attempts.
    New,
}

/// The connection of an attempt, and the proxy that it goes by.
type Route<'a> = (Connection, Option<&'a Proxy>);

pub(super) struct Client {
    agent: Agent,
    pub(super) credentials: Arc<Credentials>,
    pub(super) options: S3Options,
    /// As configured.
    target: Arc<RegionalEndpoint>,
    pub(super) redirects: Redirects,
    store_clock: StoreClock,
    /// Whether the store is known to reject old dates.
    rejects_old_dates: AtomicBool,
}

impl Client {
    pub(super) fn new(options: S3Options) -> Result<Self, S3OpenError> {
        let scheme_ok = ["http://", "https://"].iter().any(|scheme| options.endpoint.starts_with(scheme));
        if !scheme_ok || url::Url::parse(&options.endpoint).map_or(true, |url| !url.has_host()) {
            return Err(S3OpenError::Endpoint { found: options.endpoint });
        }
        let timeouts = options.timeouts;
        let config = client(&options.endpoint, &options.network)?
            .max_idle_connections(IDLE_CONNECTIONS_MAX)
            .max_idle_connections_per_host(IDLE_CONNECTIONS_MAX)
            .max_idle_age(IDLE_AGE_MAX)
            .timeout_resolve(Some(timeouts.resolve))
            .timeout_connect(Some(timeouts.connect))
            .timeout_send_request(Some(timeouts.send))
            .timeout_per_write(Some(timeouts.send_idle))
            .build();
        let credentials = Arc::new(Credentials::new(options.credentials.clone(), &options.network)?);
        let agent = Agent::with_parts(config, DefaultConnector::default(), CachingResolver::default());
        let (store_clock, rejects_old_dates) = (StoreClock::default(), AtomicBool::new(false));
        let target = Arc::new(RegionalEndpoint { endpoint: options.endpoint.clone(), region: options.region.clone() });
        let redirects = Redirects::default();
        Ok(Self { agent, credentials, options, target, redirects, store_clock, rejects_old_dates })
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.options.clock
    }

    /// Sends the request and applies `finish` to the response. Retries both after transient failures, so every request
    /// must be safe to repeat; [`RequestError::Rejected::repeated`] reports that it was.
    pub(super) fn send<T>(
        &self,
        request: &S3Request<'_>,
        finish: impl Fn(StoreResponse) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        if self.is_backdated(request) {
            self.check_old_dates(request.bucket)?;
        }
        let (mut repeated, mut connection) = (false, Connection::Pooled);
        for pause in RETRY_PAUSES {
            match self.send_once(request, connection).and_then(&finish) {
                Err(failure) if failure.is_retryable() => {
                    tracing::debug!(bucket = %request.bucket, operation = request.operation, %failure, "request failed; retrying");
                    repeated |= failure.may_have_taken_effect();
                    if matches!(failure, RequestError::NoResponse { .. }) {
                        connection = Connection::New;
                    }
                    std::thread::sleep(pause);
                }
                result => return result.map_err(|failure| failure.after(repeated)),
            }
        }
        self.send_once(request, connection).and_then(&finish).map_err(|failure| failure.after(repeated))
    }

    /// One attempt; a second one if the store rejected the date and its response shows another.
    fn send_once(&self, request: &S3Request<'_>, connection: Connection) -> Result<StoreResponse, RequestError> {
        let dated = self.store_time();
        match self.send_dated(request, dated, connection) {
            Err(failure)
                if failure.may_be_clock_skew() && self.store_clock.corrects(dated, self.clock().since_boot()) =>
            {
                self.send_dated(request, self.store_time(), connection)
            }
            result => result,
        }
    }

    /// The store's time; this machine's until the first response.
    fn store_time(&self) -> DateTime<Utc> {
        let clock = self.clock();
        self.store_clock.time(clock.since_boot()).unwrap_or_else(|| clock.now())
    }

    /// How far this machine's clock is ahead of the store's.
    pub(super) fn clock_skew(&self) -> Option<TimeDelta> {
        let clock = self.clock();
        self.store_clock.time(clock.since_boot()).map(|time| clock.now() - time)
    }

    fn send_dated(
        &self,
        request: &S3Request<'_>,
        dated: DateTime<Utc>,
        connection: Connection,
    ) -> Result<StoreResponse, RequestError> {
        let keys = || self.credentials.keys(dated).map_err(|error| RequestError::unsent(io::Error::other(error)));
        let first = keys()?;
        let target = self.redirects.of(request.bucket).unwrap_or_else(|| Arc::clone(&self.target));
        let result = match self.send_signed(request, &target, dated, connection, &first) {
            // The store executed nothing.
            Err(failure) if failure.is_of_keys() && self.credentials.reject(&first, dated) => {
                self.send_signed(request, &target, dated, connection, &*keys()?)
            }
            result => result,
        };
        let redirected = match &result {
            Err(RequestError::Rejected { rejection, .. }) => target.redirected(rejection),
            Ok(_) | Err(RequestError::NoResponse { .. } | RequestError::LeaseLost) => None,
        };
        let Some(target) = redirected else { return result };
        tracing::info!(bucket = %request.bucket, region = target.region, "bucket is in another region than OBJ_REGION");
        self.redirects.remember(request.bucket, target.clone());
        self.send_signed(request, &target, dated, connection, &*keys()?)
    }

    fn send_signed(
        &self,
        request: &S3Request<'_>,
        target: &RegionalEndpoint,
        dated: DateTime<Utc>,
        connection: Connection,
        keys: &SigningKeys,
    ) -> Result<StoreResponse, RequestError> {
        let validity = expiry::of(request, dated)?;
        let style = &self.options.requests;
        let checksum = style.checksum.map(|checksum| checksum::headers(checksum, request)).transpose();
        let checksum = checksum.map_err(RequestError::unsent)?.unwrap_or_default();
        let headers = [&request.headers[..], &request.headers_of(style), &checksum].concat();
        let (url, own) = self.sign(request, target, &headers, validity, keys)?;
        let headers = [headers, own].concat();
        let sent = Instant::now();
        let timeouts = self.options.timeouts.of(request.slow);
        let proxy = self.options.network.proxy_of(&target.endpoint);
        let response = self.exchange(request, &headers, &url, &timeouts, (connection, proxy));
        let response = response.map_err(|error| {
            let store = format!("{}{}", target.endpoint, by_proxy(proxy));
            RequestError::transport(error, &timeouts, &store)
        })?;
        if let Some(date) = response.headers().get("date").and_then(|date| date.to_str().ok()) {
            self.store_clock.sample(date, self.clock().since_boot());
        }
        let response = StoreResponse::new(response, timeouts);
        if response.status.is_success() {
            return Ok(response);
        }
        let rejection = response.into_rejection();
        let by_our_clock = sent.elapsed() >= validity.length();
        let is_of_session = keys.session_token.is_some() && rejection.is_of_keys() && !by_our_clock;
        let is_late = rejection.is_expiry(by_our_clock) || self.is_backdated(request) && rejection.is_of_date();
        let expired = request.lease.is_some() && !is_of_session && is_late;
        Err(RequestError::Rejected { rejection, repeated: false, expired })
    }

    /// The signed URL, and further headers.
    fn sign(
        &self,
        request: &S3Request<'_>,
        target: &RegionalEndpoint,
        headers: &[Header],
        validity: Validity,
        keys: &SigningKeys,
    ) -> Result<(String, Vec<Header>), RequestError> {
        let options = &self.options;
        let (base, region) = (address(options, &target.endpoint, request.bucket, request.key), target.region.as_str());
        let (method, query) = (request.method.as_str(), &request.query[..]);
        let unsigned = Unsigned { region, method, base: &base, query, headers };
        let signed = match (request.expires(), options.requests.signature) {
            (false, _) => unsigned.in_headers(keys, validity.from, request.payload),
            (true, SignaturePlace::Header) => unsigned.in_headers(keys, validity.expiring_date(), request.payload),
            (true, SignaturePlace::Query) => unsigned.in_query(keys, validity).map(|url| (url, Vec::new())),
        };
        signed.map_err(|error| RequestError::unsent(io::Error::new(io::ErrorKind::InvalidInput, error)))
    }

    /// Whether the date of the request is its expiry, see [`Validity::expiring_date`].
    fn is_backdated(&self, request: &S3Request<'_>) -> bool {
        request.expires() && self.options.requests.signature == SignaturePlace::Header
    }

    /// Checks, once, that the store rejects requests with dates older than S3's limit, and accepts younger ones.
    pub(super) fn check_old_dates(&self, bucket: Bucket) -> Result<(), RequestError> {
        if self.rejects_old_dates.load(Ordering::Relaxed) {
            return Ok(());
        }
        let request = S3Request::new(Method::GET, bucket, "", "checking the dates of requests with")
            .query("list-type", "2")
            .query("max-keys", "1");
        // Without the old date, so that the store's time is known.
        self.send(&request, |response| response.drain())?;
        let dated = |age: TimeDelta| self.send_dated(&request, self.store_time() - age, Connection::Pooled);
        dated(DATE_WINDOW - DATE_TOLERANCE)?.drain()?;
        match dated(DATE_WINDOW + DATE_TOLERANCE) {
            Err(RequestError::Rejected { rejection, .. }) if rejection.is_of_date() => {
                self.rejects_old_dates.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(failure) => Err(failure),
            Ok(_) => Err(RequestError::unsent(io::Error::other(
                "the store accepts requests that are dated more than 15 minutes ago, so OBJ_SIGNATURE=header would not \
                 keep late writes out; set OBJ_SIGNATURE=query",
            ))),
        }
    }

    fn exchange(
        &self,
        request: &S3Request<'_>,
        headers: &[Header],
        url: &str,
        timeouts: &Timeouts,
        route: Route<'_>,
    ) -> Result<Response<Received>, ureq::Error> {
        let mut http = Request::builder().method(request.method.clone()).uri(url);
        for (name, value) in headers {
            http = http.header(*name, value);
        }
        match request.payload {
            Payload::None => self.run(timeouts, route, http.body(())?),
            Payload::Bytes(bytes) => self.run(timeouts, route, http.body(bytes)?),
            Payload::Section { file, start, length } => {
                let mut reader = SectionReader { file, at: start, left: length };
                let http = http.header("content-length", length);
                self.run(timeouts, route, http.body(SendBody::from_reader(&mut reader))?)
            }
        }
    }

    fn run(
        &self,
        timeouts: &Timeouts,
        (connection, proxy): Route<'_>,
        request: Request<impl AsSendBody>,
    ) -> Result<Response<Received>, ureq::Error> {
        let mut configured = self
            .agent
            .configure_request(request)
            .proxy(proxy.cloned())
            .timeout_recv_response(Some(timeouts.response))
            .timeout_per_read(Some(timeouts.receive_idle));
        if connection == Connection::New {
            configured = configured.max_idle_age(Duration::ZERO);
        }
        self.agent.run(configured.build())
    }
}

/// The URL of an object, or of its bucket if the key is empty.
fn address(options: &S3Options, endpoint: &str, bucket: Bucket, key: &str) -> String {
    let key = encode_path(&options.mounts.stored_key(bucket, key));
    let bucket = options.name_of(bucket);
    match (options.requests.addressing, endpoint.split_once("://")) {
        (Addressing::Virtual, Some((scheme, host))) => format!("{scheme}://{bucket}.{host}/{key}"),
        (Addressing::Path | Addressing::Virtual, _) => {
            let slash = if key.is_empty() { "" } else { "/" };
            format!("{endpoint}/{}{slash}{key}", encode_path(bucket))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Buckets, StoreCredentials};
    use crate::runtime::SystemClock;

    #[test]
    fn buckets_are_addressed_by_path_or_by_host() {
        let buckets = Buckets { lake: "my-lake".into(), ..Buckets::default() };
        let of = |addressing, key: &str| {
            let (credentials, clock) = (StoreCredentials::default(), Arc::new(SystemClock));
            let mut options = S3Options::new("https://s3.example.org:9000", "r", credentials, buckets.clone(), clock);
            options.requests.addressing = addressing;
            address(&options, &options.endpoint, Bucket::Lake, key)
        };
        assert_eq!(of(Addressing::Path, "a b/c"), "https://s3.example.org:9000/my-lake/a%20b/c");
        assert_eq!(of(Addressing::Path, ""), "https://s3.example.org:9000/my-lake");
        assert_eq!(of(Addressing::Virtual, "a b/c"), "https://my-lake.s3.example.org:9000/a%20b/c");
        assert_eq!(of(Addressing::Virtual, ""), "https://my-lake.s3.example.org:9000/");
    }
}
