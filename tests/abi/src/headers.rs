//! Which C header each module of `tf-fs-sys` mirrors: the one list to extend for a new header.
//! Also part of the build script.

/// Every header that `tf-fs-sys` mirrors, in an order in which they can be included.
pub const HEADERS: &[Header] = &[
    Header::whole("tensorflow/c/c_api_macros.h", "c_api_macros"),
    Header::whole("tensorflow/c/tf_status.h", "status").wrapping("tsl_status.h", "TSL_", "TF_"),
    Header::whole("tensorflow/c/tf_file_statistics.h", "file_statistics"),
    Header::whole("tensorflow/c/experimental/filesystem/filesystem_interface.h", "filesystem"),
    Header::part("tensorflow/c/c_api.h", "registration"),
    Header::part("tensorflow/c/c_api.h", "string_view"),
    Header::whole("tensorflow/c/tf_attrtype.h", "attrtype"),
    Header::whole("tensorflow/c/tf_datatype.h", "datatype"),
    Header::whole("tensorflow/c/tf_buffer.h", "buffer"),
    Header::whole("tensorflow/c/tf_tensor.h", "tensor"),
    Header::part("tensorflow/tsl/platform/ctstring_internal.h", "ctstring"),
    Header::whole("tensorflow/c/tf_tstring.h", "tstring"),
    Header::whole("tensorflow/c/experimental/stream_executor/stream_executor.h", "stream_executor"),
    // The excluded function takes and gives types of the API for PJRT plugins, which is another one.
    Header::whole("tensorflow/c/kernels.h", "kernels").without(&["TF_GetRendezvous"]),
    Header::whole("tensorflow/c/kernels_experimental.h", "kernels_experimental"),
    Header::whole("tensorflow/c/ops.h", "ops"),
    Header::whole("tensorflow/c/experimental/grappler/grappler.h", "grappler"),
    Header::whole("tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h", "profiler"),
    Header::whole("tensorflow/c/logging.h", "logging").not_in_all_releases(),
    Header::part("tensorflow/c/env.h", "env"),
    Header::part("tensorflow/c/c_api.h", "client"),
    Header::part("tensorflow/c/c_api_experimental.h", "device_registration"),
    Header::part("tensorflow/c/eager/c_api.h", "eager").overloading(&["TFE_NewTensorHandle"]),
];

/// Modules of `tf-fs-sys` that declare nothing that a header of the releases has.
pub const OTHER_MODULES: &[&str] =
    &["filesystem_2_22", "host", "layout", "lib", "stream_executor_2_22"];

/// Those of [`OTHER_MODULES`] that the declarations need.
pub const NEEDED_MODULES: &[&str] = &["layout"];

/// What not all releases from 2.12 on declare: names, and the releases that have them. Only optional
/// functions, types and constants can be here.
pub const DECLARED: &[(&[&str], Releases)] = &[
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
pub const EXPORTED: &[(&[&str], Releases)] = &[
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
pub struct Releases {
    /// The first.
    pub first: (u32, u32),
    /// The last.
    pub last: (u32, u32),
    /// First and last of those in between that are none of them.
    pub gap: Option<[(u32, u32); 2]>,
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
    #[must_use]
    pub fn contains(&self, release: (u32, u32)) -> bool {
        (self.first..=self.last).contains(&release)
            && self.gap.is_none_or(|[first, last]| !(first..=last).contains(&release))
    }
}

/// The names of `table` ([`DECLARED`] or [`EXPORTED`]) that `release` lacks, sorted.
#[must_use]
pub fn absent_from(
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

/// One header and the module that mirrors it.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Path as in `#include "..."`.
    pub path: &'static str,
    /// Name of the module in `tf-fs-sys`.
    pub module: &'static str,
    /// Whether the module must have everything that the header has. The header must have everything
    /// that the module has in any case.
    pub whole: bool,
    /// A header whose enumerators this one renames.
    pub wraps: Option<Wrapped>,
    /// Functions that the module leaves out on purpose.
    pub without: &'static [&'static str],
    /// Functions of whose name C++ has others, too.
    pub overloaded: &'static [&'static str],
    /// Whether each release has the header.
    pub in_all_releases: bool,
}

/// A header of whose constants another one is to give its own name to each.
#[derive(Clone, Copy, Debug)]
pub struct Wrapped {
    /// End of the path by which the wrapping header includes it; the rest changes between releases.
    pub file: &'static str,
    /// Prefix of the names in the wrapped header.
    pub prefix: &'static str,
    /// Prefix of the same names in the wrapping header.
    pub becomes: &'static str,
}

impl Header {
    /// A header of which the module mirrors everything.
    #[must_use]
    pub const fn whole(path: &'static str, module: &'static str) -> Self {
        Self {
            path,
            module,
            whole: true,
            wraps: None,
            without: &[],
            overloaded: &[],
            in_all_releases: true,
        }
    }

    /// A header of which the module mirrors a few declarations.
    #[must_use]
    pub const fn part(path: &'static str, module: &'static str) -> Self {
        Self { whole: false, ..Self::whole(path, module) }
    }

    /// The header renames the constants of the included `file`: `becomes` stands in place of `prefix`. A
    /// constant that it forgets counts as its own, under the name that it has.
    #[must_use]
    pub const fn wrapping(
        mut self,
        file: &'static str,
        prefix: &'static str,
        becomes: &'static str,
    ) -> Self {
        self.wraps = Some(Wrapped { file, prefix, becomes });
        self
    }

    /// The module leaves the `functions` out.
    #[must_use]
    pub const fn without(mut self, functions: &'static [&'static str]) -> Self {
        self.without = functions;
        self
    }

    /// C++ has other `functions` of these names.
    #[must_use]
    pub const fn overloading(mut self, functions: &'static [&'static str]) -> Self {
        self.overloaded = functions;
        self
    }

    /// A release may lack the header; then it lacks everything that the module has.
    #[must_use]
    pub const fn not_in_all_releases(mut self) -> Self {
        self.in_all_releases = false;
        self
    }
}
