//! The steps of an author, from `new` to a wheel that is installed and removed.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::crates::{Fresh, Site, cargo, exits, fails, judge, succeeds, target, tool};
use crate::output::{assert_all, json, text};
use cargo_tf_plugin::{NEWEST, TensorFlow};

#[test]
fn a_filesystem_and_a_device_are_installed_used_and_taken_away() {
    let fresh = Fresh::make("my-kit", &["--both"]);
    let more = "authors = [\"Ada\", \"Bo <bo@example.org>\"]\nkeywords = [\"a\", \"b\"]\nlicense = \"MIT/Apache-2.0\"\n\
                repository = \"https://example.org/kit\"\nedition";
    fresh.edit("Cargo.toml", "edition", more);
    fs::write(fresh.directory.join("LICENSE-MIT"), "Do.\n").expect("written");
    fresh.is_formatted();
    cargo(&fresh.directory, &["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"]);
    fresh.shares_dependencies(&[]);
    let printed = cargo(&fresh.directory, &["test"]);
    let passed = printed.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok"));
    // The cases of both kinds, and a few of the crate's own.
    assert!(passed.count() > 400, "{printed}");
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let wheel = fresh.wheel(first.path());
    let again = fresh.wheel(second.path());
    assert_eq!(wheel.file_name(), again.file_name());
    assert!(
        fs::read(&wheel).expect("a wheel") == fs::read(again).expect("a wheel"),
        "two wheels of one library differ"
    );
    let judgement = judge(&wheel);
    let platform = wheel.to_string_lossy();
    let platform = platform.rsplit('-').next().expect("a tag").trim_end_matches(".whl");
    assert_all(
        &judgement,
        &[
            "my-kit 0.1.0 mykit:// and /device:MY_KIT:0 for TensorFlow\n",
            "Ada Bo <bo@example.org> MIT OR Apache-2.0 ['LICENSE-MIT']\n",
            "['a', 'b'] [('Repository', 'https://example.org/kit')] text/markdown; charset=UTF-8\n",
            "# my-kit\n",
        ],
    );
    assert!(judgement.contains(&format!("platform tag: \"{platform}\"")), "{judgement}");

    let printed =
        succeeds(&mut tool(&fresh.directory, &["bench", "--no-tf", "--seconds", "0.001"]));
    assert_all(&printed, &["mykit:// through the C table", "/device:MY_KIT:0 through the C table"]);
    assert!(!printed.contains("failed"), "{printed}");

    let site = Site::new();
    let before = site.files();
    site.pip(&["install", "--no-deps", &wheel.to_string_lossy()]);
    assert_eq!(site.files().len(), before.len() + 3, "a module, a library, a record");
    // Importing TensorFlow registers it; importing the module afterwards has no effect, any number of times.
    let use_it = "
import runpy, sys
import tensorflow as tf
import my_kit
assert my_kit.__version__ == '0.1.0' and my_kit.SCHEMES == ('mykit',), my_kit.SCHEMES
assert open(my_kit.plugin_path, 'rb').read(4) == b'\\x7fELF'
print('there already:', 'mykit' in tf.io.gfile.get_registered_schemes())
for _ in range(3):
    my_kit.register()
for script in sys.argv[1:]:
    runpy.run_path(script)";
    let scripts = ["filesystem.py", "device.py"].map(|script| {
        fresh.directory.join("tests/python").join(script).to_string_lossy().into_owned()
    });
    let using = || site.python(&["-c", use_it, &scripts[0], &scripts[1]]);
    assert!(succeeds(&mut using()).contains("there already: True"));
    // If importing TensorFlow does not load it, importing the module does.
    let printed = succeeds(using().env("TF_FS_PLUGIN_AUTOLOAD", "0"));
    assert!(printed.contains("there already: False"), "{printed}");

    let printed = succeeds(&mut site.python(&["-m", "my_kit", "doctor"]));
    assert_all(
        &printed,
        &[
            "my-kit 0.1.0",
            "mykit://     is registered",
            "MY_KIT       is listed",
            "has the plugin.",
        ],
    );
    assert!(!printed.contains("PROBLEM"), "{printed}");
    let mut doctor = site.python(&["-m", "my_kit", "doctor"]);
    let printed =
        fails(doctor.env("TF_FS_PLUGIN_AUTOLOAD", "off").env("TF_SE_PLUGIN_DEVICES", "0"));
    assert_all(
        &printed,
        &[
            "AUTOLOAD switches the registration off",
            "TF_SE_PLUGIN_DEVICES switches",
            "2 problem(s)",
        ],
    );
    fs::write(site.0.plugins().join("libjunk.so"), "junk").expect("written");
    let printed = fails(&mut site.python(&["-m", "my_kit", "doctor"]));
    assert!(
        printed.contains("import tensorflow fails") && printed.contains("libjunk.so"),
        "{printed}"
    );
    fs::remove_file(site.0.plugins().join("libjunk.so")).expect("removed");

    site.pip(&["uninstall", "--yes", "my-kit"]);
    assert_eq!(site.files(), before, "something is left");
}

