//! One child process: start, messages with deadlines, end.
//!
//! Invariant: dropping a [`Process`] kills the child. The reason of a kill is recorded before it, so that an exit is
//! reported as a timeout, a cancellation, or a crash.

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
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, kill_process_group};

use super::SandboxOptions;
use super::error::{SandboxError, SqlErrorKind};
use super::frame::{self, FrameKind, HEAD_BYTES};
use super::greeting::{GREETING_BYTES_MAX, Greeting};

/// Maximum number of bytes kept from the end of a child's stderr.
const STDERR_BYTES_MAX: usize = 4_096;
/// Size of the pipes for columns, in bytes: the maximum without privileges.
const PIPE_BYTES: usize = 1 << 20;

/// A running child and the pipes to it.
pub struct Process {
    handle: Arc<KillHandle>,
    program: PathBuf,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    folder: Option<PathBuf>,
    stderr_tail: String,
    on_exit: Option<ExitHook>,
}

/// Called with a child's folder after its exit.
pub type ExitHook = Box<dyn FnOnce(&Path) + Send>;

/// Kills a child from any thread.
pub struct KillHandle {
    child: Mutex<std::process::Child>,
    pid: u32,
    cancelled: AtomicBool,
}

impl KillHandle {
    /// Kills the child if it runs. The lock keeps its pid from being reused.
    fn kill(&self) {
        let mut child = self.child.lock();
        if matches!(child.try_wait(), Ok(None)) {
            let group = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
            // It may have exited just now.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = child.kill();
        }
    }

    /// Kills it; its operation fails as cancelled.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.kill();
    }
}

