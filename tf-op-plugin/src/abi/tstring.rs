//! The elements of tensors of strings.
//!
//! TensorFlow's functions for them cost a call for the size and one for the address. The C headers that TensorFlow installs
//! inline these instead, by a layout that has not changed since 2.12, and so does this module. A host whose strings turn
//! out to be different is accessed by its functions.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;
use once_cell::race::OnceBool;
use tf_fs_sys::TF_TString;
use tf_fs_sys::ctstring::{TF_TSTR_LARGE, TF_TSTR_OFFSET, TF_TSTR_SMALL, TF_TSTR_VIEW};
use tf_fs_sys::host::Table as _;
use tf_fs_sys::tstring::StringFunctions;
use tf_plugin_core::{Error, Result};

/// The longest string that is inside its element, behind a byte for its size and before a NUL.
pub(super) const MAX_SMALL: usize = size_of::<TF_TString>() - 2;

/// The functions of the host for strings.
#[derive(Clone, Copy)]
pub(super) struct StringApi {
    data: unsafe extern "C" fn(*const TF_TString) -> *const c_char,
    size: unsafe extern "C" fn(*const TF_TString) -> usize,
    copy: unsafe extern "C" fn(*mut TF_TString, *const c_char, usize),
    has_known_layout: bool,
}

impl StringApi {
    pub(super) fn get() -> Result<Self> {
        static KNOWN: OnceBool = OnceBool::new();
        let host = StringFunctions::get().map_err(Error::failed_precondition)?;
        let (Some(data), Some(size), Some(copy)) =
            (host.TF_StringGetDataPointer, host.TF_StringGetSize, host.TF_StringCopy)
        else {
            return Err(Error::failed_precondition(
                "this TensorFlow does not export its functions for strings",
            ));
        };
        let has_known_layout = KNOWN.get_or_init(|| {
            let known = has_known_layout(host);
            if !known {
                log::info!(
                    "strings are accessed by calls: this TensorFlow has another layout of them"
                );
            }
            known
        });
        Ok(Self { data, size, copy, has_known_layout })
    }

    /// Returns the bytes of a string.
    ///
    /// # Safety
    /// `string` is a string of the host's that neither changes nor ends during `'a`.
    #[inline]
    pub(super) unsafe fn bytes<'a>(self, string: *const TF_TString) -> &'a [u8] {
        // SAFETY: the string lives, and so do its bytes. `read` requires the layout, which the host has; the functions only
        // read.
        unsafe {
            bytes_at(if self.has_known_layout {
                read(string)
            } else {
                ((self.data)(string).cast(), (self.size)(string))
            })
        }
    }

    /// Returns whether the host's strings have the layout of [`write_small`] and [`write_large`].
    pub(super) const fn has_known_layout(self) -> bool {
        self.has_known_layout
    }

