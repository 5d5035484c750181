//! The host's side of the C boundary.

use crate::abi::status::{Status, install};
use crate::violations::Log;
use crate::violations::Violation;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicI64, Ordering};
use se_plugin::__private::testing::pretended;
use se_plugin::__private::testing::versions::{self, Versioned};
use se_plugin::__private::{Loads, init_plugin};
use se_plugin::{DevicePtr, Error, Platform, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_sys::{
    SE_CreateDeviceFnsParams, SE_CreateDeviceParams, SE_CreateStreamExecutorParams,
    SE_PlatformRegistrationParams, SP_AllocatorStats, SP_Device, SP_DeviceFns, SP_DeviceMemoryBase,
    SP_Platform, SP_PlatformFns, SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE, SP_Stream,
    SP_StreamExecutor, SP_StreamExecutorWithStreamOptions, SP_StreamOptions, SP_TimerFns,
    TF_Status,
};

/// Calls a callback of the table with a fresh status.
macro_rules! call {
    ($device:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let device: &TestDevice<'_> = $device;
        let callback = device.host.executor.$name.expect("every callback is there");
        // SAFETY: arguments as the header wants them; null handles stand for those that failed.
        device.host.status(stringify!($name), |status| unsafe {
            callback(&device.device, $($argument,)* status);
        })
    }};
}

mod graph;
mod handles;
mod profiler;

pub use graph::{GraphHost, GraphSizes};
pub use handles::{TestEvent, TestStream, TestTimer};
pub use profiler::{ProfilerHost, ProfilerSizes};

/// What the bytes behind a struct hold.
const GUARD: u8 = 0xa5;
/// How many of them there are, beyond the largest struct.
const GUARDS: usize = 128;

/// A struct on memory of the host's, `struct_size` bytes of it.
struct Guarded<T> {
    words: Vec<u64>,
    size: usize,
    record: PhantomData<T>,
}

impl<T: Versioned> Guarded<T> {
    fn new(size: usize) -> Self {
        let words = (size.max(size_of::<T>()) + GUARDS) / 8;
        let mut new =
            Self { words: vec![u64::from_ne_bytes([GUARD; 8]); words], size, record: PhantomData };
        new.bytes()[..size].fill(0);
        new.words[0] = size as u64;
        new
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = self.words.len() * 8;
        // SAFETY: all of the vector, as bytes.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), len) }
    }

    fn as_mut_ptr(&mut self) -> *mut T {
        self.words.as_mut_ptr().cast()
    }

    /// What is in it, after a look at the bytes behind it.
    fn take(&mut self, log: &Log, op: &'static str) -> Result<T> {
        let size = self.size.max(8);
        if self.bytes()[size..].iter().any(|&byte| byte != GUARD) {
            log.add(
                op,
                T::NAME.as_bytes(),
                format!("the plugin wrote behind the {size} bytes of the struct: over TensorFlow's stack"),
            );
        }
        // SAFETY: the memory is a struct of `struct_size` bytes; were that too large now, `read` would
        // still stay within the fields of `T`, which all lie in the memory.
        unsafe { versions::read(self.as_mut_ptr()) }.map_err(|_| {
            let name = T::NAME;
            let constant = struct_size_constant(name);
            Error::failed_precondition(format!(
                "Expected initialized `{name}` structure with `struct_size` field set to {constant}. \
                 Found `struct_size` = 0."
            ))
        })
    }
}

fn struct_size_constant(name: &str) -> String {
    let name = match name {
        "SP_StreamExecutor" => "SP_STREAMEXECUTOR",
        "SP_PlatformFns" => "SP_PLATFORM_FNS",
        "SP_TimerFns" => "SP_TIMER_FNS",
        "SP_DeviceFns" => "SP_DEVICE_FNS",
        "SP_Platform" => "SP_PLATFORM",
        "SP_Device" => "SP_DEVICE",
        other => other,
    };
    format!("{name}_STRUCT_SIZE")
}

