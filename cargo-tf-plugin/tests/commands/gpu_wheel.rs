//! The type of the devices of `examples/gpu`, which is chosen when TensorFlow loads them: its wheel, and the commands.

use crate::crates::{Site, fails, succeeds};
use crate::program::{tool, with_tensorflow};
use crate::said::{assert_all, root};
use cargo_tf_plugin::NEWEST;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn wheel(directory: &Path) -> String {
    let mut command = tool();
    command.current_dir(root()).args(["tf-plugin", "wheel", "--package", "gpu", "--json"]);
    let said = succeeds(command.arg("--out-dir").arg(directory));
    let known = said.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let known = known.unwrap_or_else(|| panic!("no JSON in {said}"));
    known["path"].as_str().expect("a path").to_owned()
}

#[test]
fn the_gpu_wheel_knows_the_type_of_its_devices() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let site = Site::new();
    site.pip(&["install", "--no-deps", &wheel(scratch.path())]);
    let python = |arguments: &[&str]| {
        let mut command = site.python(arguments);
        command.env_remove("RUST_GPU_TYPE").envs(lavapipe::driver());
        command
    };
    let use_it = "
import tensorflow_rust_gpu as plugin
plugin.register()
import tensorflow as tf
[kind] = plugin.device_types()
with tf.device('/device:%s:0' % kind):
    assert float(tf.reduce_sum(tf.ones([3]) + 1)) == 6
print('it computes on', kind, [device.name for device in tf.config.list_physical_devices(kind)])";
    let doctor = ["-m", "tensorflow_rust_gpu", "doctor"];
    for (setting, kind) in [("", "GPU"), ("MY_CARD", "MY_CARD")] {
        let said = succeeds(python(&["-c", use_it]).env("RUST_GPU_TYPE", setting));
        let once = format!("it computes on {kind} ['/physical_device:{kind}:0']");
        assert!(said.contains(&once), "{said}");
        let said = succeeds(python(&doctor).env("RUST_GPU_TYPE", setting));
        assert_all(&said, &[&format!("{kind:12} is listed"), "has the plugin."]);
    }
    let none = [("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")];
    let said = fails(python(&doctor).envs(none));
    let why = "RUST_GPU has no devices: ";
    assert_all(
        &said,
        &["GPU          is not listed", why, "install the Vulkan driver of the card"],
    );
}

#[test]
fn the_commands_know_the_type_of_its_devices() {
    let mut check = tool();
    check.current_dir(root()).args(["tf-plugin", "check", "gpu"]).envs(lavapipe::driver());
    let said = succeeds(&mut check);
    let device = ["Device GPU", "1 on this machine: llvmpipe (LLVM", "no errors, no warnings"];
    assert_all(&said, &device);

    let scratch = tempfile::tempdir().expect("a scratch directory");
    let script = scratch.path().join("sums.py");
    let sums = "import tensorflow as tf\nassert float(tf.reduce_sum(tf.ones([3]) + 1)) == 6\n";
    fs::write(&script, sums).expect("written");
    let mut coverage = with_tensorflow(NEWEST, "coverage");
    coverage.args(["--package", "gpu"]).arg(script).envs(lavapipe::driver());
    assert_all(&succeeds(&mut coverage), &["what ran on GPU", "AddV2 float32"]);
}

/// It compiles the crate's tests with other features than the workspace, which takes a minute.
#[cfg(feature = "matrix")]
#[test]
fn its_crate_is_tested_in_tensorflow() {
    let mut test = with_tensorflow(NEWEST, "test");
    test.args(["--package", "gpu", "--", "--test", "shaders"]).envs(lavapipe::driver());
    assert_all(&succeeds(&mut test), &["/device:GPU:0: ok"]);
}
