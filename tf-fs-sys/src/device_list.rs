//! The functions of `tensorflow/c/c_api.h` that list devices.

#[cfg(feature = "host")]
use crate::status::TF_Status;
#[cfg(feature = "host")]
use core::ffi::{c_char, c_int};

crate::layout::opaque! {
    /// Devices. Opaque.
    pub struct TF_DeviceList;
}

#[cfg(feature = "host")]
crate::host::host_functions! {
    /// The devices in a list, in `libtensorflow_cc.so.2`.
    pub struct DeviceListFunctions {
        /// Frees a list.
        required fn TF_DeleteDeviceList(list: *mut TF_DeviceList);
        /// How many there are.
        required fn TF_DeviceListCount(list: *const TF_DeviceList) -> c_int;
        /// The whole name of one, which is the list's.
        required fn TF_DeviceListName(
            list: *const TF_DeviceList,
            index: c_int,
            status: *mut TF_Status,
        ) -> *const c_char;
        /// The type of one, which is the list's.
        required fn TF_DeviceListType(
            list: *const TF_DeviceList,
            index: c_int,
            status: *mut TF_Status,
        ) -> *const c_char;
    }
}
