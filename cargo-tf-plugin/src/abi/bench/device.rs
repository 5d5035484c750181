//! Devices: the callbacks of `SP_StreamExecutor`, called as TensorFlow calls them, and the rows.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cargo_tf_plugin::bench::{Job, bytes};
use tf_fs_sys::*;

use super::super::load::Library;
use super::super::standins::Status;
use super::{Result, Rows, Why, answered};

/// Operations in a sample.
const ANY: u64 = 1 << 20;

/// Operations in a sample that are all on their way at once.
const QUEUED: u64 = 256;

const SIZES: [usize; 4] = [4 << 10, 256 << 10, 4 << 20, 32 << 20];

/// Measures the first device.
pub(super) fn run(library: &Library, job: &Job) -> Result<()> {
    let device = Device::load(library)?;
    let rows = &mut Rows::new(job);
    rows.group("Memory");
    device.memory(rows)?;
    rows.group("Copies that wait");
    device.waiting_copies(rows)?;
    rows.group("Copies on a stream");
    device.enqueued_copies(rows)?;
    rows.group("Streams and events");
    device.streams(rows)
}

/// The first device of a plugin, which is there for the rest of the process.
struct Device {
    table: SP_StreamExecutor,
    device: &'static SP_Device,
}

macro_rules! slot {
    ($device:expr, $name:ident) => {
        $device
            .table
            .$name
            .ok_or_else(|| Why::Absent(format!("not implemented: `{}` is null", stringify!($name))))
    };
}

fn with_status(call: impl FnOnce(*mut TF_Status)) -> Result<()> {
    let mut status = Status::new();
    call((&raw mut status).cast());
    answered(&mut status)
}

/// Memory of the device as TensorFlow passes it.
fn range(address: *mut c_void, size: usize) -> SP_DeviceMemoryBase {
    SP_DeviceMemoryBase {
        struct_size: SP_DEVICE_MEMORY_BASE_STRUCT_SIZE,
        opaque: address,
        size: size as u64,
        ..SP_DeviceMemoryBase::default()
    }
}

fn repeated(times: u64, mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        call()?;
    }
    Ok(start.elapsed())
}

impl Device {
    fn load(library: &Library) -> Result<Self> {
        let failed = |why: &str| Why::Failed(why.to_owned());
        let said = |what: &str, done: Result<()>| {
            done.map_err(|why| Why::Failed(format!("`{what}` has answered {why}")))
        };
        let init = library.symbol(c"SE_InitPlugin");
        let init = init.ok_or_else(|| failed("the plugin exports no SE_InitPlugin"))?;
        // SAFETY: the type that the header gives to the function of this name.
        let init: SE_InitPluginFn = unsafe { transmute(init) };
        let platform = Box::leak(Box::new(SP_Platform {
            struct_size: SP_PLATFORM_STRUCT_SIZE,
            ..SP_Platform::default()
        }));
        let mut fns = SP_PlatformFns {
            struct_size: SP_PLATFORM_FNS_STRUCT_SIZE,
            ..SP_PlatformFns::default()
        };
        let mut params = SE_PlatformRegistrationParams {
            struct_size: SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE,
            major_version: SE_MAJOR,
            minor_version: SE_MINOR,
            patch_version: SE_PATCH,
            platform: &raw mut *platform,
            platform_fns: &raw mut fns,
            ..SE_PlatformRegistrationParams::default()
        };
        // SAFETY: structs with their sizes, and a status.
        said("SE_InitPlugin", with_status(|status| unsafe { init(&raw mut params, status) }))?;
        let mut table = SP_StreamExecutor {
            struct_size: SP_STREAMEXECUTOR_STRUCT_SIZE,
            ..SP_StreamExecutor::default()
        };
        let mut params = SE_CreateStreamExecutorParams {
            struct_size: SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE,
            stream_executor: &raw mut table,
            ..SE_CreateStreamExecutorParams::default()
        };
        let create = fns.create_stream_executor;
        let create = create.ok_or_else(|| failed("there is no `create_stream_executor`"))?;
        // SAFETY: the platform as the plugin has filled it, structs with their sizes and a status.
        let done = with_status(|status| unsafe { create(platform, &raw mut params, status) });
        said("create_stream_executor", done)?;
        let mut count = 0;
        let get = fns.get_device_count.ok_or_else(|| failed("there is no `get_device_count`"))?;
        // SAFETY: `platform` is the one that the plugin filled, `count` a place for the number, and `status` a
        // status.
        let done = with_status(|status| unsafe { get(platform, &raw mut count, status) });
        said("get_device_count", done)?;
        if count < 1 {
            return Err(failed(
                "the plugin finds no device on this machine; `cargo tf-plugin check` shows what it says of that",
            ));
        }
        let device = Box::leak(Box::new(SP_Device {
            struct_size: SP_DEVICE_STRUCT_SIZE,
            ..SP_Device::default()
        }));
        let mut params = SE_CreateDeviceParams {
            struct_size: SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE,
            device: &raw mut *device,
            ..SE_CreateDeviceParams::default()
        };
        let create = fns.create_device.ok_or_else(|| failed("there is no `create_device`"))?;
        // SAFETY: `platform` is the one that the plugin filled, `params` names a device struct with its size,
        // and `status` is a status.
        let done = with_status(|status| unsafe { create(platform, &raw mut params, status) });
        said("create_device", done)?;
        Ok(Self { table, device })
    }

