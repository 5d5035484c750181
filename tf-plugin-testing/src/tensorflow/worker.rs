//! The process of the C cases: it loads TensorFlow's C library, runs cases, and writes results as `runner.py` does.

use super::program::WORK_VARIABLE;
use crate::abi::processes::end_with_parent;
use crate::abi::tensorflow::TensorFlow;
use crate::deviation::Deviation;
use crate::threads::on_threads;
use serde_json::{Value, json};
use std::env;
use std::fmt::{Debug, Display};
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tf_plugin_core::{Code, Result};

pub(crate) use crate::outcome::{Step, Stop};

/// Checks that two values are equal.
pub(crate) fn same<T: PartialEq + Debug>(what: impl Display, got: T, wanted: T) -> Step {
    if got == wanted {
        return Ok(());
    }
    Err(Deviation::new(what).wanted(shown(&wanted)).got(shown(&got)).into())
}

/// Checks that bytes are equal; the deviation says where they differ.
pub(crate) fn same_bytes(what: impl Display, got: &[u8], wanted: &[u8]) -> Step {
    Deviation::of_bytes(what, got, wanted).map_or(Ok(()), |deviation| Err(deviation.into()))
}

/// Checks that a statement holds.
pub(crate) fn holds(what: impl Display, truth: bool) -> Step {
    if truth { Ok(()) } else { Err(Deviation::new(what).into()) }
}

/// Checks that a call fails with one of these codes, and with a message.
pub(crate) fn fails<T: Debug>(what: impl Display, codes: &[Code], result: Result<T>) -> Step {
    let names: Vec<_> = codes.iter().map(|code| format!("{code:?}")).collect();
    let names = names.join(" or ");
    match result {
        Ok(value) => {
            let got = format!("success, with {}", shown(&value));
            Err(Deviation::new(what).wanted(names).got(got).into())
        }
        Err(error) if codes.contains(&error.code()) => {
            holds(format_args!("{what}: the error has a text"), !error.message().is_empty())
        }
        Err(error) if error.code() == Code::Unimplemented => {
            Err(Stop::Skip(format!("{what}: not implemented")))
        }
        Err(error) => Err(Deviation::of_error(what, names, &error).into()),
    }
}

/// Combines all checks, so that one run shows everything that is wrong.
pub(crate) fn together(checks: impl IntoIterator<Item = Step>) -> Step {
    let (mut wrong, mut skipped) = (Vec::new(), None);
    for check in checks {
        match check {
            Ok(()) => {}
            Err(Stop::Failed(mut deviations)) => wrong.append(&mut deviations),
            Err(Stop::Skip(reason)) => skipped = Some(reason),
        }
    }
    match skipped {
        _ if !wrong.is_empty() => Err(Stop::Failed(wrong)),
        Some(reason) => Err(Stop::Skip(reason)),
        None => Ok(()),
    }
}

/// Returns random bytes, which differ for each seed.
#[must_use]
pub(crate) fn payload(size: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Runs `work` on several threads, and combines what went wrong.
pub(crate) fn in_threads(count: usize, work: impl Fn(usize) -> Step + Sync) -> Step {
    together(on_threads(count, work))
}

/// Formats a value for a message, and cuts it if it is long.
fn shown(value: &impl Debug) -> String {
    const SHOWN: usize = 300;
    let text = format!("{value:?}");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// The environment in which cases run.
pub(crate) trait Environment: Sized {
    /// Loads the plugin that the settings name.
    ///
    /// # Errors
    /// Returns why no case can run.
    fn new(tensorflow: &'static TensorFlow, settings: &Value) -> std::result::Result<Self, String>;

    /// Prepares a case.
    ///
    /// # Errors
    /// Fails if that is not possible, and skips the case if it does not apply.
    fn begin(&mut self, case: &str) -> Step;

    /// Cleans up after a case.
    fn end(&mut self, outcome: &Step);
}

/// A case and its name.
pub(crate) type Named<P> = (&'static str, fn(&P) -> Step);

/// Runs the C cases if this process was started for that, and returns whether it was. Called by the
/// test that [`Program::Test`](super::program::Program::Test) names.
pub(crate) fn work<P: Environment>(cases: &[Named<P>]) -> bool {
    let Some(directory) = env::var_os(WORK_VARIABLE).map(PathBuf::from) else { return false };
    end_with_parent();
    let request = io::read_to_string(io::stdin()).expect("a request");
    let request: Value = serde_json::from_str(&request).expect("a request is JSON");
    let place = || P::new(TensorFlow::load(&directory)?, &request["jobs"][0]);
    let place = catch_unwind(place);
    match place.unwrap_or_else(|_| Err("the plugin cannot be used: a panic".into())) {
        Ok(place) => run_all(place, &request, cases),
        Err(problem) => say(&json!({ "job": 0, "broken": problem })),
    }
    true
}

/// Runs the cases that the request names.
fn run_all<P: Environment>(mut place: P, request: &Value, cases: &[Named<P>]) {
    for name in request["order"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if let Some(reason) = request["cases"][name].as_str() {
            let outcome = "left out";
            say(&json!({ "job": 0, "case": name, "outcome": outcome, "reason": reason }));
            continue;
        }
        say(&json!({ "job": 0, "case": name, "outcome": "begun" }));
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut place, name, cases)));
        let outcome = outcome
            .unwrap_or_else(|_| Err(Deviation::new("the case panics; see its messages").into()));
        let (outcome, reason, deviations) = match outcome {
            Ok(()) => ("passed", None, Vec::new()),
            Err(Stop::Skip(reason)) => ("skipped", Some(reason), Vec::new()),
            Err(Stop::Failed(deviations)) => ("failed", None, deviations),
        };
        let deviations = deviations.iter().map(|one| {
            json!({ "what": one.what, "wanted": one.wanted, "got": one.got, "detail": one.detail })
        });
        let deviations: Vec<_> = deviations.collect();
        let seconds = started.elapsed().as_secs_f64();
        say(&json!({
            "job": 0, "case": name, "outcome": outcome, "reason": reason,
            "deviations": deviations, "seconds": seconds,
        }));
    }
    drop(place);
    say(&json!({ "job": 0, "done": true }));
}

fn run<P: Environment>(place: &mut P, name: &str, cases: &[Named<P>]) -> Step {
    let Some((_, case)) = cases.iter().find(|(other, _)| *other == name) else {
        return Err(Deviation::new(format_args!("there is no case `{name}`")).into());
    };
    place.begin(name).map_err(|stop| match stop {
        Stop::Failed(mut deviations) => {
            for deviation in &mut deviations {
                deviation.what = format!("a step of set_up: {}", deviation.what);
            }
            Stop::Failed(deviations)
        }
        skip => skip,
    })?;
    let outcome = case(place);
    place.end(&outcome);
    outcome
}

/// Writes a line of its own, even if something else writes to the same pipe.
fn say(told: &Value) {
    let mut stdout = io::stdout().lock();
    // A reader that has gone does not need it.
    let _ = stdout.write_all(format!("\n{told}\n").as_bytes());
    let _ = stdout.flush();
}

/// Returns the path in a setting.
#[must_use]
pub(crate) fn path(settings: &Value, key: &str) -> PathBuf {
    Path::new(settings[key].as_str().unwrap_or_default()).to_owned()
}
