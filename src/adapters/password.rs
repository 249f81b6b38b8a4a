//! The hash of the admin's password: argon2id, as a PHC string.
//!
//! An adapter without a port: hashing needs randomness and a library, which `domain` must not use, and has one
//! implementation.
//!
//! Invariant: a [`PasswordHash`] is at least as strong as the weakest that OWASP recommends. These trade memory for passes
//! (from 46 MiB in one pass to 7 MiB in five), so both memory and memory times passes are bounded.

use std::fmt;

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use parking_lot::Mutex;

/// Parameters of new hashes, as OWASP recommends: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// OWASP's minimum memory.
const MEMORY_KIB_MIN: u32 = 7_168;
/// OWASP's minimum of memory times passes.
const FILLED_KIB_MIN: u64 = 35_840;
/// Limits of the cost of one login.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const FILLED_KIB_MAX: u64 = 16 << 20;
const LANES_MAX: u32 = 16;
const SALT_BYTES_MIN: usize = 8;
const OUTPUT_BYTES_MIN: usize = 16;
/// OWASP's minimum cost of bcrypt; above the maximum it takes seconds.
const BCRYPT_COST_MIN: u32 = 10;
const BCRYPT_COST_MAX: u32 = 15;
/// Shortest password, in characters.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// Longest password, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1_024;

const _: () = assert!(MEMORY_KIB >= MEMORY_KIB_MIN && MEMORY_KIB as u64 * PASSES as u64 >= FILLED_KIB_MIN);

/// Why a password is not hashed, or a hash is rejected. Never quotes either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error("the password is empty")]
    Empty,
    #[error("the password has {found} characters, expected at least {PASSWORD_CHARS_MIN}")]
    TooShort { found: usize },
    #[error("the password has {found} bytes, expected at most {PASSWORD_BYTES_MAX}")]
    TooLong { found: usize },
    #[error("the system has no random numbers: {why}")]
    NoRandomness { why: String },
    #[error("the hash is not an argon2id PHC string: {why}")]
    NotArgon2id { why: String },
    #[error("the hash is too weak: {what}")]
    Weak { what: String },
    #[error("the hash is too costly to check: {what}")]
    Costly { what: String },
    #[error("the hash is not a bcrypt hash of the form `$2b$…`")]
    NotBcrypt,
}

/// A password's hash with its parameters and salt.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(phc::PasswordHash);

impl PasswordHash {
    /// Hashes `password` with a fresh salt of 16 bytes. Takes some 19 MiB and tens of milliseconds.
    ///
    /// # Errors
    /// `Empty`, `TooShort`, `TooLong`, `NoRandomness`.
    pub fn of(password: &str) -> Result<Self, PasswordError> {
        check_password(password)?;
        let failed = |why: &dyn fmt::Display| PasswordError::NoRandomness { why: why.to_string() };
        let salt = argon2::password_hash::try_generate_salt().map_err(|error| failed(&error))?;
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|error| failed(&error))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_with_salt(password.as_bytes(), &salt).map(Self).map_err(|error| failed(&error))
    }

    /// Parses a PHC string.
    ///
    /// # Errors
    /// `NotArgon2id`, `Weak`, `Costly`.
    pub fn parse(text: &str) -> Result<Self, PasswordError> {
        let not_ours = |why: &dyn fmt::Display| PasswordError::NotArgon2id { why: why.to_string() };
        let hash = phc::PasswordHash::new(text).map_err(|error| not_ours(&error))?;
        if Algorithm::try_from(hash.algorithm.as_str()) != Ok(Algorithm::Argon2id) {
            return Err(not_ours(&format_args!("its algorithm is `{}`", hash.algorithm)));
        }
        if hash.version != Some(Version::V0x13.into()) {
            return Err(not_ours(&"its version is not 19"));
        }
        let params = Params::try_from(&hash).map_err(|error| not_ours(&error))?;
        check_params(&params)?;
        let weak = |what: &str, found: usize, least: usize| match found < least {
            true => Err(PasswordError::Weak { what: format!("{what} of {found} bytes, expected at least {least}") }),
            false => Ok(()),
        };
        weak("a salt", hash.salt.as_ref().map_or(0, |salt| salt.len()), SALT_BYTES_MIN)?;
        weak("an output", hash.hash.as_ref().map_or(0, phc::Output::len), OUTPUT_BYTES_MIN)?;
        Ok(Self(hash))
    }

    /// Whether it is the hash of `password`; compares in constant time.
    pub fn verify(&self, password: &str) -> bool {
        // A longer input can't match, and would cost time.
        password.len() <= PASSWORD_BYTES_MAX && self.matches(password.as_bytes()).unwrap_or(false)
    }

    /// `None` if the parameters can't be used.
    fn matches(&self, password: &[u8]) -> Option<bool> {
        let params = Params::try_from(&self.0).ok()?;
        let (salt, expected) = (self.0.salt.as_ref()?, self.0.hash.as_ref()?);
        let mut found = vec![0; expected.len()];
        let mut blocks = BLOCKS.lock().pop().unwrap_or_default();
        blocks.resize(params.m_cost() as usize, Block::new());
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hashed = argon2.hash_password_into_with_memory(password, salt.as_ref(), &mut found, &mut blocks);
        BLOCKS.lock().push(blocks);
        hashed.ok()?;
        // Compares in constant time.
        Some(phc::Output::new(&found).ok()? == *expected)
    }
}

