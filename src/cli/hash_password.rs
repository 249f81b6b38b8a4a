//! `lakemill hash-password`: reads a password and prints its hash.

use std::io::{BufRead, IsTerminal, Write};

use super::command_error::CommandError;
use crate::adapters::password::{PASSWORD_BYTES_MAX, PasswordHash};

/// Reads a password and prints only its hash on stdout.
///
/// # Errors
/// If the password can't be read or used; the message never contains it.
pub fn run(out: &mut dyn Write) -> Result<bool, CommandError> {
    let stdin = std::io::stdin();
    let password = if stdin.is_terminal() { ask()? } else { first_line(stdin.lock())? };
    let hash = PasswordHash::of(&password).map_err(|e| e.to_string())?;
    writeln!(out, "{hash}").map_err(|e| e.to_string())?;
    Ok(true)
}

fn ask() -> Result<String, CommandError> {
    let prompt = |text: &str| rpassword::prompt_password(text).map_err(|e| format!("reading the password: {e}"));
    let password = prompt("Password: ")?;
    if prompt("Repeat it: ")? != password {
        return Err(CommandError::Other("the passwords don't match".into()));
    }
    Ok(password)
}

/// The first line without its line ending.
fn first_line(from: impl BufRead) -> Result<String, String> {
    let mut line = Vec::new();
    // Enough to detect that it is too long.
    let read = from.take(PASSWORD_BYTES_MAX as u64 + 3).read_until(b'\n', &mut line);
    read.map_err(|e| format!("reading the password: {e}"))?;
    let mut line = String::from_utf8(line).map_err(|_| "the password is not UTF-8".to_owned())?;
    if line.ends_with('\n') {
        line.pop();
        if line.ends_with('\r') {
            line.pop();
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_ending_is_stripped() {
        for (input, line) in [
            ("a pass word\nmore", "a pass word"),
            ("crlf\r\n", "crlf"),
            ("no end", "no end"),
            (" blanks \t\n", " blanks \t"),
            ("lone\r", "lone\r"),
            ("", ""),
        ] {
            assert_eq!(first_line(input.as_bytes()).unwrap(), line);
        }
        assert!(first_line("x".repeat(5_000).as_bytes()).unwrap().len() > PASSWORD_BYTES_MAX);
        assert!(first_line(&b"\xff\xfe"[..]).is_err());
    }
}
