//! `tensorflow/c/kernels.h`: implementations of ops.
//!
//! Notes on behaviour say what TensorFlow 2.12 to 2.21 really does. `TF_GetRendezvous` (since 2.16) is
//! left out: it is for back ends that move tensors between devices by themselves.

use crate::buffer::TF_Buffer;
use crate::c_api_macros::TF_Bool;
use crate::datatype::TF_DataType;
use crate::layout::{Status, Text};
use crate::stream_executor::SP_Stream;
use crate::string_view::TF_StringView;
use crate::tensor::{TF_AllocatorAttributes, TF_Tensor, Tensor};
use core::ffi::{c_char, c_int, c_void};

pub(crate) type Context = *mut TF_OpKernelContext;
pub(crate) type Construction = *mut TF_OpKernelConstruction;
type KernelBuilder = *mut TF_KernelBuilder;

crate::layout::opaque! {
    /// A kernel that is being built. Opaque.
    pub struct TF_KernelBuilder;

    /// A node for which a kernel is being created: its attributes. Opaque; the host's, for the
    /// length of the call.
    pub struct TF_OpKernelConstruction;

    /// One run of a kernel: its inputs and outputs. Opaque; the host's, for the length of the call, or of an
    /// asynchronous kernel until it is done.
    pub struct TF_OpKernelContext;

    /// The callback by which an asynchronous kernel says that it is done. Opaque; consumed by
    /// `TF_RunAsyncOpKernelDoneCallback`.
    pub struct TF_AsyncOpKernelDoneCallback;
}

/// Creates the state of a kernel, for one node, and returns it. A failure is reported by
/// `TF_OpKernelConstruction_Failure`.
pub type TF_CreateKernelFn = Option<unsafe extern "C" fn(ctx: Construction) -> *mut c_void>;

/// Runs a kernel, with the state that the create function returned. Several threads run one kernel at
/// once. Must not be null: the host calls it without having checked.
pub type TF_ComputeKernelFn = Option<unsafe extern "C" fn(kernel: *mut c_void, ctx: Context)>;

/// Runs an asynchronous kernel. Exactly once, on this thread or another, `done` is passed to
/// `TF_RunAsyncOpKernelDoneCallback`: **before this function returns**. `done` points to the stack of the host's
/// caller, so that a later call crashes the process, although the header intends to allow it.
pub type TF_ComputeAsyncKernelFn = Option<
    unsafe extern "C" fn(
        kernel: *mut c_void,
        ctx: Context,
        done: *mut TF_AsyncOpKernelDoneCallback,
    ),
>;

/// Frees the state of a kernel, null if there was no create function.
pub type TF_DeleteKernelFn = Option<unsafe extern "C" fn(kernel: *mut c_void)>;

crate::layout::records! {
    /// Parameters and results of `TF_InputRange`; the caller sets `struct_size`.
    pub struct TF_InputRange_Args, TF_InputRange_Args_STRUCT_SIZE, r#priv {
        /// Result: the index of the first input of that name.
        pub start: c_int,
        /// Result: the index after the last input of that name.
        pub stop: c_int,
        /// A status of the caller, in which the host reports an error.
        pub status: Status,
    }
}

/// Type of the function `TF_InitKernel` that a plugin exports, in which it registers its kernels and
/// ops. It cannot report an error. A shared library that is filesystem and device has one for both.
pub type TF_InitKernelFn = unsafe extern "C" fn();

