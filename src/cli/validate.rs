//! stub
use crate::domain::problem::Problem;
use crate::ports::Expressions;
use std::io::{self, Write};
use std::path::Path;
pub fn run(_f: &Path, _e: &dyn Expressions, _o: &mut dyn Write) -> io::Result<bool> {
    Ok(false)
}
pub fn report(_f: &Path, _t: &str, p: &[Problem], o: &mut dyn Write) -> io::Result<()> {
    for p in p {
        writeln!(o, "{p:?}")?;
    }
    Ok(())
}
