//! What `bench` measures and prints, and that it leaves no files. Times are only checked for plausibility.

use crate::output::{self, assert_all, names, root, wait_until};
use crate::program;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::plugins::{compile, source};
use cargo_tf_plugin::NEWEST;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = program::interruptible();
    command.current_dir(root()).args(["tf-plugin", "bench"]).args(arguments);
    for name in ["FAULT", "LOCALFS_ROOT", "VIRTUAL_ENV"] {
        command.env_remove(name);
    }
    command
}

/// Runs a command that exits with `code`, and returns standard output and error.
#[track_caller]
fn run(command: &mut Command, code: i32) -> [String; 2] {
    let ran = output::ran(command);
    assert_eq!(ran.code, Some(code), "{command:?}\n{}\n{}", ran.out, ran.err);
    [ran.out, ran.err]
}

/// Runs a command, and returns its report in JSON.
#[track_caller]
fn json(command: &mut Command, code: i32) -> Value {
    let [out, err] = run(command.arg("--json"), code);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}\n{err}"))
}

/// Returns the rows of a part with their names, in order, and checks each.
#[track_caller]
fn rows<'r>(report: &'r Value, subject: &str, through: &str) -> Vec<(&'r str, &'r Value)> {
    let parts = report["parts"].as_array().expect("parts");
    let part = parts.iter().find(|part| part["subject"] == subject && part["through"] == through);
    let part = part.unwrap_or_else(|| panic!("no {subject} through {through} in {report:#}"));
    let rows = part["rows"].as_array().expect("rows").iter();
    let rows: Vec<_> = rows.map(|row| (row["name"].as_str().expect("a name"), row)).collect();
    for (name, row) in &rows {
        if row["result"] != "measured" {
            assert!(row["why"].as_str().is_some_and(|why| !why.is_empty()), "{name}: {row}");
            continue;
        }
        let sides = [&row["timing"], &row["reference"]].into_iter().filter(|side| !side.is_null());
        assert_eq!(sides.clone().count(), if through == "the C table" { 1 } else { 2 }, "{row}");
        for side in sides {
            let number =
                |name: &str| side[name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"));
            let [min, median, p90] = ["min_ns", "median_ns", "p90_ns"].map(number);
            assert!(0.0 < min && min <= median && median <= p90 && p90 < 6e10, "{name}: {row}");
            assert!(
                1.0 <= number("samples") && number("samples") <= number("calls"),
                "{name}: {row}"
            );
        }
    }
    rows
}

/// Returns the names of the rows with this result.
fn with_result<'r>(rows: &[(&'r str, &Value)], result: &str) -> Vec<&'r str> {
    let rows = rows.iter().filter(|(_, row)| row["result"] == result);
    rows.map(|(name, _)| *name).collect()
}

/// Builds the C++ plugin whose operations can misbehave.
fn flat() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compile(&source("flat.cc"), &[], "libflat.so", &[]))
}

