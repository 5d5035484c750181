//! The tables of a device.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use tf_fs_sys::*;

use super::{CallError, CallResult, Library, Status, sized};
use crate::tables;

/// The first device of a plugin; dropping it calls `destroy_device`.
#[derive(Debug)]
pub struct Device {
    /// Its callbacks.
    pub table: SP_StreamExecutor,
    /// The status of the last call that has one.
    pub status: Status,
    platform: Box<SP_Platform>,
    fns: SP_PlatformFns,
    device: Box<SP_Device>,
}

/// A stream; dropping it calls `destroy_stream`.
#[derive(Debug)]
pub struct Stream<'d>(&'d Device, SP_Stream);

/// An event; dropping it calls `destroy_event`.
#[derive(Debug)]
pub struct Event<'d>(&'d Device, SP_Event);

/// Memory of the device; dropping it calls `deallocate`.
#[derive(Debug)]
pub struct Memory<'d> {
    device: &'d Device,
    /// Its address.
    pub address: u64,
}

/// Asynchronous copies from and to a buffer; dropping it waits for them.
#[derive(Debug)]
pub struct Copying<'s> {
    stream: &'s Stream<'s>,
    buffer: *mut u8,
    len: usize,
}

/// Returns device memory as TensorFlow passes it.
fn range(address: u64, size: usize) -> SP_DeviceMemoryBase {
    SP_DeviceMemoryBase {
        opaque: ptr::without_provenance_mut(address as usize),
        size: size as u64,
        ..sized()
    }
}

macro_rules! slot {
    ($device:expr, $name:ident) => {
        $device.table.$name.ok_or(CallError::Missing(tables::STREAM_EXECUTOR.0, stringify!($name)))
    };
}

/// Defines calls of callbacks with a status, with the owner and the arguments between device and status.
macro_rules! callbacks {
    ($life:lifetime, |$own:ident| $device:expr; $($name:ident($($argument:ident: $type:ty),*) = $slot:ident($($value:expr),*);)*) => {$(
        #[doc = concat!("Calls `", stringify!($slot), "`.")]
        pub fn $name(&self $(, $argument: $type)*) -> CallResult<$life> {
            let $own = self;
            let device = $device;
            let call = slot!(device, $slot)?;
            // SAFETY: an open device and what it has made, structs with their sizes, a status, and host memory that is as
            // long as is said: borrowed for the call, or until the `Copying` that it is from has waited for the copies.
            device.status.call(|status| unsafe { call(&*device.device, $($value,)* status) })
        }
    )*};
}

