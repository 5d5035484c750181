//! The demo, as a user starts it. The demo of `s3://`, whose library takes minutes to build, is in `tests/tensorflow`.

use crate::output::{assert_all, root, run};
use crate::program;

use cargo_tf_plugin::{NEWEST, TensorFlow};

const IS_WHOLE: bool = cfg!(feature = "matrix");

fn assert_complete(arguments: &[&str], lines: &[&str]) {
    // The way cargo calls an installed subcommand: with its own name as first argument.
    let mut demo = program::tool();
    // Undoes that of `quick`: optimized shaders save more time here than they take to compile.
    demo.current_dir(root()).args(["tf-plugin", "demo"]).args(arguments).env_remove("GALLIVM_PERF");
    let (code, said) = run(&mut demo);
    assert_eq!(code, 0, "{said}");
    assert_all(&said, lines);
    assert_all(&said, &["Every result was as expected."]);
    // TensorFlow's log messages, which have a source file with a line number each.
    for noise in [".cc:", ".rs:", "oneDNN", "WARNING", "Warning"] {
        assert!(!said.contains(noise), "`{noise}` is in:\n{said}");
    }
}

#[test]
fn the_memfs_demo_runs_to_its_end() {
    let lines = [
        "compiling memfs: less than a minute on two cores the first time, then seconds",
        &format!("TensorFlow {NEWEST}, plugin libmemfs"),
        "mem:// is a filesystem like any other now",
        "1000 points identical to those written",
        "ckpt-3 restored, older ones deleted",
        ".keras and SavedModel predict the same",
    ];
    assert_complete(&["memfs"], &lines);
}

#[test]
fn the_refdevice_demo_trains_as_on_the_cpu() {
    // An epoch has 23 steps; more are not run.
    let (wanted, steps) = if IS_WHOLE { ("30", 23) } else { ("5", 5) };
    let lines = [
        "1797 images of 8 × 8",
        &format!("TensorFlow {NEWEST} lists /physical_device:RUST_REF:0"),
        "4810 parameters, on device:RUST_REF:0",
        &format!("{steps} steps"),
        "of 360 digits held out are right",
        &format!("the losses of all {steps} steps are the same except for"),
    ];
    assert_complete(&["refdevice", "--steps", wanted], &lines);
}

/// Runs on lavapipe without a GPU, on which all steps of both models take minutes.
#[test]
fn the_gpu_demo_trains_as_on_the_cpu() {
    let lines = [
        "lists /physical_device:GPU:0",
        "38282 parameters, on device:GPU:0",
        "the GPU is ",
        "of 360 digits held out are right",
        "texts held out are right",
        "steps a second on the device",
        if IS_WHOLE { "first 50 steps are the same" } else { "first 5 steps are the same" },
    ];
    assert_complete(if IS_WHOLE { &["gpu"] } else { &["gpu", "--steps", "5"] }, &lines);
    let (code, said) = run(program::tool().args(["demo", "memfs", "--steps", "5"]));
    assert!(code == 1 && said.contains("--steps is for refdevice and gpu"), "{said}");
}

#[test]
fn the_tokenizers_demo_trains_and_serves_raw_text() {
    let lines = [
        "tensorflow_tokenizers, ",
        "byte-level BPE with 4000 tokens",
        &format!("TensorFlow {NEWEST}; loss of each epoch"),
        "held out are right",
        "texts a second in tf.data",
        " lines are the same",
        " predictions, ",
        "the same ",
    ];
    assert_complete(&["tokenizers"], &lines);
}

#[test]
fn the_demo_scripts_fail_clearly_without_what_they_need() {
    let (this, refdevice) = (file!(), "examples/device_demo/demo.py --example refdevice");
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    for (demo, plugin, tools, advice) in [
        (
            "examples/memfs/demo.py",
            "/nonexistent/libmemfs.so",
            "",
            "FAILED in step 1, Register the plugin",
        ),
        (
            "plugins/s3/demo.py",
            "/nonexistent/libs3.so",
            "python3",
            "cargo build --release --package s3",
        ),
        ("plugins/s3/demo.py", this, "/nonexistent/python", "name a Python with the packages in"),
        // A Python into which the server cannot be installed.
        ("plugins/s3/demo.py", this, "/bin/false", "the S3 server has ended"),
        (
            "plugins/tokenizers/demo.py",
            "/nonexistent/x.whl",
            "python3",
            "cargo tf-plugin wheel --package tensorflow-tokenizers",
        ),
        (refdevice, "/nonexistent/x.so", "python3", "cargo build --release --package refdevice"),
        (refdevice, this, "/nonexistent/python", "cannot run /nonexistent/python"),
        (refdevice, this, "/bin/false", "digits.py ended with status 1"),
    ] {
        let mut script = tensorflow.python_command();
        script.current_dir(root()).args(demo.split(' ')).arg(root().join(plugin));
        if !tools.is_empty() {
            script.args(["--tools", tools]);
        }
        let (code, said) = run(&mut script);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(advice), "`{advice}` is missing in:\n{said}");
        assert!(!said.contains("Traceback"), "{said}");
    }
}