/// Returns the TensorFlow of the tests, as a virtual environment.
fn venv() -> PathBuf {
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let bin = tensorflow.python().parent().expect("an interpreter is in a directory");
    bin.parent().expect("which is in an environment").to_owned()
}

/// Needs the feature `matrix`: `--both` above has the same templates, and `readme` in `tests/tensorflow` trains, too.
#[cfg(feature = "matrix")]
#[test]
fn a_new_device_is_tested_in_tensorflow() {
    is_tested_in_tensorflow(&["--device", "--device-type", "D"], "numbers_are_added");
    is_tested_in_tensorflow(&ON_A_DRIVER, "random_work");
}

#[cfg(feature = "matrix")]
fn is_tested_in_tensorflow(kind: &[&str], test: &str) {
    let fresh = Fresh::make("a-device-with-a-long-name", kind);
    fresh.shares_dependencies(&[]);
    fresh.is_formatted();
    let printed = succeeds(tool(&fresh.directory, &["test", "--tf"]).arg(venv()));
    assert_all(
        &printed,
        &[
            &format!("test {test} ... ok"),
            &format!("                          in process  {NEWEST}\n"),
            "cargo test                ok          -\n",
            "import tensorflow         -           ok\n",
            "/device:D:0               -           ok\n",
            "tests/python/device.py    -           ok\n",
            "tests/python/training.py  -           ok\n",
            "conformance in Python     -           ok\n",
            "conformance in C          -           ok\n",
        ],
    );
}

const ON_A_DRIVER: [&str; 4] = ["--device", "--driver", "--device-type", "D"];

/// Its conformance cases in TensorFlow are among those of `a_new_device_is_tested_in_tensorflow`.
#[test]
fn a_new_device_on_a_driver_works_before_it_is_edited() {
    let fresh = Fresh::make("my-npu", &ON_A_DRIVER);
    fresh.shares_dependencies(&[]);
    fresh.is_formatted();
    cargo(&fresh.directory, &["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"]);
    let printed = cargo(&fresh.directory, &["test", "--test", "device"]);
    assert_all(&printed, &["test random_work ... ok", "test work_waits_for_a_callback ... ok"]);
    for script in ["device", "training"] {
        let script = format!("tests/python/{script}.py");
        let mut run = tool(&fresh.directory, &["run", "--tf"]);
        succeeds(run.arg(venv()).args(["--", "python", &script]));
    }
}

#[test]
fn a_new_object_store_works_before_it_is_edited() {
    let fresh = Fresh::make("blobs", &["--object-store"]);
    fresh.shares_dependencies(&["object-store"]);
    fresh.is_formatted();
    // The active environment is the default.
    let printed = succeeds(tool(&fresh.directory, &["test"]).env("VIRTUAL_ENV", venv()));
    assert_all(
        &printed,
        &[
            "cargo test                  ok          -\n",
            "import tensorflow           -           ok\n",
            "blobs://                    -           ok\n",
            "tests/python/filesystem.py  -           ok\n",
            "conformance in Python       -           ok\n",
            "conformance in C            -           ok\n",
        ],
    );
}