/// The sizes and the version that the host shows.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of `SE_PlatformRegistrationParams`.
    pub params: usize,
    /// Of `SP_Platform`.
    pub platform: usize,
    /// Of `SP_PlatformFns`.
    pub platform_fns: usize,
    /// Of `SP_DeviceFns`.
    pub device_fns: usize,
    /// Of `SP_StreamExecutor`.
    pub stream_executor: usize,
    /// Of `SP_TimerFns`.
    pub timer_fns: usize,
    /// Of `SP_Device`.
    pub device: usize,
    /// The major version.
    pub major: i32,
    /// Whether the error of a copy is an exception, as in TensorFlow from 2.17 on; by default it would end the
    /// process.
    pub takes_errors: bool,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            params: SE_PlatformRegistrationParams::STRUCT_SIZE,
            platform: SP_Platform::STRUCT_SIZE,
            platform_fns: SP_PlatformFns::STRUCT_SIZE,
            device_fns: SP_DeviceFns::STRUCT_SIZE,
            stream_executor: SP_StreamExecutor::STRUCT_SIZE,
            timer_fns: SP_TimerFns::STRUCT_SIZE,
            device: SP_Device::STRUCT_SIZE,
            major: tf_fs_sys::SE_MAJOR,
            takes_errors: false,
        }
    }
}

type CreateStreamWithOptions = Option<
    unsafe extern "C" fn(*const SP_Device, *const SP_StreamOptions, *mut SP_Stream, *mut TF_Status),
>;

/// A host into which one platform is loaded.
#[derive(Debug)]
pub struct Host {
    log: Arc<Log>,
    sizes: Sizes,
    platform: SP_Platform,
    fns: SP_PlatformFns,
    device_fns: SP_DeviceFns,
    executor: SP_StreamExecutor,
    create_stream_with_options: CreateStreamWithOptions,
    timer_fns: SP_TimerFns,
    destroy_platform: Option<unsafe extern "C" fn(*mut SP_Platform)>,
    /// What is created less what is destroyed.
    live: AtomicI64,
}

// SAFETY: the pointers in the structs are the plugin's, whose callbacks are called from any thread.
unsafe impl Send for Host {}
// SAFETY: the header allows any thread to call the plugin's callbacks, several at once; the structs do not
// change.
unsafe impl Sync for Host {}

impl Host {
    /// Loads the platform as TensorFlow does.
    ///
    /// # Errors
    /// Those with which TensorFlow would abort, in its words.
    pub fn load<P: Platform>() -> Result<Self> {
        Self::load_with::<P>(Sizes::default(), &Loads::new())
    }

    /// As [`load`](Self::load), as a host of another version, or for a repeated time.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn load_with<P: Platform>(sizes: Sizes, loads: &Loads) -> Result<Self> {
        install();
        let log = Arc::new(Log::default());
        let mut platform = Guarded::<SP_Platform>::new(sizes.platform);
        let mut fns = Guarded::<SP_PlatformFns>::new(sizes.platform_fns);
        let mut params = Guarded::<SE_PlatformRegistrationParams>::new(sizes.params);
        let whole = SE_PlatformRegistrationParams {
            major_version: sizes.major,
            minor_version: tf_fs_sys::SE_MINOR,
            patch_version: tf_fs_sys::SE_PATCH,
            platform: platform.as_mut_ptr(),
            platform_fns: fns.as_mut_ptr(),
            ..Default::default()
        };
        // SAFETY: memory of the host's; the size that it shows is put back, 0 included.
        unsafe {
            let _ = versions::fill(params.as_mut_ptr(), &whole);
        }
        params.words[0] = sizes.params as u64;
        let status = Status::new(&log, "SE_InitPlugin", b"");
        // SAFETY: the structs that the function wants.
        unsafe { init_plugin::<P>(params.as_mut_ptr(), status.as_ptr(), loads) };
        status.result()?;
        let params = params.take(&log, "SE_InitPlugin")?;
        let platform = platform.take(&log, "SE_InitPlugin")?;
        let fns = fns.take(&log, "SE_InitPlugin")?;
        must(
            params.destroy_platform.is_some(),
            "destroy_platform",
            "SE_PlatformRegistrationParams",
        )?;
        must(
            params.destroy_platform_fns.is_some(),
            "destroy_platform_fns",
            "SE_PlatformRegistrationParams",
        )?;
        for (what, text) in [("name", platform.name), ("type", platform.r#type)] {
            must(!text.is_null(), what, "SP_Platform")?;
            // SAFETY: a C string that lives as long as the platform.
            unsafe { check_name(text) }?;
        }
        for (set, what) in [
            (fns.get_device_count.is_some(), "get_device_count"),
            (fns.create_device.is_some(), "create_device"),
            (fns.destroy_device.is_some(), "destroy_device"),
            (fns.create_device_fns.is_some(), "create_device_fns"),
            (fns.destroy_device_fns.is_some(), "destroy_device_fns"),
            (fns.create_stream_executor.is_some(), "create_stream_executor"),
            (fns.destroy_stream_executor.is_some(), "destroy_stream_executor"),
        ] {
            must(set, what, "SP_PlatformFns")?;
        }
        let mut host = Self {
            log,
            sizes,
            platform,
            fns,
            device_fns: SP_DeviceFns::default(),
            executor: SP_StreamExecutor::default(),
            create_stream_with_options: None,
            timer_fns: SP_TimerFns::default(),
            destroy_platform: params.destroy_platform,
            live: AtomicI64::new(0),
        };
        host.load_tables()?;
        Ok(host)
    }

