//! `tensorflow/c/tf_tensor.h`: tensors.

use crate::c_api_macros::TF_Bool;
use crate::datatype::TF_DataType;
use crate::layout::Status;
use core::ffi::{c_int, c_void};

pub(crate) type Tensor = *mut TF_Tensor;

crate::layout::records! {
    /// How a tensor's memory is to be allocated. The host refuses a `struct_size` of 0 with `TF_INVALID_ARGUMENT`.
    pub struct TF_AllocatorAttributes, TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE {
        /// Whether the memory is to be the host's rather than the device's.
        pub on_host: TF_Bool,
    }
}

crate::layout::opaque! {
    /// An array of elements of one type, row by row, in host or device memory. Opaque; only ever behind a
    /// pointer. It refers to a buffer that several tensors may share.
    ///
    /// The caller of a function that returns a `TF_Tensor*` owns it and frees it with `TF_DeleteTensor`.
    pub struct TF_Tensor;
}

/// Frees the `len` bytes of a tensor that `TF_NewTensor` was given; `arg` is what it was given with
/// them.
pub type TF_TensorDeallocator =
    Option<unsafe extern "C" fn(data: *mut c_void, len: usize, arg: *mut c_void)>;

crate::layout::host_functions! {
    /// The functions of `tf_tensor.h`, in `libtensorflow_framework.so.2`.
    pub struct TensorFunctions {
        /// Creates a tensor from memory that the caller provides: `len` bytes at `data`, which
        /// `deallocator` frees with the tensor's last reference. Memory that is not aligned is
        /// copied and freed at once. Returns null, after a call of `deallocator`, if `len` is too
        /// small for type and shape; a greater one is the size of the tensor.
        required fn TF_NewTensor(
            data_type: TF_DataType, dims: *const i64, num_dims: c_int, data: *mut c_void, len: usize,
            deallocator: TF_TensorDeallocator, deallocator_arg: *mut c_void
        ) -> Tensor;
        /// Returns the alignment in bytes that memory for `TF_NewTensor` should have. Not before
        /// TensorFlow 2.17.
        optional fn TF_TensorDefaultAlignment() -> usize;
        /// Creates a tensor in host memory, `len` bytes, not initialised.
        required fn TF_AllocateTensor(data_type: TF_DataType, dims: *const i64, num_dims: c_int, len: usize) -> Tensor;
        /// Moves the content of `tensor` to a new tensor, and deletes `tensor`. If that is not
        /// possible, returns null, and `tensor` stays.
        required fn TF_TensorMaybeMove(tensor: Tensor) -> Tensor;
        /// Frees a tensor, and its memory with the last tensor that refers to it; null is allowed.
        required fn TF_DeleteTensor(tensor: Tensor);
        /// Returns the type of the elements.
        required fn TF_TensorType(tensor: *const TF_Tensor) -> TF_DataType;
        /// Sets the shape.
        required fn TF_SetShape(tensor: Tensor, dims: *const i64, num_dims: c_int);
        /// Returns the number of dimensions.
        required fn TF_NumDims(tensor: *const TF_Tensor) -> c_int;
        /// Returns the length of one dimension. The index must be at least 0 and below `TF_NumDims`.
        required fn TF_Dim(tensor: *const TF_Tensor, dim_index: c_int) -> i64;
        /// Returns the size of the content in bytes.
        required fn TF_TensorByteSize(tensor: *const TF_Tensor) -> usize;
        /// Returns the address of the first byte, in host or device memory; may be null in a tensor
        /// without elements. Borrowed from the tensor.
        required fn TF_TensorData(tensor: *const TF_Tensor) -> *mut c_void;
        /// Returns the number of elements.
        required fn TF_TensorElementCount(tensor: *const TF_Tensor) -> i64;
        /// Makes `to` a tensor of another type and shape over the memory of `from`.
        /// `TF_INVALID_ARGUMENT` if the sizes in bytes differ, or an element of either type has no
        /// fixed size.
        required fn TF_TensorBitcastFrom(
            from: *const TF_Tensor, data_type: TF_DataType, to: Tensor, new_dims: *const i64, num_new_dims: c_int,
            status: Status
        );
        /// Returns whether the memory is aligned as TensorFlow prefers it.
        required fn TF_TensorIsAligned(tensor: *const TF_Tensor) -> bool;
    }
}
