//! Checks messages of SNS: that their topic is permitted, and their signature. Confirms subscriptions.
//!
//! The certificate of a signature is trusted because it comes by TLS from SNS's host in the topic's region; its own chain
//! is not checked. Nothing is fetched from any other host.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use ring::signature::{RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
use rustls_pki_types::{AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm, alg_id};
use ureq::tls::{PemItem, parse_pem};
use url::{Origin, Url};
use webpki::EndEntityCert;
use webpki::ring::RSA_PKCS1_2048_8192_SHA256;

use super::http::{HttpClient, SmallRequest};
use crate::adapters::network::client;
use crate::config::{EventsConfig, NetworkConfig};
use crate::domain::arn::Arn;
use crate::domain::digest::decode_base64;
use crate::domain::text::clipped;
use crate::ports::EventTopics;
use crate::ports::event_topics::{TopicError, TopicMessage, TopicMessageKind};
use crate::system::http_client::CaFileError;

/// Certificates that are kept. SNS replaces its own rarely, with another URL.
const CERTIFICATES_MAX: usize = 16;

/// Messages of SNS topics.
pub struct SnsTopics {
    permitted: Vec<Arn>,
    /// Instead of SNS's host in the topic's region.
    endpoint: Option<Origin>,
    http: HttpClient,
    /// Certificates in DER, by URL.
    certificates: Mutex<BTreeMap<String, CertificateDer<'static>>>,
}

impl SnsTopics {
    /// # Errors
    /// The file of certificate authorities can't be used.
    pub fn open(config: &EventsConfig, network: &NetworkConfig) -> Result<Self, CaFileError> {
        let endpoint = config.sns_endpoint.as_deref();
        let host = config.topics.first().map_or("https://".to_owned(), host_of);
        Ok(Self {
            permitted: config.topics.clone(),
            endpoint: endpoint.and_then(|url| Url::parse(url).ok()).map(|url| url.origin()),
            http: HttpClient::new(client(endpoint.unwrap_or(&host), network)?),
            certificates: Mutex::default(),
        })
    }

    fn permitted(&self, message: &TopicMessage) -> Result<Arn, TopicError> {
        let named = &message.topic_arn;
        let topic = Arn::parse(named).ok().filter(|arn| self.permitted.contains(arn));
        topic.ok_or_else(|| refused(format!("the SNS topic `{}` is not in SVC_EVENTS_SNS_TOPICS", clipped(named))))
    }

    /// A URL of SNS in the topic's region. `what`: the field that it is from.
    fn url_of_sns(&self, what: &str, text: &str, topic: &Arn) -> Result<Url, TopicError> {
        let default = || Url::parse(&host_of(topic)).ok().map(|url| url.origin());
        let expected = self.endpoint.clone().or_else(default);
        let found = Url::parse(text).ok().filter(|url| url.username().is_empty() && url.password().is_none());
        match (found, expected) {
            (Some(url), Some(expected)) if url.origin() == expected => Ok(url),
            (_, expected) => {
                let expected = expected.map(|origin| origin.ascii_serialization()).unwrap_or_default();
                Err(refused(format!("{what} of the SNS message is `{}`, expected a URL of {expected}", clipped(text))))
            }
        }
    }

    fn certificate(&self, message: &TopicMessage, topic: &Arn) -> Result<CertificateDer<'static>, TopicError> {
        let url = self.url_of_sns("SigningCertURL", &message.signing_cert_url, topic)?;
        if !url.path().ends_with(".pem") {
            return Err(refused(format!(
                "SigningCertURL of the SNS message is `{}`, expected a .pem",
                clipped(url.as_str())
            )));
        }
        if let Some(known) = self.certificates.lock().get(url.as_str()) {
            return Ok(known.clone());
        }
        let pem = self.fetch(&url).map_err(|why| unavailable(format!("the certificate of SNS at {url}: {why}")))?;
        let no_certificate = || refused(format!("the certificate of SNS at {url}: no certificate in PEM"));
        let certificate = parse_pem(pem.as_bytes()).find_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(CertificateDer::from(certificate.der().to_vec())),
            _ => None,
        });
        let certificate = certificate.ok_or_else(no_certificate)?;
        let mut known = self.certificates.lock();
        if known.len() >= CERTIFICATES_MAX {
            known.clear();
        }
        known.insert(url.into(), certificate.clone());
        Ok(certificate)
    }

    fn fetch(&self, url: &Url) -> Result<String, String> {
        self.http.send(&SmallRequest { method: "GET", url: url.as_str(), ..SmallRequest::default() })?.success()
    }
}

