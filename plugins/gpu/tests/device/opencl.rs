//! Tests the GPU on OpenCL, on PoCL: what the other backends pass, drivers that cannot be used, faults and the cache of programs.

use crate::cache::{self, CACHED};
use crate::{ONE, OWN, lost, program, refused, run};
use faulty_opencl::{HAPPENED, Loader};
use gpu::GpuPlatform;
use libtest_mimic::{Failed, Trial};
use se_plugin::{Code, Device as _, Platform as _};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use tf_plugin_testing::device::Case;

type Environment = Vec<(&'static str, OsString)>;

/// A case for a driver that has no memory once.
pub(crate) const FULL: (&str, fn()) = ("opencl_full", full);

/// Returns PoCL's environment with another value of a variable.
fn with(name: &'static str, value: impl Into<OsString>) -> Environment {
    let mut environment = pocl::environment();
    environment.retain(|(known, _)| *known != name);
    environment.push((name, value.into()));
    environment
}

/// The properties that devices lack in a test: their numbers in OpenCL, other values, and parts of the errors.
const LACKS: [(u32, u64, &str); 7] = [
    (0x1027, 0, "it is not available"),
    (0x1028, 0, "its driver has no compiler"),
    (0x1053, 0, "its driver has no shared virtual memory"),
    (0x100D, 32, "its addresses have fewer than 64 bits"),
    (0x1026, 0, "it is big-endian"),
    (0x1004, 128, "its work-groups are too small"),
    (0x1023, 8 << 10, "it has too little local memory"),
];

fn refusals() -> Vec<Trial> {
    let refused = |name: &str, environment: fn() -> Environment, error: &'static str| {
        let test = move || run(environment(), &format!("{}{error}", refused::ERROR));
        Trial::test(format!("opencl_refused::{name}"), test)
    };
    let mut trials: Vec<_> = LACKS
        .map(|(property, value, error)| {
            let test = move || {
                let fault = format!("lacks {property} {value}");
                let environment = Loader::new().environment(pocl::environment(), &fault);
                run(environment, &format!("{}`pthread", refused::ERROR))?;
                let environment = Loader::new().environment(pocl::environment(), &fault);
                run(environment, &format!("{}{error}", refused::ERROR))
            };
            Trial::test(format!("opencl_refused::{error}"), test)
        })
        .into();
    trials.extend([
        refused(
            "software_that_is_not_named",
            || with("RUST_GPU_DEVICE_NAME", ""),
            "it is software; RUST_GPU_DEVICE_NAME can name it",
        ),
        refused(
            "another_name",
            || with("RUST_GPU_DEVICE_NAME", "arc"),
            "RUST_GPU_DEVICE_NAME is `arc`, and no GPU can be used by OpenCL: `pthread",
        ),
        refused(
            "no_driver",
            || with("OCL_ICD_VENDORS", "/nonexistent"),
            "OpenCL finds no GPU; install its OpenCL driver, and see whether `clinfo` lists it",
        ),
        refused(
            "a_program_that_does_not_compile",
            || Loader::new().environment(pocl::environment(), "spoil clCreateProgramWithSource 1"),
            "opencl cannot compile the shader `band`: CL_BUILD_PROGRAM_FAILURE: ",
        ),
        refused(
            "the_compiler_says_why",
            || Loader::new().environment(pocl::environment(), "spoil clCreateProgramWithSource 1"),
            "unknown type name 'nothing'",
        ),
    ]);
    // What is registered, and parts of the error.
    for (name, content, error) in [
        (
            "a_file_that_names_nothing",
            "\n",
            "a.icd` names no driver; write the path of the driver's library into it",
        ),
        (
            "a_driver_that_is_missing",
            "/nonexistent/libdriver.so",
            "cannot load the driver `/nonexistent/libdriver.so`",
        ),
        (
            "a_driver_that_is_not_a_library",
            "/etc/hostname",
            "cannot load the driver `/etc/hostname`",
        ),
    ] {
        let test = move || {
            let scratch = tempfile::tempdir()?;
            fs::write(scratch.path().join("a.icd"), content)?;
            let environment = with("OCL_ICD_VENDORS", scratch.path());
            run(environment, &format!("{}{error}", refused::ERROR))
        };
        trials.push(Trial::test(format!("opencl_refused::{name}"), test));
    }
    trials.push(Trial::test("opencl_refused::no_loader", || {
        let scratch = tempfile::tempdir()?;
        // Found before that of the system, and not a library.
        fs::write(scratch.path().join("libOpenCL.so.1"), "")?;
        let environment = with("LD_LIBRARY_PATH", scratch.path());
        run(environment, &format!("{}OpenCL has no loader here: ", refused::ERROR))
    }));
    trials
}

fn faults() -> Vec<lost::Fault> {
    let mut faults = Vec::new();
    for (function, what, numbers) in [
        ("clEnqueueSVMMemcpy", "copy", &[1, 2, 9][..]),
        ("clEnqueueMarkerWithWaitList", "send a batch", &[1, 2, 9]),
        ("clFlush", "send a batch", &[1]),
    ] {
        for number in numbers {
            let (text, error) =
                (format!("lost {function} {number}"), format!("opencl cannot {what}"));
            faults.push(lost::Fault { of: lost::Of::OpenCl, text, error });
        }
    }
    for number in [1, 2, 9, 30] {
        let text = format!("fail clGetEventInfo {number}");
        let error = "opencl cannot run a batch".to_owned();
        faults.push(lost::Fault { of: lost::Of::OpenCl, text, error });
        let text = format!("hang clGetEventInfo {number}");
        let error = "has not finished a batch for 1 s".to_owned();
        faults.push(lost::Fault { of: lost::Of::OpenCl, text, error });
    }
    faults
}

