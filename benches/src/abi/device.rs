//! Loads a device plugin and calls its C table as TensorFlow does, with TensorFlow's own statuses.

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use libloading::os::unix::{Library, RTLD_NOW, Symbol};
use tf_fs_sys::{
    SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE,
    SE_CreateDeviceParams, SE_CreateStreamExecutorParams, SE_EventStatus, SE_InitPluginFn,
    SE_MAJOR, SE_MINOR, SE_PATCH, SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE,
    SE_PlatformRegistrationParams, SP_ALLOCATORSTATS_STRUCT_SIZE, SP_AllocatorStats,
    SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, SP_DEVICE_STRUCT_SIZE, SP_Device, SP_DeviceMemoryBase,
    SP_Event, SP_PLATFORM_FNS_STRUCT_SIZE, SP_PLATFORM_STRUCT_SIZE, SP_Platform, SP_PlatformFns,
    SP_STREAMEXECUTOR_STRUCT_SIZE, SP_Stream, SP_StreamExecutor, TF_OK, TF_Status,
};

use super::{Host, Outcome};

/// The first device of a plugin, and a status that all its calls share.
///
/// The status is not made anew for each call, so that the plugins are measured rather than TensorFlow's
/// allocator.
#[derive(Debug)]
pub struct Device {
    host: Host,
    status: *mut TF_Status,
    platform: Box<SP_Platform>,
    fns: SP_PlatformFns,
    table: SP_StreamExecutor,
    device: Box<SP_Device>,
}

/// A stream; dropping it is the C operation `destroy_stream`.
#[derive(Debug)]
pub struct Stream<'d>(&'d Device, SP_Stream);

/// Asynchronous copies from and to a buffer; dropping it waits for them.
#[derive(Debug)]
pub struct Copying<'s> {
    stream: &'s Stream<'s>,
    buffer: *mut u8,
    len: usize,
}

/// An event; dropping it is the C operation `destroy_event`.
#[derive(Debug)]
pub struct Event<'d>(&'d Device, SP_Event);

/// What memory is filled with.
#[derive(Clone, Copy, Debug)]
pub enum Filling {
    /// Zeros.
    Zero,
    /// A byte.
    Byte(u8),
    /// Four bytes.
    Word(u32),
}

/// Device memory as the host passes it.
fn memory(address: u64, size: usize) -> SP_DeviceMemoryBase {
    SP_DeviceMemoryBase {
        struct_size: SP_DEVICE_MEMORY_BASE_STRUCT_SIZE,
        opaque: ptr::without_provenance_mut(address as usize),
        size: size as u64,
        ..SP_DeviceMemoryBase::default()
    }
}

/// A callback of a table that `Device::load` has found complete.
macro_rules! slot {
    ($device:expr, $name:ident) => {
        $device.table.$name.expect("the table is complete")
    };
}

