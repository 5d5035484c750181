//! Forked processes. Each test runs again in a process of its own, since what it looks at belongs to a process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tf_fs_plugin::{Code, Error};
use tf_plugin_s3_tests::abi::{Ended, in_fork, recycled};
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{Store, content, eventually, host};

/// A forked process works or says why not within this time, on a machine with other things to do.
const SOON: Duration = Duration::from_secs(1);
/// After this it hangs.
const LATE: Duration = Duration::from_secs(10);

fn answered(text: &str) -> Ended {
    Ended::Answered(text.into())
}

/// Reads, writes and lists; `done`, or what went wrong.
fn use_it(store: &Store, name: &str) -> String {
    let work = || -> Result<String, Error> {
        let read = host().read_file(store.uri("f"))?;
        if read != content(1_000_000, 1) {
            return Ok("wrong bytes".into());
        }
        host().write_file(store.uri(name), name)?;
        let listed = host().get_children(store.uri(""))?;
        Ok(if listed.iter().any(|entry| entry == name.as_bytes()) { "done" } else { "not listed" }
            .into())
    };
    work().unwrap_or_else(|error| format!("{:?}: {error:#}", error.code()))
}

fn store_with_file(topic: &str) -> Store {
    let store = Store::new(topic);
    store.put("f", content(1_000_000, 1));
    store
}

#[test]
fn fork_before_use() {
    alone(this_test!(), || {
        let store = store_with_file("fork-before");
        let (ended, took) = in_fork(LATE, || use_it(&store, "child")).expect("forked");
        assert_eq!(ended, answered("done"));
        assert!(took < SOON, "{took:?}");
        assert_eq!(use_it(&store, "parent"), "done");
        assert_eq!(store.get("child").as_deref(), Some(&b"child"[..]));
    });
}

#[test]
fn fork_after_use() {
    alone(this_test!(), || {
        let store = store_with_file("fork-after");
        assert_eq!(use_it(&store, "parent"), "done");
        for round in 0..5 {
            let (ended, took) =
                in_fork(LATE, || use_it(&store, &format!("child{round}"))).expect("forked");
            assert_eq!(ended, answered("done"));
            assert!(took < SOON, "{took:?}");
            assert_eq!(use_it(&store, &format!("parent{round}")), "done");
        }
    });
}

#[test]
fn fork_with_the_number_of_its_parent() {
    alone(this_test!(), || {
        let store = store_with_file("fork-number");
        assert_eq!(use_it(&store, "parent"), "done");
        let mut writer = host().new_writable_file(store.uri("w")).expect("opened");
        writer.append(b"parent").expect("appended");
        let parent = std::process::id();
        let (ended, took) = in_fork(LATE, || {
            let child = std::process::id();
            recycled::pretend(parent);
            assert!(child != parent && std::process::id() == parent);
            let closed = writer.close().map_err(|error| error.code());
            format!("{} {closed:?}", use_it(&store, "child"))
        })
        .expect("forked");
        assert_eq!(ended, answered("done Err(FailedPrecondition)"));
        assert!(took < SOON, "{took:?}");
        writer.close().expect("the parent's");
        assert_eq!(store.get("w").as_deref(), Some(&b"parent"[..]));
    });
}

#[test]
fn fork_of_a_fork() {
    alone(this_test!(), || {
        let store = store_with_file("fork-fork");
        assert_eq!(use_it(&store, "parent"), "done");
        let (ended, took) = in_fork(LATE, || {
            let first = use_it(&store, "child");
            let inner = in_fork(LATE, || use_it(&store, "grandchild"));
            format!("{first} {:?} {}", inner.map(|(ended, _)| ended), use_it(&store, "child2"))
        })
        .expect("forked");
        assert_eq!(ended, answered("done Ok(Answered(\"done\")) done"));
        assert!(took < 2 * SOON, "{took:?}");
    });
}

#[test]
fn fork_with_an_open_reader() {
    alone(this_test!(), || {
        let store = Store::with("fork-reader", &[("read_part_bytes", "65536")]);
        let body = content(2_000_000, 1);
        store.put("f", body.clone());
        let file = host().new_random_access_file(store.uri("f")).expect("opened");
        // In the middle of reading ahead.
        assert_eq!(file.read(0, 300_000).expect("read"), &body[..300_000]);
        let (ended, took) = in_fork(LATE, || match file.read(300_000, 300_000) {
            Ok(read) if read == body[300_000..600_000] => "right".into(),
            Ok(_) => "wrong bytes".into(),
            Err(error) => format!("{:?}: {error:#}", error.code()),
        })
        .expect("forked");
        assert!(
            ended == answered("right")
                || matches!(&ended, Ended::Answered(text) if text.starts_with("FailedPrecondition") && text.contains("fork")),
            "{ended:?}"
        );
        assert!(took < SOON, "{took:?}");
        // The parent's goes on, and so does dropping it in a child.
        assert_eq!(file.read(300_000, 1_700_000).expect("read"), &body[300_000..]);
        let mut file = Some(file);
        let (ended, took) = in_fork(LATE, || {
            drop(file.take());
            "dropped".into()
        })
        .expect("forked");
        assert_eq!(ended, answered("dropped"));
        assert!(took < SOON, "{took:?}");
    });
}

