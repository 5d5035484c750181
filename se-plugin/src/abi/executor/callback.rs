//! The conversion of a callback of the host into a call with safe arguments, behind a guard.

use crate::abi::event::EventState;
use crate::abi::state::{DeviceState, StreamState, TimerState, borrow, device as device_of};
use crate::abi::versions::field;
use crate::device::Device;
use crate::memory::DevicePtr;
use core::ffi::c_void;
use core::ptr;
use tf_fs_sys::{
    SE_StatusCallbackFn, SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase, SP_Event, SP_Stream,
    SP_StreamOptions, SP_Timer, TF_Status,
};
use tf_plugin_core::__private::boundary::{catch, guard};
use tf_plugin_core::{Error, Result};

/// An argument in the form that the body of a callback gets.
pub(super) trait Argument: Sized {
    /// The argument as the host passes it.
    type Raw;

    /// Converts the host's argument.
    ///
    /// # Safety
    /// A number, a function or an address that is not converted has no requirements. For everything else, no reference
    /// in the value is used after the callback has returned, and `raw` is null, or
    /// - a device that `create_device` has filled for the `D` of the type,
    /// - a stream, event or timer that the callbacks for this `D` have made and not destroyed,
    /// - the place of a handle, which nothing else uses,
    /// - a struct of which as many bytes can be read as its `struct_size` says.
    unsafe fn of_host(raw: Self::Raw) -> Result<Self>;
}

/// Arguments that stay as they are.
macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            type Raw = Self;

            #[inline]
            unsafe fn of_host(raw: Self) -> Result<Self> {
                Ok(raw)
            }
        }
    )*};
}

plain!(u8, u32, u64, i64, *mut i64, *mut c_void, *const c_void, SP_Stream, SP_Event, SP_Timer);
plain!(SE_StatusCallbackFn);
plain!(*mut SP_DeviceMemoryBase, *mut SP_AllocatorStats, *const SP_StreamOptions, *const SP_Device);

impl<D: Device> Argument for &DeviceState<D> {
    type Raw = *const SP_Device;

    #[inline]
    unsafe fn of_host(raw: *const SP_Device) -> Result<Self> {
        // SAFETY: `raw` is null, or filled by `create_device` for this `D`.
        unsafe { device_of(raw) }
    }
}

/// References to what a handle points to. Null is `None` for an `Option`, and an error that names the handle otherwise.
macro_rules! handles {
    ($($raw:ty => $state:ident, $what:literal;)*) => {$(
        impl<D: Device> Argument for Option<&$state<D>> {
            type Raw = $raw;

            #[inline]
            unsafe fn of_host(raw: $raw) -> Result<Self> {
                // SAFETY: `raw` is null, or was made for this `D` and not destroyed: it points to the state.
                Ok(unsafe { borrow(raw) })
            }
        }

        impl<D: Device> Argument for &$state<D> {
            type Raw = $raw;

            #[inline]
            unsafe fn of_host(raw: $raw) -> Result<Self> {
                // SAFETY: `raw` is null, or was made for this `D` and not destroyed: it points to the state.
                unsafe { borrow(raw) }.ok_or_else(|| null($what))
            }
        }
    )*};
}

handles! {
    SP_Stream => StreamState, "stream";
    SP_Event => EventState, "event";
    SP_Timer => TimerState, "timer";
}

/// Returns the error for a handle that is null because an earlier `create_*` failed.
#[cold]
pub(super) fn null(what: &str) -> Error {
    Error::failed_precondition(format!("TensorFlow passed no {what}, because it could not be made"))
}

/// The place of a new handle, which is null at first.
pub(super) struct NewHandle<'a, H>(&'a mut *mut H);

impl<H> NewHandle<'_, H> {
    pub(super) fn put(self, handle: *mut H) {
        *self.0 = handle;
    }
}

impl<H> Argument for NewHandle<'_, H> {
    type Raw = *mut *mut H;

    unsafe fn of_host(raw: *mut *mut H) -> Result<Self> {
        // SAFETY: `raw` is null, or the place of a handle, which nothing else uses.
        let place = unsafe { raw.as_mut() }.ok_or_else(|| null("place for a handle"))?;
        *place = ptr::null_mut();
        Ok(Self(place))
    }
}

