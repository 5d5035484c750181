//! Open files and mapped regions.

use super::memory::{Buffer, is_as_made};
use super::mounted::Mounted;
use super::open::{Open, unimplemented};
use core::ptr;
use core::sync::atomic::Ordering;
use std::fmt::Display;
use tf_fs_plugin::RegionContent;
use tf_fs_sys::{
    TF_RandomAccessFile, TF_ReadOnlyMemoryRegion, TF_Status, TF_WritableFile, TF_WritableFileOps,
};
use tf_plugin_core::{Code, Error, Result};

/// The result of one `read`.
struct RawRead {
    result: Result<()>,
    returned: i64,
    margins_are_intact: bool,
    /// The bytes that the plugin claims to have read, at most as many as were requested.
    content: Vec<u8>,
    seed: u8,
}

impl RawRead {
    /// Returns whether the plugin claims this byte, and the byte is as the host initialised it.
    fn is_untouched(&self, index: usize) -> bool {
        self.content.get(index).is_some_and(|byte| is_as_made(index, *byte, self.seed))
    }
}

/// A file that is open for reading. Dropping it runs `cleanup`.
#[derive(Debug)]
pub struct TestRandomAccessFile(pub(in crate::filesystem) Open<TF_RandomAccessFile>);

impl TestRandomAccessFile {
    /// Reads up to `n` bytes from byte `offset`; fewer only if the file ended before.
    ///
    /// The host may read several times, with buffers of different content: a byte that keeps the
    /// initial value of each buffer was claimed but never written.
    /// [`Host::read_once`](crate::filesystem::Host::read_once) turns that off, for tests that count
    /// what a read costs.
    ///
    /// # Errors
    /// Returns the plugin's error, except `OUT_OF_RANGE`, which only says that the file ended;
    /// [`read_with_status`](Self::read_with_status) returns that, too.
    pub fn read(&self, offset: u64, n: usize) -> Result<Vec<u8>> {
        match self.read_with_status(offset, n) {
            (content, Ok(())) => Ok(content),
            (content, Err(error)) if error.code() == Code::OutOfRange => Ok(content),
            (_, Err(error)) => Err(error),
        }
    }

