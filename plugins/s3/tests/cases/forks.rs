//! Forked processes. Each test runs again in a process of its own: what it looks at belongs to a process, and no other test
//! may hold a lock while it forks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tf_fs_plugin::{Code, Error};
use tf_plugin_s3_tests::abi::{Ended, in_fork, recycled};
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{Store, content, eventually, host};

/// A forked process works or says why not within this time, on a machine with other things to do.
const SOON: Duration = Duration::from_secs(3);
/// After this it hangs.
const LATE: Duration = Duration::from_secs(10);

const MIB: usize = 1 << 20;

fn open(store: &Store, key: &str) -> tf_plugin_testing::filesystem::TestRandomAccessFile {
    host().new_random_access_file(store.uri(key)).expect("opened")
}

fn read(store: &Store, key: &str) -> Vec<u8> {
    host().read_file(store.uri(key)).expect("read")
}

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

#[test]
fn fork_with_an_open_reader() {
    alone(this_test!(), || {
        let store = Store::new("fork");
        let body = content(24 * MIB, 6);
        store.put("f", body.clone());
        let file = open(&store, "f");
        assert_eq!(file.read(0, MIB).unwrap(), body[..MIB]);
        // Parts are on their way while the process forks.
        let (ended, took) = in_fork(Duration::from_secs(10), || {
            let right = |offset: usize, n: usize| {
                file.read(offset as u64, n).is_ok_and(|read| read == body[offset..offset + n])
            };
            format!("{} {} {}", right(0, 100), right(MIB, MIB), right(9 * MIB, 12 * MIB))
        })
        .unwrap();
        assert_eq!(ended, Ended::Answered("true true true".into()));
        assert!(took < 2 * SOON, "{took:?}");
        // And in the parent, whose connections the child left alone.
        assert!(read(&store, "f") == body);
        assert_eq!(file.read(MIB as u64, MIB).unwrap(), body[MIB..2 * MIB]);
        // A child that only drops it ends.
        let mut file = Some(file);
        let (ended, _) = in_fork(Duration::from_secs(10), || {
            drop(file.take());
            "dropped".into()
        })
        .unwrap();
        assert_eq!(ended, Ended::Answered("dropped".into()));
        assert!(eventually(Duration::from_secs(2), || store.quiet()));
    });
}

#[test]
fn fork_while_the_disk_cache_is_written() {
    alone(this_test!(), || {
        let directory = tempfile::tempdir().unwrap();
        let cache = format!("{}:1GiB", directory.path().display());
        let store = Store::with("fork-disk", &[("disk_cache", &cache)]);
        let bodies = [content(24 * MIB, 6), content(24 * MIB, 7)];
        for (key, body) in ["f", "g"].into_iter().zip(&bodies) {
            store.put(key, body.clone());
        }
        assert!(read(&store, "f") == bodies[0]);
        let file = open(&store, "f");
        assert_eq!(file.read(0, MIB).unwrap(), bodies[0][..MIB]);
        for round in 0..8 {
            // Blocks of `g` are being written while the process forks.
            store.put("g", bodies[round % 2].clone());
            let writing = open(&store, "g");
            assert_eq!(writing.read(0, 9 * MIB).unwrap(), bodies[round % 2][..9 * MIB]);
            let (ended, took) = in_fork(Duration::from_secs(10), || {
                let open =
                    file.read(MIB as u64, MIB).is_ok_and(|read| read == bodies[0][MIB..2 * MIB]);
                let [f, g] = [("f", 0), ("g", round % 2)]
                    .map(|(key, body)| read(&store, key) == bodies[body]);
                format!("{open} {f} {g}")
            })
            .unwrap();
            assert_eq!(ended, Ended::Answered("true true true".into()));
            assert!(took < 2 * SOON, "{took:?}");
            assert!(read(&store, "g") == bodies[round % 2]);
        }
        assert!(eventually(Duration::from_secs(2), || store.quiet()));
    });
}

#[test]
fn fork_with_an_open_writer() {
    alone(this_test!(), || {
        let store = Store::with("writing-fork", &[("write_part_bytes", "5MiB")]);
        for (size, flush) in [(100, false), (11 * MIB, false), (6 * MIB, true)] {
            let bytes = content(size, 1);
            let mut file = host().new_writable_file(store.uri("file")).unwrap();
            file.append(&bytes).unwrap();
            if flush {
                file.flush().unwrap();
            }
            // What the parent sends in the background has arrived.
            let parts = if size > 10 * MIB { 2 } else { 0 };
            let stored = || {
                store.uploads(store.bucket()).iter().map(|upload| upload.parts.len()).sum::<usize>()
            };
            assert!(eventually(Duration::from_secs(10), || stored() == parts));
            store.quiet();
            store.reset_log();
            let mut slot = Some(file);
            let (ended, took) = in_fork(Duration::from_secs(10), || {
                let mut file = slot.take().unwrap();
                let answers = [file.append(b"x"), file.flush(), file.sync(), file.close()];
                let told = file.tell().map(drop);
                drop(file);
                let codes: Vec<_> = answers
                    .into_iter()
                    .chain([told])
                    .map(|answer| {
                        answer.map_or_else(|error| format!("{:?}", error.code()), |()| "OK".into())
                    })
                    .collect();
                codes.join(" ")
            })
            .unwrap();
            let refused = vec![format!("{:?}", Code::FailedPrecondition); 5].join(" ");
            assert_eq!(ended, Ended::Answered(refused), "{size}");
            assert!(took < SOON, "{took:?}");
            // The child has not aborted, completed or sent anything.
            assert_eq!(store.log().len(), 0, "{:?}", store.counts());

            let mut file = slot.unwrap();
            file.append(b"and more").unwrap();
            file.close().unwrap();
            assert_eq!(store.get("file"), Some([&bytes[..], b"and more"].concat()), "{size}");
            assert_eq!(store.open_uploads(), [""; 0]);
        }
    });
}

#[test]
fn fork_while_files_are_written() {
    alone(this_test!(), || {
        // At any moment of the parent's threads.
        let store = Store::with("writing-forks", &[("write_part_bytes", "5MiB")]);
        let bytes = content(11 * MIB, 1);
        for round in 0..20 {
            let mut slot = host().new_writable_file(store.uri("file")).ok();
            slot.as_mut().unwrap().append(&bytes).unwrap();
            std::thread::sleep(Duration::from_millis(round));
            let (ended, _) = in_fork(Duration::from_secs(10), || {
                drop(slot.take());
                let mut file = host().new_writable_file(store.uri("child")).unwrap();
                file.append(b"child").unwrap();
                file.close().map_or_else(|error| error.to_string(), |()| "stored".into())
            })
            .unwrap();
            assert_eq!(ended, Ended::Answered("stored".into()), "{round}");
            slot.unwrap().close().unwrap();
            assert_eq!(store.get("file").as_ref(), Some(&bytes));
        }
        assert_eq!(store.open_uploads(), [""; 0]);
    });
}