    fn load_tables(&mut self) -> Result<()> {
        let mut device_fns = Guarded::<SP_DeviceFns>::new(self.sizes.device_fns);
        let mut params = SE_CreateDeviceFnsParams {
            struct_size: 24,
            device_fns: device_fns.as_mut_ptr(),
            ..Default::default()
        };
        let create = self.fns.create_device_fns.expect("was checked");
        // SAFETY: the structs that the callback wants.
        self.status("create_device_fns", |status| unsafe {
            create(&self.platform, &mut params, status)
        })?;
        self.device_fns = device_fns.take(&self.log, "create_device_fns")?;

        let mut executor = Guarded::<SP_StreamExecutor>::new(self.sizes.stream_executor);
        let mut params = SE_CreateStreamExecutorParams {
            struct_size: 24,
            stream_executor: executor.as_mut_ptr(),
            ..Default::default()
        };
        let create = self.fns.create_stream_executor.expect("was checked");
        // SAFETY: the platform that the plugin filled, `params` with its size, whose executor has as much
        // memory as it says, and a status.
        self.status("create_stream_executor", |status| unsafe {
            create(&self.platform, &mut params, status);
        })?;
        self.executor = executor.take(&self.log, "create_stream_executor")?;
        if self.executor.struct_size >= SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE {
            let longer = executor.as_mut_ptr().cast::<SP_StreamExecutorWithStreamOptions>();
            // SAFETY: there is memory for far more, and what the plugin has not filled is null or the guard, which
            // was looked at.
            self.create_stream_with_options =
                unsafe { (&raw const (*longer).create_stream_with_options).read() };
        }

        let mut timer_fns = Guarded::<SP_TimerFns>::new(self.sizes.timer_fns);
        if let Some(create) = self.fns.create_timer_fns {
            // SAFETY: the platform that the plugin filled, timer functions with as much memory as they say, and
            // a status.
            self.status("create_timer_fns", |status| unsafe {
                create(&self.platform, timer_fns.as_mut_ptr(), status);
            })?;
            self.timer_fns = timer_fns.take(&self.log, "create_timer_fns")?;
        }
        Ok(())
    }

    fn status(&self, op: &'static str, call: impl FnOnce(*mut TF_Status)) -> Result<()> {
        let status = Status::new(&self.log, op, b"");
        call(status.as_ptr());
        status.result()
    }

    /// The members of `SP_StreamExecutor` and `SP_PlatformFns` that are null.
    #[must_use]
    pub fn null_members(&self) -> Vec<usize> {
        fn nulls<T: Versioned>(record: &T) -> impl Iterator<Item = usize> {
            let words = ptr::from_ref(record).cast::<usize>();
            // SAFETY: each field from 16 on is a pointer of a word.
            (16..T::STRUCT_SIZE)
                .step_by(8)
                .filter(move |at| unsafe { words.add(at / 8).read() } == 0)
        }
        nulls(&self.executor).chain(nulls(&self.fns)).chain(nulls(&self.timer_fns)).collect()
    }

