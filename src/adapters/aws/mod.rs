//! AWS: keys that sign requests, from the places where its SDKs find them; signatures in headers ([`RequestSigner`]);
//! messages of SNS; queues of SQS.
//!
//! The first of these places that is set up gives the keys; if it fails, no other is tried:
//! 1. `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`,
//! 2. a web identity token (`AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_ARN`): roles of Kubernetes service accounts,
//! 3. a profile of the shared credentials file,
//! 4. a container's endpoint (`AWS_CONTAINER_CREDENTIALS_…`): ECS, EKS Pod Identity,
//! 5. the metadata of an EC2 instance, by IMDSv2.
//!
//! Invariants: keys are renewed before they expire, by one thread at a time, while others use the current ones; every
//! response is bounded in size and time; redirects are not followed, since requests contain secrets; requests to containers'
//! endpoints and to instance metadata never go through a proxy.
//!
//! Must not: read the environment.

mod chain;
mod container;
mod http;
mod instance;
mod keys;
mod profile;
mod queue;
mod sign;
mod topics;
mod web_identity;

pub use chain::Credentials;
pub use keys::{CredentialsError, SigningKeys};
pub use queue::SqsQueue;
pub(in crate::adapters) use sign::{CanonicalRequest, SigningScope, custom_region, host_of, sign_headers, signature};
pub use sign::{RequestSigner, SignError, UnsignedRequest};
pub use topics::SnsTopics;