    /// Reads as [`read`](Self::read) does, and returns the status: OK for exactly `n` bytes,
    /// `OUT_OF_RANGE` for fewer. On any other error there are no bytes.
    pub fn read_with_status(&self, offset: u64, n: usize) -> (Vec<u8>, Result<()>) {
        let first = match self.read_into_pattern(offset, n, 0x5a) {
            Ok(read) => read,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let is_sound = self.judge(offset, n, &first);
        if is_sound
            && !self.0.mounted.session.read_once.load(Ordering::Relaxed)
            && let Some(index) = self.unwritten(offset, n, &first)
        {
            let claimed = first.returned;
            let what = format!(
                "claims {claimed} bytes but never wrote byte {index}; TensorFlow's buffer is uninitialised"
            );
            self.violation(offset, n, what);
        }
        (first.content, first.result)
    }

    /// Reads into a buffer that is filled with the pattern of `seed`.
    fn read_into_pattern(&self, offset: u64, n: usize, seed: u8) -> Result<RawRead> {
        let Open { mounted, name, .. } = &self.0;
        let slot = mounted.tables.random_access_file.read;
        let slot = slot.ok_or_else(|| unimplemented("Read", name))?;
        let mut buffer = Buffer::new(n, seed).ok_or_else(|| {
            let text = format!("the in-process host has no memory for a buffer of {n} bytes");
            Error::new(Code::ResourceExhausted, text)
        })?;
        let place = buffer.as_mut_ptr();
        // SAFETY: an open file of this table, a buffer of `n` bytes, null if `n` is 0, and a status.
        let (result, returned) = mounted
            .call("read", name, |status| unsafe { slot(self.as_ptr(), offset, n, place, status) });
        let claimed = usize::try_from(returned).unwrap_or(0).min(n);
        Ok(RawRead {
            result,
            returned,
            margins_are_intact: buffer.margins_are_intact(),
            content: buffer.content(claimed).to_vec(),
            seed,
        })
    }

    /// Finds a byte that was not written to any of four buffers; in one buffer it may have its initial value by chance.
    fn unwritten(&self, offset: u64, n: usize, first: &RawRead) -> Option<usize> {
        let mut all = 0..first.content.len();
        if !all.clone().any(|index| first.is_untouched(index)) {
            return None;
        }
        let mut others = Vec::new();
        for seed in [0xa5, 0x33, 0xcc] {
            let other = self.read_into_pattern(offset, n, seed).ok()?;
            // The buffers differ in each byte.
            if other.content == first.content {
                return None;
            }
            others.push(other);
        }
        all.find(|index| others.iter().chain([first]).all(|read| read.is_untouched(*index)))
    }

    /// Returns whether a result follows the rules.
    fn judge(&self, offset: u64, n: usize, read: &RawRead) -> bool {
        let returned = read.returned;
        let claimed = usize::try_from(returned).ok();
        let is_all = claimed == Some(n);
        let answer = match read.result.as_ref().map_err(Error::code) {
            _ if claimed.is_some_and(|claimed| claimed > n) => {
                Some("TensorFlow would read past its own buffer")
            }
            Ok(()) if claimed.is_none() => {
                Some("with OK, which TensorFlow takes for an empty success")
            }
            Ok(()) if !is_all => Some("with OK; a file that ended needs OUT_OF_RANGE"),
            Err(Code::OutOfRange) if is_all => {
                Some("with OUT_OF_RANGE but all bytes, which TensorFlow takes for a failure")
            }
            Err(Code::OutOfRange) if claimed.is_none() => {
                Some("with OUT_OF_RANGE; return the number of bytes read")
            }
            Err(code) if code != Code::OutOfRange && returned != -1 => {
                Some("with an error; return -1")
            }
            _ => None,
        };
        if let Some(what) = answer {
            self.violation(offset, n, format_args!("returned {returned}: {what}"));
        }
        if !read.margins_are_intact {
            self.violation(offset, n, "wrote outside of the buffer");
        }
        answer.is_none() && read.margins_are_intact
    }

    fn violation(&self, offset: u64, n: usize, what: impl Display) {
        let what = format!("{what} (offset {offset}, n {n})");
        self.0.mounted.violation("read", &self.0.name, what);
    }

    /// Returns the pointer that the C functions of its table get. It is valid until the file is dropped.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_RandomAccessFile {
        self.0.as_ptr()
    }
}

/// A file that is open for writing. A null slot is `UNIMPLEMENTED`, except for `flush` and `sync`; other errors are the
/// plugin's. Dropping the file runs `cleanup`, even if it was not closed, as TensorFlow sometimes does.
#[derive(Debug)]
pub struct TestWritableFile(pub(in crate::filesystem) Open<TF_WritableFile>);

impl TestWritableFile {
    fn table(&self) -> &TF_WritableFileOps {
        &self.0.mounted.tables.writable_file
    }

    fn call<R>(&self, op: &'static str, call: impl FnOnce(*mut TF_Status) -> R) -> (Result<()>, R) {
        self.0.mounted.call(op, &self.0.name, call)
    }

