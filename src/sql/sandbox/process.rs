//! One child process: started, spoken to with a deadline, ended.
//!
//! Invariant: the child is killed at the latest when its [`Process`] is dropped, and whoever kills it says why first,
//! so that its end is told as a timeout, a wish, or a death of its own.

use parking_lot::{Mutex, MutexGuard};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow::buffer::Buffer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, kill_process_group};

use super::SandboxOptions;
use super::error::SandboxError;
use super::frame::{self, HEAD_BYTES, Kind};
use super::task::SqlErrorKind;

/// What a child said on stderr is kept up to here, in bytes.
const LAST_WORDS_BYTES_MAX: usize = 4_096;
/// Size that is asked for pipes on which columns go, in bytes: as much as the system gives without privileges.
const PIPE_BYTES: usize = 1 << 20;
/// The subcommand that a child is.
const SUBCOMMAND: &str = "sql-child";

/// A running child and the pipes to it.
pub struct Process {
    handle: Arc<Handle>,
    to: ChildStdin,
    from: ChildStdout,
    said: ChildStderr,
    folder: Option<PathBuf>,
    /// The end of what it said on stderr.
    words: String,
    at_end: Option<AtEnd>,
}

/// What is done with a child's folder once the child is dead.
pub type AtEnd = Box<dyn FnOnce(&Path) + Send>;

/// What can end a child from any thread.
pub struct Handle {
    child: Mutex<std::process::Child>,
    pid: u32,
    cancelled: AtomicBool,
}

impl Handle {
    fn child(&self) -> MutexGuard<'_, std::process::Child> {
        self.child.lock()
    }

    /// Kills the child if it lives. The lock keeps its id from being another's.
    fn kill(&self) {
        let mut child = self.child();
        if matches!(child.try_wait(), Ok(None)) {
            let group = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
            // It may have ended just now.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = child.kill();
        }
    }

    /// Kills it as somebody's wish.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.kill();
    }
}