impl Device {
    /// Calls `SE_InitPlugin`, and opens the first device.
    pub fn load(library: Library) -> Result<Self, String> {
        let named = |what: &str, outcome: CallResult<'_>| {
            outcome.map_err(|why| format!("`{what}` failed: {why}"))
        };
        let init = library.symbol(c"SE_InitPlugin");
        let init = init.ok_or("the plugin exports no SE_InitPlugin")?;
        // SAFETY: the type that the header gives to the function of this name.
        let init: SE_InitPluginFn = unsafe { transmute(init) };
        let status = Status::new()?;
        let mut platform = Box::new(sized::<SP_Platform>());
        let mut fns = sized::<SP_PlatformFns>();
        let mut params = SE_PlatformRegistrationParams {
            major_version: SE_MAJOR,
            minor_version: SE_MINOR,
            patch_version: SE_PATCH,
            platform: &raw mut *platform,
            platform_fns: &raw mut fns,
            ..sized()
        };
        // SAFETY: structs with their sizes, and a status.
        named("SE_InitPlugin", status.call(|status| unsafe { init(&raw mut params, status) }))?;
        let mut table = sized::<SP_StreamExecutor>();
        let mut params =
            SE_CreateStreamExecutorParams { stream_executor: &raw mut table, ..sized() };
        let platform_at = &raw const *platform;
        let create = fns.create_stream_executor.ok_or("there is no `create_stream_executor`")?;
        // SAFETY: the platform as the plugin has filled it, structs with their sizes and a status.
        let outcome = status.call(|status| unsafe { create(platform_at, &raw mut params, status) });
        named("create_stream_executor", outcome)?;
        let mut count: c_int = 0;
        let get = fns.get_device_count.ok_or("there is no `get_device_count`")?;
        // SAFETY: the platform as the plugin has filled it, a place for the answer and a status.
        let outcome = status.call(|status| unsafe { get(platform_at, &raw mut count, status) });
        named("get_device_count", outcome)?;
        if count < 1 {
            return Err("the plugin finds no device on this machine; `cargo tf-plugin check` shows what it says of that"
                .to_owned());
        }
        let mut device = Box::new(sized::<SP_Device>());
        let mut params = SE_CreateDeviceParams { device: &raw mut *device, ..sized() };
        let create = fns.create_device.ok_or("there is no `create_device`")?;
        // SAFETY: the platform as the plugin has filled it, structs with their sizes and a status.
        let outcome = status.call(|status| unsafe { create(platform_at, &raw mut params, status) });
        named("create_device", outcome)?;
        Ok(Self { table, status, platform, fns, device })
    }

    callbacks! { '_, |own| own;
        synchronize() = synchronize_all_activity();
        copy_to_device(target: u64, source: &[u8]) =
            sync_memcpy_htod(&mut range(target, source.len()), source.as_ptr().cast(), source.len() as u64);
        copy_to_host(target: &mut [u8], source: u64) =
            sync_memcpy_dtoh(target.as_mut_ptr().cast(), &range(source, target.len()), target.len() as u64);
        copy_on_device(target: u64, source: u64, bytes: usize) =
            sync_memcpy_dtod(&mut range(target, bytes), &range(source, bytes), bytes as u64);
    }

    /// Calls `allocate`; returns the address, or 0.
    pub fn allocate_raw(&self, size: usize) -> CallResult<'_, u64> {
        let allocate = slot!(self, allocate)?;
        let mut answer = range(0, 0);
        // SAFETY: an open device, and a place for the answer.
        unsafe { allocate(&*self.device, size as u64, 0, &raw mut answer) };
        Ok(answer.opaque.addr() as u64)
    }

    /// Calls `allocate`.
    pub fn allocate(&self, size: usize) -> CallResult<'_, Memory<'_>> {
        match self.allocate_raw(size)? {
            0 => Err(CallError::Wrong(format!(
                "`allocate` of {} returns null: there is no such memory",
                crate::bench::bytes(size as u64)
            ))),
            address => Ok(Memory { device: self, address }),
        }
    }

    /// Calls `deallocate`, without a size, as TensorFlow does.
    pub fn deallocate(&self, address: u64) -> CallResult<'_> {
        let deallocate = slot!(self, deallocate)?;
        // SAFETY: an open device and an address.
        unsafe { deallocate(&*self.device, &mut range(address, 0)) };
        Ok(())
    }

    /// Calls `host_memory_allocate` and `host_memory_deallocate`.
    pub fn host_memory(&self, size: usize) -> CallResult<'_> {
        let allocate = slot!(self, host_memory_allocate)?;
        let deallocate = slot!(self, host_memory_deallocate)?;
        // SAFETY: an open device, and what it has allocated, for the last time.
        unsafe {
            let memory = allocate(&*self.device, size as u64);
            if memory.is_null() {
                return Err(CallError::Wrong("it returns null".to_owned()));
            }
            deallocate(&*self.device, memory);
        }
        Ok(())
    }

    /// Calls `get_allocator_stats`.
    pub fn allocator_stats(&self) -> CallResult<'_, SP_AllocatorStats> {
        let get = slot!(self, get_allocator_stats)?;
        let mut stats = sized::<SP_AllocatorStats>();
        // SAFETY: an open device and a place for the answer.
        match unsafe { get(&*self.device, &raw mut stats) } {
            0 => Err(CallError::Wrong("it returns false".to_owned())),
            _ => Ok(stats),
        }
    }

    /// Calls `device_memory_usage`; returns free and total memory in bytes.
    pub fn memory_usage(&self) -> CallResult<'_, [i64; 2]> {
        let get = slot!(self, device_memory_usage)?;
        let [mut free, mut total] = [-1; 2];
        // SAFETY: an open device and places for the answers.
        match unsafe { get(&*self.device, &raw mut free, &raw mut total) } {
            0 => Err(CallError::Wrong("it returns false".to_owned())),
            _ => Ok([free, total]),
        }
    }

    /// Calls `create_stream`.
    pub fn stream(&self) -> CallResult<'_, Stream<'_>> {
        let create = slot!(self, create_stream)?;
        let mut stream = ptr::null_mut();
        // SAFETY: an open device, a place for the answer and a status.
        self.status.call(|status| unsafe { create(&*self.device, &raw mut stream, status) })?;
        Ok(Stream(self, stream))
    }

    /// Calls `create_event`.
    pub fn event(&self) -> CallResult<'_, Event<'_>> {
        let create = slot!(self, create_event)?;
        let mut event = ptr::null_mut();
        // SAFETY: an open device, a place for the answer and a status.
        self.status.call(|status| unsafe { create(&*self.device, &raw mut event, status) })?;
        Ok(Event(self, event))
    }

    /// Returns the null event, which TensorFlow also passes.
    pub fn null_event(&self) -> Event<'_> {
        Event(self, ptr::null_mut())
    }

    /// Returns the null stream, which TensorFlow also passes.
    pub fn null_stream(&self) -> Stream<'_> {
        Stream(self, ptr::null_mut())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(destroy) = self.fns.destroy_device {
            // SAFETY: the platform and its device, for the last time; streams, events and memory borrow it.
            unsafe { destroy(&*self.platform, &raw mut *self.device) };
        }
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // A device that allocates also has this callback; otherwise the memory lives until the process ends.
        let _ = self.device.deallocate(self.address);
    }
}

