//! One request to the store: signed, sent, answered or refused, and tried again where that is sure to do no harm.
//!
//! Invariant: each try of a run's write is signed anew, to expire before the run's lease; none is sent without at
//! least a second of it left.
//! Must not: read the environment (no proxy is taken from it), or follow redirects.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use ureq::http::{Method, Request, Response};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, AsSendBody, Body as Received, SendBody};

use crate::ports::store::{Bucket, ETag, Lease};
use crate::runtime::Clock;

use super::answer::{Answer, Failure, Refusal};
use super::expiry::{self, Validity};
use super::options::{S3OpenError, S3Options, Timeouts};
use super::resolve::Remembering;
use super::sign::{Signer, encode_path};
use super::store_clock::StoreClock;
use super::tls;

/// A header's name, in lower case, and value.
pub(super) type Header = (&'static str, String);

/// Quick tries after the first, for what may pass at once, with a pause before each.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];
/// Idle connections that are kept for the next request (no fewer than a run has requests under way), and for how long.
const IDLE_CONNECTIONS_MAX: usize = 128;
const IDLE_AGE_MAX: Duration = Duration::from_secs(15);
/// Redirects are answers like others: a store that sends them is not where the settings say.
const REDIRECTS_MAX: u32 = 0;

/// What a request carries.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    None,
    Bytes(&'a [u8]),
    /// `length` bytes of a file from `start` on.
    Section {
        file: &'a File,
        start: u64,
        length: u64,
    },
}

/// A request to be made.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) bucket: Bucket,
    /// `""` for the bucket itself.
    pub(super) key: &'a str,
    pub(super) query: Vec<(&'static str, String)>,
    /// Those that start with `x-amz-` are signed.
    pub(super) headers: Vec<Header>,
    pub(super) payload: Payload<'a>,
    pub(super) lease: Option<&'a dyn Lease>,
    /// The request must not start after it, as with a lease.
    pub(super) until: Option<Instant>,
    /// Whether the store has a lot to do before it answers.
    pub(super) slow: bool,
    /// What is being done, as errors tell it.
    pub(super) operation: &'static str,
}

impl<'a> Call<'a> {
    pub(super) fn new(method: Method, bucket: Bucket, key: &'a str, operation: &'static str) -> Self {
        let (query, headers, payload) = (Vec::new(), Vec::new(), Payload::None);
        Self { method, bucket, key, query, headers, payload, lease: None, until: None, slow: false, operation }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn if_match(self, tag: &ETag) -> Self {
        self.header("if-match", quoted(tag))
    }

    pub(super) fn payload(mut self, payload: Payload<'a>) -> Self {
        self.payload = payload;
        self
    }

    pub(super) fn leased(mut self, lease: Option<&'a dyn Lease>) -> Self {
        self.lease = lease;
        self
    }

    pub(super) fn until(mut self, until: Option<Instant>) -> Self {
        self.until = until;
        self
    }

    pub(super) fn slow(mut self) -> Self {
        self.slow = true;
        self
    }
}

/// A tag as it stands in headers.
pub(super) fn quoted(tag: &ETag) -> String {
    format!("\"{}\"", tag.0)
}

/// The connection of a try.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// One that is kept, if there is any.
    Idle,
    /// A new one, and those that are kept are dropped: they may all have ended without our being told, by a proxy or a
    /// firewall, and be more than there are tries.
    New,
}

pub(super) struct Client {
    agent: Agent,
    signer: Signer,
    pub(super) options: S3Options,
    store_clock: StoreClock,
}

impl Client {
    pub(super) fn new(options: S3Options) -> Result<Self, S3OpenError> {
        let scheme_ok = ["http://", "https://"].iter().any(|scheme| options.endpoint.starts_with(scheme));
        if !scheme_ok || url::Url::parse(&options.endpoint).map_or(true, |url| !url.has_host()) {
            return Err(S3OpenError::Endpoint { found: options.endpoint });
        }
        let timeouts = options.timeouts;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(REDIRECTS_MAX)
            .max_redirects_will_error(false)
            .user_agent(concat!("lakemill/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .max_idle_connections(IDLE_CONNECTIONS_MAX)
            .max_idle_connections_per_host(IDLE_CONNECTIONS_MAX)
            .max_idle_age(IDLE_AGE_MAX)
            .timeout_resolve(Some(timeouts.resolve))
            .timeout_connect(Some(timeouts.connect))
            .timeout_send_request(Some(timeouts.send))
            .timeout_per_write(Some(timeouts.send_idle))
            .tls_config(tls::config(&options.endpoint, options.ca_file.as_deref())?)
            .build();
        let signer = Signer::new(&options.region, options.access_key_id.clone(), options.secret_access_key.clone());
        let agent = Agent::with_parts(config, DefaultConnector::default(), Remembering::default());
        Ok(Self { agent, signer, options, store_clock: StoreClock::default() })
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.options.clock
    }

    /// Makes the request, and `finish` of its answer. Both are tried again after failures that may pass at once, so
    /// every request must be one that may be sent twice; [`Failure::repeated`] tells that it was.
    pub(super) fn send<T>(&self, call: &Call<'_>, finish: impl Fn(Answer) -> Result<T, Failure>) -> Result<T, Failure> {
        let (mut repeated, mut over) = (false, Over::Idle);
        for pause in RETRY_PAUSES {
            match self.send_once(call, over).and_then(&finish) {
                Err(failure) if failure.may_pass_at_once() => {
                    tracing::debug!(bucket = %call.bucket, operation = call.operation, %failure, "trying again");
                    repeated |= failure.may_have_taken_effect();
                    if failure.is_lost() {
                        over = Over::New;
                    }
                    std::thread::sleep(pause);
                }
                result => return result.map_err(|failure| failure.after(repeated)),
            }
        }
        self.send_once(call, over).and_then(&finish).map_err(|failure| failure.after(repeated))
    }

    /// One try; a second one at once if the store refused our date and has told its own.
    fn send_once(&self, call: &Call<'_>, over: Over) -> Result<Answer, Failure> {
        let dated = self.store_time();
        match self.send_dated(call, dated, over) {
            Err(failure) if failure.may_be_of_time() && self.store_clock.corrects(dated, self.clock().since_boot()) => {
                self.send_dated(call, self.store_time(), over)
            }
            result => result,
        }
    }

    /// Our own time until the store has told its.
    fn store_time(&self) -> DateTime<Utc> {
        let clock = self.clock();
        self.store_clock.time(clock.since_boot()).unwrap_or_else(|| clock.now())
    }

    /// How far our clock runs ahead of the store's.
    pub(super) fn ahead(&self) -> Option<TimeDelta> {
        let clock = self.clock();
        self.store_clock.time(clock.since_boot()).map(|time| clock.now() - time)
    }

    fn send_dated(&self, call: &Call<'_>, dated: DateTime<Utc>, over: Over) -> Result<Answer, Failure> {
        let validity = expiry::of(call, dated)?;
        let url = self.signed_url(call, validity)?;
        let sent = Instant::now();
        let timeouts = self.options.timeouts.of(call.slow);
        let response = self.exchange(call, &url, &timeouts, over);
        let response = response.map_err(|error| Failure::lost(error, &timeouts).at(&self.options.endpoint))?;
        if let Some(date) = response.headers().get("date").and_then(|date| date.to_str().ok()) {
            self.store_clock.note(date, self.clock().since_boot());
        }
        let answer = Answer::new(response, timeouts);
        if answer.status.is_success() {
            return Ok(answer);
        }
        let refusal = Refusal::read(answer);
        let expired = call.lease.is_some() && refusal.is_expiry(sent.elapsed() >= validity.length());
        Err(Failure::Refused { refusal, repeated: false, expired })
    }

    fn signed_url(&self, call: &Call<'_>, validity: Validity) -> Result<String, Failure> {
        let Self { options, signer, .. } = self;
        let slash = if call.key.is_empty() { "" } else { "/" };
        let (bucket, key) = (encode_path(options.name_of(call.bucket)), encode_path(call.key));
        let base = format!("{}/{bucket}{slash}{key}", options.endpoint);
        signer
            .sign(call.method.as_str(), &base, &call.query, &call.headers, validity)
            .map_err(|error| Failure::unsent(io::Error::new(io::ErrorKind::InvalidInput, error)))
    }

    fn exchange(
        &self,
        call: &Call<'_>,
        url: &str,
        timeouts: &Timeouts,
        over: Over,
    ) -> Result<Response<Received>, ureq::Error> {
        let mut request = Request::builder().method(call.method.clone()).uri(url);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        match call.payload {
            Payload::None => self.run(timeouts, over, request.body(())?),
            Payload::Bytes(bytes) => self.run(timeouts, over, request.body(bytes)?),
            Payload::Section { file, start, length } => {
                let mut reader = SectionReader { file, at: start, left: length };
                let request = request.header("content-length", length);
                self.run(timeouts, over, request.body(SendBody::from_reader(&mut reader))?)
            }
        }
    }

    fn run(
        &self,
        timeouts: &Timeouts,
        over: Over,
        request: Request<impl AsSendBody>,
    ) -> Result<Response<Received>, ureq::Error> {
        let mut configured = self
            .agent
            .configure_request(request)
            .timeout_recv_response(Some(timeouts.response))
            .timeout_per_read(Some(timeouts.receive_idle));
        if over == Over::New {
            configured = configured.max_idle_age(Duration::ZERO);
        }
        self.agent.run(configured.build())
    }
}

/// Reads a part of a file without moving its position, so that parts can be read at once.
struct SectionReader<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for SectionReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was sent"));
        }
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
