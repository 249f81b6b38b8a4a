//! Requests to S3 on AWS: signed with expiring credentials from the sources of AWS's SDKs, which are renewed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lakemill::adapters::s3::{S3Options, S3Store};
use lakemill::config::{
    AwsVariables, ContainerEndpoint, ContainerToken, Encryption, RequestStyle, Secret, StoreCredentials, WebIdentity,
};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, StoreError, WriteOptions, list_all};
use lakemill::runtime::SystemClock;
use parking_lot::Mutex;
use serde_json::json;

use crate::cli_doctor::doctor;
use crate::support::TestLease;
use crate::support::aws::{Aws, Behaviour, PROOF, ROLE_ARN};
use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::s3_server::{ACCESS_KEY, REGION, S3Server, SECRET_KEY, s3s_fs};
use crate::support::site::{Kind, Site};

const KEY: &str = "pipelines/s/k";
const TIME_MAX: Duration = Duration::from_secs(60);

/// The store behind a gate that only keys of `aws` pass.
struct GatedStore {
    store: S3Store,
    _gate: HttpProxy,
}

impl GatedStore {
    fn new(aws: &Aws, variables: AwsVariables) -> Self {
        let server: &S3Server = s3s_fs();
        let gate = server.behind(aws.gate());
        let credentials = StoreCredentials::Chain(Box::new(variables));
        // Its buckets are made with other keys, since the gate is for the chain's.
        let made = server.options();
        let options = S3Options::new(&gate.url(), REGION, credentials, made.buckets, Arc::new(SystemClock));
        Self { store: S3Store::open(options).unwrap(), _gate: gate }
    }

    fn put(&self) -> Result<(), StoreError> {
        self.store.put(Bucket::Lake, KEY, b"x", &WriteOptions::default()).map(drop)
    }
}

fn instance(aws: &Aws) -> AwsVariables {
    AwsVariables { metadata_endpoint: Some(aws.url()), ..AwsVariables::default() }
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn web_identity(aws: &Aws, token_file: PathBuf) -> AwsVariables {
    let (role_arn, sts_endpoint) = (ROLE_ARN.to_owned(), aws.url());
    let identity = WebIdentity { role_arn, token_file, session_name: "lakemill".into(), sts_endpoint };
    AwsVariables { web_identity: Some(identity), ..AwsVariables::default() }
}

fn container(aws: &Aws, token: ContainerToken) -> AwsVariables {
    let endpoint = ContainerEndpoint::Full { url: format!("{}/container", aws.url()), token: Some(token) };
    AwsVariables { container: Some(endpoint), ..AwsVariables::default() }
}

fn reason(result: Result<(), StoreError>) -> String {
    match result {
        Err(StoreError::Transient { source, .. }) => source.to_string(),
        other => panic!("a store without keys is a store that is away, found {other:?}"),
    }
}

#[test]
fn each_credential_source_signs_requests() {
    let (aws, folder) = (Aws::new(Behaviour::default()), tempfile::tempdir().unwrap());
    let proof = file(folder.path(), "token", &format!("{PROOF}\n"));
    let places = [
        instance(&aws),
        web_identity(&aws, proof.clone()),
        container(&aws, ContainerToken::File(proof)),
        container(&aws, ContainerToken::Text(Secret::new(PROOF))),
    ];
    for (at, place) in places.into_iter().enumerate() {
        GatedStore::new(&aws, place.clone()).put().unwrap();
        assert_eq!(aws.sessions(), at + 1, "{place:?}");
    }
    let profile = format!(
        "[own]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key={SECRET_KEY}\naws_session_token=session/0\n"
    );
    let credentials_file = Some(file(folder.path(), "credentials", &profile));
    let of_profile = AwsVariables { profile: Some("own".into()), credentials_file, ..AwsVariables::default() };
    GatedStore::new(&aws, of_profile).put().unwrap();
    let of_variables = AwsVariables {
        access_key_id: Some(Secret::new(ACCESS_KEY)),
        secret_access_key: Some(Secret::new(SECRET_KEY)),
        session_token: Some(Secret::new("session/0")),
        ..instance(&aws)
    };
    GatedStore::new(&aws, of_variables).put().unwrap();
    assert_eq!(aws.sessions(), 4, "the variables go first");
}

#[test]
fn credentials_are_renewed_before_they_expire_and_no_request_fails() {
    let aws = Aws::new(Behaviour { life: Duration::from_secs(2), ..Behaviour::default() });
    let gated = GatedStore::new(&aws, instance(&aws));
    let begin = Instant::now();
    while aws.sessions() < 4 {
        assert!(begin.elapsed() < TIME_MAX, "{} sessions", aws.sessions());
        gated.put().unwrap();
    }
}

#[test]
fn concurrent_requests_fetch_keys_once() {
    let aws = Aws::new(Behaviour::default());
    let gated = GatedStore::new(&aws, instance(&aws));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| gated.put().unwrap());
        }
    });
    assert_eq!(aws.sessions(), 1);
}

