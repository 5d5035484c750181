//! The compared headers, and the declarations that not all releases have: the lists to extend for a new header.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Headers of which `tf-fs-sys` mirrors everything, in an order in which they can be included.
pub(crate) const WHOLE: &[&str] = &[
    "tensorflow/c/c_api_macros.h",
    "tensorflow/c/tf_status.h",
    "tensorflow/c/tf_file_statistics.h",
    "tensorflow/c/experimental/filesystem/filesystem_interface.h",
    "tensorflow/c/tf_attrtype.h",
    "tensorflow/c/tf_datatype.h",
    "tensorflow/c/tf_buffer.h",
    "tensorflow/c/tf_tensor.h",
    "tensorflow/c/tf_tstring.h",
    "tensorflow/c/experimental/stream_executor/stream_executor.h",
    "tensorflow/c/kernels.h",
    "tensorflow/c/kernels_experimental.h",
    "tensorflow/c/ops.h",
    "tensorflow/c/experimental/grappler/grappler.h",
    "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h",
    "tensorflow/c/logging.h",
];

/// Headers of which it mirrors a few declarations.
pub(crate) const PART: &[&str] = &[
    "tensorflow/c/c_api.h",
    "tensorflow/tsl/platform/ctstring_internal.h",
    "tensorflow/c/env.h",
    "tensorflow/c/c_api_experimental.h",
    "tensorflow/c/eager/c_api.h",
    "tensorflow/c/eager/c_api_experimental.h",
];

/// Declarations that the headers have and `tf-fs-sys` does not: a function with types of the API for PJRT plugins,
/// which is another one, and a second function of the same name, which only C++ has.
pub(crate) const WITHOUT: &[&str] = &["TF_GetRendezvous", "TFE_NewTensorHandle1"];

/// Records of which `tf-fs-sys` has only the size.
pub(crate) const OPAQUE: &[&str] = &["TF_TString"];

/// Declarations that not all releases since 2.12 have: names, and the releases that have them. Only optional
/// functions, types and constants can be here.
pub(crate) const DECLARED: &[(&str, Releases)] = &[
    ("TF_AsyncOpKernelDoneCallback", since(2, 13)),
    ("TF_NewAsyncKernelBuilder TF_RunAsyncOpKernelDoneCallback", since(2, 13)),
    ("TF_ForEachPayload", since(2, 14)),
    ("TF_INT4 TF_UINT4 TF_IncNumDeferredOps TF_DecNumDeferredOps", since(2, 15)),
    ("TF_TemporaryVariable TF_DestroyTemporaryVariable", since(2, 15)),
    ("TF_GetDeviceName", since(2, 16)),
    ("TF_TensorDefaultAlignment", since(2, 17)),
    ("TF_FLOAT8_E4M3FNUZ TF_FLOAT8_E4M3B11FNUZ TF_FLOAT8_E5M2FNUZ", since(2, 19)),
    ("TF_INT2 TF_UINT2", since(2, 20)),
    ("TF_FLOAT4_E2M1FN", since(2, 21)),
    ("TF_LogLevel TF_INFO TF_WARNING TF_ERROR TF_FATAL TF_Log TF_VLog TF_DVLog", until(2, 20)),
];

/// Functions that the headers of 2.19 to 2.21 declare and no library has.
const DECLARED_ONLY: &str = "TF_AddNVariant TF_AssignRefVariable TF_AssignUpdateVariable \
    TF_AssignVariable TF_DestroyTemporaryVariable TF_GetInputByName TF_GetInputTensorFromVariable \
    TF_IsRefInput TF_MaybeLockVariableInputMutexesInOrder TF_OpKernelConstruction_GetAttrTensorShape \
    TF_OpKernelContext_ForwardRefInputToRefOutput TF_ReleaseVariableInputLockHolder \
    TF_TemporaryVariable TF_ZerosLikeVariant";

/// Releases, each by major and minor number.
type Releases = RangeInclusive<(u32, u32)>;

const fn since(major: u32, minor: u32) -> Releases {
    (major, minor)..=(u32::MAX, u32::MAX)
}

const fn until(major: u32, minor: u32) -> Releases {
    (0, 0)..=(major, minor)
}

/// The names of [`DECLARED`] that the headers of `release` lack, sorted.
pub(crate) fn not_declared(release: (u32, u32)) -> Vec<&'static str> {
    let absent = DECLARED.iter().filter(|(_, releases)| !releases.contains(&release));
    let mut names: Vec<&str> = absent.flat_map(|(names, _)| names.split(' ')).collect();
    names.sort_unstable();
    names
}

/// Those of `functions` that the libraries of `release` lack, sorted.
pub(crate) fn not_exported(release: (u32, u32), functions: &BTreeSet<&str>) -> Vec<&'static str> {
    let mut names = not_declared(release);
    names.retain(|name| functions.contains(name));
    if ((2, 19)..=(2, 21)).contains(&release) {
        names.extend(DECLARED_ONLY.split(' '));
    }
    names.sort_unstable();
    names
}