    fn allocate(&self, size: usize) -> Result<Memory<'_>> {
        let allocate = slot!(self, allocate)?;
        let mut memory = range(ptr::null_mut(), 0);
        // SAFETY: a device, and a place for the answer.
        unsafe { allocate(self.device, size as u64, 0, &mut memory) };
        if memory.opaque.is_null() {
            return Err(Why::Failed(format!(
                "`allocate` of {} answers null: there is no such memory",
                bytes(size as u64)
            )));
        }
        Ok(Memory(self, memory.opaque, size))
    }

    fn stream(&self) -> Result<Stream<'_>> {
        let create = slot!(self, create_stream)?;
        let mut stream = ptr::null_mut();
        // SAFETY: a device, a place for the answer and a status.
        with_status(|status| unsafe { create(self.device, &mut stream, status) })?;
        Ok(Stream(self, stream))
    }

    fn event(&self) -> Result<Event<'_>> {
        let create = slot!(self, create_event)?;
        let mut event = ptr::null_mut();
        // SAFETY: `self.device` is an open device, `event` a place for the handle, and `status` is ours.
        with_status(|status| unsafe { create(self.device, &mut event, status) })?;
        Ok(Event(self, event))
    }

    fn memory(&self, rows: &Rows<'_>) -> Result<()> {
        for size in [256, 64 << 10, 1 << 20, 64 << 20] {
            rows.row(format!("allocate and deallocate {}", bytes(size as u64)), None, || {
                slot!(self, deallocate)?;
                rows.time(ANY, |times| repeated(times, || self.allocate(size).map(drop)))
            })?;
        }
        rows.row("host_memory_allocate and _deallocate 1 MiB", None, || {
            let allocate = slot!(self, host_memory_allocate)?;
            let deallocate = slot!(self, host_memory_deallocate)?;
            rows.time(ANY, |times| {
                repeated(times, || {
                    // SAFETY: a device, and what it has allocated, for the last time.
                    unsafe {
                        let memory = allocate(self.device, 1 << 20);
                        if memory.is_null() {
                            return Err(Why::Failed("it answers null".to_owned()));
                        }
                        deallocate(self.device, memory);
                    }
                    Ok(())
                })
            })
        })?;
        rows.row("device_memory_usage", None, || {
            let usage = slot!(self, device_memory_usage)?;
            rows.time(ANY, |times| {
                repeated(times, || {
                    let (mut free, mut total) = (0, 0);
                    // SAFETY: a device and places for the answers.
                    match unsafe { usage(self.device, &mut free, &mut total) } {
                        0 => Err(Why::Failed("it answers false".to_owned())),
                        _ => Ok(()),
                    }
                })
            })
        })
    }

    fn waiting_copies(&self, rows: &Rows<'_>) -> Result<()> {
        for size in SIZES {
            let named = |op: &str| format!("{op} {}", bytes(size as u64));
            rows.row(named("sync_memcpy_htod"), Some(size as u64), || {
                let copy = slot!(self, sync_memcpy_htod)?;
                let (memory, host) = (self.allocate(size)?, vec![7_u8; size]);
                let mut to = memory.range();
                rows.time(ANY, |times| {
                    repeated(times, || {
                        // SAFETY: a device, its memory, as many bytes as are announced and a status.
                        with_status(|status| unsafe {
                            copy(self.device, &mut to, host.as_ptr().cast(), size as u64, status);
                        })
                    })
                })
            })?;
            rows.row(named("sync_memcpy_dtoh"), Some(size as u64), || {
                let copy = slot!(self, sync_memcpy_dtoh)?;
                let (memory, mut host) = (self.filled(size)?, vec![0_u8; size]);
                let from = memory.range();
                rows.time(ANY, |times| {
                    repeated(times, || {
                        // SAFETY: `self.device` is open, `host` and the memory behind `from` have `size` bytes,
                        // and `status` is a status.
                        with_status(|status| unsafe {
                            copy(self.device, host.as_mut_ptr().cast(), &from, size as u64, status);
                        })
                    })
                })
            })?;
            rows.row(named("sync_memcpy_dtod"), Some(size as u64), || {
                let copy = slot!(self, sync_memcpy_dtod)?;
                let (from, to) = (self.filled(size)?, self.allocate(size)?);
                let (from, mut to) = (from.range(), to.range());
                rows.time(ANY, |times| {
                    repeated(times, || {
                        // SAFETY: `self.device` is open, `from` and `to` are allocations of `size` bytes, and
                        // `status` is a status.
                        with_status(|status| unsafe {
                            copy(self.device, &mut to, &from, size as u64, status);
                        })
                    })
                })
            })?;
        }
        Ok(())
    }

    /// Memory with something in it: pages that were never written to are read faster than they are.
    fn filled(&self, size: usize) -> Result<Memory<'_>> {
        let memory = self.allocate(size)?;
        let copy = slot!(self, sync_memcpy_htod)?;
        let host = vec![7_u8; size];
        let mut to = memory.range();
        // SAFETY: a device, its memory, as many bytes as are announced and a status.
        with_status(|status| unsafe {
            copy(self.device, &mut to, host.as_ptr().cast(), size as u64, status);
        })?;
        Ok(memory)
    }

    fn enqueued_copies(&self, rows: &Rows<'_>) -> Result<()> {
        // What gets done in a time, and then how long one takes.
        let each = SIZES.map(|size| (size, false)).into_iter().chain([(SIZES[0], true)]);
        for (size, alone) in each {
            let then = if alone { ", then block_host_until_done" } else { "" };
            let named = |op: &str| format!("{op} {}{then}", bytes(size as u64));
            rows.row(named("memcpy_htod"), Some(size as u64), || {
                let copy = slot!(self, memcpy_htod)?;
                let (memory, host) = (self.allocate(size)?, vec![7_u8; size]);
                let (stream, mut to) = (self.stream()?, memory.range());
                rows.time(QUEUED, |times| {
                    stream.waited(times, alone, || {
                        // SAFETY: a device with its stream and its memory, as many bytes as are announced, which are
                        // there until the stream is waited for, and a status.
                        with_status(|status| unsafe {
                            copy(
                                self.device,
                                stream.1,
                                &mut to,
                                host.as_ptr().cast(),
                                size as u64,
                                status,
                            );
                        })
                    })
                })
            })?;
            rows.row(named("memcpy_dtoh"), Some(size as u64), || {
                let copy = slot!(self, memcpy_dtoh)?;
                let (memory, mut host) = (self.filled(size)?, vec![0_u8; size]);
                let (stream, from) = (self.stream()?, memory.range());
                rows.time(QUEUED, |times| {
                    stream.waited(times, alone, || {
                        // SAFETY: `self.device` is open, the stream is its own and waited for before `host` is
                        // dropped, and both sides have `size` bytes.
                        with_status(|status| unsafe {
                            copy(
                                self.device,
                                stream.1,
                                host.as_mut_ptr().cast(),
                                &from,
                                size as u64,
                                status,
                            );
                        })
                    })
                })
            })?;
            rows.row(named("memcpy_dtod"), Some(size as u64), || {
                let copy = slot!(self, memcpy_dtod)?;
                let (from, to) = (self.filled(size)?, self.allocate(size)?);
                let (stream, from, mut to) = (self.stream()?, from.range(), to.range());
                rows.time(QUEUED, |times| {
                    stream.waited(times, alone, || {
                        // SAFETY: `self.device` is open, the stream is its own, and `from` and `to` are
                        // allocations of `size` bytes.
                        with_status(|status| unsafe {
                            copy(self.device, stream.1, &mut to, &from, size as u64, status);
                        })
                    })
                })
            })?;
            rows.row(named("mem_zero"), Some(size as u64), || {
                let zero = slot!(self, mem_zero)?;
                let (memory, stream) = (self.allocate(size)?, self.stream()?);
                let mut at = memory.range();
                rows.time(QUEUED, |times| {
                    stream.waited(times, alone, || {
                        // SAFETY: `self.device` is open, the stream is its own, and `at` is an allocation of
                        // `size` bytes.
                        with_status(|status| unsafe {
                            zero(self.device, stream.1, &mut at, size as u64, status);
                        })
                    })
                })
            })?;
        }
        Ok(())
    }

    fn streams(&self, rows: &Rows<'_>) -> Result<()> {
        rows.row("create_stream and destroy_stream", None, || {
            rows.time(ANY, |times| repeated(times, || self.stream().map(drop)))
        })?;
        rows.row("create_event and destroy_event", None, || {
            rows.time(ANY, |times| repeated(times, || self.event().map(drop)))
        })?;
        rows.row("record_event, then block_host_for_event", None, || {
            let block = slot!(self, block_host_for_event)?;
            let (stream, event) = (self.stream()?, self.event()?);
            rows.time(ANY, |times| {
                repeated(times, || {
                    stream.record(&event)?;
                    // SAFETY: a device, its event and a status.
                    with_status(|status| unsafe { block(self.device, event.1, status) })
                })
            })
        })?;
        rows.row("get_event_status, of a complete event", None, || {
            let get = slot!(self, get_event_status)?;
            let (stream, event) = (self.stream()?, self.event()?);
            stream.record(&event)?;
            stream.wait()?;
            rows.time(ANY, |times| {
                repeated(times, || {
                    // SAFETY: a device and its event.
                    match unsafe { get(self.device, event.1) } {
                        SE_EVENT_COMPLETE => Ok(()),
                        other => {
                            Err(Why::Failed(format!("it answers {other}, not SE_EVENT_COMPLETE")))
                        }
                    }
                })
            })
        })?;
        rows.row("a stream waits for another's event", None, || {
            let wait = slot!(self, wait_for_event)?;
            let (first, second, event) = (self.stream()?, self.stream()?, self.event()?);
            rows.time(QUEUED, |times| {
                second.waited(times, false, || {
                    first.record(&event)?;
                    // SAFETY: a device, its stream, its event and a status.
                    with_status(|status| unsafe { wait(self.device, second.1, event.1, status) })
                })
            })
        })?;
        rows.row("create_stream_dependency", None, || {
            let depend = slot!(self, create_stream_dependency)?;
            let (first, second) = (self.stream()?, self.stream()?);
            rows.time(QUEUED, |times| {
                second.waited(times, false, || {
                    // SAFETY: a device, its streams and a status.
                    with_status(|status| unsafe { depend(self.device, second.1, first.1, status) })
                })
            })
        })?;
        rows.row("host_callback, then block_host_until_done", None, || {
            let enqueue = slot!(self, host_callback)?;
            let stream = self.stream()?;
            let calls: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
            let mut wanted = 0;
            rows.time(QUEUED, |times| {
                let took = repeated(times, || {
                    let argument = ptr::from_ref(calls).cast_mut().cast();
                    // SAFETY: a device and its stream, a function of the right type and its argument, which lives for
                    // the process.
                    let taken = unsafe { enqueue(self.device, stream.1, Some(count), argument) };
                    if taken == 0 {
                        return Err(Why::Failed("it answers false".to_owned()));
                    }
                    stream.wait()
                })?;
                wanted += times;
                match calls.load(Ordering::Acquire) {
                    called if called == wanted => Ok(took),
                    called => {
                        Err(Why::Failed(format!("{called} of {wanted} callbacks were called")))
                    }
                }
            })
        })?;
        rows.row("block_host_until_done, of an idle stream", None, || {
            slot!(self, block_host_until_done)?;
            let stream = self.stream()?;
            rows.time(ANY, |times| repeated(times, || stream.wait()))
        })?;
        rows.row("synchronize_all_activity, of an idle device", None, || {
            let synchronize = slot!(self, synchronize_all_activity)?;
            let _stream = self.stream()?;
            rows.time(ANY, |times| {
                repeated(times, || {
                    // SAFETY: a device and a status.
                    with_status(|status| unsafe { synchronize(self.device, status) })
                })
            })
        })
    }
}

