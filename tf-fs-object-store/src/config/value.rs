//! Values of settings, and how they are written.

use crate::DiskCache;
use crate::redact::{REDACTED, keep};
use crate::server::names_server;
use crate::units::{bytes, digits, with_unit};
use std::fmt;
use std::path::Path;

/// The valid values of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Flag,
    /// A number.
    Count {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number of bytes, alone or with a unit.
    Bytes {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number of milliseconds, alone or with a unit.
    Milliseconds {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A text.
    Text,
    /// A text that no message may show.
    Secret,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A URL of `http` or `https`, with its scheme or without.
    Url,
    /// A URL of one of these schemes, which it begins with.
    UrlOf(&'static [&'static str]),
    /// A file that has to exist.
    File,
    /// A directory that has to exist.
    Directory,
    /// A directory for [`Settings::disk_cache`](crate::Settings::disk_cache), and a size.
    DiskCache,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The value of a flag.
    Flag(bool),
    /// A number, in bytes or milliseconds if it has a unit.
    Number(u64),
    /// The value of all other kinds.
    Text(String),
    /// The value of a secret.
    Secret(Secret),
}

/// A text that `Debug` and `Display` do not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret with this text, which no message from others [shows](crate::redact) from now on.
    pub fn new(secret: impl Into<String>) -> Self {
        let secret = secret.into();
        keep(&secret);
        Self(secret)
    }

    /// Returns the text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(if *flag { "1" } else { "0" }),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Secret(_) => f.write_str(REDACTED),
        }
    }
}

/// Writes the allowed values, for messages and for the documentation.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => {
                f.write_str("`1` or `0`, `true` or `false`, `yes` or `no`, `on` or `off`")
            }
            Self::Count { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Bytes { min, max } => {
                write!(f, "bytes, `KiB`, `MiB` or `GiB`, from {} to {}", Bytes(*min), Bytes(*max))
            }
            Self::Milliseconds { min, max } => {
                write!(f, "milliseconds, or with `s` seconds, from {min} to {max} ms")
            }
            Self::Text => f.write_str("a text"),
            Self::Secret => f.write_str("a text, shown nowhere"),
            Self::OneOf(words) => write!(f, "{}", Words(words)),
            Self::UrlOf(schemes) => write!(f, "a URL of {}", Words(schemes)),
            Self::Url => f.write_str("a URL of `http` or `https`"),
            Self::File => f.write_str("the path of a file"),
            Self::Directory => f.write_str("the path of a directory"),
            Self::DiskCache => f.write_str("a directory and a size, such as `/mnt/cache:100GiB`"),
        }
    }
}

/// One of several words.
struct Words(&'static [&'static str]);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.0.iter().enumerate() {
            let before = match i {
                0 => "",
                _ if i + 1 == self.0.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}`{word}`")?;
        }
        Ok(())
    }
}

/// A number of bytes in the largest unit that divides it.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >> shift << shift == self.0 && self.0 > 0 {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        write!(f, "{} B", self.0)
    }
}

impl Kind {
    /// Returns whether using the default in place of a wrong value would be dangerous: data could go to another place,
    /// or over a connection that is trusted less or not at all.
    pub(crate) fn is_vital(self) -> bool {
        matches!(
            self,
            Self::Text | Self::Url | Self::UrlOf(_) | Self::File | Self::Directory | Self::Secret
        )
    }

    /// Parses a value.
    ///
    /// # Errors
    /// If the text is not a valid value; with the reason, unless `self` shows it already.
    pub fn parse(self, text: &str) -> Result<Value, Option<String>> {
        let text = text.trim();
        let number = |number: Option<u64>, min, max| match number {
            Some(number) if (min..=max).contains(&number) => Ok(Value::Number(number)),
            _ => Err(None),
        };
        match self {
            Self::Flag => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => Ok(Value::Flag(true)),
                "0" | "false" | "no" | "off" => Ok(Value::Flag(false)),
                _ => Err(None),
            },
            Self::Count { min, max } => number(digits(text), min, max),
            Self::Bytes { min, max } => number(bytes(text), min, max),
            Self::Milliseconds { min, max } => number(milliseconds(text), min, max),
            Self::Text => match text.chars().find(|c| c.is_control()) {
                None if !text.is_empty() => Ok(Value::Text(text.to_owned())),
                None => Err(None),
                Some(control) => Err(Some(format!("it has the control character {control:?}"))),
            },
            Self::Secret if text.is_empty() => Err(None),
            Self::Secret => Ok(Value::Secret(Secret::new(text))),
            Self::OneOf(words) => words
                .iter()
                .find(|word| word.eq_ignore_ascii_case(text))
                .map(|word| Value::Text((*word).to_owned()))
                .ok_or(None),
            Self::Url => url(text, &["http", "https"], "https")
                .map(|()| Value::Text(text.to_owned()))
                .map_err(Some),
            Self::UrlOf(schemes) => {
                url(text, schemes, "").map(|()| Value::Text(text.to_owned())).map_err(Some)
            }
            Self::File if Path::new(text).is_file() => Ok(Value::Text(text.to_owned())),
            Self::File => Err(Some("there is no such file".to_owned())),
            Self::Directory if Path::new(text).is_dir() => Ok(Value::Text(text.to_owned())),
            Self::Directory => Err(Some("there is no such directory".to_owned())),
            Self::DiskCache => match text.parse::<DiskCache>() {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(_) => {
                    Err(Some("the path is absolute, and the size at least 16 MiB".to_owned()))
                }
            },
        }
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = with_unit(text);
    let unit = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        _ => return None,
    };
    digits(number)?.checked_mul(unit)
}

