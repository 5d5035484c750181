//! Child processes: a test runs itself again, alone in a process of its own.

use crate::Store;
use std::process::{Command, Stdio};

const ROLE: &str = "TF_PLUGIN_S3_TEST_ROLE";

/// What the child is to do; `None` in the test itself.
#[must_use]
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// The name of the test in which this stands, as its program knows it.
#[macro_export]
macro_rules! this_test {
    () => {{
        fn here() {}
        $crate::child::name_of(here)
    }};
}

#[doc(hidden)]
#[must_use]
pub fn name_of<T>(_: T) -> &'static str {
    let path = std::any::type_name::<T>();
    let (_, name) = path.split_once("::").expect("the program's name");
    let name = name.strip_suffix("::here").expect("the name of the macro's function");
    name.split("::{{closure}}").next().unwrap_or(name)
}

/// The command that runs the test of this name again, with `role` and an environment in which nothing but `store` can
/// be reached.
///
/// # Panics
/// If this program does not know its own path.
#[must_use]
pub fn again(test: &str, role: &str, store: &Store) -> Command {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env_clear()
        .envs(store.environment())
        .env(ROLE, role)
        .env("RUST_BACKTRACE", "1")
        // No profile of the person who runs the tests.
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// Runs `body` in a process of its own, in which the test of this name is the only one.
///
/// # Panics
/// If it fails there.
pub fn alone(test: &str, body: impl FnOnce()) {
    if role().is_some() {
        return body();
    }
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env_clear()
        .env(ROLE, "alone")
        .env("RUST_BACKTRACE", "1")
        .env("HOME", "/nonexistent")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .stdin(Stdio::null())
        .output()
        .expect("a child process");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success() && text(&output.stdout).contains("1 passed"),
        "{test}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}
