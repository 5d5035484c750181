//! The objects behind the handles of the host.

use super::host_release::takes_errors_of_copies;
use super::pending_copies::{self, Pending, PendingCopies, SpareCopy};
use super::versions::field;
use super::work::{Progress, WaitingStream, Work};
use crate::device::{Device, MemoryUsage};
use crate::health::Health;
use crate::memory::DevicePtr;
use crate::small_reserve::Reserve;
use crate::stream::Stream as _;
use crate::sync::lock;
use crate::timer::Timer;
use core::ffi::{CStr, c_void};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use tf_fs_sys::SP_Device;
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Error, Result};

/// A device; `SP_Device::device_handle` is a counted reference to it.
pub(super) struct DeviceState<D: Device> {
    pub(super) device: D,
    pub(super) health: Health,
    /// All copies on any stream.
    pub(super) copies: PendingCopies,
    /// The work that kernels have enqueued.
    pub(super) work: Work<StreamState<D>>,
    /// Whether the host repeats a request for memory that is refused.
    pub(super) host_insists: bool,
    /// Whether the host requests one region after the other, so that a late request may find no memory.
    grows: bool,
    /// Whether the host turns the error of a copy into an exception.
    pub(super) takes_errors: bool,
    /// Whether host memory is from the author's allocator.
    pub(super) has_host_allocator: bool,
    /// Taken before the first allocation, so that it is not between the host's regions.
    reserve: OnceLock<Option<Reserve>>,
    refused: AtomicU64,
    /// The latest known result.
    memory: Mutex<MemoryUsage>,
    description: [Option<CString>; 3],
}

impl<D: Device> DeviceState<D> {
    pub(super) fn new(device: D, host_insists: bool, grows: bool) -> Result<Self> {
        // If TensorFlow cannot get the memory size of a device, it runs nothing, not even on the CPU. So a
        // device that cannot report it is not counted.
        let (description, has_host_allocator, memory) = boundary::catch("create_device", || {
            let description = [device.hardware_name(), device.vendor(), device.pci_bus_id()];
            Ok((description, device.host_allocator().is_some(), device.memory_usage()?))
        })?;
        let description = description.map(|text| CString::new(text?).ok());
        Ok(Self {
            device,
            health: Health::default(),
            copies: PendingCopies::default(),
            work: Work::default(),
            host_insists,
            grows,
            takes_errors: takes_errors_of_copies(),
            has_host_allocator,
            reserve: OnceLock::new(),
            refused: AtomicU64::new(0),
            memory: Mutex::new(memory),
            description,
        })
    }

    /// Returns the name, the vendor and the PCI address, which live as long as this value.
    pub(super) fn description(&self) -> [Option<&CStr>; 3] {
        self.description.each_ref().map(|text| text.as_deref())
    }

    /// Returns how much memory the host can use. If the device returns an error, it is the latest result.
    pub(super) fn memory_usage(&self) -> MemoryUsage {
        const OP: &str = "device_memory_usage";
        let answer = boundary::catch(OP, || self.device.memory_usage());
        let stays = |error| boundary::log_failed(OP, ", so the answer is the one before", error);
        let answer = answer.map_err(stays);
        let mut memory = lock(&self.memory);
        *memory = answer.unwrap_or(*memory);
        let MemoryUsage { free, total } = *memory;
        // The host's limit is derived from this result, so the memory that will be set aside is subtracted: TensorFlow
        // 2.12 requests less only after the first refusal within its limit.
        let aside = match self.reserve.get() {
            None if self.sets_aside() => Reserve::part_of(free),
            _ => 0,
        };
        MemoryUsage { free: free - aside, total }
    }

    fn sets_aside(&self) -> bool {
        self.host_insists && self.grows
    }

    /// Sets the reserve aside, unless that has been done.
    #[inline]
    pub(super) fn set_aside(&self) {
        if self.sets_aside() {
            self.reserve.get_or_init(|| Reserve::take_from(&self.device));
        }
    }

