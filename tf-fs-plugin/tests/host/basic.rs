//! Filesystems that write only some operations.

use crate::full::{Full, Reader, Writer};
use tf_fs_plugin::*;

/// A filesystem with only what reading, writing and listing require; defaults do the rest.
pub(crate) struct Basic(Full);

export!(Basic: "basic" => Basic);

macro_rules! forward {
    ($($op:ident -> $answer:ty;)*) => {
        #[tf_fs_plugin::filesystem]
        impl Filesystem for Basic {
            type Reader = Reader;
            type Writer = Writer;

            fn new(scheme: &str) -> Result<Self> {
                Full::new(scheme).map(Self)
            }
            $(
                fn $op(&self, uri: Uri<'_>) -> Result<$answer> {
                    self.0.$op(uri)
                }
            )*
        }
    };
}
forward! {
    new_random_access_file -> Reader;
    new_writable_file -> Writer;
    create_dir -> ();
    delete_file -> ();
    delete_dir -> ();
    stat -> FileStatistics;
    get_children -> Entries;
}

/// A filesystem in which nothing exists, not even its root.
#[derive(Debug)]
pub(crate) struct Rootless;

export!(Rootless: "rootless" => Rootless);

#[tf_fs_plugin::filesystem]
impl Filesystem for Rootless {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        Err(Error::not_found(uri))
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        Err(Error::not_found(uri))
    }
}