#[test]
fn a_filesystem_is_measured_through_its_tables_and_in_tensorflow() {
    let scratch = tempfile::tempdir().expect("a directory");
    let [html, save] = ["report.html", "report.json"].map(|name| scratch.path().join(name));
    let mut measuring = command(&["memfs", "--tf", NEWEST, "--seconds", "0.002"]);
    let report = json(measuring.arg("--html").arg(&html).arg("--save").arg(&save), 0);
    assert_eq!(report["format"], 1);
    // As in `2026-11-21T14:00:00Z`.
    let date = report["date"].as_str().expect("a date");
    assert!(date.len() == 20 && date.starts_with("20") && date.ends_with('Z'), "{date}");
    assert_eq!(report["plugin"]["sha256"].as_str().map(str::len), Some(64));
    let machine = &report["machine"];
    assert!(["cores", "memory"].iter().all(|one| machine[one].as_u64() > Some(0)), "{machine}");
    assert!(machine["cpu"].as_str().is_some_and(|cpu| !cpu.is_empty()), "{machine}");

    let tables = rows(&report, "mem://", "the C table");
    let absent = ["get_file_size", "is_directory, of a directory", "map 16 MiB as a memory region"];
    assert_eq!(with_result(&tables, "absent"), absent);
    assert_eq!(with_result(&tables, "measured").len(), 30, "{tables:#?}");
    assert_eq!(tables.len(), 33, "something has failed: {tables:#?}");
    let through = format!("TensorFlow {NEWEST}");
    let in_tensorflow = rows(&report, "mem://", &through);
    assert_eq!(with_result(&in_tensorflow, "measured").len(), 20, "{in_tensorflow:#?}");
    assert_eq!(in_tensorflow.len(), 20, "{in_tensorflow:#?}");
    let names = || tables.iter().chain(&in_tensorflow).map(|(name, _)| *name);

    let saved: Value = serde_json::from_slice(&fs::read(&save).expect("saved")).expect("JSON");
    assert_eq!(saved, report);
    let page = fs::read_to_string(&html).expect("written");
    for name in names() {
        assert!(page.contains(&format!("<td>{name}</td>")), "{name} is missing in {page}");
    }
    assert!(page.contains("<h2>mem:// through the C table</h2>"), "{page}");
    assert!(page.contains(&format!("<h2>mem:// through {through}</h2>")), "{page}");
    // The bars of both sides of each row.
    let bars = |class: &str| page.matches(&format!("<rect class=\"{class}\"")).count();
    assert_eq!([bars("bar"), bars("other")], [30 + 20, 20]);

    // The documentation shows what is printed, except for the times.
    let documentation = fs::read_to_string(root().join("docs/performance.md")).expect("the page");
    for name in names() {
        assert!(
            documentation.contains(&format!("\n    {name}  ")),
            "{name} is missing in the documentation"
        );
    }

    // Later only some rows, compared with the saved report.
    let mut again = command(&["memfs", "--no-tf", "--seconds", "0.002", "--filter", "Read 4"]);
    let [out, _] = run(again.arg("--baseline").arg(&save), 0);
    let lines: Vec<&str> = out
        .lines()
        .filter(|line| line.contains(" anywhere") || line.contains("in order"))
        .collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(lines.iter().all(|line| line.ends_with('×')), "no comparison in {out}");
    assert!(out.contains("baseline"), "{out}");
    assert!(!out.contains("stat") && !out.contains('\x1b'), "{out}");
}

#[test]
fn a_device_is_measured_through_its_callbacks_and_in_tensorflow() {
    let report = json(&mut command(&["refdevice", "--tf", NEWEST, "--seconds", "0.002"]), 0);
    let subject = "/device:RUST_REF:0";
    let tables = rows(&report, subject, "the C table");
    assert_eq!(with_result(&tables, "measured").len(), tables.len(), "{tables:#?}");
    assert_eq!(tables.len(), 47, "{tables:#?}");
    for name in ["memcpy_htod", "memcpy_dtoh", "memcpy_dtod", "mem_zero"] {
        let alone = format!("{name} 4 KiB, then block_host_until_done");
        assert!(tables.iter().any(|(found, _)| *found == alone), "{alone}: {tables:#?}");
    }
    let in_tensorflow = rows(&report, subject, &format!("TensorFlow {NEWEST}"));
    assert_eq!(with_result(&in_tensorflow, "measured").len(), 9, "{in_tensorflow:#?}");
    let bytes =
        |name: &str| tables.iter().find(|(found, _)| *found == name).map(|(_, row)| &row["bytes"]);
    assert_eq!(bytes("memcpy_dtoh 4 MiB"), Some(&Value::from(4 << 20)));
    assert_eq!(bytes("create_stream_dependency"), Some(&Value::Null));
}