    /// Name and type that were registered.
    #[must_use]
    pub fn names(&self) -> [String; 2] {
        // SAFETY: C strings that live as long as the platform; checked to be there.
        [self.platform.name, self.platform.r#type]
            .map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// The number of devices.
    ///
    /// # Errors
    /// The plugin's.
    pub fn device_count(&self) -> Result<usize> {
        let mut count = -1;
        let get = self.fns.get_device_count.expect("was checked");
        pretended::with(self.sizes.takes_errors, || {
            // SAFETY: the platform as it was filled.
            self.status("get_device_count", |status| unsafe {
                get(&self.platform, &mut count, status)
            })
        })?;
        usize::try_from(count).map_err(Error::internal)
    }

    /// Opens a device.
    ///
    /// # Errors
    /// The plugin's.
    pub fn device(&self, ordinal: i32) -> Result<TestDevice<'_>> {
        let mut device = Guarded::<SP_Device>::new(self.sizes.device);
        let mut params = SE_CreateDeviceParams {
            struct_size: 32,
            ordinal,
            device: device.as_mut_ptr(),
            ..Default::default()
        };
        let create = self.fns.create_device.expect("was checked");
        pretended::with(self.sizes.takes_errors, || {
            // SAFETY: the structs that the callback wants.
            self.status("create_device", |status| unsafe {
                create(&self.platform, &mut params, status)
            })
        })?;
        let device = device.take(&self.log, "create_device")?;
        self.live.fetch_add(1, Ordering::AcqRel);
        Ok(TestDevice { host: self, device, memory: Mutex::default() })
    }

    /// How many devices, streams, events and timers there are.
    #[must_use]
    pub fn live(&self) -> i64 {
        self.live.load(Ordering::Acquire)
    }

    /// What the plugin did that TensorFlow would suffer from, since the last call.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.log.take()
    }
}

/// A name that a plugin may register.
///
/// # Safety
/// A C string.
unsafe fn check_name(text: *const core::ffi::c_char) -> Result<String> {
    // SAFETY: `text` is a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    let fits = text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if !fits {
        return Err(Error::failed_precondition(format!(
            "Device name/type '{text}' must match [A-Z][A-Z_]*."
        )));
    }
    Ok(text)
}

fn must(is_set: bool, field: &str, record: &str) -> Result<()> {
    if is_set {
        return Ok(());
    }
    Err(Error::failed_precondition(format!("'{field}' field in {record} must be set.")))
}

/// An open device.
pub struct TestDevice<'h> {
    host: &'h Host,
    device: SP_Device,
    /// What is allocated.
    memory: Mutex<BTreeSet<u64>>,
}

// SAFETY: as for `Host`.
unsafe impl Send for TestDevice<'_> {}
// SAFETY: the header allows any thread to call the plugin's callbacks, several at once; the structs do not
// change.
unsafe impl Sync for TestDevice<'_> {}

/// Without the host, which says more.
impl core::fmt::Debug for TestDevice<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TestDevice").field("device", &self.device).finish_non_exhaustive()
    }
}

fn memory_base(address: Option<DevicePtr>, size: u64) -> SP_DeviceMemoryBase {
    SP_DeviceMemoryBase {
        struct_size: SP_DeviceMemoryBase::STRUCT_SIZE,
        opaque: address
            .map_or(ptr::null_mut(), |at| ptr::without_provenance_mut(at.address() as usize)),
        size,
        ..Default::default()
    }
}

