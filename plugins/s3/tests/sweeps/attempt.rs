//! One operation with one fault.

use super::operation::{Answer, Case, Failure, Objects, Op};
use s3_server::{Fault, When};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tf_plugin_s3_tests::faults::{Expect, Kind, On};
use tf_plugin_s3_tests::{Store, eventually};

/// Three attempts, each given up after 800 ms without progress, and the waits between; on a machine with much else to
/// do. Longer means that something waits for a time-out of its own.
const LIMIT: Duration = Duration::from_secs(8);

/// Requests that `op` makes without faults, by operation of S3, in their order.
pub(super) fn requests(store: &Store, op: &Op) -> Result<Vec<&'static str>, String> {
    let case = Case { store, dir: "plain/".into() };
    case.clear();
    (op.setup)(&case);
    let mut after = case.objects();
    (op.effect)(&mut after, &case.dir);
    store.reset_log();
    let answer = (op.run)(&case);
    store.quiet();
    let log = store.log().iter().map(|request| request.operation).collect();
    describe(&answer).map_or(Ok(()), |what| Err(format!("{} / no fault: {what}", op.name)))?;
    if case.objects() != after {
        return Err(format!("{} / no fault: {}", op.name, difference(&case.objects(), &after)));
    }
    Ok(log)
}

fn describe(answer: &Answer) -> Option<String> {
    match answer {
        Ok(()) => None,
        Err(Failure::Error(error)) => Some(format!("{:?}: {error:#}", error.code())),
        Err(Failure::Wrong(what)) => Some(format!("wrong answer: {what}")),
    }
}

/// The first keys in which two states differ.
fn difference(is: &Objects, wanted: &Objects) -> String {
    let mut text = String::from("the store is not as it should be:");
    let keys: BTreeSet<_> = is.keys().chain(wanted.keys()).collect();
    for key in keys.into_iter().filter(|key| is.get(*key) != wanted.get(*key)).take(5) {
        let shown = |content: Option<&Vec<u8>>| {
            content.map_or("absent".into(), |c| format!("{} bytes", c.len()))
        };
        let _ = write!(text, " {key}: {} for {};", shown(is.get(key)), shown(wanted.get(key)));
    }
    text
}

/// One operation with one fault, at request `k` or at all that it makes sense for; all that is wrong. `None` if the
/// fault met nothing.
pub(super) fn try_one(
    store: &Store,
    op: &Op,
    kind: &Kind,
    k: Option<usize>,
    log: &[&'static str],
) -> Option<(Vec<String>, Duration)> {
    let expect = if k.is_some() { kind.once } else { kind.always };
    let case = Case { store, dir: "case/".into() };
    case.clear();
    (op.setup)(&case);
    let before = case.objects();
    let mut after = before.clone();
    (op.effect)(&mut after, &case.dir);
    if kind.is_redirect() {
        // A store may correct the region of a bucket only so often. Other settings make it a new one.
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        store.set(&[("content_type", &format!("test/{number}"))]);
    }
    if matches!(kind.what, s3_server::What::Refuse) {
        // Only new connections are refused.
        store.reset_connections();
    }
    let uploads = || -> BTreeSet<String> {
        store.uploads(store.bucket()).into_iter().map(|upload| upload.id).collect()
    };
    let old_uploads = uploads();
    store.reset_log();
    let inject = |fault| store.inject(fault);
    let faults: Vec<_> = match (k, kind.on) {
        (Some(k), _) => vec![inject(Fault::new(When::Nth(k), kind.what.clone()))],
        (None, On::Any) => vec![inject(Fault::new(When::All, kind.what.clone()))],
        (None, on) => {
            let operations: BTreeSet<_> = log.iter().filter(|name| on.includes(name)).collect();
            operations
                .into_iter()
                .map(|name| inject(Fault::new(When::All, kind.what.clone()).operation(name)))
                .collect()
        }
    };
    let start = Instant::now();
    let answer = (op.run)(&case);
    let took = start.elapsed();
    let met: usize = faults.into_iter().map(|fault| store.met(fault)).sum();
    store.clear_faults();
    if met == 0 {
        return None;
    }

    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    check(took < LIMIT * op.patience, format!("took {took:?}"));
    let code = match &answer {
        Err(Failure::Error(error)) => Some(error.code()),
        _ => None,
    };
    let allowed = match (expect, code) {
        (_, None) if matches!(answer, Err(Failure::Wrong(_))) => false,
        (Expect::Right | Expect::RightOr(_), None) => true,
        // The fault leads to the code that it would have been anyway.
        (Expect::Error(codes), None) => op.fails.is_some_and(|code| codes.contains(&code)),
        (Expect::Right, Some(_)) => false,
        (Expect::RightOr(codes) | Expect::Error(codes), Some(code)) => {
            codes.contains(&code) || op.also.contains(&code)
        }
    };
    let said = describe(&answer).unwrap_or_else(|| "OK".into());
    check(allowed, format!("{said}; wanted {expect:?}"));

    // The state: all of it on success, each key before or after otherwise.
    let is = case.objects();
    if answer.is_ok() {
        check(is == after, difference(&is, &after));
    } else {
        let keys: BTreeSet<_> = is.keys().chain(before.keys()).chain(after.keys()).collect();
        for key in keys {
            let now = is.get(key);
            if now != before.get(key) && now != after.get(key) {
                check(
                    false,
                    format!(
                        "{key} is neither as before nor as after: {:?} bytes",
                        now.map(Vec::len)
                    ),
                );
                break;
            }
        }
        for (src, dst) in op.moves {
            let (src, dst) = (format!("{}{src}", case.dir), format!("{}{dst}", case.dir));
            check(
                is.contains_key(&src) || is.get(&dst) == after.get(&dst),
                format!("{src} is gone, {dst} is not whole"),
            );
        }
    }
    // A fault that met what names or ends an upload leaves it there, with a warning.
    let no_uploads = || uploads().is_subset(&old_uploads) || store.unexplained_uploads().is_empty();
    check(
        eventually(Duration::from_secs(2), no_uploads),
        format!("uploads left: {:?}", store.open_uploads()),
    );

    // No harm remains. To append again would append twice.
    if op.appends {
        return Some((wrong, took));
    }
    let again = (op.run)(&case);
    let is = case.objects();
    let was_done =
        matches!(&again, Err(Failure::Error(error)) if op.done_already.contains(&error.code()));
    if let Some(what) = describe(&again).filter(|_| !was_done) {
        check(false, format!("afterwards without the fault: {what} (first: {said})"));
    } else {
        check(is == after, format!("afterwards {} (first: {said})", difference(&is, &after)));
    }
    Some((wrong, took))
}
