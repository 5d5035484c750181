//! An open device.

use super::guarded::Guarded;
use super::host::Host;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::Ordering;
use se_plugin::__private::testing::release_override;
use se_plugin::__private::testing::versions::Versioned as _;
use se_plugin::{DevicePtr, Result};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tf_fs_sys::{SE_CreateDeviceParams, SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase};

/// Calls a callback of one of the host's tables on the device. The tables have all of them.
macro_rules! plain {
    // Binds one argument after the other, so that none is evaluated in the unsafe block.
    (@ $callback:ident($($bound:ident),*) $argument:expr, $($rest:tt)*) => {{
        let bound = $argument;
        plain!(@ $callback($($bound,)* bound) $($rest)*)
    }};
    (@ $callback:ident($($bound:ident),*)) => {
        // SAFETY: an open device, and arguments as the header wants them; null handles are those that failed.
        unsafe { $callback($($bound),*) }
    };
    ($device:expr, $table:ident.$name:ident($($argument:expr),* $(,)?)) => {{
        let device: &TestDevice<'_> = $device;
        let callback = device.host.$table.$name.expect("every callback is there");
        plain!(@ callback() &device.device, $($argument,)*)
    }};
}

/// Calls a callback of the executor with a new status.
macro_rules! call {
    ($device:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let device: &TestDevice<'_> = $device;
        device.host.status(stringify!($name), |status| {
            plain!(device, executor.$name($($argument,)* status));
        })
    }};
}

pub(super) use {call, plain};

impl Host {
    /// Opens a device.
    pub fn device(&self, ordinal: i32) -> Result<TestDevice<'_>> {
        let mut device = Guarded::<SP_Device>::new(self.sizes.device);
        let mut params = SE_CreateDeviceParams {
            struct_size: 32,
            ordinal,
            device: device.as_mut_ptr(),
            ..Default::default()
        };
        let create = self.fns.create_device.expect("every callback is there");
        release_override::with(self.sizes.takes_errors, || {
            // SAFETY: the structs that the callback wants.
            self.status("create_device", |status| unsafe {
                create(&self.platform, &mut params, status)
            })
        })?;
        let device = device.take(&self.log, "create_device")?;
        self.live.fetch_add(1, Ordering::AcqRel);
        Ok(TestDevice { host: self, device, memory: Mutex::default() })
    }
}

/// An open device. Its methods return the plugin's errors.
pub struct TestDevice<'h> {
    pub(super) host: &'h Host,
    pub(super) device: SP_Device,
    /// The addresses of all allocations.
    memory: Mutex<BTreeSet<u64>>,
}

// SAFETY: as for `Host`.
unsafe impl Send for TestDevice<'_> {}
// SAFETY: the header allows any thread to call the plugin's callbacks, several at once; the structs do not
// change.
unsafe impl Sync for TestDevice<'_> {}

/// Formats the device without the host, which would add too much.
impl core::fmt::Debug for TestDevice<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TestDevice").field("device", &self.device).finish_non_exhaustive()
    }
}

pub(super) fn memory_base(address: Option<DevicePtr>, size: u64) -> SP_DeviceMemoryBase {
    SP_DeviceMemoryBase {
        struct_size: SP_DeviceMemoryBase::STRUCT_SIZE,
        opaque: address
            .map_or(ptr::null_mut(), |at| ptr::without_provenance_mut(at.address() as usize)),
        size,
        ..Default::default()
    }
}

