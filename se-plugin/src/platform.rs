//! A kind of device.

use crate::device::Device;
use tf_op_plugin::DType;
use tf_plugin_core::Result;

/// A kind of device, which a plugin adds to TensorFlow.
///
/// [`#[device_plugin]`](macro@crate::device_plugin) on the `impl` exports it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Platform`",
    note = "write `impl Platform for {Self}`, with the attribute `#[device_plugin]`"
)]
pub trait Platform: Sized + Send + Sync + 'static {
    /// The platform's name, unique among the plugins of a process: `[A-Z][A-Z_]*`, and not `HOST`, `CUDA`
    /// or `ROCM`, which TensorFlow uses. Another name does not compile.
    const NAME: &'static str;

    /// The type of its devices, as users write it in `/device:TYPE:0`: `[A-Z][A-Z_]*`, and not `CPU`,
    /// `GPU` or `DEFAULT`, which TensorFlow has kernels for. Another type does not compile.
    const TYPE: &'static str;

    /// Returns the type of the devices in this process. It may differ from [`TYPE`](Self::TYPE), by a setting of the
    /// user's or by what TensorFlow supports. The first result in a process is used for its whole life.
    ///
    /// It may be `GPU`: then scripts that name `/GPU:0` or `list_physical_devices('GPU')` run unchanged, in a
    /// TensorFlow without [its own GPU kernels](crate::host_has_gpu_kernels). In another one, or for a type that
    /// TensorFlow does not accept or has kernels for, the SDK uses `TYPE`, and the log says why.
    fn device_type() -> &'static str {
        Self::TYPE
    }

    /// Whether TensorFlow's BFC allocator divides large regions of device memory, in the order of the streams.
    /// True by default (`use_bfc_allocator` in the C API). If false, each tensor is an allocation, and **TensorFlow
    /// deallocates it while enqueued work still uses it**: the device must delay the reuse.
    const USE_BFC_ALLOCATOR: bool = true;

    /// Whether TensorFlow allocates regions when they are needed, regardless of the user's `allow_growth`. True by
    /// default (`force_memory_growth` in the C API). If false, it allocates nearly all of the free memory at once,
    /// unless the user sets `allow_growth`.
    const FORCE_MEMORY_GROWTH: bool = true;

    /// The type of the devices.
    type Device: Device;

    /// Creates the platform, once, when TensorFlow first requests the number of devices. It is dropped when TensorFlow
    /// destroys the platform, which no release does, so it can own resources that its devices use.
    ///
    /// # Errors
    /// Any, such as a missing driver. There are then 0 devices, and the log says why.
    fn new() -> Result<Self>;

    /// Returns the number of devices. Called once.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    fn device_count(&self) -> Result<usize>;

    /// Opens a device, once, when the devices are counted: `ordinal` is 0, then 1, and so on.
    ///
    /// # Errors
    /// Any. This device and those after it are then not counted, and the log says why.
    fn open(&self, ordinal: usize) -> Result<Self::Device>;

    /// Returns whether the kernels for an op with these types of attributes are optional: whether the devices can run
    /// them is known once they are open. TensorFlow runs an op on the CPU if it has no kernel on the device, with copies there and
    /// back, but a kernel cannot be taken back. So these are registered later: when the devices are counted, if
    /// [`has_optional_kernels`](Self::has_optional_kernels). By default no kernel is optional.
    fn is_optional(_op: &str, _types: &[(&str, DType)]) -> bool {
        false
    }

    /// Returns whether all devices that were opened can run the [optional](Self::is_optional) kernels.
    fn has_optional_kernels(&self) -> bool {
        true
    }
}

/// Fails the compilation if the name or the type of a platform would make TensorFlow abort.
pub const fn check<P: Platform>() {
    assert!(
        is_identifier(P::NAME),
        "`Platform::NAME` must be capital letters and `_`, beginning with a letter; write \"MY_DEVICE\""
    );
    assert!(
        is_identifier(P::TYPE),
        "`Platform::TYPE` must be capital letters and `_`, beginning with a letter; write \"MY_DEVICE\""
    );
    assert!(
        !is_reserved_name(P::NAME),
        "`Platform::NAME` is one of TensorFlow's own: HOST, CUDA, ROCM; write another, such as \"MY_DEVICE\""
    );
    assert!(
        !is_reserved_type(P::TYPE),
        "`Platform::TYPE` is one of TensorFlow's own: CPU, GPU, DEFAULT; write another, such as \"MY_GPU\""
    );
}

/// Returns whether a text has the form `[A-Z][A-Z_]*`.
pub(crate) const fn is_identifier(text: &str) -> bool {
    let text = text.as_bytes();
    let mut index = 0;
    while index < text.len() {
        if !(text[index].is_ascii_uppercase() || (index > 0 && text[index] == b'_')) {
            return false;
        }
        index += 1;
    }
    !text.is_empty()
}

/// Returns whether TensorFlow registers a platform of this name itself.
const fn is_reserved_name(name: &str) -> bool {
    matches!(name.as_bytes(), b"HOST" | b"CUDA" | b"ROCM")
}

/// Returns whether TensorFlow has kernels for this type of devices.
pub(crate) const fn is_reserved_type(kind: &str) -> bool {
    matches!(kind.as_bytes(), b"CPU" | b"GPU" | b"DEFAULT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_tensorflow() {
        for good in ["A", "MY_DEVICE", "A_", "RUST_TEST"] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in ["", "_A", "my", "MY_DEVICE2", "MY-DEVICE", "MÜ", "A B", "A\0"] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }
}
