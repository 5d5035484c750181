//! The traits of open files.

use crate::abi::region_content::RegionContent;
use crate::abi::writer_default_note;
use crate::read_buf::ReadBuf;
use std::sync::Arc;
use tf_plugin_core::ensure;
use tf_plugin_core::{Error, Result};

/// A file that is open for reading. Several threads read it at once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `RandomAccessFile`",
    note = "write `impl RandomAccessFile for {Self}`"
)]
pub trait RandomAccessFile: Send + Sync + 'static {
    /// Reads into `buf` from byte `offset`, until `buf` is full or the file ends.
    ///
    /// Short reads are fine before the end of the file: the SDK calls again where this call
    /// stopped. At the end of the file call [`ReadBuf::end_of_file`]; [`ReadBuf::fill_from`],
    /// [`ReadBuf::fill_with`] and [`ReadBuf::fill_uninit`] call it themselves. The SDK then returns `OUT_OF_RANGE` with
    /// the bytes that were read, as TensorFlow requires. An offset past the end is not an error but an end of file.
    ///
    /// # Errors
    /// Any except `OUT_OF_RANGE`, which becomes `INTERNAL`, because TensorFlow would take it for the end. The bytes
    /// added before are dropped. A call that adds no byte and does not call `end_of_file` fails with `INTERNAL`, too.
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()>;
}

/// A file that is open for writing. TensorFlow uses it from one thread at a time; the SDK ensures this.
///
/// # Closing
/// TensorFlow closes files twice, flushes them after closing, and drops some without closing. The SDK
/// handles this: after a successful [`close`](Self::close) it returns OK for `flush`, `sync` and
/// `close`, and `FAILED_PRECONDITION` for `append`, without calling the file. After a failed `close`
/// the file is still open, and `close` may be called again. If TensorFlow drops a file without
/// closing it, the Rust value is dropped: `Drop` decides whether the content stays.
///
/// After a panic in one of these methods the file is broken, and each later operation on it fails
/// with `INTERNAL`, so that a gap in the data is never taken for success. The value is still dropped
/// later, so a `Drop` that publishes the content must know whether it is complete.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `WritableFile`",
    note = "write `impl WritableFile for {Self}`"
)]
pub trait WritableFile: Send + 'static {
    /// Appends all of `data`, which may be empty. TensorFlow appends in small pieces; buffer them.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no space for all of it.
    fn append(&mut self, data: &[u8]) -> Result<()>;

    /// Returns the position in bytes: 0 in a new file, then the number of bytes appended.
    ///
    /// # Errors
    /// Any.
    fn tell(&mut self) -> Result<u64>;

    /// Makes buffered bytes visible to other readers; may return before they are durable.
    ///
    /// Default: nothing happens.
    ///
    /// # Errors
    /// Any.
    fn flush(&mut self) -> Result<()> {
        writer_default_note::leave::<{ writer_default_note::FLUSH }>();
        Ok(())
    }

    /// Makes everything that was appended so far durable before it returns.
    ///
    /// Default: [`flush`](Self::flush).
    ///
    /// # Errors
    /// Any.
    fn sync(&mut self) -> Result<()> {
        writer_default_note::leave::<{ writer_default_note::SYNC }>();
        self.flush()
    }

    /// Flushes and closes. After it has succeeded once, the SDK never calls it again.
    ///
    /// Default: [`flush`](Self::flush).
    ///
    /// # Errors
    /// Any; an error means that data may be missing.
    fn close(&mut self) -> Result<()> {
        writer_default_note::leave::<{ writer_default_note::CLOSE }>();
        self.flush()
    }
}

/// A file mapped into memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `ReadOnlyMemoryRegion`",
    note = "write `impl ReadOnlyMemoryRegion for {Self}`"
)]
pub trait ReadOnlyMemoryRegion: Send + Sync + 'static {
    /// Returns the content, usually `self.bytes.as_slice().into()`. The SDK calls it once, right after
    /// the region was created, and TensorFlow uses the result until the region is dropped.
    ///
    /// TensorFlow's `ImmutableConst` requires the first byte at a multiple of 64, and some consumers
    /// read one NUL after the last byte; [`AlignedRegion`](crate::AlignedRegion) ensures both.
    fn content(&self) -> RegionContent<'_>;
}

