//! `tensorflow/c/kernels_experimental.h`: variables and variants in kernels.
//!
//! TensorFlow 2.19 to 2.21 declares these functions and exports none of them, so each is optional. 2.22 exports them again.

use crate::datatype::TF_DataType;
use crate::kernels::{Construction, Context};
use crate::layout::{Status, Text};
use crate::string_view::TF_StringView;
use crate::tensor::Tensor;
use core::ffi::c_int;

type LockHolder = *mut TF_VariableInputLockHolder;

crate::layout::opaque! {
    /// Locks on variables that a kernel holds. Opaque; freed by `TF_ReleaseVariableInputLockHolder`.
    pub struct TF_VariableInputLockHolder;

    /// Opaque. The header names it, and no function of it uses it.
    pub struct TF_CoordinationServiceAgent;
}

/// A plugin's function that copies `source` to `dest`, both of one type and shape. It owns both and
/// deletes them.
pub type TF_CopyTensorFn = Option<unsafe extern "C" fn(ctx: Context, source: Tensor, dest: Tensor)>;

crate::layout::host_functions! {
    /// The functions of `kernels_experimental.h`, in `libtensorflow_framework.so.2` up to TensorFlow
    /// 2.18.
    ///
    /// Each tensor that a callback gets is the callback's to delete. Those of `TF_AddNVariant` and `TF_ZerosLikeVariant` are
    /// not since 2.22, which deletes them itself, although the header still gives them to the callback.
    pub struct KernelExperimentalFunctions {
        /// Assigns an input to a resource variable. With `validate_shape` a variable that has a value
        /// keeps its shape. `copy_func` runs if the buffer cannot be passed on. An error may be in the
        /// context only: then `status` stays `TF_OK`, and the kernel just returns.
        optional fn TF_AssignVariable(
            ctx: Context, input_index: c_int, value_index: c_int, validate_shape: bool, copy_func: TF_CopyTensorFn,
            status: Status
        );
        /// Assigns an input to a reference variable.
        optional fn TF_AssignRefVariable(
            ctx: Context, input_ref_index: c_int, output_ref_index: c_int, value_index: c_int, use_locking: bool,
            validate_shape: bool, copy_func: TF_CopyTensorFn, status: Status
        );
        /// Changes a resource variable in place: `update_func` gets the variable's tensor, the value and
        /// `op`, a number that the caller chooses. Errors as in `TF_AssignVariable`. **Aborts the
        /// process** if there is no such variable.
        optional fn TF_AssignUpdateVariable(
            ctx: Context, input_index: c_int, value_index: c_int, op: c_int, is_variant_type: c_int,
            copy_func: TF_CopyTensorFn,
            update_func: Option<unsafe extern "C" fn(ctx: Context, tensor: Tensor, value: Tensor, op: c_int)>,
            status: Status
        );
        /// Creates a temporary variable by a function of the plugin. Not before TensorFlow 2.15.
        optional fn TF_TemporaryVariable(
            ctx: Context, dtype: TF_DataType, dims: *const i64, num_dims: c_int, var_name: *mut TF_StringView,
            plugin_allocator: Option<unsafe extern "C" fn(
                ctx: Context, tensor: Tensor, dtype: TF_DataType, dims: *const i64, num_dims: c_int, status: Status
            )>,
            status: Status
        );
        /// Frees a temporary variable. Not before TensorFlow 2.15.
        optional fn TF_DestroyTemporaryVariable(ctx: Context, index: c_int, var_name: *mut TF_StringView, status: Status);
        /// Locks the variables at `len` input indices, always in the same order. The result is freed by
        /// [`TF_ReleaseVariableInputLockHolder`](Self::TF_ReleaseVariableInputLockHolder) once the
        /// work is enqueued.
        optional fn TF_MaybeLockVariableInputMutexesInOrder(
            ctx: Context, do_lock: bool, sparse: bool, inputs: *const c_int, len: usize, copy_func: TF_CopyTensorFn,
            lock_holder: *mut LockHolder, status: Status
        );
        /// Fills in the tensor of a variable, for reading and writing in place.
        optional fn TF_GetInputTensorFromVariable(
            ctx: Context, input: c_int, lock_held: bool, is_variant_type: bool, sparse: bool, copy_func: TF_CopyTensorFn,
            out: *mut Tensor, status: Status
        );
        /// Passes a reference variable to an output.
        optional fn TF_OpKernelContext_ForwardRefInputToRefOutput(ctx: Context, input_index: i32, output_index: i32);
        /// Unlocks the variables and frees the holder.
        optional fn TF_ReleaseVariableInputLockHolder(lock_holder: LockHolder);
        /// Fills in an input by its name.
        optional fn TF_GetInputByName(ctx: Context, input_name: Text, tensor: *mut Tensor, status: Status);
        /// Reads an attribute that is a shape into `num_dims` elements, -1 for an unknown dimension.
        /// `TF_OpKernelConstruction_GetAttrSize` says how many there are.
        optional fn TF_OpKernelConstruction_GetAttrTensorShape(
            ctx: Construction, attr_name: Text, dims: *mut i64, num_dims: usize, status: Status
        );
        /// Returns whether an input is a reference.
        optional fn TF_IsRefInput(ctx: Context, i: c_int, status: Status) -> bool;
        /// Adds up inputs that are variants, two tensors at a time by a function of the plugin.
        optional fn TF_AddNVariant(
            ctx: Context, binary_add_func: Option<unsafe extern "C" fn(ctx: Context, a: Tensor, b: Tensor, out: Tensor)>,
            status: Status
        );
        /// Creates zeros for an input that is a variant, one tensor at a time by a function of the
        /// plugin.
        optional fn TF_ZerosLikeVariant(ctx: Context, zeros_like_func: TF_CopyTensorFn, status: Status);
    }
}
