//! Faults on demand: which call meets which.

use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tf_plugin_core::sync::{Mutex, MutexGuard};
use tf_plugin_core::{Code, Error, Result};

/// What happens instead of a call, or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call fails with this code, and what it was to do is not done.
    Fail(Code),
    /// The call is made and does what it does, and then fails with this code: an answer that was lost.
    FailAfter(Code),
    /// The call waits for so long and is then made.
    Delay(Duration),
    /// A read gives at most so many bytes, which is not an end of file: the SDK asks again. Other calls are
    /// made as they are.
    Shorten(usize),
    /// The call panics.
    Panic,
}

/// Which call meets a fault: counted from 0, by the operation's name in the header (`read`, `append`,
/// `tell`, `flush`, `sync` and `close` included).
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
    /// The fault of the next call.
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

/// The controls of a `Faulty`, also after the host got it. Clones control the same.
///
/// Operations are named as in the header; those of files are `read`, `append`, `tell`, `flush`, `sync` and `close`. Calls count from 0 on since the start or the last
/// [`reset`](Self::reset). What the SDK's defaults call counts too: a `copy_file` that the author did
/// not write is one `copy_file`, and the opens, reads and appends that it is made of.
///
/// # Panics
/// Each method that takes an operation panics if there is none of this name.
#[derive(Clone, Debug)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
    /// The operations.
    operations: Arc<[&'static str]>,
    /// Where they have their names from.
    header: &'static str,
}

impl Faults {
    /// Of operations of these names, from that header.
    pub(crate) fn of(
        operations: impl IntoIterator<Item = &'static str>,
        header: &'static str,
    ) -> Self {
        Self { script: Arc::default(), operations: operations.into_iter().collect(), header }
    }

    /// The name of an operation, forever.
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

    /// The fault of the next call of an operation.
    pub(crate) fn next(&self, operation: &'static str) -> Option<Fault> {
        self.lock().next(operation)
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call of this number of an operation meets a fault.
    pub fn at(&self, operation: &str, call: u64, fault: Fault) -> &Self {
        self.add(Some(operation), call, 0, fault)
    }

    /// Every call of an operation meets a fault.
    pub fn always(&self, operation: &str, fault: Fault) -> &Self {
        self.add(Some(operation), 0, 1, fault)
    }

    /// Every `nth` call of an operation meets a fault: calls `nth - 1`, `2 * nth - 1` and so on.
    ///
    /// # Panics
    /// If `nth` is 0.
    pub fn every(&self, operation: &str, nth: u64, fault: Fault) -> &Self {
        assert!(nth > 0, "every 0th call is none; write 1 for every call");
        self.add(Some(operation), nth - 1, nth, fault)
    }

    /// The call of this number, of whatever operation, meets a fault. `sweep` tries each.
    pub fn at_call(&self, call: u64, fault: Fault) -> &Self {
        self.add(None, call, 0, fault)
    }

    /// Calls meet one of `faults` at random, with this probability between 0 and 1. The same seed and
    /// the same calls give the same faults.
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

    /// Forgets all faults and counts.
    pub fn reset(&self) {
        *self.lock() = Script::default();
    }

    /// How many calls were made since the start or the last [`reset`](Self::reset).
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// How many calls of an operation were made.
    #[must_use]
    pub fn calls_of(&self, operation: &str) -> u64 {
        let operation = self.known(operation);
        self.lock().counts.get(operation).copied().unwrap_or_default()
    }

    /// How many calls met a fault.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.lock().faults
    }

    /// Makes a call, with the fault that it meets.
    pub(crate) fn call<T>(
        &self,
        operation: &'static str,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        Self::meet(self.next(operation), operation, call)
    }

    /// Makes a call that meets this fault.
    pub(crate) fn meet<T>(
        fault: Option<Fault>,
        operation: &'static str,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match fault {
            None | Some(Fault::Shorten(_)) => call(),
            Some(Fault::Fail(code)) => Err(told(operation, code)),
            Some(Fault::FailAfter(code)) => {
                // Whatever it answered is lost.
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

/// A run without a fault, and one for each call that it makes, which is to meet one. How many there were. How often the
/// operations in `polled` are called depends on how long others take.
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
