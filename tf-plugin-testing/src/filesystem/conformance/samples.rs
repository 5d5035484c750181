//! The files that read-only cases need, for filesystems that cannot write them.
//!
//! To find them, each case runs on a filesystem that records what the case would write and reads
//! that. So there is one list of cases, and the files are exactly those that they need.

use super::attempt::attempt;
use super::case::{Case, Group};
use super::run::Source;
use crate::filesystem::host::Host;
use crate::filesystem::semantics::Semantics;
use crate::outcome::Outcome;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, PoisonError};
use tf_fs_plugin::prelude::*;
use tf_plugin_core::sync::{Mutex, MutexGuard};

/// A file or directory that has to exist for [`conformance!`](crate::filesystem::conformance!) with
/// `files: provided`; see [`samples`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The path below the root, such as `walk-cell1/full/file`: UTF-8, with `/` between its parts.
    pub path: String,
    /// The bytes of the file; `None` for a directory.
    pub content: Option<Vec<u8>>,
}

/// Returns all files and directories that the tests of a read-only filesystem need below their root. The set-up creates
/// them without the filesystem: in the directory that a server serves, in an archive …
///
/// A directory comes before its entries. With `directories: implied`, directories need not be
/// created. The names have spaces, `%`, `#`, letters beyond ASCII and other characters that
/// TensorFlow's users have in names. All files together have some megabytes.
///
/// ```
/// use tf_plugin_testing::filesystem::samples;
///
/// for sample in samples() {
///     match &sample.content {
///         Some(content) => assert!(content.len() <= 2 << 20, "{}", sample.path),
///         None => assert!(!sample.path.ends_with('/')),
///     }
/// }
/// ```
#[must_use]
pub fn samples() -> &'static [Sample] {
    &PROVIDED.samples
}

/// Returns the first file with a plain name that a read-only case needs, if any; or why another case is skipped.
pub(super) fn first_file(case: &Case) -> Result<Option<&'static str>, &'static str> {
    match PROVIDED.first_files.get(case.name) {
        Some(file) => Ok(file.as_deref()),
        None if case.name == "configuration" => Ok(None),
        None => Err(
            "files are declared to be provided, and the case changes some, or checks about changes",
        ),
    }
}

struct Provided {
    samples: Vec<Sample>,
    /// The cases that change nothing, each with a file that it needs.
    first_files: BTreeMap<&'static str, Option<String>>,
}

static PROVIDED: LazyLock<Provided> = LazyLock::new(|| {
    const MALFORMED: &str = "samples://box/\u{1}";
    let store = Arc::new(Store::default());
    let host = Host::new();
    let mut found = Provided { samples: Vec::new(), first_files: BTreeMap::new() };
    if let Err(error) = host.serve("samples", Reader(Arc::clone(&store))) {
        panic!("the filesystem of samples cannot be registered: {error:#}");
    }
    let semantics = Semantics { malformed: Some(MALFORMED.to_owned()), ..Semantics::default() };
    // What a read-only filesystem returns for changes is tested by `changes_are_refused`.
    let changing = [Group::Directories, Group::Deleting, Group::Transfers];
    for case in Case::all().iter().filter(|case| !changing.contains(&case.group)) {
        let source = Source::Recorded(&store);
        let at = ("samples://box", format!("{}-", case.name));
        let outcome = attempt(&host, at, &semantics, case, source, None);
        let noted = std::mem::take(&mut *store.lock());
        if outcome == Outcome::Passed {
            let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
            let mut files = noted.iter().filter(|(_, content)| content.is_some());
            let file = files.find(|(path, _)| path.chars().all(plain));
            found.first_files.insert(case.name, file.map(|(path, _)| path.clone()));
            let samples = noted.into_iter().map(|(path, content)| Sample { path, content });
            found.samples.extend(samples);
        }
    }
    found
});

/// The files and directories that cases would create, by their paths below the root; a directory is `None`.
#[derive(Debug, Default)]
pub(super) struct Store(Mutex<BTreeMap<String, Option<Vec<u8>>>>);

impl Store {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<u8>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a file, and the directories above it.
    pub(super) fn file(&self, path: &str, content: &[u8]) -> Result<()> {
        if let Some((directory, _)) = path.rsplit_once('/') {
            self.directory(directory)?;
        }
        let earlier = self.lock().insert(path.to_owned(), Some(content.to_vec()));
        // Files that are provided never change.
        ensure!(
            earlier.is_none_or(|earlier| earlier.as_deref() == Some(content)),
            Error::unimplemented("a file that is provided does not change")
        );
        Ok(())
    }

    /// Records a directory, and those above it.
    pub(super) fn directory(&self, path: &str) -> Result<()> {
        let slashes = path.match_indices('/').map(|(at, _)| at);
        for end in slashes.chain([path.len()]) {
            self.lock().entry(path[..end].to_owned()).or_default();
        }
        Ok(())
    }
}

/// A filesystem that reads recorded files.
struct Reader(Arc<Store>);

impl Reader {
    /// Returns the bytes of a file, or `None` for a directory.
    fn find(&self, uri: Uri<'_>) -> Result<Option<Vec<u8>>> {
        let path = uri.path_str()?.trim_start_matches('/');
        ensure!(!path.contains('\u{1}'), Error::failed_precondition("no file has such a name"));
        let nodes = self.0.lock();
        if let Some(node) = nodes.get(path) {
            return Ok(node.clone());
        }
        let is_below_file = |(at, _)| matches!(nodes.get(&path[..at]), Some(Some(_)));
        ensure!(!path.match_indices('/').any(is_below_file), Error::expected_directory(uri));
        ensure!(path.is_empty(), Error::not_found(uri));
        Ok(None)
    }
}

#[tf_fs_plugin::filesystem]
impl Filesystem for Reader {
    type Reader = Bytes;
    type Region = AlignedRegion;

    fn new(_scheme: &str) -> Result<Self> {
        Ok(Self(Arc::default()))
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Bytes> {
        self.find(uri)?.map(Bytes).ok_or_else(|| Error::expected_file(uri))
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        let bytes = self.new_random_access_file(uri)?;
        let length = bytes.0.len() as u64;
        AlignedRegion::read(&bytes, length)
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Ok(match self.find(uri)? {
            Some(content) => FileStatistics::file(content.len() as u64),
            None => FileStatistics::directory(),
        })
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        ensure!(self.find(uri)?.is_none(), Error::expected_directory(uri));
        let path = uri.path_str()?.trim_matches('/');
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let nodes = self.0.lock();
        let below = nodes.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(below.filter(|name| !name.is_empty() && !name.contains('/')).collect())
    }
}

/// An open file.
struct Bytes(Vec<u8>);

impl RandomAccessFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        buf.fill_from(&self.0, offset);
        Ok(())
    }
}
