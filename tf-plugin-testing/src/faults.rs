//! Faults on demand, and the calls that they happen in.

use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tf_plugin_core::sync::{Mutex, MutexGuard};
use tf_plugin_core::{Code, Error, Result};

/// The fault: instead of a call, or in addition to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call fails with this code, and has no effect.
    Fail(Code),
    /// The call takes effect, and then fails with this code, like a response that was lost.
    FailAfter(Code),
    /// The call is delayed by this time.
    Delay(Duration),
    /// A read returns at most so many bytes. This is not the end of the file: the SDK reads again.
    /// Other calls are not changed.
    Shorten(usize),
    /// The call panics.
    Panic,
}

/// Which calls meet a fault. They are counted from 0 for each operation, which has its name in the
/// header (`read`, `append`, `tell`, `flush`, `sync` and `close` included).
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// `None` for any operation.
    operation: Option<&'static str>,
    from: u64,
    /// Every how many calls from there on; 0 for once.
    every: u64,
    fault: Fault,
}

#[derive(Debug, Default)]
struct Script {
    rules: Vec<Rule>,
    /// The probability, and the faults to choose from.
    random: Option<(f64, fastrand::Rng, Vec<Fault>)>,
    counts: std::collections::BTreeMap<&'static str, u64>,
    calls: u64,
    faults: u64,
}

impl Script {
    /// Counts the next call and returns its fault.
    fn next(&mut self, operation: &'static str) -> Option<Fault> {
        let count = self.counts.entry(operation).or_default();
        let (of_operation, of_all) = (*count, self.calls);
        *count += 1;
        self.calls += 1;
        let meets = |rule: &&Rule| {
            let index = match rule.operation {
                None => of_all,
                Some(name) if name == operation => of_operation,
                Some(_) => return false,
            };
            index == rule.from
                || rule.every > 0
                    && index > rule.from
                    && (index - rule.from).is_multiple_of(rule.every)
        };
        let mut fault = self.rules.iter().find(meets).map(|rule| rule.fault);
        if let (None, Some((probability, random, choices))) = (fault, &mut self.random)
            && random.f64() < *probability
        {
            fault = random.choice(&*choices).copied();
        }
        self.faults += u64::from(fault.is_some());
        fault
    }
}

/// The controls of a `Faulty`, which still work when the host owns it. Clones control the same one.
///
/// Operations are named as in the header; those of files are `read`, `append`, `tell`, `flush`, `sync` and `close`.
/// Calls are counted from 0 since the start or the last [`reset`](Self::reset). The SDK's defaults count too: an
/// unimplemented `copy_file` counts as one `copy_file`, plus its opens, reads and appends.
///
/// # Panics
/// Each method that takes an operation panics if no operation has this name.
#[derive(Clone, Debug)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
    /// The names of the operations.
    operations: Arc<[&'static str]>,
    /// The header that has these names, for messages.
    header: &'static str,
}

impl Faults {
    /// Creates controls for operations of these names, which are those of `header`.
    pub(crate) fn of(
        operations: impl IntoIterator<Item = &'static str>,
        header: &'static str,
    ) -> Self {
        Self { script: Arc::default(), operations: operations.into_iter().collect(), header }
    }

