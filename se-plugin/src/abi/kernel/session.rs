//! The session's configuration, as far as a plugin's device cannot do what it says.
//!
//! Python accepts logical devices and a limit of memory for a device of the type `GPU`. It passes them where TensorFlow's
//! own GPUs read them, and not to plugin devices: the program would silently run on one device without a limit. For other
//! types Python raises an error.

use crate::abi::device_type::device_type;
use crate::platform::Platform;
use core::ptr::NonNull;
use once_cell::race::OnceBool;
use tf_fs_sys::TF_OpKernelContext;
use tf_op_plugin::__private::abi::{HostApi, Status, session_config};
use tf_op_plugin::__private::wire::{each_of, values};
use tf_plugin_core::{Error, Result, ensure};

/// Checks that the session does not configure logical devices for the devices of `P`. The first run of a kernel in the
/// process reads the configuration.
///
/// # Safety
/// `raw` is a run of a kernel that has not ended.
#[inline]
pub(super) unsafe fn check<P: Platform>(
    raw: NonNull<TF_OpKernelContext>,
    host: &HostApi,
    status: &Status,
) -> Result<()> {
    static HAS: OnceBool = OnceBool::new();
    // A configuration that cannot be read does not count.
    let read = || {
        // SAFETY: `raw` is a run that has not ended.
        let config = unsafe { session_config(raw, host, status) };
        config.and_then(|config| has_logical_devices(&config)).unwrap_or(false)
    };
    let has = HAS.get_or_init(read);
    // For other types the configuration is that of TensorFlow's own GPUs.
    ensure!(!has || device_type::<P>() != "GPU", refusal());
    Ok(())
}

#[cold]
fn refusal() -> Error {
    Error::failed_precondition(
        "`tf.config.set_logical_device_configuration` has no effect here: TensorFlow passes neither logical devices nor \
         a memory limit to plugin devices; remove the call, and limit the memory by a setting of the plugin",
    )
}

/// Returns whether a `ConfigProto` has a `gpu_options.experimental.virtual_devices.memory_limit_mb`: its fields 6, 9, 1
/// and 1. Python adds `virtual_devices` without a limit for each GPU once any device, such as the CPU, has logical devices;
/// those of a GPU must have a limit.
fn has_logical_devices(config: &[u8]) -> Result<bool> {
    for options in each_of(config, 6) {
        for experimental in each_of(options?, 9) {
            for devices in each_of(experimental?, 1) {
                for field in values(devices?) {
                    // The limits are a packed list, or a field each.
                    if field?.0 == 1 {
                        return Ok(true);
                    }
                }
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_op_plugin::__private::wire::{put_bytes, put_message};

    #[test]
    fn logical_devices_are_found() {
        let config = |devices: &[&[u8]]| {
            let mut config = Vec::new();
            put_message(&mut config, 6, |options| {
                put_message(options, 9, |experimental| {
                    devices.iter().for_each(|device| put_bytes(experimental, 1, device));
                });
            });
            config
        };
        assert!(!has_logical_devices(&[]).unwrap());
        assert!(!has_logical_devices(&config(&[])).unwrap());
        // As Python writes for two GPUs, where only the CPU has logical devices.
        assert!(!has_logical_devices(&config(&[b"", b""])).unwrap());
        // A priority without a limit, then a packed limit of 64, and one that is not packed.
        assert!(!has_logical_devices(&config(&[&[0x12, 1, 0]])).unwrap());
        let packed = [0x0a, 4, 0, 0, 0x80, 0x42];
        assert!(has_logical_devices(&config(&[b"", &packed])).unwrap());
        assert!(has_logical_devices(&config(&[&[0x0d, 0, 0, 0x80, 0x42]])).unwrap());
        assert!(has_logical_devices(&config(&[&packed])[..3]).is_err());
    }
}