    /// Appends `data`; empty data is passed as a null pointer.
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        let slot = self.table().append.ok_or_else(|| unimplemented("Append", &self.0.name))?;
        // A copy of exactly its size, gone after the call; null if there is none, as TensorFlow passes
        // it at the end of a copy.
        let copy: Box<[u8]> = data.into();
        let start = if copy.is_empty() { ptr::null() } else { copy.as_ptr().cast() };
        // SAFETY: an open file of this table, `len` bytes and a status.
        self.call("append", |status| unsafe { slot(self.as_ptr(), start, copy.len(), status) }).0
    }

    /// Returns the position in bytes.
    pub fn tell(&mut self) -> Result<u64> {
        let slot = self.table().tell.ok_or_else(|| unimplemented("Tell", &self.0.name))?;
        // SAFETY: an open file of this table and a status.
        let (result, position) = self.call("tell", |status| unsafe { slot(self.as_ptr(), status) });
        let position =
            number(&self.0.mounted, "tell", &self.0.name, &result, position, "a huge number");
        result.map(|()| position)
    }

    /// Passes buffered bytes on; returns OK if the slot is null.
    pub fn flush(&mut self) -> Result<()> {
        let Some(slot) = self.table().flush else { return Ok(()) };
        // SAFETY: an open file of this table and a status.
        self.call("flush", |status| unsafe { slot(self.as_ptr(), status) }).0
    }

    /// Makes the appended bytes durable; calls [`flush`](Self::flush) if the slot is null.
    pub fn sync(&mut self) -> Result<()> {
        let Some(slot) = self.table().sync else { return self.flush() };
        // SAFETY: an open file of this table and a status.
        self.call("sync", |status| unsafe { slot(self.as_ptr(), status) }).0
    }

    /// Closes the file. TensorFlow closes some files twice, so this may be called again.
    pub fn close(&mut self) -> Result<()> {
        let slot = self.table().close.ok_or_else(|| unimplemented("Close", &self.0.name))?;
        // SAFETY: an open file of this table and a status.
        self.call("close", |status| unsafe { slot(self.as_ptr(), status) }).0
    }

    /// Returns the pointer that the C functions of its table get. It is valid until the file is dropped.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_WritableFile {
        self.0.as_ptr()
    }
}

/// Checks that a number is -1 exactly if there is an error. TensorFlow takes a negative one with OK for `taken_for`.
pub(super) fn number(
    mounted: &Mounted,
    op: &'static str,
    subject: &[u8],
    result: &Result<()>,
    returned: i64,
    taken_for: &str,
) -> u64 {
    let what = match result {
        Ok(()) if returned < 0 => format!("OK, which TensorFlow takes for {taken_for}"),
        Err(_) if returned != -1 => String::from("an error; return -1"),
        _ => return u64::try_from(returned).unwrap_or(0),
    };
    mounted.violation(op, subject, format!("returned {returned} with {what}"));
    u64::try_from(returned).unwrap_or(0)
}

/// A file mapped into memory. Dropping it runs `cleanup`.
#[derive(Debug)]
pub struct TestReadOnlyMemoryRegion(pub(in crate::filesystem) Open<TF_ReadOnlyMemoryRegion>);

impl TestReadOnlyMemoryRegion {
    /// Checks a region right after it was opened.
    pub(in crate::filesystem) fn opened(open: Open<TF_ReadOnlyMemoryRegion>) -> Self {
        const OP: &str = "new_read_only_memory_region_from_file";
        let opened = Self(open);
        let violation = |what: &str| opened.0.mounted.violation(OP, &opened.0.name, what);
        let (first, second) = (opened.raw_content(), opened.raw_content());
        if first != second {
            violation("`data` or `length` answer differently when they are asked again");
        }
        match first {
            (_, 0) => violation("mapped an empty file; it needs INVALID_ARGUMENT"),
            (data, _) if data.is_null() => violation("`data` is null"),
            _ => {}
        }
        opened
    }

    /// Returns what `data` and `length` return now.
    fn raw_content(&self) -> (*const u8, u64) {
        let table = &self.0.mounted.tables.read_only_memory_region;
        // SAFETY: an open region of this table.
        unsafe {
            (
                table.data.map_or(ptr::null(), |data| data(self.as_ptr())).cast(),
                table.length.map_or(0, |length| length(self.as_ptr())),
            )
        }
    }

    /// Returns the content, which is empty if the plugin provides none. It is not a slice: a mapped file can change,
    /// and reading a part that was cut off ends the process with `SIGBUS`, in TensorFlow as here.
    #[must_use]
    pub fn content(&self) -> RegionContent<'_> {
        let (data, length) = self.raw_content();
        match usize::try_from(length) {
            Ok(length) if !data.is_null() && isize::try_from(length).is_ok() => {
                // SAFETY: the header promises `length` readable bytes until `cleanup`, which runs when `self` is
                // dropped; they may change.
                unsafe { RegionContent::shared(data, length) }
            }
            _ => RegionContent::from(&[][..]),
        }
    }

    /// Copies the content, as it is now.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.content().to_vec()
    }

    /// Returns the pointer that the C functions of its table get. It is valid until the region is dropped.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_ReadOnlyMemoryRegion {
        self.0.as_ptr()
    }
}