impl TestDevice<'_> {
    /// Allocates; `None` for null.
    pub fn allocate(&self, bytes: u64) -> Option<DevicePtr> {
        let mut memory = Guarded::<SP_DeviceMemoryBase>::new(SP_DeviceMemoryBase::STRUCT_SIZE);
        let allocate = self.host.executor.allocate.expect("every callback is there");
        // SAFETY: a device and a struct.
        unsafe { allocate(&self.device, bytes, 0, memory.as_mut_ptr()) };
        let memory = memory.take(&self.host.log, "allocate").ok()?;
        let address = DevicePtr::new(memory.opaque.addr() as u64)?;
        let is_new =
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(address.address());
        if !is_new {
            self.host.log.add("allocate", b"", format!("{address:?} is allocated already"));
        }
        Some(address)
    }

    /// Frees, as TensorFlow does: with the address alone.
    pub fn deallocate(&self, address: DevicePtr) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&address.address());
        let deallocate = self.host.executor.deallocate.expect("every callback is there");
        let mut memory = memory_base(Some(address), 0);
        // SAFETY: a device and a struct.
        unsafe { deallocate(&self.device, &mut memory) };
    }

    /// Allocates host memory, writes to all of it and frees it. Answers its alignment, 0 for null.
    #[must_use]
    pub fn host_memory(&self, bytes: usize) -> usize {
        let allocate = self.host.executor.host_memory_allocate.expect("every callback is there");
        let free = self.host.executor.host_memory_deallocate.expect("every callback is there");
        // SAFETY: memory of this size, which is freed once.
        unsafe {
            let memory = allocate(&self.device, bytes as u64);
            if memory.is_null() {
                return 0;
            }
            memory.cast::<u8>().write_bytes(1, bytes);
            free(&self.device, memory);
            1 << memory.addr().trailing_zeros()
        }
    }

    /// Free and total memory; `None` if the plugin cannot say.
    #[must_use]
    pub fn memory_usage(&self) -> Option<[i64; 2]> {
        let usage = self.host.executor.device_memory_usage.expect("every callback is there");
        let mut bytes = [-1; 2];
        let [free, total] = &mut bytes;
        // SAFETY: two integers.
        (unsafe { usage(&self.device, free, total) } != 0).then_some(bytes)
    }

    /// Name, vendor and PCI address.
    #[must_use]
    pub fn description(&self) -> [Option<String>; 3] {
        [self.device.hardware_name, self.device.device_vendor, self.device.pci_bus_id].map(|text| {
            // SAFETY: null, or a C string that lives as long as the device.
            (!text.is_null())
                .then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        })
    }

    /// NUMA node, bandwidth of the memory, and operations a nanosecond; each -1 if it is not known.
    #[must_use]
    pub fn figures(&self) -> (i32, i64, f64) {
        let fns = &self.host.device_fns;
        let node = fns.get_numa_node.expect("every callback is there");
        let bandwidth = fns.get_memory_bandwidth.expect("every callback is there");
        let gflops = fns.get_gflops.expect("every callback is there");
        // SAFETY: a device.
        unsafe { (node(&self.device), bandwidth(&self.device), gflops(&self.device)) }
    }

    /// The allocator's statistics, in a struct of `size` bytes.
    #[must_use]
    pub fn allocator_stats(&self, size: usize) -> Option<SP_AllocatorStats> {
        let get = self.host.executor.get_allocator_stats.expect("every callback is there");
        let mut stats = Guarded::<SP_AllocatorStats>::new(size);
        // SAFETY: a struct with its size.
        let known = unsafe { get(&self.device, stats.as_mut_ptr()) } != 0;
        let stats = stats.take(&self.host.log, "get_allocator_stats").ok()?;
        known.then_some(stats)
    }

    /// Makes a stream; after an error the null stream is there to go on with, as in older releases.
    pub fn stream(&self) -> (TestStream<'_>, Result<()>) {
        let mut stream = ptr::null_mut();
        let result = call!(self, create_stream(&mut stream));
        if result.is_ok() == stream.is_null() {
            self.host.log.add("create_stream", b"", "handle and status contradict each other");
        }
        self.host.live.fetch_add((!stream.is_null()).into(), Ordering::AcqRel);
        (TestStream(self, stream), result)
    }

    /// Makes a stream with options in a struct of `size` bytes, or without any, as TensorFlow does from 2.22 on; `None`
    /// where the plugin does not offer that, because the host has no room for it.
    pub fn stream_with_options(
        &self,
        options: Option<(usize, Option<i32>)>,
    ) -> Option<(TestStream<'_>, Result<()>)> {
        const OP: &str = "create_stream_with_options";
        let create = self.host.create_stream_with_options?;
        let mut given = options.map(|(size, priority)| {
            let options = SP_StreamOptions {
                struct_size: size,
                has_priority: priority.is_some().into(),
                priority: priority.unwrap_or_default(),
                ..SP_StreamOptions::default()
            };
            let mut given = Guarded::<SP_StreamOptions>::new(size.max(8));
            let covered = size.min(size_of::<SP_StreamOptions>());
            // SAFETY: integers and a pointer, without padding that is not zero.
            let bytes = unsafe {
                core::slice::from_raw_parts(ptr::from_ref(&options).cast::<u8>(), covered)
            };
            given.bytes()[..covered].copy_from_slice(bytes);
            given.words[0] = size as u64;
            given
        });
        let mut stream = ptr::null_mut();
        let options = given.as_mut().map_or(ptr::null(), |given| given.as_mut_ptr().cast_const());
        // SAFETY: a device, options of their size or none, and a place for the stream.
        let result = self.host.status(OP, |status| unsafe {
            create(&self.device, options, &mut stream, status);
        });
        if result.is_ok() == stream.is_null() {
            self.host.log.add(OP, b"", "handle and status contradict each other");
        }
        self.host.live.fetch_add((!stream.is_null()).into(), Ordering::AcqRel);
        Some((TestStream(self, stream), result))
    }

    /// The null stream, which TensorFlow up to 2.16 passes where it has none.
    #[must_use]
    pub fn null_stream(&self) -> TestStream<'_> {
        TestStream(self, ptr::null_mut())
    }

    /// Makes an event.
    ///
    /// # Errors
    /// The plugin's; TensorFlow from 2.17 on aborts.
    pub fn event(&self) -> Result<TestEvent<'_>> {
        let mut event = ptr::null_mut();
        call!(self, create_event(&mut event))?;
        self.host.live.fetch_add(1, Ordering::AcqRel);
        Ok(TestEvent(self, event))
    }

    /// The null event.
    #[must_use]
    pub fn null_event(&self) -> TestEvent<'_> {
        TestEvent(self, ptr::null_mut())
    }

    /// Makes a stopwatch.
    ///
    /// # Errors
    /// The plugin's.
    pub fn timer(&self) -> Result<TestTimer<'_>> {
        let mut timer = ptr::null_mut();
        call!(self, create_timer(&mut timer))?;
        self.host.live.fetch_add(1, Ordering::AcqRel);
        Ok(TestTimer(self, timer))
    }

    /// Copies from the host at once.
    ///
    /// # Errors
    /// The plugin's.
    pub fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let mut target = memory_base(Some(target), source.len() as u64);
        call!(self, sync_memcpy_htod(&mut target, source.as_ptr().cast(), source.len() as u64))
    }

    /// Copies to the host at once.
    ///
    /// # Errors
    /// The plugin's.
    pub fn copy_to_host(&self, target: &mut [u8], source: DevicePtr) -> Result<()> {
        let len = target.len() as u64;
        let source = memory_base(Some(source), len);
        call!(self, sync_memcpy_dtoh(target.as_mut_ptr().cast(), &source, len))
    }

    /// Copies within the device at once.
    ///
    /// # Errors
    /// The plugin's.
    pub fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let (mut target, source) =
            (memory_base(Some(target), bytes), memory_base(Some(source), bytes));
        call!(self, sync_memcpy_dtod(&mut target, &source, bytes))
    }

    /// Whether a handle of another device can be used together with one of this.
    ///
    /// # Panics
    /// When it cannot: what is behind it may be of other types, those of another platform.
    fn must_share_host(&self, other: &TestDevice<'_>, op: &str) {
        assert!(
            ptr::eq(self.host, other.host),
            "`{op}` got handles of two hosts; use streams, events and timers of one `Host`, as TensorFlow does"
        );
    }

    /// As [`must_share_host`](Self::must_share_host), for what TensorFlow does on one device only.
    fn must_be(&self, other: &TestDevice<'_>, op: &str) {
        self.must_share_host(other, op);
        assert!(
            ptr::eq(self, other),
            "`{op}` got handles of two devices; use those of one `TestDevice`, as TensorFlow does"
        );
    }

    /// Waits for all streams.
    ///
    /// # Errors
    /// The plugin's, sticky ones too.
    pub fn synchronize(&self) -> Result<()> {
        call!(self, synchronize_all_activity())
    }
}

impl Drop for TestDevice<'_> {
    fn drop(&mut self) {
        let destroy = self.host.fns.destroy_device.expect("was checked");
        // SAFETY: created and not destroyed before; streams and events borrow the device, so none is left.
        unsafe { destroy(&self.host.platform, &mut self.device) };
        self.host.live.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy_platform {
            // SAFETY: the platform as it was filled, destroyed once; devices borrow the host.
            unsafe { destroy(&mut self.platform) };
        }
    }
}
