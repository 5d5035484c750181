//! The host's side of `tf_tstring.h`: the elements of tensors of strings, in TensorFlow's layout.

use core::ffi::c_char;
use core::slice;
use tf_fs_sys::TF_TString;
use tf_fs_sys::ctstring::{
    TF_TSTR_LARGE, TF_TSTR_SMALL, TF_TSTR_TYPE_MASK, TF_TSTR_VIEW, TF_TString_Type,
};
use tf_fs_sys::tstring::StringFunctions;

/// The longest string that is inside its element, behind a byte for its size and before a NUL.
const MAX_SMALL: usize = size_of::<TF_TString>() - 2;

/// The functions for strings.
pub static FUNCTIONS: StringFunctions = StringFunctions {
    TF_StringInit: Some(init),
    TF_StringCopy: Some(copy),
    TF_StringAssignView: Some(assign_view),
    TF_StringGetDataPointer: Some(data),
    TF_StringGetType: Some(kind),
    TF_StringGetSize: Some(size),
    TF_StringGetCapacity: Some(capacity),
    TF_StringDealloc: Some(dealloc),
};

/// Returns where the bytes of a string are, and how many.
///
/// # Safety
/// `string` is an initialised string.
unsafe fn parts(string: *const TF_TString) -> (*const u8, usize) {
    let start = string.cast::<u8>();
    // SAFETY: the element has three words. What is in them is decided by the lowest two bits.
    unsafe {
        let first = string.cast::<u64>().read();
        match kind(string) {
            TF_TSTR_SMALL => (start.add(1), usize::from(first as u8 >> 2)),
            TF_TSTR_LARGE => (string.cast::<*const u8>().add(2).read(), (first >> 2) as usize),
            TF_TSTR_VIEW => (string.cast::<*const u8>().add(1).read(), (first >> 2) as usize),
            _ => (start.add((first >> 32) as usize), (first as u32 >> 2) as usize),
        }
    }
}

/// Returns the bytes of a string.
///
/// # Safety
/// `string` is an initialised string that does not change during `'a`.
pub(super) unsafe fn bytes<'a>(string: *const TF_TString) -> &'a [u8] {
    // SAFETY: a string has so many bytes there, for as long as it does not change.
    unsafe {
        match parts(string) {
            (_, 0) => &[],
            (start, len) => slice::from_raw_parts(start, len),
        }
    }
}

unsafe extern "C" fn init(string: *mut TF_TString) {
    // SAFETY: memory for a string: zeros are an empty small one.
    unsafe { string.write_bytes(0, 1) }
}

pub(super) unsafe extern "C" fn copy(string: *mut TF_TString, from: *const c_char, len: usize) {
    // SAFETY: an initialised string, and `len` bytes at `from`, which may be those of the string: its memory is freed once they
    // are copied. A large one has its bytes from `malloc`, with a NUL behind them.
    unsafe {
        let mut new = [0_u64; 3];
        if len <= MAX_SMALL {
            let start = new.as_mut_ptr().cast::<u8>();
            start.write((len as u8) << 2 | TF_TSTR_SMALL as u8);
            start.add(1).copy_from_nonoverlapping(from.cast(), len);
        } else {
            let start = libc::malloc(len + 1).cast::<u8>();
            assert!(!start.is_null(), "there is no memory for a string of {len} bytes");
            start.copy_from_nonoverlapping(from.cast(), len);
            start.add(len).write(0);
            new = [
                (len << 2) as u64 | u64::from(TF_TSTR_LARGE),
                len as u64,
                start.expose_provenance() as u64,
            ];
        }
        dealloc(string);
        string.cast::<[u64; 3]>().write(new);
    }
}

pub(super) unsafe extern "C" fn assign_view(
    string: *mut TF_TString,
    start: *const c_char,
    len: usize,
) {
    // SAFETY: an initialised string, whose memory is freed first.
    unsafe {
        dealloc(string);
        string.cast::<u64>().write((len << 2) as u64 | u64::from(TF_TSTR_VIEW));
        string.cast::<*const c_char>().add(1).write(start);
    }
}

unsafe extern "C" fn data(string: *const TF_TString) -> *const c_char {
    // SAFETY: an initialised string.
    unsafe { parts(string).0.cast() }
}

unsafe extern "C" fn kind(string: *const TF_TString) -> TF_TString_Type {
    // SAFETY: an initialised string.
    TF_TString_Type::from(unsafe { string.cast::<u8>().read() }) & TF_TSTR_TYPE_MASK
}

unsafe extern "C" fn size(string: *const TF_TString) -> usize {
    // SAFETY: an initialised string.
    unsafe { parts(string).1 }
}

unsafe extern "C" fn capacity(string: *const TF_TString) -> usize {
    // SAFETY: an initialised string; a large one has its capacity in the second word.
    unsafe {
        match kind(string) {
            TF_TSTR_SMALL => MAX_SMALL,
            TF_TSTR_LARGE => string.cast::<u64>().add(1).read() as usize,
            _ => 0,
        }
    }
}

pub(super) unsafe extern "C" fn dealloc(string: *mut TF_TString) {
    // SAFETY: an initialised string; a large one owns bytes from `malloc`, whoever wrote it.
    unsafe {
        if kind(string) == TF_TSTR_LARGE {
            libc::free(parts(string).0.cast_mut().cast());
        }
        init(string);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;
    use tf_fs_sys::ctstring::TF_TSTR_OFFSET;

    /// Makes a string an offset to `len` bytes behind it, as in a mapped file.
    ///
    /// # Safety
    /// `string` is an initialised string, and `len` bytes are `offset` bytes behind its start.
    unsafe fn assign_offset(string: *mut TF_TString, offset: u32, len: u32) {
        // SAFETY: an initialised string, whose memory is freed first.
        unsafe {
            dealloc(string);
            let first = u64::from(offset) << 32 | u64::from(len << 2 | TF_TSTR_OFFSET);
            string.cast::<u64>().write(first);
        }
    }

    #[test]
    fn strings_of_each_kind_are_read_as_they_were_written() {
        let text: Vec<u8> = (0..=255).collect();
        let mut place = MaybeUninit::<[TF_TString; 2]>::zeroed();
        let string = place.as_mut_ptr().cast::<TF_TString>();
        for len in (0..=MAX_SMALL + 1).chain([256]) {
            // SAFETY: zeros are an empty string; each change is of an initialised string, and `text` outlives the views.
            unsafe {
                copy(string, text.as_ptr().cast(), len);
                assert_eq!(bytes(string), &text[..len]);
                let is_small = kind(string) == TF_TSTR_SMALL;
                assert_eq!((is_small, size(string)), (len <= MAX_SMALL, len));
                assert!(capacity(string) >= len);
                // From its own bytes.
                copy(string, data(string), len / 2);
                assert_eq!(bytes(string), &text[..len / 2]);
                assign_view(string, text.as_ptr().cast(), len);
                assert_eq!((bytes(string), kind(string)), (&text[..len], TF_TSTR_VIEW));
            }
        }
        // SAFETY: the bytes are behind the first of two elements.
        unsafe {
            string.add(1).cast::<[u8; 3]>().write(*b"abc");
            assign_offset(string, 24, 3);
            assert_eq!(bytes(string), b"abc");
            dealloc(string);
            assert_eq!(bytes(string), b"");
        }
    }
}
