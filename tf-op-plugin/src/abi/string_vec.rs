//! Strings in the memory of a tensor to be.

use super::aligned_vec::AlignedVec;
use super::memory::{Released, release};
use super::tstring::{MAX_SMALL, StringIter, allocate_large, free, read, write_large, write_small};
use core::ffi::c_void;
use core::mem::{self, MaybeUninit};
use tf_fs_sys::TF_TString;

/// A string as the host has it: small, or with bytes from the C library's `malloc`. Either can be moved.
#[derive(Clone, Copy)]
struct Element(MaybeUninit<[u64; 3]>);

const _: () = assert!(size_of::<Element>() == size_of::<TF_TString>());
const _: () = assert!(
    cfg!(all(target_endian = "little", target_pointer_width = "64")),
    "TensorFlow's strings have another layout on this target; build for a 64-bit little-endian one"
);

/// A vector of strings that TensorFlow takes over without a copy.
pub(crate) struct StringVec {
    strings: AlignedVec<Element>,
}

impl StringVec {
    pub(crate) const fn new() -> Self {
        Self { strings: AlignedVec::new() }
    }

    /// Makes room for strings after the present ones. Returns `false` if there is no memory.
    #[must_use]
    pub(crate) fn try_reserve(&mut self, strings: usize, amortized: bool) -> bool {
        self.strings.try_reserve(strings, amortized)
    }

    /// Adds a copy of a string. Returns `false` if there is no memory.
    #[must_use]
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if !self.strings.try_reserve(1, true) {
            return false;
        }
        let place = self.strings.end();
        // SAFETY: there is room for one more element at `place`, which is initialised as an empty string. It owns nothing,
        // and is not where `bytes` are. It is counted once it is written.
        unsafe {
            place.write(Element(MaybeUninit::new([0; 3])));
            let string = place.cast::<TF_TString>();
            if bytes.len() <= MAX_SMALL {
                write_small(string, bytes);
            } else if !write_large(string, bytes) {
                return false;
            }
            self.strings.add_one();
        }
        true
    }

    /// Adds a string of zeros, and returns it to be written. Returns `None` if there is no memory.
    #[inline]
    pub(crate) fn push_zeros(&mut self, len: usize) -> Option<&mut [u8]> {
        if !self.strings.try_reserve(1, true) {
            return None;
        }
        let place = self.strings.end();
        // SAFETY: there is room for one more element at `place`, which is initialised as an empty string. A small one then has
        // its size and zeros, and a large one has memory for `len` bytes, which become zeros. It is counted once it is
        // written, and not moved while it is borrowed.
        unsafe {
            place.write(Element(MaybeUninit::new([0; 3])));
            let string = place.cast::<TF_TString>();
            let start = if len <= MAX_SMALL {
                string.cast::<u8>().write((len as u8) << 2);
                string.cast::<u8>().add(1)
            } else {
                let start = allocate_large(string, len);
                if start.is_null() {
                    return None;
                }
                start.write_bytes(0, len);
                start
            };
            self.strings.add_one();
            Some(core::slice::from_raw_parts_mut(start, len))
        }
    }

    /// Moves the strings of another vector to the end. Returns `false` if there is no memory.
    #[must_use]
    pub(crate) fn append(&mut self, mut other: Self) -> bool {
        if !self.strings.try_reserve(other.len(), true) {
            return false;
        }
        self.strings.extend(other.strings.as_slice().iter(), |&string| string);
        // They are freed here.
        other.strings.clear();
        true
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.strings.as_slice().len()
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        self.strings.as_slice().get(index).map(Element::bytes)
    }

    #[inline]
    pub(crate) fn iter(&self) -> StringIter<'_> {
        let strings = self.strings.as_slice();
        // SAFETY: so many strings with the layout, which do not change while `self` is borrowed.
        unsafe { StringIter::new(strings.as_ptr().cast(), strings.len(), None) }
    }

    /// Gives the memory away.
    pub(super) fn into_released(mut self) -> Released {
        let strings = mem::replace(&mut self.strings, AlignedVec::new());
        let (memory, len) = strings.into_memory();
        let bytes = len * size_of::<Element>();
        Released { release: release_strings, ..memory.into_released(bytes) }
    }
}

impl Element {
    #[inline]
    fn bytes(&self) -> &[u8] {
        // SAFETY: an element of a `StringVec` is a string with the layout, whose bytes neither change nor end while it is
        // borrowed.
        unsafe {
            match read(self.0.as_ptr().cast()) {
                (_, 0) => &[],
                (start, len) => core::slice::from_raw_parts(start, len),
            }
        }
    }
}

impl Drop for StringVec {
    fn drop(&mut self) {
        for string in self.strings.as_mut_slice() {
            // SAFETY: a string of this value's, which is freed once.
            unsafe { free(core::ptr::from_mut(string).cast()) };
        }
    }
}

/// Frees strings, and then the memory that they are in.
unsafe extern "C" fn release_strings(start: *mut c_void, len: usize, argument: *mut c_void) {
    let strings = start.cast::<TF_TString>();
    // SAFETY: `into_released` has passed `len` bytes of strings, which the host, too, has kept strings. It calls this once.
    unsafe {
        (0..len / size_of::<TF_TString>()).for_each(|index| free(strings.add(index)));
        release(start, len, argument);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_moved_and_freed_once() {
        let texts: Vec<Vec<u8>> = (0..2000).map(|len| vec![len as u8; len % 40]).collect();
        let vec = |texts: &[Vec<u8>]| {
            let mut vec = StringVec::new();
            assert!(texts.iter().all(|text| vec.push(text)));
            vec
        };
        let mut all = vec(&texts[..900]);
        assert!(all.append(vec(&texts[900..])));
        assert!(all.iter().eq(texts.iter().map(Vec::as_slice)));
        assert_eq!(all.get(39), Some(&[39; 39][..]));
        assert_eq!(all.get(2000), None);
        for len in [0, 7, MAX_SMALL, MAX_SMALL + 1, 100] {
            let zeros = all.push_zeros(len).unwrap();
            assert_eq!(zeros, vec![0; len]);
            zeros.fill(1);
            assert_eq!(all.get(all.len() - 1), Some(&vec![1; len][..]));
        }
        let Released { start, bytes, release, argument } = all.into_released();
        assert_eq!(bytes, (texts.len() + 5) * 24);
        // SAFETY: as the host calls it, once.
        unsafe { release(start, bytes, argument) };
        drop(vec(&texts));
    }
}
