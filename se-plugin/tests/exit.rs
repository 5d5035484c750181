//! The end of a process in which a driver computes.
#![cfg(target_env = "gnu")]
#![expect(unsafe_code, reason = "functions of C at the end of a process")]

use se_plugin::driver::{exit_at_once_if, exit_before_others};
use std::process::{Command, Output};

/// What a process is told to do.
const CASE: &str = "EXIT_CASE";

extern "C" fn registered() {
    // SAFETY: a string that ends in zero.
    unsafe { libc::puts(c"registered".as_ptr()) };
}

fn register() {
    // SAFETY: the function takes nothing, and lives as long as the process.
    assert_eq!(unsafe { libc::atexit(registered) }, 0);
}

/// The other process; without [`CASE`] it does nothing.
#[test]
fn process() {
    let Ok(case) = std::env::var(CASE) else { return };
    if !case.contains("late") {
        register();
    }
    exit_at_once_if(|| false);
    let is_busy = case.contains("busy");
    let panics = case.contains("panic");
    exit_at_once_if(move || if panics { panic!("on purpose") } else { is_busy });
    if case.contains("late") {
        register();
    }
    if case.contains("again") {
        exit_before_others();
    }
    // SAFETY: a string that ends in zero; the stream of C keeps it in a buffer.
    unsafe { libc::puts(c"buffered".as_ptr()) };
    if case.contains("fork") {
        // SAFETY: the child only ends.
        let child = unsafe { libc::fork() };
        if child != 0 {
            let mut status = 0;
            // SAFETY: the child of this process, and where its status goes.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            // SAFETY: nothing is needed any more, and the child has written what is in the buffer.
            unsafe { libc::_exit(libc::WEXITSTATUS(status)) };
        }
    }
    std::process::exit(7);
}

fn end(case: &str) -> String {
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    let program = program.args(["--exact", "process", "--nocapture"]).env(CASE, case);
    let Output { status, stdout, .. } = program.output().expect("a process");
    assert_eq!(status.code(), Some(7), "{case}: {status}");
    let stdout = String::from_utf8(stdout).expect("text");
    assert!(stdout.contains("buffered"), "{case}: {stdout}");
    stdout
}

#[test]
fn a_busy_process_ends_at_once_and_another_one_as_ever() {
    for case in ["busy", "busy late again"] {
        assert!(!end(case).contains("registered"), "{case}");
    }
    for case in ["idle", "panic", "busy fork", "busy late"] {
        assert!(end(case).contains("registered"), "{case}");
    }
}
