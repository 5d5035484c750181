//! The allocator with which TensorFlow frees the plugin's memory. No other module passes memory to
//! the host.
//!
//! Each block is a separate libc allocation, so that tools such as AddressSanitizer and valgrind
//! see what the host does with each one.

use crate::entries::Entries;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use tf_plugin_core::__private::boundary::has_nul;
use tf_plugin_core::{Error, Result};

/// Implements `plugin_memory_allocate`: returns zeroed memory, or null on failure.
pub(super) unsafe extern "C" fn allocate(size: usize) -> *mut c_void {
    // SAFETY: `calloc` takes any sizes; one byte at least, so that null always means failure.
    unsafe { libc::calloc(size.max(1), 1) }
}

/// Implements `plugin_memory_free`. Null is allowed.
pub(super) unsafe extern "C" fn free(ptr: *mut c_void) {
    // SAFETY: `ptr` is null or from a block of this module, thus from `calloc` or
    // `malloc`.
    unsafe { libc::free(ptr) }
}

#[cold]
fn out_of_memory() -> Error {
    Error::resource_exhausted("the plugin is out of memory")
}

/// A block of values of `T`. Freed when dropped, unless the host got it.
pub(super) struct Block<T>(*mut T);

impl<T: Copy> Block<T> {
    /// Allocates room for `count` values of `T`, all of which must be written before any is read.
    fn uninit(count: usize) -> Result<Self> {
        let size = count.checked_mul(size_of::<T>()).ok_or_else(out_of_memory)?;
        // SAFETY: any size is allowed; one byte at least, so that null always means failure. What is
        // written at once need not be zeroed first, and `malloc` is quicker than `calloc`.
        let start = unsafe { libc::malloc(size.max(1)) }.cast::<T>();
        if start.is_null() { Err(out_of_memory()) } else { Ok(Self(start)) }
    }

    pub(super) fn of(values: &[T]) -> Result<Self> {
        let block = Self::uninit(values.len())?;
        // SAFETY: the block has room for `values.len()` values, `malloc` aligns for any C type (all
        // that is put here), and a fresh block overlaps nothing.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), block.0, values.len()) };
        Ok(block)
    }

    /// Returns the start of the block, which keeps the ownership.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.0
    }

    /// Gives the block to the host, which frees it with [`free`].
    pub(super) fn into_raw(self) -> *mut T {
        let start = self.0;
        core::mem::forget(self);
        start
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        // SAFETY: the start came from `malloc` and was not given away, or `forget` had run.
        unsafe { free(self.0.cast()) }
    }
}

/// Blocks that the host is to get together or not at all. Freed when dropped, unless the host got them.
#[derive(Default)]
pub(super) struct Blocks(Vec<Block<u8>>);

impl Blocks {
    /// Keeps a block and returns its start.
    pub(super) fn keep<T: Copy>(&mut self, block: Block<T>) -> *mut T {
        let start = block.into_raw();
        self.0.push(Block(start.cast()));
        start
    }

    /// Gives all blocks to the host, and the array that points to them.
    pub(super) fn give<T: Copy>(self, array: Block<T>) -> *mut T {
        self.0.into_iter().for_each(core::mem::forget);
        array.into_raw()
    }
}

/// Creates a C string.
///
/// # Errors
/// `INTERNAL` if the bytes hold a NUL, which would cut the string; `RESOURCE_EXHAUSTED`.
pub(super) fn c_string(bytes: &[u8]) -> Result<Block<c_char>> {
    if has_nul(bytes) {
        return Err(nul_inside(bytes));
    }
    c_buffer(bytes)
}

#[cold]
fn nul_inside(bytes: &[u8]) -> Error {
    Error::internal(format_args!(
        "the plugin returned a name with a NUL inside: \"{}\"",
        bytes.escape_ascii()
    ))
}

/// Copies bytes of any value, followed by a NUL.
#[inline]
pub(super) fn c_buffer(bytes: &[u8]) -> Result<Block<c_char>> {
    let block = Block::<c_char>::uninit(bytes.len() + 1)?;
    // SAFETY: the block has one byte more than `bytes`, and a fresh block overlaps nothing. All of it
    // is written.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), block.0.cast(), bytes.len());
        block.0.add(bytes.len()).write(0);
    }
    Ok(block)
}

/// Writes an array of C strings to `*entries` and returns its length. Names with a NUL are left out. On an error
/// nothing is written and everything is freed.
///
/// # Safety
/// `entries` must be valid for a write.
pub(super) unsafe fn give_entries(
    names: &Entries,
    entries: *mut *mut *mut c_char,
) -> Result<c_int> {
    let any_nul = has_nul(names.all_bytes());
    let array = Block::<*mut c_char>::uninit(names.len())?;
    let mut strings = Blocks::default();
    strings.0.try_reserve_exact(names.len()).map_err(|_| out_of_memory())?;
    for name in names.iter().filter(|name| !(any_nul && has_nul(name))) {
        let index = strings.0.len();
        let string = strings.keep(c_buffer(name)?);
        // SAFETY: the array has room for as many strings as there are names, and `index` counts those before this one.
        unsafe { array.0.add(index).write(string) };
    }
    let count = c_int::try_from(strings.0.len())
        .map_err(|_| Error::resource_exhausted("more entries than TensorFlow can take"))?;
    // SAFETY: `entries` is the host's place for the array, valid for a write.
    unsafe { entries.write(strings.give(array)) };
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    #[test]
    fn null_is_freed_and_nothing_is_allocated_as_something() {
        // SAFETY: null, and a block from `allocate`.
        unsafe {
            free(ptr::null_mut());
            let nothing = allocate(0);
            assert!(!nothing.is_null());
            free(nothing);
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(Block::<u64>::uninit(usize::MAX).is_err());
        assert!(Block::<u8>::uninit(usize::MAX / 2).is_err());
    }

    #[test]
    fn entries_become_c_strings_without_those_that_a_nul_would_cut() {
        let mut array = ptr::null_mut();
        let names: Entries = ["a", "", "é"].into_iter().collect();
        // SAFETY: `array` is a local; what it gets is three C strings from `allocate`.
        unsafe {
            assert_eq!(give_entries(&names, &mut array).unwrap(), 3);
            for (index, expected) in [c"a", c"", c"é"].into_iter().enumerate() {
                let string = *array.add(index);
                assert_eq!(CStr::from_ptr(string), expected);
                free(string.cast());
            }
            free(array.cast());
            let names: Entries = ["b\0c", "a", "\0"].into_iter().collect();
            assert_eq!(give_entries(&names, &mut array).unwrap(), 1);
            assert_eq!(CStr::from_ptr(*array), c"a");
            free((*array).cast());
            free(array.cast());
        }
    }
}
