//! The functions of `tensorflow/c/c_api.h` by which a program builds graphs and runs them.

#[cfg(feature = "host")]
use crate::buffer::TF_Buffer;
#[cfg(feature = "host")]
use crate::datatype::TF_DataType;
#[cfg(feature = "host")]
use crate::status::TF_Status;
#[cfg(feature = "host")]
use crate::tensor::TF_Tensor;
use core::ffi::c_int;
#[cfg(feature = "host")]
use core::ffi::{c_char, c_uchar, c_void};
use core::marker::{PhantomData, PhantomPinned};

/// A graph of operations. Opaque.
#[repr(C)]
pub struct TF_Graph {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// An operation that is not in its graph yet. Opaque.
#[repr(C)]
pub struct TF_OperationDescription {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// An operation of a graph, which owns it. Opaque.
#[repr(C)]
pub struct TF_Operation {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// How a session is made. Opaque.
#[repr(C)]
pub struct TF_SessionOptions {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A graph at work. Opaque.
#[repr(C)]
pub struct TF_Session {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Devices. Opaque.
#[repr(C)]
pub struct TF_DeviceList {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A plugin that was loaded. Opaque.
#[repr(C)]
pub struct TF_Library {
    _opaque: [u8; 0],
    _not_send_sync_unpin: PhantomData<(*mut u8, PhantomPinned)>,
}

/// One of the tensors that an operation gives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_Output {
    /// The operation.
    pub oper: *mut TF_Operation,
    /// Which of its tensors.
    pub index: c_int,
}

#[cfg(feature = "host")]
crate::host::host_functions! {
    /// Graphs, sessions and devices, in `libtensorflow_cc.so.2`. Names are NUL-terminated.
    pub struct ClientFunctions {
        /// A new graph.
        required fn TF_NewGraph() -> *mut TF_Graph;
        /// Frees a graph, once no session needs it any more.
        required fn TF_DeleteGraph(graph: *mut TF_Graph);
        /// Begins an operation; [`TF_FinishOperation`](Self::TF_FinishOperation) ends it.
        required fn TF_NewOperation(
            graph: *mut TF_Graph,
            op_type: *const c_char,
            oper_name: *const c_char,
        ) -> *mut TF_OperationDescription;
        /// Says where the operation has to run.
        required fn TF_SetDevice(desc: *mut TF_OperationDescription, device: *const c_char);
        /// Adds an argument that is one tensor.
        required fn TF_AddInput(desc: *mut TF_OperationDescription, input: TF_Output);
        /// Adds an argument that is a list of tensors.
        required fn TF_AddInputList(
            desc: *mut TF_OperationDescription,
            inputs: *const TF_Output,
            num_inputs: c_int,
        );
        /// Sets an attribute that is a text.
        required fn TF_SetAttrString(
            desc: *mut TF_OperationDescription,
            attr_name: *const c_char,
            value: *const c_void,
            length: usize,
        );
        /// Sets an attribute that is a number.
        required fn TF_SetAttrInt(
            desc: *mut TF_OperationDescription,
            attr_name: *const c_char,
            value: i64,
        );
        /// Sets an attribute that is 0 or 1.
        required fn TF_SetAttrBool(
            desc: *mut TF_OperationDescription,
            attr_name: *const c_char,
            value: c_uchar,
        );
        /// Sets an attribute that is a type.
        required fn TF_SetAttrType(
            desc: *mut TF_OperationDescription,
            attr_name: *const c_char,
            value: TF_DataType,
        );
        /// Sets an attribute that is a list of types.
        required fn TF_SetAttrTypeList(
            desc: *mut TF_OperationDescription,
            attr_name: *const c_char,
            values: *const TF_DataType,
            num_values: c_int,
        );
        /// Sets an attribute that is a shape.
        required fn TF_SetAttrShape(
            desc: *mut TF_OperationDescription,
            attr_name: *const c_char,
            dims: *const i64,
            num_dims: c_int,
        );
        /// Sets an attribute that is a tensor, of which it takes a share.
        required fn TF_SetAttrTensor(
            desc: *mut TF_OperationDescription,
            attr_name: *const c_char,
            value: *mut TF_Tensor,
            status: *mut TF_Status,
        );
        /// Puts the operation into its graph and frees the description; null with another status than `TF_OK`.
        required fn TF_FinishOperation(
            desc: *mut TF_OperationDescription,
            status: *mut TF_Status,
        ) -> *mut TF_Operation;
        /// New options.
        required fn TF_NewSessionOptions() -> *mut TF_SessionOptions;
        /// Frees options.
        required fn TF_DeleteSessionOptions(options: *mut TF_SessionOptions);
        /// A session of a graph, which must outlive it; null with another status than `TF_OK`.
        required fn TF_NewSession(
            graph: *mut TF_Graph,
            opts: *const TF_SessionOptions,
            status: *mut TF_Status,
        ) -> *mut TF_Session;
        /// Ends what a session does.
        required fn TF_CloseSession(session: *mut TF_Session, status: *mut TF_Status);
        /// Frees a session, also with another status than `TF_OK`.
        required fn TF_DeleteSession(session: *mut TF_Session, status: *mut TF_Status);
        /// Runs what the outputs and the targets need. The tensors that come belong to the caller.
        required fn TF_SessionRun(
            session: *mut TF_Session,
            run_options: *const TF_Buffer,
            inputs: *const TF_Output,
            input_values: *const *mut TF_Tensor,
            ninputs: c_int,
            outputs: *const TF_Output,
            output_values: *mut *mut TF_Tensor,
            noutputs: c_int,
            target_opers: *const *const TF_Operation,
            ntargets: c_int,
            run_metadata: *mut TF_Buffer,
            status: *mut TF_Status,
        );
        /// The devices of a session, for [`TF_DeleteDeviceList`](Self::TF_DeleteDeviceList) to free.
        required fn TF_SessionListDevices(
            session: *mut TF_Session,
            status: *mut TF_Status,
        ) -> *mut TF_DeviceList;
        /// Frees a list.
        required fn TF_DeleteDeviceList(list: *mut TF_DeviceList);
        /// How many there are.
        required fn TF_DeviceListCount(list: *const TF_DeviceList) -> c_int;
        /// The whole name of one, which is the list's.
        required fn TF_DeviceListName(
            list: *const TF_DeviceList,
            index: c_int,
            status: *mut TF_Status,
        ) -> *const c_char;
        /// The type of one, which is the list's.
        required fn TF_DeviceListType(
            list: *const TF_DeviceList,
            index: c_int,
            status: *mut TF_Status,
        ) -> *const c_char;
        /// All kernels of the process, a serialised `KernelList`, for `TF_DeleteBuffer` to free.
        required fn TF_GetAllRegisteredKernels(status: *mut TF_Status) -> *mut TF_Buffer;
    }
}
