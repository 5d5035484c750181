//! The name of an object: its bucket and its key, exactly as written.

use std::fmt;
use std::sync::Arc;

/// A bucket and a key in it. The key of the bucket itself is empty. A name without a bucket is the list of all buckets, or
/// a file that the plugin itself provides.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The bucket.
    pub bucket: Arc<str>,
    /// The key, never cleaned or escaped.
    pub key: String,
    /// The scheme of the client: names of two stores are never equal.
    scheme: &'static str,
}

impl Name {
    /// Creates the name of a key in a bucket, shown as `scheme://bucket/key`, with control characters escaped. The store checks
    /// whether it is valid.
    ///
    /// A bucket with `://` in it has its own scheme, which is shown. If that is `http` or `https`, the query at the end of
    /// the key is not shown, because it may be a signature.
    pub fn new(scheme: &'static str, bucket: &str, key: &str) -> Self {
        Self { bucket: bucket.into(), key: key.into(), scheme }
    }

    /// Returns whether this can only be a directory: a bucket, the list of buckets, or a name that ends in `/`.
    pub fn is_always_directory(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// Returns the name of another key in the same bucket.
    pub fn with_key(&self, key: impl Into<String>) -> Self {
        Self { bucket: Arc::clone(&self.bucket), key: key.into(), scheme: self.scheme }
    }

    /// Returns the prefix of the keys below this directory: empty for the bucket, else with `/` at the end.
    pub fn prefix(&self) -> String {
        match self.key.as_str() {
            "" => String::new(),
            key if key.ends_with('/') => key.to_owned(),
            key => format!("{key}/"),
        }
    }
}

/// A name in a message is on one line: the key of an object that others wrote must not look like another line of a log.
struct OnOneLine<'a>(&'a str);

impl fmt::Display for OnOneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_odd = |c: char| {
            c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let mut rest = self.0;
        while let Some(at) = rest.find(is_odd) {
            f.write_str(&rest[..at])?;
            let mut letters = rest[at..].chars();
            if let Some(letter) = letters.next() {
                write!(f, "{}", letter.escape_default())?;
            }
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bucket = OnOneLine(&self.bucket);
        let Some((scheme, _)) = self.bucket.split_once("://") else {
            return write!(f, "{}://{bucket}/{}", self.scheme, OnOneLine(&self.key));
        };
        let is_url = ["https", "http"].iter().any(|url| url.eq_ignore_ascii_case(scheme));
        match self.key.split_once('?').filter(|_| is_url) {
            Some((path, _)) => write!(f, "{bucket}/{}?…", OnOneLine(path)),
            None => write!(f, "{bucket}/{}", OnOneLine(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_as_it_was_written() {
        for (bucket, key) in [("b", "a//b/./c"), ("b", ""), ("", ""), ("b", "100%2F ü")] {
            let name = Name::new("mem", bucket, key);
            assert_eq!(name.to_string(), format!("mem://{bucket}/{key}"));
        }
    }

    #[test]
    fn a_name_is_shown_on_one_line() {
        for (key, shown) in [
            ("a\nb\u{1b}[31m", "a\\nb\\u{1b}[31m"),
            ("\r\n", "\\r\\n"),
            ("a\u{202e}b\u{2028}", "a\\u{202e}b\\u{2028}"),
            ("a\\nb ü", "a\\nb ü"),
        ] {
            assert_eq!(Name::new("mem", "b", key).to_string(), format!("mem://b/{shown}"));
            let url = Name::new("https", "https://h", key);
            assert_eq!(url.to_string(), format!("https://h/{shown}"));
        }
    }

    #[test]
    fn names_of_two_stores_differ() {
        assert_eq!(Name::new("mem", "b", "k"), Name::new("mem", "b", "k"));
        assert_ne!(Name::new("mem", "b", "k"), Name::new("s3", "b", "k"));
    }

    #[test]
    fn a_url_is_shown_without_its_query() {
        for (bucket, key, shown) in [
            ("https://h", "a?sig=secret", "https://h/a?…"),
            ("HTTP://h:80", "a?sig=secret", "HTTP://h:80/a?…"),
            ("https://h", "a/b", "https://h/a/b"),
            // In other schemes a `?` is a character of the key.
            ("sftp://h", "a?b", "sftp://h/a?b"),
        ] {
            assert_eq!(Name::new("https", bucket, key).to_string(), shown);
        }
    }

    #[test]
    fn directories_end_in_a_slash_and_buckets_begin_nowhere() {
        let prefix = |key| Name::new("mem", "b", key).prefix();
        assert_eq!(
            (prefix(""), prefix("d"), prefix("d/")),
            (String::new(), "d/".into(), "d/".into())
        );
        assert!(Name::new("mem", "b", "").is_always_directory());
        assert!(Name::new("mem", "b", "d/").is_always_directory());
        assert!(!Name::new("mem", "b", "d").is_always_directory());
    }
}