    /// Copies bytes into a new string, whatever its layout is.
    ///
    /// # Safety
    /// `string` is an empty string of the host's that nothing else uses, such as an element of a new output.
    pub(super) unsafe fn write(self, string: *mut TF_TString, bytes: &[u8]) {
        // SAFETY: the string is initialised, and `bytes` are copied.
        unsafe { (self.copy)(string, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Writes a string of at most [`MAX_SMALL`] bytes, without a call of `memcpy` for so few.
///
/// # Safety
/// `string` is memory of a string with the known layout that owns nothing, and `bytes` are not in it.
#[inline]
pub(super) unsafe fn write_small(string: *mut TF_TString, bytes: &[u8]) {
    /// Copies the first and the last bytes of `len`, which may overlap.
    ///
    /// # Safety
    /// `size_of::<T>() <= len <= 2 * size_of::<T>()`, and `len` bytes are at both.
    #[inline]
    unsafe fn ends<T>(from: *const u8, to: *mut u8, len: usize) {
        let last = len - size_of::<T>();
        // SAFETY: both values are within `len` bytes.
        unsafe {
            let (head, tail) =
                (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
            to.cast::<T>().write_unaligned(head);
            to.add(last).cast::<T>().write_unaligned(tail);
        }
    }
    let (from, len) = (bytes.as_ptr(), bytes.len());
    debug_assert!(len <= MAX_SMALL);
    // SAFETY: a byte for the size, at most `MAX_SMALL` bytes and a NUL are the memory of the string.
    unsafe {
        let start = string.cast::<u8>();
        let to = start.add(1);
        match len {
            16.. => ends::<u128>(from, to, len),
            8..16 => ends::<u64>(from, to, len),
            4..8 => ends::<u32>(from, to, len),
            2..4 => ends::<u16>(from, to, len),
            1 => to.write(*from),
            0 => {}
        }
        start.write((len as u8) << 2 | TF_TSTR_SMALL as u8);
        to.add(len).write(0);
    }
}

/// Allocates a string of more than [`MAX_SMALL`] bytes, as the C headers do it: its bytes are from `malloc`, and the host, or
/// an op of another library, frees or resizes them. Returns where they are, of which only the NUL after them is written, or
/// null if there is no memory.
///
/// # Safety
/// `string` is memory of a string with the known layout that owns nothing. The bytes are written before they are read.
#[inline]
pub(super) unsafe fn allocate_large(string: *mut TF_TString, len: usize) -> *mut u8 {
    debug_assert!(len > MAX_SMALL);
    // With a NUL, and rounded up; what is too much for `malloc` is too much here.
    let size = len.checked_add(16).map_or(usize::MAX, |size| size & !15);
    // SAFETY: `size` bytes are allocated, of which `len` and a NUL are used; `string` is three words.
    unsafe {
        let start = libc::malloc(size).cast::<u8>();
        if !start.is_null() {
            start.add(len).write(0);
            let words = string.cast::<u64>();
            words.write((len as u64) << 2 | u64::from(TF_TSTR_LARGE));
            words.add(1).write(size as u64 - 1);
            string.cast::<*mut u8>().add(2).write(start);
        }
        start
    }
}

/// Writes a string of more than [`MAX_SMALL`] bytes. Returns `false` if there is no memory.
///
/// # Safety
/// `string` is memory of a string with the known layout that owns nothing, and `bytes` are not in it.
#[inline]
pub(super) unsafe fn write_large(string: *mut TF_TString, bytes: &[u8]) -> bool {
    // SAFETY: the new memory has room for the bytes, and is not where they are.
    unsafe {
        let start = allocate_large(string, bytes.len());
        if start.is_null() {
            return false;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
    }
    true
}

/// Frees what a string owns.
///
/// # Safety
/// `string` is a string with the known layout, which is not used afterwards.
#[inline]
pub(super) unsafe fn free(string: *mut TF_TString) {
    // SAFETY: the string has three words. A large one has the address of memory from `malloc` in the last; the host knows what
    // a view owns.
    unsafe {
        match string.cast::<u32>().read() & 3 {
            TF_TSTR_LARGE => libc::free(string.cast::<*mut c_void>().add(2).read()),
            TF_TSTR_VIEW => {
                if let Ok(&StringFunctions { TF_StringDealloc: Some(dealloc), .. }) =
                    StringFunctions::get()
                {
                    dealloc(string);
                }
            }
            _ => {}
        }
    }
}

/// Returns where the bytes of a string are, and how many.
///
/// # Safety
/// `string` is a string of a host with the known layout.
#[inline]
pub(super) unsafe fn read(string: *const TF_TString) -> (*const u8, usize) {
    let start = string.cast::<u8>();
    // SAFETY: the element has three words, aligned for them. A small string is behind its first byte. The others have the
    // size in the first word, and then a capacity and an address, an address, or an offset from the element in the upper
    // half of that word.
    unsafe {
        let word = |index: usize| string.cast::<u64>().add(index).read();
        let first = word(0);
        match first as u32 & 3 {
            TF_TSTR_SMALL => (start.add(1), usize::from(first as u8 >> 2)),
            TF_TSTR_LARGE => (string.cast::<*const u8>().add(2).read(), (first >> 2) as usize),
            TF_TSTR_VIEW => (string.cast::<*const u8>().add(1).read(), (first >> 2) as usize),
            _ => (start.add((first >> 32) as usize), (first as u32 >> 2) as usize),
        }
    }
}

/// Strings that follow each other in memory.
pub(crate) struct StringIter<'s> {
    next: *const TF_TString,
    left: usize,
    /// For strings that do not have the known layout.
    api: Option<StringApi>,
    strings: PhantomData<&'s TF_TString>,
}

// SAFETY: the value only reads strings that do not change, as a shared reference to them would.
unsafe impl Send for StringIter<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for StringIter<'_> {}

impl<'s> StringIter<'s> {
    /// Iterates over `count` strings, which have the known layout if `api` is `None`.
    ///
    /// # Safety
    /// There are so many strings at `first`, which neither change nor end during `'s`.
    #[inline]
    pub(super) const unsafe fn new(
        first: *const TF_TString,
        count: usize,
        api: Option<StringApi>,
    ) -> Self {
        Self { next: first, left: count, api, strings: PhantomData }
    }
}

impl<'s> Iterator for StringIter<'s> {
    type Item = &'s [u8];

    #[inline]
    fn next(&mut self) -> Option<&'s [u8]> {
        self.left = self.left.checked_sub(1)?;
        let string = self.next;
        // SAFETY: there was at least one string left, which is this one; `new` requires the rest.
        unsafe {
            self.next = string.add(1);
            Some(match self.api {
                None => bytes_at(read(string)),
                Some(api) => api.bytes(string),
            })
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for StringIter<'_> {}

/// Returns bytes by their address and number.
///
/// # Safety
/// There are so many bytes there, if any, which neither change nor end during `'a`.
#[inline]
const unsafe fn bytes_at<'a>((start, len): (*const u8, usize)) -> &'a [u8] {
    match len {
        0 => &[],
        // SAFETY: the caller vouches for the bytes.
        _ => unsafe { core::slice::from_raw_parts(start, len) },
    }
}

/// Returns whether the strings of the host have the layout that this module knows, by a string of each kind.
fn has_known_layout(host: &StringFunctions) -> bool {
    const TEXT: &[u8] = b"a text that does not fit into an element";
    let (Some(init), Some(copy), Some(view), Some(data), Some(size), Some(dealloc)) = (
        host.TF_StringInit,
        host.TF_StringCopy,
        host.TF_StringAssignView,
        host.TF_StringGetDataPointer,
        host.TF_StringGetSize,
        host.TF_StringDealloc,
    ) else {
        return false;
    };
    if cfg!(not(all(target_endian = "little", target_pointer_width = "64"))) {
        return false;
    }
    let mut place = MaybeUninit::<[TF_TString; 4]>::zeroed();
    let string = place.as_mut_ptr().cast::<TF_TString>();
    // SAFETY: `string` is memory for four strings. It is initialised by the host, or, once the host's own strings had the
    // layout, with a small string or an offset of one element: both are followed inside of `place` only. `agree` reads as
    // many bytes as the host says to be there. All of `place` is integers.
    unsafe {
        let word = |index: usize| string.cast::<u64>().add(index).read();
        let is = |data: *const u8, size: usize, text: &[u8]| {
            size == text.len() && core::slice::from_raw_parts(data, size) == text
        };
        let agree = |text: &[u8]| {
            is(data(string).cast(), size(string), text)
                && (data(string).cast(), size(string)) == read(string)
        };
        init(string);
        let mut known = string.cast::<[u64; 3]>().read() == [0; 3];
        for text in [&TEXT[..0], &TEXT[..1], &TEXT[..MAX_SMALL], TEXT] {
            copy(string, text.as_ptr().cast(), text.len());
            let (first, start) = match text.len() {
                len @ ..=MAX_SMALL => (len << 2 | TF_TSTR_SMALL as usize, string.addr() + 1),
                len => (len << 2 | TF_TSTR_LARGE as usize, word(2) as usize),
            };
            let mask = if text.len() <= MAX_SMALL { 0xff } else { u64::MAX };
            known = known && word(0) & mask == first as u64 && data(string).addr() == start;
            known = known && agree(text);
        }
        dealloc(string);
        view(string, TEXT.as_ptr().cast(), TEXT.len());
        let of_view = TEXT.len() << 2 | TF_TSTR_VIEW as usize;
        known = known && word(0) == of_view as u64 && word(1) == TEXT.as_ptr().addr() as u64;
        known = known && agree(TEXT);
        dealloc(string);
        if !known {
            return false;
        }
        // The host reads what this module writes, now that it has the layout for what it writes itself.
        for text in [&TEXT[..0], &TEXT[..1], &TEXT[..MAX_SMALL]] {
            write_small(string, text);
            known = known && agree(text);
        }
        known = known && write_large(string, TEXT) && agree(TEXT);
        free(string);
        let target = string.add(1).cast::<u8>();
        ptr::copy_nonoverlapping(TEXT.as_ptr(), target, TEXT.len());
        let offset = (TEXT.len() << 2) as u64 | u64::from(TF_TSTR_OFFSET);
        string.cast::<u64>().write((size_of::<TF_TString>() as u64) << 32 | offset);
        known && agree(TEXT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_testing::ops::STRING_FUNCTIONS as HOST;

    #[test]
    fn a_host_with_the_layout_is_recognised() {
        assert!(has_known_layout(&HOST));
    }

    #[test]
    fn a_host_with_another_layout_is_recognised() {
        unsafe extern "C" fn padded(string: *mut TF_TString) {
            // SAFETY: memory for a string of three words: a small one without bytes, the rest of which is not zero.
            unsafe { string.cast::<[u64; 3]>().write([0, 1, 0]) }
        }
        unsafe extern "C" fn never_small(
            string: *mut TF_TString,
            data: *const c_char,
            size: usize,
        ) {
            // SAFETY: as the caller's.
            unsafe { (HOST.TF_StringAssignView.unwrap())(string, data, size) }
        }
        unsafe extern "C" fn longer(string: *const TF_TString) -> usize {
            // SAFETY: as the caller's.
            unsafe { (HOST.TF_StringGetSize.unwrap())(string) + 1 }
        }
        for other in [
            StringFunctions { TF_StringInit: Some(padded), ..HOST },
            StringFunctions { TF_StringCopy: Some(never_small), ..HOST },
            StringFunctions { TF_StringGetSize: Some(longer), ..HOST },
            StringFunctions { TF_StringAssignView: HOST.TF_StringCopy, ..HOST },
            StringFunctions { TF_StringAssignView: None, ..HOST },
        ] {
            assert!(!has_known_layout(&other), "{other:?}");
        }
    }

    #[test]
    fn strings_are_read_as_they_were_written() {
        let (data, size) = (HOST.TF_StringGetDataPointer.unwrap(), HOST.TF_StringGetSize.unwrap());
        let (copy, dealloc) = (HOST.TF_StringCopy.unwrap(), HOST.TF_StringDealloc.unwrap());
        for has_known_layout in [true, false] {
            let api = StringApi { data, size, copy, has_known_layout };
            for len in (0..=MAX_SMALL + 1).chain([1000]) {
                let text: Vec<u8> = (0..len).map(|at| at as u8).collect();
                let mut place = MaybeUninit::<TF_TString>::zeroed();
                // SAFETY: zeros are an empty string, which is deallocated once.
                unsafe {
                    api.write(place.as_mut_ptr(), &text);
                    assert_eq!(api.bytes(place.as_ptr()), text);
                    dealloc(place.as_mut_ptr());
                }
            }
        }
    }

    #[test]
    fn large_strings_have_the_capacity_of_the_headers() {
        for len in [MAX_SMALL + 1, 31, 32, 1000] {
            let mut place = [0_u64; 3];
            let string = place.as_mut_ptr().cast();
            // SAFETY: zeros are an empty string, which is freed once.
            unsafe {
                assert!(write_large(string, &vec![7; len]));
                // `TF_align16(size + 1) - 1`
                assert_eq!(string.cast::<[u64; 3]>().read()[1], (len as u64 + 16) / 16 * 16 - 1);
                assert_eq!(read(string).0.add(len).read(), 0);
                free(string);
            }
        }
    }
}
