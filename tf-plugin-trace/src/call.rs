//! The text of one call.

use std::fmt::{self, Write as _};

use crate::settings::Settings;

/// A call that has returned; its description is added step by step.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// Whether the texts will be written.
    pub(crate) is_written: bool,
    pub(crate) arguments: String,
    /// The status, unless it is OK.
    pub(crate) error: Option<String>,
    pub(crate) value: String,
    pub(crate) has_status: bool,
    pub(crate) bytes: u64,
}

impl Call {
    pub(crate) fn new() -> Self {
        Self { is_written: cfg!(test) || Settings::get().writes_calls(), ..Self::default() }
    }

    pub(crate) fn argument(&mut self, argument: fmt::Arguments<'_>) {
        add(self.is_written, &mut self.arguments, argument);
    }

    pub(crate) fn value(&mut self, value: fmt::Arguments<'_>) {
        add(self.is_written, &mut self.value, value);
    }

    /// Adds a returned number of things.
    pub(crate) fn count(&mut self, count: i64, one: &str, more: &str) {
        self.value(format_args!("{count} {}", if count == 1 { one } else { more }));
    }

    /// Adds the number of bytes that the call has moved.
    pub(crate) fn bytes(&mut self, count: u64) {
        self.bytes += count;
        self.value(format_args!("{count} bytes"));
    }

    pub(crate) fn failed(&mut self, reason: String) {
        self.error = Some(reason);
    }

    /// Keeps only the code of an error, whose text may contain a secret.
    pub(crate) fn hide_reason(&mut self) {
        if let Some(error) = &mut self.error {
            error.truncate(error.find(':').unwrap_or(error.len()));
        }
    }

    /// Formats the result in one line.
    pub(crate) fn result(&self) -> String {
        match (&self.error, self.value.as_str()) {
            (Some(error), "") => error.clone(),
            (Some(error), value) => format!("{error}; {value}"),
            (None, "") if self.has_status => "OK".to_owned(),
            (None, value) => value.to_owned(),
        }
    }
}

fn add(is_written: bool, to: &mut String, text: fmt::Arguments<'_>) {
    if is_written {
        if !to.is_empty() {
            to.push(' ');
        }
        // Writing to a `String` does not fail.
        let _ = write!(to, "{text}");
    }
}

/// Makes a text safe for a line: without control characters, and without secrets in addresses.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in without_secrets(text).chars() {
        if c.is_control() {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Writes `scheme://name:password@host` as `scheme://***@host`, and `?key=value` as `?***`.
fn without_secrets(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || c == '"' || c == '\'';
    let mut kept = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends) {
        let address = piece.trim_end_matches(ends);
        without_secret(address, &mut kept);
        kept.push_str(&piece[address.len()..]);
    }
    kept
}

fn without_secret(address: &str, kept: &mut String) {
    let (scheme, rest) =
        address.find("://").map_or(("", address), |at| address.split_at(at + "://".len()));
    let query = rest.find('?').filter(|at| rest[*at..].contains('='));
    let (rest, query) = query.map_or((rest, ""), |at| (&rest[..at], "?***"));
    let host = &rest[..rest.find('/').unwrap_or(rest.len())];
    // Some filesystems remove the scheme; without it, only a text with a password is an address.
    let end = match host.rfind('@').filter(|_| !scheme.is_empty()) {
        None if host.contains(':') => rest.rfind('@'),
        end => end,
    };
    kept.push_str(scheme);
    if let Some(end) = end {
        kept.push_str("***");
        kept.push_str(&rest[end..]);
    } else {
        kept.push_str(rest);
    }
    kept.push_str(query);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_in_its_line_and_hides_passwords() {
        assert_eq!(clean("a\nb\u{1b}[31m\tc ä"), "a\\nb\\u{1b}[31m\\tc ä");
        assert_eq!(clean("s3://key:secret@host/a@b"), "s3://***@host/a@b");
        assert_eq!(
            clean("no ftp://u:p@h and \"x://y:z@q/\" but a://b/c@d"),
            "no ftp://***@h and \"x://***@q/\" but a://b/c@d"
        );
        assert_eq!(clean("mem://"), "mem://");
        // Keys may have slashes, and some filesystems remove the scheme.
        assert_eq!(clean("s3://AKIA:ab/cd@host/x"), "s3://***@host/x");
        assert_eq!(clean("key:secret@host/x failed"), "***@host/x failed");
        assert_eq!(clean("s3://b/k?X-Amz-Signature=s'"), "s3://b/k?***'");
        assert_eq!(clean("mem://h:1/a?.txt /data/x:y@z"), "mem://h:1/a?.txt /data/x:y@z");
    }

    #[test]
    fn a_result_is_the_status_and_what_came_back() {
        let mut call = Call { is_written: true, ..Call::default() };
        assert_eq!(call.result(), "");
        call.has_status = true;
        assert_eq!(call.result(), "OK");
        call.failed("INVALID_ARGUMENT: no number: s3cr3t".to_owned());
        call.hide_reason();
        assert_eq!(call.result(), "INVALID_ARGUMENT");
        call.error = None;
        call.bytes(7);
        assert_eq!((call.result().as_str(), call.bytes), ("7 bytes", 7));
        call.failed("OUT_OF_RANGE: end".to_owned());
        assert_eq!(call.result(), "OUT_OF_RANGE: end; 7 bytes");
        call.argument(format_args!("{} at", 4));
        call.argument(format_args!("{}", 5));
        assert_eq!(call.arguments, "4 at 5");
    }
}
