//! The output of `doctor` about the plugins of a real TensorFlow, compared with what happens.

use crate::crates::{fails, succeeds};
use crate::output::{assert_says, run};
use crate::overlay::Overlay;
use crate::program::{self, environment};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use cargo_tf_plugin::{NEWEST, TensorFlow};

fn doctor_of(environment: &Overlay) -> Command {
    let mut command = doctor();
    let venv = environment.python().parent().and_then(Path::parent).expect("an environment");
    command.arg("--tf").arg(venv).env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
    command
}

fn doctor() -> Command {
    let mut command = program::tool();
    command.args(["tf-plugin", "doctor"]);
    command
}

#[test]
fn a_release_outside_of_any_package_is_the_user_s() {
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let cache = tempfile::tempdir().expect("a scratch directory");
    fs::create_dir(cache.path().join("tf-plugin")).expect("a directory");
    let venv = tensorflow.python().parent().and_then(Path::parent).expect("an environment");
    let environments = venv.parent().expect("environments");
    symlink(environments, cache.path().join("tf-plugin/tf-venv")).expect("a link");
    let mut command = doctor();
    command.args(["--no-import", "--tf", NEWEST]).current_dir(cache.path());
    command.env("XDG_CACHE_HOME", cache.path());
    let printed = succeeds(&mut command);
    let python = cache.path().join("tf-plugin/tf-venv").join(NEWEST);
    assert!(printed.contains(&python.to_string_lossy().into_owned()), "{printed}");
}

/// Checks that the current directory is not used, as scripts do not use it.
#[test]
fn a_tensorflow_on_the_path_of_python_is_found() {
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let here = tempfile::tempdir().expect("a scratch directory");
    fs::write(here.path().join("json.py"), "raise SystemExit('the wrong one')").expect("written");
    let base = fs::canonicalize(tensorflow.python()).expect("an interpreter");
    let mut command = doctor();
    command.args(["--no-import", "--tf"]).arg(&base).current_dir(here.path());
    // Without modules: a Python that used this directory would not start.
    command.env("PYTHONHOME", here.path()).env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
    let printed = succeeds(command.env("PYTHONPATH", tensorflow.site_packages()));
    assert_says(&printed, &format!("TensorFlow {NEWEST} of {}", base.display()));
}

#[test]
fn good_plugins_are_listed_and_are_there_after_the_import() {
    let environment = environment(&[("memfs", "libmemfs.so"), ("bothfs", "libboth.so")]);
    // A second name of the same directory: TensorFlow loads everything twice.
    let second = environment.second_name();
    let text = succeeds(doctor_of(&environment).env("PYTHONPATH", second));
    for words in [
        "libboth.so is loaded 2 times, because its directory has several names; it does not mind",
        &format!("TensorFlow {NEWEST} of"),
        "libmemfs.so file",
        "kind filesystem schemes mem://",
        "kind filesystem, device schemes both:// device RUST_TEST, 1 on this machine",
        "works, in",
        "schemes both:// file:// gs:// mem:// ram://",
        "devices CPU:0 RUST_TEST:0",
        "no errors, no warnings",
    ] {
        assert_says(&text, words);
    }
}

/// Checks that the GPU is named, or why there is none.
#[test]
fn hardware_is_named_or_what_keeps_it_from_being_used() {
    let environment = environment(&[("gpu", "libgpu.so")]);
    let mut doctor = doctor_of(&environment);
    let text = succeeds(doctor.envs(lavapipe::driver()).arg("--no-import"));
    assert_says(&text, "device GPU, 1 on this machine: llvmpipe (LLVM");
    assert_says(&text, "by Vulkan (llvmpipe Mesa");
    let text = succeeds(doctor.env("RUST_GPU_DEVICE_NAME", "arc"));
    assert_says(&text, "device GPU, 0 on this machine");
    assert_says(
        &text,
        "RUST_GPU has no devices: RUST_GPU_DEVICE_NAME is `arc`, and no GPU can be used by Vulkan: `llvmpipe",
    );
}

/// Checks that the plugin that is listed first serves the scheme.
#[test]
fn the_winner_of_a_clash_is_named() {
    let environment = environment(&[("memfs", "liba.so"), ("rivalfs", "libb.so")]);
    let text = succeeds(doctor_of(&environment).arg("--no-import"));
    assert_says(&text, "warning mem:// is served by");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let winner = flat.split_once(" is first and wins").expect("it names the winner").0;
    let winner = winner.rsplit(' ').next().expect("a name");
    let script = "import tensorflow as tf\nwith tf.io.gfile.GFile('mem://box/any') as f: print('read', f.read())";
    let (_, printed) = run(Command::new(environment.python()).args(["-c", script]));
    let rival = printed.contains("read rival");
    assert_eq!(winner, if rival { "libb.so" } else { "liba.so" }, "{text}\n{printed}");
}

#[test]
fn a_plugin_that_breaks_the_import_is_named_with_its_error() {
    let environment = environment(&[("memfs", "libmemfs.so")]);
    fs::write(environment.plugins().join("junk.so"), "no library ".repeat(20)).expect("a file");
    let text = fails(&mut doctor_of(&environment));
    assert_says(&text, "error junk.so keeps `import tensorflow` from working");
    assert_says(&text, "is not a shared library");
    assert_says(&text, "error `import tensorflow` does not work: ended with status 1.");
    assert_says(&text, "invalid ELF header");
    assert_says(&text, "The file is not a shared library for Linux.");

    let text = fails(doctor_of(&environment).arg("--no-import"));
    assert!(!text.contains("A real"), "{text}");
}

/// Checks a device that is loaded from two files, which aborts TensorFlow.
#[test]
fn two_copies_of_a_device_are_a_clash_that_aborts() {
    let environment = environment(&[("bothfs", "liba.so"), ("bothfs", "libb.so")]);
    let text = fails(&mut doctor_of(&environment));
    assert_says(&text, "the device platform RUST_TEST is in");
    assert_says(&text, "does not work: ended by SIGABRT. Two plugins, or two copies of one");
}

#[test]
fn the_variable_is_followed() {
    let environment = environment(&[]);
    let manual = program::plugin("manualfs");
    const VARIABLE: &str = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH";
    let text = succeeds(doctor_of(&environment).arg("--no-import").env(VARIABLE, &manual));
    assert_says(&text, "libmanualfs.so does not register its filesystem on import");

    let text = fails(doctor_of(&environment).env(VARIABLE, "/nonexistent/x.so"));
    assert_says(&text, "names /nonexistent/x.so, which does not exist: `import tensorflow` fails");
    assert_says(
        &text,
        "does not work: ended with status 1. TF_PLUGGABLE_DEVICE_LIBRARY_PATH names something",
    );

    let text = succeeds(doctor_of(&environment).arg("--no-import"));
    assert_says(&text, "`import tensorflow` loads no plugins.");
}

#[test]
fn error_texts_are_explained() {
    let text =
        succeeds(doctor().args(["--explain", "libx.so: undefined symbol: _ZN3tsl5mutex6unlockEv"]));
    assert_says(
        &text,
        "cause: The plugin uses C++ functions of the TensorFlow that it was built with",
    );
    assert_says(&text, "fix: Use the TensorFlow release");
    let text = fails(doctor().args(["--explain", "the printer is on fire"]));
    assert_says(&text, "this text is not known");
}
