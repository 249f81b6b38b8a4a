//! SNS on loopback: its certificate, signed messages, and the address that confirms a subscription. Made from AWS's
//! documentation; shares no code with the product.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::children::Reaped as _;
use super::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};

pub const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:lake";
const TOKEN: &str = "2336412f37fb687f5d51e6e241d09c805a5a57b30d712f794cc5f6a988666d92768dd60a747ba6f3beb71854e285d6ad";

/// Writes `key.pem` and `certificate.pem` into the folder of its argument.
const MAKE_KEY: &str = r#"
import datetime, pathlib, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
folder, now = pathlib.Path(sys.argv[1]), datetime.datetime.now(datetime.timezone.utc)
key, day = rsa.generate_private_key(65537, 2048), datetime.timedelta(days=1)
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sns.amazonaws.com")])
builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("sns.amazonaws.com")]), False)
pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
(folder / "certificate.pem").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
(folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
"#;

/// Signs a message as documented: fields by name, each name and value on a line of its own.
const SIGN: &str = r#"
import base64, json, pathlib, sys
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
key = serialization.load_pem_private_key((pathlib.Path(sys.argv[1]) / "key.pem").read_bytes(), None)
message = json.loads(sys.argv[2])
names = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
if message["Type"] == "Notification":
    names = [name for name in names if name not in ("SubscribeURL", "Token")]
text = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
digest = hashes.SHA1() if message["SignatureVersion"] == "1" else hashes.SHA256()
print(base64.b64encode(key.sign(text.encode(), padding.PKCS1v15(), digest)).decode(), end="")
"#;

/// A running SNS.
pub struct Sns {
    folder: tempfile::TempDir,
    proxy: HttpProxy,
    requests: Arc<Mutex<Vec<String>>>,
    is_unavailable: Arc<Mutex<bool>>,
}

impl Sns {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        python(MAKE_KEY, &[folder.path().to_str().unwrap()]);
        let certificate = std::fs::read_to_string(folder.path().join("certificate.pem")).unwrap();
        let (requests, is_unavailable) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<bool>>::default());
        let (seen, away) = (Arc::clone(&requests), Arc::clone(&is_unavailable));
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let proxy = HttpProxy::start(nowhere, move |passing: &mut ProxiedRequest| {
            seen.lock().push(passing.target.clone());
            let confirms = format!("/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token={TOKEN}");
            match passing.target.as_str() {
                _ if *away.lock() => reply("503 Service Unavailable", "<ErrorResponse/>"),
                "/SimpleNotificationService-1.pem" => reply("200 OK", &certificate),
                "/text.pem" => reply("200 OK", "no certificate"),
                target if target == confirms => reply("200 OK", "<ConfirmSubscriptionResponse/>"),
                _ => reply("403 Forbidden", "<ErrorResponse/>"),
            }
        });
        Self { folder, proxy, requests, is_unavailable }
    }

    pub fn url(&self) -> String {
        self.proxy.url()
    }

    /// The paths that were asked for, in order.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    pub fn set_unavailable(&self, is_unavailable: bool) {
        *self.is_unavailable.lock() = is_unavailable;
    }

    /// A notification with the text, signed.
    pub fn notification(&self, text: &str, version: &str) -> Value {
        self.signed(json!({
            "Type": "Notification", "MessageId": "da41e39f-ea4d-435a-b922-c6aae3915ebe", "TopicArn": TOPIC,
            "Subject": "Amazon S3 Notification", "Message": text, "Timestamp": "2012-04-25T21:49:25.719Z",
            "SignatureVersion": version,
            "UnsubscribeURL": format!("{}/?Action=Unsubscribe&SubscriptionArn={TOPIC}:1", self.url()),
        }))
    }

    /// A confirmation of a subscription, or of its end, signed.
    pub fn confirmation(&self, kind: &str) -> Value {
        self.signed(json!({
            "Type": kind, "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b", "Token": TOKEN, "TopicArn": TOPIC,
            "Message": "You have chosen to subscribe to the topic.\nTo confirm, visit the SubscribeURL.",
            "SubscribeURL": format!("{}/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token={TOKEN}", self.url()),
            "Timestamp": "2012-04-26T20:45:04.751Z", "SignatureVersion": "1",
        }))
    }

    /// The message with a signature of its fields.
    pub fn signed(&self, mut message: Value) -> Value {
        let folder = self.folder.path().to_str().unwrap();
        message["Signature"] = python(SIGN, &[folder, &message.to_string()]).into();
        if message.get("SigningCertURL").is_none() {
            message["SigningCertURL"] = format!("{}/SimpleNotificationService-1.pem", self.url()).into();
        }
        message
    }
}

fn reply(status: &str, body: &str) -> ProxyAction {
    let length = body.len();
    ProxyAction::Answer(
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes(),
    )
}

fn python(script: &str, words: &[&str]) -> String {
    let python = PathBuf::from(std::env::var_os("LAKEMILL_TEST_PYTHON").expect("run the tests by scripts/test"));
    let output = Command::new(python).args(["-c", script]).args(words).output_reaped().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
