//! The type of the devices in this process.

use crate::Platform;
use crate::platform::{is_identifier, is_reserved_type};
use crate::sync::{ForkMutex, lock_across_forks};
use core::any::TypeId;
use once_cell::race::OnceBool;
use std::collections::BTreeMap;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{BufferFunctions, RegisteredKernelsFunctions};
use tf_op_plugin::__private::abi::Status;
use tf_op_plugin::__private::wire::each_of;
use tf_plugin_core::__private::boundary::lent;
use tf_plugin_core::__private::boundary::{catch, log_error};
use tf_plugin_core::{Error, Result, ResultExt as _, ensure};

/// The type that each platform has chosen first, which stays. Kernels take TensorFlow's handles for those of this
/// library's devices, so a later choice must not register kernels for the devices of another library.
static CHOSEN: ForkMutex<BTreeMap<TypeId, &'static str>> = ForkMutex::new(BTreeMap::new());

/// Returns the type of the platform's devices in this process: the one it [chooses](Platform::device_type) first, or
/// [`TYPE`](Platform::TYPE) if TensorFlow does not accept that one. A graph pass compares the devices of nodes with it.
#[must_use]
pub fn device_type<P: Platform>() -> &'static str {
    if let Some(kind) = lock_across_forks(&CHOSEN).get(&TypeId::of::<P>()) {
        return kind;
    }
    let chosen = chosen::<P>().unwrap_or_else(|refusal| {
        log_error(&format_args!("the device type is {}: {refusal}", P::TYPE));
        P::TYPE
    });
    lock_across_forks(&CHOSEN).entry(TypeId::of::<P>()).or_insert(chosen)
}

/// Returns the type that the platform chooses now.
/// Fails if the platform panics, or chooses a type that TensorFlow does not accept.
fn chosen<P: Platform>() -> Result<&'static str> {
    let kind = catch("device_type", || Ok(P::device_type()))?;
    if kind != P::TYPE {
        check(kind, host_has_gpu_kernels).context(format_args!("`{kind}` cannot be one"))?;
    }
    Ok(kind)
}

/// Checks a type that a platform has chosen.
/// Fails with `INVALID_ARGUMENT` for a type that TensorFlow does not accept, or has kernels for.
fn check(kind: &str, has_gpu_kernels: impl FnOnce() -> bool) -> Result<()> {
    ensure!(
        is_identifier(kind),
        Error::invalid_argument("it must be capital letters and `_`, beginning with a letter")
    );
    ensure!(
        kind == "GPU" || !is_reserved_type(kind),
        Error::invalid_argument("TensorFlow has kernels for it")
    );
    ensure!(
        kind != "GPU" || !has_gpu_kernels(),
        Error::invalid_argument(
            "kernels for it are registered already, by this TensorFlow, which was built for GPUs, or by another plugin; \
             remove one of the two, or use the other type"
        )
    );
    Ok(())
}

/// Returns whether this TensorFlow was built for CUDA or ROCm, or another plugin has the type `GPU`: then no devices of this plugin
/// can be of that type.
///
/// The result is `false` for a host that does not report its kernels.
#[must_use]
pub fn host_has_gpu_kernels() -> bool {
    static KNOWN: OnceBool = OnceBool::new();
    if let Some(known) = KNOWN.get() {
        return known;
    }
    // Every build has kernels of the type `GPU` for some ops, but not for this one.
    device_types_of(c"MatMul")
        .is_ok_and(|types| KNOWN.get_or_init(|| types.split(' ').any(|kind| kind == "GPU")))
}

/// Returns the types of devices for which an op has kernels, with a space behind each.
fn device_types_of(op: &core::ffi::CStr) -> Result<String> {
    let list =
        RegisteredKernelsFunctions::get().map_err(Error::internal)?.TF_GetRegisteredKernelsForOp;
    let delete = BufferFunctions::get().map_err(Error::internal)?.TF_DeleteBuffer;
    let status = Status::new()?;
    // SAFETY: a C string and a living status.
    let buffer = unsafe { list(op.as_ptr(), status.as_ptr()) };
    status.check()?;
    // SAFETY: the host returned it with the status OK, and it lives until it is deleted below.
    let types = unsafe { buffer.as_ref() }.map_or(Ok(String::new()), |kernels| {
        // SAFETY: a buffer of the host's with so many bytes.
        types_in(unsafe { lent(kernels.data, kernels.length)? })
    });
    // SAFETY: the buffer is the caller's to delete, and nothing of it is used any more; null is allowed.
    unsafe { delete(buffer) };
    types
}

/// Returns the types in a `KernelList`: the `device_type` (field 2) of each `kernel` (field 1).
fn types_in(list: &[u8]) -> Result<String> {
    let mut types = String::new();
    for kernel in each_of(list, 1) {
        for kind in each_of(kernel?, 2) {
            types.push_str(&String::from_utf8_lossy(kind?));
            types.push(' ');
        }
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::test_platform::TestPlatform;
    use tf_op_plugin::__private::wire::{put_bytes, put_message};

    #[test]
    fn a_type_is_refused_that_tensorflow_would_abort_on_or_fail_with() {
        assert!(check("GPU", || false).is_ok());
        assert!(check("MY_GPU", || true).is_ok());
        for kind in ["CPU", "DEFAULT", "gpu", "", "GPU0"] {
            assert!(check(kind, || false).is_err(), "{kind}");
        }
        let refused = check("GPU", || true).unwrap_err();
        assert!(refused.message().contains("registered already"), "{refused}");
    }

    #[test]
    fn a_platform_that_panics_or_chooses_wrong_has_its_constant_type() {
        assert_eq!(device_type::<TestPlatform<0>>(), "NOTHING");
        assert_eq!(device_type::<TestPlatform<1>>(), "NOTHING");
        assert_eq!(device_type::<TestPlatform<2>>(), "MINE");
        for (refusal, why) in [
            (chosen::<TestPlatform<0>>(), "no setting"),
            (chosen::<TestPlatform<1>>(), "`CPU` cannot be one: TensorFlow has kernels for it"),
        ] {
            let text = refusal.unwrap_err().to_string();
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn a_choice_stays() {
        assert_eq!(device_type::<TestPlatform<3>>(), "FIRST");
        assert_eq!(TestPlatform::<3>::device_type(), "LATER");
        assert_eq!(device_type::<TestPlatform<3>>(), "FIRST");
    }

    #[test]
    fn the_types_of_a_list_of_kernels_are_found() {
        let mut list = Vec::new();
        for kind in ["CPU", "GPU"] {
            put_message(&mut list, 1, |kernel| {
                put_bytes(kernel, 1, b"M");
                put_bytes(kernel, 2, kind.as_bytes());
            });
        }
        assert_eq!(types_in(&list).unwrap(), "CPU GPU ");
        assert!(types_in(&list[..5]).is_err());
    }
}
