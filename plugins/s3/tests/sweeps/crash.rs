//! A process that is killed at any moment: at each request k, before it is done, after it is done, and while the store
//! continues with it. Then an audit: every object is as it was or as it was to be, whole; nothing else is touched; what is
//! left behind is what `SEMANTICS.md` says; and the next process can do the same again.

use s3_server::{Fault, Gate, Options, What, When};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tf_fs_plugin::Error;
use tf_plugin_s3_tests::{Store, child, content, host};

type Objects = BTreeMap<String, Vec<u8>>;

/// The URI of a key.
type Uri<'a> = &'a dyn Fn(&str) -> String;

/// What the killed process does.
struct Script {
    name: &'static str,
    before: fn(&Store),
    run: fn(Uri<'_>) -> Result<(), Error>,
    /// Each state that the bucket may be seen in, the last one being that of a process that was not killed. Between
    /// two of them a key is as in one or the other.
    states: fn(&mut Vec<Objects>),
    /// The keys for which an incomplete upload may be left.
    uploads: &'static [&'static str],
    /// Sources and targets: what is no longer at its source is whole at its target.
    moves: &'static [(&'static str, &'static str)],
}

const MIB: usize = 1 << 20;
/// The smallest part that S3 takes.
const PART: usize = 5 * MIB;

fn written() -> Vec<u8> {
    content(2 * PART + MIB, 3)
}

fn put_old(store: &Store) {
    store.put("f", content(1_000, 1));
    store.put("f-1", "beside");
    store.put("f/x", "below");
}

fn put_large(store: &Store) {
    store.put("f", content(6 * MIB, 1));
    store.put("f-1", "beside");
}

fn put_tree(store: &Store) {
    store.put("t-1", "beside");
    for name in ["t/", "t/a", "t/b/c", "t/d"] {
        store.put(name, if name.ends_with('/') { "" } else { name });
    }
}

/// A state more: the last one, changed.
fn then(states: &mut Vec<Objects>, change: impl FnOnce(&mut Objects)) {
    let mut state = states.last().cloned().unwrap_or_default();
    change(&mut state);
    states.push(state);
}

fn scripts() -> Vec<Script> {
    vec![
        Script {
            name: "write a small file",
            before: put_old,
            run: |uri| {
                let mut file = host().new_writable_file(uri("f"))?;
                file.append(b"new")?;
                file.close()
            },
            states: |states| {
                then(states, |objects| drop(objects.insert("f".into(), b"new".into())))
            },
            uploads: &[],
            moves: &[],
        },
        Script {
            name: "write in parts",
            before: put_old,
            run: |uri| {
                let mut file = host().new_writable_file(uri("f"))?;
                for piece in written().chunks(MIB) {
                    file.append(piece)?;
                }
                file.close()
            },
            states: |states| then(states, |objects| drop(objects.insert("f".into(), written()))),
            uploads: &["f"],
            moves: &[],
        },
        Script {
            name: "flush again and again",
            before: |store| store.put("other", "beside"),
            run: |uri| {
                let mut file = host().new_writable_file(uri("log"))?;
                for piece in content(8 * MIB, 4).chunks(2 * MIB) {
                    file.append(piece)?;
                    file.flush()?;
                }
                file.close()
            },
            states: |states| {
                for end in 1..=4 {
                    then(states, |objects| {
                        drop(
                            objects
                                .insert("log".into(), content(8 * MIB, 4)[..end * 2 * MIB].into()),
                        )
                    });
                }
            },
            uploads: &["log"],
            moves: &[],
        },
        Script {
            name: "append",
            before: put_large,
            run: |uri| {
                let mut file = host().new_appendable_file(uri("f"))?;
                file.append(b"more")?;
                file.close()
            },
            states: |states| {
                then(states, |objects| {
                    objects.get_mut("f").expect("there").extend_from_slice(b"more")
                })
            },
            uploads: &["f"],
            moves: &[],
        },
        Script {
            name: "rename over a file",
            before: |store| {
                put_old(store);
                store.put("g", "old");
            },
            run: |uri| host().rename_file(uri("f"), uri("g")),
            states: |states| {
                then(states, |objects| drop(objects.insert("g".into(), content(1_000, 1))));
                then(states, |objects| drop(objects.remove("f")));
            },
            uploads: &[],
            moves: &[("f", "g")],
        },
        Script {
            name: "rename a directory",
            before: put_tree,
            run: |uri| host().rename_file(uri("t"), uri("u")),
            states: |states| {
                then(states, |objects| {
                    for name in ["", "a", "b/c", "d"] {
                        let content = objects[&format!("t/{name}")].clone();
                        objects.insert(format!("u/{name}"), content);
                    }
                });
                then(states, |objects| objects.retain(|key, _| !key.starts_with("t/")));
            },
            uploads: &[],
            moves: &[("t/", "u/"), ("t/a", "u/a"), ("t/b/c", "u/b/c"), ("t/d", "u/d")],
        },
        Script {
            name: "delete a tree",
            before: put_tree,
            run: |uri| host().delete_recursively(uri("t")).map_err(|left| left.error),
            states: |states| {
                then(states, |objects| objects.retain(|key, _| !key.starts_with("t/")))
            },
            uploads: &[],
            moves: &[],
        },
        Script {
            name: "copy",
            before: put_old,
            run: |uri| host().copy_file(uri("f"), uri("g")),
            states: |states| {
                then(states, |objects| drop(objects.insert("g".into(), content(1_000, 1))))
            },
            uploads: &[],
            moves: &[],
        },
        Script {
            name: "make directories",
            before: put_old,
            run: |uri| host().recursively_create_dir(uri("d/e")),
            states: |states| {
                then(states, |objects| drop(objects.insert("d/e/".into(), Vec::new())))
            },
            uploads: &[],
            moves: &[],
        },
    ]
}

