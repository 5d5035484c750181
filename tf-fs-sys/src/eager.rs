//! The functions of `tensorflow/c/eager/c_api.h` by which a program runs operations one by one.

use crate::datatype::TF_DataType;
use crate::device_list::TF_DeviceList;
use crate::layout::{Status, Text};
use crate::tensor::{TF_Tensor, Tensor};
use core::ffi::c_int;

type EagerContext = *mut TFE_Context;
type Op = *mut TFE_Op;
type Handle = *mut TFE_TensorHandle;

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

crate::layout::host_functions! {
    /// Operations, run as they come, in `libtensorflow_cc.so.2`. Names are NUL-terminated.
    pub struct EagerFunctions {
        /// New options.
        required fn TFE_NewContextOptions() -> *mut TFE_ContextOptions;
        /// Frees options.
        required fn TFE_DeleteContextOptions(options: *mut TFE_ContextOptions);
        /// A context with all devices of the process; null with another status than `TF_OK`.
        required fn TFE_NewContext(opts: *const TFE_ContextOptions, status: Status) -> EagerContext;
        /// Frees a context, of which nothing is used any more.
        required fn TFE_DeleteContext(ctx: EagerContext);
        /// Its devices, for `TF_DeleteDeviceList` to free.
        required fn TFE_ContextListDevices(ctx: EagerContext, status: Status) -> *mut TF_DeviceList;
        /// A handle of a tensor in host memory, of which it takes a share.
        required fn TFE_NewTensorHandle(t: *const TF_Tensor, status: Status) -> Handle;
        /// Frees a handle.
        required fn TFE_DeleteTensorHandle(h: Handle);
        /// The device in whose memory it is. Borrowed from the handle.
        required fn TFE_TensorHandleBackingDeviceName(h: Handle, status: Status) -> Text;
        /// Waits for the tensor and copies it to the host. It belongs to the caller.
        required fn TFE_TensorHandleResolve(h: Handle, status: Status) -> Tensor;
        /// A handle of a copy on another device.
        required fn TFE_TensorHandleCopyToDevice(h: Handle, ctx: EagerContext, device_name: Text, status: Status) -> Handle;
        /// An operation of this name.
        required fn TFE_NewOp(ctx: EagerContext, op_or_function_name: Text, status: Status) -> Op;
        /// Frees an operation.
        required fn TFE_DeleteOp(op: Op);
        /// Says where it has to run.
        required fn TFE_OpSetDevice(op: Op, device_name: Text, status: Status);
        /// Adds an argument.
        required fn TFE_OpAddInput(op: Op, input: Handle, status: Status);
        /// Sets an attribute that is a list of types.
        required fn TFE_OpSetAttrTypeList(op: Op, attr_name: Text, values: *const TF_DataType, num_values: c_int);
        /// Runs an operation. `num_retvals` is the room at `retvals`, and then the number of tensors that came,
        /// which belong to the caller.
        required fn TFE_Execute(op: Op, retvals: *mut Handle, num_retvals: *mut c_int, status: Status);
    }
}
