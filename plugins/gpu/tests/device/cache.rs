//! Tests that compiled programs are kept on disk, on CUDA on the CPU: the next process needs no compiler.

use cpu_cuda::Cuda;
use gpu::{GpuPlatform, bench};
use libtest_mimic::{Failed, Trial};
use se_plugin::kernel::DType;
use se_plugin::{Device as _, HostBuf, Platform as _, Stream as _};
use std::fs;
use std::path::Path;
use std::process::Output;

/// The start of the task of a process: `open` follows, or `add`.
pub(crate) const CACHED: &str = "cached: ";

/// Adds numbers on the GPU.
fn add() -> se_plugin::Result<()> {
    let device = GpuPlatform::new()?.open(0)?;
    let stream = device.create_stream()?;
    let bytes = |numbers: [f32; 3]| numbers.map(f32::to_ne_bytes).concat();
    let tensors = [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [0.0; 3]].map(|numbers| {
        let memory = device.allocate(12)?;
        device.copy_to_device(memory, &bytes(numbers))?;
        Ok((memory, 12))
    });
    let tensors = tensors.into_iter().collect::<se_plugin::Result<Vec<_>>>()?;
    bench::elementwise("AddV2", DType::Float32, 3)?.enqueue(&stream, &tensors)?;
    stream.synchronize()?;
    let mut sum = [0; 12];
    device.copy_to_host(HostBuf::from_slice(&mut sum), tensors[2].0)?;
    assert_eq!(sum.to_vec(), bytes([11.0, 22.0, 33.0]));
    Ok(())
}

/// The directories where a process keeps compiled programs: the plugin's, and that of `cpu-cuda`.
struct Kept<'a> {
    cache: &'a Path,
    code: &'a Path,
}

/// Runs a process that opens the GPU, or also adds, with or without a compiler.
fn run(cuda: &Cuda, what: &str, kept: &Kept<'_>, has_compiler: bool) -> Output {
    let mut process = crate::program(cuda.environment(None)).expect("a program");
    process.env(crate::ONE, format!("{CACHED}{what}")).env("RUST_GPU_BACKEND", "cuda");
    process.env("RUST_GPU_CACHE", kept.cache).env("CPU_CUDA_CACHE", kept.code);
    if !has_compiler {
        process.env("PATH", "/nonexistent");
    }
    process.output().expect("it runs")
}

pub(crate) fn succeeds(output: &Output) -> Result<String, Failed> {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(stderr) } else { Err(stderr.into()) }
}

/// Checks that `count` lines have the text.
pub(crate) fn has_lines(stderr: &str, text: &str, count: usize) -> Result<(), Failed> {
    let lines = stderr.lines().filter(|line| line.contains(text)).count();
    if lines == count { Ok(()) } else { Err(format!("{lines} lines of `{text}`: {stderr}").into()) }
}

fn next_process() -> Result<(), Failed> {
    let (cuda, scratch) = (Cuda::new(), tempfile::tempdir()?);
    let [cache, code, opened] =
        ["deep/programs", "code", "opened"].map(|name| scratch.path().join(name));
    // The programs that are compiled whenever a GPU is opened.
    succeeds(&run(&cuda, "open", &Kept { cache: &cache, code: &opened }, true))?;
    let without = Kept { cache: &cache, code: &opened };
    let stderr = String::from_utf8_lossy(&run(&cuda, "add", &without, false).stderr).into_owned();
    if !stderr.contains("cannot compile") {
        return Err(format!("it has compiled without a compiler: {stderr}").into());
    }
    succeeds(&run(&cuda, "add", &Kept { cache: &cache, code: &code }, true))?;
    succeeds(&run(&cuda, "add", &without, false))?;
    // A program that the driver refuses is compiled again: it refers to code of `cpu-cuda` that is gone.
    fs::rename(&code, scratch.path().join("gone"))?;
    let stderr = succeeds(&run(&cuda, "add", &Kept { cache: &cache, code: &code }, true))?;
    has_lines(&stderr, "compiles it again: the driver: ", 1)?;
    let stderr = succeeds(&run(&cuda, "add", &without, false))?;
    has_lines(&stderr, "compiles it again", 0)?;
    // So is a torn program.
    for file in fs::read_dir(&cache)? {
        fs::File::options().write(true).open(file?.path())?.set_len(30)?;
    }
    let stderr = succeeds(&run(&cuda, "add", &Kept { cache: &cache, code: &code }, true))?;
    has_lines(&stderr, "compiles it again: it is torn", 1)?;
    let stderr = succeeds(&run(&cuda, "add", &without, false))?;
    has_lines(&stderr, "compiles it again", 0)
}

fn unwritable() -> Result<(), Failed> {
    let (cuda, scratch) = (Cuda::new(), tempfile::tempdir()?);
    let file = scratch.path().join("file");
    fs::write(&file, "")?;
    let code = scratch.path().join("code");
    let stderr =
        succeeds(&run(&cuda, "add", &Kept { cache: &file.join("programs"), code: &code }, true))?;
    has_lines(&stderr, "cannot keep compiled programs in `", 1)
}

/// Runs the task of a process.
pub(crate) fn run_task(what: &str) {
    se_plugin::logging::init();
    let done = if what == "open" { GpuPlatform::new().map(drop) } else { add() };
    done.unwrap_or_else(|error| panic!("{error}"));
}

pub(crate) fn trials() -> [Trial; 2] {
    [
        Trial::test("cache::the_next_process_needs_no_compiler", next_process),
        Trial::test("cache::a_directory_that_cannot_be_written_is_one_line", unwritable),
    ]
}
