//! Tests CUDA on the CPU with `cudarc`: each test in its own process, which finds the libraries.

#[expect(unsafe_code, reason = "functions of CUDA")]
mod abi;
mod cases;

use cases::CASES;
use cpu_cuda::Cuda;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable with the name of a process's case.
const ONE: &str = "CPU_CUDA_CASE";

/// A test, and how its process ends.
struct Case {
    name: &'static str,
    run: fn(),
    fault: Option<&'static str>,
    /// Whether the process ends with success.
    succeeds: bool,
    /// A text that the process writes to stderr.
    says: &'static str,
}

fn run(case: &Case, cuda: &Cuda) -> Result<(), Failed> {
    let mut child = Command::new(std::env::current_exe()?)
        .envs(cuda.environment(case.fault))
        .env(cpu_cuda::MEMORY, "64")
        .env(ONE, case.name)
        .stderr(Stdio::piped())
        .spawn()?;
    let since = Instant::now();
    while child.try_wait()?.is_none() && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // It may have ended already.
    let _ = child.kill();
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() == case.succeeds && errors.contains(case.says) {
        return Ok(());
    }
    let took = since.elapsed();
    Err(format!("{} after {took:?}, expected `{}` in: {errors}", output.status, case.says).into())
}

fn main() {
    if let Ok(name) = std::env::var(ONE) {
        let case = CASES.iter().find(|case| case.name == name).expect("a case");
        return (case.run)();
    }
    let cuda: &Cuda = Box::leak(Box::new(Cuda::new()));
    let trials = CASES.iter().map(|case| Trial::test(case.name, || run(case, cuda)));
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials.collect());
    conclusion.exit();
}
