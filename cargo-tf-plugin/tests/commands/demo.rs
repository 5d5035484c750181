//! The demo, as a user starts it. That of `s3://`, whose library takes minutes to build, is in `tests/tensorflow`.

use crate::program;
use crate::said::{root, text};
use std::process::Output;

use cargo_tf_plugin::{NEWEST, TensorFlow};

fn demo(arguments: &[&str]) -> Output {
    // The way cargo calls an installed subcommand: with its own name as first argument.
    program::tool()
        .current_dir(root())
        .args(["tf-plugin", "demo"])
        .args(arguments)
        .output()
        .expect("the command runs")
}

fn assert_complete(output: &Output, lines: &[&str]) {
    let said = text(output);
    assert!(output.status.success(), "{said}");
    for line in lines.iter().chain(&["Every result was as expected."]) {
        assert!(said.contains(line), "`{line}` is missing in:\n{said}");
    }
    // TensorFlow's own chatter, of which every line has a source file with a line number.
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
    assert_complete(&demo(&["memfs"]), &lines);
}

#[test]
fn the_refdevice_demo_trains_as_on_the_cpu() {
    let lines = [
        "1797 images of 8 × 8",
        &format!("TensorFlow {NEWEST} lists /physical_device:RUST_REF:0"),
        "4810 parameters, on device:RUST_REF:0",
        "276 steps",
        "of 360 digits held out are right",
        "the losses of all 276 steps are the same except for",
    ];
    assert_complete(&demo(&["refdevice"]), &lines);
}

fn script(path: &str, arguments: &[&str]) -> Output {
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    tensorflow
        .python_command()
        .arg(root().join(path))
        .args(arguments)
        .output()
        .expect("Python runs")
}

#[test]
fn the_memfs_demo_script_fails_clearly_without_the_plugin() {
    let output = script("examples/memfs/demo.py", &["/nonexistent/libmemfs.so"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("FAILED in step 1, Register the plugin"), "{said}");
    assert!(!said.contains("Traceback"), "{said}");
}

#[test]
fn the_demo_script_fails_clearly_without_what_it_needs() {
    let this = file!();
    for (plugin, tools, advice) in [
        ("/nonexistent/libs3.so", "python3", "cargo build --release --package s3"),
        (this, "/nonexistent/python", "name a Python with the packages in"),
        // A Python that cannot have the server.
        (this, "/bin/false", "the S3 server has ended"),
    ] {
        let plugin = root().join(plugin);
        let output = script("examples/s3/demo.py", &[&plugin.to_string_lossy(), "--tools", tools]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(advice), "`{advice}` is missing in:\n{said}");
        assert!(!said.contains("Traceback"), "{said}");
    }
}

#[test]
fn the_refdevice_demo_script_fails_clearly_without_what_it_needs() {
    let this = file!();
    for (plugin, tools, advice) in [
        ("/nonexistent/librefdevice.so", "python3", "cargo build --release --package refdevice"),
        (this, "/nonexistent/python", "cannot run /nonexistent/python"),
        (this, "/bin/false", "demo_digits.py ended with status 1"),
    ] {
        let plugin = root().join(plugin);
        let plugin = plugin.to_string_lossy();
        let output = script("examples/refdevice/demo.py", &[&plugin, "--tools", tools]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(advice), "`{advice}` is missing in:\n{said}");
        assert!(!said.contains("Traceback"), "{said}");
    }
}

#[test]
fn outside_of_the_project_the_demo_says_where_to_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = || {
        program::tool()
            .current_dir(directory.path())
            .arg("demo")
            .output()
            .expect("the command runs")
    };
    let output = run();
    assert!(!output.status.success());
    assert!(text(&output).contains("run the demo in a clone of the project"), "{}", text(&output));

    let manifest = "[package]\nname = \"other\"\nversion = \"0.1.0\"\n";
    std::fs::write(directory.path().join("Cargo.toml"), manifest).expect("a file");
    std::fs::create_dir(directory.path().join("src")).expect("a directory");
    std::fs::write(directory.path().join("src/lib.rs"), "").expect("a file");
    let output = run();
    assert!(!output.status.success());
    assert!(text(&output).contains("run the demo in a clone of the project"), "{}", text(&output));
}
