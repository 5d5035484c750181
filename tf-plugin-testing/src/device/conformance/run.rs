//! How one case runs, what it may use, and what it notes.

use super::case::Case;
use crate::abi::exit_report::Running;
use crate::deviation::Deviation;
use crate::device::abi::{Host, TestDevice, TestEvent, TestStream};
use crate::outcome::Outcome;
use se_plugin::{DevicePtr, Platform};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tf_plugin_core::Result;

pub(super) use crate::outcome::{Step, Stop, needs};

/// Runs one [case](crate::device::cases) on the first device of a platform, in a new host.
///
/// Calls for one platform run one after the other. A case that is not done after `limit` has failed. Its thread goes on,
/// since nothing can end it.
///
/// [`conformance!`](crate::device::conformance!) is the short way for tests; this function returns the outcome.
#[must_use]
pub fn run_case<P: Platform>(case: &'static Case, limit: Duration) -> Outcome {
    // The other host is closed first.
    take_turn::<P>(case, limit, |left| left.take().and(None))
}

/// Runs a case as [`run_case`] does, in the host of the case before, unless that has failed: TensorFlow opens a platform
/// once in a process, on one thread, and drivers may not support more.
pub(in crate::device) fn run_next_case<P: Platform>(
    case: &'static Case,
    limit: Duration,
) -> Outcome {
    take_turn::<P>(case, limit, Option::take)
}

/// The host that the last case of a platform has left, if it passed.
pub(super) type Left = Option<Host>;

/// Returns the turn of a platform: only the thread that holds it opens the driver.
pub(super) fn turn_of<P: Platform>() -> Arc<Mutex<Left>> {
    static TURNS: Mutex<BTreeMap<TypeId, Arc<Mutex<Left>>>> = Mutex::new(BTreeMap::new());
    Arc::clone(lock(&TURNS).entry(TypeId::of::<P>()).or_default())
}

/// Waits until no case of this platform runs, and runs one in the host that `choose` returns, or else in a new one.
fn take_turn<P: Platform>(
    case: &'static Case,
    limit: Duration,
    choose: fn(&mut Left) -> Left,
) -> Outcome {
    let turn = turn_of::<P>();
    let mut left = lock(&turn);
    let _running = Running::new(case.name());
    let host = choose(&mut left);
    let (sender, receiver) = channel();
    let body = move || {
        let ended = catch_unwind(AssertUnwindSafe(|| on_a_host::<P>(case, host)));
        // Nobody listens after the limit.
        let _ = sender.send(ended.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            (failed(format!("the test panicked: {}", text.unwrap_or("without a text"))), None)
        }));
    };
    if let Err(error) = thread::Builder::new().name(case.name().into()).spawn(body) {
        return failed(format!("cannot start a thread for the test: {error}"));
    }
    let (outcome, host) = receiver.recv_timeout(limit).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => (failed(format!("it is not done after {limit:?}")), None),
        RecvTimeoutError::Disconnected => {
            (failed("the test has ended without an answer".into()), None)
        }
    });
    *left = host.filter(|_| !matches!(outcome, Outcome::Failed(_)));
    outcome
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn failed(what: String) -> Outcome {
    Outcome::Failed(vec![Deviation::new(what)])
}

/// Runs a case in this host, or in a new one, and returns the host too if there is one.
fn on_a_host<P: Platform>(case: &Case, host: Left) -> (Outcome, Left) {
    let host = match host.map_or_else(Host::load::<P>, Ok) {
        Ok(host) => host,
        Err(error) => return (failed(format!("the platform cannot be loaded: {error:#}")), None),
    };
    (in_host(case, &host), Some(host))
}

