//! `check` of plugins that end their process, or that hang.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::check::{check, command, filesystem};
use crate::output::{assert_says, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_plugin_that_ends_its_process_is_a_finding() {
    for (fault, words) in [
        ("crashes", "SIGSEGV in TF_InitPlugin"),
        ("init-crashes", "SIGSEGV in init of plain://"),
        ("aborts", "SIGABRT in TF_InitPlugin"),
        ("exits", "status 3 in TF_InitPlugin"),
        ("floods", "has written 64 MiB to its output in TF_InitPlugin, and was ended"),
        ("talks", "What the plugin has said | no such server"),
    ] {
        assert_says(&check(filesystem(), fault, 1), words);
    }
}

#[test]
fn a_plugin_that_hangs_is_ended_with_what_it_has_started() {
    for fault in ["hangs", "hangs-with-a-child"] {
        let start = Instant::now();
        let mut command = command();
        let plugin = command.arg(filesystem()).args(["--timeout", "1"]).env("FAULT", fault);
        let (code, text) = run(plugin);
        assert_eq!(code, 1, "{fault}: {text}");
        assert_says(&text, "has not come back from TF_InitPlugin within 1 s");
        assert!(start.elapsed() < Duration::from_secs(15), "{fault}: {:?}", start.elapsed());
    }
    // The same if the command is ended while it waits. Killed processes take a moment to disappear.
    wait_until("a process is left", || left_of(filesystem()) == 0);
    let scratch = tempfile::tempdir().expect("a directory");
    let mut command = command();
    let waiting = command.arg(filesystem()).env("FAULT", "hangs-with-a-child");
    let waiting = waiting.env("TMPDIR", scratch.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut waiting = waiting.spawn().expect("it runs");
    wait_until("it loads nothing", || left_of(filesystem()) > 0);
    kill_process(Pid::from_child(&waiting), Signal::INT).expect("it runs");
    assert_eq!(waiting.wait().expect("it ends").signal(), Some(Signal::INT.as_raw()));
    wait_until("a process is left", || left_of(filesystem()) == 0);
    assert_eq!(fs::read_dir(scratch.path()).expect("a directory").count(), 0, "a file is left");
    // A signal that the parent has set to be ignored does not end it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec \"$0\" tf-plugin check \"$1\" --timeout 3"]);
    shell.arg(env!("CARGO_BIN_EXE_cargo-tf-plugin")).arg(filesystem()).env("FAULT", "hangs");
    let mut waiting = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    wait_until("it loads nothing", || left_of(filesystem()) > 0);
    kill_process(Pid::from_child(&waiting), Signal::INT).expect("it runs");
    assert_eq!(waiting.wait().expect("it ends").code(), Some(1));
}

/// Returns how many processes are loading a plugin that hangs.
fn left_of(plugin: &Path) -> usize {
    let has = |process: &Path, file: &str, wanted: &dyn Fn(&[u8]) -> bool| {
        let values = fs::read(process.join(file)).unwrap_or_default();
        values.split(|byte| *byte == 0).any(wanted)
    };
    let processes = fs::read_dir("/proc").expect("/proc").flatten().map(|process| process.path());
    let left = processes.filter(|process| {
        has(process, "cmdline", &|argument| argument == b"__load-plugin")
            && has(process, "cmdline", &|argument| {
                argument == plugin.as_os_str().as_encoded_bytes()
            })
            && has(process, "environ", &|value| value.starts_with(b"FAULT=hangs"))
    });
    left.count()
}
