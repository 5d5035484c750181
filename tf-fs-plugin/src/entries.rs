//! Lists of names.

use tf_plugin_core::__private::boundary::{has_byte, has_nul};

/// The names that a listing returns. Collect it from an iterator of bytes or text:
///
/// ```
/// use tf_fs_plugin::Entries;
/// let entries: Entries = ["part-0", "part-1"].into_iter().collect();
/// assert_eq!(entries.iter().collect::<Vec<_>>(), [b"part-0", b"part-1"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// All names, one after the other: one allocation for a listing of any length.
    bytes: Vec<u8>,
    /// Where each name ends.
    ends: Vec<usize>,
}

impl Entries {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name.
    #[inline]
    pub fn push(&mut self, name: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(name.as_ref());
        self.ends.push(self.bytes.len());
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all names, one after the other.
    pub(crate) fn all_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether TensorFlow can list an entry of this name. It cannot list an empty name, on which its `walk`
    /// fails, nor `.` and `..`, on which `walk` never ends, nor a name with a NUL, which would cut the C string. Listings
    /// leave such names out: one object with an odd key must not hide all others in its directory.
    #[must_use]
    pub fn is_listable(name: &[u8]) -> bool {
        !is_dots(name) && !has_nul(name)
    }

    /// Removes the names that are empty, `.` or `..`.
    pub(crate) fn without_dots(self) -> Self {
        if self.iter().any(is_dots) {
            return self.iter().filter(|name| !is_dots(name)).collect();
        }
        self
    }

    /// Returns the first name with a slash, which is not the name of an entry.
    pub(crate) fn with_slash(&self) -> Option<&[u8]> {
        // One search through all names instead of one in each.
        has_byte(&self.bytes, b'/').then(|| self.iter().find(|name| has_byte(name, b'/')))?
    }

    /// Returns the names, in the order in which they were added.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { entries: self, next: 0 }
    }
}

fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..")
}

impl<T: AsRef<[u8]>> FromIterator<T> for Entries {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        let mut entries = Self::new();
        entries.extend(names);
        entries
    }
}

impl<T: AsRef<[u8]>> Extend<T> for Entries {
    fn extend<I: IntoIterator<Item = T>>(&mut self, names: I) {
        for name in names {
            self.push(name);
        }
    }
}

/// The names of [`Entries`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    entries: &'a Entries,
    next: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = *self.entries.ends.get(self.next)?;
        let start = self.next.checked_sub(1).map_or(0, |before| self.entries.ends[before]);
        self.next += 1;
        Some(&self.entries.bytes[start..end])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.entries.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Entries {
    type Item = &'a [u8];
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