#[test]
fn an_installed_plugin_is_measured_or_refused() {
    let overlay = program::environment(&[]);
    let venv = overlay.python().parent().and_then(Path::parent).expect("an environment");
    for (package, has) in [("memfs", "mem://"), ("refdevice", "/device:RUST_REF:0")] {
        let built = program::plugin(package);
        let installed = overlay.plugins().join(format!("lib{package}-installed.so"));
        fs::copy(built, &installed).expect("copied");
        let measuring = |plugin: &str| {
            let mut command = command(&[plugin, "--seconds", "0.002", "--filter", "4 KiB", "--tf"]);
            command.arg(venv);
            command
        };
        let [_, err] = run(&mut measuring(package), 1);
        let installed = fs::canonicalize(&installed).expect("a path");
        let installed = installed.to_str().expect("UTF-8");
        let why = format!("{installed} is installed in TensorFlow {NEWEST}, and has {has}, too");
        let instead = format!("`cargo tf-plugin bench {installed}`");
        assert_all(&err, &[&why, "Take it away (`pip uninstall`", &instead]);
        for command in [&["test"][..], &["run", "--", "true"]] {
            let mut tool = program::tool();
            tool.current_dir(root()).args([command[0], "--package", package, "--tf"]).arg(venv);
            assert!(run(tool.args(&command[1..]), 1)[1].contains(&why), "{command:?}");
        }
        // The installed file itself is loaded once, from its place.
        let report = json(&mut measuring(installed), 0);
        let measured = rows(&report, has, &format!("TensorFlow {NEWEST}"));
        assert!(!with_result(&measured, "measured").is_empty(), "{measured:#?}");
    }
}

/// A process that does not notice is ended after a minute.
const SOON: Duration = Duration::from_secs(40);

#[test]
fn nothing_is_left_where_files_stay_and_nothing_else_is_touched() {
    let library = program::plugin("localfs");
    let directory = tempfile::tempdir().expect("a directory");
    let own = directory.path().join("own");
    let content = "mine".repeat(1 << 19);
    fs::write(&own, &content).expect("written");
    let temporary = tempfile::tempdir().expect("a directory");
    let uri = format!("local://{}", directory.path().display());
    let untouched = |when: &str| {
        assert_eq!(names(directory.path()), ["own"], "{when}");
        assert!(fs::read_to_string(&own).expect("it is there") == content, "{when}");
        assert!(names(temporary.path()).is_empty(), "{when}: {:?}", names(temporary.path()));
    };
    let command = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.arg(&library).env("TMPDIR", temporary.path());
        command
    };

    let quick = ["--root", &uri, "--no-tf", "--seconds", "0.001"];
    let report = json(&mut command(&quick), 0);
    assert!(with_result(&rows(&report, "local://", "the C table"), "failed").is_empty());
    let map = rows(&report, "local://", "the C table");
    assert!(with_result(&map, "measured").contains(&"map 16 MiB as a memory region"), "{map:#?}");
    untouched("after a run");
    let quick = ["--root", &uri, "--tf", NEWEST, "--seconds", "0.001", "--filter", "tf.io"];
    let report = json(&mut command(&quick), 0);
    let in_tensorflow = rows(&report, "local://", &format!("TensorFlow {NEWEST}"));
    assert_eq!(with_result(&in_tensorflow, "measured").len(), 3, "{in_tensorflow:#?}");
    untouched("after a run in TensorFlow");

    // Without `--root` and hosts it uses the temporary directory.
    let report = json(&mut command(&["--no-tf", "--seconds", "0.001", "--filter", "stat"]), 0);
    assert_eq!(
        with_result(&rows(&report, "local://", "the C table"), "measured"),
        ["stat, of a file"]
    );
    untouched("after a run in the temporary directory");

    // For a filesystem that cannot write, `--file` names an existing file.
    let file = format!("{uri}/own");
    let report = json(&mut command(&["--file", &file, "--tf", NEWEST, "--seconds", "0.001"]), 0);
    let tables = rows(&report, "local://", "the C table");
    assert_eq!(with_result(&tables, "absent"), ["map 16 MiB as a memory region"], "{tables:#?}");
    assert_eq!(with_result(&tables, "measured").len(), 15, "{tables:#?}");
    let in_tensorflow = rows(&report, "local://", &format!("TensorFlow {NEWEST}"));
    assert_eq!(with_result(&in_tensorflow, "measured").len(), 7, "{in_tensorflow:#?}");
    assert_eq!((tables.len(), in_tensorflow.len()), (16, 7));
    untouched("after a run with a file");

    // A long run that is ended in the middle: by Ctrl-C, then by a signal that it cannot handle.
    let begin = |through: &[&str], file: &str| {
        let mut command = command(&["--root", &uri, "--seconds", "1000", "--timeout", "2000"]);
        command.args(through).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("the command runs");
        wait_until("it makes no file to measure with", || {
            let made = names(directory.path());
            made.iter().any(|name| directory.path().join(name).join(file).exists())
        });
        child
    };
    let end = |child: &mut Child, signal| {
        kill_process(Pid::from_child(child), signal).expect("it runs");
        child.wait().expect("it ends")
    };
    let table = ["--no-tf", "--filter", "stat"];
    // Only TensorFlow's rows have this in their names.
    let in_tensorflow = ["--tf", NEWEST, "--filter", "gfile.stat"];
    for (through, file) in [(&table[..], "file-1"), (&in_tensorflow, "file-4096")] {
        let mut child = begin(through, file);
        let start = Instant::now();
        let status = end(&mut child, Signal::INT);
        assert!(start.elapsed() < SOON, "it had to be ended");
        let printed = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let printed: Vec<String> = printed.map_while(Result::ok).collect();
        assert_eq!(status.code(), Some(130), "{printed:?}");
        assert!(
            printed.iter().any(|line| line == "interrupted; nothing is left behind"),
            "{printed:?}"
        );
        untouched("after Ctrl-C");
    }

    end(&mut begin(&table, "file-1"), Signal::KILL);
    wait_until("what was made is left", || names(directory.path()) == ["own"]);
    // A killed command cannot remove its scratch directory.
    for name in names(temporary.path()) {
        fs::remove_dir_all(temporary.path().join(name)).expect("removed");
    }
    untouched("after it was killed");
}

