//! Compiles shaders for the GPU with NVRTC.

use super::dlopen::NVRTC;
use super::{Device, failed};
use cudarc::driver::result;
use cudarc::driver::sys::CUfunction;
use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys;
use se_plugin::{Error, Result};
use se_plugin_gpu::Cache;
use se_plugin_gpu::backend::{BackendResult, Shader};
use se_plugin_gpu::translate::cuda::ENTRY;
use std::ffi::{CStr, CString, c_char};

/// The oldest NVRTC that has `__grid_constant__`, which avoids copies of arguments.
const LEAST_VERSION: (i32, i32) = (11, 7);

/// Finds NVRTC.
///
/// # Errors
/// `FAILED_PRECONDITION` if NVRTC is missing, or too old.
pub(super) fn load() -> Result<()> {
    const HELP: &str =
        "run `pip install nvidia-cuda-nvrtc-cu12`, or install the CUDA toolkit, 11.7 or newer";
    if !NVRTC.find() {
        return Err(Error::failed_precondition(format!(
            "CUDA needs NVRTC to compile kernels: cannot load `libnvrtc.so.12` or `libnvrtc.so.13`; {HELP}"
        )));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are places for numbers.
    let asked = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    if asked != sys::nvrtcResult::NVRTC_SUCCESS || (major, minor) < LEAST_VERSION {
        return Err(Error::failed_precondition(format!(
            "CUDA needs a newer NVRTC than the {major}.{minor} that was found; {HELP}"
        )));
    }
    Ok(())
}

/// A program of NVRTC, which is destroyed when it is dropped.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was created, and nothing uses it later. There is nothing to do about an error.
        let _ = unsafe { nvrtc::destroy_program(self.0) };
    }
}

/// A function of a module that stays.
pub(crate) struct Function(pub(super) CUfunction);

// SAFETY: it is an address that CUDA lets any thread use.
unsafe impl Send for Function {}
// SAFETY: nothing of it changes.
unsafe impl Sync for Function {}

impl Device {
    /// Compiles a shader in the context of this thread.
    pub(super) fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Function> {
        let what = format!("compile the shader `{}`", shader.name());
        let broken = |cause| super::broken(&what, cause);
        let source = shader.cuda(constants).map_err(|error| broken(error.to_string()))?;
        let options = Options::new(self.capability).map_err(broken)?;
        let load = |image: &[u8]| {
            // SAFETY: the image is what NVRTC made, now or before in a file of this user that has not changed; PTX has a zero
            // at its end.
            let loaded = unsafe { result::module::load_data(image.as_ptr().cast()) };
            loaded.map_err(|error| failed(&what, error))
        };
        let compile = || {
            let image = options.compile(&source).map_err(broken)?;
            load(&image).map(|module| (module, image))
        };
        let module =
            Cache::load_or_compile(self.cache.as_deref(), &options.key(&source), load, compile)?;
        let entry = CString::new(ENTRY).unwrap_or_default();
        // SAFETY: the module was loaded, and stays.
        let function = unsafe { result::module::get_function(module, entry) }
            .map_err(|error| failed(&what, error))?;
        Ok(Function(function))
    }
}

/// Compiles a program for GPUs of this capability; returns why if that fails.
pub(crate) fn image(source: &str, capability: (i32, i32)) -> std::result::Result<Vec<u8>, String> {
    Options::new(capability)?.compile(source)
}

fn text(error: nvrtc::NvrtcError) -> String {
    format!("{error:?}")
}

/// The options for programs of a GPU.
struct Options {
    /// Whether NVRTC knows the GPU, and makes its own code. Otherwise it makes PTX, with a zero at
    /// its end, for a driver that is as new as NVRTC.
    is_known: bool,
    all: [String; 4],
}

impl Options {
    fn new(capability: (i32, i32)) -> std::result::Result<Self, String> {
        let known = known().map_err(text)?;
        let of = |(major, minor): (i32, i32)| 10 * major + minor;
        let is_known = known.contains(&of(capability));
        let architecture = match is_known {
            true => format!("sm_{}", of(capability)),
            // The newest architecture that is not newer than the GPU.
            false => {
                let older = known.into_iter().filter(|known| *known <= of(capability)).max();
                format!("compute_{}", older.ok_or("NVRTC is too new for the GPU")?)
            }
        };
        let all = [
            format!("--gpu-architecture={architecture}"),
            String::from("--std=c++17"),
            String::from("--fmad=false"),
            String::from("--device-as-default-execution-space"),
        ];
        Ok(Self { is_known, all })
    }

