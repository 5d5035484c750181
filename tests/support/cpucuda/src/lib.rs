//! CUDA without a GPU, for tests: a library in place of `libcuda.so.1`, `libnvrtc.so.12`, `libcublas.so.12` and
//! `libcudnn.so.9`. It compiles CUDA C++ with the machine's `c++` and runs it on the CPU. It checks more than a
//! GPU does, and injects faults.
//!
//! A process gets it from [`Cuda::environment`]. `abi` contains the functions that it loads.

#[expect(unsafe_code, reason = "functions of CUDA")]
mod abi;
mod device;
mod fault;
mod program;
mod stream;
mod wheel;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

pub use fault::HAPPENED;
pub use wheel::nvrtc;

/// The name of the device.
pub const NAME: &str = "CPU as CUDA device";
/// The limit of the memory of the device, in MiB.
pub const MEMORY: &str = "CPU_CUDA_MEMORY_MIB";
/// The number of devices; 1 by default.
pub const DEVICES: &str = "CPU_CUDA_DEVICES";
/// Set, the overflow of a signed integer in a program ends the process.
pub const TRAPS: &str = "CPU_CUDA_TRAPS";
/// How many milliseconds longer the first algorithm that cuDNN suggests and that is to be chosen takes.
pub const SLOW: &str = "CPU_CUDA_SLOW_MS";
/// The directory of compiled programs.
const CACHE: &str = "CPU_CUDA_CACHE";

/// The library that cargo builds.
const LIBRARY: &str = "libcpu_cuda.so";

/// The names under which programs look for a library. A machine with a GPU may have those without a version, which
/// `cudarc` loads first.
const DRIVER: [&str; 2] = ["libcuda.so", "libcuda.so.1"];
const NVRTC: [&str; 2] = ["libnvrtc.so", "libnvrtc.so.12"];
const CUBLAS: [&str; 2] = ["libcublas.so", "libcublas.so.12"];
const CUDNN: [&str; 7] = [
    "libcudnn.so",
    "libcudnn.so.9",
    "libcudnn_cnn.so.9",
    "libcudnn_engines_precompiled.so.9",
    "libcudnn_graph.so.9",
    "libcudnn_heuristic.so.9",
    "libcudnn_ops.so.9",
];

/// A directory with the libraries, beside the library that cargo has built for the running test. Tests share it: what
/// starts once for all processes with an environment, as a fork server does, starts once.
#[derive(Debug)]
pub struct Cuda(PathBuf);

impl Cuda {
    /// The driver and NVRTC.
    ///
    /// # Panics
    /// Panics if the library is missing, or the directory cannot be created.
    #[must_use]
    pub fn new() -> Self {
        Self::with("cpu-cuda-with-nvrtc", &[&DRIVER, &NVRTC])
    }

    /// Only the driver.
    ///
    /// # Panics
    /// Panics as [`Cuda::new`] does.
    #[must_use]
    pub fn without_nvrtc() -> Self {
        Self::with("cpu-cuda-driver", &[&DRIVER])
    }

    /// The driver, NVRTC, cuBLAS and cuDNN.
    ///
    /// # Panics
    /// Panics as [`Cuda::new`] does.
    #[must_use]
    pub fn with_libraries() -> Self {
        Self::with("cpu-cuda-with-libraries", &[&DRIVER, &NVRTC, &CUBLAS, &CUDNN])
    }

    fn with(directory: &str, libraries: &[&[&str]]) -> Self {
        let test = std::env::current_exe().expect("a test is a file");
        let (library, directory) = (test.with_file_name(LIBRARY), test.with_file_name(directory));
        assert!(library.exists(), "{} is missing", library.display());
        fs::create_dir_all(&directory)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", directory.display()));
        for name in libraries.iter().copied().flatten() {
            // A process loads a file once, whatever its names are: all libraries share one device.
            let link = symlink(Path::new("..").join(LIBRARY), directory.join(name));
            assert!(link.is_ok() || directory.join(name).exists(), "{name}: {link:?}");
        }
        Self(directory)
    }

    /// Returns the environment of a process that finds these libraries, with a fault or without one.
    ///
    /// `lost FUNCTION NUMBER`: the call of that number fails with `CUDA_ERROR_LAUNCH_FAILED`, as does every later call
    /// that needs the context. `hang FUNCTION NUMBER`: the work that this call enqueues never finishes, and calls that
    /// wait for it or free memory never return. `fail FUNCTION NUMBER`: only that call fails, one of the driver with
    /// `CUDA_ERROR_NOT_SUPPORTED`. `skip FUNCTION NUMBER`,
    /// for `nvrtcVersion` or a function of cuDNN: the call succeeds, but does nothing.
    #[must_use]
    pub fn environment(&self, fault: Option<&str>) -> Vec<(&'static str, OsString)> {
        let mut libraries = self.0.as_os_str().to_owned();
        if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
            libraries.push(":");
            libraries.push(others);
        }
        let workspace =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("a workspace");
        let mut environment = vec![
            ("LD_LIBRARY_PATH", libraries),
            (CACHE, workspace.join("target/cpu-cuda").into_os_string()),
            // Otherwise the plugin would use the cache of the user.
            ("RUST_GPU_CACHE", "0".into()),
        ];
        environment.extend(fault.map(|fault| (fault::FAULT, fault.into())));
        environment
    }
}

impl Default for Cuda {
    fn default() -> Self {
        Self::new()
    }
}
