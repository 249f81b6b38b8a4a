//! The first frame of a child: the build of its program.
//!
//! Invariant: the form of this frame never changes, since the two programs may be of different builds: an upgrade replaces
//! the files while a service runs. All later messages are those of one build.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::frame::{self, FrameKind};

/// The build of this program: its version, and a hash of its sources.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("LAKEMILL_SOURCES"));
/// Largest greeting, in bytes.
pub const GREETING_BYTES_MAX: usize = 4_096;
/// Longest build in an error message, in characters.
const SHOWN_CHARS_MAX: usize = 80;

#[derive(Serialize, Deserialize)]
pub struct Greeting {
    build: String,
}

impl Greeting {
    /// Writes the greeting of this program.
    ///
    /// # Errors
    /// The pipe fails.
    pub fn write(to: &mut impl Write) -> io::Result<()> {
        Self::write_as(to, BUILD)
    }

    /// Writes the greeting of a program of the build `build`.
    ///
    /// # Errors
    /// The pipe fails.
    pub fn write_as(to: &mut impl Write, build: &str) -> io::Result<()> {
        let bytes = serde_json::to_vec(&Self { build: build.to_owned() }).map_err(io::Error::other)?;
        frame::write(to, FrameKind::Message, &bytes)
    }

    /// Checks that a greeting is of this build.
    ///
    /// # Errors
    /// The other build, or `unknown`.
    pub fn check(bytes: &[u8]) -> Result<(), String> {
        match serde_json::from_slice::<Self>(bytes) {
            Ok(greeting) if greeting.build == BUILD => Ok(()),
            Ok(greeting) => Err(greeting.build.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()),
            Err(_) => Err("unknown".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_greeting_of_this_build_is_accepted() {
        let mut written = Vec::new();
        Greeting::write(&mut written).unwrap();
        assert_eq!(Greeting::check(&written[frame::HEAD_BYTES..]), Ok(()));
        for (bytes, found) in [
            (br#"{"build":"0.0.9-1\u001b","new":1}"#.as_slice(), "0.0.9-1"),
            (br#"{"reply":"ready"}"#, "unknown"),
            (b"nonsense", "unknown"),
        ] {
            assert_eq!(Greeting::check(bytes), Err(found.to_owned()));
        }
    }
}
