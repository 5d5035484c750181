//! How often the cases open a platform, and what they say if the process ends.

use se_plugin::host::{HostDevice, HostMemory};
use se_plugin::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tf_plugin_testing::device::{Outcome, Suite, cases, run_case};

static OPENED: AtomicUsize = AtomicUsize::new(0);
static OPENS: AtomicUsize = AtomicUsize::new(0);

/// The way in which a device ends the process, in a child that has this variable.
const ENDS: &str = "CONFORMANCE_TEST_ENDS";

/// A driver that cannot be opened by two threads at once, and may end the process.
struct Fragile;

impl Platform for Fragile {
    const NAME: &'static str = "FRAGILE";
    const TYPE: &'static str = "FRAGILE";
    type Device = HostDevice;

    fn new() -> Result<Self> {
        assert_eq!(OPENS.fetch_add(1, Ordering::SeqCst), 0, "two threads open the driver");
        std::thread::sleep(Duration::from_millis(5));
        OPENS.fetch_sub(1, Ordering::SeqCst);
        OPENED.fetch_add(1, Ordering::SeqCst);
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }
    fn open(&self, _ordinal: usize) -> Result<HostDevice> {
        match std::env::var(ENDS).as_deref() {
            Ok("abort") => std::process::abort(),
            Ok("exit") => std::process::exit(3),
            Ok("overflow") => println!("{}", without_end(0)),
            _ => {}
        }
        Ok(HostDevice::new(HostMemory::new(64 << 20)?))
    }
}

#[expect(unconditional_recursion, reason = "it overflows the stack")]
fn without_end(depth: u64) -> u64 {
    std::hint::black_box([depth; 64]).iter().sum::<u64>() + without_end(depth + 1)
}

#[test]
fn a_platform_is_opened_once_by_one_thread() {
    let suite = Suite::new::<Fragile>();
    let all = [
        &cases::every_callback,
        &cases::device_count_is_the_same,
        &cases::all_devices_open,
        &cases::devices_open_again,
        &cases::many_streams,
        &cases::figures,
    ];
    std::thread::scope(|scope| all.map(|case| scope.spawn(|| suite.test(case))).map(drop));
    assert_eq!(OPENED.load(Ordering::SeqCst), 1);
    // These are new hosts, but not at once.
    let run = || run_case::<Fragile>(&cases::figures, Duration::from_secs(10));
    let verdicts = std::thread::scope(|scope| {
        [scope.spawn(run), scope.spawn(run)].map(|thread| thread.join().expect("a outcome"))
    });
    assert_eq!(verdicts, [Outcome::Passed, Outcome::Passed]);
    assert_eq!(OPENED.load(Ordering::SeqCst), 3);
}

#[test]
fn the_case_that_ends_the_process_is_named() {
    if std::env::var_os(ENDS).is_some() {
        let _ = run_case::<Fragile>(&cases::many_streams, Duration::from_secs(10));
        return;
    }
    for (end, expected) in [
        ("abort", "SIGABRT ends"),
        ("exit", "a call of `exit` ends"),
        // The standard library handles it, and aborts.
        ("overflow", "SIGSEGV ends"),
    ] {
        let child = std::process::Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "device_processes::the_case_that_ends_the_process_is_named"])
            .env(ENDS, end)
            .output()
            .expect("a child");
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(!child.status.success(), "{end}: {}", child.status);
        let expected = format!("{expected} the process while this case runs: many_streams\n");
        assert!(said.contains(&expected), "{end}: {said}");
        assert_eq!(end == "overflow", said.contains("has overflowed its stack"), "{end}: {said}");
    }
}
