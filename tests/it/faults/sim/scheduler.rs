//! Scheduler of the simulated processes' threads. One thread runs at a time; a seed chooses it, and how time passes.
//!
//! A thread runs until it waits; then the scheduler chooses among the runnable threads. Time passes only when none is
//! runnable. A killed process is not scheduled again: its threads unwind at the point where they wait, without visible
//! effects.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use lakemill::runtime::simulation::{Simulation, adopt};

use crate::support::lake::Rng;

/// Maximum scheduling steps of a simulation; more mean that it doesn't end.
const STEPS_MAX: u64 = 400_000;
/// Trace lines in a failure report.
const TRACE_LINES_MAX: usize = 400;
/// Addresses for thread exits; real addresses are lower.
const ENDS: usize = usize::MAX / 2;

/// The panic payload that unwinds a thread of a killed process.
struct Killed;

enum State {
    Waits { place: usize, until: Duration },
    Runs,
    Ended,
}

struct Task {
    process: usize,
    state: State,
    turn: Arc<Condvar>,
}

struct Process {
    name: String,
    dead: bool,
    frozen_until: Duration,
    /// The process dies after this many of its own scheduling steps.
    dies_in: Option<u64>,
    /// How far its wall clock is ahead, in ms.
    ahead_ms: i64,
}

struct Inner {
    now: Duration,
    tasks: Vec<Task>,
    processes: Vec<Process>,
    current: Option<usize>,
    rng: Rng,
    turns: u64,
    threads: usize,
    trace: Vec<(Duration, usize, String)>,
}

struct Shared {
    inner: Mutex<Inner>,
    ended: Condvar,
}

/// The scheduler, shared by all threads.
#[derive(Clone)]
pub struct Scheduler(Arc<Shared>);

/// One thread's handle.
#[derive(Clone)]
pub struct Thread {
    shared: Arc<Shared>,
    task: usize,
    process: usize,
}

impl Inner {
    fn task(&mut self, process: usize) -> usize {
        let state = State::Waits { place: 0, until: self.now };
        self.tasks.push(Task { process, state, turn: Arc::default() });
        self.threads += 1;
        self.tasks.len() - 1
    }

    /// When a task becomes runnable; `None` if only another task can wake it.
    fn due(&self, task: &Task) -> Option<Duration> {
        let process = &self.processes[task.process];
        match task.state {
            State::Waits { until, .. } if !process.dead => Some(until.max(process.frozen_until)),
            State::Waits { .. } | State::Runs | State::Ended => None,
        }
        .filter(|due| *due < Duration::MAX)
    }

    fn pass_on(&mut self) {
        self.turns += 1;
        let dues: Vec<(usize, Duration)> =
            self.tasks.iter().enumerate().filter_map(|(n, task)| Some((n, self.due(task)?))).collect();
        let Some(next) = dues.iter().map(|(_, due)| *due).min() else {
            self.current = None;
            return;
        };
        self.now = self.now.max(next);
        let ready: Vec<usize> = dues.iter().filter(|(_, due)| *due <= self.now).map(|(n, _)| *n).collect();
        let chosen = ready[self.rng.below(ready.len() as u64) as usize];
        self.current = Some(chosen);
        self.tasks[chosen].turn.notify_one();
    }

    fn kill(&mut self, process: usize) {
        self.processes[process].dead = true;
        for task in self.tasks.iter().filter(|task| task.process == process) {
            task.turn.notify_one();
        }
        self.note(process, "is killed".to_owned());
    }

    fn wake(&mut self, place: usize) {
        let now = self.now;
        for task in &mut self.tasks {
            if let State::Waits { place: at, until } = &mut task.state
                && *at == place
            {
                *until = now.min(*until);
            }
        }
    }

    fn note(&mut self, process: usize, what: String) {
        self.trace.push((self.now, process, what));
    }
}

impl Scheduler {
    pub fn new(seed: u64) -> Self {
        let inner = Inner {
            now: Duration::ZERO,
            tasks: Vec::new(),
            processes: Vec::new(),
            current: None,
            rng: Rng::new(seed),
            turns: 0,
            threads: 0,
            trace: Vec::new(),
        };
        Self(Arc::new(Shared { inner: Mutex::new(inner), ended: Condvar::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap()
    }

    /// Runs `body` as the first thread, in a separate process; afterwards kills every other process.
    pub fn drive<R>(&self, body: impl FnOnce() -> R) -> R {
        let process = self.process("driver");
        let task = {
            let mut inner = self.lock();
            let task = inner.task(process);
            inner.tasks[task].state = State::Runs;
            inner.current = Some(task);
            task
        };
        let thread = Thread { shared: Arc::clone(&self.0), task, process };
        let guard = End(self.clone());
        let done = adopt(Arc::new(thread), body);
        drop(guard);
        done
    }

    pub fn process(&self, name: &str) -> usize {
        let mut inner = self.lock();
        let name = name.to_owned();
        let frozen_until = Duration::ZERO;
        inner.processes.push(Process { name, dead: false, frozen_until, dies_in: None, ahead_ms: 0 });
        inner.processes.len() - 1
    }

    /// Starts the first thread of a process.
    pub fn begin(&self, process: usize, body: impl FnOnce() + Send + 'static) {
        let task = self.lock().task(process);
        let thread = Thread { shared: Arc::clone(&self.0), task, process };
        std::thread::spawn(move || {
            let own = thread.clone();
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                adopt(Arc::new(own.clone()), || {
                    own.begin();
                    body();
                });
            }));
            thread.end();
            drop(done);
        });
    }

    pub fn now(&self) -> Duration {
        self.lock().now
    }