impl Device {
    /// Loads a device plugin that keeps the promises of TensorFlow's header, and opens its first device.
    ///
    /// # Errors
    /// When the library cannot be loaded, registers no complete table or does not open a device.
    pub fn load(host: Host, path: &Path) -> Result<Self> {
        let mut platform =
            Box::new(SP_Platform { struct_size: SP_PLATFORM_STRUCT_SIZE, ..Default::default() });
        let mut fns =
            SP_PlatformFns { struct_size: SP_PLATFORM_FNS_STRUCT_SIZE, ..Default::default() };
        let mut table =
            SP_StreamExecutor { struct_size: SP_STREAMEXECUTOR_STRUCT_SIZE, ..Default::default() };
        let mut device =
            Box::new(SP_Device { struct_size: SP_DEVICE_STRUCT_SIZE, ..Default::default() });
        // SAFETY: `path` is a device plugin, and `SE_InitPlugin` has the type that
        // the header declares. All structs have the sizes that they say. What is loaded stays loaded.
        unsafe {
            let library = Library::open(Some(path), RTLD_NOW)
                .with_context(|| format!("cannot load {}", path.display()))?;
            let init: Symbol<SE_InitPluginFn> = library.get(b"SE_InitPlugin\0")?;
            let status = (host.functions.TF_NewStatus)();
            let done = |what: &str| {
                let code = (host.functions.TF_GetCode)(status);
                let message = CStr::from_ptr((host.functions.TF_Message)(status));
                ensure!(code == TF_OK, "{what} failed: {}", message.to_string_lossy());
                Ok(())
            };
            let mut params = SE_PlatformRegistrationParams {
                struct_size: SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE,
                major_version: SE_MAJOR,
                minor_version: SE_MINOR,
                patch_version: SE_PATCH,
                platform: &raw mut *platform,
                platform_fns: &raw mut fns,
                ..Default::default()
            };
            init(&raw mut params, status);
            std::mem::forget(library);
            done("SE_InitPlugin")?;
            let mut params = SE_CreateStreamExecutorParams {
                struct_size: SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE,
                stream_executor: &raw mut table,
                ..Default::default()
            };
            let create = fns.create_stream_executor.context("no `create_stream_executor`")?;
            create(&raw const *platform, &raw mut params, status);
            done("create_stream_executor")?;
            let mut count = 0;
            let get = fns.get_device_count.context("no `get_device_count`")?;
            get(&raw const *platform, &raw mut count, status);
            done("get_device_count")?;
            ensure!(count > 0, "{} has no devices", path.display());
            let mut params = SE_CreateDeviceParams {
                struct_size: SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE,
                device: &raw mut *device,
                ..Default::default()
            };
            let create = fns.create_device.context("no `create_device`")?;
            create(&raw const *platform, &raw mut params, status);
            done("create_device")?;
            Ok(Self { host, status, platform, fns, table, device })
        }
    }

    /// What the last call with a status answered.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.host.outcome(self.status)
    }

    /// Calls `allocate`; the address, or 0.
    #[must_use]
    pub fn allocate(&self, bytes: usize) -> u64 {
        let mut answer = memory(0, 0);
        // SAFETY: an open device and a place for the answer.
        unsafe { slot!(self, allocate)(&*self.device, bytes as u64, 0, &mut answer) };
        answer.opaque.addr() as u64
    }

    /// Calls `deallocate`, with no size as TensorFlow does.
    pub fn deallocate(&self, address: u64) {
        // SAFETY: an open device and an address.
        unsafe { slot!(self, deallocate)(&*self.device, &mut memory(address, 0)) };
    }

    /// Calls `get_allocator_stats`.
    #[must_use]
    pub fn allocator_stats(&self) -> Option<SP_AllocatorStats> {
        let mut stats = SP_AllocatorStats {
            struct_size: SP_ALLOCATORSTATS_STRUCT_SIZE,
            ..SP_AllocatorStats::default()
        };
        // SAFETY: an open device and a place for the answer.
        let known = unsafe { slot!(self, get_allocator_stats)(&*self.device, &mut stats) } != 0;
        known.then_some(stats)
    }

    /// Calls `device_memory_usage`: what is free, and all.
    #[must_use]
    pub fn memory_usage(&self) -> Option<[i64; 2]> {
        let [mut free, mut total] = [-1; 2];
        let get = slot!(self, device_memory_usage);
        // SAFETY: an open device and places for the answers.
        let known = unsafe { get(&*self.device, &mut free, &mut total) } != 0;
        known.then_some([free, total])
    }

    /// Calls `create_stream`.
    #[must_use]
    pub fn stream(&self) -> Stream<'_> {
        let mut stream = ptr::null_mut();
        // SAFETY: an open device, a place for the answer and a status.
        unsafe { slot!(self, create_stream)(&*self.device, &mut stream, self.status) };
        Stream(self, stream)
    }

    /// Calls `create_event`.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let mut event = ptr::null_mut();
        // SAFETY: an open device, a place for the answer and a status.
        unsafe { slot!(self, create_event)(&*self.device, &mut event, self.status) };
        Event(self, event)
    }

    /// The null event, on which TensorFlow also calls.
    #[must_use]
    pub fn null_event(&self) -> Event<'_> {
        Event(self, ptr::null_mut())
    }

    /// The null stream, on which TensorFlow also calls.
    #[must_use]
    pub fn null_stream(&self) -> Stream<'_> {
        Stream(self, ptr::null_mut())
    }

    /// Calls `synchronize_all_activity`.
    pub fn synchronize(&self) {
        // SAFETY: an open device and a status.
        unsafe { slot!(self, synchronize_all_activity)(&*self.device, self.status) };
    }

    /// Calls `sync_memcpy_htod`.
    pub fn copy_to_device(&self, target: u64, source: &[u8]) {
        let (from, len) = (source.as_ptr().cast(), source.len());
        // SAFETY: an open device, a struct with its size, as many bytes as are announced and a status.
        unsafe {
            let target = &mut memory(target, len);
            slot!(self, sync_memcpy_htod)(&*self.device, target, from, len as u64, self.status);
        }
    }

    /// Calls `sync_memcpy_dtoh`.
    pub fn copy_to_host(&self, target: &mut [u8], source: u64) {
        let (to, len) = (target.as_mut_ptr().cast(), target.len());
        // SAFETY: the device is open, `target` and the memory at `source` have `len` bytes, and the status is
        // ours.
        unsafe {
            let source = &memory(source, len);
            slot!(self, sync_memcpy_dtoh)(&*self.device, to, source, len as u64, self.status);
        }
    }

    /// Calls `sync_memcpy_dtod`.
    pub fn copy_on_device(&self, target: u64, source: u64, bytes: usize) {
        let (target, source) = (&mut memory(target, bytes), &memory(source, bytes));
        let copy = slot!(self, sync_memcpy_dtod);
        // SAFETY: the device is open, both allocations have `bytes` bytes, and the status is ours.
        unsafe { copy(&*self.device, target, source, bytes as u64, self.status) };
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the device and the status are this value's own and not used again; streams and events
        // borrow from it.
        unsafe {
            if let Some(destroy) = self.fns.destroy_device {
                destroy(&*self.platform, &mut *self.device);
            }
            (self.host.functions.TF_DeleteStatus)(self.status);
        }
    }
}

