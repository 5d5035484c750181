//! The device conformance cases on both backends, each a test: on lavapipe, and on CUDA on the processor.

use cpu_cuda::Cuda;
use faulty_vulkan::Loader;
use gpu::GpuPlatform;
use libtest_mimic::{Arguments, Trial};
use se_plugin::Platform as _;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;
use tf_plugin_testing::device::{Case, Verdict, run_case};

/// The case that a process is to run, or [`OPEN`].
const ONE: &str = "GPU_CONFORMANCE_CASE";
/// Without a device all cases would be skipped.
const OPEN: &str = "there_is_a_device";

/// In a process of its own, so that what the validation layer writes is that of this case.
fn run(
    environment: impl IntoIterator<Item = (&'static str, OsString)>,
    case: &str,
) -> Result<(), libtest_mimic::Failed> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).envs(environment).env(ONE, case).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mistakes = lavapipe::mistakes(&said);
    if output.status.success() && mistakes.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

fn run_one(name: &str) {
    if name == OPEN {
        GpuPlatform::new().expect("a device");
        return;
    }
    let case = Case::all().iter().find(|case| case.name() == name).expect("a case");
    match run_case::<GpuPlatform>(case, Duration::from_secs(60)) {
        Verdict::Passed => {}
        Verdict::Skipped(why) => println!("skipped: {why}"),
        Verdict::Failed(deviations) => panic!("{deviations:#?}"),
    }
}

fn main() {
    if let Ok(name) = std::env::var(ONE) {
        return run_one(&name);
    }
    let names = || Case::all().iter().map(|case| case.name()).chain([OPEN]);
    let mut trials: Vec<_> = names()
        .map(|name| {
            let test = move || run(lavapipe::environment(), name);
            Trial::test(format!("vulkan::{name}"), test)
        })
        .collect();
    trials.extend(names().map(|name| {
        let test = move || run(Cuda::new().environment(None), name);
        Trial::test(format!("cuda::{name}"), test)
    }));
    // What waits for the card too little has luck otherwise; and batches of two streams are sent in either order.
    for (name, late) in
        [("late", "late vkQueueSubmit 5"), ("reordered", "late vkEndCommandBuffer 5")]
    {
        trials.extend(names().map(|case| {
            let test = move || run(Loader::new().environment(lavapipe::environment(), late), case);
            Trial::test(format!("{name}_vulkan::{case}"), test)
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
