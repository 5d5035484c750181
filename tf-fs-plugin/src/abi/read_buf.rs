//! The buffer of a read.

use crate::file::RandomAccessFile;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;
use tf_plugin_core::{Code, Error, Result};

/// TensorFlow's buffer for one read, to be filled from its start.
///
/// TensorFlow passes uninitialised memory and trusts the length that the plugin returns. This type
/// knows how much was filled: no byte after that can be read, no byte after the end of the buffer
/// can be written, and the SDK reports exactly what is in it.
///
/// ```
/// use tf_fs_plugin::ReadBuf;
///
/// let mut memory = [0; 8];
/// let mut buf = ReadBuf::from_slice(&mut memory);
/// buf.fill_from(b"the content of a file", 4);
/// assert_eq!(buf.filled(), b"content ");
/// ```
pub struct ReadBuf<'a> {
    /// The first `filled` bytes are initialised.
    bytes: &'a mut [MaybeUninit<u8>],
    filled: usize,
    /// The first `initialised` bytes are initialised, filled or not: at least `filled`.
    initialised: usize,
    at_end: bool,
    /// Whether all of `bytes` was initialised when it was borrowed, and has to be so in the end.
    was_initialised: bool,
}

impl<'a> ReadBuf<'a> {
    /// Creates a buffer in your own memory, for calling [`RandomAccessFile::read_at`] without TensorFlow.
    pub fn from_slice(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        // SAFETY: same layout. The slice must be initialised again when the borrow ends: all writes
        // through `bytes` are of initialised bytes, except in `fill_uninit`, which repairs them.
        let bytes = unsafe { core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) };
        Self { bytes, filled: 0, initialised: len, at_end: false, was_initialised: true }
    }

    /// Creates a buffer in the host's memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if `buffer` is null but `n` is not 0, or if `n` is larger than any object.
    ///
    /// # Safety
    /// Unless it is null, `buffer` must be valid for writes of `n` bytes for `'a`, and nothing else
    /// may use them.
    #[inline]
    pub(super) unsafe fn from_host(buffer: *mut u8, n: usize) -> Result<Self> {
        let bytes: &mut [MaybeUninit<u8>] = if n == 0 {
            &mut []
        } else if buffer.is_null() || isize::try_from(n).is_err() {
            return Err(bad_buffer(n));
        } else {
            // SAFETY: `buffer` is not null, `n` is at most `isize::MAX`, and `n` bytes there are writable and
            // used by nothing else for `'a`; `MaybeUninit` needs no initialisation.
            unsafe { core::slice::from_raw_parts_mut(buffer.cast(), n) }
        };
        Ok(Self { bytes, filled: 0, initialised: 0, at_end: false, was_initialised: false })
    }

    /// Returns the bytes that were filled so far.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        // SAFETY: the first `filled` bytes are initialised.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.filled) }
    }

    /// Returns how many bytes still fit.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Adds as many bytes of `data` as fit, and returns their number.
    #[inline]
    #[must_use = "less than all of `data` is added where it does not fit"]
    pub fn push_slice(&mut self, data: &[u8]) -> usize {
        let n = data.len().min(self.remaining());
        // SAFETY: `n` is at most the length of `data` and of the rest of `bytes`, which is borrowed
        // mutably and so does not overlap `data`.
        unsafe {
            ptr::copy_nonoverlapping(
                data.as_ptr(),
                self.bytes.as_mut_ptr().add(self.filled).cast(),
                n,
            );
        }
        self.filled += n;
        self.initialised = self.initialised.max(self.filled);
        n
    }

    /// Adds the bytes of `content`, a whole file, from `offset`. Calls
    /// [`end_of_file`](Self::end_of_file) if `content` ends before the buffer is full.
    #[inline]
    pub fn fill_from(&mut self, content: &[u8], offset: u64) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let rest = &content[start..];
        if self.push_slice(rest) == rest.len() && self.remaining() > 0 {
            self.end_of_file();
        }
    }

    /// Lets `fill` write to the rest of the buffer, which is zeroed first, and adds as many bytes as
    /// it returns. Calls [`end_of_file`](Self::end_of_file) if that is 0, which is how [`Read`](std::io::Read) and
    /// `FileExt::read_at` report the end.
    ///
    /// ```
    /// use std::fs::File;
    /// use std::os::unix::fs::FileExt;
    /// use tf_fs_plugin::{RandomAccessFile, ReadBuf, Result};
    ///
    /// struct Disk(File);
    ///
    /// impl RandomAccessFile for Disk {
    ///     fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
    ///         buf.fill_with(|rest| self.0.read_at(rest, offset))?;
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of `fill`, and `INTERNAL` if it claims more bytes than it got.
    pub fn fill_with<E: Into<Error>>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize> {
        // Zeroes the whole rest at once, so that a buffer filled in small pieces is zeroed only once.
        self.bytes[self.initialised..].fill(MaybeUninit::new(0));
        self.initialised = self.bytes.len();
        let rest = &mut self.bytes[self.filled..];
        // SAFETY: all of `bytes` is initialised.
        let rest = unsafe { core::slice::from_raw_parts_mut(rest.as_mut_ptr().cast(), rest.len()) };
        let room = rest.len();
        let n = fill(rest).map_err(Into::into)?;
        if n > room {
            return Err(too_much(n, room));
        }
        self.filled += n;
        self.at_end |= n == 0 && room > 0;
        Ok(n)
    }

    /// Lets `fill` write to the rest of the buffer without zeroing it, and adds the part that it
    /// returns: the initialised beginning of what it got. For functions such as `rustix::io::pread`
    /// that fill uninitialised memory. Calls [`end_of_file`](Self::end_of_file) if that part is empty.
    ///
    /// # Errors
    /// Those of `fill`, and `INTERNAL` if what it returns is not the beginning of what it got.
    pub fn fill_uninit<E: Into<Error>>(
        &mut self,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<&mut [u8], E>,
    ) -> Result<usize> {
        /// Zeroes the rest of memory that its owner regards as initialised, also if `fill` panics.
        struct Repair<'r>(&'r mut [MaybeUninit<u8>], bool);
        impl Drop for Repair<'_> {
            fn drop(&mut self) {
                if self.1 {
                    self.0.fill(MaybeUninit::new(0));
                }
            }
        }

        if !self.was_initialised {
            // `fill` may make this memory uninitialised again.
            self.initialised = self.filled;
        }
        let mut rest = Repair(&mut self.bytes[self.filled..], self.was_initialised);
        let (start, room) = (rest.0.as_ptr().cast::<u8>(), rest.0.len());
        let part = fill(&mut *rest.0).map_err(Into::into)?;
        let n = part.len();
        // A `&mut [u8]` that begins where the borrowed rest begins lies in it, since nothing else can
        // refer to that memory now; and it is initialised, or it would not be a `&mut [u8]`.
        if n > 0 && part.as_ptr() != start || n > room {
            return Err(too_much(n, room));
        }
        rest.0 = &mut core::mem::take(&mut rest.0)[n..];
        drop(rest);
        self.filled += n;
        self.initialised = self.initialised.max(self.filled);
        self.at_end |= n == 0 && room > 0;
        Ok(n)
    }

    /// Splits the start of the rest into parts of these lengths and passes them to `fill`, which
    /// may fill them on several threads. Then adds their bytes in order, up to and
    /// including the first part that is not full or noted the end of the file, which then counts. `fill`
    /// may leave a part short without an end: the SDK then calls
    /// [`read_at`](RandomAccessFile::read_at) again for the rest.
    ///
    /// ```
    /// use tf_fs_plugin::ReadBuf;
    ///
    /// let mut memory = [0; 8];
    /// let mut buf = ReadBuf::from_slice(&mut memory);
    /// buf.fill_parts(&[3, 3], |parts| {
    ///     std::thread::scope(|threads| {
    ///         for (part, data) in parts.iter_mut().zip([b"abc", b"def"]) {
    ///             threads.spawn(move || part.push_slice(data));
    ///         }
    ///     });
    /// })?;
    /// assert_eq!(buf.filled(), b"abcdef");
    /// # Ok::<(), tf_fs_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INTERNAL` if the parts are longer than the rest, or if `fill` replaced one of them with
    /// another buffer.
    pub fn fill_parts<R>(
        &mut self,
        lens: &[usize],
        fill: impl FnOnce(&mut [ReadBuf<'_>]) -> R,
    ) -> Result<R> {
        let total = lens.iter().try_fold(0, |sum: usize, &len| sum.checked_add(len));
        if total.is_none_or(|total| total > self.remaining()) {
            return Err(too_long_parts(lens.len(), self.remaining()));
        }
        let mut initialised = self.initialised - self.filled;
        if !self.was_initialised {
            // `fill` may make the parts uninitialised again, and then panic.
            self.initialised = self.filled;
        }
        let mut rest = &mut self.bytes[self.filled..];
        let mut places = Vec::with_capacity(lens.len());
        let mut parts = Vec::with_capacity(lens.len());
        for &len in lens {
            let (bytes, after) = rest.split_at_mut(len);
            rest = after;
            places.push(ptr::from_ref::<[_]>(bytes));
            parts.push(ReadBuf {
                bytes,
                filled: 0,
                initialised: initialised.min(len),
                at_end: false,
                was_initialised: self.was_initialised,
            });
            initialised = initialised.saturating_sub(len);
        }
        let outcome = fill(&mut parts);
        // How much of another buffer is filled says nothing about the memory here.
        if !parts.iter().zip(&places).all(|(part, place)| ptr::eq(*place, &raw const *part.bytes)) {
            return Err(replaced());
        }
        let (mut filled, mut at_end) = (0, self.at_end);
        for part in &parts {
            filled += part.filled;
            if part.remaining() > 0 || part.at_end {
                at_end = part.at_end;
                break;
            }
        }
        drop(parts);
        self.filled += filled;
        self.initialised = self.initialised.max(self.filled);
        self.at_end = at_end;
        Ok(outcome)
    }

    /// Notes that the file ends with the bytes added so far. This is how a [`RandomAccessFile`] reports
    /// its end. The `fill` methods that can see the end call it themselves.
    pub fn end_of_file(&mut self) {
        self.at_end = true;
    }

    /// Discards the filled bytes, so that the memory can be used again.
    pub fn clear(&mut self) {
        self.filled = 0;
        self.at_end = false;
    }

    /// Reads until the buffer is full or the file ends.
    ///
    /// # Errors
    /// Those of the file, and `INTERNAL` if it
    /// - replaced this buffer with another one, whose length must not reach the host,
    /// - added nothing and noted no end, or
    /// - failed with `OUT_OF_RANGE`, which the host would take for the end of the file.
    #[inline]
    pub(crate) fn read_exact_or_end(
        &mut self,
        file: &impl RandomAccessFile,
        offset: u64,
    ) -> Result<()> {
        let memory = ptr::from_ref::<[_]>(self.bytes);
        while self.remaining() > 0 && !self.at_end {
            let before = self.filled;
            let Some(position) = offset.checked_add(before as u64) else { break };
            let outcome = file.read_at(position, self);
            if !ptr::eq(memory, &raw const *self.bytes) {
                return Err(replaced());
            }
            match outcome {
                Ok(()) => {}
                Err(error) if error.code() == Code::OutOfRange => return Err(not_an_end(error)),
                Err(error) => return Err(error),
            }
            if self.filled <= before && !self.at_end {
                return Err(no_progress(position));
            }
        }
        Ok(())
    }
}

#[cfg(feature = "bytes")]
#[cfg_attr(docsrs, doc(cfg(feature = "bytes")))]
// SAFETY: `chunk_mut` always is the rest of `bytes`, which is borrowed mutably and as long as
// `remaining_mut` says, and only `advance_mut` and the methods above change where it begins.
unsafe impl bytes::BufMut for ReadBuf<'_> {
    fn remaining_mut(&self) -> usize {
        self.remaining()
    }

    unsafe fn advance_mut(&mut self, n: usize) {
        assert!(
            n <= self.remaining(),
            "{n} bytes added to a buffer with room for {}",
            self.remaining()
        );
        // The caller promises that these `n` bytes are initialised.
        self.filled += n;
        self.initialised = self.initialised.max(self.filled);
    }

    // Safe code cannot make what it gets here uninitialised again, so `initialised` stays.
    fn chunk_mut(&mut self) -> &mut bytes::buf::UninitSlice {
        bytes::buf::UninitSlice::uninit(&mut self.bytes[self.filled..])
    }
}

