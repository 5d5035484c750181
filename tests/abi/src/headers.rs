//! Which C header each module of `tf-fs-sys` mirrors: the one list to extend for a new header.
//! Also part of the build script.

/// Every header that `tf-fs-sys` mirrors, in an order in which they can be included.
pub const HEADERS: &[Header] = &[
    Header::whole("tensorflow/c/tf_status.h", "status").wrapping("tsl_status.h", "TSL_", "TF_"),
    Header::whole("tensorflow/c/tf_file_statistics.h", "file_statistics"),
    Header::whole("tensorflow/c/experimental/filesystem/filesystem_interface.h", "filesystem"),
    Header::part("tensorflow/c/c_api.h", "registration"),
];

/// Modules of `tf-fs-sys` that declare nothing of TensorFlow's.
pub const OTHER_MODULES: &[&str] = &["lib", "host"];

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
        Self { path, module, whole: true, wraps: None }
    }

    /// A header of which the module mirrors a few declarations.
    #[must_use]
    pub const fn part(path: &'static str, module: &'static str) -> Self {
        Self { path, module, whole: false, wraps: None }
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
}