    /// Returns everything that the code depends on.
    fn key(&self, source: &str) -> String {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are places for numbers. It returned its version before, when it was loaded.
        let _ = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
        format!("NVRTC {major}.{minor} {}\n{source}", self.all.join(" "))
    }

    fn compile(&self, source: &str) -> std::result::Result<Vec<u8>, String> {
        let source = CString::new(source).map_err(|error| error.to_string())?;
        let program = Program(nvrtc::create_program(&source, None).map_err(text)?);
        let bytes =
            |chars: Vec<c_char>| chars.into_iter().map(|char| char as u8).collect::<Vec<_>>();
        // SAFETY: the program was created, and is not destroyed yet.
        let compiled = unsafe { nvrtc::compile_program(program.0, &self.all) };
        compiled.map_err(|error| {
            // SAFETY: the program was created, and is destroyed at the end of this function.
            let log = bytes(unsafe { nvrtc::get_program_log(program.0) }.unwrap_or_default());
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
            format!("{error:?}: {}", log.trim())
        })?;
        if !self.is_known {
            // SAFETY: the program was compiled.
            return unsafe { nvrtc::get_ptx(program.0) }.map(bytes).map_err(text);
        }
        let mut size = 0;
        // SAFETY: the program was compiled for a GPU.
        unsafe { sys::nvrtcGetCUBINSize(program.0, &raw mut size) }.result().map_err(text)?;
        let mut image = vec![0_u8; size];
        // SAFETY: the program was compiled for a GPU, and `image` has as many bytes as its code.
        unsafe { sys::nvrtcGetCUBIN(program.0, image.as_mut_ptr().cast()) }
            .result()
            .map_err(text)?;
        Ok(image)
    }
}

/// Returns the capabilities of the GPUs that NVRTC knows: 75 is 7.5.
fn known() -> std::result::Result<Vec<i32>, nvrtc::NvrtcError> {
    let mut count = 0;
    // SAFETY: it is a place for a number.
    unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) }.result()?;
    let mut known = vec![0; usize::try_from(count).unwrap_or_default()];
    // SAFETY: there are so many places.
    unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) }.result()?;
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use se_plugin_gpu::backend::CooperativeMatrix;
    use se_plugin_gpu::translate::cuda::program;

    /// Uses the NVRTC of the wheel, which needs no GPU.
    #[test]
    fn nvrtc_compiles_each_shader() {
        let packages = cpu_cuda::nvrtc();
        assert!(NVRTC.find_in(&packages), "{packages:?}");
        // The oldest GPU, current ones, and one that is not known yet; the last has no constants, as some shaders.
        let all = [
            (&[1; 20][..], (7, 0)),
            (&[2; 20], (9, 0)),
            (&[8; 20], (12, 0)),
            (&[1; 20], (12, 7)),
            (&[], (9, 0)),
        ];
        let compile = |(constants, capability)| {
            let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../se-plugin-gpu/src/shaders");
            let mut count = 0;
            for entry in std::fs::read_dir(directory).expect("shaders") {
                let name = entry.expect("a file").file_name().into_string().expect("UTF-8");
                let Some(name) = name.strip_suffix(".spv") else { continue };
                // cuBLAS computes what these shaders do.
                if name.ends_with(CooperativeMatrix::SHADERS) {
                    continue;
                }
                let source = program(name, constants).expect("a program");
                let code = image(&source, capability);
                let code = code.unwrap_or_else(|error| panic!("{name}: {error}"));
                let is_ptx = String::from_utf8_lossy(&code).contains(".visible .entry run(");
                assert_eq!(is_ptx, capability == (12, 7), "{name}");
                assert!(is_ptx || code.starts_with(b"\x7fELF"), "{name}");
                count += 1;
            }
            assert!(count > 12, "{count}");
        };
        std::thread::scope(|scope| all.map(|one| scope.spawn(move || compile(one))).map(drop));
    }
}
