//! The functions that the plugin loads: those of the real loader, some of them with faults.

use crate::{Fault, REAL};
use libloading::os::unix::{Library, Symbol};
use std::sync::LazyLock;

/// `CL_EVENT_COMMAND_EXECUTION_STATUS`.
const STATUS: usize = 0x11D3;

static FAULT: LazyLock<Option<Fault>> = LazyLock::new(Fault::of_environment);

/// The real loader, which stays loaded.
static LOADER: LazyLock<Option<Library>> = LazyLock::new(|| {
    // SAFETY: the environment names an OpenCL loader, which any process may load.
    unsafe { Library::new(std::env::var_os(REAL)?).ok() }
});

/// Arguments and results of all these functions are numbers or addresses, of up to a register. So each function can be called as if
/// all were addresses: a callee ignores what is beyond its number.
macro_rules! functions {
    ($($name:ident($($argument:ident)*);)*) => {$(
        /// # Safety
        /// The caller follows OpenCL's rules for this function.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "OpenCL's function")]
        pub(crate) unsafe extern "C" fn $name($($argument: usize),*) -> usize {
            type Function = unsafe extern "C" fn($($argument: usize),*) -> usize;
            static REAL: LazyLock<Option<Function>> = LazyLock::new(|| {
                let name = concat!(stringify!($name), "\0");
                // SAFETY: the function of this name takes as many arguments.
                let symbol: Symbol<Function> = unsafe { LOADER.as_ref()?.get(name.as_bytes()) }.ok()?;
                Some(*symbol)
            });
            if let Some(error) = FAULT.as_ref().and_then(|fault| fault.before(stringify!($name))) {
                // What returns memory returns none.
                return if stringify!($name) == "clSVMAlloc" { 0 } else { error as usize };
            }
            let [$($argument),*] = spoiled(stringify!($name), [$($argument),*]);
            // SAFETY: the arguments are those of the caller, or a text in place of another.
            let result = REAL.map(|real| unsafe { real($($argument),*) });
            // SAFETY: the arguments are those of the caller, who has the places behind them.
            unsafe { change(stringify!($name), &[$($argument),*]) };
            // `CL_INVALID_OPERATION`.
            result.unwrap_or(-59_isize as usize)
        }
    )*};
}

/// A text in place of a program, which is not one.
const BROKEN: &str = "kernel void run(nothing words) {}";

/// Replaces the text of a program: the context, the number of texts, the texts and their lengths.
fn spoiled<const N: usize>(function: &str, mut arguments: [usize; N]) -> [usize; N] {
    let is_it = || FAULT.as_ref().is_some_and(|fault| fault.spoils(function));
    if let [_, 1, texts, lengths, ..] = &mut arguments[..]
        && is_it()
    {
        let broken = Box::leak(Box::new([BROKEN.as_ptr() as usize, BROKEN.len()]));
        (*texts, *lengths) = (&raw const broken[0] as usize, &raw const broken[1] as usize);
    }
    arguments
}

/// Changes what a function that describes an object has written: the object, the property, the bytes of a place, and the place.
///
/// # Safety
/// The arguments are those of the function of this name.
unsafe fn change(function: &str, arguments: &[usize]) {
    let (Some(fault), &[_, property, bytes, place, ..]) = (&*FAULT, arguments) else { return };
    let value = match function {
        _ if place == 0 => None,
        "clGetEventInfo" if property & 0xFFFF_FFFF == STATUS => {
            fault.status().map(|status| status as u64)
        }
        "clGetDeviceInfo" => fault.property(property & 0xFFFF_FFFF),
        _ => None,
    };
    let Some(value) = value else { return };
    for (at, byte) in value.to_le_bytes().into_iter().enumerate().take(bytes) {
        // SAFETY: there are `bytes` bytes at the place, which nobody else has now.
        unsafe { *((place + at) as *mut u8) = byte };
    }
}

functions! {
    clBuildProgram(program count devices options callback data);
    clCreateCommandQueueWithProperties(context device properties error);
    clCreateContext(properties count devices callback data error);
    clCreateKernel(program name error);
    clCreateProgramWithBinary(context count devices lengths binaries status error);
    clCreateProgramWithSource(context count texts lengths error);
    clEnqueueMarkerWithWaitList(queue count events event);
    clEnqueueNDRangeKernel(queue kernel axes offset global local count events event);
    clEnqueueSVMFree(queue count memory callback data waits events event);
    clEnqueueSVMMemFill(queue target pattern pattern_size size count events event);
    clEnqueueSVMMemcpy(queue blocks target source size count events event);
    clFlush(queue);
    clGetDeviceIDs(platform kind count devices there);
    clGetDeviceInfo(device what size value there);
    clGetEventInfo(event what size value there);
    clGetEventProfilingInfo(event what size value there);
    clGetPlatformIDs(count platforms there);
    clGetPlatformInfo(platform what size value there);
    clGetProgramBuildInfo(program device what size value there);
    clGetProgramInfo(program what size value there);
    clReleaseEvent(event);
    clReleaseProgram(program);
    clSVMAlloc(context flags size alignment);
    clSVMFree(context memory);
    clSetKernelArg(kernel index size value);
    clSetKernelExecInfo(kernel what size value);
}
