//! Names of AWS's resources.

use std::fmt;

/// `arn:<partition>:<service>:<region>:<account>:<resource>`; also the shorter ones of other stores
/// (`arn:minio:sqs::PRIMARY:webhook`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arn {
    pub partition: String,
    /// For example `sqs`.
    pub service: String,
    /// May be empty.
    pub region: String,
    /// 12 digits in AWS; may be empty.
    pub account: String,
    /// May contain `:`.
    pub resource: String,
}

/// A text that is not an ARN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an ARN such as `arn:aws:sns:eu-central-1:123456789012:my-topic`")]
pub struct InvalidArn;

impl Arn {
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, InvalidArn> {
        let mut parts = text.splitn(6, ':');
        let mut part = || parts.next().map(str::to_owned).ok_or(InvalidArn);
        let (prefix, partition, service) = (part()?, part()?, part()?);
        let arn = Self { partition, service, region: part()?, account: part()?, resource: part()? };
        let is_named = !arn.partition.is_empty() && !arn.service.is_empty() && !arn.resource.is_empty();
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if prefix == "arn" && is_named && is_plain { Ok(arn) } else { Err(InvalidArn) }
    }

    /// Whether it names a resource of AWS in a region.
    pub fn is_of_aws(&self) -> bool {
        let is_label = |text: &str| {
            let ok = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !text.is_empty() && text.bytes().all(ok)
        };
        let is_account = self.account.len() == 12 && self.account.bytes().all(|byte| byte.is_ascii_digit());
        (self.partition == "aws" || self.partition.starts_with("aws-")) && is_label(&self.region) && is_account
    }

    /// The domain of AWS's services in the partition.
    pub fn domain(&self) -> &'static str {
        if self.partition == "aws-cn" { "amazonaws.com.cn" } else { "amazonaws.com" }
    }
}

impl fmt::Display for Arn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, service, region, account, resource } = self;
        write!(f, "arn:{partition}:{service}:{region}:{account}:{resource}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_round_trip_and_other_texts_are_refused() {
        for (text, is_of_aws) in [
            ("arn:aws:sns:eu-central-1:123456789012:t", true),
            ("arn:aws-cn:sqs:cn-north-1:123456789012:q", true),
            ("arn:aws:sns:eu-central-1:12345678901:t", false),
            ("arn:aws:sns:evil.example/:123456789012:t", false),
            ("arn:minio:sqs::PRIMARY:webhook", false),
            ("arn:aws:sns:default::a:b", false),
        ] {
            let arn = Arn::parse(text).unwrap();
            assert_eq!((arn.to_string().as_str(), arn.is_of_aws()), (text, is_of_aws));
        }
        for text in
            ["", "arn", "arn:aws:sns:r:1:", "arn:aws:sns:r:1", "arn::sns:r:1:t", "urn:aws:sns:r:1:t", "arn:a:s:r:1:t t"]
        {
            assert_eq!(Arn::parse(text), Err(InvalidArn), "{text}");
        }
    }
}
