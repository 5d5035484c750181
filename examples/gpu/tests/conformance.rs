//! The device conformance cases on lavapipe, each a test: see `cargo test -p gpu --test conformance -- --help`.

use gpu::GpuPlatform;
use libtest_mimic::{Arguments, Trial};
use se_plugin::Platform as _;
use std::process::Command;
use std::time::Duration;
use tf_plugin_testing::device::{Case, Verdict, run_case};

/// In a process of its own, so that what the validation layer writes is that of this case.
fn run(case: &'static Case) -> Result<(), libtest_mimic::Failed> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).env(ONE, case.name()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mistakes = lavapipe::mistakes(&said);
    if output.status.success() && mistakes.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// The case that a process is to run.
const ONE: &str = "GPU_CONFORMANCE_CASE";

fn main() {
    lavapipe::require();
    if let Ok(name) = std::env::var(ONE) {
        let case = Case::all().iter().find(|case| case.name() == name).expect("a case");
        match run_case::<GpuPlatform>(case, Duration::from_secs(60)) {
            Verdict::Passed => {}
            Verdict::Skipped(why) => println!("skipped: {why}"),
            Verdict::Failed(deviations) => panic!("{deviations:#?}"),
        }
        return;
    }
    // Without a device all cases would be skipped.
    GpuPlatform::new().expect("lavapipe is a device");
    let trials = Case::all().iter().map(|case| Trial::test(case.name(), || run(case)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
