//! `ctstring_internal.h`: the string that is an element of a tensor of strings.

/// How a [`TF_TString`] holds its bytes: one of the constants below.
pub type TF_TString_Type = core::ffi::c_uint;
/// Inside the struct itself.
pub const TF_TSTR_SMALL: TF_TString_Type = 0;
/// In memory that the string owns.
pub const TF_TSTR_LARGE: TF_TString_Type = 1;
/// At an offset from the struct, as in a mapped file.
pub const TF_TSTR_OFFSET: TF_TString_Type = 2;
/// In memory that another value owns.
pub const TF_TSTR_VIEW: TF_TString_Type = 3;
/// The bits of a string's first byte that hold its type.
pub const TF_TSTR_TYPE_MASK: TF_TString_Type = 3;

/// An element of a tensor of type [`TF_STRING`](crate::datatype::TF_STRING).
///
/// The storage is private because its use changes between releases (2.21 has a counted reference
/// where 2.20 has nothing); the functions of the module `tstring` read and write it.
/// It must not be moved by copying its bytes while a function still uses the old address.
#[repr(C)]
#[derive(Debug)]
pub struct TF_TString {
    _storage: [u64; 3],
}
