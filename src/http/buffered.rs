//! A client's TCP connection with a buffer of bytes that were read but not yet consumed.
//!
//! Invariant: no read and no write waits longer than its clock allows; bytes past a request stay in the buffer for the
//! next one.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::limits::GuardLimits;

/// Read at a time while a head or small body arrives, in bytes.
const PIECE_BYTES: usize = 4 << 10;
/// Shortest timeout that is set on a socket; zero would mean none.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// Limits the time of a request's body. Counts only the time spent waiting for the client, so that a slow handler doesn't
/// use it up.
#[derive(Debug)]
struct BodyClock {
    waited: Duration,
    received: u64,
    declared: u64,
    anonymous: bool,
    limits: Arc<GuardLimits>,
}

impl BodyClock {
    fn time_left(&self) -> Option<Duration> {
        let bytes = self.declared.max(self.received);
        let by_size = Duration::from_secs_f64(bytes as f64 / self.limits.body_rate_min.max(1) as f64);
        let time_max = self.limits.body_time_base.saturating_add(by_size);
        let time_max = if self.anonymous { time_max.min(self.limits.anonymous_body_time_max) } else { time_max };
        time_max.checked_sub(self.waited)
    }
}

/// The read half. The socket is non-blocking while no request is served, otherwise blocking with timeouts.
#[derive(Debug)]
pub(super) struct BufferedConnection {
    stream: Arc<TcpStream>,
    buffer: Vec<u8>,
    start: usize,
    clock: Option<BodyClock>,
}

impl BufferedConnection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream: Arc::new(stream), buffer: Vec::new(), start: 0, clock: None }
    }

    /// Moves the buffer into a second reader of the connection; this one can still be written to and closed.
    pub(super) fn split_reader(&mut self) -> Self {
        let buffer = std::mem::take(&mut self.buffer);
        Self { stream: Arc::clone(&self.stream), buffer, start: std::mem::take(&mut self.start), clock: None }
    }

    pub(super) fn stream(&self) -> &Arc<TcpStream> {
        &self.stream
    }

    /// Bytes that were read but not yet consumed.
    pub(super) fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads once into the buffer, without waiting if the socket doesn't. 0 is the end.
    pub(super) fn receive(&mut self) -> io::Result<usize> {
        self.compact();
        let before = self.buffer.len();
        self.buffer.resize(before + PIECE_BYTES, 0);
        let read = (&*self.stream).read(&mut self.buffer[before..]);
        self.buffer.truncate(before + read.as_ref().copied().unwrap_or(0));
        read
    }

    /// Frees the memory of consumed bytes.
    pub(super) fn compact(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.is_empty() {
            self.buffer = Vec::new();
        }
    }

    /// Begins a body: reads wait from now on, within the body's time. `declared`: its size, 0 if unknown. `anonymous`:
    /// whether the sender has no credentials.
    pub(super) fn begin_body(&mut self, declared: u64, anonymous: bool, limits: Arc<GuardLimits>) {
        self.clock = Some(BodyClock { waited: Duration::ZERO, received: 0, declared, anonymous, limits });
    }

    pub(super) fn end_body(&mut self) {
        self.clock = None;
    }

    /// Reads directly from the socket, within the body's time; the buffer must be empty.
    fn read_timed(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(clock) = &mut self.clock else { return Err(io::Error::other("no body is being read")) };
        loop {
            let left = clock.time_left().ok_or(ErrorKind::TimedOut)?.min(clock.limits.body_stall_max).max(TIMEOUT_MIN);
            self.stream.set_read_timeout(Some(left))?;
            let before = Instant::now();
            let read = (&*self.stream).read(out);
            clock.waited += before.elapsed();
            match read {
                Ok(read) => {
                    clock.received += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for BufferedConnection {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.buffered().is_empty() {
            return self.read_timed(out);
        }
        let read = self.buffered().len().min(out.len());
        out[..read].copy_from_slice(&self.buffered()[..read]);
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for BufferedConnection {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.buffered().is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.start = 0;
            buffer.resize(PIECE_BYTES, 0);
            let read = self.read_timed(&mut buffer);
            buffer.truncate(read.as_ref().copied().unwrap_or(0));
            self.buffer = buffer;
            read?;
        }
        Ok(self.buffered())
    }

    fn consume(&mut self, used: usize) {
        self.start += used;
    }
}

/// The write half of one response. Writing fails if the client reads nothing for too long, or too slowly.
pub(super) struct ClientWriter<'a> {
    stream: &'a TcpStream,
    limits: &'a GuardLimits,
    waited: Duration,
    written: u64,
}

impl<'a> ClientWriter<'a> {
    pub(super) fn new(stream: &'a TcpStream, limits: &'a GuardLimits) -> Self {
        Self { stream, limits, waited: Duration::ZERO, written: 0 }
    }

    /// Bytes written to the socket.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

impl Write for ClientWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let by_size = Duration::from_secs_f64(self.written as f64 / self.limits.write_rate_min.max(1) as f64);
        let allowed = self.limits.write_stall_max.saturating_add(by_size);
        let left = allowed.checked_sub(self.waited).ok_or(ErrorKind::TimedOut)?;
        self.stream.set_write_timeout(Some(left.min(self.limits.write_stall_max).max(TIMEOUT_MIN)))?;
        let before = Instant::now();
        let mut stream = self.stream;
        let written = stream.write(bytes);
        self.waited += before.elapsed();
        match written {
            Ok(written) => {
                self.written += written as u64;
                Ok(written)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::TimedOut.into()),
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_past_a_request_stay_for_the_next_one() {
        let (mut client, server) = pair();
        client.write_all(b"one two three").unwrap();
        let mut connection = BufferedConnection::new(server);
        while connection.buffered().len() < 13 {
            connection.receive().unwrap();
        }
        connection.consume(4);
        connection.begin_body(3, false, Arc::new(GuardLimits::default()));
        let mut out = [0; 3];
        connection.read_exact(&mut out).unwrap();
        connection.end_body();
        connection.compact();
        assert_eq!((&out, connection.buffered()), (b"two", &b" three"[..]));
    }

    #[test]
    fn dripping_client_times_out_although_it_never_stalls() {
        let (mut client, server) = pair();
        let limits = GuardLimits {
            body_stall_max: Duration::from_secs(30),
            body_time_base: Duration::from_millis(50),
            ..GuardLimits::default()
        };
        let mut connection = BufferedConnection::new(server);
        connection.begin_body(1_000, false, Arc::new(limits));
        let drip = std::thread::spawn(move || {
            while client.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let mut out = Vec::new();
        let error = connection.read_to_end(&mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(!out.is_empty());
        drop(connection);
        drip.join().unwrap();
    }
}