/// Its conformance cases in TensorFlow are those of `plugins/gpu`, whose backend it has; here they would take minutes.
#[test]
fn a_new_gpu_plugin_works_before_it_is_edited() {
    let fresh = Fresh::make("my-gpu", &["--gpu"]);
    fresh.shares_dependencies(&[]);
    fresh.is_formatted();
    // Without a GPU: PoCL, which is software and has to be named.
    let environment = |command: &mut Command| {
        command.envs(pocl::environment());
        command.env("MY_GPU_DEVICE_NAME", "pthread").env("MY_GPU_CACHE", "0");
    };
    let mut test = Command::new(env!("CARGO"));
    test.args(["test", "--test", "device", "--", "there_is_a_gpu", "stream_copy"]);
    test.current_dir(&fresh.directory).env("CARGO_TARGET_DIR", target());
    environment(&mut test);
    let printed = succeeds(&mut test);
    assert_all(&printed, &["test there_is_a_gpu ... ok", "stream_copy_to_host_of_4_kib ... ok"]);
    for script in ["device", "layers"] {
        let script = format!("tests/python/{script}.py");
        let mut run = tool(&fresh.directory, &["run", "--tf"]);
        run.arg(venv()).args(["--", "python", &script]);
        environment(&mut run);
        succeeds(&mut run);
    }
}

#[test]
fn a_new_filesystem_is_tested_in_tensorflow() {
    let fresh = Fresh::make("f", &["--fs", "--scheme", "ff"]);
    fresh.shares_dependencies(&[]);
    fresh.is_formatted();
    // The failure is reported, and everything else is still tested.
    fresh.edit("tests/filesystem.rs", "b\"hello\"", "b\"hullo\"");
    let broken = fresh.directory.join("tests/python/a_broken_one.py");
    fs::write(broken, "raise SystemExit('broken on purpose')").expect("written");
    let printed = fails(tool(&fresh.directory, &["test", "--tf"]).arg(venv()));
    assert_all(
        &printed,
        &[
            "cargo test                    FAILED      -\n",
            "import tensorflow             -           ok\n",
            "ff://                         -           ok\n",
            "tests/python/a_broken_one.py  -           FAILED\n",
            "tests/python/filesystem.py    -           ok\n",
            "conformance in Python         -           ok\n",
            &format!(
                "TensorFlow {NEWEST}: conformance in Python: ok, 90 passed, 3 skipped, 0 failed"
            ),
            "conformance in C              -           ok\n",
            &format!("TensorFlow {NEWEST}: conformance in C: ok, 7 passed, 1 skipped, 0 failed"),
            "  | broken on purpose",
            "error: 2 of the tests above failed",
        ],
    );

    fs::remove_dir_all(fresh.directory.join("tests")).expect("removed");
    // A script gets the same results, and nothing else on standard output.
    let mut off = tool(&fresh.directory, &["test", "--json", "--tf"]);
    let output = off.arg(venv()).env("TF_FS_PLUGIN_AUTOLOAD", "0").output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let known: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(known["passed"], false);
    let test = |name, tensorflow: Option<&str>, outcome| serde_json::json!({ "test": name, "tensorflow": tensorflow, "outcome": outcome });
    let tests = known["tests"].as_array().expect("a list");
    assert!(tests.contains(&test("cargo test", None, "passed")), "{known}");
    assert!(tests.contains(&test("ff://", Some(NEWEST), "failed")), "{known}");
    let line = "  | ff:// is not there after `import tensorflow`, which has: ";
    assert!(String::from_utf8_lossy(&output.stderr).contains(line), "{}", text(&output));
    // A plugin that does not register itself is registered by the command.
    fresh.edit("src/filesystem.rs", "scheme = \"ff\"", "scheme = \"ff\", autoload = false");
    let printed = succeeds(tool(&fresh.directory, &["test", "--tf"]).arg(venv()));
    assert!(printed.contains("ff://              -           ok\n"), "{printed}");
}

