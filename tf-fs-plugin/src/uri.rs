//! The names that TensorFlow passes to a filesystem: `scheme://host/path`.

use std::borrow::Cow;
use std::fmt;
use tf_plugin_core::{Code, Error, Result};

/// A path of this filesystem, split into scheme, host and path.
///
/// TensorFlow's names are bytes, not text: `host` and `path` return bytes; `host_str` and
/// `path_str` return text, or fail. Equal names have equal [`as_bytes`](Self::as_bytes), because an
/// operation gets its path in canonical form: no empty, `.` or `..` component, no trailing `/`
/// except the root's, and `..` never leads above the root of its host. (A filesystem with its own
/// [`translate_name`](crate::Filesystem::translate_name) gets what that returned.) The host, which
/// is the bucket of an object store, always stays part of the name.
///
/// ```
/// use tf_fs_plugin::Uri;
///
/// let uri = Uri::new(b"s3://bucket/data/train/part-0");
/// assert_eq!(uri.scheme(), "s3");
/// assert_eq!(uri.host_str()?, "bucket");
/// assert_eq!(uri.path_str()?, "/data/train/part-0");
/// assert_eq!(uri.file_name(), b"part-0");
/// assert_eq!(uri.parent().unwrap().to_str()?, "s3://bucket/data/train");
/// assert_eq!(Uri::canonical(b"s3://bucket/a//b/./../../../c"), &b"s3://bucket/c"[..]);
/// # Ok::<(), tf_fs_plugin::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uri<'a> {
    bytes: &'a [u8],
    /// Length of the scheme; 0 if the name has none.
    scheme: usize,
    /// Where the path begins: after the host. The host begins 3 bytes after the scheme.
    path: usize,
}