impl EventTopics for SnsTopics {
    fn verify(&self, message: &TopicMessage) -> Result<(), TopicError> {
        let topic = self.permitted(message)?;
        let algorithm: &dyn SignatureVerificationAlgorithm = match message.signature_version.as_str() {
            "1" => &RsaSha1,
            "2" => RSA_PKCS1_2048_8192_SHA256,
            other => {
                return Err(refused(format!(
                    "SignatureVersion of the SNS message is `{}`, expected 1 or 2",
                    clipped(other)
                )));
            }
        };
        let certificate = self.certificate(message, &topic)?;
        let wrong = || refused("the signature of the SNS message is wrong".to_owned());
        let signature = decode_base64(&message.signature).ok_or_else(wrong)?;
        let certificate = EndEntityCert::try_from(&certificate)
            .map_err(|error| refused(format!("the certificate of the SNS message: {error}")))?;
        certificate.verify_signature(algorithm, signed_text(message).as_bytes(), &signature).map_err(|_| wrong())
    }

    fn confirm(&self, message: &TopicMessage) -> Result<(), TopicError> {
        let topic = self.permitted(message)?;
        let text = message.subscribe_url.as_deref().unwrap_or_default();
        let url = self.url_of_sns("SubscribeURL", text, &topic)?;
        let has = |name: &str, value: &str| url.query_pairs().any(|pair| pair == (name.into(), value.into()));
        if !has("Action", "ConfirmSubscription") || !has("TopicArn", &message.topic_arn) {
            let text = clipped(text);
            return Err(refused(format!(
                "SubscribeURL of the SNS message is `{text}`, expected one that confirms its topic"
            )));
        }
        let failed = |why: String| unavailable(format!("confirming the subscription of `{topic}`: {why}"));
        self.fetch(&url).map(drop).map_err(failed)
    }
}

/// SNS in the topic's region.
fn host_of(topic: &Arn) -> String {
    format!("https://sns.{}.{}", topic.region, topic.domain())
}

/// The signed text of a message: names and values of these fields, each on its own line.
fn signed_text(message: &TopicMessage) -> String {
    let of = |value: &'_ Option<String>| value.clone().unwrap_or_default();
    let mut fields = vec![("Message", message.message.clone()), ("MessageId", message.message_id.clone())];
    match message.kind {
        TopicMessageKind::Notification => fields.extend(message.subject.clone().map(|subject| ("Subject", subject))),
        TopicMessageKind::SubscriptionConfirmation | TopicMessageKind::UnsubscribeConfirmation => {
            fields.push(("SubscribeURL", of(&message.subscribe_url)));
        }
    }
    fields.push(("Timestamp", message.timestamp.clone()));
    if message.kind != TopicMessageKind::Notification {
        fields.push(("Token", of(&message.token)));
    }
    fields.extend([("TopicArn", message.topic_arn.clone()), ("Type", message.kind.name().to_owned())]);
    fields.iter().map(|(name, value)| format!("{name}\n{value}\n")).collect()
}

fn refused(reason: String) -> TopicError {
    TopicError::Refused { reason }
}

fn unavailable(reason: String) -> TopicError {
    TopicError::Unavailable { reason }
}

/// RSA with SHA-1, which SNS signs with unless a topic has `SignatureVersion` 2.
#[derive(Debug)]
struct RsaSha1;

impl SignatureVerificationAlgorithm for RsaSha1 {
    fn verify_signature(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, public_key);
        key.verify(message, signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_ENCRYPTION
    }

    /// Unused: this signs no certificates.
    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_PKCS1_SHA256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:lake";

