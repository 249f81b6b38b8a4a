//! `lakemill completions` and `lakemill man`, generated from the definition of the command line.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::Args;
use super::command_error::CommandError;

/// Prints the completions of a shell.
///
/// # Errors
/// If stdout can't be written.
pub fn completions(shell: Shell) -> Result<bool, CommandError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible(), "lakemill", &mut text);
    std::io::stdout().lock().write_all(&text).map_err(|error| error.to_string())?;
    Ok(true)
}

/// The command line without hidden commands.
fn visible() -> clap::Command {
    let whole = Args::command();
    let shown = clap::Command::new("lakemill").version(env!("CARGO_PKG_VERSION")).args(whole.get_arguments());
    shown.subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()))
}

/// Prints the page of the program, or writes it and one for each command to `folder`.
///
/// # Errors
/// If a page can't be written.
pub fn pages(folder: Option<&Path>) -> Result<bool, CommandError> {
    match folder {
        None => {
            let mut page = Vec::new();
            Man::new(Args::command().disable_help_subcommand(true))
                .render(&mut page)
                .and_then(|()| std::io::stdout().lock().write_all(&page))
                .map_err(|error| error.to_string())?;
        }
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Args::command(), folder))
            .map_err(|error| format!("--out `{}`: {error}", folder.display()))?,
    }
    Ok(true)
}
