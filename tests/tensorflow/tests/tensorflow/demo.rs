//! The demo of `s3://`: the script that `cargo tf-plugin demo` runs, with the library of the tests.

use cargo_tf_plugin::{NEWEST, Packages};
use std::fs;
use std::time::Duration;
use tf_plugin_tensorflow_tests::{Plugin, child, script, tensorflow};

/// Ten times what it takes on two busy cores.
const LIMIT: Duration = Duration::from_secs(900);

#[test]
fn the_demo_trains_is_killed_resumes_and_serves() {
    let example = script("../plugins/s3");
    let requirements = fs::read_to_string(example.join("demo-requirements.txt")).expect("a file");
    let tools = Packages::provide("s3-demo", &requirements, None)
        .unwrap_or_else(|error| panic!("{error:#}"));
    let mut command = tensorflow(NEWEST).python_command();
    command
        .arg(example.join("demo.py"))
        .arg(Plugin::of("s3").path())
        .arg("--tools")
        .arg(tools.python())
        // Somebody's own settings are not the demo's.
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        .env("AWS_PROFILE", "nobody");
    let finished = child::run(command, LIMIT).success();
    let said = format!("{}{}", finished.stdout, finished.stderr);
    for line in [
        "1797 images in 9 files",
        "killed at step 300 of 540",
        "begins at step 270, restored from ckpt-6",
        "steps 271 to 540, test accuracy",
        "540 steps in 2 logs",
        "nothing temporary",
        "Every result was as expected.",
    ] {
        assert!(said.contains(line), "`{line}` is missing in:\n{said}");
    }
    // TensorFlow's own chatter, of which every line has a source file with a line number.
    for noise in [".cc:", ".rs:", "oneDNN", "WARNING", "Warning"] {
        assert!(!said.contains(noise), "`{noise}` is in:\n{said}");
    }
}
