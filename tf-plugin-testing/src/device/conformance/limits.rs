//! Running one case, for as long as it may take.

use super::case::Case;
use super::run::Run;
use crate::deviation::Deviation;
use crate::device::abi::Host;
use crate::verdict::Verdict;
use se_plugin::Platform;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Holds the first device of a platform against one [case](crate::device::cases), in a host of its own.
///
/// A case that is not done after `limit` has failed; its thread is left to itself, since nothing can end it.
///
/// [`conformance!`](crate::device::conformance!) is the short way for tests; this is for those that want the answer.
#[must_use]
pub fn run_case<P: Platform>(case: &'static Case, limit: Duration) -> Verdict {
    let (sender, receiver) = channel();
    let body = move || {
        let verdict = catch_unwind(AssertUnwindSafe(|| on_a_host::<P>(case)));
        // Nobody listens after the limit.
        let _ = sender.send(verdict.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            failed(format!("the test panicked: {}", text.unwrap_or("without a text")))
        }));
    };
    if let Err(error) = thread::Builder::new().name(case.name().into()).spawn(body) {
        return failed(format!("there is no thread for the test: {error}"));
    }
    receiver.recv_timeout(limit).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => failed(format!("it is not done after {limit:?}")),
        RecvTimeoutError::Disconnected => failed("the test has ended without an answer".into()),
    })
}

fn failed(what: String) -> Verdict {
    Verdict::Failed(vec![Deviation::new(what)])
}

fn on_a_host<P: Platform>(case: &Case) -> Verdict {
    let host = match Host::load::<P>() {
        Ok(host) => host,
        Err(error) => return failed(format!("the platform cannot be loaded: {error:#}")),
    };
    match host.device_count() {
        Ok(0) => return Verdict::Skipped("this machine has no device of the platform".into()),
        Ok(_) => {}
        Err(error) => return failed(format!("`get_device_count` fails: {error:#}")),
    }
    let (deviations, outcome) = match host.device(0) {
        Err(error) => return failed(format!("`create_device` fails: {error:#}")),
        Ok(device) => {
            let mut run = Run { host: &host, device: &device, deviations: Vec::new() };
            let outcome = (case.run)(&mut run);
            (run.deviations, outcome)
        }
    };
    let live = host.live();
    let left = format!("{live} handles more were made than destroyed");
    let left = (live != 0).then(|| Deviation::new(left));
    let violations = host.violations().into_iter().map(Deviation::of_violation);
    Verdict::of(deviations, outcome, left.into_iter().chain(violations))
}