#[test]
fn a_filesystem_that_hangs_is_given_up() {
    let fresh = Fresh::make("hangs", &["--fs", "--scheme", "hh"]);
    fresh.shares_dependencies(&[]);
    fs::remove_dir_all(fresh.directory.join("tests")).expect("removed");
    fresh.edit("src/filesystem.rs", "scheme = \"hh\"", "scheme = \"hh\", autoload = false");
    let made = "fn new(_scheme: &str) -> Result<Self> {";
    let hangs = format!(
        "{made}
            struct Hangs;
            impl Drop for Hangs {{ fn drop(&mut self) {{ loop {{ std::thread::park(); }} }} }}
            thread_local! {{ static AT_THE_END: Hangs = const {{ Hangs }}; }}
            if std::env::var_os(\"HANGS_AT_ONCE\").is_some() {{ drop(Hangs); }}
            AT_THE_END.with(|_| eprint!(\"half a line\"));"
    );
    fresh.edit("src/filesystem.rs", made, &hangs);
    // `import tensorflow` alone may take 20 s on a busy machine.
    let test = || {
        let mut test = tool(&fresh.directory, &["test", "--timeout", "60", "--tf"]);
        test.arg(venv());
        test
    };
    let [at_once, at_the_end] = thread::scope(|scope| {
        let at_once = scope.spawn(|| fails(test().env("HANGS_AT_ONCE", "1")));
        let at_the_end = scope.spawn(|| fails(&mut test()));
        [at_once, at_the_end].map(|printed| printed.join().expect("no panic"))
    });
    assert_all(
        &at_once,
        &[
            "import tensorflow  -           FAILED\n",
            "  | not done within 60 s\n",
            // Python's place.
            "  | Timeout (0:01:00)!\n",
            "in register_filesystem_plugin\n",
            "`cargo tf-plugin check` does that without TensorFlow, and says what it hangs in",
        ],
    );
    // The same for a filesystem that hangs at the end; and an incomplete line does not hide the result.
    assert_all(
        &at_the_end,
        &[
            "import tensorflow   -           ok\n",
            "hh://               -           ok\n",
            "end of the process  -           FAILED\n",
            "  | not done within 60 s\n",
            "look at threads of the plugin that are waited for, and at what is done when the process exits",
        ],
    );
    assert!(!at_the_end.contains("give it more time"), "{at_the_end}");
}

#[test]
fn a_new_filesystem_is_built_and_run() {
    let fresh = Fresh::make("runs", &["--fs"]);
    // One configuration: cargo does not rebuild what the tool has built, and vice versa.
    let build = || cargo(&fresh.directory, &["build"]);
    let first = build();
    assert!(first.contains("Compiling runs v0.1.0"), "{first}");
    let checked = succeeds(&mut tool(&fresh.directory, &["check"]));
    assert!(checked.contains("Filesystem runs://"), "{checked}");
    for printed in [checked, build(), succeeds(&mut tool(&fresh.directory, &["build"])), build()] {
        assert!(!printed.contains("Compiling"), "{printed}");
    }

    let show = "import os, sys
print(sys.prefix, os.environ['TF_PLUGGABLE_DEVICE_LIBRARY_PATH'])
sys.exit(7)";
    let mut run = tool(&fresh.directory, &["run", "--tf"]);
    run.arg(venv()).args(["--", "python", "-c", show]);
    let printed = exits(run.env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH"), 7);
    let library = target().join("debug/libruns.so");
    let wanted = format!("{} {}\n", venv().display(), library.display());
    assert!(printed.contains(&wanted), "{printed}");
    let mut run = tool(&fresh.directory, &["run", "--python"]);
    let printed = fails(run.arg(venv().join("bin/python")).args(["--", "no-such-program"]));
    assert!(printed.contains("cannot run no-such-program; is it on PATH?"), "{printed}");

    let known = json(&mut tool(&fresh.directory, &["build", "--json"]));
    assert_eq!(known["path"], library.to_string_lossy().as_ref());
    let mut released = tool(&fresh.directory, &["build", "--json"]);
    let released = json(released.env_remove("TF_PLUGIN_PROFILE"));
    assert_eq!(released["path"], target().join("release/libruns.so").to_string_lossy().as_ref());
    assert!(!cargo(&fresh.directory, &["build", "--release"]).contains("Compiling"));
    let glibc = known["glibc"].as_str().expect("a version").replace('.', "_");
    let machine = std::env::consts::ARCH;
    assert_eq!(known["platform"], format!("manylinux_{glibc}_{machine}"));
    let printed = fails(&mut tool(&fresh.directory, &["build", "--target", "pdp11"]));
    assert!(printed.contains("rustc knows no target `pdp11`"), "{printed}");
    // A linker that does not know the target, as this machine's does not know another one's.
    let bin = fresh.parent.join("bin");
    fs::create_dir(&bin).expect("made");
    symlink("/bin/false", bin.join("cc")).expect("linked");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = [bin].into_iter().chain(env::split_paths(&path));
    let path = env::join_paths(path).expect("paths");
    let triple = format!("{machine}-unknown-linux-gnu");
    let printed = fails(tool(&fresh.directory, &["build", "--target", &triple]).env("PATH", path));
    let wanted =
        format!("error: this machine's linker, `cc`, cannot link for {triple}: `pip install");
    assert!(printed.contains(&wanted), "{printed}");
    assert!(printed.contains("\n  caused by: "), "{printed}");
    for noise in ["Compiling", "note: "] {
        assert!(!printed.contains(noise), "{printed}");
    }
    let printed = exits(&mut tool(&fresh.directory, &["build", "--compat", "old"]), 2);
    assert!(printed.contains("write one such as manylinux_2_28"), "{printed}");
}

#[test]
fn each_command_reports_a_missing_plugin() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let commands: [&[&str]; 6] =
        [&["build"], &["wheel"], &["test"], &["run", "--", "true"], &["check"], &["bench"]];
    for command in commands {
        let printed = fails(&mut tool(here, command));
        assert!(printed.contains("or create one with `cargo tf-plugin new`"), "{printed}");
    }
    let printed = fails(&mut tool(here, &["demo"]));
    assert!(printed.contains("error: run the demo in a clone of the project"), "{printed}");
    fs::write(here.join("Cargo.toml"), "[package\n").expect("written");
    // Also for commands that need no package: the user may mean its target directory.
    for command in [&["wheel"][..], &["doctor", "--tf", NEWEST]] {
        let printed = fails(&mut tool(here, command));
        assert!(
            printed.contains("--> Cargo.toml:1:9") && !printed.contains("plugin new"),
            "{printed}"
        );
    }
    let package = |name: &str, library: &str| {
        fs::create_dir_all(here.join(name).join("src")).expect("made");
        fs::write(here.join(name).join("src/lib.rs"), "").expect("written");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{library}"
        );
        fs::write(here.join(name).join("Cargo.toml"), manifest).expect("written");
    };
    package("plain", "");
    package("bare", "[lib]\ncrate-type = [\"cdylib\"]\n");
    let bare = "#[unsafe(no_mangle)]\npub extern \"C\" fn TF_InitPlugin() {}\n";
    fs::write(here.join("bare/src/lib.rs"), bare).expect("written");
    package("one", "[lib]\ncrate-type = [\"cdylib\"]\n");
    package("two", "[lib]\ncrate-type = [\"cdylib\"]\n");
    let workspace =
        "[workspace]\nresolver = \"3\"\nmembers = [\"plain\", \"bare\", \"one\", \"two\"]\n";
    fs::write(here.join("Cargo.toml"), workspace).expect("written");
    for (directory, arguments, advice) in [
        ("", &["wheel"][..], "for most commands with `--package`: bare, one, two"),
        (
            "",
            &["build", "--package", "three"],
            "has no package `three`; plugins in it: bare, one, two",
        ),
        ("plain", &["test"], "write `crate-type = [\"cdylib\", \"rlib\"]`"),
        ("plain", &["check"], "write `crate-type = [\"cdylib\", \"rlib\"]`"),
        ("bare", &["wheel"], "does not say what it brings"),
        ("one", &["demo"], "run the demo in a clone of the project"),
        ("one/src", &["build"], "exports nothing that TensorFlow looks for"),
    ] {
        let printed = fails(&mut tool(&here.join(directory), arguments));
        assert!(printed.contains(advice), "`{advice}` is missing in {printed}");
    }
}

#[test]
fn shells_complete_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let printed = succeeds(&mut tool(Path::new("."), &["completions", shell]));
        assert!(printed.contains("wheel") && printed.contains("device-type"), "{shell}: {printed}");
    }
}

