//! What is compared, and what not all releases have: the lists to extend for a new header.

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
];

/// What the headers have and `tf-fs-sys` does not: a function with types of the API for PJRT plugins, which is
/// another one, and a second function of the same name, which only C++ has.
pub(crate) const WITHOUT: &[&str] = &["TF_GetRendezvous", "TFE_NewTensorHandle1"];

/// Records of which `tf-fs-sys` has only the size.
pub(crate) const OPAQUE: &[&str] = &["TF_TString"];

/// What not all releases from 2.12 on declare: names, and the releases that have them. Only optional
/// functions, types and constants can be here.
pub(crate) const DECLARED: &[(&[&str], Releases)] = &[
    (
        &[
            "TF_AsyncOpKernelDoneCallback",
            "TF_NewAsyncKernelBuilder",
            "TF_RunAsyncOpKernelDoneCallback",
        ],
        Releases::since(2, 13),
    ),
    (&["TF_ForEachPayload"], Releases::since(2, 14)),
    (&["TF_INT4", "TF_UINT4"], Releases::since(2, 15)),
    (&["TF_IncNumDeferredOps", "TF_DecNumDeferredOps"], Releases::since(2, 15)),
    (&["TF_TemporaryVariable", "TF_DestroyTemporaryVariable"], Releases::since(2, 15)),
    (&["TF_GetDeviceName"], Releases::since(2, 16)),
    (&["TF_TensorDefaultAlignment"], Releases::since(2, 17)),
    (
        &["TF_FLOAT8_E4M3FNUZ", "TF_FLOAT8_E4M3B11FNUZ", "TF_FLOAT8_E5M2FNUZ"],
        Releases::since(2, 19),
    ),
    (&["TF_INT2", "TF_UINT2"], Releases::since(2, 20)),
    (&["TF_FLOAT4_E2M1FN"], Releases::since(2, 21)),
    (&["TF_LogLevel", "TF_INFO", "TF_WARNING", "TF_ERROR", "TF_FATAL"], Releases::until(2, 20)),
    (&["TF_Log", "TF_VLog", "TF_DVLog"], Releases::until(2, 20)),
];

/// What not all releases from 2.12 on export, as [`DECLARED`]: functions only.
pub(crate) const EXPORTED: &[(&[&str], Releases)] = &[
    (&["TF_NewAsyncKernelBuilder", "TF_RunAsyncOpKernelDoneCallback"], Releases::since(2, 13)),
    (&["TF_ForEachPayload"], Releases::since(2, 14)),
    (&["TF_IncNumDeferredOps", "TF_DecNumDeferredOps"], Releases::since(2, 15)),
    (&["TF_GetDeviceName"], Releases::since(2, 16)),
    (&["TF_TensorDefaultAlignment"], Releases::since(2, 17)),
    (&["TF_Log", "TF_VLog", "TF_DVLog"], Releases::until(2, 20)),
    // The headers of 2.19 to 2.21 declare these, and no library has them.
    (
        &[
            "TF_AddNVariant",
            "TF_AssignRefVariable",
            "TF_AssignUpdateVariable",
            "TF_AssignVariable",
            "TF_GetInputByName",
            "TF_GetInputTensorFromVariable",
            "TF_IsRefInput",
            "TF_MaybeLockVariableInputMutexesInOrder",
            "TF_OpKernelConstruction_GetAttrTensorShape",
            "TF_OpKernelContext_ForwardRefInputToRefOutput",
            "TF_ReleaseVariableInputLockHolder",
            "TF_ZerosLikeVariant",
        ],
        Releases::since(2, 12).but_not((2, 19), (2, 21)),
    ),
    (
        &["TF_TemporaryVariable", "TF_DestroyTemporaryVariable"],
        Releases::since(2, 15).but_not((2, 19), (2, 21)),
    ),
];

/// A range of releases, each given by major and minor number; both ends belong to it. There may be a gap in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Releases {
    /// The first.
    first: (u32, u32),
    /// The last.
    last: (u32, u32),
    /// First and last of those in between that are none of them.
    gap: Option<[(u32, u32); 2]>,
}

impl Releases {
    const fn since(major: u32, minor: u32) -> Self {
        Self { first: (major, minor), last: (u32::MAX, u32::MAX), gap: None }
    }

    const fn until(major: u32, minor: u32) -> Self {
        Self { first: (0, 0), last: (major, minor), gap: None }
    }

    const fn but_not(self, first: (u32, u32), last: (u32, u32)) -> Self {
        Self { gap: Some([first, last]), ..self }
    }

    /// Whether `release` is one of them.
    pub(crate) fn contains(&self, release: (u32, u32)) -> bool {
        (self.first..=self.last).contains(&release)
            && self.gap.is_none_or(|[first, last]| !(first..=last).contains(&release))
    }
}

/// The names of `table` ([`DECLARED`] or [`EXPORTED`]) that `release` lacks, sorted.
pub(crate) fn absent_from(
    table: &[(&'static [&'static str], Releases)],
    release: (u32, u32),
) -> Vec<&'static str> {
    let mut names: Vec<&str> = table
        .iter()
        .filter(|(_, releases)| !releases.contains(release))
        .flat_map(|(names, _)| names.iter().copied())
        .collect();
    names.sort_unstable();
    names
}