#[test]
fn a_failure_is_in_its_row_and_other_rows_continue() {
    let flat = flat().to_str().expect("a path");
    let measure = |fault: &str, timeout: &str| {
        let arguments = [flat, "--no-tf", "--seconds", "0.001", "--timeout", timeout];
        let mut command = command(&arguments);
        json(command.env("FAULT", fault), i32::from(!fault.is_empty()))
    };
    let sound = measure("", "60");
    let sound = rows(&sound, "flat://", "the C table");
    assert!(with_result(&sound, "failed").is_empty(), "{sound:#?}");
    let why = |rows: &[(&str, &Value)], name: &str| {
        let row = rows.iter().find(|(found, _)| *found == name).expect(name);
        row.1["why"].as_str().unwrap_or_default().to_owned()
    };
    for (name, wanted) in [
        ("sync, after 100 B", "not implemented: TensorFlow calls flush"),
        ("create_dir", "not implemented: TensorFlow returns UNIMPLEMENTED"),
        ("rename_file", "not implemented: TensorFlow copies the file, then deletes the source"),
    ] {
        assert_eq!(why(&sound, name), wanted);
    }

    for (fault, timeout, failed, wanted) in [
        (
            "path_exists:error",
            "60",
            &["path_exists, of a file", "path_exists, of nothing"][..],
            "DATA_LOSS: the fault that was requested",
        ),
        (
            "new_random_access_file:crash",
            "60",
            &["open and close"],
            "the process was killed by SIGABRT",
        ),
        (
            "get_children:hang",
            "1",
            &["get_children of 1,000"],
            "the process was ended after 1 s without an answer",
        ),
    ] {
        let report = measure(fault, timeout);
        let found = rows(&report, "flat://", "the C table");
        let names = |rows: &[(&str, &Value)]| {
            rows.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&found), names(&sound), "{fault}: rows are missing");
        let all = with_result(&found, "failed");
        for name in failed {
            assert!(all.contains(name), "{fault}: {name} has not failed: {found:#?}");
            assert_eq!(why(&found, name), wanted, "{fault}");
        }
        // A file that cannot be opened cannot be read either.
        let others = if fault.starts_with("new_") { 8 } else { 0 };
        assert_eq!(all.len(), failed.len() + others, "{fault}: {all:?}");
    }

    // If a plugin has both, the device is measured although the filesystem writes no files.
    let arguments = ["bothfs", "--no-tf", "--seconds", "0.001", "--filter", "create_event"];
    let [out, err] = run(&mut command(&arguments), 1);
    assert!(out.contains("/device:RUST_TEST:0 through the C table"), "{out}");
    assert!(out.contains("create_event and destroy_event") && !out.contains("both://"), "{out}");
    assert!(err.contains("both:// through the C table cannot be measured"), "{err}");
    assert!(err.contains("`--file URI`"), "{err}");

    // The text report ends with the number of failures.
    let arguments = [flat, "--no-tf", "--seconds", "0.001", "--filter", "path_exists"];
    let [out, err] = run(command(&arguments).env("FAULT", "path_exists:error"), 1);
    let line =
        out.lines().find(|line| line.trim().starts_with("path_exists, of a file")).expect("a row");
    assert!(line.ends_with("failed: DATA_LOSS: the fault that was requested"), "{line}");
    assert!(err.contains("2 operations have failed"), "{err}");
}

