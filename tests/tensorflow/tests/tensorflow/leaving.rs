//! A process that has used a plugin ends as any other: at once, with exit status 0 and silently.

use cargo_tf_plugin::{NEWEST, TensorFlow};
use std::fs;
use tf_plugin_conformance_tests::effort::is_whole;
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Example, LIBRARY, each_tensorflow, tensorflow};

each_tensorflow!(localfs);

const SCRIPT: &str = "tensorflow/python/leaving.py";

/// What a process needs at most for the work and the end, in seconds. A hang is what is looked for.
const LIMIT: u64 = 180;

fn leave(tensorflow: &TensorFlow, way: &str, example: &Example) -> Finished {
    let python = Python::new(tensorflow, SCRIPT)
        .env(LIBRARY, example.plugin.path())
        .args([way, &example.root])
        .limit(LIMIT);
    // A rare failure is looked for in processes that end like a user's to the last instruction.
    let finished = if way == "at_once" { python.run() } else { python.in_a_fork().run() };
    finished.must_have_done(&[way]);
    for sign in [".rs:", "panicked"] {
        if finished.stderr.contains(sign) {
            finished.fail("the plugin had something to say");
        }
    }
    finished
}

fn localfs(tensorflow: &TensorFlow) {
    for way in ["with_tensorflow_threads", "with_forks", "with_spawned_processes"] {
        leave(tensorflow, way, &Example::localfs()).success();
    }

    let place = Example::localfs();
    leave(tensorflow, "with_open_files", &place).success();
    let directory = place.directory().expect("its files are on disk");
    // Python drops what is open when it ends, and what was written is not lost by that.
    for (name, content) in [("never-closed", "some bytes"), ("appended", "more bytes")] {
        let text = fs::read_to_string(directory.join(name)).expect("the file is on disk");
        assert_eq!(text, content, "{name}");
    }

    // Python ends its own threads wherever they stand. Up to Python 3.13 it does so by unwinding their
    // stacks, and where these are TensorFlow's the C++ runtime ends the process instead: with the
    // built-in `ram://` as well. Whichever it is, there is no other crash, and no hang.
    let finished = leave(tensorflow, "with_python_threads", &Example::localfs());
    if !finished.succeeded() {
        let endings = ["terminate called", "FATAL: exception not rethrown"];
        let by_runtime = endings.iter().any(|text| finished.stderr.contains(text));
        if finished.signal() != Some(libc::SIGABRT) || !by_runtime {
            finished.fail("it crashed or hung");
        }
    }
}

/// A race at exit shows in one run of many.
#[test]
fn again_and_again() {
    let (tensorflow, example) = (tensorflow(NEWEST), Example::localfs());
    for _ in 0..if is_whole() { 20 } else { 3 } {
        leave(&tensorflow, "at_once", &example).success();
    }
}
