//! The output of `check` about plugins of this SDK, about C++ plugins, and about files that are not plugins.

use crate::crates::{fails, succeeds};
use crate::output::{Ran, assert_says, json, ran, root, run};
use crate::program;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::plugins::{compile, source};
use cargo_tf_plugin::{NEWEST, TensorFlow};

pub(crate) fn command() -> Command {
    let mut command = program::interruptible();
    command.current_dir(root()).args(["tf-plugin", "check"]);
    command
}

pub(crate) fn filesystem() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compile(&source("filesystem.cc"), &[], "libplain.so", &[]))
}

pub(crate) fn device() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compile(&source("device.cc"), &[], "libdevice.so", &[]))
}

/// Checks a plugin with a fault, which exits with `code`, and returns the text.
#[track_caller]
pub(crate) fn check(plugin: &Path, fault: &str, code: i32) -> String {
    let (found, text) = run(command().arg(plugin).env("FAULT", fault));
    assert_eq!(found, code, "{fault}: {text}");
    text
}

/// Returns what is printed about the operation `name`, in the first table that has it.
#[track_caller]
fn operation<'a>(text: &'a str, name: &str) -> &'a str {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(name));
    lines.map(str::trim).next().unwrap_or_else(|| panic!("no line for {name} in:\n{text}"))
}

#[test]
fn a_package_is_built_and_each_operation_is_somebodys() {
    let text = succeeds(command().arg("memfs"));
    for (name, whose) in [
        ("init", "yours"),
        ("new_random_access_file", "yours"),
        ("new_read_only_memory_region_from_file", "unimplemented"),
        ("recursively_create_dir", "the SDK's default"),
        ("delete_recursively", "TensorFlow's default lists and deletes one by one"),
        ("rename_file", "yours"),
        ("copy_file", "the SDK's default"),
        ("path_exists", "the SDK's default    calls stat"),
        ("stat", "yours"),
        ("is_directory", "TensorFlow's default calls path_exists, then stat"),
        ("translate_name", "the SDK's default"),
        ("10 of transactions and configuration", "none                 TensorFlow never calls"),
        ("read", "yours"),
        ("append", "yours"),
        ("flush ", "the SDK's default    does nothing"),
        ("sync", "the SDK's default    calls flush"),
        ("close", "the SDK's default    calls flush"),
    ] {
        let printed = operation(&text, name);
        assert!(printed.starts_with(whose), "{name}: {printed}");
    }
    let lines = "Filesystem mem://|made with the Rust SDK|panics unwind|of TensorFlow nothing|\
        registered by itself, on `import tensorflow`|entry points TF_InitPlugin TF_InitKernel|\
        TF_FilesystemOps 0 0 264 (216 in TensorFlow 2.22)|TF_WritableFileOps 0 0 48|\
        TF_ReadOnlyMemoryRegionOps none|no errors, no warnings";
    for line in lines.split('|') {
        assert_says(&text, line);
    }
    assert!(!text.contains('\x1b'), "colours that nobody requested:\n{text}");

    // The example in the documentation, except for the file itself.
    let documentation = fs::read_to_string(root().join("docs/check.md")).expect("docs/check.md");
    // Cargo's messages follow the report.
    let report = text.split_once("\n\n").and_then(|(_, rest)| rest.split_once("\nno errors"));
    let (tables, _) = report.expect("tables, then the findings");
    assert!(tables.starts_with("Filesystem mem://"), "{text}");
    assert!(documentation.contains(tables), "docs/check.md should contain:\n{tables}");
}

/// Checks the operations of writers, too: no macro sees which of them an author has implemented.
#[test]
fn the_authors_methods_of_writers_are_known() {
    let text = succeeds(command().arg("localfs"));
    for name in ["flush ", "sync ", "close "] {
        assert_eq!(operation(&text, name), "yours", "{name}");
    }
}

