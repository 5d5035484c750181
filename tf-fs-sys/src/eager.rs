//! The functions of `tensorflow/c/eager/c_api.h` and `c_api_experimental.h` by which a program runs operations one by one.

use crate::datatype::TF_DataType;
use crate::device_list::TF_DeviceList;
use crate::layout::{Status, Text};
use crate::tensor::{TF_Tensor, Tensor};
use core::ffi::{c_char, c_int, c_void};

type EagerContext = *mut TFE_Context;
type Op = *mut TFE_Op;
type Handle = *mut TFE_TensorHandle;

crate::layout::opaque! {
    /// Options for creating a context. Opaque.
    pub struct TFE_ContextOptions;

    /// Where operations run. Opaque.
    pub struct TFE_Context;

    /// An operation, its arguments and attributes. Opaque.
    pub struct TFE_Op;

    /// A tensor on a device, or one that is not computed yet. Opaque.
    pub struct TFE_TensorHandle;
}

crate::layout::host_functions! {
    /// Operations that run one by one, in `libtensorflow_cc.so.2`. Names are NUL-terminated.
    pub struct EagerFunctions {
        /// Creates options.
        required fn TFE_NewContextOptions() -> *mut TFE_ContextOptions;
        /// Frees options.
        required fn TFE_DeleteContextOptions(options: *mut TFE_ContextOptions);
        /// Sets the configuration of a context, a serialised `ConfigProto`.
        required fn TFE_ContextOptionsSetConfig(
            options: *mut TFE_ContextOptions, proto: *const c_void, proto_len: usize, status: Status
        );
        /// Creates a context with all devices of the process; null with another status than `TF_OK`.
        required fn TFE_NewContext(opts: *const TFE_ContextOptions, status: Status) -> EagerContext;
        /// Frees a context that is not used any more.
        required fn TFE_DeleteContext(ctx: EagerContext);
        /// Returns its devices, for `TF_DeleteDeviceList` to free.
        required fn TFE_ContextListDevices(ctx: EagerContext, status: Status) -> *mut TF_DeviceList;
        /// Adds a function, a serialised `FunctionDef`.
        required fn TFE_ContextAddFunctionDef(
            ctx: EagerContext, serialized_function_def: *const c_char, size: usize, status: Status
        );
        /// Creates a handle of a tensor in host memory, whose buffer it shares.
        required fn TFE_NewTensorHandle(t: *const TF_Tensor, status: Status) -> Handle;
        /// Frees a handle.
        required fn TFE_DeleteTensorHandle(h: Handle);
        /// Returns the name of the device in whose memory it is. Borrowed from the handle.
        required fn TFE_TensorHandleBackingDeviceName(h: Handle, status: Status) -> Text;
        /// Waits for the tensor and copies it to the host. The copy belongs to the caller.
        required fn TFE_TensorHandleResolve(h: Handle, status: Status) -> Tensor;
        /// Creates a handle of a copy on another device.
        required fn TFE_TensorHandleCopyToDevice(h: Handle, ctx: EagerContext, device_name: Text, status: Status) -> Handle;
        /// Creates an operation of this name.
        required fn TFE_NewOp(ctx: EagerContext, op_or_function_name: Text, status: Status) -> Op;
        /// Frees an operation.
        required fn TFE_DeleteOp(op: Op);
        /// Sets the device on which it has to run.
        required fn TFE_OpSetDevice(op: Op, device_name: Text, status: Status);
        /// Adds an argument.
        required fn TFE_OpAddInput(op: Op, input: Handle, status: Status);
        /// Sets an attribute that is a list of types.
        required fn TFE_OpSetAttrTypeList(op: Op, attr_name: Text, values: *const TF_DataType, num_values: c_int);
        /// Sets an attribute, a serialised `AttrValue`.
        required fn TFE_OpSetAttrValueProto(
            op: *const TFE_Op, attr_name: Text, proto: *const c_void, proto_len: usize, status: Status
        );
        /// Runs an operation. `num_retvals` is the number of places at `retvals`, and becomes the
        /// number of results, which belong to the caller.
        required fn TFE_Execute(op: Op, retvals: *mut Handle, num_retvals: *mut c_int, status: Status);
    }
}
