//! Processes started by tests. They end with the tests, however the tests end.
//!
//! A separate process, the reaper, learns of each through a pipe. When the pipe closes, because the tests ended or were
//! killed, it kills the remaining process groups. The kernel's parent-death signal (`PR_SET_PDEATHSIG`) would not do:
//! it is tied to the thread that spawned, and threads of tests are short-lived.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// Reads `group ID` and `folder PATH` until its input ends; then kills the groups and removes the folders.
///
/// An id may belong to another process, or to the group of one that has ended, by then. The start time of the group's
/// first process tells them apart; once that has ended, the session does: the tests' processes stay in the session of the
/// tests. While a group has members, its id is not reused.
pub const REAPER: &str = r#"
trap '' INT TERM HUP
started() {
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
    set -- ${stat##*) }
    shift 19
    printf '%s' "$1"
}
groups= folders=
while read -r what value; do
    case $what in
    group) groups="$groups $value:$(started "$value")" ;;
    folder) folders="$folders$value
" ;;
    esac
done
session= ours=' '
{ read -r stat <"/proc/$$/stat"; } && set -- ${stat##*) } && session=$4
for file in /proc/[0-9]*/stat; do
    { read -r stat <"$file"; } 2>/dev/null || continue
    set -- ${stat##*) }
    [ "$4" != "$session" ] || ours="$ours$3 "
done
for entry in $groups; do
    id=${entry%%:*} now=$(started "${entry%%:*}")
    case $ours in *" $id "*) ;; *) continue ;; esac
    [ -n "$now" ] && [ "$now" != "${entry#*:}" ] || kill -s KILL -- "-$id" 2>/dev/null
done
printf '%s' "$folders" | while read -r folder; do rm -rf -- "$folder"; done
"#;

/// Time limit of all tests, in seconds, unless [`TIME_MAX_NAME`] sets another.
const TIME_MAX_SECONDS: u64 = 7_200;
const TIME_MAX_NAME: &str = "LAKEMILL_TEST_SECONDS_MAX";

static REAPER_PROCESS: LazyLock<Mutex<Child>> = LazyLock::new(|| {
    let time_max = std::env::var(TIME_MAX_NAME).ok().and_then(|text| text.parse().ok()).unwrap_or(TIME_MAX_SECONDS);
    // Ends the run with its processes if a test hangs nevertheless.
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(time_max));
        let _ = writeln!(io::stderr(), "the tests took longer than {time_max} s ({TIME_MAX_NAME}) and are ended");
        std::process::abort();
    });
    let mut reaper = Command::new("sh");
    reaper.args(["-c", REAPER, "reaper"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Mutex::new(reaper.current_dir("/").process_group(0).spawn().unwrap())
});

fn send_to_reaper(line: &str) {
    // The pipe is intact even if a test panicked.
    let mut reaper = REAPER_PROCESS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    reaper.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Starts processes that the reaper kills when the tests' process has ended.
pub trait Reaped {
    /// Like [`Command::spawn`], in a group of its own.
    fn spawn_reaped(&mut self) -> io::Result<Child>;
    /// Like [`Command::output`].
    fn output_reaped(&mut self) -> io::Result<Output>;
}

impl Reaped for Command {
    fn spawn_reaped(&mut self) -> io::Result<Child> {
        LazyLock::force(&REAPER_PROCESS);
        let child = self.process_group(0).spawn()?;
        send_to_reaper(&format!("group {}", child.id()));
        Ok(child)
    }

    fn output_reaped(&mut self) -> io::Result<Output> {
        self.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn_reaped()?.wait_with_output()
    }
}

/// Removes the folder when the tests' process has ended: for folders that no value owns.
pub fn remove_at_end(folder: &Path) {
    send_to_reaper(&format!("folder {}", folder.display()));
}
