//! Context and codes for errors that `?` passes on, and checks.

use crate::error::{Code, Error, Result};
use std::fmt;

/// Adds context or a code to a failure on its way up.
///
/// ```
/// use tf_fs_plugin::{Code, Result, ResultExt};
///
/// fn size(text: &str) -> Result<u64> {
///     // The number's error is not one that the SDK knows a code for.
///     let blocks = text.trim().parse::<u64>().or_code(Code::DataLoss).context("the index")?;
///     Ok(blocks * 512)
/// }
/// let error = size("many").unwrap_err();
/// assert_eq!(error.code(), Code::DataLoss);
/// assert_eq!(error.to_string(), "the index: invalid digit found in string");
/// ```
pub trait ResultExt<T, E> {
    /// Puts `context: ` in front of the error's message.
    ///
    /// # Errors
    /// The same failure, with its code.
    fn context(self, context: impl fmt::Display) -> Result<T>
    where
        E: Into<Error>;

    /// Replaces the code of an error that has one.
    ///
    /// # Errors
    /// The same failure, with its message.
    fn with_code(self, code: Code) -> Result<T>
    where
        E: Into<Error>;

    /// Gives a code to an error of any library; see [`Error::from_foreign`].
    ///
    /// # Errors
    /// The failure with this code; its text is the message, and its causes follow it.
    fn or_code(self, code: Code) -> Result<T>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>;
}

impl<T, E> ResultExt<T, E> for Result<T, E> {
    fn context(self, context: impl fmt::Display) -> Result<T>
    where
        E: Into<Error>,
    {
        self.map_err(|error| error.into().context(context))
    }

    fn with_code(self, code: Code) -> Result<T>
    where
        E: Into<Error>,
    {
        self.map_err(|error| error.into().with_code(code))
    }

    fn or_code(self, code: Code) -> Result<T>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.map_err(|error| Error::from_foreign(code, error))
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
    use std::io;

    /// A library's error with a cause, as of `rusqlite`.
    #[derive(Debug)]
    struct Database(Option<io::Error>);

    impl fmt::Display for Database {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("cannot open the database")
        }
    }

    impl std::error::Error for Database {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.0.as_ref().map(|cause| cause as _)
        }
    }

    #[test]
    fn a_foreign_error_gets_a_code_and_keeps_its_causes() {
        let disk = || io::Error::other(Database(Some(io::Error::other("bad sector"))));
        let failed: Result<(), _> = Err(Database(Some(disk())));
        let error = failed.or_code(Code::Unavailable).context("my://host/x").unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        assert_eq!(error.message(), "my://host/x: cannot open the database");
        // The library's own cause has the same text; it is said once.
        assert_eq!(format!("{error:#}"), "my://host/x: cannot open the database: bad sector");
        // A real library's, through `?`.
        fn parse(text: &str) -> Result<serde_json::Value> {
            let value = serde_json::from_str(text).or_code(Code::DataLoss)?;
            Ok(value)
        }
        assert_eq!(parse("[1]").ok(), Some(serde_json::json!([1])));
        let error = parse("[1,").unwrap_err();
        assert_eq!(error.code(), Code::DataLoss);
        assert_eq!(error.message(), "EOF while parsing a value at line 1 column 3");
        // A text is an error, too.
        let text: Result<(), &str> = Err("no more rows");
        let error = text.or_code(Code::NotFound).unwrap_err();
        assert_eq!((error.code(), error.to_string()), (Code::NotFound, "no more rows".into()));
    }

    #[test]
    fn an_error_of_the_sdk_keeps_all_but_its_code() {
        let failed: Result<()> = Err(Error::data_loss("x").with_payload("key", "value"));
        let error = failed.or_code(Code::Aborted).unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::Aborted, "x"));
        assert_eq!(error.payloads().collect::<Vec<_>>(), [("key", "value")]);
    }

    #[test]
    fn causes_without_an_end_are_no_trouble() {
        #[derive(Debug)]
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("and so on ")?;
                }
            }
        }
        impl std::error::Error for Endless {}
        struct Page(usize);
        impl fmt::Write for Page {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
                Ok(())
            }
        }
        let error = Error::internal("it goes on").with_source(Endless);
        assert!(fmt::write(&mut Page(4096), format_args!("{error:#}")).is_err());
    }
}