impl<'a> Uri<'a> {
    /// Splits a name without changing it. A name without `scheme://` is all path.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let scheme = scheme_len(bytes);
        let authority = if scheme == 0 { 0 } else { scheme + 3 };
        let path = if scheme == 0 { 0 } else { authority + position(&bytes[authority..], b'/') };
        Self { bytes, scheme, path }
    }

    /// Splits a name that begins with `prefix`, a scheme and `://`, as [`new`](Self::new) does,
    /// without a search for the end of the scheme. Returns `None` for any other name.
    #[inline]
    pub(crate) fn with_prefix(bytes: &'a [u8], prefix: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(prefix)?;
        Some(Self { bytes, scheme: prefix.len() - 3, path: prefix.len() + position(rest, b'/') })
    }

    /// Returns whether [`canonical`](Self::canonical) would leave the name unchanged.
    #[inline]
    pub(crate) fn is_canonical(&self) -> bool {
        is_canonical(&self.bytes[self.path..])
    }

    /// Returns the canonical form of a name. Empty and `.` components are dropped, `..` is resolved
    /// without leaving the host, and only the root, `scheme://host/`, ends with a `/`. Borrows a
    /// name that is in this form already.
    #[must_use]
    pub fn canonical(bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let uri = Self::new(bytes);
        if uri.is_canonical() { Cow::Borrowed(bytes) } else { Cow::Owned(uri.clean()) }
    }

    /// Returns the canonical form of a name that is not canonical.
    #[cold]
    pub(crate) fn clean(&self) -> Vec<u8> {
        let (root, path) = self.bytes.split_at(self.path);
        let mut clean = root.to_vec();
        for component in path.split(|&byte| byte == b'/') {
            match component {
                b"" | b"." => {}
                b".." => {
                    let kept = clean[self.path..].iter().rposition(|&byte| byte == b'/');
                    clean.truncate(self.path + kept.unwrap_or(0));
                }
                name => {
                    clean.push(b'/');
                    clean.extend_from_slice(name);
                }
            }
        }
        if clean.len() == self.path {
            clean.push(b'/');
        }
        clean
    }

    /// Returns the whole name.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the whole name as text.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`] if it is not UTF-8: the code for a malformed path.
    pub fn to_str(&self) -> Result<&'a str> {
        text(self.bytes, self)
    }

    /// Returns the scheme, such as `s3`; empty if the name has none.
    #[must_use]
    pub fn scheme(&self) -> &'a str {
        // A scheme is made of ASCII characters by construction, so this never takes the default.
        std::str::from_utf8(&self.bytes[..self.scheme]).unwrap_or_default()
    }

    /// Returns the part between `scheme://` and the next `/`: the bucket of an object store, or the
    /// host of a server; often empty.
    #[must_use]
    pub fn host(&self) -> &'a [u8] {
        let start = if self.scheme == 0 { 0 } else { self.scheme + 3 };
        &self.bytes[start..self.path]
    }

    /// Returns the host as text.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`] if it is not UTF-8.
    pub fn host_str(&self) -> Result<&'a str> {
        text(self.host(), self)
    }

    /// Returns the path: `/` for the root. In a canonical name it begins with `/`.
    #[inline]
    #[must_use]
    pub fn path(&self) -> &'a [u8] {
        let path = &self.bytes[self.path..];
        if path.is_empty() { b"/" } else { path }
    }

    /// Returns the part before the path, and the path as it was written: empty if nothing follows the host.
    pub(crate) fn split_path(&self) -> (&'a [u8], &'a [u8]) {
        self.bytes.split_at(self.path)
    }

    /// Returns the path as text.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`] if it is not UTF-8.
    pub fn path_str(&self) -> Result<&'a str> {
        text(self.path(), self)
    }

    /// Returns the last component of the path; empty for the root.
    #[must_use]
    pub fn file_name(&self) -> &'a [u8] {
        let path = self.path();
        let start = last_position(path, b'/').map_or(0, |slash| slash + 1);
        &path[start..]
    }

    /// Returns whether this is the root of its host: `scheme://host/`.
    #[inline]
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.bytes.len() <= self.path + 1
    }

    /// Returns the directory that holds this path; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Uri<'a>> {
        if self.is_root() {
            return None;
        }
        let slash = last_position(&self.bytes[self.path..], b'/')?;
        // The root keeps its slash.
        let end = self.path + slash.max(1);
        Some(Self { bytes: &self.bytes[..end], ..*self })
    }

    /// Returns the parent, its parent, and so on up to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Uri<'a>> + use<'a> {
        let mut uri = *self;
        // Not `successors`, which computes one item too many.
        std::iter::from_fn(move || {
            uri = uri.parent()?;
            Some(uri)
        })
    }

    /// Returns the complete name of an entry of this directory.
    #[must_use]
    pub fn join(&self, name: impl AsRef<[u8]>) -> Vec<u8> {
        let name = name.as_ref();
        let mut joined = Vec::with_capacity(self.bytes.len() + 1 + name.len());
        joined.extend_from_slice(self.bytes);
        if joined.last() != Some(&b'/') {
            joined.push(b'/');
        }
        joined.extend_from_slice(name);
        joined
    }

    /// Returns `name` relative to this directory; `None` if it is not below this directory.
    ///
    /// ```
    /// use tf_fs_plugin::Uri;
    /// let dir = Uri::new(b"mem://box/a");
    /// assert_eq!(dir.strip_from(b"mem://box/a/b/c"), Some(&b"b/c"[..]));
    /// assert_eq!(dir.strip_from(b"mem://box/ab"), None);
    /// ```
    #[inline]
    #[must_use]
    pub fn strip_from<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let rest = name.strip_prefix(self.bytes)?;
        let rest = if self.bytes.last() == Some(&b'/') { rest } else { rest.strip_prefix(b"/")? };
        (!rest.is_empty()).then_some(rest)
    }
}

/// The whole name; bytes that are not UTF-8 are shown as `\xNN`.
impl fmt::Display for Uri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(text) = std::str::from_utf8(self.bytes) {
            return f.write_str(text);
        }
        for chunk in self.bytes.utf8_chunks() {
            f.write_str(chunk.valid())?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Uri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Lets a `Uri` be a key in maps that are keyed by bytes.
impl AsRef<[u8]> for Uri<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

fn text<'a>(bytes: &'a [u8], whole: &Uri<'_>) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| {
        Error::new(
            Code::FailedPrecondition,
            format!("{whole}: this filesystem needs names that are valid UTF-8"),
        )
    })
}

/// Returns the length of the scheme if `bytes` begin with one that TensorFlow's parser accepts,
/// followed by `://`; otherwise 0.
#[inline]
fn scheme_len(bytes: &[u8]) -> usize {
    let len = bytes
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.')
        .unwrap_or(bytes.len());
    let starts_with_letter = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    if starts_with_letter && bytes[len..].starts_with(b"://") { len } else { 0 }
}

