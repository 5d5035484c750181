//! What an operation answers when it fails: a code, a message, causes and payloads.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io;
use std::sync::PoisonError;
use tf_fs_sys as sys;

/// The result of every operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The codes that TensorFlow knows for failures (`tf_status.h`); success is `Ok`.
///
/// Python raises the exception of the same name from `tf.errors`, such as
/// `tf.errors.NotFoundError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Code {
    /// The operation was cancelled, typically by the caller.
    Cancelled = sys::TF_CANCELLED,
    /// An error with no better code.
    Unknown = sys::TF_UNKNOWN,
    /// An argument that is wrong whatever the state of the filesystem.
    InvalidArgument = sys::TF_INVALID_ARGUMENT,
    /// A time limit passed before the operation ended.
    DeadlineExceeded = sys::TF_DEADLINE_EXCEEDED,
    /// A file, directory, transaction or option that does not exist.
    NotFound = sys::TF_NOT_FOUND,
    /// Something that was to be created exists already.
    AlreadyExists = sys::TF_ALREADY_EXISTS,
    /// The caller may not do this.
    PermissionDenied = sys::TF_PERMISSION_DENIED,
    /// A quota, the disk or the memory is used up.
    ResourceExhausted = sys::TF_RESOURCE_EXHAUSTED,
    /// The filesystem is not in the state that the operation needs: a directory where a file is
    /// wanted, a file where a directory is wanted, a directory that is not empty, a malformed path.
    FailedPrecondition = sys::TF_FAILED_PRECONDITION,
    /// A conflict with another operation.
    Aborted = sys::TF_ABORTED,
    /// Past the end of a file. The SDK reports it for a read that ends early, and takes it from
    /// `read_at` as the end of the file; authors rarely need it.
    OutOfRange = sys::TF_OUT_OF_RANGE,
    /// Not supported by this plugin.
    Unimplemented = sys::TF_UNIMPLEMENTED,
    /// A bug in the plugin, such as a panic.
    Internal = sys::TF_INTERNAL,
    /// Not available now; a retry may help.
    Unavailable = sys::TF_UNAVAILABLE,
    /// Data is lost or corrupt.
    DataLoss = sys::TF_DATA_LOSS,
    /// The caller has no valid credentials.
    Unauthenticated = sys::TF_UNAUTHENTICATED,
}

impl Code {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The number that crosses the C boundary.
    #[must_use]
    pub const fn as_raw(self) -> sys::TF_Code {
        self as sys::TF_Code
    }

    /// The code of a number: `None` for `TF_OK`, [`Code::Unknown`] for a number that is no code.
    #[must_use]
    pub fn from_raw(code: sys::TF_Code) -> Option<Self> {
        match code {
            sys::TF_OK => None,
            other => Some(
                Self::ALL
                    .into_iter()
                    .find(|candidate| candidate.as_raw() == other)
                    .unwrap_or(Self::Unknown),
            ),
        }
    }
}

/// Why an operation failed.
///
/// TensorFlow gets the [code](Code), the message followed by its causes (`message: cause: cause`)
/// and the payloads. Whatever the text holds, what crosses the C boundary is valid UTF-8 without NUL
/// and at most 4 KiB.
///
/// ```
/// use tf_fs_plugin::{Code, Error, ResultExt};
///
/// let failed: std::io::Result<()> = Err(std::io::ErrorKind::NotFound.into());
/// let error = failed.context("reading the index").unwrap_err();
/// assert_eq!(error.code(), Code::NotFound);
/// assert_eq!(error.to_string(), "reading the index: entity not found");
/// ```
#[derive(Debug)]
#[must_use = "an error does nothing until it is returned"]
pub struct Error {
    code: Code,
    message: Cow<'static, str>,
    details: Option<Box<Details>>,
}

#[derive(Debug, Default)]
struct Details {
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    payloads: Vec<(String, String)>,
}

