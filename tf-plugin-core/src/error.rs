//! The error of an operation: a code, a message, causes and payloads.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
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
    /// An argument that is wrong in any state of the filesystem.
    InvalidArgument = sys::TF_INVALID_ARGUMENT,
    /// A time limit passed before the operation ended.
    DeadlineExceeded = sys::TF_DEADLINE_EXCEEDED,
    /// A file, directory, transaction or option that does not exist.
    NotFound = sys::TF_NOT_FOUND,
    /// The path to create already exists.
    AlreadyExists = sys::TF_ALREADY_EXISTS,
    /// The caller may not do this.
    PermissionDenied = sys::TF_PERMISSION_DENIED,
    /// A quota, the disk or the memory is used up.
    ResourceExhausted = sys::TF_RESOURCE_EXHAUSTED,
    /// The filesystem is not in the state that the operation needs: a directory where a file is
    /// required, a file where a directory is required, a directory that is not empty, a malformed path.
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

    /// Returns the number that crosses the C boundary.
    #[must_use]
    pub const fn as_raw(self) -> sys::TF_Code {
        self as sys::TF_Code
    }

    /// Returns the code of a number: `None` for `TF_OK`, [`Code::Unknown`] for a number that is not a code.
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

/// The error of an operation.
///
/// TensorFlow gets the [code](Code), the message followed by its causes (`message: cause: cause`)
/// and the payloads. The text that crosses the C boundary is always valid UTF-8 without NUL,
/// of at most 4 KiB.
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

type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Default)]
struct Details {
    source: Option<Source>,
    payloads: Vec<(String, String)>,
}

/// Where the causes of an error begin.
#[derive(Debug)]
enum Source {
    /// With this one.
    Cause(AnyError),
    /// Below this one, whose text is the message.
    Itself(AnyError),
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

/// Returns `what` and `suffix` in one allocation, which nearly always also has room for the NUL
/// that ends the message later. A missing path is a frequent result.
fn text(what: &dyn fmt::Display, suffix: &str) -> String {
    let mut text = String::with_capacity(128);
    // Only a `Display` that reports an error ends early, and then the text ends there.
    let _ = write!(text, "{what}");
    text.push_str(suffix);
    text
}

impl Error {
    /// Creates an error with this code and message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    /// Creates an error from that of another library, with a code for TensorFlow. Its text becomes the
    /// message, and its causes follow.
    ///
    /// For one call, [`ResultExt::or_code`](crate::ResultExt::or_code) does the same. This is for a function that
    /// chooses the code by the error, for `map_err`, or for a `From` of the plugin's own error type:
    ///
    /// ```
    /// use tf_fs_plugin::{Code, Error, Result};
    ///
    /// fn not_a_number(error: std::num::ParseIntError) -> Error {
    ///     let code = match error.kind() {
    ///         std::num::IntErrorKind::PosOverflow => Code::OutOfRange,
    ///         _ => Code::InvalidArgument,
    ///     };
    ///     Error::from_foreign(code, error)
    /// }
    ///
    /// fn version(text: &str) -> Result<u8> {
    ///     text.parse().map_err(not_a_number)
    /// }
    /// assert_eq!(version("300").unwrap_err().code(), Code::OutOfRange);
    /// ```
    ///
    /// There is no `From` for every error: its code would be a guess, and TensorFlow decides by the code
    /// what to do. An `Error` that is passed here keeps everything except its code.
    #[cold]
    pub fn from_foreign(code: Code, error: impl Into<AnyError>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(own) => own.with_code(code),
            Err(foreign) => {
                let mut error = Self::new(code, foreign.to_string());
                error.details.get_or_insert_default().source = Some(Source::Itself(foreign));
                error
            }
        }
    }

