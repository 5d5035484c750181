//! The demo, as a user starts it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cargo_tf_plugin::{NEWEST, TensorFlow};

fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the package is in a workspace").to_owned()
}

fn text(output: &Output) -> String {
    format!(
        "{}\n--- standard error:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn the_demo_runs_to_its_end() {
    // The way cargo calls an installed subcommand: with its own name as first argument.
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-tf-plugin"))
        .current_dir(root())
        .args(["tf-plugin", "demo"])
        .output()
        .expect("the command runs");
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for line in [
        &format!("TensorFlow {NEWEST}, plugin libmemfs"),
        "mem:// is a filesystem like any other now",
        "1000 points identical to those written",
        "ckpt-3 restored, older ones deleted",
        ".keras and SavedModel predict the same",
        "Every result was as expected.",
    ] {
        assert!(said.contains(line), "`{line}` is missing in:\n{said}");
    }
    // TensorFlow's own chatter, of which every line has a source file with a line number.
    for noise in [".cc:", "oneDNN", "WARNING", "Warning"] {
        assert!(!said.contains(noise), "`{noise}` is in:\n{said}");
    }
}

#[test]
fn the_demo_script_fails_clearly_without_the_plugin() {
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let output = tensorflow
        .python_command()
        .arg(root().join("examples/memfs/demo.py"))
        .arg("/nonexistent/libmemfs.so")
        .output()
        .expect("Python runs");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("FAILED in step 1, Register the plugin"), "{said}");
    assert!(!said.contains("Traceback"), "{said}");
}

#[test]
fn outside_of_the_project_the_demo_says_where_to_go() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_cargo-tf-plugin"))
            .current_dir(directory.path())
            .arg("demo")
            .output()
            .expect("the command runs")
    };
    let output = run();
    assert!(!output.status.success());
    assert!(text(&output).contains("run this inside a Cargo package"), "{}", text(&output));

    let manifest = "[package]\nname = \"other\"\nversion = \"0.1.0\"\n";
    std::fs::write(directory.path().join("Cargo.toml"), manifest).expect("a file");
    std::fs::create_dir(directory.path().join("src")).expect("a directory");
    std::fs::write(directory.path().join("src/lib.rs"), "").expect("a file");
    let output = run();
    assert!(!output.status.success());
    assert!(text(&output).contains("run the demo in a clone of the project"), "{}", text(&output));
}