/// Counts its calls.
unsafe extern "C" fn count(calls: *mut c_void, _status: *mut TF_Status) {
    // SAFETY: the argument that was passed with this function, which lives for the process.
    unsafe { &*calls.cast::<AtomicU64>() }.fetch_add(1, Ordering::Release);
}

struct Memory<'d>(&'d Device, *mut c_void, usize);

impl Memory<'_> {
    fn range(&self) -> SP_DeviceMemoryBase {
        range(self.1, self.2)
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if let Some(deallocate) = self.0.table.deallocate {
            // SAFETY: a device and what it has allocated, for the last time; TensorFlow passes no size either.
            unsafe { deallocate(self.0.device, &mut range(self.1, 0)) };
        }
    }
}

struct Stream<'d>(&'d Device, SP_Stream);

impl Stream<'_> {
    fn record(&self, event: &Event<'_>) -> Result<()> {
        let record = slot!(self.0, record_event)?;
        // SAFETY: a device, its stream, its event and a status.
        with_status(|status| unsafe { record(self.0.device, self.1, event.1, status) })
    }

    /// Waits until all is done, as TensorFlow does.
    fn wait(&self) -> Result<()> {
        if let Some(block) = self.0.table.block_host_until_done {
            // SAFETY: a device, its stream and a status.
            return with_status(|status| unsafe { block(self.0.device, self.1, status) });
        }
        let event = self.0.event()?;
        self.record(&event)?;
        let block = slot!(self.0, block_host_for_event)?;
        // SAFETY: a device, its event and a status.
        with_status(|status| unsafe { block(self.0.device, event.1, status) })
    }

    /// How long it takes to enqueue something so often and then to wait for all of it; `alone` to wait for each.
    fn waited(
        &self,
        times: u64,
        alone: bool,
        mut enqueue: impl FnMut() -> Result<()>,
    ) -> Result<Duration> {
        let start = Instant::now();
        let mut enqueued = Ok(());
        for _ in 0..times {
            enqueued = enqueue();
            if enqueued.is_err() {
                break;
            }
            if alone {
                self.wait()?;
            }
        }
        // Also after an error: what is on its way uses memory that is going to be freed.
        if !alone || enqueued.is_err() {
            self.wait()?;
        }
        enqueued?;
        Ok(start.elapsed())
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.table.destroy_stream {
            // SAFETY: a device and its stream, for the last time.
            unsafe { destroy(self.0.device, self.1) };
        }
    }
}

struct Event<'d>(&'d Device, SP_Event);

impl Drop for Event<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.table.destroy_event {
            // SAFETY: a device and its event, for the last time.
            unsafe { destroy(self.0.device, self.1) };
        }
    }
}
