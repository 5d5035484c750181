//! The functions of `tensorflow/c/eager/c_api.h` by which a program runs operations one by one.

#[cfg(feature = "host")]
use crate::datatype::TF_DataType;
#[cfg(feature = "host")]
use crate::device_list::TF_DeviceList;
#[cfg(feature = "host")]
use crate::status::TF_Status;
#[cfg(feature = "host")]
use crate::tensor::TF_Tensor;
#[cfg(feature = "host")]
use core::ffi::{c_char, c_int};

crate::layout::opaque! {
    /// How a context is made. Opaque.
    pub struct TFE_ContextOptions;

    /// Where operations run. Opaque.
    pub struct TFE_Context;

    /// An operation, its arguments and attributes. Opaque.
    pub struct TFE_Op;

    /// A tensor on a device, or one that is not computed yet. Opaque.
    pub struct TFE_TensorHandle;
}

#[cfg(feature = "host")]
crate::host::host_functions! {
    /// Operations, run as they come, in `libtensorflow_cc.so.2`. Names are NUL-terminated.
    pub struct EagerFunctions {
        /// New options.
        required fn TFE_NewContextOptions() -> *mut TFE_ContextOptions;
        /// Frees options.
        required fn TFE_DeleteContextOptions(options: *mut TFE_ContextOptions);
        /// A context with all devices of the process; null with another status than `TF_OK`.
        required fn TFE_NewContext(
            opts: *const TFE_ContextOptions,
            status: *mut TF_Status,
        ) -> *mut TFE_Context;
        /// Frees a context, of which nothing is used any more.
        required fn TFE_DeleteContext(ctx: *mut TFE_Context);
        /// Its devices, for `TF_DeleteDeviceList` to free.
        required fn TFE_ContextListDevices(
            ctx: *mut TFE_Context,
            status: *mut TF_Status,
        ) -> *mut TF_DeviceList;
        /// A handle of a tensor in host memory, of which it takes a share.
        required fn TFE_NewTensorHandle(
            t: *const TF_Tensor,
            status: *mut TF_Status,
        ) -> *mut TFE_TensorHandle;
        /// Frees a handle.
        required fn TFE_DeleteTensorHandle(h: *mut TFE_TensorHandle);
        /// The device in whose memory it is. Borrowed from the handle.
        required fn TFE_TensorHandleBackingDeviceName(
            h: *mut TFE_TensorHandle,
            status: *mut TF_Status,
        ) -> *const c_char;
        /// Waits for the tensor and copies it to the host. It belongs to the caller.
        required fn TFE_TensorHandleResolve(
            h: *mut TFE_TensorHandle,
            status: *mut TF_Status,
        ) -> *mut TF_Tensor;
        /// A handle of a copy on another device.
        required fn TFE_TensorHandleCopyToDevice(
            h: *mut TFE_TensorHandle,
            ctx: *mut TFE_Context,
            device_name: *const c_char,
            status: *mut TF_Status,
        ) -> *mut TFE_TensorHandle;
        /// An operation of this name.
        required fn TFE_NewOp(
            ctx: *mut TFE_Context,
            op_or_function_name: *const c_char,
            status: *mut TF_Status,
        ) -> *mut TFE_Op;
        /// Frees an operation.
        required fn TFE_DeleteOp(op: *mut TFE_Op);
        /// Says where it has to run.
        required fn TFE_OpSetDevice(
            op: *mut TFE_Op,
            device_name: *const c_char,
            status: *mut TF_Status,
        );
        /// Adds an argument.
        required fn TFE_OpAddInput(
            op: *mut TFE_Op,
            input: *mut TFE_TensorHandle,
            status: *mut TF_Status,
        );
        /// Sets an attribute that is a list of types.
        required fn TFE_OpSetAttrTypeList(
            op: *mut TFE_Op,
            attr_name: *const c_char,
            values: *const TF_DataType,
            num_values: c_int,
        );
        /// Runs an operation. `num_retvals` is the room at `retvals`, and then the number of tensors that came,
        /// which belong to the caller.
        required fn TFE_Execute(
            op: *mut TFE_Op,
            retvals: *mut *mut TFE_TensorHandle,
            num_retvals: *mut c_int,
            status: *mut TF_Status,
        );
    }
}
