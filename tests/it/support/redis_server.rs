//! A Redis server of a test, to be killed, paused, filled and restarted.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use lakemill::adapters::redis::{RedisKv, RedisOptions};
use redis::{Connection, FromRedisValue};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::children::Reaped as _;

/// Longest wait for a server to start or stop.
const DEADLINE: Duration = Duration::from_secs(30);
/// Ports to try: another program may take one between its choice and the server's start.
const PORTS_TRIED: usize = 20;

/// A free port.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// A server on a free port, in a temporary folder. It ends when dropped.
pub struct RedisServer {
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl RedisServer {
    /// Without persistence.
    pub fn start() -> Self {
        Self::with(&["--appendonly", "no"])
    }

    /// Persists every write before it responds.
    pub fn durable() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// With settings as on the command line.
    pub fn with(settings: &[&str]) -> Self {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        for _ in 0..PORTS_TRIED {
            let folder = tempfile::tempdir().unwrap();
            let server = Self { folder, port: free_port(), settings: settings.clone(), child: Mutex::default() };
            if server.starts() {
                return server;
            }
        }
        panic!("no server would start");
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The product's key-value store on this server.
    pub fn kv(&self) -> RedisKv {
        RedisKv::open(&RedisOptions::new(self.url())).unwrap()
    }

    /// Like [`Self::kv`], with a response timeout.
    pub fn impatient(&self, timeout: Duration) -> RedisKv {
        let options =
            RedisOptions { connect_timeout: timeout, response_timeout: timeout, ..RedisOptions::new(self.url()) };
        RedisKv::open(&options).unwrap()
    }

    /// One command of another client, in words as in `redis-cli`.
    pub fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_ask(words).unwrap()
    }

    pub fn try_ask<T: FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.connect()?)
    }

    pub fn connect(&self) -> redis::RedisResult<Connection> {
        redis::Client::open(self.url())?.get_connection_with_timeout(DEADLINE)
    }

    /// kill -9.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.wait_for_end();
    }

    /// Like a stop of its service.
    pub fn stop(&self) {
        self.signal(Signal::TERM);
        self.wait_for_end();
    }

    /// Restarts it on the same port with its persisted data.
    pub fn start_again(&self) {
        assert!(self.starts(), "the server starts again on its port");
    }

    /// Restarts it on the same port without data.
    pub fn start_empty(&self) {
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { std::fs::remove_dir_all(path).unwrap() } else { std::fs::remove_file(path).unwrap() }
        }
        self.start_again();
    }

    /// Pauses the process until the value is dropped; connections stay open.
    pub fn pause(&self) -> Paused<'_> {
        self.signal(Signal::STOP);
        Paused(self)
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(child) = self.child.lock().unwrap().as_ref() {
            kill_process(Pid::from_child(child), signal).unwrap();
        }
    }

    fn wait_for_end(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.wait().unwrap();
        }
    }

    /// Whether it runs and is ours: another may listen on the port.
    fn starts(&self) -> bool {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--save", "", "--dir"]);
        command.arg(self.folder.path()).args(["--logfile", "redis.log"]).args(&self.settings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn_reaped().unwrap();
        let pid = child.id();
        *self.child.lock().unwrap() = Some(child);
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline {
            if self.child.lock().unwrap().as_mut().unwrap().try_wait().unwrap().is_some() {
                return false;
            }
            // While it loads its data it answers only INFO.
            let ready = self.try_ask::<()>(&["PING"]).and_then(|()| self.try_ask::<String>(&["INFO", "server"]));
            match ready {
                Ok(info) => return info.contains(&format!("process_id:{pid}\r\n")),
                // A server with a password responds like this.
                Err(error) if error.code() == Some("NOAUTH") => return true,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        panic!("the server neither ran nor ended");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Ok(mut child) = self.child.lock()
            && let Some(mut child) = child.take()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A server that is paused until this value is dropped.
pub struct Paused<'a>(&'a RedisServer);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}
