//! The result of `pip install ./plugins/s3`: a wheel with one file in it, which `import tensorflow` loads.

use cargo_tf_plugin::{NEWEST, forget_package};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tf_plugin_tensorflow_tests::child::{self, Finished};
use tf_plugin_tensorflow_tests::overlay::Overlay;
use tf_plugin_tensorflow_tests::s3::Store;
use tf_plugin_tensorflow_tests::{Plugin, script, tensorflow};

/// For a build from nothing and the download of the build backend.
const LIMIT: Duration = Duration::from_secs(1800);

fn pip(overlay: &Overlay, arguments: &[&str]) -> Finished {
    let mut command = Command::new(overlay.python());
    forget_package(&mut command);
    command.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]).args(arguments);
    child::run(command, LIMIT).success()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[test]
fn pip_installs_the_plugin_and_takes_it_away() {
    let overlay = Overlay::new(&tensorflow(NEWEST));
    let source = script("../plugins/s3");
    pip(&overlay, &["install", "--no-deps", &source.to_string_lossy()]);

    let installed = files(&overlay.plugins());
    let [plugin] = &installed[..] else { panic!("one file is expected: {installed:?}") };
    let content = fs::read(plugin).expect("the plugin can be read");
    assert!(content == Plugin::of("s3").read(), "the wheel has another library than the tests");

    let shown = pip(&overlay, &["show", "--files", "tensorflow-s3"]).stdout;
    let listed = |line: &&str| line.contains("tensorflow-plugins/");
    assert_eq!(shown.lines().filter(listed).count(), 1, "{shown}");
    assert!(
        shown.lines().any(|line| line.trim() == "Requires:"),
        "the wheel depends on nothing, on no TensorFlow above all: {shown}"
    );

    let store = Store::new("wheel", true);
    let python = store.python_in(&overlay, "python/s3_wheel.py");
    python.arg(format!("{}/file", store.root())).run().success();
    let object = store.server().read("wheel", "tests/file", 0..100).expect("the object is there");
    assert_eq!(&*object, b"written");

    pip(&overlay, &["uninstall", "--yes", "tensorflow-s3"]);
    assert!(!plugin.exists(), "{} is still there", plugin.display());
}