/// Runs in the package's directory, where a package needs no name, and gets JSON.
#[test]
fn a_script_gets_json_about_a_filesystem_and_a_device_in_one_file() {
    let directory = root().join("tests/tensorflow/fixtures/bothfs");
    let report = json(command().current_dir(directory).arg("--json"));
    assert_eq!(report["end"], "done");
    assert_eq!(report["registers_on_import"], true);
    // The op of its device is not for users.
    let findings = report["findings"].as_array().expect("a list");
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding["severity"], "note", "{finding}");
    let what = finding["what"].as_str().expect("a text");
    assert!(what.starts_with("has an op, such as BothDouble, and does not export"), "{what}");
    let filesystem = &report["filesystems"][0];
    assert_eq!(filesystem["schemes"], serde_json::json!(["both"]));
    let operations = filesystem["tables"][0]["operations"].as_array().expect("a list");
    let by = |name: &str| {
        let found = operations.iter().find(|operation| operation["name"] == name);
        found.unwrap_or_else(|| panic!("{name}"))["by"].clone()
    };
    assert_eq!(by("path_exists"), "yours");
    assert_eq!(by("stat"), "unimplemented");
    assert_eq!(by("translate_name"), "sdk_default");
    assert_eq!(by("start_transaction"), "never_called");
    let device = &report["device"];
    assert_eq!(device["platform"]["device_type"], "RUST_TEST");
    assert_eq!(device["devices"], 1);
    assert_eq!(device["graph_pass_for"], "RUST_TEST");
    let notes = report["artefact"]["notes"].as_array().expect("a list");
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes.iter().all(|note| note["panic"] == "unwind"), "{notes:?}");
    let kernels = report["kernels"].as_array().expect("a list");
    let relu = kernels.iter().filter(|kernel| kernel["op"] == "Relu");
    assert_eq!(relu.count(), 2, "{kernels:?}");
    let ops = report["ops"].as_array().expect("a list");
    assert!(ops.iter().any(|op| op == "HostdeviceInPlace"), "{ops:?}");
}

#[test]
fn a_filesystem_in_cpp_is_looked_at_too() {
    let text = check(filesystem(), "", 0);
    for line in [
        "Filesystem plain://",
        "translate_name yours",
        "delete_file unimplemented",
        "get_children unimplemented",
        "copy_file TensorFlow's default reads and appends 128 KiB",
        "registered by `tf.experimental.register_filesystem_plugin`",
        "no errors, no warnings",
    ] {
        assert_says(&text, line);
    }
    assert!(!text.contains("SDK"), "{text}");
    assert_says(&check(filesystem(), "two", 0), "Filesystem plain://, other://");
}

/// Checks faults for which TensorFlow does not print all that `check` does; the others are below.
#[test]
fn faults_of_a_filesystem_are_found() {
    for (fault, code, words) in [
        ("no-scheme", 0, "offers no scheme"),
        ("taken", 1, "\"file\", which is TensorFlow's own"),
        ("init-fails", 1, "`init of plain://` returns UNAVAILABLE: no server"),
        ("bad-scheme", 1, "\"my-fs\", which TensorFlow never finds"),
        ("api", 0, "API 7 for TF_FilesystemOps; TensorFlow logs that and goes on"),
        ("no-size", 1, "TF_FilesystemOps has 0 bytes, and the operations from init on are cut off"),
        ("short", 0, "has 64 bytes, and the operations from delete_file on are cut off"),
        ("no-read", 0, "has no `read` in TF_RandomAccessFileOps"),
        ("no-translate", 0, "takes scheme and host away"),
        ("garbage", 1, "`delete_file` in TF_FilesystemOps points to no function of any library"),
    ] {
        let text = check(filesystem(), fault, code);
        assert_says(&text, words);
        let error = text.lines().any(|line| line.starts_with("error "));
        assert_eq!(error, code == 1, "{fault}: {text}");
        assert_says(&text, "fix:");
    }
}

/// Checks the table of TensorFlow 2.22, which has the same ABI number: only its size shows that it is different.
#[test]
fn a_filesystem_is_read_in_the_layout_of_either_header() {
    let text = check(filesystem(), "newer", 0);
    for line in [
        "TF_FilesystemOps 0 0 216",
        "set_filesystem_configuration yours",
        "4 of transactions and configuration none",
        "has the table of TensorFlow 2.22: older releases, which have the operations of transactions in its middle, \
         do not find `set_filesystem_configuration`",
        "0 errors, 1 warning",
    ] {
        assert_says(&text, line);
    }
    for (fault, words) in [
        ("configured", "does not find `set_filesystem_configuration`"),
        ("transactions", "takes `end_transaction` for `set_filesystem_configuration`"),
    ] {
        let text = check(filesystem(), fault, 0);
        assert_says(&text, "TF_FilesystemOps 0 0 264");
        assert_says(&text, &format!("no transactions in its middle, {words}"));
    }
}

