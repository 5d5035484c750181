//! Compiled programs are kept on disk, on CUDA on the processor: the next process needs no compiler.

use cpu_cuda::Cuda;
use gpu::{GpuPlatform, bench};
use libtest_mimic::{Arguments, Failed, Trial};
use se_plugin::kernel::DType;
use se_plugin::{Device as _, HostBuf, Platform as _, Stream as _};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Set in a process that computes.
const ONE: &str = "GPU_CACHE_CASE";

/// Adds numbers.
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

/// Adds in a process with this cache, and without a compiler unless it is to have one.
fn run(cuda: &Cuda, cache: &Path, has_compiler: bool) -> Output {
    let mut process = Command::new(std::env::current_exe().expect("a program"));
    process.envs(cuda.environment(None)).env(ONE, "1").env("RUST_GPU_CACHE", cache);
    process.env("RUST_GPU_BACKEND", "cuda");
    if !has_compiler {
        // The one of `cpu-cuda`, with what that has kept itself.
        process.env("PATH", "/nonexistent").env("CPU_CUDA_CACHE", cache.with_extension("none"));
    }
    process.output().expect("it runs")
}

fn succeeds(output: &Output) -> Result<String, Failed> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(said.into()) }
}

fn the_next_process_needs_no_compiler() -> Result<(), Failed> {
    let (cuda, scratch) = (Cuda::new(), tempfile::tempdir()?);
    let cache = scratch.path().join("deep/programs");
    let said = String::from_utf8_lossy(&run(&cuda, &cache, false).stderr).into_owned();
    if !said.contains("cannot compile") {
        return Err(format!("it has compiled without a compiler: {said}").into());
    }
    succeeds(&run(&cuda, &cache, true))?;
    succeeds(&run(&cuda, &cache, false))?;
    Ok(())
}

fn what_cannot_be_loaded_is_compiled_again() -> Result<(), Failed> {
    let (cuda, scratch) = (Cuda::new(), tempfile::tempdir()?);
    succeeds(&run(&cuda, scratch.path(), true))?;
    let files = || -> std::io::Result<Vec<_>> {
        fs::read_dir(scratch.path())?.map(|entry| Ok(entry?.path())).collect()
    };
    for file in files()? {
        let mut content = fs::read(&file)?;
        let last = content.len() - 2;
        content[last] ^= 1;
        fs::write(file, content)?;
    }
    succeeds(&run(&cuda, scratch.path(), true))?;
    // They were replaced.
    succeeds(&run(&cuda, scratch.path(), false))?;
    Ok(())
}

fn a_directory_that_cannot_be_written_is_one_line() -> Result<(), Failed> {
    let (cuda, scratch) = (Cuda::new(), tempfile::NamedTempFile::new()?);
    let said = succeeds(&run(&cuda, &scratch.path().join("programs"), true))?;
    let lines = said.lines().filter(|line| line.contains("cannot keep compiled programs in `"));
    match lines.count() {
        1 => Ok(()),
        count => Err(format!("{count} lines: {said}").into()),
    }
}

fn main() {
    if std::env::var_os(ONE).is_some() {
        se_plugin::logging::init();
        if let Err(error) = add() {
            panic!("{error}");
        }
        return;
    }
    let trials = vec![
        Trial::test("the_next_process_needs_no_compiler", the_next_process_needs_no_compiler),
        Trial::test(
            "what_cannot_be_loaded_is_compiled_again",
            what_cannot_be_loaded_is_compiled_again,
        ),
        Trial::test(
            "a_directory_that_cannot_be_written_is_one_line",
            a_directory_that_cannot_be_written_is_one_line,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
