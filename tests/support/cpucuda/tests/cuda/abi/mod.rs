//! CUDA calls without a safe wrapper in `cudarc`: launches, page-locked memory, programs with headers, no context.

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr as _, DeviceRepr, DriverError,
    LaunchConfig, PinnedHostSlice, PushKernelArg as _, result, sys,
};
use cudarc::nvrtc::sys as nvrtc;
use std::ffi::{CString, c_char};
use std::sync::Arc;

/// The argument of the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Push {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) n: u32,
}

// SAFETY: `Push` in `sums.cu` and `plain.cu` has these fields.
unsafe impl DeviceRepr for Push {}

pub(crate) type Grid = ((u32, u32, u32), (u32, u32, u32));

pub(crate) fn address(slice: &CudaSlice<f32>, stream: &CudaStream) -> u64 {
    slice.device_ptr(stream).0
}

/// Launches a kernel whose parameter is a `Push`.
pub(crate) fn launch(
    stream: &CudaStream,
    function: &CudaFunction,
    (grid_dim, block_dim): Grid,
    push: &Push,
) -> Result<(), DriverError> {
    let config = LaunchConfig { grid_dim, block_dim, shared_mem_bytes: 0 };
    // SAFETY: the kernel has this parameter, and the test gives it memory for the grid.
    unsafe { stream.launch_builder(function).arg(push).launch(config) }.map(drop)
}

/// Launches `of_many`.
pub(crate) fn launch_many(
    stream: &Arc<CudaStream>,
    function: &CudaFunction,
    input: &CudaSlice<f32>,
    output: &mut CudaSlice<f32>,
) -> Result<(), DriverError> {
    let n = input.len() as u32;
    let mut builder = stream.launch_builder(function);
    builder.arg(&1_i8).arg(input).arg(&0.5_f64).arg(output).arg(&n);
    // SAFETY: the kernel has these parameters, and checks the length.
    unsafe { builder.launch(LaunchConfig::for_num_elems(n)) }.map(drop)
}

/// Allocates page-locked memory.
pub(crate) fn pinned(context: &Arc<CudaContext>, len: usize) -> PinnedHostSlice<f32> {
    // SAFETY: the tests write it before they read it.
    unsafe { context.alloc_pinned(len) }.expect("memory of the host")
}

/// Fills bytes at an address that may be wrong.
pub(crate) fn fill(stream: &CudaStream, at: u64, bytes: usize) -> Result<(), DriverError> {
    // SAFETY: the driver for tests checks the range.
    unsafe { result::memset_d8_async(at, 7, bytes, stream.cu_stream()) }
}

/// Allocates in the context of this thread, if there is one.
pub(crate) fn allocate(bytes: usize) -> Result<u64, DriverError> {
    // SAFETY: the driver for tests checks the context.
    unsafe { result::malloc_sync(bytes) }
}

/// Frees memory that may be in use, which the driver for tests detects.
pub(crate) fn free(at: u64) -> Result<(), DriverError> {
    // SAFETY: the driver for tests ends the process then.
    unsafe { result::free_sync(at) }
}

/// Reads a byte of the device directly, which a program must not do.
pub(crate) fn read(at: u64) -> u8 {
    // SAFETY: the byte is allocated; what happens is what the test is about.
    unsafe { std::ptr::with_exposed_provenance::<u8>(at as usize).read_volatile() }
}

pub(crate) fn versions() -> (i32, (i32, i32)) {
    let (mut driver, mut major, mut minor) = (0, 0, 0);
    // SAFETY: the pointers are those of variables.
    unsafe {
        assert_eq!(sys::cuDriverGetVersion(&mut driver), sys::CUresult::CUDA_SUCCESS);
        let result = nvrtc::nvrtcVersion(&mut major, &mut minor);
        assert_eq!(result, nvrtc::nvrtcResult::NVRTC_SUCCESS);
    }
    (driver, (major, minor))
}

/// Compiles a program named `test.cu` with one header. The error has NVRTC's code and its log.
pub(crate) fn compile(
    source: &str,
    header: (&str, &str),
    options: &[&str],
) -> Result<Vec<u8>, (nvrtc::nvrtcResult, String)> {
    let text = |text: &str| CString::new(text).expect("no null");
    let (source, name, header_name, header) =
        (text(source), text("test.cu"), text(header.0), text(header.1));
    let options: Vec<CString> = options.iter().map(|option| text(option)).collect();
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let mut program = std::ptr::null_mut();
    // SAFETY: all strings live until the end; the buffers have the sizes that NVRTC says.
    unsafe {
        let created = nvrtc::nvrtcCreateProgram(
            &mut program,
            source.as_ptr(),
            name.as_ptr(),
            1,
            &header.as_ptr(),
            &header_name.as_ptr(),
        );
        assert_eq!(created, nvrtc::nvrtcResult::NVRTC_SUCCESS);
        let result = nvrtc::nvrtcCompileProgram(program, options.len() as i32, options.as_ptr());
        let mut size = 0;
        let is_compiled = result == nvrtc::nvrtcResult::NVRTC_SUCCESS;
        let found = match is_compiled {
            true => nvrtc::nvrtcGetPTXSize(program, &mut size),
            false => nvrtc::nvrtcGetProgramLogSize(program, &mut size),
        };
        assert_eq!(found, nvrtc::nvrtcResult::NVRTC_SUCCESS);
        let mut bytes = vec![0_u8; size];
        let found = match is_compiled {
            true => nvrtc::nvrtcGetPTX(program, bytes.as_mut_ptr().cast()),
            false => nvrtc::nvrtcGetProgramLog(program, bytes.as_mut_ptr().cast()),
        };
        assert_eq!(found, nvrtc::nvrtcResult::NVRTC_SUCCESS);
        nvrtc::nvrtcDestroyProgram(&mut program);
        assert_eq!(bytes.pop(), Some(0));
        match is_compiled {
            true => Ok(bytes),
            false => Err((result, String::from_utf8_lossy(&bytes).into_owned())),
        }
    }
}
