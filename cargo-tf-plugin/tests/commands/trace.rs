//! `run --trace`: the calls of real TensorFlow releases to plugins in Rust and C++, as lines, as totals and as a file
//! for Chrome's viewers; and that nothing else changes.

use crate::output::{Ran, ran, root};
use crate::program;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::check::{device, filesystem};
use crate::plugins::{compile, source};
use crate::traced::{HEADINGS, Line, events, lines, totals};
use cargo_tf_plugin::NEWEST;
use tempfile::TempDir;

/// Returns `cargo tf-plugin run` in the workspace, with a TensorFlow release.
fn run(version: &str, arguments: &[&str]) -> Command {
    let mut command = program::with_tensorflow(version, "run");
    command.args(arguments);
    command
}

fn python(mut command: Command, script: &str) -> Ran {
    ran(command.args(["--", "python", "-c", script]))
}

fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<TempDir> = OnceLock::new();
    SCRATCH.get_or_init(|| tempfile::tempdir().expect("a scratch directory")).path()
}

const FILES: &str = include_str!("scripts/files.py");

#[test]
fn a_filesystem_is_traced_and_nothing_else_changes() {
    let plain = python(run(NEWEST, &["--package", "memfs"]), FILES);
    assert_eq!(plain.code, Some(0), "{}", plain.err);
    assert!(plain.out.contains("a very secret text\n['one'] False\n"), "{}", plain.out);
    assert!(plain.out.contains("child: 5\n"), "{}", plain.out);

    let chrome = scratch().join("files.json");
    let mut command = run(NEWEST, &["--package", "memfs", "--trace", "--trace-chrome"]);
    command.arg(&chrome);
    // `os._exit` prints no totals, but all calls are there.
    let traced = python(command, &(FILES.to_owned() + "os._exit(7)"));
    assert_eq!((traced.code, &traced.out), (Some(7), &plain.out), "{}", traced.err);

    let lines = lines(&traced.err);
    let find = |call: &str, arguments: &str| -> &Line {
        let found = lines.iter().find(|line| line.call == call && line.arguments == arguments);
        found.unwrap_or_else(|| panic!("no {call} of {arguments} in:\n{}", traced.err))
    };
    for (call, arguments, result) in [
        ("mem:// append", "mem://data/of/one 18 bytes", "OK"),
        ("mem:// get_children", "mem://data/of", "1 entry"),
    ] {
        let line = find(call, arguments);
        assert_eq!((line.result.as_str(), line.thread.as_str()), (result, "main"), "{line:?}");
    }
    let stat = find("mem:// stat", "mem://data/none");
    assert!(stat.result.starts_with("NOT_FOUND: "), "{stat:?}");
    assert!(!traced.err.contains("secret"), "{}", traced.err);

    // Threads have numbers, and the child has that of its process.
    let asked: Vec<_> = lines
        .iter()
        .filter(|line| line.call == "mem:// path_exists" && line.arguments == "mem://data/of/one")
        .collect();
    assert_eq!(asked.len(), 200);
    let threads =
        asked.iter().map(|line| line.thread.as_str()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(threads.len(), 4, "{threads:?}");
    assert!(threads.iter().all(|thread| thread.parse::<u32>().is_ok()), "{threads:?}");
    let of_the_child = lines.iter().find(|line| line.thread.contains('/')).expect("a child's call");
    assert_eq!(of_the_child.arguments, "mem://data/of");
    let (child, thread) = of_the_child.thread.split_once('/').expect("a process");
    assert!(child.parse::<u32>().is_ok() && thread == "main", "{of_the_child:?}");
    assert!(lines.iter().all(|line| line.seconds > 0.1 && line.seconds < 600.0));

    // The same calls are in the file.
    let events = events(&chrome);
    assert_eq!(
        (&events[0]["name"], &events[0]["args"]["name"]),
        (&"process_name".into(), &"python".into())
    );
    let calls: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(calls.len(), lines.len());
    for event in &calls {
        assert!(event["ts"].is_f64() && event["dur"].as_f64() >= Some(0.0), "{event}");
        let named = events.iter().any(|name| {
            name["name"] == "thread_name"
                && (&name["pid"], &name["tid"]) == (&event["pid"], &event["tid"])
        });
        assert!(named, "the thread of {event} has no name");
    }
    let append = calls.iter().find(|event| event["name"] == "append").expect("an append");
    assert_eq!((&append["cat"], &append["args"]["bytes"]), (&"mem://".into(), &18.into()));
    assert_eq!(append["args"]["arguments"], "mem://data/of/one 18 bytes");
    // A call within another lies within its time.
    let time = |name: &str| {
        let event = calls.iter().find(|event| event["name"] == name).expect(name);
        let start = event["ts"].as_f64().expect("a number");
        (start, start + event["dur"].as_f64().expect("a number"))
    };
    let (outer, inner) = (time("TF_InitKernel"), time("init"));
    assert!(outer.0 <= inner.0 && inner.1 <= outer.1, "{outer:?} {inner:?}");
    assert!(!fs::read_to_string(&chrome).expect("the file").contains("secret"));
}

/// Runs the program of the book's page, and compares its picture with what happens.
#[test]
fn the_book_shows_what_is_traced() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("it is there");
    let page = read("docs/trace.md");
    let script = page.split_once("```python\n").and_then(|(_, rest)| rest.split_once("```"));
    let (script, _) = script.expect("a program");
    let traced = python(run(NEWEST, &["--package", "memfs", "--trace"]), script);
    assert_eq!(
        (traced.code, traced.out.as_str()),
        (Some(0), "b'hello'\nFalse\n"),
        "{}",
        traced.err
    );

    let mut picture = String::new();
    for part in read("docs/trace.svg").split('<') {
        picture += part.split_once('>').map_or("", |(_, text)| text);
    }
    let picture = picture.replace("&gt;", ">").replace("&#39;", "'").replace("\n\n    ", "\n");
    let told = |lines: Vec<Line>| -> Vec<[String; 3]> {
        lines.into_iter().map(|line| [line.call, line.arguments, line.result]).collect()
    };
    assert_eq!(told(lines(&picture)), told(lines(&traced.err)));
}