/// Returns a pipe that nobody reads from.
fn deserted() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn a_closed_output_causes_no_panic() {
    let directory = tempfile::tempdir().expect("a directory");
    let full = || Stdio::from(fs::File::create("/dev/full").expect("it is there"));
    for (arguments, made) in [(&["completions", "bash"][..], ""), (&["new", "xy", "--fs"], "xy")] {
        let command = || tool(directory.path(), arguments);
        let printed = fails(command().stdout(full()));
        assert!(printed.contains("error: cannot write to standard output"), "{printed}");
        if !made.is_empty() {
            fs::remove_dir_all(directory.path().join(made)).expect("it was made all the same");
        }
        // Like `| head -1`, which closes the pipe early.
        let printed = succeeds(command().stdout(deserted()));
        assert!(!printed.contains("panicked"), "{printed}");
    }
    let mut refused = tool(directory.path(), &["new", "xy", "--fs"]);
    let status = refused.stdout(deserted()).stderr(deserted()).status().expect("it runs");
    assert_eq!(status.code(), Some(1), "101 would be a panic");
}

#[test]
fn a_failed_new_leaves_nothing() {
    let parent = tempfile::tempdir().expect("a directory");
    let here = parent.path();
    let new = |arguments: &[&str]| fails(tool(here, &["new"]).args(arguments));
    assert!(new(&["My Fs", "--fs"]).contains("such as my-plugin"));
    assert!(new(&["json", "--fs"]).contains("choose another name"));
    assert!(new(&["xy", "--fs", "--sdk", "nowhere"]).contains("is not a clone of the SDK"));
    assert!(new(&["xy", "--fs", "--path", "a/b"]).contains("create it first"));
    let bytes = OsStr::from_bytes(b"x\xff");
    let printed = fails(tool(here, &["new", "xy", "--fs", "--path"]).arg(bytes));
    assert!(printed.contains("which is not UTF-8; name another directory"), "{printed}");
    // `q://` would be a directory of this machine.
    assert!(new(&["q", "--fs"]).contains("name one with `--scheme`"));
    assert_eq!(fs::read_dir(here).expect("a directory").count(), 0, "something was made");
    fs::create_dir(here.join("xy")).expect("made");
    assert!(new(&["xy", "--fs"]).contains("xy already exists"));
    assert_eq!(fs::read_dir(here.join("xy")).expect("a directory").count(), 0, "it was filled");
    let mut wheel = tool(here, &["wheel", "--json", "--out-dir"]);
    assert!(fails(wheel.arg(bytes)).contains("is not UTF-8, which JSON must be"));
    for command in ["test", "bench"] {
        let limit = u64::MAX.to_string();
        let printed = exits(&mut tool(here, &[command, "--timeout", &limit]), 2);
        assert!(printed.contains("is not in 1..=31536000"), "{printed}");
    }
    for (kind, printed) in [
        (&[][..], "--fs|--object-store|--device|--gpu|--both|--ops"),
        (&["--device", "--scheme", "xy"], "'--device' cannot be used with '--scheme <SCHEME>'"),
        (&["--fs", "--driver"], "'--fs' cannot be used with '--driver'"),
        (&["--fs", "--device-type", "XY"], "'--fs' cannot be used with '--device-type <TYPE>'"),
    ] {
        let refused = exits(tool(here, &["new", "y"]).args(kind), 2);
        assert!(refused.contains(printed), "{refused}");
    }
}
