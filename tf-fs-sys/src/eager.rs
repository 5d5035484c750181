//! The functions of `tensorflow/c/eager/c_api.h` by which a program runs operations one by one.

#[cfg(feature = "host")]
use crate::client::TF_DeviceList;
#[cfg(feature = "host")]
use crate::datatype::TF_DataType;
#[cfg(feature = "host")]
use crate::status::TF_Status;
#[cfg(feature = "host")]
use crate::tensor::TF_Tensor;
#[cfg(feature = "host")]
use core::ffi::{c_char, c_int, c_uchar, c_void};
use core::marker::{PhantomData, PhantomPinned};

/// How a context is made. Opaque.
#[repr(C)]
pub struct TFE_ContextOptions {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Where operations run. Opaque.
#[repr(C)]
pub struct TFE_Context {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// An operation, its arguments and attributes. Opaque.
#[repr(C)]
pub struct TFE_Op {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A tensor on a device, or one that is not computed yet. Opaque.
#[repr(C)]
pub struct TFE_TensorHandle {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
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
        /// The device of the operation that gave it. Borrowed from the handle.
        required fn TFE_TensorHandleDeviceName(
            h: *mut TFE_TensorHandle,
            status: *mut TF_Status,
        ) -> *const c_char;
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
        /// Sets an attribute that is a text.
        required fn TFE_OpSetAttrString(
            op: *mut TFE_Op,
            attr_name: *const c_char,
            value: *const c_void,
            length: usize,
        );
        /// Sets an attribute that is a number.
        required fn TFE_OpSetAttrInt(op: *mut TFE_Op, attr_name: *const c_char, value: i64);
        /// Sets an attribute that is 0 or 1.
        required fn TFE_OpSetAttrBool(op: *mut TFE_Op, attr_name: *const c_char, value: c_uchar);
        /// Sets an attribute that is a type.
        required fn TFE_OpSetAttrType(op: *mut TFE_Op, attr_name: *const c_char, value: TF_DataType);
        /// Sets an attribute that is a shape.
        required fn TFE_OpSetAttrShape(
            op: *mut TFE_Op,
            attr_name: *const c_char,
            dims: *const i64,
            num_dims: c_int,
            out_status: *mut TF_Status,
        );
        /// Sets an attribute that is a list of types.
        required fn TFE_OpSetAttrTypeList(
            op: *mut TFE_Op,
            attr_name: *const c_char,
            values: *const TF_DataType,
            num_values: c_int,
        );
        /// Sets an attribute that is a list of shapes.
        required fn TFE_OpSetAttrShapeList(
            op: *mut TFE_Op,
            attr_name: *const c_char,
            dims: *mut *const i64,
            num_dims: *const c_int,
            num_values: c_int,
            out_status: *mut TF_Status,
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
