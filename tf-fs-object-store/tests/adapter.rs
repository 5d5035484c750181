//! Clients of the crate `object_store` as filesystems: one in memory, and one for local files, which checks fewer conditions.

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use std::sync::Arc;
use tempfile::TempDir;
use tf_fs_object_store::{AdaptedStore, Client, ObjectFilesystem, Settings, StorePlugin};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::Mutex;
use tf_plugin_testing::filesystem::Host;

/// Parts of uploads are small, so that the cases have some.
fn settings() -> Settings {
    Settings::default().with(|settings| settings.write_part = 256 << 10)
}

/// One store in memory for each bucket.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Vec<Bucket>>>);

type Bucket = (Arc<str>, AdaptedStore);

impl Client for Memory {
    type Store = AdaptedStore;
    const SCHEMES: &'static [&'static str] = &["inmemory"];

    async fn open(&self, bucket: &Arc<str>) -> Result<AdaptedStore> {
        let mut all = self.0.lock()?;
        if let Some((_, store)) = all.iter().find(|(name, _)| name == bucket) {
            return Ok(store.clone());
        }
        let store = AdaptedStore::new(Arc::new(InMemory::new()), settings());
        all.push((Arc::clone(bucket), store.clone()));
        Ok(store)
    }
}

#[derive(Debug, Default)]
struct MemoryPlugin(Memory);

impl StorePlugin for MemoryPlugin {
    type Client = Memory;

    fn connect(&self, _: Option<&Memory>) -> Result<Memory> {
        Ok(self.0.clone())
    }
}

/// The files below a directory that vanishes with the process.
#[derive(Clone, Debug)]
struct Local(Arc<TempDir>);

impl Client for Local {
    type Store = AdaptedStore;
    const SCHEMES: &'static [&'static str] = &["localstore"];

    async fn open(&self, bucket: &Arc<str>) -> Result<AdaptedStore> {
        let no_store = |error| Error::unavailable("no store").with_source(error);
        let root = self.0.path().join(&**bucket);
        std::fs::create_dir_all(&root)
            .map_err(|error| Error::unavailable("no directory").with_source(error))?;
        let store = LocalFileSystem::new_with_prefix(root).map_err(no_store)?;
        Ok(AdaptedStore::new(Arc::new(store), settings()).without_update_check())
    }
}

#[derive(Debug)]
struct LocalPlugin(Local);

impl Default for LocalPlugin {
    fn default() -> Self {
        Self(Local(Arc::new(tempfile::tempdir().expect("a directory"))))
    }
}

impl StorePlugin for LocalPlugin {
    type Client = Local;

    fn connect(&self, _: Option<&Local>) -> Result<Local> {
        Ok(self.0.clone())
    }
}

tf_fs_plugin::filesystem_plugins! {
    "inmemory" => ObjectFilesystem<MemoryPlugin>,
    "localstore" => ObjectFilesystem<LocalPlugin>,
}

mod memory {
    tf_plugin_testing::filesystem::conformance! {
        super::FilesystemPlugins,
        root: "inmemory://bucket/",
        visible: flush,
        directories: implied,
        without: [
            translate_name_cleans => "keys are exact: none is cleaned",
            untidy_names => "keys are exact: none is cleaned",
            name_with_control => "paths of the crate have no control characters",
            forked_children => "the client has a lock, which another thread may hold when a process is forked",
        ],
    }
}

/// Files are where others see them, parts become one file, and nobody else's file is replaced.
#[test]
fn local_files_are_read_and_written() {
    let host = Host::load::<FilesystemPlugins>().unwrap();
    let fs = host.filesystem("localstore").unwrap();
    let large: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    for (name, content) in [("d/large", &large[..]), ("d/small", b"one"), ("d/empty", b"")] {
        fs.write_file(format!("localstore://bucket/{name}"), content).unwrap();
        assert!(fs.read_file(format!("localstore://bucket/{name}")).unwrap() == content, "{name}");
    }
    let mut file = fs.new_appendable_file("localstore://bucket/d/small").unwrap();
    file.append(b" two").unwrap();
    file.close().unwrap();
    assert_eq!(fs.read_file("localstore://bucket/d/small").unwrap(), b"one two");
    let mut names = fs.get_children("localstore://bucket/d").unwrap();
    names.sort();
    assert_eq!(names, [b"empty", b"large", b"small"].map(|name| name.to_vec()));
    fs.rename_file("localstore://bucket/d/small", "localstore://bucket/d/other").unwrap();
    fs.delete_file("localstore://bucket/d/empty").unwrap();
    assert_eq!(fs.get_file_size("localstore://bucket/d/other").unwrap(), 7);
    assert_eq!(fs.path_exists("localstore://bucket/d/small").unwrap_err().code(), Code::NotFound);
}

/// The code of the book is this one.
#[test]
fn the_page_shows_this_code() {
    let page = include_str!("../../docs/existing-client.md");
    let blocks: Vec<_> = page.split("\n```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let code = block.split_once("\n```\n").expect("a block ends").0;
        assert!(include_str!("adapter.rs").contains(code), "{code}");
    }
}
