//! Structs in the host's memory, with guard bytes behind them, and the names in them.

use crate::violations::Log;
use core::ffi::CStr;
use core::marker::PhantomData;
use se_plugin::__private::testing::versions::{self, Versioned};
use se_plugin::{Error, Result};

/// Defines the sizes and the version that a host shows; the default is those of this SDK.
macro_rules! sizes {
    ($name:ident { $($field:ident: $type:ident,)* } $major:expr $(, $(#[$doc:meta])* $flag:ident)?) => {
        /// The sizes and the version that the host shows.
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $(#[doc = concat!("The size of `", stringify!($type), "`.")] pub $field: usize,)*
            /// The major version.
            pub major: i32,
            $($(#[$doc])* pub $flag: bool,)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $type::STRUCT_SIZE,)* major: $major, $($flag: false)? }
            }
        }
    };
}
pub(super) use sizes;

/// The value of the guard bytes.
const GUARD: u8 = 0xa5;
/// How many guard bytes there are behind the largest struct.
const GUARDS: usize = 128;

/// A struct in the host's memory, of `struct_size` bytes.
pub(super) struct Guarded<T> {
    pub(super) words: Vec<u64>,
    size: usize,
    record: PhantomData<T>,
}

impl<T: Versioned> Guarded<T> {
    pub(super) fn new(size: usize) -> Self {
        let words = (size.max(size_of::<T>()) + GUARDS) / 8;
        let mut new =
            Self { words: vec![u64::from_ne_bytes([GUARD; 8]); words], size, record: PhantomData };
        new.bytes()[..size].fill(0);
        new.words[0] = size as u64;
        new
    }

    /// Creates a struct of `size` bytes, which says that it has this size, with as much of `whole` as fits.
    pub(super) fn holding(size: usize, whole: &T) -> Self {
        let mut new = Self::new(size);
        // SAFETY: memory of the host's.
        unsafe {
            let _ = versions::fill(new.as_mut_ptr(), whole);
        }
        new.words[0] = size as u64;
        new
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = self.words.len() * 8;
        // SAFETY: all of the vector, as bytes.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), len) }
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut T {
        self.words.as_mut_ptr().cast()
    }

    /// Checks the guard bytes, and returns the struct.
    pub(super) fn take(&mut self, log: &Log, op: &'static str) -> Result<T> {
        let size = self.size.max(8);
        if self.bytes()[size..].iter().any(|&byte| byte != GUARD) {
            log.add(
                op,
                T::NAME.as_bytes(),
                format!("the plugin wrote behind the {size} bytes of the struct: over TensorFlow's stack"),
            );
        }
        // SAFETY: the memory is a struct of `struct_size` bytes; were that too large now, `read` would
        // still stay within the fields of `T`, which all lie in the memory.
        Ok(unsafe { versions::read(self.as_mut_ptr()) }?)
    }
}

/// Checks that a plugin may register this name, and returns it.
///
/// # Safety
/// `text` must be null or a C string.
pub(super) unsafe fn check_name(text: *const core::ffi::c_char) -> Result<String> {
    assert!(!text.is_null(), "the SDK names each platform");
    // SAFETY: `text` is not null, and so a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    let fits = text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if !fits {
        return Err(Error::failed_precondition(format!(
            "Device name/type '{text}' must match [A-Z][A-Z_]*."
        )));
    }
    Ok(text)
}
