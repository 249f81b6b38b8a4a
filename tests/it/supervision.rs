//! Notifications to the service manager: the real program and a `NOTIFY_SOCKET` of the test.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Instant;

use lakemill::domain::job::JobStatus;
use rustix::process::Signal;
use serde_json::json;

use crate::support::children::Reaped as _;
use crate::support::http_client::get;
use crate::support::program::lakemill;
use crate::support::redis_server::RedisServer;
use crate::support::site::{Kind, Service, Site, TEST_TIMEOUT, await_that};

/// The watchdog interval: short, so that a test sees many notifications.
const WATCHDOG_USEC: &str = "2000000";
/// Messages to check before deciding that notifications continue, or have stopped.
const SEVERAL: usize = 5;

/// The service manager's end of the notification socket.
struct Manager {
    folder: tempfile::TempDir,
    socket: UnixDatagram,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self { folder, socket }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("notify")
    }

    /// The environment variables of a service.
    fn start(&self, site: &Site, command: &str, more: &[(&str, &str)]) -> Service {
        let path = self.path().display().to_string();
        let mut all = vec![("NOTIFY_SOCKET", path.as_str()), ("WATCHDOG_USEC", WATCHDOG_USEC)];
        all.extend(more);
        site.start(command, &all)
    }

    fn message(&self) -> Vec<String> {
        let mut bytes = [0; 4_096];
        let read = self.socket.recv(&mut bytes).unwrap();
        std::str::from_utf8(&bytes[..read]).unwrap().lines().map(str::to_owned).collect()
    }

    /// Reads until a message has a line that begins so; returns the line.
    #[track_caller]
    fn await_line(&self, beginning: &str) -> String {
        self.await_message(|line| line.starts_with(beginning), beginning)
    }

    #[track_caller]
    fn await_message(&self, is_wanted: impl Fn(&str) -> bool, what: &str) -> String {
        let until = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(line) = self.message().into_iter().find(|line| is_wanted(line)) {
                return line;
            }
            assert!(Instant::now() < until, "waited for `{what}`");
        }
    }

    /// Discards the messages so far.
    fn forget(&self) {
        self.socket.set_nonblocking(true).unwrap();
        while self.socket.recv(&mut [0; 4_096]).is_ok() {}
        self.socket.set_nonblocking(false).unwrap();
    }

    /// Checks that the watchdog is notified several times from now on. On a busy machine the service may now and then
    /// fail its own health check in time, so missing notifications in between don't count.
    #[track_caller]
    fn watchdog_is_notified(&self) {
        self.forget();
        for _ in 0..SEVERAL {
            self.await_line("WATCHDOG=1");
        }
    }

    /// Waits until the status contains `why`; checks that the watchdog is not notified from then on.
    #[track_caller]
    fn watchdog_is_not_notified(&self, why: &str) {
        self.await_message(|line| line.starts_with("STATUS=") && line.contains(why), why);
        for _ in 0..SEVERAL {
            let message = self.message();
            assert!(!message.iter().any(|line| line == "WATCHDOG=1"), "{message:?}");
            assert!(message.iter().any(|line| line.starts_with("STATUS=") && line.contains(why)), "{message:?}");
        }
    }
}

#[test]
fn services_notify_readiness_watchdog_and_stop() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let site = Site::new(kind);
        for (command, doing) in [("worker", "0 of 1 executors run jobs"), ("web", "clients are connected")] {
            let manager = Manager::new();
            let mut service = manager.start(&site, command, &[]);
            let first = manager.message();
            assert_eq!(first[0], "READY=1", "nothing is notified before");
            assert!(service.has_logged("started\",\"address\":"), "it is ready once it listens");
            assert!(first[1].starts_with("STATUS=") && first[1].contains(doing), "{first:?}");
            manager.watchdog_is_notified();
            service.signal(Signal::TERM);
            manager.await_line("STOPPING=1");
            assert_eq!(service.await_exit(), Some(0), "{}", service.log());
        }
    }
}

#[test]
fn only_status_is_sent_without_a_watchdog() {
    let site = Site::new(Kind::Embedded);
    let manager = Manager::new();
    let path = manager.path().display().to_string();
    let mut service = site.start("worker", &[("NOTIFY_SOCKET", path.as_str())]);
    manager.await_line("READY=1");
    let second = manager.message();
    assert!(second.len() == 1 && second[0].starts_with("STATUS="), "{second:?}");
    service.signal(Signal::TERM);
    manager.await_line("STOPPING=1");
    assert_eq!(service.await_exit(), Some(0));
}