/// Checks that this is the URL of a store, with one of these schemes, or without where there is a `usual` one.
fn url(text: &str, schemes: &'static [&'static str], usual: &str) -> Result<(), String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("{usual}://{text}") };
    let uri: http::Uri = whole.parse().map_err(|error| format!("it is not a URL: {error}"))?;
    if !uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme)) {
        return Err(format!("its scheme is not {}", Words(schemes)));
    }
    let authority = uri.authority().ok_or("it names no host")?;
    if authority.as_str().contains('@') {
        return Err("credentials do not belong into it; use the settings for them".to_owned());
    }
    if !names_server(&uri) {
        return Err("it names no host, or its port is not a number up to 65535".to_owned());
    }
    if uri.query().is_some() || whole.contains('#') {
        return Err("it must end with the path".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let bytes = Kind::Bytes { min: 1, max: 1 << 40 };
        for (text, number) in
            [("1", 1), ("8MiB", 8 << 20), ("8 mib", 8 << 20), ("5G", 5 << 30), (" 7kb ", 7 << 10)]
        {
            assert_eq!(bytes.parse(text), Ok(Value::Number(number)), "{text}");
        }
        for text in [
            "",
            "-1",
            "+1",
            "0",
            "1.5",
            "MiB",
            "8 apples",
            "99999999999999999999",
            "18014398509481984MiB",
        ] {
            assert_eq!(bytes.parse(text), Err(None), "{text}");
        }
        let time = Kind::Milliseconds { min: 0, max: 10_000 };
        for (text, number) in [("0", 0), ("1500", 1_500), ("1500ms", 1_500), ("2s", 2_000)] {
            assert_eq!(time.parse(text), Ok(Value::Number(number)), "{text}");
        }
        for text in ["11s", "1m", "-5", "s"] {
            assert_eq!(time.parse(text), Err(None), "{text}");
        }
    }

    #[test]
    fn flags() {
        for text in ["1", "true", "TRUE", "yes", "on"] {
            assert_eq!(Kind::Flag.parse(text), Ok(Value::Flag(true)), "{text}");
        }
        for text in ["0", "false", "No", "off"] {
            assert_eq!(Kind::Flag.parse(text), Ok(Value::Flag(false)), "{text}");
        }
        for text in ["", "2", "tru", "enable"] {
            assert_eq!(Kind::Flag.parse(text), Err(None), "{text}");
        }
    }

    #[test]
    fn addresses() {
        for text in [
            "http://127.0.0.1:9000",
            "https://s3.example.com/base",
            "minio:9000",
            "[::1]:9000",
            "localhost",
        ] {
            assert_eq!(Kind::Url.parse(text), Ok(Value::Text(text.to_owned())), "{text}");
        }
        for (text, why) in [
            ("", "not a URL"),
            ("ftp://host", "its scheme is not `http` or `https`"),
            ("http://", "not a URL"),
            ("http://user:pw@host", "credentials do not belong"),
            ("http://host?x=1", "end with the path"),
            ("http://host:99999", "its port is not a number"),
            ("http://ho st", "not a URL"),
        ] {
            let reason = Kind::Url.parse(text).unwrap_err().unwrap();
            assert!(reason.contains(why), "{text}: {reason}");
            assert!(!reason.contains("pw"), "{reason}");
        }
    }

    #[test]
    fn addresses_of_other_protocols() {
        let kind = Kind::UrlOf(&["sftp", "http"]);
        for text in ["sftp://host", "http://[::1]:9000/a", "sftp://host:2222/~/data"] {
            assert_eq!(kind.parse(text), Ok(Value::Text(text.to_owned())), "{text}");
        }
        for text in ["host", "ftp://host", "sftp://user:pw@host", "sftp:///path", "://host"] {
            let reason = kind.parse(text).unwrap_err().unwrap();
            assert!(!reason.contains("pw"), "{reason}");
        }
        assert_eq!(kind.to_string(), "a URL of `sftp` or `http`");
    }

    #[test]
    fn disk_caches() {
        let text = "/mnt/cache:100GiB";
        assert_eq!(Kind::DiskCache.parse(text), Ok(Value::Text(text.to_owned())));
        let reason = Kind::DiskCache.parse("/mnt/cache").unwrap_err().unwrap();
        assert!(reason.contains("at least 16 MiB"), "{reason}");
    }

    #[test]
    fn secrets_do_not_show() {
        let value = Kind::Secret.parse("planted").unwrap();
        assert_eq!(format!("{value} {value:?}"), "** redacted ** Secret(** redacted **)");
    }
}
