//! `tensorflow/c/c_api_macros.h`: what the other headers have in common.

/// A boolean of C, one byte: 0 is false, anything else true. Unlike `bool` it may hold any value, so
/// that what the other side wrote can be read without harm.
pub type TF_Bool = core::ffi::c_uchar;
