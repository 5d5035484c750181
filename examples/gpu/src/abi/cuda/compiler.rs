//! Shaders, compiled for the card by NVRTC.

use super::{Card, failed};
use crate::abi::driver::{Done, Failure, Pipeline, Shader};
use crate::program::{ENTRY, program};
use cudarc::driver::result;
use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use se_plugin::{Code, Error, Result};
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

/// The capability that programs are compiled for, from which the driver goes on: none of them needs more, and an NVRTC that
/// does not know the card yet knows this.
const CAPABILITY: (i32, i32) = (7, 5);

/// The directory of NVIDIA's wheel, below that of all packages.
const WHEEL: &str = "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";

/// Finds NVRTC where the system looks for libraries, or else in NVIDIA's wheel beside the plugin.
///
/// # Errors
/// `FAILED_PRECONDITION` if it is in neither.
pub(super) fn load() -> Result<()> {
    // The plugin is in `site-packages/tensorflow-plugins`.
    let packages = || own_path()?.parent()?.parent().map(Path::to_owned);
    if is_there() || packages().is_some_and(|packages| load_from(&packages)) {
        return Ok(());
    }
    Err(Error::failed_precondition(
        "CUDA needs NVRTC to compile kernels: cannot load `libnvrtc.so.12`; run \
         `pip install nvidia-cuda-nvrtc-cu12`, or install the CUDA toolkit",
    ))
}

fn is_there() -> bool {
    // SAFETY: the library may be loaded by any process.
    unsafe { sys::is_culib_present() }
}

/// Loads the wheel's library for good, if it is in this directory of packages. From then on it is found by its name.
fn load_from(packages: &Path) -> bool {
    // SAFETY: the library may be loaded by any process.
    let library = unsafe { Library::open(Some(packages.join(WHEEL)), RTLD_NOW | RTLD_GLOBAL) };
    library.map(Library::into_raw).is_ok() && is_there()
}

/// The file that this code is in.
fn own_path() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let here = own_path as fn() -> Option<PathBuf> as usize;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
        (start? <= here && here < end?).then(|| rest.find('/').map(|at| rest[at..].into()))?
    })
}

/// A program of NVRTC, which is destroyed.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was created, and nothing uses it later. There is nothing to do about an error.
        let _ = unsafe { nvrtc::destroy_program(self.0) };
    }
}

impl Card {
    /// Compiles it in the context of this thread.
    pub(super) fn compile(&self, shader: &Shader, constants: &[u32]) -> Done<Pipeline> {
        let what = format!("compile the shader `{}`", shader.name);
        let broken = |cause: String| Failure {
            code: Code::Internal,
            what: format!("cuda cannot {what}"),
            cause,
            help: "report it with the versions of the driver and of NVRTC",
            is_lost: false,
        };
        let source = program(shader.name, constants).map_err(|error| broken(error.to_string()))?;
        let image = image(&source, self.capability).map_err(broken)?;
        // SAFETY: the image is PTX with a zero at its end, as NVRTC makes it.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }
            .map_err(|error| failed(&what, error))?;
        let entry = CString::new(ENTRY).unwrap_or_default();
        // SAFETY: the module was loaded, and stays.
        let function = unsafe { result::module::get_function(module, entry) }
            .map_err(|error| failed(&what, error))?;
        Ok(Pipeline(function as u64))
    }
}

/// The PTX of a program for cards of at least this capability, or why there is none.
fn image(
    source: &str,
    capability: (i32, i32),
) -> std::result::Result<Vec<std::ffi::c_char>, String> {
    let text = |error: nvrtc::NvrtcError| format!("{error:?}");
    let source = CString::new(source).map_err(|error| error.to_string())?;
    let program = Program(nvrtc::create_program(&source, None).map_err(text)?);
    let (major, minor) = capability.min(CAPABILITY);
    let options = [
        format!("--gpu-architecture=compute_{major}{minor}"),
        String::from("--std=c++17"),
        String::from("--fmad=false"),
        String::from("--device-as-default-execution-space"),
    ];
    // SAFETY: the program was created, and is not destroyed yet.
    let compiled = unsafe { nvrtc::compile_program(program.0, &options) };
    compiled.map_err(|error| {
        // SAFETY: as above.
        let log = unsafe { nvrtc::get_program_log(program.0) }.unwrap_or_default();
        let log: Vec<u8> = log.iter().map(|&byte| byte as u8).collect();
        let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
        format!("{error:?}: {}", log.trim())
    })?;
    // SAFETY: the program was compiled.
    unsafe { nvrtc::get_ptx(program.0) }.map_err(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wheel's, which needs no card.
    #[test]
    fn nvrtc_compiles_each_shader() {
        let nvrtc =
            cargo_tf_plugin::Packages::provide("nvrtc", "nvidia-cuda-nvrtc-cu12==12.9.86", None);
        let nvrtc = nvrtc.expect("NVRTC");
        assert!(load_from(nvrtc.site_packages()), "{nvrtc:?}");
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/shaders");
        let mut count = 0;
        for entry in std::fs::read_dir(directory).expect("shaders") {
            let name = entry.expect("a file").file_name().into_string().expect("UTF-8");
            let Some(name) = name.strip_suffix(".spv") else { continue };
            for value in [1, 2, 8] {
                let source = program(name, &[value; 20]).expect("a program");
                let ptx = image(&source, (9, 0)).unwrap_or_else(|error| panic!("{name}: {error}"));
                let ptx: Vec<u8> = ptx.iter().map(|&byte| byte as u8).collect();
                let ptx = String::from_utf8(ptx).expect("PTX is text");
                assert!(ptx.contains(".visible .entry run("), "{name}: {ptx}");
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
    }

    #[test]
    fn the_file_of_this_code_is_found() {
        assert_eq!(own_path(), std::env::current_exe().ok());
    }
}