impl Process {
    /// Starts a child in `folder`; one without a folder evaluates expressions. Its time-zone data is in `zones`. Doesn't wait
    /// until it is ready.
    ///
    /// # Errors
    /// The program can't be started.
    pub fn start(options: &SandboxOptions, folder: Option<PathBuf>, zones: &Path) -> Result<Self, SandboxError> {
        let failed = |reason: String| SandboxError::Start { reason };
        let mut command = Command::new(&options.program);
        command
            .arg(SUBCOMMAND)
            .args(arguments(options))
            .arg(zones)
            .args(folder.is_none().then_some("--expressions"))
            .env_clear()
            .envs(options.environment.iter().map(|(name, value)| (name, value)))
            .env(super::zones::VARIABLE, zones)
            .current_dir(folder.as_deref().unwrap_or(Path::new("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn().map_err(|error| failed(format!("`{}`: {error}", options.program.display())))?;
        let pid = child.id();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let handle = Arc::new(Handle { child: Mutex::new(child), pid, cancelled: AtomicBool::new(false) });
        let (Some(to), Some(from), Some(said)) = pipes else {
            handle.kill();
            return Err(failed("it has no pipes".to_owned()));
        };
        let process = Self { handle, to, from, said, folder, words: String::new(), at_end: None };
        process.never_block().map_err(|error| failed(format!("setting up its pipes: {error}")))?;
        if process.folder.is_none() {
            // Fewer switches between the two for each batch; smaller pipes do as well.
            let _ = fcntl_setpipe_size(&process.to, PIPE_BYTES);
            let _ = fcntl_setpipe_size(&process.from, PIPE_BYTES);
        }
        Ok(process)
    }

    fn never_block(&self) -> io::Result<()> {
        for pipe in [self.to.as_fd(), self.from.as_fd(), self.said.as_fd()] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.handle.pid
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub fn handle(&self) -> Arc<Handle> {
        Arc::clone(&self.handle)
    }

    /// Whether it has ended or closed its side.
    pub fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.to, PollFlags::empty())];
        let polled = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        polled.is_err() || fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The deadline passes, or the child ends: it is dead then.
    pub fn send(&mut self, kind: Kind, content: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        let head = frame::head(kind, content.len()).filter(|_| content.len() <= frame::MESSAGE_BYTES_MAX);
        let Some(head) = head else {
            let message = format!("{} bytes for one query; at most {}", content.len(), frame::MESSAGE_BYTES_MAX);
            return Err(SandboxError::sql(SqlErrorKind::TooLarge, message));
        };
        self.write(&head, deadline)?;
        self.write(content, deadline)
    }

    /// Sends a frame of columns.
    ///
    /// # Errors
    /// As for [`Process::send`].
    pub fn send_columns(&mut self, parts: &[Buffer], deadline: Instant) -> Result<(), SandboxError> {
        let length = parts.iter().map(Buffer::len).sum();
        let head = frame::head(Kind::Columns, length).filter(|_| length <= frame::INPUT_BYTES_MAX);
        let Some(head) = head else {
            let message = format!("{length} bytes of columns; at most {}", frame::INPUT_BYTES_MAX);
            return Err(SandboxError::sql(SqlErrorKind::TooLarge, message));
        };
        self.write(&head, deadline)?;
        parts.iter().try_for_each(|part| self.write(part, deadline))
    }

    fn write(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        self.transfer(PollFlags::OUT, bytes.len(), deadline, |process, at| process.to.write(&bytes[at..]))
    }

    /// Moves `length` bytes through a pipe, as many as `step` can at a time from the byte that it is given.
    fn transfer(
        &mut self,
        flags: PollFlags,
        length: usize,
        deadline: Instant,
        mut step: impl FnMut(&mut Self, usize) -> io::Result<usize>,
    ) -> Result<(), SandboxError> {
        let mut at = 0;
        while at < length {
            match step(self, at) {
                Ok(0) => return Err(self.ended()),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let pipe = if flags == PollFlags::OUT { self.to.as_fd() } else { self.from.as_fd() };
                    if !wait(&pipe, flags, deadline) {
                        return Err(self.expired());
                    }
                }
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// Receives a frame of at most `max` bytes that is one of `expected`; messages have their own bound.
    ///
    /// # Errors
    /// The deadline passes, the child ends, or it sends something else: it is dead then.
    pub fn receive(&mut self, expected: &[(Kind, usize)], deadline: Instant) -> Result<(Kind, Vec<u8>), SandboxError> {
        let (kind, length) = self.receive_head(deadline)?;
        let bound = expected.iter().find(|(wanted, _)| *wanted == kind).map(|(_, max)| *max);
        match bound {
            Some(max) if length <= max => {}
            Some(_) | None => {
                return Err(
                    self.nonsense(format!("a frame {kind:?} of {length} bytes"), "a frame of the kind asked for")
                );
            }
        }
        let mut content = vec![0; length];
        self.fill(&mut content, deadline)?;
        Ok((kind, content))
    }

    /// Receives the first bytes of a frame.
    ///
    /// # Errors
    /// As for [`Process::receive`].
    pub fn receive_head(&mut self, deadline: Instant) -> Result<(Kind, usize), SandboxError> {
        let mut head = [0; HEAD_BYTES];
        self.fill(&mut head, deadline)?;
        frame::parse_head(head).map_err(|found| self.nonsense(found, "a frame"))
    }

    /// Receives bytes of a frame.
    ///
    /// # Errors
    /// The deadline passes, or the child ends: it is dead then.
    pub fn fill(&mut self, into: &mut [u8], deadline: Instant) -> Result<(), SandboxError> {
        self.transfer(PollFlags::IN, into.len(), deadline, |process, at| process.from.read(&mut into[at..]))
    }

    /// Kills the child, since it says what no child says.
    pub fn nonsense(&self, found: String, expected: &'static str) -> SandboxError {
        self.handle.kill();
        SandboxError::Protocol { found, expected }
    }

    fn expired(&self) -> SandboxError {
        self.handle.kill();
        if self.handle.cancelled.load(Ordering::SeqCst) {
            return cancelled();
        }
        SandboxError::sql(SqlErrorKind::Timeout, "the query took too long and was ended")
    }

    /// Tells why a child that closed its pipe has ended.
    fn ended(&mut self) -> SandboxError {
        if self.handle.cancelled.load(Ordering::SeqCst) {
            return cancelled();
        }
        let status = {
            // A dying child closes its pipes after its fate is sealed; the signal only ends one that lingers.
            let mut child = self.handle.child();
            let _ = child.kill();
            child.wait()
        };
        let words = self.last_words();
        match status {
            Ok(status) => fate(status, words),
            Err(error) => SandboxError::sql(SqlErrorKind::Ended, format!("the query's process is gone: {error}")),
        }
    }

    /// The end of what it said on stderr.
    pub fn last_words(&mut self) -> &str {
        let mut words = Vec::new();
        let mut piece = [0; LAST_WORDS_BYTES_MAX];
        while let Ok(count @ 1..) = self.said.read(&mut piece) {
            words.extend_from_slice(&piece[..count]);
            words.drain(..words.len().saturating_sub(LAST_WORDS_BYTES_MAX));
        }
        if !words.is_empty() {
            self.words = String::from_utf8_lossy(&words).trim().to_owned();
        }
        &self.words
    }

    /// What is done with the folder before it is removed; nothing, if the child isn't ended by [`Process::end`].
    pub fn at_end(&mut self, at_end: AtEnd) {
        self.at_end = Some(at_end);
    }

    /// Kills the child, waits for its end, and removes its folder.
    pub fn end(mut self) {
        self.handle.kill();
        let ended = self.handle.child().wait();
        let Some(folder) = self.folder.take() else { return };
        if let (Some(at_end), Ok(_)) = (self.at_end.take(), ended) {
            at_end(&folder);
        }
        if let Err(error) = std::fs::remove_dir_all(&folder) {
            tracing::warn!(folder = %folder.display(), %error, "a folder of a query can't be removed");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.handle.kill();
    }
}

/// The words for a child, in the order in which [`super::child`] takes them.
fn arguments(options: &SandboxOptions) -> [OsString; 3] {
    [options.memory_bytes.to_string(), options.threads.to_string(), std::process::id().to_string()].map(OsString::from)
}

fn cancelled() -> SandboxError {
    SandboxError::sql(SqlErrorKind::Cancelled, "the query was cancelled")
}

fn fate(status: ExitStatus, words: &str) -> SandboxError {
    const BLOWN: &[&str] = &["bad_alloc", "memory allocation of", "Out of Memory", "allocate", "length_error"];
    let out_of_memory = || {
        SandboxError::sql(
            SqlErrorKind::OutOfMemory,
            "the query needs more memory than it may have; its process was ended",
        )
    };
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => {
            SandboxError::sql(SqlErrorKind::Timeout, "the query took more processor time than it may have")
        }
        // Nobody here killed it: that was the system, for want of memory.
        Some(signal) if signal == Signal::KILL.as_raw() => out_of_memory(),
        Some(_) if BLOWN.iter().any(|word| words.contains(word)) => out_of_memory(),
        Some(signal) => SandboxError::sql(SqlErrorKind::Ended, format!("its process ended ({})", signal_name(signal))),
        None => {
            let code = status.code().unwrap_or_default();
            SandboxError::sql(SqlErrorKind::Ended, format!("its process ended (status {code})"))
        }
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        _ if signal == Signal::ABORT.as_raw() => "it aborted".to_owned(),
        _ if signal == Signal::SEGV.as_raw() => {
            "it overflowed its stack, or reached for memory that is not its own".to_owned()
        }
        other => format!("signal {other}"),
    }
}

/// Waits until the pipe can be used or is closed; false at the deadline.
fn wait(pipe: &impl AsFd, flags: PollFlags, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let Ok(timeout) = Timespec::try_from(left) else { return false };
        let mut fds = [PollFd::new(pipe, flags)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => {}
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}