crate::layout::host_functions! {
    /// The functions of `kernels.h`, in `libtensorflow_framework.so.2`.
    ///
    /// Strings are NUL-terminated and copied. The caller deletes a `TF_Tensor*` or `TF_Buffer*`
    /// that a function returns or fills in. Indices count from 0; an index that is out of range is
    /// `TF_OUT_OF_RANGE` unless a note says otherwise.
    ///
    /// Attributes of a node are read by `TF_OpKernelConstruction_GetAttr…`. An attribute that is
    /// missing or has another type is an error. Lists are read into an array of at least `max_vals`
    /// elements; `TF_OpKernelConstruction_GetAttrSize` says how long they are.
    pub struct KernelFunctions {
        /// Says that an asynchronous kernel is done. Not before TensorFlow 2.13.
        optional fn TF_RunAsyncOpKernelDoneCallback(done: *mut TF_AsyncOpKernelDoneCallback);
        /// Starts a kernel for an op on a type of device. Freed by registering it or by
        /// [`TF_DeleteKernelBuilder`](Self::TF_DeleteKernelBuilder), never both.
        required fn TF_NewKernelBuilder(
            op_name: Text, device_name: Text, create_func: TF_CreateKernelFn, compute_func: TF_ComputeKernelFn,
            delete_func: TF_DeleteKernelFn
        ) -> KernelBuilder;
        /// Starts an asynchronous kernel. Not before TensorFlow 2.13.
        optional fn TF_NewAsyncKernelBuilder(
            op_name: Text, device_name: Text, create_func: TF_CreateKernelFn, compute_async_func: TF_ComputeAsyncKernelFn,
            delete_func: TF_DeleteKernelFn
        ) -> KernelBuilder;
        /// Restricts the kernel to one type in the given attribute. A type that the host does not know
        /// is `TF_UNIMPLEMENTED`; an attribute that the op does not have is only reported when the op
        /// runs.
        required fn TF_KernelBuilder_TypeConstraint(
            kernel_builder: KernelBuilder, attr_name: Text, data_type: TF_DataType, status: Status
        );
        /// Says that an input or output is in host memory. A name that the op does not have is only
        /// reported when the op runs. What is in host memory is read and written before `compute`
        /// returns.
        required fn TF_KernelBuilder_HostMemory(kernel_builder: KernelBuilder, arg_name: Text);
        /// Sets the priority: of several kernels that fit, the one with the highest is used.
        required fn TF_KernelBuilder_Priority(kernel_builder: KernelBuilder, priority_number: i32);
        /// Restricts the kernel to nodes with this label.
        required fn TF_KernelBuilder_Label(kernel_builder: KernelBuilder, label: Text);
        /// Registers a kernel under a name that the caller chooses and frees `builder`. Nearly every mistake, such as a
        /// second kernel for the same types, is only reported when the op runs.
        required fn TF_RegisterKernelBuilder(kernel_name: Text, builder: KernelBuilder, status: Status);
        /// Registers a kernel as `TF_RegisterKernelBuilder` does, by a serialised `KernelDef` unless that is null.
        required fn TF_RegisterKernelBuilderWithKernelDef(
            serialized_kernel_def: Text, name: Text, builder: KernelBuilder, status: Status
        );
        /// Frees a kernel that is not registered.
        required fn TF_DeleteKernelBuilder(builder: KernelBuilder);
        /// Returns the plugin's own stream that this run is to use. Null with an error on a device
        /// that is not a plugin's.
        required fn TF_GetStream(ctx: Context, status: Status) -> SP_Stream;
        /// Returns the number of inputs.
        required fn TF_NumInputs(ctx: Context) -> c_int;
        /// Returns the number of outputs.
        required fn TF_NumOutputs(ctx: Context) -> c_int;
        /// Fills in an input. It may be null without an error: an input that is missing.
        required fn TF_GetInput(ctx: Context, i: c_int, tensor: *mut Tensor, status: Status);
        /// Fills in the indices of the inputs of a name.
        required fn TF_InputRange(ctx: Context, name: Text, args: *mut TF_InputRange_Args);
        /// Returns the type of an input. **Aborts the process** if the index is out of range.
        required fn TF_InputDatatype(ctx: Context, index: c_int) -> TF_DataType;
        /// Sets an output. The tensor still belongs to the caller. An output that a kernel does not
        /// set is an empty tensor for the next kernel, without a message.
        required fn TF_SetOutput(ctx: Context, i: c_int, tensor: *const TF_Tensor, status: Status);
        /// Returns an output that was set or allocated.
        required fn TF_GetMutableOutput(ctx: Context, i: c_int, status: Status) -> Tensor;
        /// Fills in the functions that are known, a serialised `FunctionDefLibrary`.
        required fn TF_GetSerializedFunctionDefLibrary(
            ctx: Context, serialized_function_def_library: *mut TF_Buffer, status: Status
        );
        /// Fills in the configuration of the session, a serialised `ConfigProto`.
        required fn TF_GetSerializedConfigProto(ctx: Context, serialized_config_proto: *mut TF_Buffer, status: Status);
        /// Fills in an input that is a handle, a serialised `ResourceHandleProto`.
        required fn TF_GetSerializedResourceHandleProto(
            ctx: Context, i: c_int, serialized_resource_handle_proto: *mut TF_Buffer, status: Status
        );
        /// Reports that a kernel could not be created. The status still belongs to the caller.
        required fn TF_OpKernelConstruction_Failure(ctx: Construction, status: Status);
        /// Reports that a run failed. The status still belongs to the caller.
        required fn TF_OpKernelContext_Failure(ctx: Context, status: Status);
        /// Returns the type that an output is to have. **Aborts the process** if the index is out of range.
        required fn TF_ExpectedOutputDataType(ctx: Context, i: c_int) -> TF_DataType;
        /// Returns whether an input is in host memory.
        required fn TF_IsHostMemoryInput(ctx: Context, i: c_int, status: Status) -> bool;
        /// Returns whether an output is in host memory.
        required fn TF_IsHostMemoryOutput(ctx: Context, i: c_int, status: Status) -> bool;
        /// Returns the number of the step that this run belongs to.
        required fn TF_StepId(ctx: Context) -> i64;
        /// Returns the node, a serialised `NodeDef`.
        required fn TF_OpKernelConstruction_GetNodeDef(ctx: Construction, status: Status) -> *mut TF_Buffer;
        /// Returns the number of the frame, which a loop opens, that this run belongs to.
        required fn TF_GetFrameId(ctx: Context) -> u64;
        /// Returns the number of the iteration that this run belongs to.
        required fn TF_GetIterId(ctx: Context) -> i64;
        /// Returns the same as `TF_StepId`.
        required fn TF_GetStepId(ctx: Context) -> i64;
        /// Returns the index of the device.
        required fn TF_GetDeviceId(ctx: Context) -> c_int;
        /// Returns the name of the device. Borrowed from the kernel. Not before TensorFlow 2.16.
        optional fn TF_GetDeviceName(ctx: Context) -> TF_StringView;
        /// Returns the version of the graph's format.
        required fn TF_GetGraphDefVersion(ctx: Context) -> c_int;
        /// Returns the name of the node. Borrowed from the kernel.
        required fn TF_GetOpKernelName(ctx: Context) -> TF_StringView;
        /// Returns the container that resources are put into unless they name one. Borrowed from the kernel.
        required fn TF_GetResourceMgrDefaultContainerName(ctx: Context) -> TF_StringView;
        /// Returns the node's name for an input. Borrowed from the kernel.
        required fn TF_GetOpKernelRequestedInput(ctx: Context, index: usize) -> TF_StringView;
        /// Writes how much room an attribute takes: `list_size` is the number of elements of a list, -1 if it is not a
        /// list; `total_size` the bytes of a string or of all strings of a list, or the dimensions of a shape (-1 if
        /// their number is unknown) or of all shapes of a list.
        required fn TF_OpKernelConstruction_GetAttrSize(
            ctx: Construction, attr_name: Text, list_size: *mut i32, total_size: *mut i32, status: Status
        );
        /// Reads a type.
        required fn TF_OpKernelConstruction_GetAttrType(
            ctx: Construction, attr_name: Text, val: *mut TF_DataType, status: Status
        );
        /// Reads an integer that fits 32 bits.
        required fn TF_OpKernelConstruction_GetAttrInt32(ctx: Construction, attr_name: Text, val: *mut i32, status: Status);
        /// Reads an integer.
        required fn TF_OpKernelConstruction_GetAttrInt64(ctx: Construction, attr_name: Text, val: *mut i64, status: Status);
        /// Reads a float.
        required fn TF_OpKernelConstruction_GetAttrFloat(ctx: Construction, attr_name: Text, val: *mut f32, status: Status);
        /// Reads a boolean.
        required fn TF_OpKernelConstruction_GetAttrBool(
            ctx: Construction, attr_name: Text, val: *mut TF_Bool, status: Status
        );
        /// Reads at most `max_length` bytes of a string, without a NUL behind them.
        required fn TF_OpKernelConstruction_GetAttrString(
            ctx: Construction, attr_name: Text, val: *mut c_char, max_length: usize, status: Status
        );
        /// Reads a tensor.
        required fn TF_OpKernelConstruction_GetAttrTensor(
            ctx: Construction, attr_name: Text, val: *mut Tensor, status: Status
        );
        /// Reads a list of types.
        required fn TF_OpKernelConstruction_GetAttrTypeList(
            ctx: Construction, attr_name: Text, vals: *mut TF_DataType, max_vals: c_int, status: Status
        );
        /// Reads a list of integers that fit 32 bits.
        required fn TF_OpKernelConstruction_GetAttrInt32List(
            ctx: Construction, attr_name: Text, vals: *mut i32, max_vals: c_int, status: Status
        );
        /// Reads a list of integers.
        required fn TF_OpKernelConstruction_GetAttrInt64List(
            ctx: Construction, attr_name: Text, vals: *mut i64, max_vals: c_int, status: Status
        );
        /// Reads a list of floats.
        required fn TF_OpKernelConstruction_GetAttrFloatList(
            ctx: Construction, attr_name: Text, vals: *mut f32, max_vals: c_int, status: Status
        );
        /// Reads a list of booleans.
        required fn TF_OpKernelConstruction_GetAttrBoolList(
            ctx: Construction, attr_name: Text, vals: *mut TF_Bool, max_vals: c_int, status: Status
        );
        /// Reads a list of strings: `values` and `lengths` of at least `max_values` elements each,
        /// where the values point into `storage`, of `storage_size` bytes, without NULs.
        required fn TF_OpKernelConstruction_GetAttrStringList(
            ctx: Construction, attr_name: Text, values: *mut *mut c_char, lengths: *mut usize, max_values: c_int,
            storage: *mut c_void, storage_size: usize, status: Status
        );
        /// Reads a list of tensors; each that is not null belongs to the caller.
        required fn TF_OpKernelConstruction_GetAttrTensorList(
            ctx: Construction, attr_name: Text, vals: *mut Tensor, max_values: c_int, status: Status
        );
        /// Reads a function, a serialised `NameAttrList`; null on an error.
        required fn TF_OpKernelConstruction_GetAttrFunction(
            ctx: Construction, attr_name: Text, status: Status
        ) -> *mut TF_Buffer;
        /// Returns whether the node has an attribute.
        required fn TF_OpKernelConstruction_HasAttr(ctx: Construction, attr_name: Text, status: Status) -> bool;
        /// Returns the name of the node. Borrowed from the construction.
        required fn TF_OpKernelConstruction_GetName(ctx: Construction) -> TF_StringView;
        /// Allocates an output, in device memory unless the kernel is registered otherwise. `dtype` and
        /// `len` are ignored: the op decides.
        required fn TF_AllocateOutput(
            context: Context, index: c_int, dtype: TF_DataType, dims: *const i64, num_dims: c_int, len: usize,
            status: Status
        ) -> Tensor;
        /// Creates an output from the memory of one of the candidates that nothing else uses, and
        /// writes its index to `forwarded_input`; or allocates an output, and the index is -1.
        /// `forwarded_input` may be null.
        required fn TF_ForwardInputOrAllocateOutput(
            context: Context, candidate_input_indices: *const c_int, num_candidate_input_indices: c_int, output_index: c_int,
            output_dims: *const i64, output_num_dims: c_int, forwarded_input: *mut c_int, status: Status
        ) -> Tensor;
        /// Allocates a tensor for the length of the run. `alloc_attrs` may be null: device memory.
        required fn TF_AllocateTemp(
            context: Context, dtype: TF_DataType, dims: *const i64, num_dims: c_int,
            alloc_attrs: *mut TF_AllocatorAttributes, status: Status
        ) -> Tensor;
        /// Says that work of this run continues after `compute` has returned. Not before TensorFlow 2.15.
        optional fn TF_IncNumDeferredOps(context: Context);
        /// Says that such work is done; once for each `TF_IncNumDeferredOps`. Not before TensorFlow
        /// 2.15.
        optional fn TF_DecNumDeferredOps(context: Context);
    }
}
