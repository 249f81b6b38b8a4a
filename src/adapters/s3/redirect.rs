//! Buckets in another region than the configured one.
//!
//! Invariant: the store names a region, never an address. The region replaces the one in the configured endpoint's host
//! if that is one of AWS; any other host stays. So no answer leads signed requests elsewhere.

use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;

use crate::ports::store::Bucket;

use super::conditions::bucket_index;
use super::failure::StoreRejection;

const REGION_BYTES_MAX: usize = 32;
/// The domains of AWS, and whether their regions are those of China.
const DOMAINS: [(&str, bool); 2] = [(".amazonaws.com", false), (".amazonaws.com.cn", true)];

/// Where the requests of a bucket go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegionalEndpoint {
    pub(super) endpoint: String,
    pub(super) region: String,
}

/// The regions that buckets were redirected to.
#[derive(Default)]
pub(super) struct Redirects([Mutex<Option<Arc<RegionalEndpoint>>>; Bucket::ALL.len()]);

impl Redirects {
    pub(super) fn of(&self, bucket: Bucket) -> Option<Arc<RegionalEndpoint>> {
        self.0[bucket_index(bucket)].lock().clone()
    }

    pub(super) fn remember(&self, bucket: Bucket, target: RegionalEndpoint) {
        *self.0[bucket_index(bucket)].lock() = Some(Arc::new(target));
    }
}

impl RegionalEndpoint {
    /// The target of a request that was rejected because its bucket is in another region.
    pub(super) fn redirected(&self, rejection: &StoreRejection) -> Option<Self> {
        let region = rejection.region.as_deref().filter(|region| is_region(region) && *region != self.region)?;
        let is_redirect = match rejection.code.as_str() {
            "PermanentRedirect"
            | "TemporaryRedirect"
            | "AuthorizationHeaderMalformed"
            | "AuthorizationQueryParametersError" => true,
            // A response to HEAD has no code.
            code => code.is_empty() && matches!(rejection.status, 301 | 307 | 400),
        };
        let endpoint = endpoint_in(&self.endpoint, region).filter(|_| is_redirect)?;
        Some(Self { endpoint, region: region.to_owned() })
    }
}

fn is_region(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=REGION_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part)
}

/// The endpoint in another region; `None` if it is bound to its region.
fn endpoint_in(endpoint: &str, region: &str) -> Option<String> {
    let url = Url::parse(endpoint).ok()?;
    let host = url.host_str()?;
    let of_aws =
        DOMAINS.into_iter().find_map(|(domain, is_china)| Some((host.strip_suffix(domain)?, domain, is_china)));
    let Some((labels, domain, is_china)) = of_aws else { return Some(endpoint.to_owned()) };
    let service = match labels.split('.').collect::<Vec<_>>()[..] {
        ["s3"] | ["s3", _] => "s3",
        ["s3-fips", _] => "s3-fips",
        ["s3", "dualstack", _] => "s3.dualstack",
        ["s3-fips", "dualstack", _] => "s3-fips.dualstack",
        _ => return None,
    };
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    (region.starts_with("cn-") == is_china).then(|| format!("{}://{service}.{region}{domain}{port}", url.scheme()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirected(endpoint: &str, status: u16, code: &str, region: &str) -> Option<String> {
        let target = RegionalEndpoint { endpoint: endpoint.into(), region: "eu-central-1".into() };
        let (code, region) = (code.to_owned(), Some(region.to_owned()));
        let rejection = StoreRejection { status, code, region, ..StoreRejection::default() };
        target.redirected(&rejection).map(|target| format!("{} {}", target.endpoint, target.region))
    }

    #[test]
    fn region_replaces_the_one_in_hosts_of_aws() {
        for (from, to) in [
            ("https://s3.amazonaws.com", "https://s3.us-west-2.amazonaws.com"),
            ("https://s3.eu-central-1.amazonaws.com", "https://s3.us-west-2.amazonaws.com"),
            ("https://s3-fips.us-east-1.amazonaws.com:444", "https://s3-fips.us-west-2.amazonaws.com:444"),
            ("https://s3.dualstack.us-east-1.amazonaws.com", "https://s3.dualstack.us-west-2.amazonaws.com"),
            ("http://store.example:9000", "http://store.example:9000"),
        ] {
            let found = redirected(from, 301, "PermanentRedirect", "us-west-2");
            assert_eq!(found, Some(format!("{to} us-west-2")), "{from}");
        }
        let bound = "https://bucket.vpce-1a2b.s3.us-east-1.vpce.amazonaws.com";
        assert_eq!(redirected(bound, 301, "PermanentRedirect", "us-west-2"), None);
        assert_eq!(redirected("https://s3.amazonaws.com", 301, "PermanentRedirect", "cn-north-1"), None);
    }

    #[test]
    fn only_redirects_to_another_region_are_followed() {
        let at = "https://s3.eu-central-1.amazonaws.com";
        let us = |status, code: &str| redirected(at, status, code, "us-west-2").is_some();
        assert!(us(400, "AuthorizationHeaderMalformed") && us(307, "TemporaryRedirect") && us(301, "") && us(400, ""));
        assert!(!us(403, "AccessDenied") && !us(403, "") && !us(400, "InvalidArgument") && !us(404, ""));
        for region in ["eu-central-1", "", "evil.example", "us-west-2.evil.example/", "US", "a@b", &"x".repeat(33)] {
            assert_eq!(redirected(at, 301, "PermanentRedirect", region), None, "{region}");
        }
    }
}