/// Checks that only the file is read: the plugin would crash.
#[test]
fn without_running_it_a_plugin_is_read_only() {
    let text = succeeds(command().arg(filesystem()).arg("--no-run").env("FAULT", "crashes"));
    assert_says(&text, "entry points TF_InitPlugin");
    assert_says(&text, "its code has not run (--no-run)");
    assert!(!text.contains("Filesystem plain://"), "{text}");
    let text = succeeds(command().args(["memfs", "--no-run"]));
    assert_says(&text, "scheme mem://");
    let report = json(command().args(["memfs", "--no-run", "--json"]));
    assert_eq!(report["end"], "not_run");
    assert_eq!(report["filesystems"], serde_json::json!([]));
}

#[test]
fn a_plugin_does_not_see_secrets() {
    let told = |command: &mut Command| {
        command
            .env("FAULT", "tells")
            .env("GITHUB_TOKEN", "hidden-1")
            .env("AWS_SECRET_ACCESS_KEY", "hidden-2")
            .env("PROXY_OF_TEST", "http://me:hidden-3@127.0.0.1:9")
            .env("KEPT_FOR_TEST", "kept");
    };
    let mut verbose = command();
    told(verbose.arg(filesystem()).arg("--verbose"));
    let text = succeeds(&mut verbose);
    for line in [
        "GITHUB_TOKEN is gone",
        "AWS_SECRET_ACCESS_KEY is gone",
        "PROXY_OF_TEST is gone",
        "KEPT_FOR_TEST is there",
    ] {
        assert_says(&text, line);
    }
    assert!(!text.contains("hidden-"), "{text}");
    assert_says(&text, "its code has run as you, in a separate process, without ");
    let mut script = command();
    told(script.arg(filesystem()).arg("--json"));
    let report = json(&mut script);
    let withheld = report["withheld"].as_array().expect("a list");
    for name in ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PROXY_OF_TEST"] {
        assert!(withheld.iter().any(|known| known == name), "{name}: {withheld:?}");
    }
}

#[test]
fn faults_of_a_device_are_found() {
    for (fault, code, words) in [
        ("", 0, "Device PLAIN platform PLAIN_C devices 2 on this machine: Plain One"),
        ("fails", 1, "`SE_InitPlugin` returns UNAVAILABLE: wrong driver; TensorFlow aborts"),
        ("executor-fails", 1, "`create_stream_executor` returns UNAVAILABLE: no driver"),
        ("device-fails", 1, "`create_device` returns UNAVAILABLE: no memory"),
        ("no-count", 1, "'get_device_count' field in SP_PlatformFns is null"),
        ("no-memcpy-dtod", 1, "'memcpy_dtod' field in SP_StreamExecutor is null"),
        ("no-timers", 0, "must be set for TensorFlow 2.12 and 2.13"),
        ("overrun", 1, "writes behind the end of SP_StreamExecutor"),
    ] {
        assert_says(&check(device(), fault, code), words);
    }
}

/// Returns what TensorFlow's own libraries print about a plugin with a fault: each line of the log.
fn tensorflow_says(function: &str, plugin: &Path, faults: &[&str]) -> String {
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let mut command = tensorflow.python_command();
    command.arg(source("load.py")).arg(tensorflow.library_dir()).arg(function).arg(plugin);
    let Ran { out, err, .. } = ran(command.args(faults));
    out + &err
}

/// Checks each fault in a real TensorFlow, too: it refuses the same plugins, with the same texts.
#[test]
fn check_says_of_filesystems_what_tensorflow_says() {
    // TensorFlow takes the last one, while the scheme is free.
    let faults =
        "no-allocator null-scheme taken no-init abi no-tables no-file-cleanup init-fails two";
    let faults: Vec<_> = faults.split(' ').collect();
    let printed = tensorflow_says("TF_RegisterFilesystemPlugin", filesystem(), &faults);
    for fault in faults {
        let line = printed.lines().find_map(|line| line.strip_prefix(fault)?.strip_prefix('|'));
        let line = line.unwrap_or_else(|| panic!("nothing about {fault} in:\n{printed}"));
        let (status, words) = line.split_once('|').expect("a code and a text");
        let code = i32::from(status != "0");
        let text = check(filesystem(), fault, code);
        assert_says(&text, words.trim_end_matches('.'));
        let refused = text.lines().any(|line| line.starts_with("error ")) && text.contains("fix:");
        assert_eq!(refused, code == 1, "{fault}: {text}");
    }
}

