//! The TensorFlow that the library provides is a real one.

use crate::output::{Ran, ran, wait_until};
use crate::program;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;

use cargo_tf_plugin::{NEWEST, TensorFlow};
use rustix::process::{Pid, Signal, kill_process};

/// Checks everything that is promised about `tensorflow`, and that its Python imports it.
fn assert_real(tensorflow: &TensorFlow) {
    for library in ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"] {
        assert!(tensorflow.library_dir().join(library).is_file(), "{library}");
    }
    let header = "tensorflow/c/experimental/filesystem/filesystem_interface.h";
    assert!(tensorflow.include_dir().join(header).is_file(), "{header}");
    let script = "import os, tensorflow as tf; print(tf.__version__, os.path.dirname(os.path.dirname(tf.__file__)))";
    let Ran { code, out, err } = ran(tensorflow.python_command().args(["-c", script]));
    assert_eq!(code, Some(0), "{err}");
    let (version, site_packages) = out.trim_end().split_once(' ').expect("two words");
    assert_eq!(version, tensorflow.version());
    assert_eq!(Path::new(site_packages), tensorflow.site_packages());
}

#[test]
fn the_newest_pinned_release_is_provided_and_found_again() {
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    assert_eq!(tensorflow.version(), NEWEST);
    assert_eq!(tensorflow.major_minor(), (2, 21));
    assert_real(&tensorflow);
    // Also if Python is set to write no bytecode.
    for module in ["tensorflow/python/framework", "keras/src/layers"] {
        let compiled = tensorflow.site_packages().join(module).join("__pycache__");
        assert!(compiled.is_dir(), "{} is missing", compiled.display());
    }
    let again = TensorFlow::pinned(NEWEST).expect("TensorFlow is there already");
    assert_eq!(again, tensorflow);
    let by_python = TensorFlow::from_python(tensorflow.python()).expect("its Python has it");
    assert_eq!(by_python, tensorflow);
}

#[test]
fn a_version_that_is_none_is_refused() {
    for version in ["", "newest", "2", "2.", "../2.21.0", "2.21.0 --pre", "2..1"] {
        let error = TensorFlow::pinned(version).expect_err(version);
        assert!(error.to_string().contains("not a TensorFlow version"), "{error}");
    }
}

#[test]
fn an_installation_that_is_interrupted_leaves_nothing() {
    let cache = tempfile::tempdir().expect("a scratch directory");
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = program::interruptible();
        // Outside of any package.
        command.args(["doctor", "--tf", NEWEST]).current_dir(cache.path());
        command.env("XDG_CACHE_HOME", cache.path()).env_remove("CARGO_TARGET_DIR");
        let mut tool = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let venv = cache.path().join("tf-plugin/tf-venv").join(NEWEST);
        wait_until("it installs nothing", || venv.join("pyvenv.cfg").exists());
        // Only to the command: the processes that it has started do not get the signal.
        kill_process(Pid::from_child(&tool), signal).expect("it runs");
        let status = tool.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        let mut printed = String::new();
        tool.stderr.take().expect("a pipe").read_to_string(&mut printed).expect("UTF-8");
        assert!(printed.ends_with("interrupted; nothing is left behind\n"), "{printed}");
        assert!(!venv.exists(), "{} is left", venv.display());
    }
}

#[test]
fn a_python_that_is_none_is_refused() {
    let error =
        TensorFlow::from_python(Path::new("/nonexistent/python")).expect_err("no such file");
    assert!(error.to_string().contains("cannot run /nonexistent/python"), "{error}");
    let error = TensorFlow::from_python(Path::new("/bin/false")).expect_err("not Python");
    assert!(error.to_string().contains("is it a Python 3 interpreter?"), "{error}");
}