#[test]
fn the_totals_are_printed_at_the_end() {
    totals_at_the_end(NEWEST);
}

#[cfg(feature = "matrix")]
#[test]
fn the_totals_are_printed_at_the_end_in_an_old_tensorflow() {
    totals_at_the_end(cargo_tf_plugin::MATRIX[0]);
}

#[track_caller]
fn totals_at_the_end(version: &str) {
    let script = "
import os, sys, tensorflow as tf
tf.io.write_file('mem://host/file', 'x' * 1000)
for _ in range(3): tf.io.read_file('mem://host/file')
if os.fork() == 0:
    tf.io.gfile.stat('mem://host/file')
    sys.exit(0)
os.wait()
sys.exit(9)";
    let ran = python(run(version, &["--package", "memfs", "--trace=totals"]), script);
    assert_eq!(ran.code, Some(9), "{}", ran.err);
    assert!(!ran.err.contains(HEADINGS) && !ran.err.contains('→'), "{}", ran.err);
    // A forked child has its own totals, without those of its parent; it ends first.
    let parts: Vec<_> = ran.err.split(" calls to libmemfs.so by process ").collect();
    assert_eq!(parts.len(), 3, "{}", ran.err);
    let names = |part| -> Vec<_> { totals(part).into_iter().map(|row| (row.0, row.1)).collect() };
    let mut child = names(parts[1]);
    child.sort();
    assert_eq!(child, ["mem:// stat", "mem:// translate_name"].map(|name| (name.to_owned(), 1)));
    let rows = totals(parts[2]);
    let row = |name: &str| {
        let found = rows.iter().find(|row| row.0 == name);
        found.unwrap_or_else(|| panic!("no {name} in:\n{}", ran.err)).clone()
    };
    assert_eq!(row("mem:// new_writable_file").1, 1);
    assert_eq!((row("mem:// append").1, row("mem:// append").3), (1, 1000));
    let (_, calls, refused, bytes) = row("mem:// read");
    assert!(calls >= 3 && refused <= calls && bytes == 3000, "{}", ran.err);
    let sum: u64 = rows.iter().map(|row| row.1).sum();
    assert!(ran.err.contains(&format!("\n{sum} calls to libmemfs.so by process ")), "{}", ran.err);
}

#[test]
fn an_unloaded_plugin_is_reported_at_the_end() {
    let traced = |script| {
        let ran = python(run(NEWEST, &["--package", "memfs", "--trace=totals"]), script);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "done\n"), "{}", ran.err);
        ran.err
    };
    let printed = "\nno calls: libmemfs.so was not loaded by the program or what it has started\n";
    let without = traced("print('done')");
    assert!(without.contains(printed), "{without}");
    assert!(without.contains("put `import tensorflow` into it"), "{without}");
    let lost = traced(
        "import os; del os.environ['TF_PLUGGABLE_DEVICE_LIBRARY_PATH']; import tensorflow; print('done')",
    );
    assert!(lost.contains(printed), "{lost}");
    assert!(lost.contains("the program may change TF_PLUGGABLE_DEVICE_LIBRARY_PATH"), "{lost}");
    // A child has loaded it, and made no other call: there is nothing to report.
    let child = traced(
        "import subprocess, sys
subprocess.run([sys.executable, '-c', 'import tensorflow'], check=True)
print('done')",
    );
    assert!(!child.contains("no calls"), "{child}");
    assert!(!child.contains("calls to libmemfs.so"), "{child}");
}

