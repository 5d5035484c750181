//! A file mapped into memory by the kernel.

use super::region_content::RegionContent;
use crate::file::ReadOnlyMemoryRegion;
use core::ffi::c_int;
use core::ptr::NonNull;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use tf_plugin_core::{Error, Result};

/// A region that the kernel fills from a file, page by page, as TensorFlow reads it. Only the end
/// of the file, if it does not fill a page, is copied.
///
/// The first byte is at the start of a page, and so at a multiple of 64. A NUL follows the last
/// byte for every length, also when the file grows later.
///
/// # A file that changes
/// The region shows the file, not a snapshot of it. As with every mapping,
/// - bytes that someone overwrites later may change in the region;
/// - if someone **truncates the file, TensorFlow's next read behind the new end kills the process**
///   (`SIGBUS`); only files shorter than a page are safe from that.
///
/// Replacing a file by renaming another onto it does neither, nor does deleting it: the region keeps
/// the old content. Where files are rewritten in place while they are mapped, use
/// [`AlignedRegion`](crate::AlignedRegion), which is a copy.
///
/// Because the content may change, there is no slice of it: it is meant for TensorFlow, which reads it
/// as C++ does.
///
/// ```
/// use tf_fs_plugin::{MappedRegion, ReadOnlyMemoryRegion};
/// # let path = std::env::temp_dir().join(format!("mapped-region-{}", std::process::id()));
/// # std::fs::write(&path, "content")?;
///
/// let region = MappedRegion::new(&std::fs::File::open(&path)?)?;
/// assert_eq!(region.content().to_vec(), b"content");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), tf_fs_plugin::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedRegion {
    /// The start of `mapped` bytes that this value owns, of which the first `len` are the file.
    start: NonNull<u8>,
    mapped: usize,
    len: usize,
}

// SAFETY: the mapping is owned memory that is only read; it is not bound to a thread.
unsafe impl Send for MappedRegion {}
// SAFETY: a shared reference only reads the mapping, and nothing writes to it.
unsafe impl Sync for MappedRegion {}

impl MappedRegion {
    /// Maps all of a file that is open for reading. The file may be closed afterwards.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an empty file; `RESOURCE_EXHAUSTED` if there is no address space;
    /// `DATA_LOSS` if the file gets shorter meanwhile; and the system's error for something that
    /// cannot be mapped, such as a directory or a device.
    pub fn new(file: &File) -> Result<Self> {
        let len = file.metadata()?.len();
        if len == 0 {
            return Err(Error::invalid_argument("an empty file cannot be mapped into memory"));
        }
        let too_large =
            || Error::resource_exhausted(format_args!("no address space to map {len} bytes"));
        let len = usize::try_from(len).map_err(|_| too_large())?;
        let page = page_size();
        // Whole pages come from the file. The last page is anonymous memory, even if it only holds
        // the NUL: the bytes after the end of a file in its last page need not stay zero, and a
        // file that ends at the end of a page has no byte after it.
        let from_file = len - len % page;
        let mapped = from_file.checked_add(page).ok_or_else(too_large)?;
        let (private, read) = (libc::MAP_PRIVATE, libc::PROT_READ);
        let (anonymous, write) = (private | libc::MAP_ANONYMOUS, read | libc::PROT_WRITE);
        let (file_flags, fd) =
            if from_file > 0 { (private, file.as_raw_fd()) } else { (anonymous, -1) };
        // SAFETY: a new mapping at an address that the kernel chooses. Its last page may lie behind the
        // end of the file, and is replaced below.
        let start = unsafe { map(core::ptr::null_mut(), mapped, read, file_flags, fd) }?;
        let region = Self { start, mapped, len };
        // SAFETY: replaces the last page of the mapping above, which nothing else knows yet. Should
        // the kernel refuse, all of the range is still this value's to unmap: it is anonymous memory
        // that is mapped here, which the kernel refuses before it removes what was there.
        unsafe {
            let last = start.as_ptr().add(from_file).cast();
            map(last, page, write, anonymous | libc::MAP_FIXED, -1)?;
        }
        // SAFETY: inside the mapping, since `len - from_file` is less than a page; anonymous, so
        // zeroed and writable; nothing else refers to it.
        let tail = unsafe {
            core::slice::from_raw_parts_mut(start.as_ptr().add(from_file), len - from_file)
        };
        file.read_exact_at(tail, from_file as u64).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::data_loss("the file got shorter while it was mapped")
            }
            _ => error.into(),
        })?;
        // SAFETY: the last page of the mapping, which was written to for the last time above.
        let protected =
            unsafe { libc::mprotect(start.as_ptr().add(from_file).cast(), page, libc::PROT_READ) };
        if protected != 0 {
            return Err(io::Error::last_os_error().into());
        }
        Ok(region)
    }
}

impl ReadOnlyMemoryRegion for MappedRegion {
    fn content(&self) -> RegionContent<'_> {
        // SAFETY: `len` bytes of the mapping, which stay until `self` is dropped.
        unsafe { RegionContent::shared(self.start.as_ptr(), self.len) }
    }
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no reference outlives `self`. It cannot fail
        // for such arguments, and there would be nothing to do about it.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.mapped);
        }
    }
}

