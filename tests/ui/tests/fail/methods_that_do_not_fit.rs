//! The compiler says once what is wrong with a method, and points where it would without the attribute.

use tf_fs_plugin::prelude::*;

struct WithoutNew;

#[filesystem]
impl Filesystem for WithoutNew {}

struct Body;

#[filesystem]
impl Filesystem for Body {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn path_exists(&self, _: Uri<'_>) -> Result<bool> {
        let exists: bool = "yes";
        Ok(exists)
    }
}

struct Signatures;

#[filesystem]
impl Filesystem for Signatures {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }

    fn delete_file(&self, _: &str) -> Result<()> {
        Ok(())
    }

    // TensorFlow waits for each operation.
    async fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }
}

fn main() {}
