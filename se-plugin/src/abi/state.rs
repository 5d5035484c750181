//! What the handles of the host point to.

use super::pending::{Ledger, Pending};
use super::versions::field;
use crate::device::Device;
use crate::health::Health;
use crate::memory::DevicePtr;
use crate::stream::{Event as _, EventStatus, Stream as _};
use crate::timer::Timer;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU64, Ordering};
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tf_fs_plugin::__private::boundary;
use tf_fs_plugin::{Error, Result};
use tf_fs_sys::{SP_Device, SP_DeviceMemoryBase};

/// A device; `SP_Device::device_handle` is a reference of its own to it.
pub(super) struct DeviceState<D: Device> {
    pub(super) device: D,
    pub(super) health: Health,
    /// All copies on any stream.
    pub(super) copies: Ledger,
    /// Whether the host asks for memory again and again.
    pub(super) host_insists: bool,
    /// Whether host memory is the author's.
    pub(super) has_host_allocator: bool,
    refused: AtomicU64,
    description: [Option<CString>; 3],
}

impl<D: Device> DeviceState<D> {
    pub(super) fn new(device: D, host_insists: bool) -> Result<Self> {
        let (description, has_host_allocator) = boundary::catch("create_device", || {
            let description = [device.hardware_name(), device.vendor(), device.pci_bus_id()];
            Ok((description, device.host_allocator().is_some()))
        })?;
        let description = description.map(|text| CString::new(text?).ok());
        Ok(Self {
            device,
            health: Health::default(),
            copies: Ledger::default(),
            host_insists,
            has_host_allocator,
            refused: AtomicU64::new(0),
            description,
        })
    }

    /// Name, vendor and PCI address, which live as long as this.
    pub(super) fn description(&self) -> [Option<&CStr>; 3] {
        self.description.each_ref().map(|text| text.as_deref())
    }

    /// An address for memory that there is none left of.
    pub(super) fn refused(&self) -> DevicePtr {
        DevicePtr::refused(self.refused.fetch_add(1, Ordering::Relaxed))
    }
}

/// A stream; `SP_Stream` points to it.
pub(super) struct StreamState<D: Device> {
    pub(super) stream: D::Stream,
    pub(super) device: Arc<DeviceState<D>>,
    pub(super) health: Health,
    /// The copies before the end of the stream.
    pub(super) copies: Ledger,
}

impl<D: Device> StreamState<D> {
    /// Waits for all work, whatever the author's stream says.
    pub(super) fn drain(&self, op: &'static str) -> Result<()> {
        let result = boundary::catch(op, || self.stream.synchronize());
        self.copies.wait();
        result
    }

    /// A copy of this stream's.
    pub(super) fn pending(&self, op: &'static str) -> Arc<Pending> {
        let pending = Pending::new(op, self.health.clone());
        self.copies.add(&pending);
        self.device.copies.add(&pending);
        pending
    }
}

/// An event; `SP_Event` points to it.
pub(super) struct EventState<D: Device> {
    /// `None` if the author's could not be made: then the stream is drained where it would be recorded.
    pub(super) event: Option<D::Event>,
    /// The copies before the latest record.
    pub(super) copies: Ledger,
    record: Mutex<Record<D>>,
}

/// Where an event was last recorded.
enum Record<D: Device> {
    /// Nowhere, or where all work is done.
    Done,
    Stream(Weak<StreamState<D>>),
}

impl<D: Device> EventState<D> {
    pub(super) fn new(event: Option<D::Event>) -> Self {
        Self { event, copies: Ledger::default(), record: Mutex::new(Record::Done) }
    }

    fn set(&self, record: Record<D>) {
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = record;
    }

    /// Records the event. If that fails the stream is drained, so that "complete" is true; the host does
    /// not look at the status.
    pub(super) fn record(&self, stream: &Arc<StreamState<D>>) -> Result<()> {
        const OP: &str = "record_event";
        let copies = stream.copies.open();
        let recorded = match &self.event {
            Some(event) => boundary::catch(OP, || stream.stream.record(event)),
            None => {
                self.set(Record::Done);
                self.copies.set(copies);
                if let Err(error) = stream.drain(OP) {
                    stream.health.note(OP, &error);
                }
                return Ok(());
            }
        };
        self.copies.set(copies);
        match recorded {
            Ok(()) => self.set(Record::Stream(Arc::downgrade(stream))),
            Err(error) => {
                self.set(Record::Done);
                stream.health.note(OP, &error);
                if let Err(error) = stream.drain(OP) {
                    stream.health.note(OP, &error);
                }
            }
        }
        Ok(())
    }

