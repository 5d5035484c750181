//! Tests the GPU on all backends, with the safe traits and the in-process host: on lavapipe, on CUDA on the CPU, and on
//! PoCL. Each test is a process, so that the output of the validation layer is that of the test.

mod addresses;
mod bench;
mod bits;
mod cache;
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "functions of C at the end of a process")]
mod exit;
mod lines;
mod lost;
mod opencl;
mod own;
mod refused;
mod staging;

#[path = "../../benches/device/backend/mod.rs"]
#[expect(unsafe_code, reason = "calls of drivers")]
mod backend;
#[path = "../../benches/device/contestant.rs"]
mod contestant;
#[path = "../../benches/device/plugin.rs"]
mod plugin;
#[path = "../../benches/device/rows/mod.rs"]
mod rows;
#[path = "../../benches/device/sizes.rs"]
mod sizes;
#[path = "../../../../benches/src/stats.rs"]
#[allow(
    unreachable_pub,
    unused_imports,
    reason = "a file of the library of the other benches, with its tests"
)]
mod stats;
#[path = "../../benches/device/table.rs"]
mod table;

use cpu_cuda::Cuda;
use faulty_vulkan::{HAPPENED, Loader};
use gpu::GpuPlatform;
use libtest_mimic::{Arguments, Failed, Trial};
use se_plugin::{Device as _, Platform as _};
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;
use tf_plugin_testing::device::{Case, Outcome, run_case};

/// The variable with the task of a process: the name of a conformance case, or of a case here.
const ONE: &str = "GPU_TEST_CASE";

