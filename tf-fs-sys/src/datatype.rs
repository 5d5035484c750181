//! `tensorflow/c/tf_datatype.h`: the types of a tensor's elements.

/// Type of an element of a tensor, as in TensorFlow's `types.proto`.
///
/// An integer, not an enum: releases add values, and a host may send one that this crate does not
/// know. The constants are those of TensorFlow 2.21; each says since when it exists where that is
/// later than 2.12.
pub type TF_DataType = core::ffi::c_uint;

/// 32-bit float.
pub const TF_FLOAT: TF_DataType = 1;
/// 64-bit float.
pub const TF_DOUBLE: TF_DataType = 2;
/// Signed 32-bit integer. TensorFlow keeps most tensors of this type in host memory, with every
/// type of device.
pub const TF_INT32: TF_DataType = 3;
/// Unsigned 8-bit integer.
pub const TF_UINT8: TF_DataType = 4;
/// Signed 16-bit integer.
pub const TF_INT16: TF_DataType = 5;
/// Signed 8-bit integer.
pub const TF_INT8: TF_DataType = 6;
/// Byte strings; the elements are [`TF_TString`](crate::ctstring::TF_TString)s, always in host memory.
pub const TF_STRING: TF_DataType = 7;
/// A pair of 32-bit floats, real part first.
pub const TF_COMPLEX64: TF_DataType = 8;
/// The old name of [`TF_COMPLEX64`].
pub const TF_COMPLEX: TF_DataType = 8;
/// Signed 64-bit integer.
pub const TF_INT64: TF_DataType = 9;
/// One byte, 0 or 1.
pub const TF_BOOL: TF_DataType = 10;
/// Quantized signed 8-bit integer.
pub const TF_QINT8: TF_DataType = 11;
/// Quantized unsigned 8-bit integer.
pub const TF_QUINT8: TF_DataType = 12;
/// Quantized signed 32-bit integer.
pub const TF_QINT32: TF_DataType = 13;
/// The upper half of a 32-bit float.
pub const TF_BFLOAT16: TF_DataType = 14;
/// Quantized signed 16-bit integer.
pub const TF_QINT16: TF_DataType = 15;
/// Quantized unsigned 16-bit integer.
pub const TF_QUINT16: TF_DataType = 16;
/// Unsigned 16-bit integer.
pub const TF_UINT16: TF_DataType = 17;
/// A pair of 64-bit floats, real part first.
pub const TF_COMPLEX128: TF_DataType = 18;
/// IEEE 754 16-bit float.
pub const TF_HALF: TF_DataType = 19;
/// A handle to something that lives outside tensors, such as a variable. Always in host memory.
pub const TF_RESOURCE: TF_DataType = 20;
/// A C++ object of any type, such as a list of tensors. In host memory; what it holds may not be.
pub const TF_VARIANT: TF_DataType = 21;
/// Unsigned 32-bit integer.
pub const TF_UINT32: TF_DataType = 22;
/// Unsigned 64-bit integer.
pub const TF_UINT64: TF_DataType = 23;
/// 8-bit float with 5 bits of exponent and 2 of mantissa.
pub const TF_FLOAT8_E5M2: TF_DataType = 24;
/// 8-bit float with 4 bits of exponent and 3 of mantissa, two NaNs and no infinity.
pub const TF_FLOAT8_E4M3FN: TF_DataType = 25;
/// 8-bit float with 4 bits of exponent and 3 of mantissa, one NaN, no infinity and no negative zero.
/// Since TensorFlow 2.19.
pub const TF_FLOAT8_E4M3FNUZ: TF_DataType = 26;
/// As [`TF_FLOAT8_E4M3FNUZ`] with an exponent bias of 11. Since TensorFlow 2.19.
pub const TF_FLOAT8_E4M3B11FNUZ: TF_DataType = 27;
/// 8-bit float with 5 bits of exponent and 2 of mantissa, one NaN, no infinity and no negative zero.
/// Since TensorFlow 2.19.
pub const TF_FLOAT8_E5M2FNUZ: TF_DataType = 28;
/// Signed 4-bit integer. Since TensorFlow 2.15.
pub const TF_INT4: TF_DataType = 29;
/// Unsigned 4-bit integer. Since TensorFlow 2.15.
pub const TF_UINT4: TF_DataType = 30;
/// Signed 2-bit integer. Since TensorFlow 2.20.
pub const TF_INT2: TF_DataType = 31;
/// Unsigned 2-bit integer. Since TensorFlow 2.20.
pub const TF_UINT2: TF_DataType = 32;
/// 4-bit float with 2 bits of exponent and 1 of mantissa, neither NaN nor infinity. Since TensorFlow
/// 2.21.
pub const TF_FLOAT4_E2M1FN: TF_DataType = 33;

crate::layout::host_functions! {
    /// The function of `tf_datatype.h`, in `libtensorflow_framework.so.2`.
    pub struct DataTypeFunctions {
        /// Returns the size of an element in bytes; 0 for types of variable length, such as [`TF_STRING`],
        /// and for values that the host does not know.
        required fn TF_DataTypeSize(dt: TF_DataType) -> usize;
    }
}
