//! Every fault at every request: "fail the k-th request", for each operation, each kind of fault, and each k.
//!
//! After each, the answer is right or an error with the code that the fault stands for, within a bounded time; what is
//! in the store is what was there before or what the operation makes of it, key by key; nothing is left behind; and
//! without the fault the same operation succeeds. Writing has a sweep of its own in `writing*.rs`.

use s3_server::{Fault, Gate, Options, What, When};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tf_fs_plugin::testing::Host;
use tf_fs_plugin::{Code, Error};
use tf_plugin_s3_tests::faults::{Expect, Kind, On, kinds};
use tf_plugin_s3_tests::{Store, content, eventually, host};

/// Why an operation did not do what it should.
enum Failure {
    /// It said so.
    Error(Error),
    /// It answered, but not rightly.
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

type Answer = Result<(), Failure>;

fn right(holds: bool, what: impl FnOnce() -> String) -> Answer {
    if holds { Ok(()) } else { Err(Failure::Wrong(what())) }
}

/// The answer must be this error: it is what a store without faults leads to.
fn fails_with<T>(answer: Result<T, Error>, code: Code) -> Answer {
    match answer {
        Ok(_) => Err(Failure::Wrong(format!("OK in place of {code:?}"))),
        Err(error) if error.code() == code => Ok(()),
        Err(error) => Err(Failure::Error(error)),
    }
}

/// Whole contents by key. Long ones are told apart by their ETag.
type Objects = BTreeMap<String, Vec<u8>>;

/// One run of one operation, below a directory of its own.
struct Case<'s> {
    store: &'s Store,
    dir: String,
}

impl Case<'_> {
    fn host(&self) -> &'static Host {
        host()
    }

    fn uri(&self, key: &str) -> String {
        self.store.uri(&format!("{}{key}", self.dir))
    }

    fn put(&self, key: &str, content: impl Into<Vec<u8>>) {
        self.store.put(&format!("{}{key}", self.dir), content);
    }

    /// What is in the bucket, below this directory and elsewhere.
    fn objects(&self) -> Objects {
        let keys = self.store.keys().into_iter();
        keys.filter_map(|key| {
            // What an operation that was given up has under way may still be done.
            let info = self.store.stat(self.store.bucket(), &key)?;
            let content = if info.len > HUGE {
                info.len.to_string().into_bytes()
            } else {
                self.store.get(&key)?
            };
            Some((key, content))
        })
        .collect()
    }

    fn clear(&self) {
        for key in self.store.keys() {
            self.store.delete(self.store.bucket(), &key);
        }
    }
}

/// From here on a single request cannot copy.
const HUGE: u64 = 5 << 30;

