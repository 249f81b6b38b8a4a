//! Who may send a request.

use super::Web;
use crate::http::{ApiError, Caller, Head, Service};

/// What a route asks of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Nothing,
    /// The cookie of a session.
    Session,
    /// That of [`crate::http::credentials::MetricsAccess`].
    Metrics,
}

/// Under which data is asked for.
pub const API: &[&str] = &["api"];
const AUTH: &[&str] = &["api", "auth"];

impl Service for Web {
    type Credential = Credential;

    /// Nothing under `/api/` is told to strangers, not even whether a path exists.
    fn before_routing(&self, head: &Head) -> Result<(), ApiError> {
        self.auth.check_origin(head)?;
        if head.is_under(API) && !head.is_under(AUTH) { self.auth.check_session(&*self.kv, head) } else { Ok(()) }
    }

    fn authorize(&self, credential: Credential, head: &Head) -> Result<Caller, ApiError> {
        match credential {
            Credential::Nothing => Ok(Caller::Anonymous),
            // The others were asked before routing.
            Credential::Session if head.is_under(API) && !head.is_under(AUTH) => Ok(Caller::Ambient),
            Credential::Session => self.auth.check_session(&*self.kv, head).map(|()| Caller::Ambient),
            Credential::Metrics => self.metrics_access.authorize(head),
        }
    }
}
