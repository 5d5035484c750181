//! What is listed, and what a page of a listing holds.

use crate::Known;

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// What the keys begin with.
    pub prefix: String,
    /// Whether keys with a `/` after the prefix are shown as the directory that they are in.
    pub by_directory: bool,
    /// Only keys after this one.
    pub after: Option<String>,
    /// Keys a page; the store's own 1,000 if not given.
    pub max_keys: Option<i32>,
}

/// An object as a listing shows it.
#[derive(Debug)]
pub struct Object {
    /// Its whole key.
    pub key: String,
    /// What the listing says of it.
    pub known: Known,
}

/// One answer of the store.
#[derive(Debug, Default)]
pub struct Page {
    /// In the order of the store.
    pub objects: Vec<Object>,
    /// With the `/` at their end.
    pub directories: Vec<String>,
    /// How to get the next one.
    pub next: Option<String>,
    /// Whether the store says that there is more.
    pub is_truncated: bool,
}

impl Page {
    /// The last name in it.
    pub(crate) fn last(&self) -> Option<&str> {
        let objects = self.objects.iter().map(|object| &*object.key);
        objects.chain(self.directories.iter().map(String::as_str)).max()
    }

    /// The first name in it.
    pub(crate) fn first(&self) -> Option<&str> {
        let objects = self.objects.iter().map(|object| &*object.key);
        objects.chain(self.directories.iter().map(String::as_str)).min()
    }
}