/// Returns PoCL's environment without the setting for the cache.
fn kept_environment() -> Environment {
    let mut environment = pocl::environment();
    environment.retain(|(name, _)| *name != "RUST_GPU_CACHE");
    environment
}

/// Adds on the GPU in a process, which keeps programs in this directory. Returns what it has logged.
fn add(environment: Environment, kept: &Path) -> Result<String, Failed> {
    let mut process = program(environment)?;
    process.env(ONE, format!("{CACHED}add")).env("RUST_GPU_CACHE", kept);
    cache::succeeds(&process.output()?)
}

fn next_process() -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let kept = scratch.path().join("programs");
    // The first program of source is compiled whenever a GPU is opened.
    let no_compiler =
        || Loader::new().environment(kept_environment(), "full clCreateProgramWithSource 2");
    let without =
        add(no_compiler(), &kept).err().map(|error| format!("{error:?}")).unwrap_or_default();
    if !without.contains("opencl cannot compile the shader `elementwise") {
        return Err(format!("it has compiled without a compiler: {without}").into());
    }
    add(kept_environment(), &kept)?;
    let stderr = add(no_compiler(), &kept)?;
    cache::has_lines(&stderr, HAPPENED, 0)?;
    // A program that the driver refuses is compiled again.
    let fault = Loader::new().environment(kept_environment(), "full clCreateProgramWithBinary 1");
    let stderr = add(fault, &kept)?;
    cache::has_lines(&stderr, "compiles it again: the driver: ", 1)
}

/// A driver that ends the process while it is loaded is the last one that the log names.
fn crash() -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let [source, driver] = ["crash.c", "libcrash.so"].map(|name| scratch.path().join(name));
    fs::write(
        &source,
        "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }",
    )?;
    let mut compiler = Command::new("c++");
    compiler.args(["-x", "c", "-shared", "-fPIC", "-o"]).args([&driver, &source]);
    assert!(compiler.status()?.success(), "no library");
    fs::write(scratch.path().join("a.icd"), driver.to_str().ok_or("not UTF-8")?)?;
    let mut environment = with("OCL_ICD_VENDORS", scratch.path());
    environment.push(("TF_CPP_MIN_LOG_LEVEL", "0".into()));
    let output = program(environment)?.env(ONE, format!("{CACHED}add")).output()?;
    assert!(output.status.code().is_none(), "it has not crashed: {}", output.status);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let expected = format!("opens the OpenCL driver `{}`", driver.display());
    let last = stderr.lines().last().unwrap_or_default();
    if last.contains(&expected) { Ok(()) } else { Err(format!("{expected}: {stderr}").into()) }
}

/// Allocates memory where the driver has none for the first allocation.
pub(crate) fn full() {
    let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let error = device.allocate(1 << 20).expect_err("no memory");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    let parts =
        ["opencl cannot allocate ", "on `pthread", "use less memory, such as a smaller batch"];
    assert!(parts.iter().all(|part| error.message().contains(part)), "{error}");
    device.allocate(1 << 20).expect("memory");
}

pub(crate) fn trials() -> Vec<Trial> {
    let own = || OWN.iter().map(|(name, _)| *name);
    let names = || Case::all().iter().map(|case| case.name()).chain(own());
    let mut trials = refusals();
    trials.push(Trial::test("opencl_cache::the_next_process_needs_no_compiler", next_process));
    trials.extend(names().map(|name| {
        Trial::test(format!("opencl::{name}"), move || run(pocl::environment(), name))
    }));
    let late =
        || Loader::new().environment(pocl::environment(), "late clEnqueueMarkerWithWaitList 5");
    trials.extend(
        names().map(|name| Trial::test(format!("late_opencl::{name}"), move || run(late(), name))),
    );
    trials.push(Trial::test("opencl::there_is_a_device", || {
        run(
            pocl::environment(),
            &format!("{} by OpenCL (Portable Computing Language ", crate::NAMED),
        )
    }));
    trials.push(Trial::test("opencl_refused::one_driver_beside_one_that_works", || {
        let scratch = tempfile::tempdir()?;
        let vendors = pocl::environment().into_iter().find(|(name, _)| *name == "OCL_ICD_VENDORS");
        let works = Path::new(&vendors.ok_or("no vendors")?.1).join("pocl.icd");
        fs::copy(works, scratch.path().join("pocl.icd"))?;
        fs::write(scratch.path().join("a.icd"), "/nonexistent/libdriver.so")?;
        let mut environment = with("OCL_ICD_VENDORS", scratch.path());
        // The last line before a driver that ends the process would be its name.
        environment.push(("TF_CPP_MIN_LOG_LEVEL", "0".into()));
        let stderr = add(environment, &scratch.path().join("programs"))?;
        cache::has_lines(
            &stderr,
            "an OpenCL driver is not used: cannot load the driver `/nonexistent/",
            1,
        )?;
        cache::has_lines(&stderr, "opens the OpenCL driver `/nonexistent/libdriver.so`", 1)?;
        cache::has_lines(&stderr, "libpocl.so", 1)
    }));
    trials.push(Trial::test("opencl_refused::a_driver_that_ends_the_process", crash));
    trials.push(Trial::test("opencl::push_constants_at_other_places", || {
        run(pocl::environment(), crate::MISPLACED.0)
    }));
    trials.push(Trial::test("opencl::two_devices", || {
        let two = || with("POCL_DEVICES", "pthread pthread");
        OWN.iter().try_for_each(|(name, _)| run(two(), name))
    }));
    trials.push(Trial::test("opencl::memory_that_is_full_once", || {
        run(Loader::new().environment(pocl::environment(), "full clSVMAlloc 1"), FULL.0)
    }));
    trials.extend(faults().into_iter().map(lost::trial));
    trials
}