    /// Returns the name of an operation as a static string.
    #[track_caller]
    fn known(&self, operation: &str) -> &'static str {
        match self.operations.iter().find(|name| **name == operation) {
            Some(name) => name,
            None => panic!(
                "there is no operation `{operation}`; the names are those of {}: {}",
                self.header,
                self.operations.join(", ")
            ),
        }
    }

    /// Counts the next call of an operation and returns its fault.
    pub(crate) fn next(&self, operation: &'static str) -> Option<Fault> {
        self.lock().next(operation)
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the `call`th call of an operation meet a fault, counted from 0.
    pub fn at(&self, operation: &str, call: u64, fault: Fault) -> &Self {
        self.add(Some(operation), call, 0, fault)
    }

    /// Makes every call of an operation meet a fault.
    pub fn always(&self, operation: &str, fault: Fault) -> &Self {
        self.add(Some(operation), 0, 1, fault)
    }

    /// Makes every `nth` call of an operation meet a fault: calls `nth - 1`, `2 * nth - 1` and so on.
    ///
    /// # Panics
    /// Panics if `nth` is 0.
    pub fn every(&self, operation: &str, nth: u64, fault: Fault) -> &Self {
        assert!(nth > 0, "every 0th call is none; write 1 for every call");
        self.add(Some(operation), nth - 1, nth, fault)
    }

    /// Makes the `call`th call meet a fault, counted from 0 over all operations. `sweep` tries each.
    pub fn at_call(&self, call: u64, fault: Fault) -> &Self {
        self.add(None, call, 0, fault)
    }

    /// Makes calls meet one of `faults` at random, with this probability between 0 and 1. The same
    /// seed and the same calls give the same faults.
    pub fn at_random(&self, seed: u64, probability: f64, faults: &[Fault]) -> &Self {
        let random = fastrand::Rng::with_seed(seed);
        self.lock().random = Some((probability, random, faults.to_vec()));
        self
    }

    fn add(&self, operation: Option<&str>, from: u64, every: u64, fault: Fault) -> &Self {
        let operation = operation.map(|operation| self.known(operation));
        self.lock().rules.push(Rule { operation, from, every, fault });
        self
    }

    /// Removes all faults and resets all counts.
    pub fn reset(&self) {
        *self.lock() = Script::default();
    }

    /// Returns how many calls were made since the start or the last [`reset`](Self::reset).
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Returns how many calls of an operation were made.
    #[must_use]
    pub fn calls_of(&self, operation: &str) -> u64 {
        let operation = self.known(operation);
        self.lock().counts.get(operation).copied().unwrap_or_default()
    }

    /// Returns how many calls met a fault.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.lock().faults
    }

    /// Makes a call, with the fault that its operation meets next.
    pub(crate) fn call<T>(
        &self,
        operation: &'static str,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        Self::meet(self.next(operation), operation, call)
    }

    /// Makes a call with this fault.
    pub(crate) fn meet<T>(
        fault: Option<Fault>,
        operation: &'static str,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match fault {
            None | Some(Fault::Shorten(_)) => call(),
            Some(Fault::Fail(code)) => Err(told(operation, code)),
            Some(Fault::FailAfter(code)) => {
                // The result is lost.
                let _ = call();
                Err(told(operation, code))
            }
            Some(Fault::Delay(time)) => {
                std::thread::sleep(time);
                call()
            }
            Some(Fault::Panic) => panic!("`{operation}` was told to panic"),
        }
    }
}

#[cold]
fn told(operation: &str, code: Code) -> Error {
    Error::new(code, format!("`{operation}` was told to fail"))
}

/// Runs a scenario without a fault, and then once for each call that it makes, which meets a fault. Returns how many
/// runs there were. How often operations in `polled` are called depends on how long others take.
#[track_caller]
pub(crate) fn faults_of_each(polled: &[&str], run: impl Fn(Option<u64>) -> Faults) -> u64 {
    let others = |faults: &Faults| {
        let mut counts = faults.lock().counts.clone();
        counts.retain(|name, _| !polled.contains(name));
        counts
    };
    let without = run(None);
    let calls = without.calls();
    assert!(
        calls > 0,
        "the scenario makes no call, so that nothing can fail: call the host that it is given"
    );
    for call in 0..calls {
        let faults = run(Some(call));
        assert!(
            faults.met() > 0 || others(&faults) == others(&without),
            "call {call} was to fail and was not made: {} calls this time, {calls} without a fault. A scenario has to \
             make the same calls each time, up to the one that fails: take chance, time and threads out of it",
            faults.calls()
        );
    }
    calls + 1
}