unsafe extern "C" fn counting(calls: *mut c_void, _status: *mut TF_Status) {
    // SAFETY: the argument that `Stream::host_callback` passes, which lives for the process.
    unsafe { &*calls.cast::<AtomicU64>() }.fetch_add(1, Ordering::Release);
}

impl<'d> Stream<'d> {
    callbacks! { 'd, |own| own.0;
        synchronize() = block_host_until_done(own.1);
        status() = get_stream_status(own.1);
        copy_on_device(target: u64, source: u64, bytes: usize) =
            memcpy_dtod(own.1, &mut range(target, bytes), &range(source, bytes), bytes as u64);
        zero(target: u64, bytes: usize) = mem_zero(own.1, &mut range(target, bytes), bytes as u64);
        set(target: u64, byte: u8, bytes: usize) =
            memset(own.1, &mut range(target, bytes), byte, bytes as u64);
        set_words(target: u64, word: u32, bytes: usize) =
            memset32(own.1, &mut range(target, bytes), word, bytes as u64);
        wait_for_stream(other: &Self) = create_stream_dependency(own.1, other.1);
        record(event: &Event<'_>) = record_event(own.1, event.1);
        wait(event: &Event<'_>) = wait_for_event(own.1, event.1);
    }

    /// Waits until all work is done, as TensorFlow does.
    pub fn finish(&self) -> CallResult<'d> {
        if self.0.table.block_host_until_done.is_some() {
            return self.synchronize();
        }
        let event = self.0.event()?;
        self.record(&event)?;
        event.wait()
    }

    /// Lends a buffer to `body` for asynchronous copies, and waits for them with [`finish`](Self::finish).
    pub fn copying<R>(&self, buffer: &mut [u8], body: impl FnOnce(&Copying<'_>) -> R) -> R {
        let copying = Copying { stream: self, buffer: buffer.as_mut_ptr(), len: buffer.len() };
        body(&copying)
    }

    /// Calls `host_callback` with a function that counts its calls in `calls`.
    pub fn host_callback(&self, calls: &'static AtomicU64) -> CallResult<'d> {
        let device = self.0;
        let argument = ptr::from_ref(calls).cast_mut().cast();
        let enqueue = slot!(device, host_callback)?;
        // SAFETY: an open device and its stream, a function of the right type and its argument, which lives
        // for the process.
        match unsafe { enqueue(&*device.device, self.1, Some(counting), argument) } {
            0 => Err(CallError::Wrong("it returns false".to_owned())),
            _ => Ok(()),
        }
    }
}

impl Copying<'_> {
    callbacks! { '_, |own| own.stream.0;
        to_device(target: u64) =
            memcpy_htod(own.stream.1, &mut range(target, own.len), own.buffer.cast(), own.len as u64);
        to_host(source: u64) =
            memcpy_dtoh(own.stream.1, own.buffer.cast(), &range(source, own.len), own.len as u64);
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        // With a new status: the result of the copies must not replace that of other calls.
        let Stream(device, stream) = self.stream;
        let (Some(block), Ok(status)) = (device.table.block_host_until_done, Status::new()) else {
            let _ = self.stream.finish();
            return;
        };
        // SAFETY: an open device, its stream and a status.
        let _ = status.call(|status| unsafe { block(&*device.device, *stream, status) });
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.table.destroy_stream {
            // SAFETY: null, or made by `create_stream` and destroyed once.
            unsafe { destroy(&*self.0.device, self.1) };
        }
    }
}

impl<'d> Event<'d> {
    callbacks! { 'd, |own| own.0;
        wait() = block_host_for_event(own.1);
    }

    /// Calls `get_event_status`.
    pub fn status(&self) -> CallResult<'d, SE_EventStatus> {
        let get = slot!(self.0, get_event_status)?;
        // SAFETY: an open device and its event.
        Ok(unsafe { get(&*self.0.device, self.1) })
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.table.destroy_event {
            // SAFETY: null, or made by `create_event` and destroyed once.
            unsafe { destroy(&*self.0.device, self.1) };
        }
    }
}