/// How many causes are printed; a chain may be a loop.
const MAX_CAUSES: usize = 16;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $code:ident, $suffix:literal;)*) => {$(
        $(#[$doc])*
        #[cold]
        pub fn $name(what: impl fmt::Display) -> Self {
            Self::new(Code::$code, text(&what, $suffix))
        }
    )*};
}

/// `what` and `suffix` in one allocation, which nearly always suffices for the NUL too that the message
/// gets in the end. A missing path is an everyday answer.
fn text(what: &dyn fmt::Display, suffix: &str) -> String {
    let mut text = String::with_capacity(128);
    // Only a `Display` that claims to have failed ends early, and then there is no more to say.
    let _ = write!(text, "{what}");
    text.push_str(suffix);
    text
}

impl Error {
    /// An error with this code and message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    constructors! {
        /// [`Code::NotFound`] with the message `<what>: not found`.
        not_found => NotFound, ": not found";
        /// [`Code::AlreadyExists`] with the message `<what>: already exists`.
        already_exists => AlreadyExists, ": already exists";
        /// [`Code::FailedPrecondition`] with the message `<what>: is a directory`.
        is_a_directory => FailedPrecondition, ": is a directory";
        /// [`Code::FailedPrecondition`] with the message `<what>: not a directory`.
        not_a_directory => FailedPrecondition, ": not a directory";
        /// [`Code::FailedPrecondition`] with the message `<what>: directory is not empty`.
        directory_not_empty => FailedPrecondition, ": directory is not empty";
        /// [`Code::Unimplemented`] with the message `<what> is not supported by this plugin`.
        unimplemented => Unimplemented, " is not supported by this plugin";
        /// [`Code::InvalidArgument`] with this message.
        invalid_argument => InvalidArgument, "";
        /// [`Code::FailedPrecondition`] with this message.
        failed_precondition => FailedPrecondition, "";
        /// [`Code::PermissionDenied`] with this message.
        permission_denied => PermissionDenied, "";
        /// [`Code::ResourceExhausted`] with this message.
        resource_exhausted => ResourceExhausted, "";
        /// [`Code::Unavailable`] with this message.
        unavailable => Unavailable, "";
        /// [`Code::DataLoss`] with this message.
        data_loss => DataLoss, "";
        /// [`Code::Internal`] with this message.
        internal => Internal, "";
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The message without its causes.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Takes the text that `{:#}` prints, if the message is all of it.
    pub(crate) fn take_text(&mut self) -> Option<String> {
        if self.details.is_some() {
            return None;
        }
        Some(match std::mem::take(&mut self.message) {
            Cow::Owned(text) => text,
            Cow::Borrowed(text) => {
                let mut owned = String::with_capacity(text.len() + 1);
                owned.push_str(text);
                owned
            }
        })
    }

    /// The payloads, in the order in which they were added.
    pub fn payloads(&self) -> impl Iterator<Item = (&str, &str)> {
        self.details
            .iter()
            .flat_map(|details| &details.payloads)
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The same error with another code.
    pub fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// The same error caused by `source`, which is printed after the message.
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.details.get_or_insert_default().source = Some(source.into());
        self
    }

    /// The same error with a payload: a key, by convention a type URL, and a value for programs.
    /// C++ callers see it with `absl::Status::ForEachPayload`.
    pub fn with_payload(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.details.get_or_insert_default().payloads.push((key.into(), value.into()));
        self
    }

    /// The same error with `context: ` in front of its message.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message).into();
        self
    }
}

/// The message; with `{:#}` the message followed by its causes, as TensorFlow gets it.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !f.alternate() {
            return Ok(());
        }
        let mut cause = std::error::Error::source(self);
        for _ in 0..MAX_CAUSES {
            let Some(error) = cause else { break };
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.details.as_ref()?.source.as_ref()?;
        Some(source.as_ref())
    }
}