/// Counts its calls.
unsafe extern "C" fn counting(calls: *mut c_void, _status: *mut TF_Status) {
    // SAFETY: the argument that `Stream::host_callback` passes, which lives for the process.
    unsafe { &*calls.cast::<AtomicU64>() }.fetch_add(1, Ordering::Relaxed);
}

impl Stream<'_> {
    /// Lends a buffer to `body` for asynchronous copies, and waits for them with `block_host_until_done`.
    pub fn copying<R>(&self, buffer: &mut [u8], body: impl FnOnce(&Copying<'_>) -> R) -> R {
        let copying = Copying { stream: self, buffer: buffer.as_mut_ptr(), len: buffer.len() };
        body(&copying)
    }

    /// Calls `memcpy_dtod`.
    pub fn copy_on_device(&self, target: u64, source: u64, bytes: usize) {
        let (device, len) = (self.0, bytes as u64);
        let (target, source) = (&mut memory(target, bytes), &memory(source, bytes));
        let copy = slot!(device, memcpy_dtod);
        // SAFETY: an open device and its stream, structs with their sizes and a status.
        unsafe { copy(&*device.device, self.1, target, source, len, device.status) };
    }

    /// Calls `mem_zero`, `memset` or `memset32`.
    pub fn fill(&self, target: u64, filling: Filling, bytes: usize) {
        let (device, len) = (self.0, bytes as u64);
        let (raw, stream, status) = (&*device.device, self.1, device.status);
        let target = &mut memory(target, bytes);
        // SAFETY: the device is open, the stream is its own, the memory at `target` has `bytes` bytes, and the
        // status is ours.
        unsafe {
            match filling {
                Filling::Zero => slot!(device, mem_zero)(raw, stream, target, len, status),
                Filling::Byte(byte) => {
                    slot!(device, memset)(raw, stream, target, byte, len, status);
                }
                Filling::Word(word) => {
                    slot!(device, memset32)(raw, stream, target, word, len, status);
                }
            }
        }
    }

    /// Calls `create_stream_dependency`.
    pub fn wait_for_stream(&self, other: &Self) {
        let device = self.0;
        let wait = slot!(device, create_stream_dependency);
        // SAFETY: an open device, its streams and a status.
        unsafe { wait(&*device.device, self.1, other.1, device.status) };
    }

    /// Calls `record_event`.
    pub fn record(&self, event: &Event<'_>) {
        let device = self.0;
        let record = slot!(device, record_event);
        // SAFETY: an open device, its stream and event and a status.
        unsafe { record(&*device.device, self.1, event.1, device.status) };
    }

    /// Calls `wait_for_event`.
    pub fn wait(&self, event: &Event<'_>) {
        let device = self.0;
        let wait = slot!(device, wait_for_event);
        // SAFETY: the device is open, the stream and the event are its own, and the status is ours.
        unsafe { wait(&*device.device, self.1, event.1, device.status) };
    }

    /// Calls `host_callback` with a function that counts its calls in `calls`.
    pub fn host_callback(&self, calls: &'static AtomicU64) -> bool {
        let device = self.0;
        let argument = ptr::from_ref(calls).cast_mut().cast();
        let enqueue = slot!(device, host_callback);
        // SAFETY: an open device and its stream, a function of the right type and its argument, which lives
        // for the process.
        unsafe { enqueue(&*device.device, self.1, Some(counting), argument) != 0 }
    }

    /// Calls `block_host_until_done`.
    pub fn synchronize(&self) {
        let device = self.0;
        let block = slot!(device, block_host_until_done);
        // SAFETY: an open device, its stream and a status.
        unsafe { block(&*device.device, self.1, device.status) };
    }

    /// Calls `get_stream_status`.
    pub fn status(&self) {
        let device = self.0;
        // SAFETY: the device is open, the stream is its own, and the status is ours.
        unsafe { slot!(device, get_stream_status)(&*device.device, self.1, device.status) };
    }
}

