//! The driver's functions for devices, the context, memory, modules and errors.

use super::{functions, put, text};
use crate::abi::library::Module;
use crate::abi::memory::Region;
use crate::device::{CONTEXT, CURRENT, DEVICES, Device, IS_INITIALIZED, current, of_context};
use crate::fault;
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUfunction, CUmodule, CUresult,
};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::without_provenance_mut;
use std::sync::atomic::Ordering;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// Returns an attribute of the device, or 0 for one that is not here.
fn attribute(number: c_uint) -> c_int {
    use CUdevice_attribute as Attribute;
    let of = |attribute: Attribute| attribute as c_uint == number;
    let all = [
        (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, c_int::MAX),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 0xFFFF),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 0xFFFF),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10),
        (Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 64 << 10),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 64 << 10),
        (Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048),
        (Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
        (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2),
        (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_000_000),
        (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1_000_000),
        (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 128),
        (Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20),
        (Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1),
        (Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1),
        (Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1),
    ];
    all.into_iter().find(|(attribute, _)| of(*attribute)).map_or(0, |(_, value)| value)
}

/// The errors that the library returns, with their names and texts.
const ERRORS: [(CUresult, &CStr, &CStr); 15] = {
    use CUresult as Error;
    [
        (Error::CUDA_SUCCESS, c"CUDA_SUCCESS", c"no error"),
        (Error::CUDA_ERROR_INVALID_VALUE, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        (Error::CUDA_ERROR_OUT_OF_MEMORY, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        (Error::CUDA_ERROR_NOT_INITIALIZED, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
        (Error::CUDA_ERROR_NO_DEVICE, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device"),
        (Error::CUDA_ERROR_INVALID_DEVICE, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
        (
            Error::CUDA_ERROR_INVALID_CONTEXT,
            c"CUDA_ERROR_INVALID_CONTEXT",
            c"invalid device context",
        ),
        (Error::CUDA_ERROR_INVALID_PTX, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
        (
            Error::CUDA_ERROR_INVALID_HANDLE,
            c"CUDA_ERROR_INVALID_HANDLE",
            c"invalid resource handle",
        ),
        (Error::CUDA_ERROR_NOT_FOUND, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
        (Error::CUDA_ERROR_NOT_READY, c"CUDA_ERROR_NOT_READY", c"device not ready"),
        (
            Error::CUDA_ERROR_CONTEXT_IS_DESTROYED,
            c"CUDA_ERROR_CONTEXT_IS_DESTROYED",
            c"context is destroyed",
        ),
        (
            Error::CUDA_ERROR_LAUNCH_FAILED,
            c"CUDA_ERROR_LAUNCH_FAILED",
            c"unspecified launch failure",
        ),
        (Error::CUDA_ERROR_NOT_SUPPORTED, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
        (Error::CUDA_ERROR_UNKNOWN, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
    ]
};

fn error(number: c_uint) -> Result<(&'static CStr, &'static CStr), CUresult> {
    let known = ERRORS.into_iter().find(|(error, ..)| *error as c_uint == number);
    known.map(|(_, name, text)| (name, text)).ok_or(INVALID)
}

/// Returns the device with this number.
fn of_number(number: CUdevice) -> Result<&'static Device, CUresult> {
    let device = usize::try_from(number).ok().and_then(|number| DEVICES.get(number));
    device.ok_or(CUresult::CUDA_ERROR_INVALID_DEVICE)
}

/// Allocates memory of the device or the host.
fn allocate(bytes: usize, insert: impl FnOnce(Region) -> u64) -> Result<u64, CUresult> {
    if bytes == 0 {
        return Err(INVALID);
    }
    Ok(insert(Region::new(bytes).ok_or(CUresult::CUDA_ERROR_OUT_OF_MEMORY)?))
}

functions! {
    cuInit(flags: c_uint) Nothing {
        IS_INITIALIZED.store(true, Ordering::Relaxed);
        if flags == 0 { Ok(()) } else { Err(INVALID) }
    }

    cuDriverGetVersion(version: *mut c_int) Nothing {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(version, 12_090) }
    }

    cuGetErrorName(number: c_uint, name: *mut *const c_char) Nothing {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(name, error(number)?.0.as_ptr()) }
    }

    cuGetErrorString(number: c_uint, name: *mut *const c_char) Nothing {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(name, error(number)?.1.as_ptr()) }
    }

    cuDeviceGetCount(count: *mut c_int) Initialized {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(count, DEVICES.len() as c_int) }
    }

    cuDeviceGet(device: *mut CUdevice, ordinal: c_int) Initialized {
        of_number(ordinal)?;
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(device, ordinal) }
    }

    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice) Initialized {
        of_number(device)?;
        let len = usize::try_from(len).ok().and_then(|len| len.checked_sub(1)).ok_or(INVALID)?;
        let len = len.min(crate::NAME.len());
        // SAFETY: the caller has space for `len` bytes and the null.
        unsafe {
            put(name.wrapping_add(len), 0)?;
            crate::NAME.as_ptr().copy_to_nonoverlapping(name.cast(), len);
        }
        Ok(())
    }

    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice) Initialized {
        let total = of_number(device)?.total();
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(bytes, total as usize) }
    }

    cuDeviceGetAttribute(value: *mut c_int, number: c_uint, device: CUdevice) Initialized {
        of_number(device)?;
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(value, attribute(number)) }
    }

    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) Initialized {
        *of_number(device)?.retained.lock().unwrap() += 1;
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(context, without_provenance_mut(CONTEXT + device as usize)) }
    }

    cuDevicePrimaryCtxRelease_v2(device: CUdevice) Initialized {
        let device = of_number(device)?;
        let mut retained = device.retained.lock().unwrap();
        *retained = retained.checked_sub(1).ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        if *retained == 0 {
            fault::park_if_hung();
            device.clear();
        }
        Ok(())
    }

    cuCtxSetCurrent(context: CUcontext) Initialized {
        if !context.is_null() {
            of_context(context.addr())?;
        }
        CURRENT.set(context.addr());
        Ok(())
    }

    cuCtxGetCurrent(context: *mut CUcontext) Initialized {
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(context, without_provenance_mut(CURRENT.get())) }
    }

    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice) Initialized {
        let [device, peer] = [of_number(device)?, of_number(peer)?];
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(can, c_int::from(!std::ptr::eq(device, peer))) }
    }

    cuCtxEnablePeerAccess(context: CUcontext, flags: c_uint) Context {
        let peer = of_context(context.addr())?;
        if flags != 0 {
            return Err(INVALID);
        }
        if std::ptr::eq(peer, current()) {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        let mut peers = current().peers.lock().unwrap();
        if peers.contains(&context.addr()) {
            return Err(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
        }
        peers.push(context.addr());
        Ok(())
    }

    cuCtxSynchronize() ContextAfter {
        current().synchronize();
        Ok(())
    }

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) Context {
        let all = current().total();
        // SAFETY: CUDA's rules make them places for results; `put` rejects null.
        unsafe {
            put(free, all.saturating_sub(current().memory.used()) as usize)?;
            put(total, all as usize)
        }
    }

    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) Context {
        let used = current().memory.used().checked_add(bytes as u64);
        if used.is_none_or(|used| used > current().total()) {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(address, allocate(bytes, |region| current().add(region))?) }
    }

    cuMemFree_v2(address: CUdeviceptr) Context {
        fault::park_if_hung();
        if address == 0 { Ok(()) } else { current().memory.remove(address) }
    }

    cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, _flags: c_uint) Context {
        let allocated = allocate(bytes, |region| current().host.insert(region))? as usize;
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(address, std::ptr::with_exposed_provenance_mut(allocated)) }
    }

    cuMemFreeHost(address: *mut c_void) Context {
        fault::park_if_hung();
        current().host.remove(address.addr() as u64)
    }

    cuModuleLoadData(module: *mut CUmodule, image: *const c_void) Context {
        // SAFETY: the text of NVRTC ends with a null, as that of a PTX does.
        let path = unsafe { text(image.cast()) }.ok_or(INVALID)?;
        let loaded = Module::load(Path::new(&path)).ok_or(CUresult::CUDA_ERROR_INVALID_PTX)?;
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(module, without_provenance_mut(current().modules.insert(loaded))) }
    }

    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) Context {
        // SAFETY: CUDA's rules make it a string with a null; `text` rejects a null pointer.
        let name = unsafe { text(name) }.ok_or(INVALID)?;
        let kernel = current().modules.get(module)?.function(&name);
        let number = current().functions.insert(kernel.ok_or(CUresult::CUDA_ERROR_NOT_FOUND)?);
        // SAFETY: CUDA's rules make it a place for a result; `put` rejects null.
        unsafe { put(function, without_provenance_mut(number)) }
    }

    cuModuleUnload(module: CUmodule) Context {
        fault::park_if_hung();
        current().modules.remove(module).map(drop)
    }
}