#[test]
fn fork_with_a_reader_that_nobody_has_used() {
    alone(this_test!(), || {
        let store = Store::with("fork-unused", &[("listing_ttl_ms", "60000")]);
        let (old, new) = (content(100_000, 1), content(90_000, 2));
        let in_child = |file: &tf_plugin_testing::filesystem::TestRandomAccessFile| {
            let (ended, took) = in_fork(LATE, || match file.read(0, 200_000) {
                Ok(read) if read == old => "old".into(),
                Ok(read) if read == new => "new".into(),
                Ok(_) => "wrong bytes".into(),
                Err(error) => format!("{:?}", error.code()),
            })
            .expect("forked");
            assert!(took < SOON, "{took:?}");
            ended
        };
        store.put("f", old.clone());
        host().stat(store.uri("f")).expect("there");
        let [unused, used] =
            [0, 1].map(|_| host().new_random_access_file(store.uri("f")).expect("opened"));
        assert_eq!(in_child(&unused), answered("old"));
        assert_eq!(used.read(0, 10).expect("read"), old[..10]);
        // Nobody has seen a byte of what was remembered; of the other file the parent has.
        store.put("f", new.clone());
        assert_eq!(in_child(&unused), answered("new"));
        assert_eq!(in_child(&used), answered("FailedPrecondition"));
        assert_eq!(unused.read(0, 200_000).expect("read"), new);
        assert_eq!(in_child(&unused), answered("new"));
    });
}

#[test]
fn fork_with_an_open_writer() {
    alone(this_test!(), || {
        let store = Store::with("fork-writer", &[("write_part_bytes", "5MiB")]);
        let body = content(12_000_000, 1);
        let mut file = host().new_writable_file(store.uri("f")).expect("opened");
        file.append(&body[..6_000_000]).expect("appended");
        assert!(eventually(SOON, || !store.open_uploads().is_empty()), "no upload");
        let (ended, took) = in_fork(LATE, || match file.append(b"child") {
            Ok(()) => "appended".into(),
            Err(error) => format!("{:?}: {error:#}", error.code()),
        })
        .expect("forked");
        let says_why = matches!(&ended, Ended::Answered(text) if text.starts_with("FailedPrecondition") && text.contains("fork"));
        assert!(says_why, "{ended:?}");
        assert!(took < SOON, "{took:?}");
        for close in [false, true] {
            let mut held = Some(&mut file);
            let (ended, took) = in_fork(LATE, || {
                let file = held.take().expect("taken once");
                let closed = if close {
                    file.close().map_err(|error| error.code())
                } else {
                    Err(Code::FailedPrecondition)
                };
                format!("{closed:?}")
            })
            .expect("forked");
            assert_eq!(ended, answered("Err(FailedPrecondition)"));
            assert!(took < SOON, "{took:?}");
        }
        let mut file = Some(file);
        let (ended, took) = in_fork(LATE, || {
            drop(file.take());
            "dropped".into()
        })
        .expect("forked");
        assert_eq!(ended, answered("dropped"));
        assert!(took < SOON, "{took:?}");
        assert_eq!(store.open_uploads(), ["f"], "the child has ended the parent's upload");
        assert_eq!(store.keys(), [""; 0]);
        let mut file = file.take().expect("the parent's");
        file.append(&body[6_000_000..]).expect("appended");
        file.close().expect("closed");
        assert!(store.get("f").is_some_and(|stored| stored == body), "other bytes");
    });
}

#[test]
fn fork_while_other_threads_are_at_work() {
    alone(this_test!(), || {
        let store = store_with_file("fork-busy");
        assert_eq!(use_it(&store, "parent"), "done");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (store, stop) = (&store, &stop);
                scope.spawn(move || {
                    for round in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        assert_eq!(use_it(store, &format!("thread{thread}-{round}")), "done");
                    }
                });
            }
            let mut slowest = Duration::ZERO;
            let mut wrong = Vec::new();
            for round in 0..30 {
                let (ended, took) =
                    in_fork(LATE, || use_it(&store, &format!("child{round}"))).expect("forked");
                slowest = slowest.max(took);
                if ended != answered("done") {
                    wrong.push(ended);
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(wrong.is_empty(), "{} of 30: {wrong:?}", wrong.len());
            // Four busy threads and the server share the cores with it.
            assert!(slowest < 4 * SOON, "{slowest:?}");
        });
    });
}
