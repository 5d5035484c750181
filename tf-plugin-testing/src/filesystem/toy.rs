// The filesystem of the examples in this crate's documentation, which include this file.
use tf_fs_plugin::prelude::*;

#[derive(Default)]
pub struct Toy;

#[filesystem]
impl Filesystem for Toy {
    type Reader = Toy;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        ensure!(uri.path() != b"/goodbye", Error::not_found(uri));
        Ok(FileStatistics::file(6))
    }
}

impl RandomAccessFile for Toy {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        buf.fill_from(b"hello\n", offset);
        Ok(())
    }
}

tf_plugin_testing::__export_filesystems!(Toy: "greet" => Toy);