impl Process {
    /// Starts a child in `folder`; without a folder, one that evaluates expressions. `zones` holds its time-zone data.
    /// Doesn't wait until it is ready.
    ///
    /// # Errors
    /// The program can't be started.
    pub fn start(options: &SandboxOptions, folder: Option<PathBuf>, zones: &Path) -> Result<Self, SandboxError> {
        let failed = |reason: String| SandboxError::Start { reason };
        let program = options.program.find().map_err(failed)?;
        let mut command = Command::new(program);
        command
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
        let mut child = command.spawn().map_err(|error| failed(format!("`{}`: {error}", program.display())))?;
        let pid = child.id();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let handle = Arc::new(KillHandle { child: Mutex::new(child), pid, cancelled: AtomicBool::new(false) });
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            handle.kill();
            return Err(failed("it has no pipes".to_owned()));
        };
        let program = program.to_owned();
        let process =
            Self { handle, program, stdin, stdout, stderr, folder, stderr_tail: String::new(), on_exit: None };
        process.set_nonblocking().map_err(|error| failed(format!("setting up its pipes: {error}")))?;
        if process.folder.is_none() {
            // Saves context switches for each batch; smaller pipes work too.
            let _ = fcntl_setpipe_size(&process.stdin, PIPE_BYTES);
            let _ = fcntl_setpipe_size(&process.stdout, PIPE_BYTES);
        }
        Ok(process)
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        for pipe in [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()] {
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

    pub fn handle(&self) -> Arc<KillHandle> {
        Arc::clone(&self.handle)
    }

    /// Whether it has exited or closed its stdin.
    pub fn has_exited(&self) -> bool {
        let mut fds = [PollFd::new(&self.stdin, PollFlags::empty())];
        let polled = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        polled.is_err() || fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The deadline passes, or the child exits; afterwards it is dead.
    pub fn send(&mut self, kind: FrameKind, content: &[u8], deadline: Instant) -> Result<(), SandboxError> {
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
    /// Same as for [`Process::send`].
    pub fn send_columns(&mut self, parts: &[Buffer], deadline: Instant) -> Result<(), SandboxError> {
        let length = parts.iter().map(Buffer::len).sum();
        let head = frame::head(FrameKind::Columns, length).filter(|_| length <= frame::INPUT_BYTES_MAX);
        let Some(head) = head else {
            let message = format!("{length} bytes of columns; at most {}", frame::INPUT_BYTES_MAX);
            return Err(SandboxError::sql(SqlErrorKind::TooLarge, message));
        };
        self.write(&head, deadline)?;
        parts.iter().try_for_each(|part| self.write(part, deadline))
    }

    fn write(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        self.transfer(PollFlags::OUT, bytes.len(), deadline, |process, at| process.stdin.write(&bytes[at..]))
    }

    /// Transfers `length` bytes through a pipe; `step` gets the offset and returns the bytes that it transferred.
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
                Ok(0) => return Err(self.exit_error()),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let pipe = if flags == PollFlags::OUT { self.stdin.as_fd() } else { self.stdout.as_fd() };
                    if !wait(&pipe, flags, deadline) {
                        return Err(self.timeout_error());
                    }
                }
                Err(_) => return Err(self.exit_error()),
            }
        }
        Ok(())
    }

    /// Receives a frame of one of the `expected` kinds, each with its largest length.
    ///
    /// # Errors
    /// The deadline passes, the child exits, or it sends something else; afterwards it is dead.
    pub fn receive(
        &mut self,
        expected: &[(FrameKind, usize)],
        deadline: Instant,
    ) -> Result<(FrameKind, Vec<u8>), SandboxError> {
        let (kind, length) = self.receive_head(deadline)?;
        if !expected.iter().any(|(wanted, max)| *wanted == kind && length <= *max) {
            let found = format!("a frame {kind:?} of {length} bytes");
            return Err(self.protocol_error(found, "a frame of the requested kind"));
        }
        let mut content = vec![0; length];
        self.fill(&mut content, deadline)?;
        Ok((kind, content))
    }

    /// Receives the head of a frame.
    ///
    /// # Errors
    /// Same as for [`Process::receive`].
    pub fn receive_head(&mut self, deadline: Instant) -> Result<(FrameKind, usize), SandboxError> {
        let mut head = [0; HEAD_BYTES];
        self.fill(&mut head, deadline)?;
        frame::parse_head(head).map_err(|found| self.protocol_error(found, "a frame"))
    }

    /// Receives bytes of a frame.
    ///
    /// # Errors
    /// The deadline passes, or the child exits; afterwards it is dead.
    pub fn fill(&mut self, into: &mut [u8], deadline: Instant) -> Result<(), SandboxError> {
        self.transfer(PollFlags::IN, into.len(), deadline, |process, at| process.stdout.read(&mut into[at..]))
    }

    /// Kills the child, which broke the protocol.
    pub fn protocol_error(&self, found: String, expected: &'static str) -> SandboxError {
        self.handle.kill();
        SandboxError::Protocol { found, expected }
    }

    /// Receives the greeting, a child's first frame.
    ///
    /// # Errors
    /// Same as for [`Process::receive`]; the program is of another build.
    pub fn receive_greeting(&mut self, deadline: Instant) -> Result<(), SandboxError> {
        let (_, bytes) = self.receive(&[(FrameKind::Message, GREETING_BYTES_MAX)], deadline)?;
        Greeting::check(&bytes).map_err(|found| {
            self.handle.kill();
            SandboxError::OtherBuild { program: self.program.display().to_string(), found }
        })
    }

    fn timeout_error(&self) -> SandboxError {
        self.handle.kill();
        if self.handle.cancelled.load(Ordering::SeqCst) {
            return cancelled();
        }
        SandboxError::sql(SqlErrorKind::Timeout, "the query exceeded its time limit and was ended")
    }

    /// Kills a child that closed its pipe, and reports why it exited.
    fn exit_error(&mut self) -> SandboxError {
        if self.handle.cancelled.load(Ordering::SeqCst) {
            return cancelled();
        }
        let status = {
            // A crashing child closes its pipes after its status is set; the signal only ends one that hangs.
            let mut child = self.handle.child.lock();
            let _ = child.kill();
            child.wait()
        };
        let stderr = self.stderr_tail();
        match status {
            Ok(status) => exit_status_error(status, stderr),
            Err(error) => SandboxError::sql(SqlErrorKind::Ended, format!("the query's process is gone: {error}")),
        }
    }

    /// The end of its stderr.
    pub fn stderr_tail(&mut self) -> &str {
        let mut tail = Vec::new();
        let mut piece = [0; STDERR_BYTES_MAX];
        while let Ok(count @ 1..) = self.stderr.read(&mut piece) {
            tail.extend_from_slice(&piece[..count]);
            tail.drain(..tail.len().saturating_sub(STDERR_BYTES_MAX));
        }
        if !tail.is_empty() {
            self.stderr_tail = String::from_utf8_lossy(&tail).trim().to_owned();
        }
        &self.stderr_tail
    }

    /// Sets a hook that [`Process::end`] calls before it removes the folder.
    pub fn on_exit(&mut self, hook: ExitHook) {
        self.on_exit = Some(hook);
    }

    /// Kills the child, waits for its exit, and removes its folder.
    pub fn end(mut self) {
        self.handle.kill();
        let exited = self.handle.child.lock().wait();
        let Some(folder) = self.folder.take() else { return };
        if let (Some(hook), Ok(_)) = (self.on_exit.take(), exited) {
            hook(&folder);
        }
        if let Err(error) = std::fs::remove_dir_all(&folder) {
            tracing::warn!(folder = %folder.display(), %error, "query folder not removed");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.handle.kill();
    }
}

/// Positional arguments of the program.
fn arguments(options: &SandboxOptions) -> [OsString; 3] {
    [options.memory_bytes.to_string(), options.threads.to_string(), std::process::id().to_string()].map(OsString::from)
}

fn cancelled() -> SandboxError {
    SandboxError::sql(SqlErrorKind::Cancelled, "the query was cancelled")
}

fn exit_status_error(status: ExitStatus, stderr: &str) -> SandboxError {
    const NO_MEMORY: &[&str] = &["bad_alloc", "memory allocation of", "Out of Memory", "allocate", "length_error"];
    let out_of_memory = || {
        SandboxError::sql(
            SqlErrorKind::OutOfMemory,
            "the query needs more memory than its limit; its process was ended",
        )
    };
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => {
            SandboxError::sql(SqlErrorKind::Timeout, "the query exceeded its processor time")
        }
        // This process didn't kill it, so presumably the kernel's OOM killer did.
        Some(signal) if signal == Signal::KILL.as_raw() => out_of_memory(),
        Some(_) if NO_MEMORY.iter().any(|word| stderr.contains(word)) => out_of_memory(),
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
        _ if signal == Signal::SEGV.as_raw() => "it overflowed its stack or accessed invalid memory".to_owned(),
        other => format!("signal {other}"),
    }
}

/// Waits until the pipe is ready or closed; false at the deadline.
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