#[test]
fn check_says_of_devices_what_tensorflow_says() {
    // The first one is the plugin without a fault.
    let faults = " fails executor-fails name no-type no-allocate no-size unified no-destroy";
    for fault in faults.split(' ') {
        let printed = tensorflow_says("TF_LoadPluggableDeviceLibrary", device(), &[fault]);
        let Some((_, words)) = printed.split_once("is OK (") else {
            assert!(printed.contains(&format!("{fault}|0|")), "{fault}: {printed}");
            check(device(), fault, 0);
            continue;
        };
        let text = check(device(), fault, 1);
        let words = words.split_once(": ").and_then(|(_, words)| words.split_once(") "));
        let words = words.expect("a code and a text").0.trim_end_matches('.');
        assert_says(&text, words);
        assert!(text.contains("fix:"), "{fault}: {text}");
    }
}

/// Checks imports in the libraries of a real TensorFlow: a C function that it has, one that it lacks, one in C++.
#[test]
fn imports_are_looked_up_in_the_releases() {
    let imports = compile(&source("filesystem.cc"), &["IMPORTS"], "libimports.so", &[]);
    let text = succeeds(command().arg(&imports).args(["--tf", NEWEST]));
    assert_says(&text, "of TensorFlow 1 C functions, 0 C++ functions");
    assert_says(&text, &format!("TensorFlow {NEWEST} all there"));
    assert_says(
        &text,
        "such as TF_SetStatus, and names no library for them: TensorFlow 2.12 to 2.18",
    );

    let lacks = compile(&source("lacks.cc"), &[], "liblacks.so", &[]);
    let text = fails(command().arg(&lacks).args(["--tf", NEWEST]));
    assert_says(&text, &format!("TensorFlow {NEWEST} 2 missing TF_Log tsl::mutex::unlock()"));
    assert_says(&text, &format!("cannot be loaded by TensorFlow {NEWEST}: it lacks TF_Log"));
    assert_says(
        &text,
        "uses 1 C++ functions of TensorFlow's, which differ from release to release",
    );
}

#[test]
fn a_file_that_is_not_a_plugin_is_refused_with_the_next_step() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = |name: &str, content: &[u8]| {
        let path = scratch.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    };
    let good = fs::read(filesystem()).expect("the plugin");
    let mut other = good.clone();
    // `e_machine`: AArch64, or x86-64 on such a machine.
    other[18] = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    let mut half = good.clone();
    half[4] = 1;
    let object = scratch.path().join("x.o");
    let empty = file("empty.cc", b"");
    let compiled = Command::new(env::var_os("CXX").unwrap_or_else(|| "c++".into()))
        .arg("-c")
        .arg(&empty)
        .arg("-o")
        .arg(&object)
        .status();
    assert!(compiled.expect("the compiler runs").success());
    for (path, words) in [
        (scratch.path().join("none.so"), "build the plugin first"),
        (PathBuf::from("/dev/zero"), "is not a regular file"),
        (scratch.path().to_owned(), "is a directory; name the `.so` in it"),
        (
            file("text.so", b"not a library, though it has the name of one"),
            "is not a shared library",
        ),
        (file("empty.so", b""), "is not a shared library"),
        (file("cut.so", &good[..100]), "is damaged"),
        (
            file(
                "libx.a",
                b"!<arch>\nx/              0           0     0     644     0         `\n",
            ),
            "a static library; give the crate",
        ),
        (
            file(
                "libx.dylib",
                b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            ),
            "a library for macOS",
        ),
        (file("x.whl", b"PK\x03\x04rest of a wheel"), "an archive such as a wheel"),
        (file("other.so", &other), "check it on a machine of its kind"),
        (file("half.so", &half), "a 32-bit library"),
        (object, "is an object file"),
        (PathBuf::from(env!("CARGO_BIN_EXE_cargo-tf-plugin")), "is a program"),
        (
            PathBuf::from("nothing"),
            "there is no file `nothing`, and no package to build caused by: the workspace in",
        ),
    ] {
        let (code, text) = run(command().arg(&path));
        assert_eq!(code, 1, "{}: {text}", path.display());
        assert!(text.starts_with("error: "), "{}: {text}", path.display());
        assert_says(&text, words);
    }
    // A library that is not a plugin.
    let plain = compile(&empty, &[], "libempty.so", &[]);
    let text = fails(command().arg(plain));
    assert_says(&text, "exports none of the functions that TensorFlow looks for");

    let text = fails(command().arg(filesystem()).args(["--tf", "2.1.0"]));
    assert_says(&text, "TensorFlow 2.1.0 cannot load these plugins");
    let nowhere = scratch.path().join("venv");
    let text = fails(command().arg(filesystem()).arg("--tf").arg(nowhere));
    assert_says(&text, "/venv; name a virtual environment that has TensorFlow, or a release");
}
