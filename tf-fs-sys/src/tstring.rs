//! `tensorflow/c/tf_tstring.h`: access to the elements of a tensor of strings.

use crate::ctstring::{TF_TString, TF_TString_Type};
use core::ffi::c_char;

crate::layout::host_functions! {
    /// The functions of `tf_tstring.h`, in `libtensorflow_cc.so.2`.
    ///
    /// Elements of a tensor that the host allocated (`TF_AllocateOutput`, `TF_AllocateTemp`) are
    /// initialised already, and the host deallocates them with the tensor.
    pub struct StringFunctions {
        /// Makes raw memory an empty string.
        optional fn TF_StringInit(t: *mut TF_TString);
        /// Replaces the content of an initialised string by a copy of `size` bytes at `src`.
        optional fn TF_StringCopy(dst: *mut TF_TString, src: *const c_char, size: usize);
        /// Makes an initialised string refer to `size` bytes at `src`, which must outlive it.
        optional fn TF_StringAssignView(dst: *mut TF_TString, src: *const c_char, size: usize);
        /// Returns the bytes, not NUL-terminated. Borrowed from the string until its next change.
        optional fn TF_StringGetDataPointer(tstr: *const TF_TString) -> *const c_char;
        /// Returns how the string holds its bytes.
        optional fn TF_StringGetType(str: *const TF_TString) -> TF_TString_Type;
        /// Returns the length in bytes.
        optional fn TF_StringGetSize(tstr: *const TF_TString) -> usize;
        /// Returns the length in bytes up to which the string can grow without an allocation.
        optional fn TF_StringGetCapacity(str: *const TF_TString) -> usize;
        /// Frees what the string owns and makes it empty.
        optional fn TF_StringDealloc(tstr: *mut TF_TString);
    }
}