    pub fn turns(&self) -> u64 {
        self.lock().turns
    }

    /// A random number from 0 to `sides - 1`.
    pub fn below(&self, sides: u64) -> u64 {
        self.lock().rng.below(sides)
    }

    /// True with a chance of `of` in 1,000.
    pub fn happens(&self, of: u64) -> bool {
        self.below(1_000) < of
    }

    pub fn kill(&self, process: usize) {
        self.lock().kill(process);
    }

    pub fn kill_after(&self, process: usize, turns: u64) {
        self.lock().processes[process].dies_in = Some(turns);
    }

    /// Pauses the process.
    pub fn freeze(&self, process: usize, time: Duration) {
        let mut inner = self.lock();
        inner.processes[process].frozen_until = inner.now + time;
        inner.note(process, format!("stands still for {} ms", time.as_millis()));
    }

    pub fn set_clock(&self, process: usize, ahead_ms: i64) {
        let mut inner = self.lock();
        inner.processes[process].ahead_ms = ahead_ms;
        inner.note(process, format!("its clock is {ahead_ms} ms ahead"));
    }

    pub fn ahead_ms(&self, process: usize) -> i64 {
        self.lock().processes[process].ahead_ms
    }

    /// Unwinds a thread of a killed process, without visible effects.
    pub fn unwind_if_killed(&self, process: usize) {
        if self.is_dead(process) {
            resume_unwind(Box::new(Killed) as Box<dyn Any + Send>);
        }
    }

    pub fn is_dead(&self, process: usize) -> bool {
        self.lock().processes[process].dead
    }

    /// All of its threads have ended.
    pub fn has_ended(&self, process: usize) -> bool {
        let inner = self.lock();
        !inner.tasks.iter().any(|task| task.process == process && !matches!(task.state, State::Ended))
    }

    pub fn note(&self, process: usize, what: String) {
        self.lock().note(process, what);
    }

    pub fn is_overrun(&self) -> bool {
        self.lock().turns > STEPS_MAX
    }

    /// The last steps of the trace, numbered.
    pub fn trace(&self) -> String {
        let inner = self.lock();
        let first = inner.trace.len().saturating_sub(TRACE_LINES_MAX);
        let line = |(n, (at, process, what)): (usize, &(Duration, usize, String))| {
            format!("{n:6} {:>9.3} s {:10} {what}\n", at.as_secs_f64(), inner.processes[*process].name)
        };
        inner.trace.iter().enumerate().skip(first).map(line).collect()
    }
}

/// Kills everything, and waits until all threads have ended.
struct End(Scheduler);

impl Drop for End {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        for process in 1..inner.processes.len() {
            inner.kill(process);
        }
        // The driver's own process.
        inner.threads -= 1;
        while inner.threads > 0 {
            inner = self.0.0.ended.wait(inner).unwrap();
        }
    }
}

impl Thread {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap()
    }

    /// Waits to be scheduled; false if the process is dead.
    fn await_turn(&self, mut inner: MutexGuard<'_, Inner>) -> bool {
        let turn = Arc::clone(&inner.tasks[self.task].turn);
        loop {
            if inner.processes[self.process].dead {
                if inner.current == Some(self.task) {
                    inner.pass_on();
                }
                return false;
            }
            if inner.current == Some(self.task) {
                inner.tasks[self.task].state = State::Runs;
                return true;
            }
            inner = turn.wait(inner).unwrap();
        }
    }

    /// False if the process is dead.
    fn yield_turn(&self, place: usize, at_most: Duration) -> bool {
        let mut inner = self.lock();
        if inner.processes[self.process].dead {
            return false;
        }
        let until = inner.now.saturating_add(at_most);
        inner.tasks[self.task].state = State::Waits { place, until };
        match inner.processes[self.process].dies_in {
            Some(0) => inner.kill(self.process),
            Some(turns) => inner.processes[self.process].dies_in = Some(turns - 1),
            None => {}
        }
        inner.pass_on();
        self.await_turn(inner)
    }
}

impl Simulation for Thread {
    fn now(&self) -> Duration {
        self.lock().now
    }

    fn wait(&self, place: usize, at_most: Duration) {
        if !self.yield_turn(place, at_most) {
            resume_unwind(Box::new(Killed) as Box<dyn Any + Send>);
        }
    }

    fn wake(&self, place: usize) {
        self.lock().wake(place);
    }

    fn random_unit(&self) -> f64 {
        let mut inner = self.lock();
        if inner.processes[self.process].dead {
            return 0.0;
        }
        inner.rng.below(1 << 20) as f64 / f64::from(1 << 20)
    }

    fn child(&self, _: &str) -> Arc<dyn Simulation> {
        let task = self.lock().task(self.process);
        Arc::new(Self { shared: Arc::clone(&self.shared), task, process: self.process })
    }

    fn begin(&self) {
        if !self.await_turn(self.lock()) {
            resume_unwind(Box::new(Killed) as Box<dyn Any + Send>);
        }
    }

    fn end(&self) {
        let mut inner = self.lock();
        inner.tasks[self.task].state = State::Ended;
        inner.wake(ENDS + self.task);
        if inner.current == Some(self.task) {
            inner.pass_on();
        }
        inner.threads -= 1;
        drop(inner);
        self.shared.ended.notify_all();
    }

    fn join(&self, child: &dyn Simulation) {
        let child = child.number();
        while !matches!(self.lock().tasks[child].state, State::Ended) {
            if !self.yield_turn(ENDS + child, Duration::MAX) {
                return;
            }
        }
    }

    fn number(&self) -> usize {
        self.task
    }
}