    fn topics() -> SnsTopics {
        let config = EventsConfig { topics: vec![Arn::parse(TOPIC).unwrap()], ..EventsConfig::default() };
        SnsTopics::open(&config, &NetworkConfig::default()).unwrap()
    }

    fn confirmation() -> TopicMessage {
        let json = serde_json::json!({
            "Type": "SubscriptionConfirmation", "MessageId": "id", "Token": "t", "TopicArn": TOPIC, "Message": "m",
            "SubscribeURL": format!("https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={TOPIC}"),
            "Timestamp": "2012-04-26T20:45:04.751Z", "SignatureVersion": "1", "Signature": "AAAA",
            "SigningCertURL": "https://sns.eu-central-1.amazonaws.com/a.pem",
        });
        serde_json::from_value(json).unwrap()
    }

    fn reason(result: Result<impl std::fmt::Debug, TopicError>) -> String {
        match result {
            Err(TopicError::Refused { reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn signature_covers_the_documented_fields() {
        let mut message = confirmation();
        let url = message.subscribe_url.clone().unwrap();
        let time = "2012-04-26T20:45:04.751Z";
        assert_eq!(
            signed_text(&message),
            format!(
                "Message\nm\nMessageId\nid\nSubscribeURL\n{url}\nTimestamp\n{time}\nToken\nt\nTopicArn\n{TOPIC}\nType\n\
                 SubscriptionConfirmation\n"
            )
        );
        message.kind = TopicMessageKind::Notification;
        let rest = format!("Timestamp\n{time}\nTopicArn\n{TOPIC}\nType\nNotification\n");
        assert_eq!(signed_text(&message), format!("Message\nm\nMessageId\nid\n{rest}"));
        message.subject = Some("s".into());
        assert_eq!(signed_text(&message), format!("Message\nm\nMessageId\nid\nSubject\ns\n{rest}"));
    }

    #[test]
    fn nothing_is_fetched_from_hosts_other_than_the_topics() {
        for url in [
            "",
            "http://sns.eu-central-1.amazonaws.com/a.pem",
            "https://sns.eu-central-1.amazonaws.com:8443/a.pem",
            "https://sns.us-east-1.amazonaws.com/a.pem",
            "https://sns.eu-central-1.amazonaws.com.example.org/a.pem",
            "https://sns.eu-central-1.amazonaws.com@example.org/a.pem",
            "https://user@sns.eu-central-1.amazonaws.com/a.pem",
            "file:///etc/passwd.pem",
        ] {
            let message = TopicMessage { signing_cert_url: url.into(), ..confirmation() };
            let refused = reason(topics().verify(&message));
            assert!(refused.ends_with("expected a URL of https://sns.eu-central-1.amazonaws.com"), "{refused}");
            let message = TopicMessage { subscribe_url: Some(url.into()), ..confirmation() };
            assert!(reason(topics().confirm(&message)).starts_with("SubscribeURL"), "{url}");
        }
        let text =
            TopicMessage { signing_cert_url: "https://sns.eu-central-1.amazonaws.com/a".into(), ..confirmation() };
        assert!(reason(topics().verify(&text)).ends_with("expected a .pem"));
        for query in ["", "?Action=Publish", "?Action=ConfirmSubscription&TopicArn=other"] {
            let url = format!("https://sns.eu-central-1.amazonaws.com/{query}");
            let refused = reason(topics().confirm(&TopicMessage { subscribe_url: Some(url), ..confirmation() }));
            assert!(refused.ends_with("expected one that confirms its topic"), "{refused}");
        }
    }

    #[test]
    fn other_topics_and_signature_versions_are_refused() {
        for topic in ["arn:aws:sns:eu-central-1:123456789012:other", "lake", ""] {
            let message = TopicMessage { topic_arn: topic.into(), ..confirmation() };
            let expected = format!("the SNS topic `{topic}` is not in SVC_EVENTS_SNS_TOPICS");
            assert_eq!(reason(topics().verify(&message)), expected);
            assert_eq!(reason(topics().confirm(&message)), expected);
        }
        let message = TopicMessage { signature_version: "3".into(), ..confirmation() };
        assert_eq!(reason(topics().verify(&message)), "SignatureVersion of the SNS message is `3`, expected 1 or 2");
    }
}