type Environment = Vec<(&'static str, OsString)>;

/// Runs a process, and returns its output on stderr.
fn process(mut program: Command, what: &str) -> Result<String, Failed> {
    let output = program.env(ONE, what).output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mistakes = lavapipe::mistakes(&stdout);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() && mistakes.is_empty() {
        return Ok(errors);
    }
    Err(format!("{}\n{stdout}{errors}", output.status).into())
}

/// Returns the command for this program.
fn program(environment: Environment) -> std::io::Result<Command> {
    let mut program = Command::new(std::env::current_exe()?);
    program.envs(environment);
    Ok(program)
}

fn run(environment: Environment, what: &str) -> Result<(), Failed> {
    process(program(environment)?, what).map(drop)
}

/// The start of a process's task that opens the GPU, whose name must contain the following text.
const NAMED: &str = "named: ";

/// A case for a driver that lacks the memory that is usually allocated for copies.
const STAGED: (&str, fn()) = ("staged", staging::with_less);

/// Cases for backends that take SPIR-V, or translations.
const NO_SPIRV: (&str, fn()) = ("no_spirv", own::without_spirv);
const MISPLACED: (&str, fn()) = ("push_constants_at_other_places", own::misplaced);

/// A case for a GPU that has matrix units.
const FULL: (&str, fn()) = ("full_tiles", addresses::full);

/// The cases of this test for all GPUs, in addition to the conformance cases.
const OWN: [(&str, fn()); 5] = [
    ("odd_addresses", addresses::odd),
    ("sums_have_the_same_bits", bits::are_the_same),
    ("addresses_outside_of_the_memory", addresses::outside),
    ("large_copies", staging::large),
    ("a_shader_of_the_plugin", own::computes),
];

fn run_one(name: &str) {
    let tasks: [(_, fn(&str)); 4] = [
        (refused::ERROR, refused::fails_with),
        (lost::LOST, lost::lose),
        (bench::PART, bench::run_part),
        (cache::CACHED, cache::run_task),
    ];
    let task = tasks.iter().find_map(|(start, run)| Some((run, name.strip_prefix(start)?)));
    if let Some((run, what)) = task {
        return run(what);
    }
    if let Some(text) = name.strip_prefix(NAMED) {
        let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
        let name = device.hardware_name().expect("a name");
        return assert!(name.contains(text), "{name}");
    }
    if let Some((_, test)) = OWN
        .iter()
        .chain([&STAGED, &FULL, &NO_SPIRV, &MISPLACED, &opencl::FULL])
        .find(|(own, _)| *own == name)
    {
        return test();
    }
    let case = Case::all().iter().find(|case| case.name() == name).expect("a case");
    match run_case::<GpuPlatform>(case, Duration::from_secs(60)) {
        Outcome::Passed => {}
        Outcome::Skipped(why) => println!("skipped: {why}"),
        Outcome::Failed(deviations) => panic!("{deviations:#?}"),
    }
}

fn main() {
    if let Ok(name) = std::env::var(ONE) {
        return run_one(&name);
    }
    let own = || OWN.iter().map(|(name, _)| *name);
    let names = || Case::all().iter().map(|case| case.name()).chain(own());
    // The longest first: what is started last runs beside nothing else.
    let mut trials = bench::trials();
    trials.push(Trial::test("lines::backends_have_few", lines::are_few));
    trials.extend(cache::trials());
    trials.extend(lost::trials());
    for name in names() {
        let test = move || run(lavapipe::environment(), name);
        trials.push(Trial::test(format!("vulkan::{name}"), test));
        let test = move || run(Cuda::new().environment(None), name);
        trials.push(Trial::test(format!("cuda::{name}"), test));
    }
    trials.extend(own().map(|name| {
        let test = move || run(Cuda::with_libraries().environment(None), name);
        Trial::test(format!("nvidias_libraries::{name}"), test)
    }));
    // Code that waits too little for the GPU may work by luck otherwise. Batches of two streams are sent in any order.
    for (name, late) in
        [("late", "late vkQueueSubmit 5"), ("reordered", "late vkEndCommandBuffer 5")]
    {
        trials.extend(names().map(|case| {
            let test = move || run(Loader::new().environment(lavapipe::environment(), late), case);
            Trial::test(format!("{name}_vulkan::{case}"), test)
        }));
    }
    // Without a device all cases would be skipped.
    let named = |text: &str| format!("{NAMED}{text}");
    trials.push(Trial::test("vulkan::there_is_a_device", move || {
        run(lavapipe::environment(), &named(" by Vulkan (llvmpipe Mesa "))
    }));
    for (cuda, libraries) in
        [(Cuda::new as fn() -> _, ""), (Cuda::with_libraries, ", cuBLAS, cuDNN")]
    {
        let test = move || {
            let text = format!(" by CUDA 12.9 (compute capability 9.0{libraries})");
            run(cuda().environment(None), &named(&text))
        };
        trials.push(Trial::test(format!("cuda::there_is_a_device{libraries}"), test));
    }
    trials.push(Trial::test("newest_vulkan::full_tiles", || {
        process(lavapipe::newest::command(&std::env::current_exe()?), FULL.0).map(drop)
    }));
    trials.push(Trial::test("copies_go_on_with_less_staging_memory", || {
        // The first allocation is the device's.
        let loader = Loader::new();
        let environment = loader.environment(lavapipe::environment(), "full vkAllocateMemory 2");
        let errors = process(program(environment)?, STAGED.0)?;
        if errors.contains(HAPPENED) { Ok(()) } else { Err("the driver had all memory".into()) }
    }));
    trials.push(Trial::test("vulkan::no_spirv", || run(lavapipe::environment(), NO_SPIRV.0)));
    trials.push(Trial::test("cuda::push_constants_at_other_places", || {
        run(Cuda::new().environment(None), MISPLACED.0)
    }));
    trials.extend(refused::trials());
    trials.extend(opencl::trials());
    let mut arguments = Arguments::from_args();
    // Most of a test waits, and libtest_mimic does not read the variable.
    let threads = std::env::var("RUST_TEST_THREADS").ok().and_then(|number| number.parse().ok());
    arguments.test_threads = arguments.test_threads.or(threads);
    libtest_mimic::run(&arguments, trials).exit();
}
