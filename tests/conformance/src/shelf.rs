//! A filesystem that only reads, as one on a web server: what is on a shelf is put there by others.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::RwLock;

/// Files, and directories as `None`, by their paths. A file implies the directories above it.
type Nodes = BTreeMap<Vec<u8>, Option<Arc<Vec<u8>>>>;

/// What is served, the path in it, and the file there; `None` for a directory.
type Found = (Arc<Nodes>, Vec<u8>, Option<Arc<Vec<u8>>>);

/// What each host of the scheme serves: the other side of the network. Other tests of the process change it while one
/// forks.
static SHELVES: RwLock<BTreeMap<Vec<u8>, Arc<Nodes>>> = RwLock::new(BTreeMap::new());

/// The filesystem, complete or with a defect.
#[derive(Debug, Default)]
pub struct Shelves {
    defect: Option<Flaw>,
    calls: AtomicUsize,
}

/// What can be wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Flaw {
    ReadIgnoresOffset,
    LastByteIsNotRead,
    ReadEndsAt64KiB,
    ReadEndsAtNul,
    OpensDirectories,
    OpensNothing,
    StatOffByOne,
    StatMissingIsEmpty,
    StatOfDirsIsFile,
    BelowFileIsMissing,
    ExistsByPrefix,
    ListsAllLevels,
    ListsAtMost100,
    ListsNoDirectories,
    ListsByPrefix,
    ListsFiles,
    ListsTwice,
    DecodesPercent,
    CutsAtHash,
    CutsAtQuestionMark,
    PlusIsSpace,
    IgnoresCase,
    KeysAreLastComponents,
    RegionIsCut,
    RefusesASecondCall,
    CreatingSeemsToSucceed,
    DeletingSeemsToSucceed,
    MakingDirectoriesSeemsToSucceed,
}

impl Flaw {
    /// All of them, each with a case that notices it.
    pub const ALL: &'static [(Self, &'static str)] = {
        use Flaw::*;
        &[
            (ReadIgnoresOffset, "read_backwards"),
            (LastByteIsNotRead, "all_bytes_are_kept"),
            (ReadEndsAt64KiB, "read_in_pieces_of_tensorflow"),
            (ReadEndsAtNul, "line_ends_are_kept"),
            (OpensDirectories, "new_random_access_file_of_full_dir"),
            (OpensNothing, "new_random_access_file_of_missing"),
            (StatOffByOne, "stat_of_file"),
            (StatMissingIsEmpty, "stat_of_missing"),
            (StatOfDirsIsFile, "stat_of_full_dir"),
            (BelowFileIsMissing, "path_exists_of_below_file"),
            (ExistsByPrefix, "prefix_is_no_path"),
            (ListsAllLevels, "listing_is_one_level"),
            (ListsAtMost100, "listing_of_many_files"),
            (ListsNoDirectories, "walk"),
            (ListsByPrefix, "listing_of_prefix_siblings"),
            (ListsFiles, "get_children_of_file"),
            (ListsTwice, "listing_is_names_only"),
            (DecodesPercent, "name_with_percent"),
            (CutsAtHash, "name_with_hash"),
            (CutsAtQuestionMark, "name_with_question_mark"),
            (PlusIsSpace, "name_with_plus_and_ampersand"),
            (IgnoresCase, "names_by_case"),
            (KeysAreLastComponents, "same_name_as_file_and_in_directory"),
            (RegionIsCut, "region_of_a_large_file"),
            (RefusesASecondCall, "each_opens_the_same_file"),
            (CreatingSeemsToSucceed, "changes_are_refused"),
            (DeletingSeemsToSucceed, "changes_are_refused"),
            (MakingDirectoriesSeemsToSucceed, "changes_are_refused"),
        ]
    };
}

/// A host of `shelf://` that is gone when this is dropped.
#[derive(Debug)]
pub struct Shelf(String);