    constructors! {
        /// Creates an error with [`Code::NotFound`] and the message `<what>: not found`.
        not_found => NotFound, ": not found";
        /// Creates an error with [`Code::AlreadyExists`] and the message `<what>: already exists`.
        already_exists => AlreadyExists, ": already exists";
        /// Creates an error with [`Code::FailedPrecondition`] and the message `<what>: is a directory`.
        expected_file => FailedPrecondition, ": is a directory";
        /// Creates an error with [`Code::FailedPrecondition`] and the message `<what>: not a directory`.
        expected_directory => FailedPrecondition, ": not a directory";
        /// Creates an error with [`Code::FailedPrecondition`] and the message `<what>: directory is not empty`.
        expected_empty_directory => FailedPrecondition, ": directory is not empty";
        /// Creates an error with [`Code::Unimplemented`] and the message `<what> is not supported by this plugin`.
        unimplemented => Unimplemented, " is not supported by this plugin";
        /// Creates an error with [`Code::InvalidArgument`] and this message.
        invalid_argument => InvalidArgument, "";
        /// Creates an error with [`Code::FailedPrecondition`] and this message.
        failed_precondition => FailedPrecondition, "";
        /// Creates an error with [`Code::PermissionDenied`] and this message.
        permission_denied => PermissionDenied, "";
        /// Creates an error with [`Code::ResourceExhausted`] and this message.
        resource_exhausted => ResourceExhausted, "";
        /// Creates an error with [`Code::Unavailable`] and this message.
        unavailable => Unavailable, "";
        /// Creates an error with [`Code::DataLoss`] and this message.
        data_loss => DataLoss, "";
        /// Creates an error with [`Code::Internal`] and this message.
        internal => Internal, "";
    }

    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the message without its causes.
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

    /// Returns the payloads, in the order in which they were added.
    pub fn payloads(&self) -> impl Iterator<Item = (&str, &str)> {
        self.details
            .iter()
            .flat_map(|details| &details.payloads)
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Replaces the code.
    pub fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Adds a cause, which is printed after the message.
    pub fn with_source(mut self, source: impl Into<AnyError>) -> Self {
        self.details.get_or_insert_default().source = Some(Source::Cause(source.into()));
        self
    }

    /// Adds a payload: a key, by convention a type URL, and a value for programs.
    /// C++ callers see it with `absl::Status::ForEachPayload`.
    pub fn with_payload(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.details.get_or_insert_default().payloads.push((key.into(), value.into()));
        self
    }

    /// Puts `context: ` in front of the message.
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
        for number in 0..MAX_CAUSES {
            let Some(error) = cause else { break };
            // Some libraries print their cause as their own text, too.
            if number > 0 || !ends_with(&self.message, error) {
                write!(f, ": {error}")?;
            }
            cause = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.details.as_ref()?.source.as_ref()? {
            Source::Cause(error) => Some(error.as_ref()),
            Source::Itself(error) => error.source(),
        }
    }
}

/// Returns whether a text ends with that of an error, which may be endless.
fn ends_with(text: &str, error: &dyn std::error::Error) -> bool {
    struct Bounded(String, usize);
    impl fmt::Write for Bounded {
        fn write_str(&mut self, piece: &str) -> fmt::Result {
            if piece.len() > self.1 - self.0.len() {
                return Err(fmt::Error);
            }
            self.0.push_str(piece);
            Ok(())
        }
    }
    let mut other = Bounded(String::new(), text.len());
    write!(other, "{error}").is_ok() && !other.0.is_empty() && text.ends_with(&other.0)
}

impl From<std::str::Utf8Error> for Error {
    /// Converts to [`Code::InvalidArgument`].
    #[cold]
    fn from(error: std::str::Utf8Error) -> Self {
        Self::new(Code::InvalidArgument, error.to_string())
    }
}

impl<T> From<PoisonError<T>> for Error {
    /// Converts to [`Code::Internal`]: an earlier panic left the lock's data in an unknown state.
    #[cold]
    fn from(_: PoisonError<T>) -> Self {
        Self::new(
            Code::Internal,
            "a lock of the plugin is poisoned by an earlier panic; fix that panic and restart the process",
        )
    }
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
            (Error::expected_file("a"), Code::FailedPrecondition, "a: is a directory"),
            (Error::expected_directory("a"), Code::FailedPrecondition, "a: not a directory"),
            (
                Error::expected_empty_directory("a"),
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
}
