//! The device type of `plugins/gpu`, which is chosen when TensorFlow loads the plugin: its wheel, and the commands.

use crate::crates::{fails, site_with, succeeds, wheel_of};
use crate::output::{assert_all, json, root};
use crate::program::{tool, with_tensorflow};
use cargo_tf_plugin::NEWEST;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

#[test]
fn the_gpu_wheel_knows_the_type_of_its_devices() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let site = site_with(NEWEST, &wheel_of("gpu", scratch.path()));
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
    for (setting, kind) in [("", "GPU"), ("MY_GPU", "MY_GPU")] {
        let printed = succeeds(python(&["-c", use_it]).env("RUST_GPU_TYPE", setting));
        let once = format!("it computes on {kind} ['/physical_device:{kind}:0']");
        assert!(printed.contains(&once), "{printed}");
        let printed = succeeds(python(&doctor).env("RUST_GPU_TYPE", setting));
        assert_all(&printed, &[&format!("{kind:12} is listed"), "has the plugin."]);
    }
    let none = [("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")];
    let printed = fails(python(&doctor).envs(none));
    let why = "RUST_GPU has no devices: ";
    assert_all(
        &printed,
        &["GPU          is not listed", why, "install the Vulkan driver of the GPU"],
    );
}

#[test]
fn the_commands_know_the_type_of_its_devices() {
    let mut check = tool();
    check.current_dir(root()).args(["tf-plugin", "check", "gpu"]).envs(lavapipe::driver());
    let printed = succeeds(&mut check);
    let device = ["Device GPU", "1 on this machine: llvmpipe (LLVM", "no errors, no warnings"];
    assert_all(&printed, &device);
    assert_all(&printed, &["by Vulkan (llvmpipe Mesa", "no cooperative matrices)"]);

    let scratch = tempfile::tempdir().expect("a scratch directory");
    let script = scratch.path().join("sums.py");
    let sums = "import tensorflow as tf\nassert float(tf.reduce_sum(tf.ones([3]) + 1)) == 6\n";
    fs::write(&script, sums).expect("written");
    let mut coverage = with_tensorflow(NEWEST, "coverage");
    coverage.args(["--package", "gpu"]).arg(script).envs(lavapipe::driver());
    assert_all(&succeeds(&mut coverage), &["what ran on GPU", "AddV2 float32"]);
}

/// Attributes with the type of elements; other attributes have the type of indices or axes.
const ELEMENTS: [&str; 9] =
    ["T", "TInput", "Tcomplex", "Tout", "Tparams", "Treal", "SrcT", "DstT", "dtype"];

/// Returns the name of a type in Python.
fn python_type(name: &str) -> &str {
    match name {
        "half" => "float16",
        "float" => "float32",
        "double" => "float64",
        same => same,
    }
}

/// Lists kernels by the types of their elements, as Markdown, most common types first. Returns the number of ops, too.
fn table(kernels: &[Value]) -> (String, usize) {
    let mut ops: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // The SDK's kernels, which only fail, have a negative priority.
    let computes = |kernel: &&Value| kernel["priority"].as_i64().expect("a priority") >= 0;
    for kernel in kernels.iter().filter(computes) {
        let op = kernel["op"].as_str().expect("a name");
        let types = ops.entry(op).or_default();
        // What is the type of an index elsewhere.
        let is_element =
            |attribute| ELEMENTS.contains(&attribute) || (op, attribute) == ("Range", "Tidx");
        for constraint in kernel["types"].as_array().expect("types") {
            let (attribute, name) =
                constraint.as_str().and_then(|c| c.split_once('=')).expect("two");
            types.extend(is_element(attribute).then(|| python_type(name)));
        }
    }
    let count = ops.len();
    let mut rows: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    // A row of its own: else each combination of types with it would be one.
    let mut complex = Vec::new();
    for (op, mut types) in ops {
        if types.contains("bfloat16") && types.remove("complex64") {
            complex.push(op);
        }
        rows.entry(types).or_default().push(op);
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, ops)| std::cmp::Reverse(ops.len()));
    let mut table = String::from("| Types of elements | Ops |\n|---|---|\n");
    let mut others = Vec::new();
    for (types, ops) in rows {
        let types = Vec::from_iter(types).join(", ");
        if let [op] = ops[..] {
            others.push(format!("{op} ({types})"));
            continue;
        }
        let types = if types.is_empty() { "those of the op" } else { &types };
        table += &format!("| {types} | {} |\n", ops.join(", "));
    }
    table += &format!("| others | {} |\n", others.join(", "));
    table += &format!("| complex64 as well | {} |\n", complex.join(", "));
    (table, count)
}

#[test]
fn the_readme_lists_its_ops() {
    let mut check = tool();
    check.current_dir(root()).args(["tf-plugin", "check", "gpu", "--json"]);
    let (table, count) = table(json(&mut check)["kernels"].as_array().expect("kernels"));
    let path = root().join("plugins/gpu/README.md");
    let readme = fs::read_to_string(&path).expect("the README");
    let (before, rest) = readme.split_once("<!-- ops -->\n").expect("the begin of the table");
    let (found, after) = rest.split_once("<!-- end -->").expect("its end");
    if std::env::var_os("GPU_WRITE_OPS").is_some() {
        let readme = format!("{before}<!-- ops -->\n{table}<!-- end -->{after}");
        fs::write(&path, readme).expect("the README is written");
    } else {
        assert_eq!(found, table, "run this test with GPU_WRITE_OPS=1, which writes the table");
    }
    for (file, words) in [
        ("plugins/gpu/README.md", format!("It has [{count} ops](#ops)")),
        ("docs/gpu-device.md", format!("| {count} ops |")),
        ("CHANGELOG.md", format!("with {count} ops")),
    ] {
        let text = fs::read_to_string(root().join(file)).expect("a document");
        assert!(text.contains(&words), "{file} does not say `{words}`");
    }
}

/// Compiles the crate's tests with other features than the workspace, which takes a minute.
#[cfg(feature = "matrix")]
#[test]
fn its_crate_is_tested_in_tensorflow() {
    let mut test = with_tensorflow(NEWEST, "test");
    test.args(["--package", "gpu", "--", "--test", "device", "shaders::"]).envs(lavapipe::driver());
    assert_all(&succeeds(&mut test), &["/device:GPU:0: ok"]);
}