impl Shelf {
    /// Serves files, and directories as `None`, by their paths.
    pub fn with<'s>(
        host: &str,
        nodes: impl IntoIterator<Item = (&'s str, Option<&'s [u8]>)>,
    ) -> Self {
        let nodes = nodes.into_iter().map(|(path, content)| {
            (path.as_bytes().to_vec(), content.map(|content| Arc::new(content.to_vec())))
        });
        let nodes = Arc::new(nodes.collect());
        let mut shelves = SHELVES.write().unwrap_or_else(PoisonError::into_inner);
        shelves.insert(host.as_bytes().to_vec(), nodes);
        Self(host.to_owned())
    }

    /// The URI of all that is served.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("shelf://{}/", self.0)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let mut shelves = SHELVES.write().unwrap_or_else(PoisonError::into_inner);
        let nodes = shelves.remove(self.0.as_bytes());
        // What is many files is dropped where no fork waits for it.
        drop((shelves, nodes));
    }
}

struct Call<'c>(&'c AtomicUsize);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Paths below a directory, without it.
fn below<'n>(nodes: &'n Nodes, path: &[u8]) -> impl Iterator<Item = &'n [u8]> {
    let prefix = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
    let from = (Bound::Excluded(prefix.clone()), Bound::Unbounded);
    nodes.range(from).map_while(move |(name, _)| name.strip_prefix(&prefix[..]))
}

fn is_directory(nodes: &Nodes, path: &[u8]) -> bool {
    path.is_empty() || matches!(nodes.get(path), Some(None)) || below(nodes, path).next().is_some()
}

impl Shelves {
    /// With a defect.
    #[must_use]
    pub fn with(defect: Flaw) -> Self {
        Self { defect: Some(defect), ..Self::default() }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.defect == Some(flaw)
    }

    /// What a name represents on the server.
    fn path(&self, uri: Uri<'_>) -> Result<Vec<u8>> {
        let path = uri.path_str()?.trim_matches('/');
        ensure!(!path.contains('\u{1}'), Error::failed_precondition("no page has such a name"));
        let cut = |at: char| path.split(at).next().unwrap_or_default().to_owned();
        let path = match self.defect {
            Some(Flaw::DecodesPercent) => path.replace("%25", "%").replace("%20", " "),
            Some(Flaw::CutsAtHash) => cut('#'),
            Some(Flaw::CutsAtQuestionMark) => cut('?'),
            Some(Flaw::PlusIsSpace) => path.replace('+', " "),
            _ => path.to_owned(),
        };
        Ok(path.into_bytes())
    }

    fn find(&self, uri: Uri<'_>) -> Result<Found> {
        let others = self.calls.fetch_add(1, Ordering::SeqCst);
        let _call = Call(&self.calls);
        if self.is(Flaw::RefusesASecondCall) {
            std::thread::sleep(Duration::from_micros(50));
            ensure!(others == 0, Error::resource_exhausted("busy"));
        }
        let path = self.path(uri)?;
        let nodes =
            SHELVES.read()?.get(uri.host()).cloned().ok_or_else(|| Error::not_found(uri))?;
        let mut found = nodes.get(&path).cloned();
        if self.is(Flaw::IgnoresCase) {
            let lower = path.to_ascii_lowercase();
            let same = nodes.iter().find(|(name, _)| name.to_ascii_lowercase() == lower);
            found = same.map(|(_, node)| node.clone());
        }
        if self.is(Flaw::KeysAreLastComponents) && found.as_ref().is_some_and(Option::is_some) {
            let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let ends = |name: &[u8]| name.rsplit(|byte| *byte == b'/').next() == Some(last);
            let same = nodes.iter().find(|(name, node)| ends(name) && node.is_some());
            found = same.map(|(_, node)| node.clone());
        }
        if let Some(Some(file)) = found {
            return Ok((nodes, path, Some(file)));
        }
        if is_directory(&nodes, &path) {
            return Ok((nodes, path, None));
        }
        let starts = |(name, _): (&Vec<u8>, _)| name.starts_with(&path);
        if self.is(Flaw::ExistsByPrefix) && nodes.range(path.clone()..).next().is_some_and(starts) {
            return Ok((nodes, path, None));
        }
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let is_below_file =
            slashes.map(|(at, _)| at).any(|at| matches!(nodes.get(&path[..at]), Some(Some(_))));
        ensure!(
            !is_below_file || self.is(Flaw::BelowFileIsMissing),
            Error::expected_directory(uri)
        );
        Err(Error::not_found(uri))
    }
}

#[tf_fs_plugin::filesystem]
impl Filesystem for Shelves {
    type Reader = Page;
    type Region = AlignedRegion;
    type Writer = Nowhere;