#[test]
fn a_device_is_traced_with_its_kernels() {
    let script = "
import tensorflow as tf
with tf.device('/device:RUST_REF:0'):
    a = tf.constant([1., 2., 3.])
    b = a
    for _ in range(10): b = b + a
    print(b.numpy())
@tf.function
def function(x): return tf.matmul(x, x) + x
print(function(tf.ones([4, 4])).numpy().sum())";
    let file = scratch().join("device.txt");
    let mut command = run(NEWEST, &["--package", "refdevice", "--trace", "--trace-file"]);
    // The function is part of a cycle, which Python collects at its end.
    command.arg(&file).env_remove("PYTHONPATH");
    let traced = python(command, script);
    let result = (traced.code, traced.out.as_str());
    assert_eq!(result, (Some(0), "[11. 22. 33.]\n80.0\n"), "{}", traced.err);
    let text = fs::read_to_string(&file).expect("the file");
    let (lines, totals) = (lines(&text), totals(&traced.err));
    let results = |call: &str| -> Vec<&str> {
        let found: Vec<_> = lines.iter().filter(|line| line.call == call).collect();
        assert!(!found.is_empty(), "no {call} in:\n{text}");
        let count = totals.iter().find(|row| row.0 == call).map(|row| row.1);
        assert_eq!(count, Some(found.len() as u64), "{call}");
        found.iter().map(|line| line.result.as_str()).collect()
    };
    assert_eq!(results("SE_InitPlugin"), ["RUST_REF"]);
    assert_eq!(results("TF_InitGraph"), ["RUST_REF"]);
    assert_eq!(results("TF_InitProfiler"), ["RUST_REF"]);
    assert_eq!(results("RUST_REF create_device"), ["OK"]);
    assert_eq!(results("RUST_REF create_stream_executor"), ["OK"]);
    assert!(results("RUST_REF get_device_count").iter().all(|count| *count == "1"));
    assert_eq!(results("RUST_REF AddV2 compute").len(), 11);
    assert_eq!(results("RUST_REF MatMul compute").len(), 1);
    assert_eq!(results("RUST_REF MatMul create").len(), results("RUST_REF MatMul delete").len());
    assert!(!results("RUST_REF optimize_func").is_empty());
    assert!(results("RUST_REF memcpy_dtoh").iter().all(|result| *result == "OK"));
    assert!(results("RUST_REF get_numa_node").contains(&"-1"));
    // A value that one call returns is an argument of another one.
    let streams = results("RUST_REF create_stream");
    let copy = lines.iter().find(|line| line.call == "RUST_REF memcpy_htod").expect("a copy");
    assert!(streams.iter().any(|stream| copy.arguments.contains(stream)), "{streams:?}: {copy:?}");
    // The thread that polls is a separate one.
    let poll = lines.iter().find(|line| line.call == "RUST_REF get_event_status").expect("a poll");
    assert!(poll.thread.parse::<u32>().is_ok(), "{poll:?}");
}

#[test]
fn an_installed_device_is_traced_where_it_is() {
    let overlay = program::environment(&[("refdevice", "libinstalled.so")]);
    let installed = overlay.plugins().join("libinstalled.so");
    let mut command = program::tool();
    command.current_dir(root()).args(["tf-plugin", "run", "--trace", "--python"]);
    command.arg(overlay.python()).arg("--library").arg(&installed);
    command.env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
    let script = "import tensorflow as tf; print(len(tf.config.list_physical_devices('RUST_REF')))";
    let ran = python(command, script);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "1\n"), "{}", ran.err);
    let lines = lines(&ran.err);
    // Loaded only by TensorFlow.
    let loads = lines.iter().filter(|line| line.call == "SE_InitPlugin").count();
    assert_eq!(loads, 1, "{}", ran.err);
    assert!(lines.iter().any(|line| line.call == "RUST_REF get_device_count"), "{}", ran.err);
}