#[inline]
fn position(bytes: &[u8], wanted: u8) -> usize {
    bytes.iter().position(|&byte| byte == wanted).unwrap_or(bytes.len())
}

/// Returns the last position of `wanted`. Names are long and have few slashes, so it compares 8 bytes at a time.
#[inline]
fn last_position(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut rest = bytes;
    while let Some((before, chunk)) = rest.split_last_chunk::<8>() {
        let zero_where_found = u64::from_ne_bytes(*chunk) ^ (EACH * u64::from(wanted));
        if zero_where_found.wrapping_sub(EACH) & !zero_where_found & (EACH << 7) != 0 {
            break;
        }
        rest = before;
    }
    rest.iter().rposition(|&byte| byte == wanted)
}

/// A 1 in each byte of a word.
const EACH: u64 = u64::from_ne_bytes([1; 8]);

/// Whether a path has no component that [`Uri::canonical`] changes: it begins with a slash, only the
/// root ends with one, and no component is empty, `.` or `..`.
fn is_canonical(path: &[u8]) -> bool {
    match path {
        [b'/'] => true,
        [b'/', .., b'/'] => false,
        // Few names have a component that begins with a dot, so few are looked at twice.
        [b'/', ..] => !may_have_dots(path) || !has_dots(path),
        _ => false,
    }
}

/// Whether a slash or a dot follows a slash anywhere. Runs for every path of every operation, so it
/// looks at 8 bytes at a time, without a branch, which compilers turn into vector instructions.
#[inline]
fn may_have_dots(path: &[u8]) -> bool {
    const SLASHES: u64 = EACH * b'/' as u64;

    // For the 8 neighbours in 9 bytes: the highest bit of a byte is set if one of them is found.
    // `.` and `/` differ in the lowest bit only.
    let find = |[current @ .., _]: &[u8; 9], [_, next @ ..]: &[u8; 9]| {
        let (current, next) = (u64::from_ne_bytes(*current), u64::from_ne_bytes(*next));
        let zero_where_found = (current ^ SLASHES) | ((next | EACH) ^ SLASHES);
        zero_where_found.wrapping_sub(EACH) & !zero_where_found
    };

    let Some(last) = path.last_chunk() else {
        return path.windows(2).any(|pair| pair[0] == b'/' && matches!(pair[1], b'/' | b'.'));
    };
    // With some neighbours that the loop looks at too.
    let mut marks = find(last, last);
    let mut rest = path;
    while let Some(bytes) = rest.first_chunk() {
        marks |= find(bytes, bytes);
        rest = &rest[8..];
    }
    marks & (EACH << 7) != 0
}