    /// How far the latest record is. Never an error, which would abort the process.
    pub(super) fn status(&self, device: &DeviceState<D>) -> EventStatus {
        const OP: &str = "get_event_status";
        let stream = match &*self.record.lock().unwrap_or_else(PoisonError::into_inner) {
            Record::Done => None,
            Record::Stream(stream) => Some(Weak::clone(stream)),
        };
        if let (Some(stream), Some(event)) = (stream, &self.event) {
            match boundary::catch(OP, || event.status()) {
                Ok(EventStatus::Pending) => return EventStatus::Pending,
                Ok(EventStatus::Complete) => {}
                Err(error) => {
                    device.health.note(OP, &error);
                    // A stream that is gone was drained.
                    if let Some(Err(error)) = stream.upgrade().map(|stream| stream.drain(OP)) {
                        device.health.note(OP, &error);
                    }
                    self.set(Record::Done);
                }
            }
        }
        if self.copies.is_done() { EventStatus::Complete } else { EventStatus::Pending }
    }

    /// Waits for the latest record.
    pub(super) fn wait(&self) -> Result<()> {
        let is_recorded = matches!(
            &*self.record.lock().unwrap_or_else(PoisonError::into_inner),
            Record::Stream(_)
        );
        let result = match &self.event {
            Some(event) if is_recorded => boundary::catch("block_host_for_event", || event.wait()),
            _ => Ok(()),
        };
        self.copies.wait();
        result
    }
}

/// A stopwatch; `SP_Timer` points to it.
pub(super) struct TimerState<D: Device>(pub(super) Box<dyn Timer<D::Stream>>);

/// What a handle of the host points to, as a counted reference: a handle that is used until its
/// `destroy_*`, while others that need the object hold references of their own.
pub(super) fn into_handle<T, H>(state: Arc<T>) -> *mut H {
    Arc::into_raw(state).cast_mut().cast()
}

/// Another reference to what a handle points to; `None` for null.
///
/// # Safety
/// `handle` is null or from [`into_handle`] with the same `T`, and not given to [`take`].
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

/// What a handle points to; `None` for null.
///
/// # Safety
/// As for [`share`], and the handle lives for `'a`.
pub(super) unsafe fn borrow<'a, T, H>(handle: *mut H) -> Option<&'a T> {
    // SAFETY: null, or a pointer to a living `T` as the caller promises.
    unsafe { handle.cast::<T>().as_ref() }
}

/// The handle's own reference.
///
/// # Safety
/// As for [`share`]; the handle is not used afterwards.
pub(super) unsafe fn take<T, H>(handle: *mut H) -> Option<Arc<T>> {
    // SAFETY: null, or from `Arc::into_raw` as the caller promises.
    (!handle.is_null()).then(|| unsafe { Arc::from_raw(handle.cast::<T>().cast_const()) })
}

/// The device of a struct of the host's.
///
/// # Safety
/// `device` is null or a struct that `create_device` has filled for a `D`.
pub(super) unsafe fn device<'a, D: Device>(device: *const SP_Device) -> Result<&'a DeviceState<D>> {
    // SAFETY: as the caller promises; a handle that is not covered reads as `None`.
    let state = unsafe {
        field!(device => SP_Device.device_handle).and_then(|handle| borrow::<_, c_void>(handle))
    };
    state.ok_or_else(no_device)
}

/// As [`device`], as a reference of its own.
///
/// # Safety
/// As for [`device`].
pub(super) unsafe fn shared_device<D: Device>(
    device: *const SP_Device,
) -> Result<Arc<DeviceState<D>>> {
    // SAFETY: as the caller promises.
    let state = unsafe {
        field!(device => SP_Device.device_handle).and_then(|handle| share::<_, c_void>(handle))
    };
    state.ok_or_else(no_device)
}

#[cold]
fn no_device() -> Error {
    Error::failed_precondition("TensorFlow passed no device, because `create_device` has failed")
}

/// The address in a struct of the host's.
///
/// # Safety
/// `memory` is null or points to a struct of which `struct_size` bytes can be read.
pub(super) unsafe fn address(memory: *const SP_DeviceMemoryBase) -> Result<DevicePtr> {
    // SAFETY: as the caller promises.
    let address = unsafe { field!(memory => SP_DeviceMemoryBase.opaque) };
    let address = address.and_then(|address| DevicePtr::new(address.addr() as u64));
    let address =
        address.ok_or_else(|| Error::invalid_argument("TensorFlow passed no device memory"))?;
    if address.is_refused() {
        return Err(Error::resource_exhausted("the memory of the device is used up"));
    }
    Ok(address)
}