#[test]
fn plugins_in_cpp_are_traced_of_which_the_library_is_all_there_is() {
    // A filesystem that a program registers itself, and one that fails; next to another plugin, which is not traced.
    let other = program::plugin("memfs");
    let library = filesystem();
    let script = "
import tensorflow as tf
print(tf.io.gfile.exists('mem://host/none'))
try:
    tf.experimental.register_filesystem_plugin(LIBRARY)
    print(tf.io.gfile.stat('plain://x').length)
except Exception as error:
    print(type(error).__name__, error)";
    let script = script.replace("LIBRARY", &format!("{library:?}"));
    for (fault, status, printed) in [
        ("", "OK", "False\n0\n"),
        ("init-fails", "UNAVAILABLE: no server", "False\nUnavailableError no server\n"),
    ] {
        let mut command = run(NEWEST, &["--trace"]);
        command.env("FAULT", fault).arg("--library").arg(library);
        command.env("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", &other);
        let traced = python(command, &script);
        assert_eq!((traced.code, traced.out.as_str()), (Some(0), printed), "{}", traced.err);
        let lines = lines(&traced.err);
        let init = lines.iter().find(|line| line.call == "plain:// init");
        assert_eq!(init.expect(&traced.err).result, status);
        let translated = lines.iter().any(|line| line.call == "plain:// stat");
        assert_eq!(translated, fault.is_empty(), "{}", traced.err);
        assert!(!traced.err.contains("mem://"), "{}", traced.err);
        // Functions that the plugin does not have are missing.
        assert!(
            !lines.iter().any(|line| line.call.starts_with("SE_") || line.call == "TF_InitKernel")
        );
    }

    let mut command = run(NEWEST, &["--trace"]);
    command.arg("--library").arg(device());
    let device = python(
        command,
        "import tensorflow as tf; print(len(tf.config.list_physical_devices('PLAIN')))",
    );
    assert_eq!((device.code, device.out.as_str()), (Some(0), "2\n"), "{}", device.err);
    let count = lines(&device.err).into_iter().find(|line| line.call == "PLAIN get_device_count");
    assert_eq!(count.expect(&device.err).result, "2");

    // Kernels of a library that is linked with TensorFlow's functions; TensorFlow's own kernels are not traced.
    let library = compile(&source("traced.cc"), &[], "libtraced.so", &[]);
    let script = "
from tensorflow.python.eager import context, execute
context.context().ensure_initialized()
for name in (b'TracedState', b'TracedState', b'TracedStateless'):
    execute.execute(name, 0, inputs=[], attrs=(), ctx=context.context())
try:
    execute.execute(b'TracedFailing', 0, inputs=[], attrs=(), ctx=context.context())
except Exception as error:
    print(type(error).__name__)";
    let ask = |trace: &[&str]| {
        let mut command = run(NEWEST, trace);
        command.arg("--library").arg(&library);
        python(command, script)
    };
    let (plain, traced) = (ask(&[]), ask(&["--trace"]));
    assert_eq!((plain.code, traced.code), (Some(0), Some(0)), "{}", traced.err);
    assert_eq!(
        plain.out,
        "the kernel runs: 41\nthe kernel runs: 42\nthe state is null\nUnavailableError\n"
    );
    assert_eq!(traced.out, plain.out);
    let lines = lines(&traced.err);
    let calls: Vec<_> = lines.iter().map(|line| line.call.as_str()).collect();
    let count = |call: &str| calls.iter().filter(|other| **other == call).count();
    assert_eq!(count("CPU TracedState create"), 1, "{calls:?}");
    assert_eq!(count("CPU TracedState compute"), 2, "{calls:?}");
    assert_eq!(count("CPU TracedStateless compute"), 1, "{calls:?}");
    assert_eq!(count("CPU TracedStateless create"), 0, "{calls:?}");
    let results: Vec<_> = lines.iter().filter(|line| line.call.ends_with("compute")).collect();
    let results: Vec<_> = results.iter().map(|line| line.result.as_str()).collect();
    assert_eq!(results, ["OK", "OK", "OK", "UNAVAILABLE: no luck"]);
    assert!(
        calls.iter().all(|call| *call == "TF_InitKernel" || call.contains("Traced")),
        "{calls:?}"
    );
}

#[test]
fn untraceable_programs_are_refused() {
    let refused = |arguments: &[&str]| {
        let ran = python(run(NEWEST, arguments), "print('it ran')");
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
        ran.err
    };
    let missing = scratch().join("none/trace.json");
    let missing = missing.to_str().expect("UTF-8");
    let library = filesystem().to_str().expect("UTF-8");
    let error = refused(&["--library", library, "--trace-chrome", missing]);
    assert!(error.contains("trace.json; is its directory there, and writable?"), "{error}");
    let error = refused(&["--library", missing, "--trace"]);
    assert!(error.contains("cannot find") && error.contains("trace.json"), "{error}");
    let manifest = root().join("Cargo.toml");
    let error = refused(&["--library", manifest.to_str().expect("UTF-8"), "--trace"]);
    assert!(error.contains("Cargo.toml"), "{error}");
    let error = refused(&["--library", library, "--trace=totals", "--trace-file", "x"]);
    assert!(error.contains("`--trace=totals` writes no calls to a file"), "{error}");
}
