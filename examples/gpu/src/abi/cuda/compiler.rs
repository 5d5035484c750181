//! Shaders, compiled for the card by NVRTC.

use super::libraries::NVRTC;
use super::products::Product;
use super::{Card, failed};
use crate::abi::driver::{Done, Failure, Pipeline, Shader};
use crate::program::{ENTRY, program};
use cudarc::driver::result;
use cudarc::driver::sys::CUfunction;
use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys;
use se_plugin::{Code, Error, Result};
use std::ffi::{CStr, CString};

/// The capability that programs are compiled for, from which the driver goes on: none of them needs more, and an NVRTC that
/// does not know the card yet knows this.
const CAPABILITY: (i32, i32) = (7, 5);

/// Finds NVRTC.
///
/// # Errors
/// `FAILED_PRECONDITION` if it is not there.
pub(super) fn load() -> Result<()> {
    if NVRTC.find() {
        return Ok(());
    }
    Err(Error::failed_precondition(
        "CUDA needs NVRTC to compile kernels: cannot load `libnvrtc.so.12`; run \
         `pip install nvidia-cuda-nvrtc-cu12`, or install the CUDA toolkit",
    ))
}

/// A compiled shader, which stays for good.
pub(super) struct Kernel {
    pub(super) function: CUfunction,
    /// What cuBLAS can compute in its place.
    pub(super) product: Option<Product>,
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
        let product = Product::of(shader, constants);
        Ok(Pipeline(Box::into_raw(Box::new(Kernel { function, product })) as u64))
    }
}

/// The PTX of a program for cards of at least this capability, or why there is none.
pub(crate) fn image(
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
        assert!(NVRTC.find_in(nvrtc.site_packages()), "{nvrtc:?}");
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
}
