//! Filesystems with few operations, with their own names, and with code that fails in odd places.

use crate::support::{code, fails};
use crate::trips::Bomb;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_plugin::prelude::*;
use tf_plugin_testing::filesystem::Host;

type Bytes = Arc<Mutex<Vec<u8>>>;

/// A file whose `append` panics if it is fragile; its drop then panics, too.
#[derive(Clone, Default)]
struct File {
    bytes: Bytes,
    fragile: bool,
}

impl RandomAccessFile for File {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        buf.fill_from(&self.bytes.lock()?, offset);
        Ok(())
    }
}

impl WritableFile for File {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        let mut bytes = self.bytes.lock()?;
        assert!(!self.fragile, "boom while the lock is held");
        bytes.extend_from_slice(data);
        Ok(())
    }
    fn tell(&mut self) -> Result<u64> {
        Ok(self.bytes.lock()?.len() as u64)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Takes the lock, as a writer that publishes on drop does.
        assert!(!self.fragile || self.bytes.lock().is_ok(), "boom again, the lock is poisoned");
    }
}

/// Only opens files; those below `fragile/` panic.
#[derive(Default)]
struct OnlyOpens(Mutex<BTreeMap<Vec<u8>, Bytes>>);
#[tf_fs_plugin::filesystem]
impl Filesystem for OnlyOpens {
    type Reader = File;
    type Writer = File;

    fn new(_: &str) -> Result<Self> {
        Ok(Self::default())
    }
    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<File> {
        let files = self.0.lock()?;
        let bytes = files.get(uri.as_bytes()).ok_or_else(|| Error::not_found(uri))?;
        Ok(File { bytes: Arc::clone(bytes), fragile: false })
    }
    fn new_writable_file(&self, uri: Uri<'_>) -> Result<File> {
        let bytes = Bytes::default();
        self.0.lock()?.insert(uri.as_bytes().to_vec(), Arc::clone(&bytes));
        Ok(File { bytes, fragile: uri.path().starts_with(b"/fragile/") })
    }
}
export!(OnlyOpens: "opens" => OnlyOpens);

#[test]
fn a_copy_needs_no_more_than_opening() {
    let host = Host::load::<OnlyOpens>().expect("loaded");
    host.write_file("opens://h/a", "content").expect("written");
    host.copy_file("opens://h/a", "opens://h/b").expect("copied");
    let copy = host.new_random_access_file("opens://h/b").expect("opened");
    assert_eq!(copy.read(0, 7).expect("read"), b"content");
}

#[test]
fn a_rename_that_could_not_delete_touches_nothing() {
    let host = Host::load::<OnlyOpens>().expect("loaded");
    host.write_file("opens://h/a", "content").expect("written");
    host.write_file("opens://h/b", "old").expect("written");
    fails(host.rename_file("opens://h/a", "opens://h/b"), Code::Unimplemented, "delete_file");
    let kept = host.new_random_access_file("opens://h/b").expect("opened");
    assert_eq!(kept.read(0, 3).expect("read"), b"old");
}

#[test]
fn a_copy_that_panics_twice_ends_in_an_error() {
    let host = Host::load::<OnlyOpens>().expect("loaded");
    host.write_file("opens://h/a", "content").expect("written");
    let copied = host.copy_file("opens://h/a", "opens://h/fragile/b");
    fails(copied, Code::Internal, "boom while the lock is held");
    host.copy_file("opens://h/a", "opens://h/c").expect("the filesystem goes on");
}

/// Has directories, but creates none.
struct NoCreation;
#[tf_fs_plugin::filesystem]
impl Filesystem for NoCreation {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        ensure!(uri.path() == b"/there", Error::not_found(uri));
        Ok(FileStatistics::directory())
    }
    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        let name = uri.file_name();
        let odd: [&[u8]; 5] = [b"", b".", b"..", b"...", b"n\0"];
        Ok(match name {
            b"slash" => ["slash/x"].into_iter().collect(),
            name => odd.into_iter().chain([name]).collect(),
        })
    }
    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        uris.iter().map(|_| Err(Error::unavailable("off").with_source(Bomb::QUIET))).collect()
    }
}
export!(NoCreation: "fixed" => NoCreation);

#[test]
fn a_directory_that_is_there_need_not_be_created() {
    let host = Host::load::<NoCreation>().expect("loaded");
    host.recursively_create_dir("fixed://h/there").expect("there already");
    assert_eq!(code(host.recursively_create_dir("fixed://h/new")), Code::Unimplemented);
}

#[test]
fn names_that_tensorflow_cannot_list_are_left_out() {
    let host = Host::load::<NoCreation>().expect("loaded");
    assert_eq!(host.get_children("fixed://h/a").expect("listed"), [&b"..."[..], b"a"]);
    assert_eq!(host.get_children("fixed://h/").expect("listed"), [b"..."]);
    assert_eq!(
        host.get_matching_paths("fixed://h/d/*").expect("listed"),
        [&b"fixed://h/d/..."[..], b"fixed://h/d/d"]
    );
    fails(host.get_children("fixed://h/slash"), Code::Internal, "not a name of an entry");
}

#[test]
fn a_discarded_error_may_panic_when_dropped() {
    let host = Host::load::<NoCreation>().expect("loaded");
    assert!(
        !host.filesystem("fixed").expect("there").all_paths_exist(&["fixed://h/a"]).expect("asked")
    );
}

