//! What an author says about a filesystem, where TensorFlow can live with several answers.

/// When others see a file that is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visible {
    /// From the moment that it is opened for writing, as the header asks; what was flushed can be read.
    /// Writing to a name again makes a new file: who has the old one open reads its content to the end, or gets an error.
    #[default]
    Create,
    /// As [`Create`](Self::Create), but a file that is there is emptied and written again in place: who has it open
    /// sees that happen, as with TensorFlow's own local files and POSIX. Renaming still replaces it by another file.
    InPlace,
    /// What was flushed or synced, and the rest when it was closed: object stores whose writers publish what
    /// they have when they are told to.
    Flush,
    /// When it was closed, as in most object stores.
    Close,
}

impl Visible {
    /// Whether a file is there from the moment that it is opened for writing.
    pub(in crate::filesystem) fn at_create(self) -> bool {
        matches!(self, Self::Create | Self::InPlace)
    }
}

/// What a directory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directories {
    /// Something that has to be made before a file is put into it, as the header asks.
    #[default]
    Real,
    /// Whatever a name with `/` says, as in object stores: no parent has to be there, and none is
    /// looked at. A file may be written beside a directory of its name, and a directory may be renamed, as
    /// TensorFlow's own `gs://` does; both are `FAILED_PRECONDITION` in the header, which is right as well.
    /// Copying or renaming a file onto a directory is `FAILED_PRECONDITION` here, too.
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

/// Where the files come from that the cases read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Files {
    /// The cases write them.
    #[default]
    Written,
    /// They are there before the first case runs, for filesystems that only read: the set-up has put all
    /// [`samples`](crate::filesystem::samples) below the root. Cases that change anything are skipped.
    Provided,
}

/// All that an author says of a filesystem.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    pub(in crate::filesystem) files: Files,
    pub(in crate::filesystem) malformed: Option<String>,
    pub(in crate::filesystem) other_host: Option<String>,
    pub(in crate::filesystem) visible: Visible,
    pub(in crate::filesystem) directories: Directories,
    pub(in crate::filesystem) append: Append,
}

/// Makes the methods that declare something, of a type with a `Declared` in this field; texts have this bound.
macro_rules! declarations {
    ($type:ty, $field:ident, $text:path) => {
        impl $type {
            /// A URI that this filesystem can never accept; each operation must answer
            /// `FAILED_PRECONDITION` to it, as the header asks, or `INVALID_ARGUMENT`.
            #[must_use]
            pub fn malformed(mut self, uri: impl $text) -> Self {
                self.$field.malformed = Some(uri.into());
                self
            }

            /// When others see a file that is being written.
            #[must_use]
            pub fn visible(mut self, visible: Visible) -> Self {
                self.$field.visible = visible;
                self
            }

            /// What a directory is.
            #[must_use]
            pub fn directories(mut self, directories: Directories) -> Self {
                self.$field.directories = directories;
                self
            }

            /// Whether files that exist can be appended to.
            #[must_use]
            pub fn append(mut self, append: Append) -> Self {
                self.$field.append = append;
                self
            }

            /// Where the files come from that the cases read; with [`Files::Provided`] those that write are left out.
            #[must_use]
            pub fn files(mut self, files: Files) -> Self {
                self.$field.files = files;
                self
            }
        }
    };
}

pub(in crate::filesystem) use declarations;
