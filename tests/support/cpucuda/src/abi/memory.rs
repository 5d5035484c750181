//! Memory of the device, and page-locked memory of the host.

use std::ptr::null_mut;

/// The bytes after a block that cannot be accessed: more than a page of any CPU.
const GUARD: usize = 64 << 10;
/// The alignment of CUDA's addresses.
const ALIGNMENT: usize = 256;
/// How much of a new block is not zero, since programs may not rely on zeros.
const JUNK: usize = 1 << 20;

/// A block of memory. An access past its end, or after it is freed, ends the process.
pub(crate) struct Region {
    map: usize,
    mapped: usize,
    address: usize,
    bytes: usize,
}

impl Region {
    /// Maps a block, or returns `None` if the machine has no memory left.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let padded = bytes.checked_next_multiple_of(ALIGNMENT)?;
        let inside = padded.checked_next_multiple_of(GUARD)?;
        let mapped = inside.checked_add(GUARD)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new map, at an address that the system chooses, overlaps nothing.
        let map = unsafe { libc::mmap(null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return None;
        }
        let address = map.addr() + inside - padded;
        let region = Self { map: map.addr(), mapped, address, bytes };
        let readable = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the first `inside` bytes are part of the map, which nothing uses yet.
        if unsafe { libc::mprotect(map, inside, readable) } != 0 {
            return None;
        }
        // SAFETY: the block is mapped and may be written, and nothing else has its address yet.
        unsafe { (address as *mut u8).write_bytes(0xA5, bytes.min(JUNK)) };
        Some(region)
    }

    pub(crate) fn address(&self) -> u64 {
        self.address as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Allows accesses to the block, or forbids them: then an access ends the process.
    pub(crate) fn open(&self, is_open: bool) {
        let access = if is_open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        let map = self.map as *mut libc::c_void;
        // SAFETY: these bytes are part of the map, which is this block's. Who uses it while it is closed is to end.
        let done = unsafe { libc::mprotect(map, self.mapped - GUARD, access) };
        assert_eq!(done, 0, "the system protects memory");
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the map is this block's, and what uses the block holds it.
        unsafe { libc::munmap(self.map as *mut libc::c_void, self.mapped) };
    }
}

/// The stacks of the threads of a block, as in `cpu.h`.
#[repr(C)]
pub(super) struct Stacks {
    base: usize,
    /// How many of them may be written.
    ready: u32,
}

impl Stacks {
    /// The bytes of all stacks, as in `cpu.h`: the threads of a block, times a stack with its guard.
    const MAPPED: usize = 1024 * (128 << 10);

    pub(super) fn new() -> Option<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new map, at an address that the system chooses, overlaps nothing.
        let map = unsafe { libc::mmap(null_mut(), Self::MAPPED, libc::PROT_NONE, flags, -1, 0) };
        (map != libc::MAP_FAILED).then(|| Self { base: map.addr(), ready: 0 })
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: the map is this value's; nothing runs on the stacks, since the thread that owns them ends.
        unsafe { libc::munmap(self.base as *mut libc::c_void, Self::MAPPED) };
    }
}
