//! Each method of the trait is known to the macro.

#![deny(warnings)]

use std::sync::Arc;
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::{OperationTable, Ops, Unsupported};

struct Full;

#[filesystem_plugin(scheme = "full")]
impl Filesystem for Full {
    type Reader = Unsupported;
    type Writer = Unsupported;
    type Region = AlignedRegion;
    type Transaction = u8;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Self::Reader> {
        no(uri)
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        no(uri)
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        no(uri)
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<Self::Region> {
        no(uri)
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        no(uri)
    }

    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        no(uri)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        no(uri)
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        no(uri)
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), Undeleted> {
        Ok(no(uri)?)
    }

    fn rename_file(&self, src: Uri<'_>, _: Uri<'_>) -> Result<()> {
        no(src)
    }

    fn copy_file(&self, src: Uri<'_>, _: Uri<'_>) -> Result<()> {
        no(src)
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        no(uri)
    }

    fn paths_exist(&self, _: &[Uri<'_>]) -> Vec<Result<bool>> {
        Vec::new()
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        no(uri)
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        no(uri)
    }

    fn get_file_size(&self, uri: Uri<'_>) -> Result<u64> {
        no(uri)
    }

    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        uri.to_owned()
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        no(uri)
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        no(pattern)
    }

    fn flush_caches(&self) {}

    fn start_transaction(&self) -> Result<Arc<u8>> {
        Ok(Arc::new(1))
    }

    fn end_transaction(&self, _: Arc<u8>) -> Result<()> {
        Ok(())
    }

    fn add_to_transaction(&self, uri: Uri<'_>, _: &Arc<u8>) -> Result<()> {
        no(uri)
    }

    fn get_transaction_for_path(&self, uri: Uri<'_>) -> Result<Option<Arc<u8>>> {
        no(uri)
    }

    fn get_or_start_transaction_for_path(&self, uri: Uri<'_>) -> Result<Arc<u8>> {
        no(uri)
    }

    fn decode_transaction_token(&self, _: &Arc<u8>) -> String {
        String::new()
    }

    fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        Ok(Vec::new())
    }

    fn set_filesystem_configuration(&self, _: &[FilesystemOption]) -> Result<()> {
        Ok(())
    }

    fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        Err(Error::not_found(key))
    }

    fn set_filesystem_configuration_option(&self, _: &FilesystemOption) -> Result<()> {
        Ok(())
    }

    fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

fn no<T>(uri: Uri<'_>) -> Result<T> {
    Err(Error::not_found(uri))
}

fn main() {
    for (name, operation) in Ops::NAMES {
        assert!(Full::PROVIDED.contains(*operation), "{name}");
    }
}
