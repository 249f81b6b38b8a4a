//! The objects that keep the configs that a pipeline had: the content is the config's, the name says the rest.

use std::fmt::{self, Display};
use std::net::IpAddr;

use chrono::{DateTime, Utc};

/// A version of a pipeline's config, by its object's name after [`super::config_versions_prefix`]:
/// `<version>_<milliseconds since 1970>_<change>[_<address>].json`, the version with 20 digits, the colons of an address as
/// hyphens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigVersion {
    /// From 1, without gaps.
    pub version: u64,
    pub at: DateTime<Utc>,
    pub change: ConfigChange,
    /// The client that saved it.
    pub address: Option<IpAddr>,
}

/// Where a version of a config came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigChange {
    Saved,
    /// Saved with the content of this earlier version.
    Restored(u64),
    /// Not saved by a user (it is from a template, an archive or another program); recorded when a save replaced it.
    Found,
}

impl ConfigVersion {
    /// `None` for objects of other programs.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".json")?.split('_');
        let (version, at, change) = (parts.next()?, parts.next()?, parts.next()?);
        let address = parts.next().map(|text| text.replace('-', ":").parse()).transpose().ok()?;
        let change = match change.split_once('-') {
            None if change == "saved" => ConfigChange::Saved,
            None if change == "found" => ConfigChange::Found,
            Some(("restored", version)) => ConfigChange::Restored(version.parse().ok()?),
            _ => return None,
        };
        let at = DateTime::from_timestamp_millis(at.parse().ok()?)?;
        let version = Self { version: version.parse().ok()?, at, change, address };
        // Only the canonical name, so that no two objects are the same version.
        (version.to_string() == name).then_some(version)
    }
}

impl Display for ConfigVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}_{}_", self.version, self.at.timestamp_millis())?;
        match self.change {
            ConfigChange::Saved => f.write_str("saved")?,
            ConfigChange::Restored(version) => write!(f, "restored-{version}")?,
            ConfigChange::Found => f.write_str("found")?,
        }
        if let Some(address) = self.address {
            write!(f, "_{}", address.to_string().replace(':', "-"))?;
        }
        f.write_str(".json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_versions_round_trip_and_others_are_refused() {
        let at = DateTime::from_timestamp_millis(1_790_000_000_123).unwrap();
        for change in [ConfigChange::Saved, ConfigChange::Found, ConfigChange::Restored(7)] {
            for address in [None, Some("10.0.0.3"), Some("fe80::1"), Some("::ffff:10.0.0.3"), Some("::")] {
                let address = address.map(|text| text.parse().unwrap());
                let version = ConfigVersion { version: 12, at, change, address };
                let name = version.to_string();
                assert_eq!(ConfigVersion::parse(&name), Some(version), "{name}");
                assert!(!name.contains([':', '/', '\\']), "{name}");
            }
        }
        let good = "00000000000000000012_1790000000123_saved_10.0.0.3.json";
        assert!(ConfigVersion::parse(good).is_some());
        for (from, to) in [
            ("00000000000000000012", "12"),
            ("00000000000000000012", "99999999999999999999"),
            ("1790000000123", "99999999999999999"),
            ("1790000000123", "0001790000000123"),
            ("saved", "Saved"),
            ("saved", "restored"),
            ("saved", "restored-x"),
            ("10.0.0.3", "10.0.0.03"),
            ("10.0.0.3", "host"),
            (".json", ".yaml"),
            (".json", "_x.json"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_eq!(ConfigVersion::parse(&bad), None, "{bad}");
        }
    }
}
