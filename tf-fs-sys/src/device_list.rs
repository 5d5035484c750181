//! The functions of `tensorflow/c/c_api.h` that list devices.

use crate::layout::{Status, Text};
use core::ffi::c_int;

type DeviceList = *const TF_DeviceList;

crate::layout::opaque! {
    /// Devices. Opaque.
    pub struct TF_DeviceList;
}

crate::layout::host_functions! {
    /// The devices in a list, in `libtensorflow_cc.so.2`.
    pub struct DeviceListFunctions {
        /// Frees a list.
        required fn TF_DeleteDeviceList(list: *mut TF_DeviceList);
        /// Returns the number of devices.
        required fn TF_DeviceListCount(list: DeviceList) -> c_int;
        /// Returns the full name of a device. Borrowed from the list.
        required fn TF_DeviceListName(list: DeviceList, index: c_int, status: Status) -> Text;
        /// Returns the type of a device. Borrowed from the list.
        required fn TF_DeviceListType(list: DeviceList, index: c_int, status: Status) -> Text;
    }
}
