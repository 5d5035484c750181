//! What a path can be, and the codes that an operation owes each.

use tf_plugin_core::Code;

/// What a path is.
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

/// The codes of an operation for each condition; `None` is OK. A path below a file and a malformed one
/// are `FAILED_PRECONDITION` for every operation.
pub(super) struct Codes {
    pub(super) missing: Option<Code>,
    pub(super) parent_missing: Option<Code>,
    pub(super) file: Option<Code>,
    pub(super) empty_dir: Option<Code>,
    pub(super) full_dir: Option<Code>,
}

impl Codes {
    /// The same code for each condition.
    pub(super) fn all(code: Option<Code>) -> Self {
        Self { missing: code, parent_missing: code, file: code, empty_dir: code, full_dir: code }
    }

    pub(super) fn of(&self, is: Is) -> Option<Code> {
        match is {
            Is::Missing => self.missing,
            Is::ParentMissing => self.parent_missing,
            Is::File => self.file,
            Is::EmptyDir => self.empty_dir,
            Is::FullDir => self.full_dir,
            Is::BelowFile | Is::FarBelowFile | Is::Malformed => FP,
        }
    }
}

pub(super) const FP: Option<Code> = Some(Code::FailedPrecondition);
pub(super) const NOT_FOUND: Option<Code> = Some(Code::NotFound);
pub(super) const EXISTS: Option<Code> = Some(Code::AlreadyExists);