    fn new(_scheme: &str) -> Result<Self> {
        Ok(Self::default())
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Page> {
        let content = match self.find(uri) {
            Ok((.., Some(content))) => content,
            Ok((.., None)) if self.is(Flaw::OpensDirectories) => Arc::default(),
            Ok((.., None)) => return Err(Error::expected_file(uri)),
            Err(error) if error.code() == Code::NotFound && self.is(Flaw::OpensNothing) => {
                Arc::default()
            }
            Err(error) => return Err(error),
        };
        Ok(Page { content, defect: self.defect })
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        let page = self.new_random_access_file(uri)?;
        let length = page.content.len() as u64;
        AlignedRegion::read(
            &page,
            if self.is(Flaw::RegionIsCut) { length.min(4096) } else { length },
        )
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Nowhere> {
        ensure!(self.is(Flaw::CreatingSeemsToSucceed), Error::permission_denied(uri));
        Ok(Nowhere)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        ensure!(self.is(Flaw::DeletingSeemsToSucceed), Error::permission_denied(uri));
        Ok(())
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        ensure!(self.is(Flaw::MakingDirectoriesSeemsToSucceed), Error::permission_denied(uri));
        Ok(())
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        match self.find(uri) {
            Ok((.., Some(content))) => {
                let length = content.len() as u64 + u64::from(self.is(Flaw::StatOffByOne));
                Ok(FileStatistics::file(length))
            }
            Ok((.., None)) if self.is(Flaw::StatOfDirsIsFile) => Ok(FileStatistics::file(4096)),
            Ok((.., None)) => Ok(FileStatistics::directory()),
            Err(error) if error.code() == Code::NotFound && self.is(Flaw::StatMissingIsEmpty) => {
                Ok(FileStatistics::file(0))
            }
            Err(error) => Err(error),
        }
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        let (nodes, path, found) = self.find(uri)?;
        if found.is_some() && self.is(Flaw::ListsFiles) {
            return Ok(Entries::new());
        }
        ensure!(found.is_none(), Error::expected_directory(uri));
        let mut names: Vec<&[u8]> = if self.is(Flaw::ListsByPrefix) {
            let names = nodes.keys().filter_map(|name| name.strip_prefix(&path[..]));
            names.map(|name| name.strip_prefix(b"/").unwrap_or(name)).collect()
        } else {
            below(&nodes, &path).collect()
        };
        if !self.is(Flaw::ListsAllLevels) {
            for name in &mut names {
                *name = name.split(|byte| *byte == b'/').next().unwrap_or_default();
            }
            names.dedup();
        }
        names.retain(|name| !name.is_empty());
        let full = |name: &[u8]| {
            if path.is_empty() { name.to_vec() } else { [&path[..], b"/", name].concat() }
        };
        if self.is(Flaw::ListsNoDirectories) {
            names.retain(|name| matches!(nodes.get(&full(name)), Some(Some(_))));
        }
        if self.is(Flaw::ListsAtMost100) {
            names.truncate(100);
        }
        if self.is(Flaw::ListsTwice) {
            names.extend(names.clone());
        }
        Ok(names.into_iter().collect())
    }
}

/// A file that is open.
#[derive(Debug)]
pub struct Page {
    content: Arc<Vec<u8>>,
    defect: Option<Flaw>,
}

impl RandomAccessFile for Page {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        let content = &self.content[..];
        match self.defect {
            Some(Flaw::ReadIgnoresOffset) => buf.fill_from(content, 0),
            Some(Flaw::LastByteIsNotRead) => {
                buf.fill_from(&content[..content.len().saturating_sub(1)], offset);
            }
            Some(Flaw::ReadEndsAt64KiB) => {
                buf.fill_from(&content[..content.len().min(1 << 16)], offset);
            }
            Some(Flaw::ReadEndsAtNul) => {
                buf.fill_from(content.split(|byte| *byte == 0).next().unwrap_or_default(), offset);
            }
            _ => buf.fill_from(content, offset),
        }
        Ok(())
    }
}

/// A file whose bytes get lost.
#[derive(Debug)]
pub struct Nowhere;

impl WritableFile for Nowhere {
    fn append(&mut self, _data: &[u8]) -> Result<()> {
        Ok(())
    }
    fn tell(&mut self) -> Result<u64> {
        Ok(0)
    }
}
