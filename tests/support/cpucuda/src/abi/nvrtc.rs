//! The functions of NVRTC.

use super::text;
use crate::device::Table;
use crate::fault;
use crate::program::Program;
use cudarc::nvrtc::sys::{nvrtcProgram, nvrtcResult};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::without_provenance_mut;
use std::sync::{Arc, LazyLock, Mutex};

const INVALID: nvrtcResult = nvrtcResult::NVRTC_ERROR_INVALID_INPUT;

static PROGRAMS: LazyLock<Table<Mutex<Program>>> = LazyLock::new(Table::default);

fn program(handle: nvrtcProgram) -> Result<Arc<Mutex<Program>>, nvrtcResult> {
    PROGRAMS.get(handle).map_err(|_| nvrtcResult::NVRTC_ERROR_INVALID_PROGRAM)
}

/// # Safety
/// The pointer is null, or a `T` may be written there.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), nvrtcResult> {
    // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
    unsafe { super::put(to, value) }.map_err(|_| INVALID)
}

/// Writes a text and a null after it.
///
/// # Safety
/// The pointer is null, or there is space for the text.
unsafe fn put_text(to: *mut c_char, text: &str) -> Result<(), nvrtcResult> {
    // SAFETY: the caller has space for the text and for the null after it.
    unsafe {
        put(to, 0)?;
        text.as_ptr().copy_to_nonoverlapping(to.cast(), text.len());
        put(to.add(text.len()), 0)
    }
}

/// # Safety
/// The pointer leads to `count` strings, unless there are none.
unsafe fn texts(from: *const *const c_char, count: c_int) -> Option<Vec<String>> {
    // SAFETY: the caller has so many strings.
    (0..usize::try_from(count).ok()?).map(|index| unsafe { text(*from.add(index)) }).collect()
}

/// Returns the text that is loaded into the driver: the path of the library.
fn ptx(program: &Program) -> Result<String, nvrtcResult> {
    let library = program.library.as_ref().ok_or(nvrtcResult::NVRTC_ERROR_INVALID_PROGRAM)?;
    Ok(library.to_string_lossy().into_owned())
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        /// # Safety
        /// The caller follows CUDA's rules for this function.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "CUDA's name")]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> nvrtcResult {
            let function = || -> Result<(), nvrtcResult> { $body };
            function().err().unwrap_or(nvrtcResult::NVRTC_SUCCESS)
        }
    )*};
}

/// The capabilities that are reported as supported, including that of the device.
const CAPABILITIES: [c_int; 3] = [70, 75, 90];

functions! {
    nvrtcVersion(major: *mut c_int, minor: *mut c_int) {
        if fault::happens("nvrtcVersion") {
            return if fault::is_silent() { Ok(()) } else { Err(INVALID) };
        }
        // SAFETY: CUDA's rules make them places for results; `put` rejects null.
        unsafe {
            put(major, 12)?;
            put(minor, 9)
        }
    }

    nvrtcCreateProgram(
        program: *mut nvrtcProgram,
        source: *const c_char,
        name: *const c_char,
        count: c_int,
        headers: *const *const c_char,
        names: *const *const c_char,
    ) {
        // SAFETY: the caller's strings, of which there are `count` in both arrays.
        let (source, name, headers, names) =
            unsafe { (text(source), text(name), texts(headers, count), texts(names, count)) };
        let name = name.unwrap_or_else(|| String::from("default_program"));
        let (source, texts, names) =
            (source.ok_or(INVALID)?, headers.ok_or(INVALID)?, names.ok_or(INVALID)?);
        let headers = names.into_iter().zip(texts).collect();
        let new = Program { source, name, headers, log: String::new(), library: None };
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(program, without_provenance_mut(PROGRAMS.insert(Mutex::new(new)))) }
    }

    nvrtcCompileProgram(handle: nvrtcProgram, count: c_int, options: *const *const c_char) {
        // SAFETY: the caller's strings.
        let options = unsafe { texts(options, count) }.ok_or(INVALID)?;
        match program(handle)?.lock().unwrap().compile(&options) {
            nvrtcResult::NVRTC_SUCCESS => Ok(()),
            error => Err(error),
        }
    }

    nvrtcGetProgramLogSize(handle: nvrtcProgram, size: *mut usize) {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(size, program(handle)?.lock().unwrap().log.len() + 1) }
    }

    nvrtcGetProgramLog(handle: nvrtcProgram, log: *mut c_char) {
        // SAFETY: the caller has space for the log.
        unsafe { put_text(log, &program(handle)?.lock().unwrap().log) }
    }

    nvrtcGetPTXSize(handle: nvrtcProgram, size: *mut usize) {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(size, ptx(&program(handle)?.lock().unwrap())?.len() + 1) }
    }

    nvrtcGetPTX(handle: nvrtcProgram, text: *mut c_char) {
        // SAFETY: the caller has space for the text.
        unsafe { put_text(text, &ptx(&program(handle)?.lock().unwrap())?) }
    }

    nvrtcGetCUBINSize(handle: nvrtcProgram, size: *mut usize) {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(size, ptx(&program(handle)?.lock().unwrap())?.len() + 1) }
    }

    nvrtcGetCUBIN(handle: nvrtcProgram, text: *mut c_char) {
        // SAFETY: the caller has space for the text.
        unsafe { put_text(text, &ptx(&program(handle)?.lock().unwrap())?) }
    }

    nvrtcGetNumSupportedArchs(count: *mut c_int) {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(count, CAPABILITIES.len() as c_int) }
    }

    nvrtcGetSupportedArchs(capabilities: *mut c_int) {
        // SAFETY: the caller has space for all of them.
        unsafe { capabilities.copy_from_nonoverlapping(CAPABILITIES.as_ptr(), CAPABILITIES.len()) };
        Ok(())
    }

    nvrtcDestroyProgram(handle: *mut nvrtcProgram) {
        if handle.is_null() {
            return Err(INVALID);
        }
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        let old = unsafe { handle.replace(std::ptr::null_mut()) };
        PROGRAMS.remove(old).map(drop).map_err(|_| nvrtcResult::NVRTC_ERROR_INVALID_PROGRAM)
    }
}

/// Returns the name of an error.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CUDA's name")]
pub(crate) extern "C" fn nvrtcGetErrorString(number: c_uint) -> *const c_char {
    const NAMES: [&CStr; 7] = [
        c"NVRTC_SUCCESS",
        c"NVRTC_ERROR_OUT_OF_MEMORY",
        c"NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        c"NVRTC_ERROR_INVALID_INPUT",
        c"NVRTC_ERROR_INVALID_PROGRAM",
        c"NVRTC_ERROR_INVALID_OPTION",
        c"NVRTC_ERROR_COMPILATION",
    ];
    NAMES.get(number as usize).unwrap_or(&c"NVRTC_ERROR unknown").as_ptr()
}
