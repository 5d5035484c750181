//! Which bytes are values.

/// A type of elements that is plain bytes, as TensorFlow has them in host memory.
///
/// # Safety
/// Zeros are a value. All bytes for which [`are_valid`](Self::are_valid) holds are values, without padding,
/// and aligned at most as `u64`.
pub unsafe trait Plain: Sized {
    /// Whether these bytes, of whole elements, are values.
    #[doc(hidden)]
    fn are_valid(bytes: &[u8]) -> bool {
        let _ = bytes;
        true
    }
}

macro_rules! plain {
    ($($(#[$attribute:meta])* $element:ty),* $(,)?) => {$(
        $(#[$attribute])*
        // SAFETY: any bytes are a number.
        unsafe impl Plain for $element {}
    )*};
}

plain!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);
#[cfg(feature = "half")]
plain!(half::f16, half::bf16);

// SAFETY: 0 is `false`, and other bytes than 0 and 1 are not valid.
unsafe impl Plain for bool {
    // `tf.io.decode_raw` makes others.
    fn are_valid(bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| byte <= 1)
    }
}