/// Addresses on the device. A missing address is an error only if there is something to copy or fill.
macro_rules! addresses {
    ($($(#[$doc:meta])* $name:ident: $raw:ty;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name(Option<DevicePtr>);

        impl $name {
            /// Returns the address, or an error that says why there is none.
            #[inline]
            pub(super) fn get(self) -> Result<DevicePtr> {
                match self.0 {
                    Some(address) if !address.is_refused() => Ok(address),
                    address => Err(no_address(address.is_some())),
                }
            }
        }

        impl Argument for $name {
            type Raw = $raw;

            #[inline]
            unsafe fn of_host(raw: $raw) -> Result<Self> {
                // SAFETY: `raw` is null, or a struct of which `struct_size` bytes can be read.
                let address = unsafe { field!(raw => SP_DeviceMemoryBase.opaque) };
                Ok(Self(address.and_then(|address| DevicePtr::new(address.addr() as u64))))
            }
        }
    )*};
}

addresses! {
    /// Where a copy or a fill writes to.
    Target: *mut SP_DeviceMemoryBase;
    /// Where a copy reads from.
    Source: *const SP_DeviceMemoryBase;
}

#[cold]
fn no_address(is_refused: bool) -> Error {
    if is_refused {
        return Error::resource_exhausted("the memory of the device is used up");
    }
    Error::invalid_argument("TensorFlow passed no device memory")
}

/// Declares callbacks of devices of a type `D`. Each body gets its arguments through [`Argument`], behind a guard:
///
/// - `fn` has a status as its last argument, which gets the error or a panic;
/// - `quiet fn` has no status, and returns the value behind `else` if it fails;
/// - `enqueue fn` runs [`enqueue`], with the device and the stream.
macro_rules! callbacks {
    () => {};
    (
        $(#[$doc:meta])*
        fn $name:ident($device:ident: $state:ty $(, $argument:ident: $type:ty)* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $(#[$doc])*
        pub(super) unsafe extern "C" fn $name<D: Device>(
            $device: <$state as Argument>::Raw,
            $($argument: <$type as Argument>::Raw,)*
            status: *mut tf_fs_sys::TF_Status,
        ) {
            let body = |$device: $state, $($argument: $type),*| -> Result<()> { $body };
            // SAFETY: the host passes what `create_device` and these callbacks have made for this `D`, and a status; the
            // body ends before the callback does.
            unsafe {
                tf_plugin_core::__private::boundary::guard(stringify!($name), status, (), || {
                    // The device comes last: the place of a handle is set to null even if there is no device.
                    $(let $argument = <$type>::of_host($argument)?;)*
                    body(<$state>::of_host($device)?, $($argument),*)
                });
            }
        }
        callbacks! { $($rest)* }
    };
    (
        $(#[$doc:meta])*
        enqueue fn $name:ident(
            $device:ident, $stream:ident $(, $argument:ident: $type:ty)* $(,)?
        ) $body:block
        $($rest:tt)*
    ) => {
        $(#[$doc])*
        pub(super) unsafe extern "C" fn $name<D: Device>(
            device: *const tf_fs_sys::SP_Device,
            stream: tf_fs_sys::SP_Stream,
            $($argument: <$type as Argument>::Raw,)*
            status: *mut tf_fs_sys::TF_Status,
        ) {
            let body = |
                $device: &DeviceState<D>, $stream: &StreamState<D>, $($argument: $type),*
            | -> Result<()> { $body };
            // SAFETY: the host passes what `create_device` and these callbacks have made for this `D`, and a status; the
            // body ends before the callback does.
            unsafe {
                let op = stringify!($name);
                super::callback::enqueue::<D>(op, device, stream, status, move |device, stream| {
                    $(let $argument = <$type>::of_host($argument)?;)*
                    body(device, stream, $($argument),*)
                });
            }
        }
        callbacks! { $($rest)* }
    };
    (
        $(#[$doc:meta])*
        quiet fn $name:ident(
            $($argument:ident: $type:ty),* $(,)?
        ) $(-> $answer:ty)? $body:block else $fallback:block
        $($rest:tt)*
    ) => {
        $(#[$doc])*
        pub(super) unsafe extern "C" fn $name<D: Device>(
            $($argument: <$type as Argument>::Raw),*
        ) $(-> $answer)? {
            let body = |$($argument: $type),*| { $body };
            // SAFETY: the host passes what `create_device` and these callbacks have made for this `D`; the body ends before
            // the callback does.
            let run = || unsafe { body($(<$type>::of_host($argument)?),*) };
            tf_plugin_core::__private::boundary::guard_logged(stringify!($name), || $fallback, run)
        }
        callbacks! { $($rest)* }
    };
}
pub(super) use callbacks;

/// Runs `body`, which enqueues work into a stream, as the callback `op`. A host that accepts errors gets them; after
/// an earlier one `body` is skipped. If an error would abort the process, the device keeps it and reports it later.
///
/// # Safety
/// `device` is null or filled by `create_device` for this `D`, `stream` is null or from `create_stream` for this `D` and not
/// destroyed, and `status` is null or the host's.
#[inline]
pub(super) unsafe fn enqueue<D: Device>(
    op: &'static str,
    device: *const SP_Device,
    stream: SP_Stream,
    status: *mut TF_Status,
    body: impl FnOnce(&DeviceState<D>, &StreamState<D>) -> Result<()>,
) {
    // SAFETY: this function requires of `device`, `stream` and `status` what `of_host`, `device_of` and `guard` do.
    unsafe {
        guard(op, status, (), || {
            let device = device_of::<D>(device)?;
            if device.takes_errors {
                device.health.check()?;
            }
            let stream = <Option<&StreamState<D>>>::of_host(stream)?;
            let result = match stream {
                Some(stream) => catch(op, || body(device, stream)),
                None => Err(null("stream")),
            };
            if device.takes_errors {
                return result;
            }
            if let Err(error) = result {
                stream.map_or(&device.health, StreamState::health).note(op, &error);
            }
            Ok(())
        });
    }
}