/// Something that TensorFlow asks for.
struct Op {
    name: &'static str,
    setup: fn(&Case<'_>),
    run: fn(&Case<'_>) -> Answer,
    /// What becomes of the objects, with the directory of the case.
    effect: fn(&mut Objects, &str),
    /// Sources and targets: what is no longer at its source has to be at its target.
    moves: &'static [(&'static str, &'static str)],
    /// What it answers without a fault, if that is an error.
    fails: Option<Code>,
    /// What the operation answers when it is asked again after it is done.
    done_already: &'static [Code],
    /// How often the usual limit it may take.
    patience: u32,
    /// Codes that it may give besides those of the fault.
    also: &'static [Code],
    /// Who may not list cannot tell a directory from nothing, so refused listings are left out.
    needs_listing: bool,
    /// Of the faults at single requests, every so many is tried: for operations that take long.
    sample: usize,
    /// For operations with many requests: only these.
    at: fn(usize) -> bool,
}

const QUERY: Op = Op {
    name: "",
    setup: |_| {},
    run: |_| Ok(()),
    effect: |_, _| {},
    moves: &[],
    fails: None,
    patience: 1,
    also: &[],
    needs_listing: false,
    sample: 1,
    done_already: &[],
    at: |_| true,
};

/// Several ranged GETs of the smallest size that can be set.
const LEN: usize = 200_000;

fn body() -> Vec<u8> {
    content(LEN, 1)
}

/// More than a page of a listing.
const MANY: usize = 1_001;

fn put_file(case: &Case<'_>) {
    case.put("f", content(1_000, 7));
    // Neighbours in byte order, before and after `f/`.
    case.put("f-1", "1");
    case.put("f.index", "2");
    case.put("f0", "3");
}

fn put_big(case: &Case<'_>) {
    case.put("f", body());
}

fn put_tree(case: &Case<'_>) {
    case.put("t-x", "beside");
    case.put("t.x", "beside");
    case.put("t/a", "1");
    case.put("t/b/c", "2");
    case.put("t/b/d", "3");
    case.put("t0", "beside");
}

fn put_many(case: &Case<'_>) {
    case.put("t-x", "beside");
    for index in 0..MANY {
        case.put(&format!("t/{index:04}"), "x");
    }
    case.put("t0", "beside");
}

fn remove_tree(objects: &mut Objects, dir: &str) {
    objects.retain(|key, _| !key.starts_with(&format!("{dir}t/")));
}

fn copy(objects: &mut Objects, dir: &str, src: &str, dst: &str) {
    let content = objects.get(&format!("{dir}{src}")).cloned().unwrap_or_default();
    objects.insert(format!("{dir}{dst}"), content);
}

fn names(mut names: Vec<Vec<u8>>) -> Vec<String> {
    names.sort();
    names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect()
}

fn is_tree(found: Vec<Vec<u8>>) -> Answer {
    let found = names(found);
    let wanted: Vec<String> = (0..MANY).map(|index| format!("{index:04}")).collect();
    right(found == wanted, || format!("{} of {MANY} entries", found.len()))
}

fn operations() -> Vec<Op> {
    vec![
        Op {
            name: "read a small file",
            setup: put_file,
            run: |case| {
                let file = case.host().new_random_access_file(case.uri("f"))?;
                right(file.read(0, 2_000)? == content(1_000, 7), || "wrong bytes".into())
            },
            ..QUERY
        },
        Op {
            name: "read on and on",
            setup: put_big,
            run: |case| {
                let (file, body) = (case.host().new_random_access_file(case.uri("f"))?, body());
                for start in (0..LEN).step_by(48_000) {
                    let wanted = &body[start..LEN.min(start + 48_000)];
                    right(file.read(start as u64, 48_000)? == wanted, || {
                        format!("wrong bytes at {start}")
                    })?;
                }
                Ok(())
            },
            at: |k| k < 10,
            ..QUERY
        },
        Op {
            name: "read here and there",
            setup: put_big,
            run: |case| {
                let (file, body) = (case.host().new_random_access_file(case.uri("f"))?, body());
                for start in [150_000, 17, 130_001, 199_999, 70_000] {
                    let wanted = &body[start..LEN.min(start + 5_000)];
                    right(file.read(start as u64, 5_000)? == wanted, || {
                        format!("wrong bytes at {start}")
                    })?;
                }
                Ok(())
            },
            ..QUERY
        },
        Op {
            name: "read all at once",
            setup: put_big,
            run: |case| {
                let file = case.host().new_random_access_file(case.uri("f"))?;
                right(file.read(0, LEN + 1)? == body(), || "wrong bytes".into())
            },
            at: |k| k < 10,
            ..QUERY
        },
        Op {
            name: "map",
            setup: put_big,
            run: |case| {
                let region = case.host().new_read_only_memory_region_from_file(case.uri("f"))?;
                right(region.to_vec() == body(), || "wrong bytes".into())
            },
            at: |k| k < 10,
            ..QUERY
        },
        Op {
            name: "read an empty file",
            setup: |case| case.put("f", ""),
            run: |case| {
                let file = case.host().new_random_access_file(case.uri("f"))?;
                right(file.read(0, 10)?.is_empty(), || "bytes".into())
            },
            ..QUERY
        },
        Op {
            name: "open what is missing",
            setup: put_file,
            run: |case| {
                fails_with(case.host().new_random_access_file(case.uri("g")), Code::NotFound)
            },
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "open a directory",
            setup: put_tree,
            run: |case| {
                fails_with(
                    case.host().new_random_access_file(case.uri("t")),
                    Code::FailedPrecondition,
                )
            },
            fails: Some(Code::FailedPrecondition),
            needs_listing: true,
            ..QUERY
        },
        Op {
            name: "stat of a file",
            setup: put_file,
            run: |case| {
                let found = case.host().stat(case.uri("f"))?;
                right(!found.is_directory && found.length == 1_000, || format!("{found:?}"))
            },
            ..QUERY
        },
        Op {
            name: "stat of a directory",
            setup: put_tree,
            run: |case| {
                let found = case.host().stat(case.uri("t"))?;
                right(found.is_directory, || format!("{found:?}"))
            },
            needs_listing: true,
            ..QUERY
        },
        Op {
            name: "stat of what is missing",
            setup: put_file,
            run: |case| fails_with(case.host().stat(case.uri("g")), Code::NotFound),
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "exists",
            setup: put_file,
            run: |case| Ok(case.host().path_exists(case.uri("f"))?),
            ..QUERY
        },
        Op {
            name: "exists, missing",
            setup: put_file,
            run: |case| fails_with(case.host().path_exists(case.uri("g")), Code::NotFound),
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "is a directory",
            setup: put_tree,
            run: |case| Ok(case.host().is_directory(case.uri("t"))?),
            needs_listing: true,
            ..QUERY
        },
        Op {
            name: "is a directory, no",
            setup: put_file,
            run: |case| {
                fails_with(case.host().is_directory(case.uri("f")), Code::FailedPrecondition)
            },
            fails: Some(Code::FailedPrecondition),
            ..QUERY
        },
        Op {
            name: "size",
            setup: put_file,
            run: |case| {
                let size = case.host().get_file_size(case.uri("f"))?;
                right(size == 1_000, || format!("{size} bytes"))
            },
            ..QUERY
        },
        Op {
            name: "many exist",
            setup: put_tree,
            run: |case| {
                let answers = case.host().paths_exist(&[
                    case.uri("t"),
                    case.uri("t/a"),
                    case.uri("u"),
                    case.uri("t0"),
                ])?;
                let mut answers = answers.into_iter();
                let mut next = || answers.next().expect("an answer for each");
                next()?;
                next()?;
                fails_with(next(), Code::NotFound)?;
                Ok(next()?)
            },
            ..QUERY
        },
        Op {
            name: "list",
            setup: put_many,
            run: |case| is_tree(case.host().get_children(case.uri("t"))?),
            sample: 2,
            ..QUERY
        },
        Op {
            name: "list what is missing",
            setup: put_file,
            run: |case| fails_with(case.host().get_children(case.uri("g")), Code::NotFound),
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "list a file",
            setup: put_file,
            run: |case| {
                fails_with(case.host().get_children(case.uri("f")), Code::FailedPrecondition)
            },
            fails: Some(Code::FailedPrecondition),
            ..QUERY
        },
        Op {
            name: "glob",
            setup: put_many,
            run: |case| {
                let prefix = case.uri("t/").into_bytes();
                let found = case.host().get_matching_paths(case.uri("t/*"))?;
                is_tree(
                    found
                        .into_iter()
                        .map(|uri| uri.strip_prefix(&prefix[..]).unwrap_or(&uri).to_vec())
                        .collect(),
                )
            },
            sample: 2,
            ..QUERY
        },
        Op {
            name: "glob in directories",
            setup: put_tree,
            run: |case| {
                let found = names(case.host().get_matching_paths(case.uri("t/*/*"))?);
                right(found == [case.uri("t/b/c"), case.uri("t/b/d")], || format!("{found:?}"))
            },
            ..QUERY
        },
        Op {
            name: "glob without a match",
            setup: put_tree,
            run: |case| {
                let found = names(case.host().get_matching_paths(case.uri("nothing/*"))?);
                right(found.is_empty(), || format!("{found:?}"))
            },
            ..QUERY
        },
        Op {
            name: "delete a file",
            setup: put_file,
            run: |case| Ok(case.host().delete_file(case.uri("f"))?),
            effect: |objects, dir| drop(objects.remove(&format!("{dir}f"))),
            done_already: &[Code::NotFound],
            ..QUERY
        },
        Op {
            name: "delete what is missing",
            setup: put_file,
            run: |case| fails_with(case.host().delete_file(case.uri("g")), Code::NotFound),
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "delete an empty directory",
            setup: |case| {
                put_file(case);
                case.put("t/", "");
            },
            run: |case| Ok(case.host().delete_dir(case.uri("t"))?),
            effect: |objects, dir| drop(objects.remove(&format!("{dir}t/"))),
            done_already: &[Code::NotFound],
            ..QUERY
        },
        Op {
            name: "delete a directory that is not empty",
            setup: put_tree,
            run: |case| fails_with(case.host().delete_dir(case.uri("t")), Code::FailedPrecondition),
            fails: Some(Code::FailedPrecondition),
            ..QUERY
        },
        Op {
            name: "delete a tree",
            setup: put_many,
            run: |case| {
                let deleted = case.host().delete_recursively(case.uri("t"));
                deleted.map_err(|left| Failure::Error(left.error))
            },
            effect: remove_tree,
            done_already: &[Code::NotFound],
            // One by one, if the store refuses to delete many.
            patience: 3,
            sample: 3,
            ..QUERY
        },
        Op {
            name: "copy",
            setup: put_file,
            run: |case| Ok(case.host().copy_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| copy(objects, dir, "f", "g"),
            ..QUERY
        },
        Op {
            name: "copy over a file",
            setup: |case| {
                put_file(case);
                case.put("g", "old");
            },
            run: |case| Ok(case.host().copy_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| copy(objects, dir, "f", "g"),
            ..QUERY
        },
        Op {
            name: "copy in parts",
            setup: |case| {
                let key = format!("{}f", case.dir);
                drop(case.store.put_sparse(case.store.bucket(), &key, HUGE + 1));
            },
            run: |case| Ok(case.host().copy_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| copy(objects, dir, "f", "g"),
            // 81 parts.
            patience: 3,
            sample: 7,
            // What S3 says of an object that is too long for one copy, where the fault hides why it says so, and of
            // parts and ranges that a fault has made wrong.
            also: &[Code::InvalidArgument],
            at: |k| k < 8,
            ..QUERY
        },
        Op {
            name: "copy what is missing",
            setup: put_file,
            run: |case| {
                fails_with(case.host().copy_file(case.uri("none"), case.uri("g")), Code::NotFound)
            },
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "rename",
            setup: put_file,
            run: |case| Ok(case.host().rename_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| {
                copy(objects, dir, "f", "g");
                objects.remove(&format!("{dir}f"));
            },
            moves: &[("f", "g")],
            done_already: &[Code::NotFound],
            ..QUERY
        },
        Op {
            name: "rename over a file",
            setup: |case| {
                put_file(case);
                case.put("g", "old");
            },
            run: |case| Ok(case.host().rename_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| {
                copy(objects, dir, "f", "g");
                objects.remove(&format!("{dir}f"));
            },
            moves: &[("f", "g")],
            done_already: &[Code::NotFound],
            ..QUERY
        },
        Op {
            name: "rename a directory",
            setup: put_tree,
            run: |case| Ok(case.host().rename_file(case.uri("t"), case.uri("u"))?),
            effect: |objects, dir| {
                for name in ["a", "b/c", "b/d"] {
                    copy(objects, dir, &format!("t/{name}"), &format!("u/{name}"));
                }
                remove_tree(objects, dir);
            },
            moves: &[("t/a", "u/a"), ("t/b/c", "u/b/c"), ("t/b/d", "u/b/d")],
            done_already: &[Code::NotFound],
            // Lists, copies, and takes the copies back.
            patience: 2,
            needs_listing: true,
            ..QUERY
        },
        Op {
            name: "make a directory",
            setup: put_file,
            run: |case| Ok(case.host().create_dir(case.uri("d"))?),
            effect: |objects, dir| drop(objects.insert(format!("{dir}d/"), Vec::new())),
            done_already: &[Code::AlreadyExists],
            ..QUERY
        },
        Op {
            name: "make a directory that is there",
            setup: put_tree,
            run: |case| fails_with(case.host().create_dir(case.uri("t")), Code::AlreadyExists),
            fails: Some(Code::AlreadyExists),
            needs_listing: true,
            ..QUERY
        },
        Op {
            name: "make directories",
            setup: put_file,
            run: |case| Ok(case.host().recursively_create_dir(case.uri("d/e"))?),
            effect: |objects, dir| drop(objects.insert(format!("{dir}d/e/"), Vec::new())),
            ..QUERY
        },
        Op {
            name: "make directories that are there",
            setup: put_tree,
            run: |case| Ok(case.host().recursively_create_dir(case.uri("t/b"))?),
            needs_listing: true,
            ..QUERY
        },
    ]
}

/// Three attempts, each given up after 800 ms without progress, and the waits between; on a machine with much else to
/// do. Longer means that something waits for a time-out of its own.
const LIMIT: Duration = Duration::from_secs(8);

/// Requests that `op` makes without faults, by operation of S3, in their order.
fn requests(store: &Store, op: &Op) -> Result<Vec<&'static str>, String> {
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
fn try_one(
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
    // What keeps an operation from giving an upload up leaves it there, with a warning.
    let may_abort = match k {
        // Its answer, lost or not, is what names the upload.
        Some(k) => log.get(k - 1) != Some(&"CreateMultipartUpload"),
        None => !kind.on.includes("AbortMultipartUpload"),
    };
    let no_uploads = || uploads().is_subset(&old_uploads);
    check(
        !may_abort || eventually(Duration::from_secs(2), no_uploads),
        format!("uploads left: {:?}", store.open_uploads()),
    );

    // No harm remains.
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

/// Runs all of it, each operation and kind on the next free store.
fn sweep(topic: &str, persistent: bool) {
    const WORKERS: usize = 10;
    let settings = [("read_part_bytes", "65536"), ("read_concurrency", "4")];
    let settings: Vec<_> = tf_plugin_s3_tests::IMPATIENT.iter().copied().chain(settings).collect();
    // With the ETags of S3, by which copies are known.
    let options = Options { threads: 1, ..Options::default() };
    let stores: Vec<_> =
        (0..WORKERS).map(|_| Store::start(topic, options.clone(), &settings)).collect();
    let (operations, kinds) = (operations(), kinds());
    let only = std::env::var("S3_SWEEP_ONLY").unwrap_or_default();
    let pairs: Vec<_> = operations
        .iter()
        .flat_map(|op| kinds.iter().map(move |kind| (op, kind)))
        .filter(|(op, kind)| format!("{} / {}", op.name, kind.name).contains(&only))
        .collect();
    let (next, cases) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (failures, times) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let start = Instant::now();
    let plain: Vec<_> = {
        let first = &stores[0];
        operations.iter().map(|op| (op.name, requests(first, op))).collect()
    };
    for (_, log) in &plain {
        if let Err(what) = log {
            failures.lock().expect("no panic").push(what.clone());
        }
    }
    let plain: BTreeMap<_, _> =
        plain.into_iter().filter_map(|(name, log)| Some((name, log.ok()?))).collect();
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((op, kind)) = pairs.get(number) else { break };
                    let Some(log) = plain.get(op.name) else { continue };
                    if !log.iter().any(|operation| kind.on.includes(operation)) {
                        continue;
                    }
                    for k in (1..=log.len() + 8).filter(|k| (op.at)(*k)) {
                        // A kind for some requests only: those that the operation makes at this place.
                        if !persistent
                            && log.get(k - 1).is_some_and(|operation| !kind.on.includes(operation))
                        {
                            continue;
                        }
                        if !persistent && (k + number) % op.sample != 0 {
                            continue;
                        }
                        // An operation that changes nothing may list at any request, and repeat one.
                        let is_listing = op.moves.is_empty()
                            || log.get(k - 1).is_none_or(|name| *name == "ListObjectsV2");
                        let is_refused = is_listing && kind.is_refusal();
                        if !persistent && op.needs_listing && is_refused {
                            continue;
                        }
                        let k = (!persistent).then_some(k);
                        let Some((wrong, took)) = try_one(store, op, kind, k, log) else {
                            break;
                        };
                        cases.fetch_add(1, Ordering::Relaxed);
                        let place = k.map_or("all".into(), |k| format!("request {k}"));
                        times
                            .lock()
                            .expect("no panic")
                            .push((took, format!("{} / {} / {place}", op.name, kind.name)));
                        let mut failures = failures.lock().expect("no panic");
                        failures.extend(
                            wrong.into_iter().map(|what| {
                                format!("{} / {} / {place}: {what}", op.name, kind.name)
                            }),
                        );
                        if persistent {
                            break;
                        }
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no panic");
    failures.sort();
    let cases = cases.into_inner();
    let mut times = times.into_inner().expect("no panic");
    times.sort();
    println!(
        "{cases} cases in {:?}; the slowest: {:#?}",
        start.elapsed(),
        &times[times.len().saturating_sub(8)..]
    );
    assert!(failures.is_empty(), "{} of {cases} cases:\n{}", failures.len(), failures.join("\n"));
    assert!(!only.is_empty() || cases > 500, "only {cases} cases");
    assert_eq!(host().take_violations(), [], "the rules of the C boundary");
}

#[test]
fn each_fault_at_each_request() {
    sweep("faults", false);
}

#[test]
fn each_fault_at_all_requests() {
    sweep("lasting-faults", true);
}

/// One copy is refused while another is made and not answered yet: it must not be left behind.
#[test]
fn a_rename_that_failed_leaves_no_copy_that_was_under_way() {
    let store = Store::with("late-copies", tf_plugin_s3_tests::IMPATIENT);
    for name in ["t/a", "t/b", "t/c"] {
        store.put(name, name);
    }
    let gate = Gate::new();
    let to = |key, what| Fault::new(When::Nth(1), what).operation("CopyObject").key(key);
    store.inject(to("u/a", What::PauseDone(gate.clone())));
    store.inject(to("u/b", What::status(403, "AccessDenied")));
    let failed = std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(gate.wait_for(1, Duration::from_secs(20)), "no copy is under way");
            std::thread::sleep(Duration::from_millis(300));
            gate.open();
        });
        host().rename_file(store.uri("t"), store.uri("u"))
    });
    assert_eq!(failed.map_err(|error| error.code()), Err(Code::PermissionDenied));
    store.quiet();
    assert_eq!(store.keys(), ["t/a", "t/b", "t/c"]);
}
