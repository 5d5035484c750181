//! Processes that use `s3://` and fork, are interrupted, or end in the middle: `tests/python/s3_process.py`.

use cargo_tf_plugin::NEWEST;
use std::num::NonZero;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tf_plugin_conformance_tests::effort::is_whole;
use tf_plugin_tensorflow_tests::child::{self, Finished};
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::s3::{Store, installed};
use tf_plugin_tensorflow_tests::{Plugin, tensorflow};

const SCRIPT: &str = "python/s3_process.py";

/// Ten times what a way needs. A hang is what is looked for.
const LIMIT: u64 = 240;

/// What the last work may take to end after it is done, on a busy machine: the end must not wait for transfers,
/// time limits or retries, which take much longer.
const END: Duration = Duration::from_secs(12);

fn go(python: Python, store: &Store, way: &str) -> Finished {
    let finished = python
        .arg(way)
        .args(["--root", &store.root(), "--control", store.endpoint()])
        .limit(LIMIT)
        .run();
    // Its children may say so, too.
    if !finished.done().contains(&way) {
        finished.fail("the work was not done");
    }
    if finished.stderr.contains("panicked") {
        finished.fail("the plugin panicked");
    }
    finished
}

macro_rules! ways {
    ($($way:ident),* $(,)?) => {
        $(
            #[test]
            fn $way() {
                let store = Store::new("process", true);
                let python = store.python(&tensorflow(NEWEST), SCRIPT);
                go(python, &store, stringify!($way)).success();
            }
        )*
    };
}

ways! {
    fork_before_use, fork_after_use, fork_during_io, inherited_reader, inherited_writer,
    spawned_processes, a_fork_server, open_files, interrupted, sixty_four_threads,
}

/// Runs a way in its own Python.
fn alone(way: &str) -> Finished {
    let store = Store::new("process", true);
    let installed = installed(&tensorflow(NEWEST));
    go(store.python_in(&installed, SCRIPT), &store, way)
}

/// The end is timed from outside: what Python itself needs to start and to end is in `at_once`.
fn ends_in_time(way: &str) {
    static USUAL: OnceLock<Duration> = OnceLock::new();
    let time = |way| {
        let started = Instant::now();
        alone(way).success();
        started.elapsed()
    };
    let usual = *USUAL.get_or_init(|| time("at_once"));
    let took = time(way);
    assert!(took < usual + END, "{way} took {took:?}, loading alone {usual:?}");
}

#[test]
fn busy_background() {
    ends_in_time("busy_background");
}

#[test]
fn a_stalled_server() {
    ends_in_time("a_stalled_server");
}

#[test]
fn killed_by_sigint() {
    let finished = alone("killed_by_sigint");
    if finished.signal() != Some(libc::SIGINT) {
        finished.fail("it was not ended by SIGINT");
    }
}

/// A race at the end shows in one run of many, most of which share the import of TensorFlow.
#[test]
fn many_times_in_python() {
    let store = Store::new("process", true);
    let installed = installed(&tensorflow(NEWEST));
    let ways = ["used_by_children", "used", "used", "used"];
    for way in if is_whole() { &ways[..] } else { &ways[..2] } {
        let python = store.python_in(&installed, SCRIPT);
        let python = python.env("CHILDREN", if is_whole() { "17" } else { "5" });
        let finished = go(python, &store, way).success();
        assert!(!finished.stderr.contains("libs3"), "it had something to say: {}", finished.stderr);
    }
}

/// Thirty processes, or a thousand, load the plugin with TensorFlow's C library, use it and end. Python, whose import of TensorFlow takes seconds, is left out.
#[test]
fn many_times_without_python() {
    let processes = if is_whole() { 1000 } else { 30 };
    let store = Store::new("process", true);
    let tensorflow = tensorflow(NEWEST);
    let plugin = Plugin::of("s3").path();
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(2, NonZero::get).min(8);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= processes {
                        break;
                    }
                    let mut command = Command::new(env!("CARGO_BIN_EXE_load-and-leave"));
                    command
                        .arg(tensorflow.library_dir())
                        .arg(plugin)
                        .arg(format!("{}/{number}", store.root()));
                    store.set(&mut command);
                    child::run(command, Duration::from_secs(60)).success();
                }
            });
        }
    });
    assert_eq!(store.server().keys("process").len(), processes, "files of processes");
    assert_eq!(store.server().uploads("process").len(), 0, "unfinished uploads");
}

#[test]
fn killed_in_the_middle_of_saving() {
    let store = Store::new("kill", true);
    let installed = installed(&tensorflow(NEWEST));
    let finished = store
        .python_in(&installed, "python/s3_kill.py")
        .args(["--root", &store.root(), "--control", store.endpoint(), "--kills", "8"])
        .limit(600)
        .run()
        .success();
    assert_eq!(finished.stdout.lines().last(), Some("ok 8 kills"), "{}", finished.stdout);
}