/// Whether a path that begins with a slash has a component that is empty, `.` or `..`.
#[cold]
fn has_dots(path: &[u8]) -> bool {
    let mut components = path.split(|&byte| byte == b'/').skip(1);
    components.any(|component| matches!(component, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn clean(uri: &str, expected: &str) {
        let cleaned = Uri::canonical(uri.as_bytes());
        assert_eq!(Uri::new(&cleaned).to_string(), expected, "{uri}");
        assert_eq!(Uri::canonical(&cleaned), cleaned, "{uri} is not stable");
    }

    #[test]
    fn last_positions() {
        for len in 0..40 {
            let mut bytes = vec![b'.'; len];
            // `.` and `0` differ from `/` by one, so a carry within the word could take them for a slash.
            bytes.iter_mut().step_by(3).for_each(|byte| *byte = b'0');
            assert_eq!(last_position(&bytes, b'/'), None, "{bytes:?}");
            for first in 0..len {
                for last in first..len {
                    let mut bytes = bytes.clone();
                    (bytes[first], bytes[last]) = (b'/', b'/');
                    assert_eq!(last_position(&bytes, b'/'), Some(last), "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn canonical_form() {
        clean("x://h/a", "x://h/a");
        clean("x://h", "x://h/");
        clean("x://h/", "x://h/");
        clean("x://", "x:///");
        clean("x:///", "x:///");
        clean("x:////", "x:///");
        clean("x://h/./a_file", "x://h/a_file");
        clean("x://h/a/convoluted/../path/./to/.//.///a/file", "x://h/a/path/to/a/file");
        clean("x://h/a/b/", "x://h/a/b");
        clean("x://h//b", "x://h/b");
        clean("x://h/.hidden/..b/...", "x://h/.hidden/..b/...");
    }

    #[test]
    fn dots_and_slashes_are_seen_wherever_they_stand() {
        for before in 0..40 {
            for after in 0..20 {
                let (before, after) = ("a".repeat(before), "b".repeat(after));
                clean(&format!("x://h/{before}.c{after}"), &format!("x://h/{before}.c{after}"));
                clean(
                    &format!("x://h/{before}/.c{after}"),
                    &format!("x://h/{before}/.c{after}").replace("h//", "h/"),
                );
                clean(&format!("x://h/c{before}//d{after}"), &format!("x://h/c{before}/d{after}"));
                clean(&format!("x://h/c{before}/./d{after}"), &format!("x://h/c{before}/d{after}"));
                clean(&format!("x://h/c{before}/../d{after}"), &format!("x://h/d{after}"));
            }
            let before = "a".repeat(before);
            clean(&format!("x://h/c{before}/."), &format!("x://h/c{before}"));
            clean(&format!("x://h/c{before}/.."), "x://h/");
            clean(&format!("x://h/c{before}/"), &format!("x://h/c{before}"));
            clean(&format!("x://h/c{before}/..."), &format!("x://h/c{before}/..."));
        }
    }

    #[test]
    fn dots_never_leave_the_host() {
        clean("x://h/..", "x://h/");
        clean("x://h/../../a", "x://h/a");
        clean("x://h/a/../../b/..", "x://h/");
        clean("x://../a", "x://../a");
        clean("../../etc", "/etc");
        clean("x://h/%2e%2e/a", "x://h/%2e%2e/a");
    }

    #[test]
    fn parts() {
        let uri = Uri::new(b"s3://bucket/k/x");
        assert_eq!((uri.scheme(), uri.host(), uri.path()), ("s3", &b"bucket"[..], &b"/k/x"[..]));
        let uri = Uri::new(b"s3://bucket");
        assert_eq!((uri.host(), uri.path(), uri.is_root()), (&b"bucket"[..], &b"/"[..], true));
        let uri = Uri::new(b"/local:path://x");
        assert_eq!((uri.scheme(), uri.host(), uri.path()), ("", &b""[..], &b"/local:path://x"[..]));
        let uri = Uri::new(b"a.2:///k");
        assert_eq!((uri.scheme(), uri.host(), uri.path()), ("a.2", &b""[..], &b"/k"[..]));
        for name in ["my-fs://h/x", "my_fs://h/x", "1a://h/x", "://x", ""] {
            assert_eq!(
                Uri::new(name.as_bytes()).scheme(),
                "",
                "{name} has no scheme for TensorFlow's parser"
            );
        }
    }

    #[test]
    fn parents_end_at_the_root() {
        let ancestors: Vec<_> =
            Uri::new(b"x://h/a/b").ancestors().map(|uri| uri.to_string()).collect();
        assert_eq!(ancestors, ["x://h/a", "x://h/"]);
        assert_eq!(Uri::new(b"x://h/").parent(), None);
        assert_eq!(Uri::new(b"x:///a").parent(), Some(Uri::new(b"x:///")));
        assert_eq!(Uri::new(b"/").parent(), None);
        assert_eq!(Uri::new(b"/a").parent(), Some(Uri::new(b"/")));
    }

    #[test]
    fn names_below_the_root_and_elsewhere() {
        assert_eq!(Uri::new(b"x://h/").strip_from(b"x://h/a"), Some(&b"a"[..]));
        assert_eq!(Uri::new(b"x://h/").strip_from(b"x://h/"), None);
        assert_eq!(Uri::new(b"x://h/").join("a"), b"x://h/a");
        assert_eq!(Uri::new(b"x://h/a").join("b"), b"x://h/a/b");
        assert_eq!(Uri::new(b"x://h/a/b").file_name(), b"b");
        assert_eq!(Uri::new(b"x://h/").file_name(), b"");
    }

    #[test]
    fn bytes_that_are_not_text() {
        let uri = Uri::new(b"x://h/\xff\xfe/a");
        assert_eq!(uri.to_string(), "x://h/\\xff\\xfe/a");
        assert_eq!(uri.path(), b"/\xff\xfe/a");
        assert_eq!(uri.to_str().unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(uri.host_str().unwrap(), "h");
        assert_eq!(Uri::canonical(b"x://h/\xff//.."), &b"x://h/"[..]);
    }
}