/// Names are keys: `a//b` is not `a/b`.
struct Keys;
#[tf_fs_plugin::filesystem]
impl Filesystem for Keys {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        uri.strip_prefix(b"keys://").unwrap_or(uri).to_vec()
    }
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        ensure!(uri.as_bytes() == b"bucket/a//b/c", Error::not_found(uri));
        Ok(FileStatistics::file(1))
    }
    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        ensure!(uri.as_bytes() == b"bucket/a//b", Error::not_found(uri));
        Ok(["c"].into_iter().collect())
    }
}
export!(Keys: "keys" => Keys);

#[test]
fn patterns_are_looked_up_under_translated_names() {
    let host = Host::load::<Keys>().expect("loaded");
    for pattern in ["keys://bucket/a//b/*", "keys://bucket/a//b/c"] {
        let result = host.get_matching_paths(pattern).expect("matched");
        assert_eq!(result, [b"keys://bucket/a//b/c"], "{pattern}");
    }
    assert!(host.get_matching_paths("keys://bucket/a/b/*").expect("matched").is_empty());
}

/// A stream that breaks off.
struct Broken;
impl RandomAccessFile for Broken {
    fn read_at(&self, _: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        assert_eq!(buf.push_slice(b"abc"), 3);
        buf.fill_with(|_| Err::<usize, _>(io::Error::from(ErrorKind::UnexpectedEof)))?;
        Ok(())
    }
}

/// A region whose content panics, and then its drop.
struct Doomed(Mutex<()>);
impl ReadOnlyMemoryRegion for Doomed {
    fn content(&self) -> RegionContent<'_> {
        let _held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        panic!("boom in content")
    }
}
impl Drop for Doomed {
    fn drop(&mut self) {
        assert!(!self.0.is_poisoned(), "boom in drop");
    }
}

struct Odd;
#[tf_fs_plugin::filesystem]
impl Filesystem for Odd {
    type Reader = Box<dyn RandomAccessFile>;
    type Region = Doomed;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Box<dyn RandomAccessFile>> {
        Ok(Box::new(Broken))
    }
    fn new_read_only_memory_region_from_file(&self, _: Uri<'_>) -> Result<Doomed> {
        Ok(Doomed(Mutex::new(())))
    }
    fn stat(&self, _: Uri<'_>) -> Result<FileStatistics> {
        // The author catches one panic and lets another through that the hook does not see.
        let first = std::panic::catch_unwind(|| panic!("first")).expect_err("panicked");
        drop(first);
        std::panic::resume_unwind(Box::new("second"))
    }
}
export!(Odd: "odd" => Odd);

#[test]
fn a_broken_stream_is_not_the_end_of_the_file() {
    let host = Host::load::<Odd>().expect("loaded");
    let file = host.new_random_access_file("odd://h/a").expect("opened");
    assert_eq!(code(file.read(0, 16)), Code::DataLoss);
}

#[test]
fn a_region_that_panics_twice_ends_in_an_error() {
    let host = Host::load::<Odd>().expect("loaded");
    let region = host.new_read_only_memory_region_from_file("odd://h/a");
    fails(region.map(drop), Code::Internal, "boom in content");
}

#[test]
fn the_place_of_another_panic_is_not_shown() {
    let host = Host::load::<Odd>().expect("loaded");
    fails(host.stat("odd://h/a"), Code::Internal, "plugin panicked in `stat`: second");
}

/// One directory `d` with a file `f`.
pub(crate) struct Tree;
#[tf_fs_plugin::filesystem]
impl Filesystem for Tree {
    type Transaction = ();

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        match uri.path() {
            b"/" | b"/d" => Ok(FileStatistics::directory()),
            b"/f" => Ok(FileStatistics::file(0)),
            _ => Err(Error::not_found(uri)),
        }
    }
    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        ensure!(uri.is_root(), Error::not_found(uri));
        Ok(["d", "f"].into_iter().collect())
    }
    fn start_transaction(&self) -> Result<Arc<()>> {
        Ok(Arc::new(()))
    }
    fn add_to_transaction(&self, _: Uri<'_>, _: &Arc<()>) -> Result<()> {
        Ok(())
    }
    fn get_transaction_for_path(&self, _: Uri<'_>) -> Result<Option<Arc<()>>> {
        Ok(None)
    }
}
export!(Tree: "tree" => Tree);

#[test]
fn a_pattern_that_ends_with_a_slash_matches_directories() {
    let host = Host::load::<Tree>().expect("loaded");
    assert_eq!(host.get_matching_paths("tree://h/*/").expect("matched"), [b"tree://h/d/"]);
    let all = host.get_matching_paths("tree://h/*").expect("matched");
    assert_eq!(all, [b"tree://h/d", b"tree://h/f"]);
}

#[test]
fn a_path_of_another_filesystem_has_no_transaction() {
    let host = Host::load::<Tree>().expect("loaded");
    let fs = host.filesystem("tree").expect("there");
    assert_eq!(code(fs.get_or_start_transaction_for_path("other://h/f").map(drop)), Code::NotFound);
    let result = fs.get_transaction_for_path("other://h/f").map(drop);
    assert_eq!(code(result), Code::FailedPrecondition);
    fs.get_or_start_transaction_for_path("tree://h/f").expect("started");
}
