//! What the Rust compiler makes of the declarations: the build script generates a call of these for
//! each of them.

use std::mem::{MaybeUninit, size_of};

/// Sizes, offsets and values of one set of sources.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Structs and unions.
    pub records: Vec<MeasuredRecord>,
    /// Constants: name and value.
    pub constants: Vec<(&'static str, i128)>,
    /// Functions that fill a record: name, and the record's bytes after the call on one in which each
    /// byte was [`GARBAGE`].
    pub filled: Vec<(&'static str, Vec<u8>)>,
}

/// A struct or union.
#[derive(Clone, Debug)]
pub struct MeasuredRecord {
    /// Its name.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// Its fields.
    pub fields: Vec<MeasuredField>,
}

/// A field.
#[derive(Clone, Debug)]
pub struct MeasuredField {
    /// Its name.
    pub name: &'static str,
    /// Its offset in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
}

/// The byte that a record is filled with before a function fills it.
pub const GARBAGE: u8 = 0xa5;

impl Measured {
    /// The record of this name.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<&MeasuredRecord> {
        self.records.iter().find(|record| record.name == name)
    }
}

/// Size of the union field that `make` initialises.
pub fn field_size<F, U>(_make: impl FnOnce(F) -> U) -> usize {
    size_of::<F>()
}

/// The bytes that `fill` leaves behind in a garbage-filled `T`.
///
/// # Safety
/// `T` must be a `#[repr(C)]` struct of integers and raw pointers, for which any bytes are a value.
pub unsafe fn filled_by<T>(fill: impl FnOnce(&mut T)) -> Vec<u8> {
    let mut record = MaybeUninit::<T>::uninit();
    let bytes = record.as_mut_ptr().cast::<u8>();
    // SAFETY: the size is that of the allocation; any bytes are a `T` (the caller's promise); all bytes
    // are initialised, and stores to fields leave the padding as it is.
    unsafe {
        bytes.write_bytes(GARBAGE, size_of::<T>());
        fill(&mut *bytes.cast::<T>());
        std::slice::from_raw_parts(bytes, size_of::<T>()).to_vec()
    }
}
