//! Lists of names.

/// The names that a listing answers with. Collect it from anything that is bytes or text:
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
    /// A list without names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name.
    pub fn push(&mut self, name: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(name.as_ref());
        self.ends.push(self.bytes.len());
    }

    /// Number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The names, in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let name = &self.bytes[start..end];
            start = end;
            name
        })
    }
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