#[test]
fn revoked_credentials_are_replaced_without_losing_a_lease() {
    let aws = Aws::new(Behaviour { life: Duration::from_secs(200), ..Behaviour::default() });
    let gated = GatedStore::new(&aws, instance(&aws));
    gated.put().unwrap();
    aws.revoke_all();
    let lease = TestLease::new("s", 1);
    gated.store.put(Bucket::Lake, KEY, b"y", &WriteOptions::leased(&lease)).unwrap();
    assert_eq!(aws.sessions(), 2);
}

#[test]
fn credentials_that_are_rejected_at_once_are_not_fetched_repeatedly() {
    let aws = Aws::new(Behaviour::default());
    let gated = GatedStore::new(&aws, instance(&aws));
    gated.put().unwrap();
    aws.revoke_all();
    let refused = gated.put().unwrap_err();
    assert!(matches!(refused, StoreError::AccessDenied { .. }), "{refused:?}");
    assert_eq!(aws.sessions(), 1);
}

#[test]
fn valid_credentials_are_used_while_they_cannot_be_renewed() {
    let aws = Aws::new(Behaviour { life: Duration::from_secs(200), ..Behaviour::default() });
    let gated = GatedStore::new(&aws, instance(&aws));
    gated.put().unwrap();
    aws.change(|behaviour| behaviour.failures = usize::MAX);
    gated.put().unwrap();
    assert_eq!(aws.sessions(), 1);
}

#[test]
fn throttled_credential_sources_are_retried() {
    let aws = Aws::new(Behaviour { failures: 2, ..Behaviour::default() });
    GatedStore::new(&aws, instance(&aws)).put().unwrap();
}

#[test]
fn error_names_the_source_and_its_response() {
    let (aws, folder) = (Aws::new(Behaviour::default()), tempfile::tempdir().unwrap());
    let other = file(folder.path(), "other", "another proof");
    let reason = |variables: AwsVariables| reason(GatedStore::new(&aws, variables).put());
    let refused = reason(web_identity(&aws, other.clone()));
    assert!(refused.contains(ROLE_ARN) && refused.contains("403: `InvalidIdentityToken` No OpenID"), "{refused}");
    let missing = reason(web_identity(&aws, folder.path().join("none")));
    assert!(missing.contains("AWS_WEB_IDENTITY_TOKEN_FILE") && missing.contains("No such file"), "{missing}");
    let unknown = reason(container(&aws, ContainerToken::File(other)));
    assert!(unknown.contains("status 403") && unknown.contains("unknown authorization"), "{unknown}");
    aws.change(|behaviour| behaviour.has_role = false);
    assert!(reason(instance(&aws)).contains("the instance has no role; attach an instance profile"));
    aws.change(|behaviour| behaviour.loses_sessions = true);
    assert!(reason(instance(&aws)).contains("hop limit (`HttpPutResponseHopLimit`) to 2"));
    let disabled = AwsVariables { is_metadata_disabled: true, ..AwsVariables::default() };
    assert!(reason(disabled).contains("no other place is set up"));
    for text in [PROOF, "another proof", SECRET_KEY] {
        assert!(![&refused, &missing, &unknown].iter().any(|message| message.contains(text)), "secrets are not shown");
    }
}

