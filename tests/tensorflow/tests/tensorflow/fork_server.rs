//! The forks that tests run scripts in are as separate as the processes that they replace.

use cargo_tf_plugin::NEWEST;
use std::fs;
use std::time::{Duration, Instant};
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, tensorflow};

/// Runs code in a fork, with a limit in seconds.
fn run(code: &str, limit: u64, set: impl Fn(Python) -> Python) -> Finished {
    Python::code(&tensorflow(NEWEST), code, |python| set(python).limit(limit))
}

#[test]
fn a_fork_has_its_own_plugins_and_environment() {
    let schemes = "import os, sys, tensorflow as tf\n\
                   print('mem' in tf.io.gfile.get_registered_schemes(), os.environ.get('MINE'), __name__)\n\
                   print('told', file=sys.stderr)";
    let library = Plugin::of("memfs").path();
    let with = run(schemes, 60, |python| python.env(LIBRARY, library).env("MINE", "1")).success();
    let without = run(schemes, 60, |python| python).success();
    assert_eq!(with.stdout, "True 1 __main__\n");
    assert_eq!(without.stdout, "False None __main__\n");
    assert_eq!(without.stderr, "told\n");
}

#[test]
fn a_fork_that_crashes_or_fails_ends_alone() {
    let crashed = run("import os\nprint('here', flush=True)\nos.abort()", 60, |python| python);
    assert_eq!((crashed.signal(), &*crashed.stdout), (Some(libc::SIGABRT), "here\n"));
    let failed = run("raise ValueError('on purpose')", 60, |python| python);
    assert!(!failed.succeeded() && failed.signal().is_none(), "{failed:?}");
    assert!(failed.stderr.contains("ValueError: on purpose"), "{}", failed.stderr);
    let next = run("print('next')", 60, |python| python).success();
    assert_eq!(next.stdout, "next\n");
}

/// How many processes of a group there are, except for those that have ended.
fn left_of(group: u32) -> usize {
    let left = fs::read_dir("/proc").expect("/proc").flatten().filter(|process| {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // Behind the name: the state, the parent, the group.
        let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        words.next() != Some("Z") && words.nth(1) == Some(&group.to_string())
    });
    left.count()
}

#[test]
fn a_fork_that_hangs_is_ended_with_what_it_has_started() {
    let code = "import os, threading\n\
                if os.fork() == 0:\n    \
                    threading.Event().wait()\n\
                def hangs():\n    \
                    print(os.getpid(), flush=True)\n    \
                    threading.Event().wait()\n\
                hangs()";
    let started = Instant::now();
    let hung = run(code, 2, |python| python);
    assert!(!hung.succeeded() && hung.signal().is_none(), "{hung:?}");
    assert!(hung.stderr.contains("in hangs"), "where it hangs is said: {}", hung.stderr);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let group: u32 = hung.stdout.trim().parse().expect("a number");
    // A killed process takes a moment to disappear.
    while left_of(group) > 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "processes of {group} are left");
    }
}