#[test]
fn bad_input_is_refused_with_the_next_step() {
    let flat = flat().to_str().expect("a path");
    let empty = tempfile::tempdir().expect("a directory");
    let nothing = empty.path().join("nothing");
    let nothing = nothing.to_str().expect("a path");
    let directory = empty.path().to_str().expect("a path");
    let text = empty.path().join("text.so");
    fs::write(&text, "no library").expect("written");
    let text = text.to_str().expect("a path");
    let below = format!("{nothing}/report.html");
    let missing = format!("local://{nothing}");
    let localfs = program::plugin("localfs");
    let localfs = localfs.to_str().expect("a path");
    for (arguments, fault, wanted) in [
        (&[text][..], "", &["text.so is not a shared library", "name the `.so` of a plugin"][..]),
        (&[nothing], "", &["does not exist", "build the plugin first"]),
        (&[flat, "--root", "scratch"], "", &["`scratch` is not a URI", "flat://"]),
        (&[flat, "--root", "other://x"], "", &["serves no other://", "it has flat://"]),
        (&[flat], "init:error", &["`init of flat://` returns DATA_LOSS", "cargo tf-plugin check"]),
        (
            &[flat],
            "new_writable_file:error",
            &["no directory can be made and written to", "DATA_LOSS", "--root flat://"],
        ),
        (&[flat, "--filter", "nonsense"], "", &["no operation has `nonsense` in its name"]),
        (&[flat, "--html", &below], "", &["the directory", "does not exist; create it"]),
        (&[flat, "--save", directory], "", &["is a directory; name a file to write"]),
        // This file has no end.
        (&[flat, "--baseline", "/dev/zero"], "", &["is not a report of this version"]),
        (&[flat, "--baseline", text], "", &["is not a report of this version", "bench --save"]),
        (
            &[localfs, "--root", &missing],
            "",
            &["no directory can be made", "NOT_FOUND", "--root local://"],
        ),
    ] {
        let arguments = [arguments, &["--no-tf", "--seconds", "0.001"]].concat();
        let [out, err] = run(command(&arguments).env("FAULT", fault), 1);
        for words in wanted {
            assert!(err.contains(words), "`{words}` is missing for {arguments:?}:\n{out}\n{err}");
        }
        assert!(out.is_empty(), "{arguments:?}: {out}");
    }
    let [_, err] = run(command(&[flat, "--tf", nothing]).current_dir(empty.path()), 1);
    assert!(err.contains("nothing"), "{err}");
    // No TensorFlow is downloaded for a file that is not a plugin.
    let [_, err] = run(&mut command(&[text, "--tf", nothing]), 1);
    assert!(err.contains("text.so is not a shared library"), "{err}");
    // The results are shown, even if they cannot be saved.
    let measured = [flat, "--no-tf", "--seconds", "0.001", "--filter", "translate"];
    let [out, err] = run(&mut command(&[&measured[..], &["--save", "/dev/full"]].concat()), 1);
    assert!(out.contains("translate_name"), "{out}\n{err}");
    assert!(err.contains("cannot write /dev/full; check free space"), "{err}");
    // All other errors are reported, even if the results cannot be shown.
    let full = fs::File::create("/dev/full").expect("it is there");
    let mut unread = command(&[&measured[..], &["--save", "/dev/full"]].concat());
    let [_, err] = run(unread.stdout(full), 1);
    assert_all(
        &err,
        &["cannot write /dev/full; check free space", "cannot write to standard output"],
    );
    let [_, err] = run(&mut command(&["--seconds", "0"]), 2);
    assert!(err.contains("write a number from 0.001 to 3600"), "{err}");
    assert_eq!(names(empty.path()), ["text.so"], "something is left");
}