impl From<io::Error> for Error {
    /// The code that TensorFlow's own filesystem gives for the same system error, but for a file that
    /// is too large (`RESOURCE_EXHAUSTED`) and a name that cannot be (`FAILED_PRECONDITION`, as the
    /// header wants it); the message is the error's. An `Error` that went through
    /// an [`io::Error`] comes back as it was.
    #[cold]
    fn from(error: io::Error) -> Self {
        let code = error.raw_os_error().and_then(code_of_os_error);
        let code = code.unwrap_or_else(|| code_of_kind(error.kind()));
        error.downcast().unwrap_or_else(|error| Self::new(code, error.to_string()))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.code {
            Code::NotFound => io::ErrorKind::NotFound,
            Code::AlreadyExists => io::ErrorKind::AlreadyExists,
            Code::PermissionDenied | Code::Unauthenticated => io::ErrorKind::PermissionDenied,
            Code::InvalidArgument => io::ErrorKind::InvalidInput,
            Code::DeadlineExceeded => io::ErrorKind::TimedOut,
            Code::DataLoss => io::ErrorKind::InvalidData,
            Code::Unimplemented => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl From<std::str::Utf8Error> for Error {
    /// [`Code::InvalidArgument`].
    #[cold]
    fn from(error: std::str::Utf8Error) -> Self {
        Self::new(Code::InvalidArgument, error.to_string())
    }
}

/// For system errors that the standard library has no kind for, or lumps together.
fn code_of_os_error(errno: i32) -> Option<Code> {
    Some(match errno {
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS => Code::ResourceExhausted,
        libc::ENXIO | libc::ENODEV => Code::NotFound,
        libc::EBADF => Code::FailedPrecondition,
        libc::ENOLCK | libc::ENOLINK | libc::ENETRESET | libc::EHOSTDOWN => Code::Unavailable,
        libc::ESTALE => Code::Aborted,
        libc::ESPIPE => Code::InvalidArgument,
        libc::ECANCELED => Code::Cancelled,
        _ => return None,
    })
}

fn code_of_kind(kind: io::ErrorKind) -> Code {
    use io::ErrorKind as Kind;
    match kind {
        Kind::NotFound => Code::NotFound,
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Code::PermissionDenied,
        Kind::AlreadyExists => Code::AlreadyExists,
        Kind::NotADirectory
        | Kind::IsADirectory
        | Kind::DirectoryNotEmpty
        | Kind::ResourceBusy
        | Kind::ExecutableFileBusy
        | Kind::BrokenPipe
        // The header's code for a path that the filesystem cannot accept.
        | Kind::InvalidFilename => Code::FailedPrecondition,
        Kind::InvalidInput | Kind::ArgumentListTooLong => Code::InvalidArgument,
        // A stream that ends too early is a loss. Were it taken for the end of the file, TensorFlow
        // would go on without the rest.
        Kind::InvalidData | Kind::UnexpectedEof => Code::DataLoss,
        Kind::TimedOut => Code::DeadlineExceeded,
        Kind::StorageFull
        | Kind::QuotaExceeded
        | Kind::FileTooLarge
        | Kind::OutOfMemory
        | Kind::TooManyLinks => Code::ResourceExhausted,
        Kind::WouldBlock
        | Kind::Interrupted
        | Kind::ConnectionRefused
        | Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::NotConnected
        | Kind::AddrNotAvailable
        | Kind::HostUnreachable
        | Kind::NetworkUnreachable
        | Kind::NetworkDown => Code::Unavailable,
        Kind::Deadlock => Code::Aborted,
        Kind::Unsupported | Kind::CrossesDevices => Code::Unimplemented,
        _ => Code::Unknown,
    }
}

impl<T> From<PoisonError<T>> for Error {
    /// [`Code::Internal`]: an earlier panic left the lock's data in an unknown state.
    #[cold]
    fn from(_: PoisonError<T>) -> Self {
        Self::new(
            Code::Internal,
            "the plugin's state is locked for good, because an earlier operation panicked; mend that panic, and start the process anew",
        )
    }
}

/// Adds context or a code to a failure on its way up.
pub trait ResultExt<T> {
    /// Puts `context: ` in front of the error's message.
    ///
    /// # Errors
    /// The same failure, with its code.
    fn context(self, context: impl fmt::Display) -> Result<T>;

    /// Replaces the error's code.
    ///
    /// # Errors
    /// The same failure, with its message.
    fn code(self, code: Code) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for Result<T, E> {
    fn context(self, context: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(context))
    }

    fn code(self, code: Code) -> Result<T> {
        self.map_err(|error| error.into().with_code(code))
    }
}

/// Returns the error from the surrounding function unless the condition holds.
///
/// ```
/// use tf_fs_plugin::{Error, Result, ensure};
///
/// fn open(name: &str) -> Result<()> {
///     ensure!(!name.is_empty(), Error::invalid_argument("the name is empty"));
///     Ok(())
/// }
/// assert!(open("a").is_ok() && open("").is_err());
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $error:expr $(,)?) => {
        if !$condition {
            return ::core::result::Result::Err(::core::convert::From::from($error));
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_round_trip() {
        for code in Code::ALL {
            assert_eq!(Code::from_raw(code.as_raw()), Some(code));
        }
        assert_eq!(Code::from_raw(sys::TF_OK), None);
        assert_eq!(Code::from_raw(4711), Some(Code::Unknown));
    }

    #[test]
    fn constructors_complete_the_sentence() {
        for (error, code, text) in [
            (Error::not_found("a"), Code::NotFound, "a: not found"),
            (Error::already_exists("a"), Code::AlreadyExists, "a: already exists"),
            (Error::is_a_directory("a"), Code::FailedPrecondition, "a: is a directory"),
            (Error::not_a_directory("a"), Code::FailedPrecondition, "a: not a directory"),
            (
                Error::directory_not_empty("a"),
                Code::FailedPrecondition,
                "a: directory is not empty",
            ),
            // For every kind of plugin.
            (
                Error::unimplemented("an inverse"),
                Code::Unimplemented,
                "an inverse is not supported by this plugin",
            ),
            (Error::internal("a text"), Code::Internal, "a text"),
        ] {
            assert_eq!((error.code(), error.message()), (code, text));
        }
    }

    #[test]
    fn causes_follow_the_message() {
        let error = Error::new(Code::Unavailable, "upload failed")
            .with_source(Error::data_loss("checksum").with_source("bit flip"));
        assert_eq!(error.to_string(), "upload failed");
        assert_eq!(format!("{error:#}"), "upload failed: checksum: bit flip");
    }

    #[test]
    fn io_errors_keep_their_meaning() {
        for (kind, code) in [
            (io::ErrorKind::NotFound, Code::NotFound),
            (io::ErrorKind::NotADirectory, Code::FailedPrecondition),
            (io::ErrorKind::DirectoryNotEmpty, Code::FailedPrecondition),
            (io::ErrorKind::StorageFull, Code::ResourceExhausted),
            (io::ErrorKind::UnexpectedEof, Code::DataLoss),
        ] {
            assert_eq!(Error::from(io::Error::from(kind)).code(), code, "{kind:?}");
        }
        for (errno, code) in [
            (libc::ENOENT, Code::NotFound),
            (libc::EMFILE, Code::ResourceExhausted),
            (libc::EBADF, Code::FailedPrecondition),
            (libc::ENOSPC, Code::ResourceExhausted),
        ] {
            assert_eq!(Error::from(io::Error::from_raw_os_error(errno)).code(), code, "{errno}");
        }
    }

    #[test]
    fn an_error_survives_being_an_io_error() {
        let error = Error::new(Code::Aborted, "conflict").with_payload("key", "value");
        let back = Error::from(io::Error::from(error));
        assert_eq!((back.code(), back.message()), (Code::Aborted, "conflict"));
        assert_eq!(back.payloads().collect::<Vec<_>>(), [("key", "value")]);
    }
}