impl TestDevice<'_> {
    /// Allocates device memory; returns `None` if the plugin returns null.
    pub fn allocate(&self, bytes: u64) -> Option<DevicePtr> {
        let mut memory = Guarded::<SP_DeviceMemoryBase>::new(SP_DeviceMemoryBase::STRUCT_SIZE);
        plain!(self, executor.allocate(bytes, 0, memory.as_mut_ptr()));
        let memory = memory.take(&self.host.log, "allocate").ok()?;
        let address = DevicePtr::new(memory.opaque.addr() as u64)?;
        if !self.memory().insert(address.address()) {
            self.host.log.add("allocate", b"", format!("{address:?} is allocated already"));
        }
        Some(address)
    }

    fn memory(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees device memory, as TensorFlow does: with the address alone.
    pub fn deallocate(&self, address: DevicePtr) {
        self.memory().remove(&address.address());
        self.host.quietly("deallocate", || {
            plain!(self, executor.deallocate(&mut memory_base(Some(address), 0)));
        });
    }

    /// Allocates host memory, writes to all of it and frees it. Returns its alignment, or 0 for null.
    #[must_use]
    pub fn host_memory(&self, bytes: usize) -> usize {
        let memory = plain!(self, executor.host_memory_allocate(bytes as u64));
        if memory.is_null() {
            return 0;
        }
        // SAFETY: memory of this size.
        unsafe { memory.cast::<u8>().write_bytes(1, bytes) };
        // Freed once; it is not used behind this.
        self.host.quietly("host_memory_deallocate", || {
            plain!(self, executor.host_memory_deallocate(memory));
        });
        1 << memory.addr().trailing_zeros()
    }

    /// Returns free and total memory in bytes, or `None` if the plugin does not know.
    #[must_use]
    pub fn memory_usage(&self) -> Option<[i64; 2]> {
        let mut bytes = [-1; 2];
        let [free, total] = &mut bytes;
        (plain!(self, executor.device_memory_usage(free, total)) != 0).then_some(bytes)
    }

    /// Returns name, vendor and PCI address.
    #[must_use]
    pub fn description(&self) -> [Option<String>; 3] {
        [self.device.hardware_name, self.device.device_vendor, self.device.pci_bus_id].map(|text| {
            // SAFETY: null, or a C string that lives as long as the device.
            (!text.is_null())
                .then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        })
    }

    /// Returns NUMA node, memory bandwidth, and operations per nanosecond; each -1 if it is not known.
    #[must_use]
    pub fn figures(&self) -> (i32, i64, f64) {
        (
            plain!(self, device_fns.get_numa_node()),
            plain!(self, device_fns.get_memory_bandwidth()),
            plain!(self, device_fns.get_gflops()),
        )
    }

    /// Returns the allocator's statistics, which the plugin writes to a struct of `size` bytes.
    #[must_use]
    pub fn allocator_stats(&self, size: usize) -> Option<SP_AllocatorStats> {
        let mut stats = Guarded::<SP_AllocatorStats>::new(size);
        let known = plain!(self, executor.get_allocator_stats(stats.as_mut_ptr())) != 0;
        let stats = stats.take(&self.host.log, "get_allocator_stats").ok()?;
        known.then_some(stats)
    }

    /// Copies from the host, and returns when that is done.
    pub fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let mut target = memory_base(Some(target), source.len() as u64);
        call!(self, sync_memcpy_htod(&mut target, source.as_ptr().cast(), source.len() as u64))
    }

    /// Copies to the host, and returns when that is done.
    pub fn copy_to_host(&self, target: &mut [u8], source: DevicePtr) -> Result<()> {
        let len = target.len() as u64;
        let source = memory_base(Some(source), len);
        call!(self, sync_memcpy_dtoh(target.as_mut_ptr().cast(), &source, len))
    }

    /// Copies within the device, and returns when that is done.
    pub fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let (mut target, source) =
            (memory_base(Some(target), bytes), memory_base(Some(source), bytes));
        call!(self, sync_memcpy_dtod(&mut target, &source, bytes))
    }

    /// Checks that a handle of `other` can be used together with one of this device.
    ///
    /// # Panics
    /// Panics if it cannot: the other handle may point to other types, those of another platform.
    pub(super) fn must_share_host(&self, other: &TestDevice<'_>, op: &str) {
        assert!(
            ptr::eq(self.host, other.host),
            "`{op}` got handles of two hosts; use streams, events and timers of one `Host`, as TensorFlow does"
        );
    }

    /// Checks as [`must_share_host`](Self::must_share_host) does, and that both are one device.
    pub(super) fn must_be(&self, other: &TestDevice<'_>, op: &str) {
        self.must_share_host(other, op);
        assert!(
            ptr::eq(self, other),
            "`{op}` got handles of two devices; use those of one `TestDevice`, as TensorFlow does"
        );
    }

    /// Waits for all streams.
    ///
    /// # Errors
    /// Returns the plugin's error, also a sticky one.
    pub fn synchronize(&self) -> Result<()> {
        call!(self, synchronize_all_activity())
    }
}

impl Drop for TestDevice<'_> {
    fn drop(&mut self) {
        let destroy = self.host.fns.destroy_device.expect("every callback is there");
        self.host.quietly("destroy_device", || {
            // SAFETY: created and not destroyed before; streams and events borrow the device, so none is left.
            unsafe { destroy(&self.host.platform, &mut self.device) };
        });
        self.host.live.fetch_sub(1, Ordering::AcqRel);
    }
}