/// The type for a kind of file that a filesystem does not support, such as the writer of a
/// read-only one. It has no values.
#[derive(Clone, Copy, Debug)]
pub enum Unsupported {}

impl RandomAccessFile for Unsupported {
    fn read_at(&self, _: u64, _: &mut ReadBuf<'_>) -> Result<()> {
        match *self {}
    }
}

impl WritableFile for Unsupported {
    fn append(&mut self, _: &[u8]) -> Result<()> {
        match *self {}
    }

    fn tell(&mut self) -> Result<u64> {
        match *self {}
    }

    // Written out: each default leaves a note in the library that says that a writer lacks the method.
    fn flush(&mut self) -> Result<()> {
        match *self {}
    }

    fn sync(&mut self) -> Result<()> {
        match *self {}
    }

    fn close(&mut self) -> Result<()> {
        match *self {}
    }
}

impl ReadOnlyMemoryRegion for Unsupported {
    fn content(&self) -> RegionContent<'_> {
        match *self {}
    }
}

/// A region in the heap, aligned to 64 bytes and with one NUL after its last byte.
#[derive(Debug)]
pub struct AlignedRegion {
    /// Larger than the content, so that it contains an aligned start. It never grows, so it does not move.
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedRegion {
    /// The alignment in bytes that TensorFlow's kernels require.
    pub const ALIGNMENT: usize = 64;

    /// Reads `len` bytes from the start of a file into memory.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough memory, `DATA_LOSS` if the file ends before
    /// `len`, and any error of [`read_at`](RandomAccessFile::read_at).
    pub fn read(file: &impl RandomAccessFile, len: u64) -> Result<Self> {
        let too_large = || Error::resource_exhausted(format_args!("no memory to map {len} bytes"));
        let len = usize::try_from(len).map_err(|_| too_large())?;
        let capacity = len.checked_add(Self::ALIGNMENT + 1).ok_or_else(too_large)?;
        let mut buffer = Vec::<u8>::new();
        buffer.try_reserve_exact(capacity).map_err(|_| too_large())?;
        let start = buffer.as_ptr().align_offset(Self::ALIGNMENT);
        buffer.resize(start, 0);
        // Uses memory only as data arrives, so that a `len` that is too large costs none.
        while buffer.len() < start + len {
            let read = buffer.len() - start;
            buffer.resize(start + len.min(read + Self::CHUNK), 0);
            let mut target = ReadBuf::from_slice(&mut buffer[start + read..]);
            target.read_exact_or_end(file, read as u64)?;
            let read = read + target.filled().len();
            ensure!(
                target.remaining() == 0,
                Error::data_loss(format_args!(
                    "the file ended after {read} of {len} bytes; it changed while it was mapped"
                ))
            );
        }
        buffer.resize(capacity, 0);
        Ok(Self { buffer, start, len })
    }

    /// The number of bytes that are read at a time.
    const CHUNK: usize = 1 << 20;

    /// Returns the content.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl ReadOnlyMemoryRegion for AlignedRegion {
    fn content(&self) -> RegionContent<'_> {
        self.as_bytes().into()
    }
}

// With these a filesystem can choose a type of file at run time, and share files.

impl<T: RandomAccessFile + ?Sized> RandomAccessFile for Box<T> {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        (**self).read_at(offset, buf)
    }
}

impl<T: RandomAccessFile + ?Sized> RandomAccessFile for Arc<T> {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        (**self).read_at(offset, buf)
    }
}

impl<T: WritableFile + ?Sized> WritableFile for Box<T> {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        (**self).append(data)
    }

    fn tell(&mut self) -> Result<u64> {
        (**self).tell()
    }

    fn flush(&mut self) -> Result<()> {
        (**self).flush()
    }

    fn sync(&mut self) -> Result<()> {
        (**self).sync()
    }

    fn close(&mut self) -> Result<()> {
        (**self).close()
    }
}

impl<T: ReadOnlyMemoryRegion + ?Sized> ReadOnlyMemoryRegion for Box<T> {
    fn content(&self) -> RegionContent<'_> {
        (**self).content()
    }
}

impl<T: ReadOnlyMemoryRegion + ?Sized> ReadOnlyMemoryRegion for Arc<T> {
    fn content(&self) -> RegionContent<'_> {
        (**self).content()
    }
}
