//! The conditions of a path, and the codes that an operation must return for each.

use tf_plugin_core::Code;

/// The condition of a path. Those for which operations have their own codes come first, in the order of [`Codes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    Missing,
    ParentMissing,
    File,
    EmptyDir,
    FullDir,
    /// Directly below a file.
    BelowFile,
    /// Two levels below a file.
    FarBelowFile,
    Malformed,
}

impl Is {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::ParentMissing => "none/missing",
            Self::File => "file",
            Self::EmptyDir => "empty",
            Self::FullDir => "full",
            Self::BelowFile => "file/below",
            Self::FarBelowFile => "file/far/below",
            Self::Malformed => "",
        }
    }
}

/// The codes of an operation for a path that is missing, whose parent is missing, a file, an empty
/// directory, a directory with a file in it; `None` is OK.
pub(super) type Codes = [Option<Code>; 5];

/// Returns the code for a condition. All operations return `FAILED_PRECONDITION` below a file and for a malformed path.
pub(super) fn code_of(codes: &Codes, is: Is) -> Option<Code> {
    codes.get(is as usize).copied().unwrap_or(FP)
}

pub(in crate::filesystem) const OK: Option<Code> = None;
pub(in crate::filesystem) const FP: Option<Code> = Some(Code::FailedPrecondition);
pub(in crate::filesystem) const NOT_FOUND: Option<Code> = Some(Code::NotFound);
pub(in crate::filesystem) const EXISTS: Option<Code> = Some(Code::AlreadyExists);
pub(super) const END: Option<Code> = Some(Code::OutOfRange);
