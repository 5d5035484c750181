//! Declarations about a filesystem, where TensorFlow supports several behaviours.

/// When others see a file that is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// From the moment that it is opened for writing, as the header requires; flushed bytes can be read. Writing to the
    /// name again creates a new file: who has the old one open reads its content to the end, or gets an error.
    #[default]
    Create,
    /// Like [`Create`](Self::Create), but an existing file is emptied and rewritten in place, as TensorFlow's own local
    /// files and POSIX do: who has it open sees the change. Renaming still replaces it by another file.
    InPlace,
    /// The bytes that were flushed or synced, and the rest when it is closed: object stores whose writers
    /// can publish what they have so far.
    Flush,
    /// When it was closed, as in most object stores.
    Close,
}

impl Visibility {
    /// Returns whether a file exists from the moment that it is opened for writing.
    pub(in crate::filesystem) fn at_create(self) -> bool {
        matches!(self, Self::Create | Self::InPlace)
    }
}

/// Whether directories exist by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directories {
    /// They have to be created before a file is put into them, as the header requires.
    #[default]
    Real,
    /// They are implied by names with `/`, as in object stores: no parent has to exist, and none is checked. A file may
    /// be written next to a directory of the same name, and a directory may be renamed, as in TensorFlow's own `gs://`.
    /// The header requires `FAILED_PRECONDITION` for both, which is accepted as well. Copying or renaming a file onto a
    /// directory is `FAILED_PRECONDITION` here, too.
    Implied,
}

/// Whether files that exist can be appended to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Append {
    /// Yes.
    #[default]
    Supported,
    /// No: `new_appendable_file` returns `UNIMPLEMENTED` for a file that exists.
    Unsupported,
}

/// Who creates the files that the cases read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Files {
    /// The cases write them.
    #[default]
    Written,
    /// They exist before the first case runs, for read-only filesystems: the set-up has put all
    /// [`samples`](crate::filesystem::samples) below the root. Cases that change anything are skipped.
    Provided,
}

/// Everything that an author declares about a filesystem.
#[derive(Clone, Debug, Default)]
pub struct Semantics {
    pub(in crate::filesystem) files: Files,
    pub(in crate::filesystem) malformed: Option<String>,
    pub(in crate::filesystem) other_host: Option<String>,
    pub(in crate::filesystem) visible: Visibility,
    pub(in crate::filesystem) directories: Directories,
    pub(in crate::filesystem) append: Append,
}

/// Defines the methods that declare something, for a type with a `Semantics` in this field; texts have this bound.
macro_rules! declarations {
    ($type:ty, $field:ident, $text:path) => {
        impl $type {
            /// Sets a URI that this filesystem can never accept. Each operation must return
            /// `FAILED_PRECONDITION` for it, as the header requires, or `INVALID_ARGUMENT`.
            #[must_use]
            pub fn malformed(mut self, uri: impl $text) -> Self {
                self.$field.malformed = Some(uri.into());
                self
            }

            declarations! { @set $field
                visible: Visibility, "Sets when others see a file that is being written.";
                directories: Directories, "Sets whether directories exist by themselves.";
                append: Append, "Sets whether files that exist can be appended to.";
                files: Files, "Sets who creates the files that the cases read; with [`Files::Provided`], cases that write are left out.";
            }
        }
    };
    (@set $field:ident $($name:ident: $of:ty, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[must_use]
        pub fn $name(mut self, $name: $of) -> Self {
            self.$field.$name = $name;
            self
        }
    )*};
}

pub(in crate::filesystem) use declarations;