    /// Takes back an address that is not the device's: a sentinel, or one in the reserve. Returns whether it is one.
    #[inline]
    pub(super) fn takes_back(&self, address: DevicePtr) -> bool {
        address.is_refused() || self.reserve().is_some_and(|reserve| reserve.deallocate(address))
    }

    /// Returns the memory that was set aside.
    pub(super) fn reserve(&self) -> Option<&Reserve> {
        self.reserve.get()?.as_ref()
    }

    /// Returns a sentinel address for a request that is refused.
    pub(super) fn refused(&self) -> DevicePtr {
        DevicePtr::refused(self.refused.fetch_add(1, Ordering::Relaxed))
    }
}

impl<D: Device> Drop for DeviceState<D> {
    fn drop(&mut self) {
        const OP: &str = "deallocate";
        let Some(reserve) = self.reserve() else { return };
        let freed = boundary::catch(OP, || self.device.deallocate(reserve.memory()));
        if let Err(error) = freed {
            boundary::log_failed(OP, "", error);
        }
    }
}

/// A stream; `SP_Stream` points to it.
pub(super) struct StreamState<D: Device> {
    /// `None` if the author's stream could not be created.
    stream: Option<D::Stream>,
    pub(super) device: Arc<DeviceState<D>>,
    /// Created when it is first used: most of the host's streams never use it.
    health: OnceLock<Health>,
    /// The copies before the end of the stream.
    pub(super) copies: PendingCopies,
    progress: Progress,
    spare: SpareCopy,
}

impl<D: Device> StreamState<D> {
    pub(super) fn new(stream: Option<D::Stream>, device: Arc<DeviceState<D>>) -> Self {
        let (health, copies, progress, spare) = Default::default();
        Self { stream, device, health, copies, progress, spare }
    }

    #[inline]
    pub(super) fn health(&self) -> &Health {
        self.health.get_or_init(|| self.device.health.of_stream())
    }

    /// Returns the first failure as an error, if there was one.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        match self.health.get() {
            Some(health) => health.check(),
            None => Ok(()),
        }
    }

    /// Returns the author's stream.
    #[inline]
    pub(super) fn author(&self) -> Result<&D::Stream> {
        match &self.stream {
            Some(stream) => Ok(stream),
            None => Err(self.never_made()),
        }
    }

    #[cold]
    fn never_made(&self) -> Error {
        // The reason is in the device's health.
        self.device.health.check().err().unwrap_or_else(|| {
            Error::failed_precondition("the stream could not be made; the log says why")
        })
    }

    /// Waits for all work, also after an error of the author's stream. One that was never created has no work.
    #[inline]
    pub(super) fn drain(&self, op: &'static str) -> Result<()> {
        let result = match &self.stream {
            Some(stream) => boundary::catch(op, || stream.synchronize()),
            None => Ok(()),
        };
        self.copies.wait();
        result
    }

    /// Runs `copy`, in which the author's method enqueues a copy. Before anything can fail, `copy` must make a
    /// token of its argument: the token reports when the copy is done.
    #[inline]
    pub(super) fn begin_copy(
        &self,
        op: &'static str,
        copy: impl FnOnce(Arc<Pending>) -> Result<()>,
    ) -> Result<()> {
        let pending = self.spare.begin(|| self.health().clone());
        let token = Arc::clone(&pending);
        let outcome = boundary::catch(op, || copy(token));
        pending_copies::begun(
            op,
            pending,
            &outcome,
            &self.spare,
            [&self.copies, &self.device.copies],
        );
        outcome
    }
}

impl<D: Device> WaitingStream for StreamState<D> {
    #[inline]
    fn work(&self) -> &Work<Self> {
        &self.device.work
    }

    #[inline]
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn follow(&self, other: &Self) -> Result<()> {
        let copies = other.copies.open();
        self.author()?.wait_stream(other.author()?)?;
        self.copies.add_all(copies);
        Ok(())
    }
}

/// A timer; `SP_Timer` points to it.
pub(super) struct TimerState<D: Device>(pub(super) Box<dyn Timer<D::Stream>>);

/// Converts a counted reference into a handle, which the host uses until its `destroy_*`. Others that need the
/// object hold their own references.
pub(super) fn into_handle<T, H>(state: Arc<T>) -> *mut H {
    Arc::into_raw(state).cast_mut().cast()
}