impl Copying<'_> {
    /// Calls `memcpy_htod` from the whole buffer.
    pub fn to_device(&self, target: u64) {
        let (Stream(device, stream), len) = (self.stream, self.len as u64);
        // SAFETY: an open device and its stream, a struct with its size, as many bytes as are announced,
        // which nobody else uses before this is dropped, and a status.
        unsafe {
            let target = &mut memory(target, self.len);
            let (copy, source) = (slot!(device, memcpy_htod), self.buffer.cast());
            copy(&*device.device, *stream, target, source, len, device.status);
        }
    }

    /// Calls `memcpy_dtoh` to the whole buffer.
    pub fn to_host(&self, source: u64) {
        let (Stream(device, stream), len) = (self.stream, self.len as u64);
        // SAFETY: the device is open, the stream is its own, the buffer and the memory at `source` have
        // `self.len` bytes.
        unsafe {
            let source = &memory(source, self.len);
            let (copy, target) = (slot!(device, memcpy_dtoh), self.buffer.cast());
            copy(&*device.device, *stream, target, source, len, device.status);
        }
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        // What the copies answered is the outcome, and not what this does.
        let device = self.stream.0;
        let block = slot!(device, block_host_until_done);
        // SAFETY: an open device, its stream and a status that is made and deleted here.
        unsafe {
            let status = (device.host.functions.TF_NewStatus)();
            block(&*device.device, self.stream.1, status);
            (device.host.functions.TF_DeleteStatus)(status);
        }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        // SAFETY: null, or made by `create_stream` and destroyed once.
        unsafe { slot!(self.0, destroy_stream)(&*self.0.device, self.1) };
    }
}

impl Event<'_> {
    /// Calls `get_event_status`.
    #[must_use]
    pub fn status(&self) -> SE_EventStatus {
        // SAFETY: an open device and its event.
        unsafe { slot!(self.0, get_event_status)(&*self.0.device, self.1) }
    }

    /// Calls `block_host_for_event`.
    pub fn wait(&self) {
        let device = self.0;
        // SAFETY: an open device, its event and a status.
        unsafe { slot!(device, block_host_for_event)(&*device.device, self.1, device.status) };
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: null, or made by `create_event` and destroyed once.
        unsafe { slot!(self.0, destroy_event)(&*self.0.device, self.1) };
    }
}