/// Calls `mmap` for the start of a file, or for anonymous memory.
///
/// # Safety
/// With `MAP_FIXED`, `len` bytes from `address` on must be mapped and nothing may refer to them.
unsafe fn map(
    address: *mut core::ffi::c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
) -> Result<NonNull<u8>> {
    // SAFETY: without `MAP_FIXED` the kernel chooses free addresses; with it, `len` bytes from `address` on are
    // mapped and nothing refers to them.
    let start = unsafe { libc::mmap(address, len, protection, flags, file, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error().into());
    }
    NonNull::new(start.cast()).ok_or_else(|| Error::internal("the kernel mapped the address 0"))
}

fn page_size() -> usize {
    // SAFETY: only requests a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // Every system has one; 64 KiB is a multiple of all that are in use.
    usize::try_from(page).unwrap_or(1 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tf_plugin_core::Code;

    /// A file that is removed at the end of the test.
    struct Scratch(PathBuf);
    impl Scratch {
        fn new(content: &[u8]) -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("tf-fs-plugin-map-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, content).unwrap();
            Self(path)
        }
        fn map(&self) -> Result<MappedRegion> {
            MappedRegion::new(&File::open(&self.0).unwrap())
        }
    }
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Returns the content and the byte that follows it.
    fn with_nul(region: &MappedRegion) -> Vec<u8> {
        let content = region.content();
        // SAFETY: one NUL follows the last byte of every `MappedRegion`.
        let after = unsafe { content.as_ptr().add(content.len()).read() };
        [content.to_vec(), vec![after]].concat()
    }

    #[test]
    fn aligned_complete_and_followed_by_nul_at_every_length() {
        let page = page_size();
        for len in [1, 63, 64, page - 1, page, page + 1, 3 * page - 1, 3 * page] {
            let content: Vec<u8> = (0..len).map(|i| (i % 255) as u8 + 1).collect();
            let region = Scratch::new(&content).map().unwrap();
            assert!(region.content().as_ptr().addr().is_multiple_of(64), "{len}");
            assert_eq!(with_nul(&region), [&content[..], &[0]].concat(), "{len}");
        }
    }

    #[test]
    fn the_nul_stays_when_the_file_grows() {
        let page = page_size();
        for len in [5, page, page + 5] {
            let file = Scratch::new(&vec![b'x'; len]);
            let region = file.map().unwrap();
            let mut appending = OpenOptions::new().append(true).open(&file.0).unwrap();
            appending.write_all(&vec![b'y'; 2 * page]).unwrap();
            assert_eq!(with_nul(&region), [&vec![b'x'; len][..], &[0]].concat(), "{len}");
        }
    }

    #[test]
    fn a_file_that_is_replaced_or_deleted_stays() {
        let old = vec![1; 3 * page_size()];
        let (file, other) = (Scratch::new(&old), Scratch::new(b"new"));
        let region = file.map().unwrap();
        std::fs::rename(&other.0, &file.0).unwrap();
        assert!(region.content().to_vec() == old);
        assert_eq!(file.map().unwrap().content().to_vec(), b"new");
    }

    #[test]
    fn a_short_file_survives_truncation() {
        let file = Scratch::new(b"short");
        let region = file.map().unwrap();
        std::fs::write(&file.0, b"").unwrap();
        assert_eq!(region.content().to_vec(), b"short");
    }

    #[test]
    fn files_that_cannot_be_mapped() {
        let empty = Scratch::new(b"").map().unwrap_err();
        assert_eq!(empty.code(), Code::InvalidArgument);
        let directory = MappedRegion::new(&File::open(std::env::temp_dir()).unwrap());
        assert!(directory.is_err());
        let file = Scratch::new(b"not readable");
        let write_only = OpenOptions::new().write(true).open(&file.0).unwrap();
        assert!(MappedRegion::new(&write_only).is_err());
    }

    #[test]
    fn nothing_stays_mapped() {
        let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
        let file = Scratch::new(&vec![1; 8 * page_size()]);
        let name = file.0.file_name().unwrap().to_str().unwrap().to_owned();
        let region = file.map().unwrap();
        assert!(maps().contains(&name));
        drop(region);
        assert!(!maps().contains(&name));
    }

    #[test]
    fn a_huge_sparse_file_takes_no_memory() {
        let file = Scratch::new(b"");
        let sparse = OpenOptions::new().read(true).write(true).open(&file.0).unwrap();
        sparse.set_len((1 << 32) + 3).unwrap();
        sparse.write_all_at(b"end", 1 << 32).unwrap();
        let region = MappedRegion::new(&sparse).unwrap();
        let content = region.content();
        assert_eq!(content.len(), (1 << 32) + 3);
        // SAFETY: inside of the region, whose file nothing changes.
        let end = unsafe { core::slice::from_raw_parts(content.as_ptr().add(1 << 32), 3) };
        assert_eq!(end, b"end");
        // SAFETY: address 0 of a region of 4 GiB + 3 bytes, whose file nothing changes.
        assert_eq!(unsafe { content.as_ptr().read() }, 0);
    }
}
