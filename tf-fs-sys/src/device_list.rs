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
        /// How many there are.
        required fn TF_DeviceListCount(list: DeviceList) -> c_int;
        /// The whole name of one, which is the list's.
        required fn TF_DeviceListName(list: DeviceList, index: c_int, status: Status) -> Text;
        /// The type of one, which is the list's.
        required fn TF_DeviceListType(list: DeviceList, index: c_int, status: Status) -> Text;
    }
}