/// Memory of earlier checks: one block for each that ran at once. Freed, it would stay with the allocator's arena of each
/// thread that ever checked a password.
static BLOCKS: Mutex<Vec<Vec<Block>>> = Mutex::new(Vec::new());

impl fmt::Display for PasswordHash {
    /// The PHC string; a secret, since it allows guessing passwords offline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// A stored hash to check a login's password against: argon2id, or bcrypt from another program.
#[derive(Debug, Clone)]
pub enum AdminPassword {
    Argon2id(Box<PasswordHash>),
    Bcrypt(BcryptHash),
}

/// A bcrypt hash (`$2b$`), as created by other programs. Bcrypt uses only the first 72 bytes of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct BcryptHash(String);

impl AdminPassword {
    /// Parses an argon2id PHC string or a bcrypt hash.
    ///
    /// # Errors
    /// `NotArgon2id`, `NotBcrypt`, `Weak`, `Costly`.
    pub fn parse(text: &str) -> Result<Self, PasswordError> {
        if text.starts_with("$2b$") {
            return BcryptHash::parse(text).map(Self::Bcrypt);
        }
        PasswordHash::parse(text).map(|hash| Self::Argon2id(Box::new(hash)))
    }

    /// Whether it is the hash of `password`; compares in constant time.
    pub fn verify(&self, password: &str) -> bool {
        match self {
            Self::Argon2id(hash) => hash.verify(password),
            Self::Bcrypt(hash) => hash.verify(password),
        }
    }
}

impl BcryptHash {
    fn parse(text: &str) -> Result<Self, PasswordError> {
        let parts: bcrypt::HashParts = text.parse().map_err(|_| PasswordError::NotBcrypt)?;
        // The original text.
        if parts.to_string() != text {
            return Err(PasswordError::NotBcrypt);
        }
        let what = |bound| format!("a cost of {}, expected {bound}", parts.get_cost());
        match parts.get_cost() {
            ..BCRYPT_COST_MIN => Err(PasswordError::Weak { what: what(format!("at least {BCRYPT_COST_MIN}")) }),
            BCRYPT_COST_MIN..=BCRYPT_COST_MAX => Ok(Self(text.to_owned())),
            _ => Err(PasswordError::Costly { what: what(format!("at most {BCRYPT_COST_MAX}")) }),
        }
    }

    fn verify(&self, password: &str) -> bool {
        password.len() <= PASSWORD_BYTES_MAX && bcrypt::verify(password, &self.0).unwrap_or(false)
    }
}

impl fmt::Debug for BcryptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BcryptHash(…)")
    }
}

fn check_password(password: &str) -> Result<(), PasswordError> {
    let found = password.chars().count();
    if found == 0 {
        return Err(PasswordError::Empty);
    }
    if found < PASSWORD_CHARS_MIN {
        return Err(PasswordError::TooShort { found });
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(PasswordError::TooLong { found: password.len() });
    }
    Ok(())
}