/// Converts an object into a handle of the host, which is the only reference to it.
pub(super) fn into_own_handle<T, H>(state: T) -> *mut H {
    Box::into_raw(Box::new(state)).cast()
}

/// Takes back what a handle points to. Returns `None` for null.
///
/// # Safety
/// `handle` is null or from [`into_own_handle`] with the same `T`; it is not used afterwards.
pub(super) unsafe fn take_own<T, H>(handle: *mut H) -> Option<Box<T>> {
    // SAFETY: not null, so `into_own_handle` returned it from `Box::into_raw` for this `T`, and nothing uses it
    // afterwards.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle.cast::<T>()) })
}

/// Returns another reference to what a handle points to, or `None` for null.
///
/// # Safety
/// `handle` is null or from [`into_handle`] with the same `T`, and not passed to [`take`].
pub(super) unsafe fn share<T, H>(handle: *mut H) -> Option<Arc<T>> {
    if handle.is_null() {
        return None;
    }
    let state = handle.cast::<T>().cast_const();
    // SAFETY: from `Arc::into_raw`, and the handle's own reference is still there.
    unsafe {
        Arc::increment_strong_count(state);
        Some(Arc::from_raw(state))
    }
}

/// Returns a weak reference to what a handle points to.
///
/// # Safety
/// `handle` is from [`into_handle`] with the same `T`, and not passed to [`take`].
pub(super) unsafe fn weak<T>(handle: NonNull<T>) -> Weak<T> {
    // SAFETY: from `Arc::into_raw`; the handle keeps its reference, which is not dropped here.
    Arc::downgrade(&ManuallyDrop::new(unsafe { Arc::from_raw(handle.as_ptr()) }))
}

/// Borrows what a handle points to. Returns `None` for null.
///
/// # Safety
/// As for [`share`], or from [`into_own_handle`] with the same `T`; the handle lives for `'a`.
#[inline]
pub(super) unsafe fn borrow<'a, T, H>(handle: *mut H) -> Option<&'a T> {
    // SAFETY: `handle` is null, or points to a `T` that its owner keeps alive for `'a`.
    unsafe { handle.cast::<T>().as_ref() }
}

/// Takes back the handle's own reference. Returns `None` for null.
///
/// # Safety
/// As for [`share`]; the handle is not used afterwards.
pub(super) unsafe fn take<T, H>(handle: *mut H) -> Option<Arc<T>> {
    // SAFETY: not null, so it is from `Arc::into_raw`, and the handle's reference passes to the `Arc`.
    (!handle.is_null()).then(|| unsafe { Arc::from_raw(handle.cast::<T>().cast_const()) })
}

/// Returns the device of a struct of the host's.
///
/// # Safety
/// `device` is null or a struct that `create_device` has filled for a `D`.
#[inline]
pub(super) unsafe fn device<'a, D: Device>(device: *const SP_Device) -> Result<&'a DeviceState<D>> {
    // SAFETY: `device` is null, or `create_device` filled it: its handle points to a live `DeviceState<D>`. A
    // handle that `struct_size` does not cover reads as `None`.
    let state = unsafe {
        field!(device => SP_Device.device_handle).and_then(|handle| borrow::<_, c_void>(handle))
    };
    state.ok_or_else(no_device)
}

/// Returns the same as [`device`], as a counted reference.
///
/// # Safety
/// As for [`device`].
pub(super) unsafe fn shared_device<D: Device>(
    device: *const SP_Device,
) -> Result<Arc<DeviceState<D>>> {
    // SAFETY: `device` is null, or `create_device` filled it: its handle is from an `Arc<DeviceState<D>>` that
    // `destroy_device` has not dropped.
    let state = unsafe {
        field!(device => SP_Device.device_handle).and_then(|handle| share::<_, c_void>(handle))
    };
    state.ok_or_else(no_device)
}

#[cold]
fn no_device() -> Error {
    Error::failed_precondition("TensorFlow passed no device, because `create_device` has failed")
}
