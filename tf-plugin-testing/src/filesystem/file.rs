//! Open files and mapped regions.

use super::abi::files::{Open, RawRead, unimplemented};
use super::abi::mounted::Mounted;
use std::fmt::Display;
use tf_fs_plugin::RegionContent;
use tf_fs_sys::{TF_RandomAccessFile, TF_ReadOnlyMemoryRegion, TF_WritableFile};
use tf_plugin_core::{Code, Error, Result};

/// A file that is open for reading. Dropping it runs `cleanup`.
#[derive(Debug)]
pub struct TestRandomAccessFile(pub(super) Open<TF_RandomAccessFile>);

impl TestRandomAccessFile {
    /// Reads up to `n` bytes from byte `offset`; fewer only if the file ended before.
    ///
    /// The plugin may be asked again, with buffers of different content: a byte that stays as each
    /// buffer was made is one that the plugin claims but never wrote.
    /// [`Host::read_once`](super::Host::read_once) turns that off, for tests that count what a read
    /// costs.
    ///
    /// # Errors
    /// That of the plugin, but not `OUT_OF_RANGE`, which only says that the file ended;
    /// [`read_with_status`](Self::read_with_status) shows it.
    pub fn read(&self, offset: u64, n: usize) -> Result<Vec<u8>> {
        match self.read_with_status(offset, n) {
            (content, Ok(())) => Ok(content),
            (content, Err(error)) if error.code() == Code::OutOfRange => Ok(content),
            (_, Err(error)) => Err(error),
        }
    }

    /// As [`read`](Self::read), with the status as it is: OK for exactly `n` bytes, `OUT_OF_RANGE` for
    /// fewer. On any other error there are no bytes.
    pub fn read_with_status(&self, offset: u64, n: usize) -> (Vec<u8>, Result<()>) {
        let first = match self.0.raw_read(offset, n, 0x5a) {
            Ok(read) => read,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let is_sound = self.judge(offset, n, &first);
        if is_sound
            && self.0.mounted.session.reads_again()
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

    /// A byte that is as the buffer was made, in each of four buffers: in one it may be a coincidence.
    fn unwritten(&self, offset: u64, n: usize, first: &RawRead) -> Option<usize> {
        let mut all = 0..first.content.len();
        if !all.clone().any(|index| first.is_untouched(index)) {
            return None;
        }
        let mut others = Vec::new();
        for seed in [0xa5, 0x33, 0xcc] {
            let other = self.0.raw_read(offset, n, seed).ok()?;
            // The buffers differ in each byte.
            if other.content == first.content {
                return None;
            }
            others.push(other);
        }
        all.find(|index| others.iter().chain([first]).all(|read| read.is_untouched(*index)))
    }

    /// Whether an answer keeps the rules.
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

    /// What the C functions of its table get. Valid until the file is dropped.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_RandomAccessFile {
        self.0.as_ptr()
    }
}

/// A file that is open for writing. A null slot is `UNIMPLEMENTED`, other errors are the plugin's. Dropping it runs
/// `cleanup`, also when it was not closed, as TensorFlow does at times.
#[derive(Debug)]
pub struct TestWritableFile(pub(super) Open<TF_WritableFile>);

impl TestWritableFile {
    /// Appends `data`; none of it comes as a null pointer.
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        self.0.raw_append(data)
    }

    /// The position in bytes.
    pub fn tell(&mut self) -> Result<u64> {
        let (result, position) = self.0.raw_tell()?;
        let mounted = &self.0.mounted;
        let position = number(mounted, "tell", &self.0.name, &result, position);
        result.map(|()| position)
    }

    /// Hands buffered bytes on; OK if the slot is null.
    pub fn flush(&mut self) -> Result<()> {
        self.0.raw_flush().unwrap_or(Ok(()))
    }

    /// Makes what was appended durable; [`flush`](Self::flush) if the slot is null.
    pub fn sync(&mut self) -> Result<()> {
        match self.0.raw_sync() {
            Some(result) => result,
            None => self.flush(),
        }
    }

    /// Closes the file. TensorFlow closes some files twice, so this may be called again.
    pub fn close(&mut self) -> Result<()> {
        self.0.raw_close().unwrap_or_else(|| Err(unimplemented("Close", &self.0.name)))
    }

    /// What the C functions of its table get. Valid until the file is dropped.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_WritableFile {
        self.0.as_ptr()
    }
}

/// A number that is -1 exactly when there is an error.
pub(super) fn number(
    mounted: &Mounted,
    op: &'static str,
    subject: &[u8],
    result: &Result<()>,
    returned: i64,
) -> u64 {
    match result {
        Ok(()) if returned < 0 => mounted.violation(
            op,
            subject,
            format!("returned {returned} with OK, which TensorFlow takes for a huge number"),
        ),
        Err(_) if returned != -1 => {
            mounted.violation(op, subject, format!("returned {returned} with an error; return -1"));
        }
        _ => {}
    }
    u64::try_from(returned).unwrap_or(0)
}

/// A file mapped into memory. Dropping it runs `cleanup`.
#[derive(Debug)]
pub struct TestReadOnlyMemoryRegion(pub(super) Open<TF_ReadOnlyMemoryRegion>);

impl TestReadOnlyMemoryRegion {
    /// Checks what a region has to be right after it was opened.
    pub(super) fn opened(open: Open<TF_ReadOnlyMemoryRegion>) -> Self {
        const OP: &str = "new_read_only_memory_region_from_file";
        let violation = |what: &str| open.mounted.violation(OP, &open.name, what);
        let (first, second) = (open.raw_content(), open.raw_content());
        if first != second {
            violation("`data` or `length` answer differently when they are asked again");
        }
        match first {
            (_, 0) => violation("mapped an empty file; it needs INVALID_ARGUMENT"),
            (data, _) if data.is_null() => violation("`data` is null"),
            _ => {}
        }
        Self(open)
    }

    /// The content. It is not a slice: that of a mapped file changes with the file, and a look at what was cut off the
    /// file ends the process with `SIGBUS`, in TensorFlow as here.
    #[must_use]
    pub fn content(&self) -> RegionContent<'_> {
        self.0.content()
    }

    /// A copy of the content, as it is now.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.content().to_vec()
    }

    /// What the C functions of its table get. Valid until the region is dropped.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_ReadOnlyMemoryRegion {
        self.0.as_ptr()
    }
}