/// When the process is killed, seen from request k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before,
    Done,
    /// The store has the request, and does it when its sender is dead.
    InBetween,
}

const TEST: &str = "crash::killed_at_each_request";

fn objects(store: &Store) -> Objects {
    store.keys().into_iter().filter_map(|key| Some((key.clone(), store.get(&key)?))).collect()
}

/// Starts the process that runs a script.
fn start(script: &Script, store: &Store) -> Child {
    child::again(TEST, &format!("{}\n{}", script.name, store.bucket()), store)
        .env("TF_S3_WRITE_PART_BYTES", PART.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child process")
}

/// What the child is.
fn play(role: &str) {
    let (name, bucket) = role.split_once('\n').expect("a script and a bucket");
    let script = scripts().into_iter().find(|script| script.name == name).expect("a script");
    let done = (script.run)(&|key| format!("s3://{bucket}/{key}"));
    // The parent sees the code; `NOT_FOUND` is that of what was done before.
    match done {
        Ok(()) => {}
        Err(error) => panic!("{name}: {:?}: {error:#}", error.code()),
    }
}

/// Kills the process at request `k`. `None` if it makes fewer; else all that is wrong, and the uploads left.
fn kill_at(script: &Script, k: usize, moment: Moment) -> Option<(Vec<String>, Vec<String>)> {
    // A rename that goes on where it was knows its copies by the ETags of S3.
    let fast = script.name != "rename a directory";
    let store = Store::hidden("crash", Options { fast, threads: 1, ..Options::default() });
    (script.before)(&store);
    let mut states = vec![objects(&store)];
    (script.states)(&mut states);
    let gate = Gate::new();
    let what = match moment {
        Moment::Done => What::PauseDone(gate.clone()),
        _ => What::Pause(gate.clone()),
    };
    store.inject(Fault::new(When::Nth(k), what));
    let mut process = start(script, &store);
    let started = Instant::now();
    let ended = loop {
        if gate.wait_for(1, Duration::from_millis(10)) {
            break None;
        }
        if let Some(status) = process.try_wait().expect("a child") {
            break Some(status);
        }
        if started.elapsed() > Duration::from_secs(60) {
            let _ = process.kill();
            return Some((vec!["neither ended nor came to the request".into()], Vec::new()));
        }
    };
    if let Some(status) = ended {
        let whole = status.success() && Some(&objects(&store)) == states.last();
        return if whole {
            None
        } else {
            Some((vec![format!("not killed, but {status}")], Vec::new()))
        };
    }
    process.kill().expect("killed");
    process.wait().expect("a child");
    if moment == Moment::InBetween {
        gate.open();
    }
    store.quiet();

    let mut wrong = Vec::new();
    let is = objects(&store);
    let keys: BTreeSet<_> = is.keys().chain(states.iter().flat_map(BTreeMap::keys)).collect();
    for key in keys {
        if !states.iter().any(|state| state.get(key) == is.get(key)) {
            wrong.push(format!(
                "{key} is none of what it may be: {:?} bytes",
                is.get(key).map(Vec::len)
            ));
        }
    }
    let last = states.last().expect("one at least");
    for (src, dst) in script.moves {
        if !is.contains_key(*src) && is.get(*dst) != last.get(*dst) {
            wrong.push(format!("{src} is gone and {dst} is not whole"));
        }
    }
    let uploads = store.open_uploads();
    for key in uploads.iter().filter(|key| !script.uploads.contains(&key.as_str())) {
        wrong.push(format!("an upload of {key} is left"));
    }

    // The next process does it again, unless it is done.
    gate.open();
    store.clear_faults();
    if &is != last || script.moves.is_empty() {
        let status = start(script, &store).wait().expect("a child");
        let done = &is == last;
        let again = objects(&store);
        let wanted = if script.name == "append" && done {
            let mut twice = last.clone();
            twice.get_mut("f").expect("there").extend_from_slice(b"more");
            twice
        } else {
            last.clone()
        };
        let may_fail = done && script.name == "delete a tree";
        if (!status.success() && !may_fail) || again != wanted {
            wrong.push(format!(
                "the next process: {status}, {} of {} objects right",
                again.len(),
                wanted.len()
            ));
        }
    }
    Some((wrong, uploads))
}

#[test]
fn killed_at_each_request() {
    if let Some(role) = child::role() {
        return play(&role);
    }
    let scripts = scripts();
    let work: Vec<_> = scripts
        .iter()
        .flat_map(|script| {
            [Moment::Before, Moment::Done, Moment::InBetween].map(|moment| (script, moment))
        })
        .collect();
    let (next, cases) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (failures, left) = (Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some((script, moment)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for k in 1.. {
                        let Some((wrong, uploads)) = kill_at(script, k, *moment) else { break };
                        cases.fetch_add(1, Ordering::Relaxed);
                        let place = format!("{} / {moment:?} / request {k}", script.name);
                        let mut failures = failures.lock().expect("no panic");
                        failures.extend(wrong.iter().map(|what| format!("{place}: {what}")));
                        if !uploads.is_empty() {
                            left.lock().expect("no panic").insert(script.name);
                        }
                        if failures.len() > 100 {
                            return;
                        }
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no panic");
    failures.sort();
    let cases = cases.into_inner();
    assert!(failures.is_empty(), "{} in {cases} cases:\n{}", failures.len(), failures.join("\n"));
    assert!(cases >= 60, "only {cases} cases");
    // What `SEMANTICS.md` says of killed processes: uploads of large files stay incomplete, and nothing else does.
    let left: Vec<_> = left.into_inner().expect("no panic").into_iter().collect();
    assert_eq!(left, ["append", "flush again and again", "write in parts"]);
}
