//! The buffer of a read.

use crate::file::RandomAccessFile;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;
use tf_plugin_core::{Code, Error, Result};

/// TensorFlow's buffer for one read, to be filled from its start.
///
/// TensorFlow passes uninitialised memory and trusts the length that the plugin returns. This type
/// knows how much was filled: nothing beyond can be read, nothing beyond its end can be written, and
/// the SDK reports exactly what is in it.
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
    /// A buffer in your own memory, for calling [`RandomAccessFile::read_at`] without TensorFlow.
    pub fn from_slice(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        // SAFETY: same layout. The slice must be initialised again when the borrow ends: all writes
        // through `bytes` are of initialised bytes, except in `fill_uninit`, which repairs them.
        let bytes = unsafe { core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) };
        Self { bytes, filled: 0, initialised: len, at_end: false, was_initialised: true }
    }

    /// A buffer of the host.
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

    /// What was filled so far.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        // SAFETY: the first `filled` bytes are initialised.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.filled) }
    }

    /// How many bytes are wanted still.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Adds as many bytes of `data` as there is room for, and returns their number.
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

    /// Adds what `content`, a whole file, has from byte `offset` on. Calls
    /// [`end_of_file`](Self::end_of_file) where `content` ends before the buffer is full.
    #[inline]
    pub fn fill_from(&mut self, content: &[u8], offset: u64) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let rest = &content[start..];
        if self.push_slice(rest) == rest.len() && self.remaining() > 0 {
            self.end_of_file();
        }
    }

    /// Lets `fill` write to the rest of the buffer, which is zeroed for it, and adds as many bytes as
    /// it says. Calls [`end_of_file`](Self::end_of_file) if that is 0, which is how [`Read`](std::io::Read) and
    /// `FileExt::read_at` tell the end.
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
        // Once for the whole buffer, however small the pieces are in which it gets filled.
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
        /// Zeroes the rest of memory that its owner takes for initialised, also if `fill` panics.
        struct Repair<'r>(&'r mut [MaybeUninit<u8>], bool);
        impl Drop for Repair<'_> {
            fn drop(&mut self) {
                if self.1 {
                    self.0.fill(MaybeUninit::new(0));
                }
            }
        }

        if !self.was_initialised {
            // What `fill` gets it may also leave uninitialised again.
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

    /// Splits the beginning of the rest into parts of these lengths, for `fill` to fill at once, also
    /// on several threads, and adds what they hold: the parts that are full, one after the other, and
    /// what the first one that is not full has. The end of the file counts if it was noted there.
    /// `fill` may leave a part short without the end: the SDK then calls
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
    /// `INTERNAL` if the parts are longer than the rest, or if `fill` put another buffer in the place
    /// of one of them.
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
            // What a part gets it may also leave uninitialised again, and `fill` may panic then.
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
        // What was filled of another buffer says nothing of the memory here.
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

    /// Notes that the file ends with what was added so far: the one way in which a
    /// [`RandomAccessFile`] tells its end. The `fill` methods that can see the end call it themselves.
    pub fn end_of_file(&mut self) {
        self.at_end = true;
    }

    /// Forgets what was filled, to use the memory again.
    pub fn clear(&mut self) {
        self.filled = 0;
        self.at_end = false;
    }

    /// Reads until the buffer is full or the file ends.
    ///
    /// # Errors
    /// Those of the file, and `INTERNAL` if it
    /// - put another buffer in the place of this one, whose length the host must not be told,
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
mod tests {
    use super::*;

    fn fill_all(part: &mut [MaybeUninit<u8>], byte: u8) -> &mut [u8] {
        part.fill(MaybeUninit::new(byte));
        // SAFETY: initialised just now.
        unsafe { core::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), part.len()) }
    }

    /// Memory that lives forever, which leak checkers can see from here.
    fn forever(len: usize) -> &'static mut [u8] {
        static KEPT: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
        let memory = Box::leak(vec![9; len].into_boxed_slice());
        KEPT.lock().unwrap().push(memory.as_ptr().expose_provenance());
        memory
    }

    #[test]
    fn nothing_is_written_past_the_end() {
        let mut memory = [7; 6];
        let mut buf = ReadBuf::from_slice(&mut memory[..4]);
        assert_eq!(buf.push_slice(b"ab"), 2);
        assert_eq!(buf.push_slice(b"cdef"), 2);
        assert_eq!(buf.push_slice(b"g"), 0);
        assert_eq!(buf.filled(), b"abcd");
        assert_eq!(memory, *b"abcd\x07\x07");
    }

    #[test]
    fn filling_from_a_whole_file_knows_its_end() {
        let mut memory = [0; 4];
        for (offset, expected, at_end) in [
            (0, &b"abcd"[..], false),
            (2, b"cdef", false),
            (4, b"ef", true),
            (6, b"", true),
            (u64::MAX, b"", true),
        ] {
            let mut buf = ReadBuf::from_slice(&mut memory);
            buf.fill_from(b"abcdef", offset);
            assert_eq!((buf.filled(), buf.at_end), (expected, at_end), "{offset}");
        }
    }

    #[test]
    fn a_claim_of_too_much_is_refused() {
        let mut memory = [0; 4];
        let mut buf = ReadBuf::from_slice(&mut memory);
        assert_eq!(buf.fill_with(|_| Ok::<_, Error>(5)).unwrap_err().code(), Code::Internal);
        assert!(buf.filled().is_empty());
        assert_eq!(buf.fill_with(|rest| Ok::<_, Error>(rest.len())).unwrap(), 4);
        assert_eq!(buf.filled(), [0; 4]);
    }

    #[test]
    fn memory_from_elsewhere_is_refused() {
        let mut memory = [1; 4];
        let mut buf = ReadBuf::from_slice(&mut memory);
        let elsewhere = forever(4);
        let refused = buf.fill_uninit(|_| Ok::<_, Error>(elsewhere));
        assert_eq!(refused.unwrap_err().code(), Code::Internal);
        let later = buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[1..], 5)));
        assert_eq!(later.unwrap_err().code(), Code::Internal);
        assert!(buf.filled().is_empty());
        assert_eq!(memory, [0; 4], "memory that the owner takes for initialised is repaired");
    }

    #[test]
    fn an_initialised_beginning_is_taken() {
        let mut memory = [1; 4];
        let mut buf = ReadBuf::from_slice(&mut memory);
        let n = buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..3], 5))).unwrap();
        assert_eq!((n, buf.filled()), (3, &[5, 5, 5][..]));
        assert_eq!(buf.remaining(), 1);
    }

    #[test]
    fn host_buffers_may_be_null_only_when_empty() {
        // SAFETY: null pointers, which are checked for.
        unsafe {
            assert_eq!(ReadBuf::from_host(ptr::null_mut(), 0).unwrap().remaining(), 0);
            assert_eq!(
                ReadBuf::from_host(ptr::null_mut(), 1).unwrap_err().code(),
                Code::InvalidArgument
            );
            let huge = ReadBuf::from_host(ptr::dangling_mut(), usize::MAX);
            assert_eq!(huge.unwrap_err().code(), Code::InvalidArgument);
        }
    }

    /// Gives one byte a call, and none past its length.
    struct Slow(Vec<u8>);
    impl RandomAccessFile for Slow {
        fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
            match self.0.get(usize::try_from(offset).unwrap()) {
                Some(byte) => assert_eq!(buf.push_slice(&[*byte]), 1),
                None => buf.end_of_file(),
            }
            Ok(())
        }
    }

    /// Fills a buffer of its own and puts it in the place of the host's.
    struct Swapper;
    impl RandomAccessFile for Swapper {
        fn read_at(&self, _: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
            let mut other = ReadBuf::from_slice(forever(64));
            assert_eq!(other.push_slice(&[7; 64]), 64);
            *buf = other;
            Ok(())
        }
    }

    /// Adds nothing, and fails with this code if there is one.
    struct Silent(Option<Code>);
    impl RandomAccessFile for Silent {
        fn read_at(&self, _: u64, _: &mut ReadBuf<'_>) -> Result<()> {
            self.0.map_or(Ok(()), |code| Err(Error::new(code, "past the end")))
        }
    }

    #[test]
    fn only_a_noted_end_is_the_end_of_the_file() {
        for (code, text) in [(None, "added no byte at 3"), (Some(Code::OutOfRange), "past the end")]
        {
            let mut memory = [0; 4];
            let mut buf = ReadBuf::from_slice(&mut memory);
            let error = buf.read_exact_or_end(&Silent(code), 3).unwrap_err();
            assert_eq!(error.code(), Code::Internal, "{error:#}");
            let shown = format!("{error:#}");
            assert!(shown.contains(text) && shown.contains("`ReadBuf::end_of_file`"), "{shown}");
        }
        let mut memory = [0; 4];
        for n in [0, 4] {
            let mut buf = ReadBuf::from_slice(&mut memory);
            buf.fill_with(|_| Ok::<_, Error>(n)).unwrap();
            assert_eq!(buf.at_end, n == 0);
            let mut buf = ReadBuf::from_slice(&mut memory);
            buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..n], 5))).unwrap();
            assert_eq!(buf.at_end, n == 0);
            // No room is not an end.
            let mut buf = ReadBuf::from_slice(&mut []);
            buf.fill_with(|_| Ok::<_, Error>(0)).unwrap();
            assert!(!buf.at_end);
        }
    }

    #[test]
    fn another_buffer_is_not_taken_for_the_hosts() {
        let mut memory = [0; 16];
        let error = ReadBuf::from_slice(&mut memory).read_exact_or_end(&Swapper, 0).unwrap_err();
        assert_eq!(error.code(), Code::Internal);
    }

    #[test]
    fn many_small_pieces_zero_the_buffer_once() {
        let mut memory = vec![MaybeUninit::<u8>::uninit(); 64];
        // SAFETY: the memory is only used through the buffer.
        let mut buf = unsafe { ReadBuf::from_host(memory.as_mut_ptr().cast(), 64) }.unwrap();
        buf.fill_with(|rest| {
            rest[10] = 9;
            Ok::<_, Error>(1)
        })
        .unwrap();
        // The second piece sees what the first left behind, so nothing was zeroed in between.
        buf.fill_with(|rest| Ok::<_, Error>(usize::from(rest[9] == 9))).unwrap();
        assert_eq!(buf.filled(), [0, 0]);
        buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..1], 5))).unwrap();
        // After uninitialised memory was lent out, all of the rest is zeroed again.
        buf.fill_with(|rest| {
            assert_eq!(rest, [0; 61]);
            Ok::<_, Error>(0)
        })
        .unwrap();
    }

    /// An uninitialised buffer of 12 bytes, as the host's is.
    fn with_host_memory(test: impl FnOnce(&mut ReadBuf<'_>)) {
        let mut memory = vec![MaybeUninit::<u8>::uninit(); 12];
        // SAFETY: the memory is only used through the buffer.
        test(&mut unsafe { ReadBuf::from_host(memory.as_mut_ptr().cast(), 12) }.unwrap());
    }

    #[test]
    fn parts_are_filled_at_once_and_count_as_far_as_they_are_full() {
        for (fills, expected) in [
            (["abc", "def", "ghi"], &b"!abcdefghi"[..]),
            (["abc", "de", "ghi"], b"!abcde"),
            (["", "def", "ghi"], b"!"),
            (["abc", "def", ""], b"!abcdef"),
        ] {
            with_host_memory(|buf| {
                assert_eq!(buf.push_slice(b"!"), 1);
                buf.fill_parts(&[3; 3], |parts| {
                    std::thread::scope(|threads| {
                        for (part, data) in parts.iter_mut().zip(fills).rev() {
                            threads.spawn(move || part.push_slice(data.as_bytes()));
                        }
                    });
                })
                .unwrap();
                assert_eq!(buf.filled(), expected);
                assert!(!buf.at_end);
                // What comes next goes where the prefix ends, and is zeroed first where it has to be.
                buf.fill_with(|rest| {
                    assert_eq!(rest.len(), 12 - expected.len());
                    Ok::<_, Error>(rest.len())
                })
                .unwrap();
                assert_eq!(buf.filled().len(), 12);
            });
        }
    }

    #[test]
    fn the_end_of_the_file_counts_where_the_parts_end() {
        for (end_in, expected) in [(0, true), (1, false)] {
            with_host_memory(|buf| {
                buf.fill_parts(&[3; 2], |parts| {
                    assert_eq!(parts[0].push_slice(b"ab"), 2);
                    parts[end_in].end_of_file();
                })
                .unwrap();
                assert_eq!((buf.filled(), buf.at_end), (&b"ab"[..], expected));
            });
        }
    }

    #[test]
    fn parts_know_what_is_initialised() {
        with_host_memory(|buf| {
            buf.fill_with(|rest| {
                rest.fill(7);
                Ok::<_, Error>(2)
            })
            .unwrap();
            buf.fill_parts(&[4, 4], |parts| {
                // Zeroed once already, and not again.
                parts[0].fill_with(|rest| Ok::<_, Error>(usize::from(rest == [7; 4]) * 4)).unwrap();
                parts[1].fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..1], 5))).unwrap();
            })
            .unwrap();
            assert_eq!(buf.filled(), [7, 7, 7, 7, 7, 7, 5]);
            buf.fill_with(|rest| {
                assert_eq!(
                    rest, [0; 5],
                    "memory that a part may have left uninitialised is zeroed"
                );
                Ok::<_, Error>(0)
            })
            .unwrap();
        });
    }

    #[test]
    fn parts_that_are_too_long_are_refused() {
        let mut memory = [0; 4];
        let mut buf = ReadBuf::from_slice(&mut memory);
        for lens in [&[3, 2][..], &[5], &[usize::MAX, 2]] {
            let refused = buf.fill_parts(lens, |_| panic!("called"));
            assert_eq!(refused.unwrap_err().code(), Code::Internal);
        }
        buf.fill_parts(&[], |parts| assert!(parts.is_empty())).unwrap();
    }

    #[test]
    fn parts_that_changed_places_are_not_taken() {
        with_host_memory(|buf| {
            let swapped = buf.fill_parts(&[3, 3], |parts| {
                assert_eq!(parts[0].push_slice(b"abc"), 3);
                parts.swap(0, 1);
            });
            assert_eq!(swapped.unwrap_err().code(), Code::Internal);
            let elsewhere = buf.fill_parts(&[3], |parts| {
                parts[0] = ReadBuf::from_slice(forever(3));
                assert_eq!(parts[0].push_slice(b"abc"), 3);
            });
            assert_eq!(elsewhere.unwrap_err().code(), Code::Internal);
            assert!(buf.filled().is_empty());
        });
    }

    #[test]
    fn memory_stays_initialised_when_filling_a_part_panics() {
        let mut memory = [1; 4];
        let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            ReadBuf::from_slice(&mut memory).fill_parts(&[2, 2], |parts| {
                let _ = parts[1].fill_uninit(|rest| {
                    rest.fill(MaybeUninit::uninit());
                    if rest.len() == 2 {
                        panic!("half-way");
                    }
                    Ok::<_, Error>(&mut [])
                });
            })
        }));
        assert!(caught.is_err());
        assert_eq!(memory, [1, 1, 0, 0]);
    }

    #[cfg(feature = "bytes")]
    #[test]
    fn other_crates_add_to_it_without_zeroing() {
        use bytes::BufMut;

        with_host_memory(|buf| {
            buf.put_u8(1);
            assert_eq!((buf.remaining_mut(), buf.chunk_mut().len()), (11, 11));
            buf.chunk_mut()[..2].copy_from_slice(b"ab");
            // SAFETY: written just now.
            unsafe { buf.advance_mut(2) };
            assert_eq!(buf.filled(), b"\x01ab");
            let mut limited = buf.limit(3);
            limited.put_slice(b"cde");
            assert!(!limited.has_remaining_mut());
        });
    }

    #[cfg(feature = "bytes")]
    #[test]
    #[should_panic(expected = "13 bytes added to a buffer with room for 12")]
    fn other_crates_cannot_add_past_the_end() {
        // SAFETY: refused before anything is taken for initialised.
        with_host_memory(|buf| unsafe { bytes::BufMut::advance_mut(buf, 13) });
    }

    #[test]
    fn short_reads_are_not_taken_for_the_end() {
        let file = Slow(b"abcdef".to_vec());
        let mut memory = [0; 4];
        let mut buf = ReadBuf::from_slice(&mut memory);
        buf.read_exact_or_end(&file, 1).unwrap();
        assert_eq!(buf.filled(), b"bcde");
        buf.clear();
        buf.read_exact_or_end(&file, 4).unwrap();
        assert_eq!(buf.filled(), b"ef");
    }
}