fn check_params(params: &Params) -> Result<(), PasswordError> {
    let (memory, passes, lanes) = (params.m_cost(), params.t_cost(), params.p_cost());
    let filled = u64::from(memory) * u64::from(passes);
    if memory < MEMORY_KIB_MIN || filled < FILLED_KIB_MIN {
        let what = format!(
            "m={memory},t={passes}, expected m of at least {MEMORY_KIB_MIN} and m × t of at least {FILLED_KIB_MIN}"
        );
        return Err(PasswordError::Weak { what });
    }
    if memory > MEMORY_KIB_MAX || filled > FILLED_KIB_MAX || lanes > LANES_MAX {
        let what = format!(
            "m={memory},t={passes},p={lanes}, expected m of at most {MEMORY_KIB_MAX}, m × t of at most \
             {FILLED_KIB_MAX} and p of at most {LANES_MAX}"
        );
        return Err(PasswordError::Costly { what });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A well-formed hash of an arbitrary password.
    fn with(parameters: &str) -> String {
        format!("$argon2id$v=19${parameters}$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo")
    }

    #[test]
    fn hash_matches_only_its_password() {
        let hash = PasswordHash::of("correct horse").unwrap();
        assert!(hash.to_string().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let read = PasswordHash::parse(&hash.to_string()).unwrap();
        assert!(read.verify("correct horse"));
        for other in ["correct horsf", "", "correct horse ", &"x".repeat(1 << 20)] {
            assert!(!read.verify(other), "{:?}", other.get(..20));
        }
        assert_ne!(PasswordHash::of("correct horse").unwrap(), hash, "salts differ");
        assert_eq!(format!("{hash:?}"), "PasswordHash(…)");
    }

    #[test]
    fn checks_of_many_threads_share_their_memory() {
        let hash = PasswordHash::of("correct horse").unwrap();
        for _ in 0..8 {
            let hash = hash.clone();
            assert!(std::thread::spawn(move || hash.verify("correct horse")).join().unwrap());
        }
        // Tests that run beside this one may check passwords, too.
        assert!((1..=4).contains(&BLOCKS.lock().len()));
    }

    #[test]
    fn too_short_and_too_long_passwords_are_rejected() {
        assert_eq!(PasswordHash::of(""), Err(PasswordError::Empty));
        assert_eq!(PasswordHash::of("pässwör"), Err(PasswordError::TooShort { found: 7 }));
        assert_eq!(PasswordHash::of(&"x".repeat(1025)), Err(PasswordError::TooLong { found: 1025 }));
        assert!(PasswordHash::of("pässwörd").is_ok());
    }

    #[test]
    fn recommended_parameters_are_the_minimum() {
        for good in ["m=47104,t=1,p=1", "m=19456,t=2,p=1", "m=12288,t=3,p=1", "m=9216,t=4,p=1", "m=7168,t=5,p=1"] {
            assert!(PasswordHash::parse(&with(good)).is_ok(), "{good}");
        }
        for weak in ["m=19456,t=1,p=1", "m=7167,t=9,p=1", "m=8,t=5000,p=1"] {
            assert!(matches!(PasswordHash::parse(&with(weak)), Err(PasswordError::Weak { .. })), "{weak}");
        }
        for costly in ["m=4194304,t=1,p=1", "m=65536,t=4000,p=1", "m=65536,t=3,p=255"] {
            assert!(matches!(PasswordHash::parse(&with(costly)), Err(PasswordError::Costly { .. })), "{costly}");
        }
        let short_output = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNo";
        assert!(matches!(PasswordHash::parse(short_output), Err(PasswordError::Weak { .. })));
    }

    #[test]
    fn unsupported_hashes_are_rejected_without_showing_them() {
        let bcrypt = "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW";
        for bad in ["", "hunter2", bcrypt, &with("m=19456,t=2,p=1").replace("id$", "i$"), &with("m=x")] {
            let error = PasswordHash::parse(bad).unwrap_err();
            assert!(matches!(error, PasswordError::NotArgon2id { .. }), "{bad}: {error}");
            assert!(bad.is_empty() || !error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn bcrypt_hashes_are_accepted_within_cost_limits() {
        // From the test vectors of OpenBSD's and other implementations.
        let hash = "$2b$10$WvvTPHKwdBJ3uk0Z37EMR.hLA2W6N9AEBhEgrAOljy2Ae5MtaSIUi";
        let made = bcrypt::hash("correct horse", 10).unwrap();
        let read = AdminPassword::parse(&made).unwrap();
        assert!(read.verify("correct horse") && !read.verify("correct horsf") && !read.verify(""));
        assert!(AdminPassword::parse(hash).is_ok());
        assert!(matches!(AdminPassword::parse(&hash.replace("$10$", "$09$")), Err(PasswordError::Weak { .. })));
        assert!(matches!(AdminPassword::parse(&hash.replace("$10$", "$16$")), Err(PasswordError::Costly { .. })));
        for bad in [&hash[..59], &hash.replace("$10$", "$1$"), "$2b$", "$2b$10$x"] {
            assert!(matches!(AdminPassword::parse(bad), Err(PasswordError::NotBcrypt)), "{bad}");
        }
        assert_eq!(format!("{:?}", read), "Bcrypt(BcryptHash(…))");
    }
}
