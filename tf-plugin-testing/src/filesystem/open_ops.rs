//! The operations that open files.

use super::abi::file::{TestRandomAccessFile, TestReadOnlyMemoryRegion, TestWritableFile};
use super::abi::open::Open;
use super::test_filesystem::{TestFilesystem, unsupported};
use tf_plugin_core::{Code, Error, Result};

/// Defines operations that open something, each with its C++ name, the table of what it opens, and
/// the conversion of an open handle.
macro_rules! open_ops {
    ($($(#[$doc:meta])* $op:ident, $cpp_name:literal, $table:ident -> $opened:ident = $make:expr;)*) => {
        impl TestFilesystem {$(
            $(#[$doc])*
            pub fn $op(&self, uri: impl AsRef<[u8]>) -> Result<$opened> {
                let uri = uri.as_ref();
                let slot = self.mounted.tables.filesystem.$op;
                let slot = slot.ok_or_else(|| unsupported(uri, $cpp_name))?;
                let name = self.translate_name(uri)?;
                let cleanup = self.mounted.tables.$table.cleanup;
                Open::new(&self.mounted, stringify!($op), (slot, cleanup), &name).map($make)
            }
        )*}
    };
}
open_ops! {
    /// Opens a file for reading.
    new_random_access_file, "NewRandomAccessFile", random_access_file -> TestRandomAccessFile = TestRandomAccessFile;
    /// Creates or empties a file and opens it for writing.
    new_writable_file, "NewWritableFile", writable_file -> TestWritableFile = TestWritableFile;
    /// Opens a file for writing after its end; creates it if it is missing.
    new_appendable_file, "NewAppendableFile", writable_file -> TestWritableFile = TestWritableFile;
    /// Maps a file into memory.
    new_read_only_memory_region_from_file, "NewReadOnlyMemoryRegionFromFile", read_only_memory_region
        -> TestReadOnlyMemoryRegion = TestReadOnlyMemoryRegion::opened;
}

impl TestFilesystem {
    /// Creates a file with this content, and closes it.
    ///
    /// # Errors
    /// Returns the first error of opening, appending and closing.
    pub fn write_file(&self, uri: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Result<()> {
        let mut file = self.new_writable_file(uri)?;
        file.append(content.as_ref())?;
        file.close()
    }

    /// Reads the whole content of a file, in pieces until it ends.
    ///
    /// Gives up on a file that does not end: after more bytes than
    /// [`get_file_size`](Self::get_file_size) returns, or 256 MiB if that fails.
    ///
    /// # Errors
    /// Returns the first error of opening and reading; `DATA_LOSS` for a file that does not end.
    pub fn read_file(&self, uri: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        /// How many bytes Python's `GFile` reads at a time.
        const CHUNK: usize = 512 << 10;
        /// Up to this size `get_file_size` is not called, since tests count calls.
        const UNASKED: usize = 16 << 20;
        const MOST: u64 = 256 << 20;
        let uri = uri.as_ref();
        let file = self.new_random_access_file(uri)?;
        let mut content = Vec::new();
        let mut ask = UNASKED;
        loop {
            let piece = file.read(content.len() as u64, CHUNK)?;
            content.extend_from_slice(&piece);
            if piece.len() < CHUNK {
                return Ok(content);
            }
            if content.len() < ask {
                continue;
            }
            // Called again each time: the file may grow.
            ask *= 2;
            let size = self.get_file_size(uri);
            let read = content.len() as u64;
            if read > size.as_ref().map_or(MOST, |size| size.saturating_add(CHUNK as u64)) {
                let size = match size {
                    Ok(size) => format!("a file of {size} bytes"),
                    Err(_) => "a file of unknown size".to_owned(),
                };
                let what = format!(
                    "has given {read} bytes of {size}, and does not end: a read that reaches the end gives fewer bytes \
                     than it is requested, and OUT_OF_RANGE"
                );
                self.violation("read", uri, &what);
                return Err(Error::new(Code::DataLoss, what));
            }
        }
    }
}