#[test]
fn up_notifies_readiness_watchdog_and_stop() {
    let manager = Manager::new();
    let data = manager.folder.path().join("data");
    let child = lakemill()
        .args(["up", "--port", "0", "--worker-port", "0", "--data"])
        .arg(&data)
        .env("NOTIFY_SOCKET", manager.path())
        .env("WATCHDOG_USEC", WATCHDOG_USEC)
        .env_remove("SVC_ADMIN_PASSWORD_HASH")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn_reaped();
    let mut child = child.unwrap();
    let first = manager.message();
    assert_eq!(first[0], "READY=1");
    assert!(first[1].contains("executors run jobs") && first[1].contains("clients are connected"), "{first:?}");
    manager.watchdog_is_notified();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    manager.await_line("STOPPING=1");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn hanging_claim_thread_stops_watchdog_notifications() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("p", &json!({}));
    let manager = Manager::new();
    let _worker = manager.start(&site, "worker", &[("FAILPOINTS", "worker::claimed=1*sleep(3600000)")]);
    manager.watchdog_is_notified();
    site.enqueue("p");
    manager.watchdog_is_not_notified("health check failed: the thread `claimer` has not responded for ");
}

#[test]
fn panicked_claim_thread_stops_watchdog_notifications() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("p", &json!({}));
    let manager = Manager::new();
    let _worker = manager.start(&site, "worker", &[("FAILPOINTS", "worker::claimed=1*panic")]);
    manager.watchdog_is_notified();
    site.enqueue("p");
    // The executors end with it, since they get no more requests.
    manager.watchdog_is_not_notified("` has ended");
}

#[test]
fn hanging_process_keeper_stops_watchdog_notifications() {
    let site = Site::new(Kind::Embedded);
    let manager = Manager::new();
    let _web = manager.start(&site, "web", &[("FAILPOINTS", "sandbox::keep=2*off->sleep(3600000)")]);
    manager.watchdog_is_not_notified("health check failed: the thread `sql-keeper` has not responded for ");
}

#[test]
fn unavailable_dependencies_do_not_stop_watchdog_notifications() {
    let site = Site::fleet(RedisServer::durable());
    let redis = site.redis.as_ref().unwrap();
    let (workers, webs) = (Manager::new(), Manager::new());
    let worker = workers.start(&site, "worker", &[]);
    let mut web = webs.start(&site, "web", &[]);
    workers.await_line("READY=1");
    webs.await_line("READY=1");
    await_that("the worker to claim", || get(&worker.address(), "/readyz").status == 200);
    {
        let _hung = redis.pause();
        worker.await_log("claiming jobs failed");
        workers.watchdog_is_notified();
        webs.watchdog_is_notified();
    }
    worker.await_log("claiming jobs works again");
    redis.kill();
    site.break_store();
    workers.watchdog_is_notified();
    webs.watchdog_is_notified();
    redis.start_again();
    site.restore_store();
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    assert_eq!(site.await_end(&site.enqueue("p")).status, JobStatus::Completed, "it is the same worker that goes on");
    // A busy machine may delay the service's own health check; no outage stops its threads.
    for service in [&worker, &web] {
        assert!(!service.has_logged("has not responded") && !service.has_logged("` has ended"), "{}", service.log());
    }
    assert!(web.is_alive());
}

#[test]
fn draining_worker_extends_its_timeout() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("p", &json!({}));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let job = site.enqueue("p");
    let manager = Manager::new();
    let mut worker = manager.start(&site, "worker", &[("FAILPOINTS", "convert::piece=1*sleep(8000)->off")]);
    worker.await_log("job started");
    worker.signal(Signal::TERM);
    manager.await_line("STOPPING=1");
    let status = manager.await_line("STATUS=stopping: ");
    assert!(status.contains("1 of 1 executors run jobs"), "{status}");
    manager.await_line("WATCHDOG=1");
    assert_eq!(manager.await_line("EXTEND_TIMEOUT_USEC="), "EXTEND_TIMEOUT_USEC=30000000");
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    assert_eq!(site.record(&job).unwrap().status, JobStatus::Completed);
}