fn in_host(case: &Case, host: &Host) -> Outcome {
    host.be_strict();
    match host.device_count() {
        Ok(0) => return Outcome::Skipped("this machine has no device of the platform".into()),
        Ok(_) => {}
        Err(error) => return failed(format!("`get_device_count` fails: {error:#}")),
    }
    let (deviations, outcome) = match host.device(0) {
        Err(error) => return failed(format!("`create_device` fails: {error:#}")),
        Ok(device) => {
            let mut run = Run { host, device: &device, deviations: Vec::new() };
            let outcome = (case.run)(&mut run);
            (run.deviations, outcome)
        }
    };
    let live = host.live();
    let more = || Deviation::new(format_args!("{live} handles more were made than destroyed"));
    let left = (live != 0).then(more);
    let violations = host.violations().into_iter().map(Deviation::of_violation);
    Outcome::of(deviations, outcome, left.into_iter().chain(violations))
}

/// A running case on an open device.
pub(super) struct Run<'h> {
    pub(super) host: &'h Host,
    pub(super) device: &'h TestDevice<'h>,
    pub(super) deviations: Vec<Deviation>,
}

/// Device memory, freed when it is dropped.
pub(super) struct Block<'h> {
    device: &'h TestDevice<'h>,
    start: DevicePtr,
    pub(super) len: usize,
}

impl Block<'_> {
    pub(super) fn start(&self) -> DevicePtr {
        self.start
    }

    /// Returns the address `offset` bytes behind the start.
    pub(super) fn at(&self, offset: usize) -> DevicePtr {
        DevicePtr::new(self.start.address() + offset as u64).expect("it is behind an address")
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        self.device.deallocate(self.start);
    }
}

/// Returns `len` bytes, which differ for each salt.
pub(super) fn content(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8)) as u8 ^ salt).collect()
}

impl<'h> Run<'h> {
    pub(super) fn deviation(&mut self, deviation: Deviation) {
        self.deviations.push(deviation);
    }

    /// Notes a statement that does not hold.
    pub(super) fn that(&mut self, what: impl Display, holds: bool) {
        if !holds {
            self.deviation(Deviation::new(what));
        }
    }

    /// Returns the value of a step without which the case cannot go on.
    pub(super) fn ok<T>(&self, what: impl Display, result: Result<T>) -> Step<T> {
        result.map_err(|error| Deviation::of_error(what, "OK", &error).into())
    }

    /// Notes success where an error is expected.
    pub(super) fn fails<T>(&mut self, what: impl Display, result: Result<T>) {
        if result.is_ok() {
            self.deviation(Deviation::new(what).wanted("an error".into()).got("OK".into()));
        }
    }

    /// Notes bytes that differ from the expected ones.
    pub(super) fn equal(&mut self, what: impl Display, got: &[u8], wanted: &[u8]) {
        self.deviations.extend(Deviation::of_bytes(what, got, wanted));
    }

    /// Allocates memory; the case fails if there is none.
    pub(super) fn allocate(&self, len: usize) -> Step<Block<'h>> {
        let device = self.device;
        let Some(start) = device.allocate(len as u64) else {
            let deviation = Deviation::new(format_args!("`allocate` of {len} bytes"));
            return Err(deviation.wanted("memory".into()).got("none".into()).into());
        };
        Ok(Block { device, start, len })
    }

    /// Allocates memory with this content.
    pub(super) fn filled(&self, content: &[u8]) -> Step<Block<'h>> {
        let block = self.allocate(content.len())?;
        let copied = self.device.copy_to_device(block.start(), content);
        self.ok("`sync_memcpy_htod`", copied)?;
        Ok(block)
    }

    /// Reads the content of memory.
    pub(super) fn read(&self, block: &Block<'_>) -> Step<Vec<u8>> {
        let mut back = vec![0x5a; block.len];
        let copied = self.device.copy_to_host(&mut back, block.start());
        self.ok("`sync_memcpy_dtoh`", copied)?;
        Ok(back)
    }

    pub(super) fn stream(&self) -> Step<TestStream<'h>> {
        let (stream, made) = self.device.stream();
        self.ok("`create_stream`", made)?;
        Ok(stream)
    }

    pub(super) fn event(&self) -> Step<TestEvent<'h>> {
        self.ok("`create_event`", self.device.event())
    }
}
