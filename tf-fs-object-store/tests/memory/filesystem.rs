//! The engine as a filesystem of TensorFlow.

use crate::store::Memory;
use std::sync::atomic::{AtomicUsize, Ordering};
use tf_fs_object_store::{BucketOf, File, Name, ObjectFilesystem, StorePlugin};
use tf_fs_plugin::prelude::*;

#[derive(Debug, Default)]
struct Plugin {
    memory: Memory,
    /// How often the settings changed, and how many clients were made.
    settings: AtomicUsize,
    clients: AtomicUsize,
}

impl StorePlugin for Plugin {
    type Client = Memory;

    fn connect(&self, before: Option<&Memory>) -> Result<Memory> {
        assert_eq!(before.is_some(), self.clients.load(Ordering::Relaxed) > 0);
        self.clients.store(self.settings.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(self.memory.clone())
    }

    fn is_up_to_date(&self, _: &Memory) -> Result<bool> {
        Ok(self.clients.load(Ordering::Relaxed) > self.settings.load(Ordering::Relaxed))
    }

    fn can_reuse_bucket(&self, _: &Memory, _: &str, _: &BucketOf<Self>) -> bool {
        true
    }

    fn report(&self, _: &ObjectFilesystem<Self>, name: &Name) -> Result<Option<Vec<u8>>> {
        Ok((name.key == "report").then(|| b"all is well".to_vec()))
    }
}

fn filesystem() -> ObjectFilesystem<Plugin> {
    Filesystem::new("mem").unwrap()
}

fn uri(key: &str) -> Uri<'_> {
    Uri::new(key.as_bytes())
}

fn read(file: &File<Plugin>) -> Result<Vec<u8>> {
    let mut bytes = [0; 100];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    file.read_at(0, &mut buf)?;
    Ok(buf.filled().to_vec())
}

#[test]
fn each_operation_reaches_the_store() {
    let fs = filesystem();
    let memory = &fs.plugin().memory;
    memory.put("a", b"aa".to_vec());
    memory.put("d/b", b"bbb".to_vec());
    let open = |key| fs.new_random_access_file(uri(key));
    assert_eq!(read(&open("mem://b/a").unwrap()).unwrap(), b"aa");
    for (key, code) in [
        ("mem://b/none", Code::NotFound),
        ("mem://b/d", Code::FailedPrecondition),
        ("mem://b/d/", Code::FailedPrecondition),
        ("mem://b", Code::FailedPrecondition),
        ("mem:///a", Code::InvalidArgument),
        ("mem://b*/a", Code::InvalidArgument),
    ] {
        assert_eq!(open(key).unwrap_err().code(), code, "{key}");
    }
    let region = fs.new_read_only_memory_region_from_file(uri("mem://b/d/b")).unwrap();
    assert_eq!(region.as_bytes(), b"bbb");
    assert_eq!(fs.stat(uri("mem://b/d/b")).unwrap().length, 3);
    assert!(fs.is_directory(uri("mem://b/d")).unwrap());
    assert!(
        fs.path_exists(uri("mem://b/d")).unwrap() && !fs.path_exists(uri("mem://b/x")).unwrap()
    );
    let exist = fs.paths_exist(&[uri("mem://b/a"), uri("mem://b/x")]);
    assert_eq!(exist.into_iter().flatten().collect::<Vec<_>>(), [true, false]);
    assert_eq!(fs.get_children(uri("mem://b")).unwrap().len(), 2);
    assert_eq!(fs.get_matching_paths(uri("mem://b/*")).unwrap().len(), 2);
    fs.copy_file(uri("mem://b/a"), uri("mem://b/c")).unwrap();
    fs.rename_file(uri("mem://b/c"), uri("mem://b/e")).unwrap();
    fs.create_dir(uri("mem://b/new")).unwrap();
    fs.recursively_create_dir(uri("mem://b/new")).unwrap();
    fs.delete_dir(uri("mem://b/new")).unwrap();
    fs.delete_file(uri("mem://b/e")).unwrap();
    fs.delete_recursively(uri("mem://b/d")).unwrap();
    assert_eq!(memory.keys(), ["a"]);
    let error = fs.new_writable_file(uri("mem://b/w")).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented, "{error:#}");
    assert_eq!(fs.translate_name(b"mem://"), b"/");
    assert_eq!(fs.translate_name(b"mem://b/a//../c"), b"mem://b/a//../c");
    // What the plugin says of itself.
    assert_eq!(read(&open("mem://b/report").unwrap()).unwrap(), b"all is well");
    assert_eq!(fs.stat(uri("mem://b/report")).unwrap().length, 11);
    assert!(fs.path_exists(uri("mem://b/report")).unwrap());
    // A client with other settings, and one for all schemes.
    fs.plugin().settings.store(4, Ordering::Relaxed);
    assert!(filesystem().path_exists(uri("mem://b/a")).unwrap());
    assert_eq!(filesystem().plugin().clients.load(Ordering::Relaxed), 5);
    // Listed sizes are cached until a flush, but a region is as long as the bytes that are read.
    memory.contents().settings.listing_ttl = std::time::Duration::from_secs(60);
    for (key, other) in [("mem://c/longer", "longer content"), ("mem://c/shorter", "short")] {
        memory.put(&key[8..], b"content".to_vec());
        assert_eq!(fs.stat(uri(key)).unwrap().length, 7);
        memory.put(&key[8..], other.into());
        let region = fs.new_read_only_memory_region_from_file(uri(key)).unwrap();
        assert_eq!(region.as_bytes(), other.as_bytes());
    }
    memory.put("f", b"content".to_vec());
    fs.stat(uri("mem://c/f")).unwrap();
    memory.put("f", b"short".to_vec());
    assert_eq!(fs.stat(uri("mem://c/f")).unwrap().length, 7);
    fs.flush_caches();
    assert_eq!(fs.stat(uri("mem://c/f")).unwrap().length, 5);
}
