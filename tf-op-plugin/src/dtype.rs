//! Types of elements.

use core::fmt;
use tf_fs_sys as sys;
use tf_plugin_core::{Code, Error, Result};

macro_rules! data_types {
    ($($(#[$doc:meta])* $name:ident = $raw:ident, $text:literal, $size:expr;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum DType {
            $($(#[$doc])* $name = sys::$raw,)*
        }

        impl DType {
            /// All types that this SDK knows.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the type with this number, or `None` if this SDK does not know it.
            #[must_use]
            #[inline]
            pub fn from_raw(raw: sys::TF_DataType) -> Option<Self> {
                match raw {
                    $(sys::$raw => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns Python's name, as in `tf.float32`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns the size of an element in bytes, or `None` if it is not plain bytes.
            #[must_use]
            pub const fn size(self) -> Option<usize> {
                match self {
                    $(Self::$name => $size,)*
                }
            }
        }
    };
}

data_types! {
    /// 32-bit float.
    Float32 = TF_FLOAT, "float32", Some(4);
    /// 64-bit float.
    Float64 = TF_DOUBLE, "float64", Some(8);
    /// Signed 32-bit integer. TensorFlow keeps most tensors of this type in host memory.
    Int32 = TF_INT32, "int32", Some(4);
    /// Unsigned 8-bit integer.
    Uint8 = TF_UINT8, "uint8", Some(1);
    /// Signed 16-bit integer.
    Int16 = TF_INT16, "int16", Some(2);
    /// Signed 8-bit integer.
    Int8 = TF_INT8, "int8", Some(1);
    /// Byte strings, always in host memory.
    String = TF_STRING, "string", None;
    /// A pair of 32-bit floats.
    Complex64 = TF_COMPLEX64, "complex64", Some(8);
    /// Signed 64-bit integer.
    Int64 = TF_INT64, "int64", Some(8);
    /// One byte, 0 or 1.
    Bool = TF_BOOL, "bool", Some(1);
    /// Quantized signed 8-bit integer.
    Qint8 = TF_QINT8, "qint8", Some(1);
    /// Quantized unsigned 8-bit integer.
    Quint8 = TF_QUINT8, "quint8", Some(1);
    /// Quantized signed 32-bit integer.
    Qint32 = TF_QINT32, "qint32", Some(4);
    /// The upper half of a 32-bit float.
    Bfloat16 = TF_BFLOAT16, "bfloat16", Some(2);
    /// Quantized signed 16-bit integer.
    Qint16 = TF_QINT16, "qint16", Some(2);
    /// Quantized unsigned 16-bit integer.
    Quint16 = TF_QUINT16, "quint16", Some(2);
    /// Unsigned 16-bit integer.
    Uint16 = TF_UINT16, "uint16", Some(2);
    /// A pair of 64-bit floats.
    Complex128 = TF_COMPLEX128, "complex128", Some(16);
    /// 16-bit float.
    Float16 = TF_HALF, "float16", Some(2);
    /// A handle, such as that of a variable; always in host memory.
    Resource = TF_RESOURCE, "resource", None;
    /// An object of TensorFlow's, such as a list of tensors; always in host memory.
    Variant = TF_VARIANT, "variant", None;
    /// Unsigned 32-bit integer.
    Uint32 = TF_UINT32, "uint32", Some(4);
    /// Unsigned 64-bit integer.
    Uint64 = TF_UINT64, "uint64", Some(8);
    /// 8-bit float with 5 bits of exponent.
    Float8E5m2 = TF_FLOAT8_E5M2, "float8_e5m2", Some(1);
    /// 8-bit float with 4 bits of exponent and no infinity.
    Float8E4m3fn = TF_FLOAT8_E4M3FN, "float8_e4m3fn", Some(1);
    /// Signed 4-bit integer, in a byte. Since TensorFlow 2.15.
    Int4 = TF_INT4, "int4", Some(1);
    /// Unsigned 4-bit integer, in a byte. Since TensorFlow 2.15.
    Uint4 = TF_UINT4, "uint4", Some(1);
}

impl DType {
    /// Returns the number that crosses the C boundary.
    #[must_use]
    pub const fn as_raw(self) -> sys::TF_DataType {
        self as sys::TF_DataType
    }

    /// Returns the type with this number, or an error that names the number if this SDK does not know it.
    #[doc(hidden)]
    pub fn known_or_error(raw: sys::TF_DataType) -> Result<Self> {
        let unknown = || format!("this SDK does not know the type {raw} of elements");
        Self::from_raw(raw).ok_or_else(|| Error::new(Code::Unimplemented, unknown()))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