/// A site whose services take their keys from an instance's role.
fn site_with_role(aws: &Aws) -> (Site, HttpProxy) {
    let mut site = Site::new(Kind::Fleet);
    let gate = s3s_fs().behind(aws.gate());
    for name in ["OBJ_ACCESS_KEY_ID", "OBJ_SECRET_ACCESS_KEY"] {
        site.set(name, "");
    }
    site.set("OBJ_CREDENTIALS", "chain");
    site.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &aws.url());
    site.set("OBJ_ENDPOINT_URL", &gate.url());
    (site, gate)
}

#[test]
fn worker_with_an_instance_role_keeps_running_when_credentials_expire() {
    let aws = Aws::new(Behaviour { life: Duration::from_secs(2), ..Behaviour::default() });
    let (site, _gate) = site_with_role(&aws);
    site.pipeline("shop", &json!({}));
    let worker = site.worker();
    let begin = Instant::now();
    for at in 0.. {
        site.put("shop", &format!("in/{at}.csv"), "a,b\nx,1\n");
        let job = site.await_end(&site.enqueue("shop"));
        assert_eq!((job.error, job.attempt), (None, 1), "{}", worker.log());
        if aws.sessions() >= 3 {
            break;
        }
        assert!(begin.elapsed() < TIME_MAX, "{} sessions", aws.sessions());
    }
}

#[test]
fn doctor_reports_errors_of_a_role() {
    let aws = Aws::new(Behaviour { has_role: false, ..Behaviour::default() });
    let (site, _gate) = site_with_role(&aws);
    let advice = &["the instance has no role", "→ correct what OBJ_CREDENTIALS=chain uses"];
    doctor(&site, &[]).has("problem buckets: ", advice);
    aws.change(|behaviour| behaviour.has_role = true);
    doctor(&site, &[]).has("ok buckets: ", &[]);
}

#[test]
fn settings_of_requests_are_signed_and_reach_the_store() {
    let style = RequestStyle {
        encryption: Some(Encryption::Store),
        bucket_owner: Some("123456789012".into()),
        is_requester_paying: true,
        ..RequestStyle::default()
    };
    // This one verifies signatures.
    let server = s3s_fs();
    let seen: Arc<Mutex<Vec<ProxiedRequest>>> = Arc::default();
    let record = Arc::clone(&seen);
    let gate = server.behind(move |passing| {
        record.lock().push(passing.clone());
        ProxyAction::Forward
    });
    let mut options = server.options_at(&gate.url());
    options.requests = style;
    let store = S3Store::open(options).unwrap();
    store.put(Bucket::Lake, KEY, b"x", &WriteOptions::default()).unwrap();
    assert_eq!(list_all(&store, Bucket::Lake, "").unwrap().len(), 1);
    let mut read = Vec::new();
    store.get(Bucket::Lake, KEY, None).unwrap().body.read_to_end(&mut read).unwrap();
    assert_eq!(read, b"x");
    let seen = seen.lock();
    assert!(seen.len() >= 3);
    for passing in seen.iter() {
        assert_eq!(passing.header("x-amz-expected-bucket-owner"), Some("123456789012"), "{}", passing.target);
        assert_eq!(passing.header("x-amz-request-payer"), Some("requester"), "{}", passing.target);
        let is_write = passing.method == "PUT";
        assert_eq!(passing.header("x-amz-server-side-encryption"), is_write.then_some("AES256"), "{}", passing.target);
    }
}