impl fmt::Debug for ReadBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBuf")
            .field("filled", &self.filled)
            .field("remaining", &self.remaining())
            .field("at_end", &self.at_end)
            .finish()
    }
}

#[cold]
fn bad_buffer(n: usize) -> Error {
    Error::invalid_argument(format_args!("cannot read {n} bytes into the buffer that was passed"))
}

#[cold]
fn too_long_parts(parts: usize, room: usize) -> Error {
    Error::internal(format_args!(
        "{parts} parts do not fit into the {room} remaining bytes; call `remaining` first"
    ))
}

#[cold]
fn no_progress(position: u64) -> Error {
    Error::internal(format_args!(
        "`read_at` added no byte at {position}; call `ReadBuf::end_of_file` where the file ends"
    ))
}

#[cold]
fn not_an_end(error: Error) -> Error {
    error.with_code(Code::Internal).context(
        "`read_at` failed with OUT_OF_RANGE, which TensorFlow takes for the end of the file; call \
         `ReadBuf::end_of_file` there, or fail with another code",
    )
}

#[cold]
fn replaced() -> Error {
    Error::internal("the plugin replaced the buffer that it got; fill that one")
}

#[cold]
fn too_much(n: usize, room: usize) -> Error {
    Error::internal(format_args!(
        "the plugin says that it read {n} bytes into a buffer of {room}; return the beginning of that buffer"
    ))
}

#[cfg(test)]
mod tests;
