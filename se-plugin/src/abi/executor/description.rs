//! The description of a device.

use super::callback::{Argument, callbacks};
use crate::abi::state::DeviceState;
use crate::device::Device;
use core::ptr;
use tf_fs_sys::{SP_DEVICE_FNS_STRUCT_SIZE, SP_DeviceFns};

/// Returns the functions that describe devices.
pub(in crate::abi) const fn device_fns<D: Device>() -> SP_DeviceFns {
    SP_DeviceFns {
        struct_size: SP_DEVICE_FNS_STRUCT_SIZE,
        ext: ptr::null_mut(),
        get_numa_node: Some(get_numa_node::<D>),
        get_memory_bandwidth: Some(get_memory_bandwidth::<D>),
        get_gflops: Some(get_gflops::<D>),
    }
}

callbacks! {
    quiet fn get_numa_node(device: &DeviceState<D>) -> i32 {
        Ok(device.device.numa_node().map_or(-1, i32::from))
    } else { -1 }

    quiet fn get_memory_bandwidth(device: &DeviceState<D>) -> i64 {
        let signed = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok(device.device.memory_bandwidth().map_or(-1, signed))
    } else { -1 }

    quiet fn get_gflops(device: &DeviceState<D>) -> f64 {
        Ok(device.device.gflops().unwrap_or(-1.0))
    } else { -1.0 }
}
