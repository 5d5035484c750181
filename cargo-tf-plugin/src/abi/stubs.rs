//! The C functions of TensorFlow that plugins call while they are loaded.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use cargo_tf_plugin::host::{code_name, text};
use cargo_tf_plugin::probe::{Event, Kernel};
use tf_fs_sys::{TF_Buffer, TF_Code, TF_DataType, TF_NOT_FOUND, TF_OK};

use super::events::{leave, tell};

/// Whether the plugin has called `TF_Version`.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether `TF_Version` returns 2.22.
static NEWER: AtomicBool = AtomicBool::new(false);

pub(super) fn release_was_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

pub(super) fn in_2_22<T>(body: impl FnOnce() -> T) -> T {
    NEWER.store(true, Ordering::Relaxed);
    let result = body();
    NEWER.store(false, Ordering::Relaxed);
    result
}

/// The type of a `TF_Status` in this process.
#[derive(Debug)]
pub(super) struct Status {
    code: TF_Code,
    /// `None` for an empty message: a call that succeeds allocates nothing, which is what is measured.
    message: Option<CString>,
}

impl Status {
    pub(super) fn new() -> Self {
        Self { code: TF_OK, message: None }
    }

    /// Returns the name of the code and the message, unless the status is OK. It is OK afterwards.
    pub(super) fn take(&mut self) -> Option<(String, String)> {
        let taken = std::mem::replace(self, Self::new());
        (taken.code != TF_OK).then(|| {
            let message = taken.message.unwrap_or_default();
            (code_name(taken.code), message.to_string_lossy().into_owned())
        })
    }
}

/// Defines functions with the names of TensorFlow's, all with the requirements of its headers.
///
/// A second name is that of the same function in the headers of a newer TensorFlow, or asynchronous.
macro_rules! stubs {
    ($(fn [$($names:ident)*] $arguments:tt $(-> $answer:ty)? $body:block)*) => {
        $(stubs!(@each [$($names)*] $arguments [$(-> $answer)?] $body);)*
    };
    (@each [] $($function:tt)*) => {};
    (@each [$name:ident $($rest:ident)*] $arguments:tt $answer:tt $body:block) => {
        stubs!(@one $name $arguments $answer $body);
        stubs!(@each [$($rest)*] $arguments $answer $body);
    };
    (@one $name:ident ($($argument:ident: $type:ty),* $(,)?) [$(-> $answer:ty)?] $body:block) => {
        // SAFETY: no other function of this program has the name.
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some do nothing that is unsafe")]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $answer)? {
            // SAFETY: plugins pass what TensorFlow's headers request: C strings, and the objects that the
            // functions here have made. One that does not crashes this process, which is what it is for.
            unsafe { $body }
        }
    };
}

/// Defines functions that do nothing; their arguments are ignored.
macro_rules! nothing {
    ($($name:ident),* $(,)?) => {$(
        // SAFETY: no other function of this program has the name.
        #[unsafe(no_mangle)]
        extern "C" fn $name() {}
    )*};
}

nothing! {
    TF_SetPayload, TSL_SetPayload, TF_ForEachPayload, TF_KernelBuilder_Label,
    TF_OpDefinitionBuilderAddAttr, TF_OpDefinitionBuilderAddInput, TF_OpDefinitionBuilderAddOutput,
    TF_OpDefinitionBuilderSetIsCommutative, TF_OpDefinitionBuilderSetIsAggregate,
    TF_OpDefinitionBuilderSetIsStateful, TF_OpDefinitionBuilderSetAllowsUninitializedInput,
    TF_OpDefinitionBuilderDeprecated, TF_OpDefinitionBuilderSetShapeInferenceFunction,
    TF_Log, TF_VLog, TF_DVLog,
}

/// # Safety
/// `object` is null, or a box that nobody uses any more.
unsafe fn delete<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: not null, so a box that nobody else uses.
        drop(unsafe { Box::from_raw(object) });
    }
}

stubs! {
    fn [TF_NewStatus TSL_NewStatus]() -> *mut Status {
        Box::into_raw(Box::new(Status::new()))
    }
    fn [TF_DeleteStatus TSL_DeleteStatus](status: *mut Status) {
        delete(status);
    }
    fn [TF_SetStatus TSL_SetStatus](status: *mut Status, code: TF_Code, message: *const c_char) {
        // TensorFlow up to 2.20 does the same: it reads the text even if the pointer is null.
        let message = CStr::from_ptr(message);
        *status = Status { code, message: (code != TF_OK).then(|| message.to_owned()) };
    }
    fn [TF_SetStatusFromIOError TSL_SetStatusFromIOError](status: *mut Status, error: c_int, context: *const c_char) {
        let error = io::Error::from_raw_os_error(error);
        let message = format!("{}: {error}", text(context).unwrap_or_default());
        *status = Status { code: tf_fs_sys::TF_UNKNOWN, message: CString::new(message).ok() };
    }
    fn [TF_GetCode TSL_GetCode](status: *const Status) -> TF_Code {
        (*status).code
    }
    fn [TF_Message TSL_Message](status: *const Status) -> *const c_char {
        (*status).message.as_deref().unwrap_or_default().as_ptr()
    }

    fn [TF_RegisterFilesystemPlugin](path: *const c_char, _status: *mut Status) {
        tell(&Event::Registers(text(path).unwrap_or_default()));
    }
    fn [TF_Version]() -> *const c_char {
        ASKED.store(true, Ordering::Relaxed);
        // The newest release that the tool knows, unless the table of a newer one is requested.
        if NEWER.load(Ordering::Relaxed) { c"2.22.0" } else { c"2.21.0" }.as_ptr()
    }

    fn [TF_NewBuffer]() -> *mut TF_Buffer {
        Box::into_raw(Box::default())
    }
    fn [TF_NewBufferFromString](bytes: *const c_void, length: usize) -> *mut TF_Buffer {
        unsafe extern "C" fn free(data: *mut c_void, _length: usize) {
            // SAFETY: memory of `malloc`.
            unsafe { libc::free(data) };
        }
        let data = libc::malloc(length.max(1));
        if data.is_null() {
            return std::ptr::null_mut();
        }
        std::ptr::copy_nonoverlapping(bytes.cast::<u8>(), data.cast::<u8>(), length);
        Box::into_raw(Box::new(TF_Buffer { data, length, data_deallocator: Some(free) }))
    }
    fn [TF_DeleteBuffer](buffer: *mut TF_Buffer) {
        if !buffer.is_null() {
            let buffer = Box::from_raw(buffer);
            if let Some(free) = buffer.data_deallocator {
                free(buffer.data.cast_mut(), buffer.length);
            }
        }
    }
    fn [TF_GetBuffer](buffer: *mut TF_Buffer) -> TF_Buffer {
        *buffer
    }
    fn [TF_DataTypeSize](data_type: TF_DataType) -> usize {
        match data_type {
            4 | 6 | 10 | 11 | 12 | 24..=32 => 1,
            5 | 14 | 15 | 16 | 17 | 19 => 2,
            1 | 3 | 13 | 22 => 4,
            2 | 8 | 9 | 23 => 8,
            18 => 16,
            _ => 0,
        }
    }
    // The process does not know which ops TensorFlow has: none is found, so a plugin registers its own.
    fn [TF_NewFunctionLibraryDefinition](_graph: *const TF_Buffer, _status: *mut Status) -> *mut () {
        Box::into_raw(Box::new(()))
    }
    fn [TF_LookUpOpDef](_library: *mut (), _op: *const c_char, _definition: *mut TF_Buffer, status: *mut Status) {
        *status = Status { code: TF_NOT_FOUND, message: Some(c"no TensorFlow is loaded".to_owned()) };
    }
    fn [TF_DeleteFunctionLibraryDefinition](library: *mut ()) {
        delete(library);
    }

    fn [TF_NewKernelBuilder TF_NewAsyncKernelBuilder](op: *const c_char, device: *const c_char,
        _create: *const c_void, _compute: *const c_void, _delete: *const c_void) -> *mut Kernel {
        let (op, device) = (text(op).unwrap_or_default(), text(device).unwrap_or_default());
        let kernel = Kernel { op, device, types: Vec::new(), host_memory: Vec::new(), priority: 0 };
        Box::into_raw(Box::new(kernel))
    }
    fn [TF_KernelBuilder_TypeConstraint](builder: *mut Kernel, attribute: *const c_char, data_type: TF_DataType,
        _status: *mut Status) {
        let attribute = text(attribute).unwrap_or_default();
        (*builder).types.push(format!("{attribute}={}", type_name(data_type)));
    }
    fn [TF_KernelBuilder_HostMemory](builder: *mut Kernel, argument: *const c_char) {
        (*builder).host_memory.extend(text(argument));
    }
    fn [TF_KernelBuilder_Priority](builder: *mut Kernel, priority: i32) {
        (*builder).priority = priority;
    }
    fn [TF_RegisterKernelBuilder](_name: *const c_char, builder: *mut Kernel, _status: *mut Status) {
        tell(&Event::Kernel(*Box::from_raw(builder)));
    }
    fn [TF_RegisterKernelBuilderWithKernelDef](_kernel: *const c_char, name: *const c_char, builder: *mut Kernel,
        status: *mut Status) {
        TF_RegisterKernelBuilder(name, builder, status);
    }
    fn [TF_DeleteKernelBuilder](builder: *mut Kernel) {
        delete(builder);
    }

    fn [TF_NewOpDefinitionBuilder](name: *const c_char) -> *mut String {
        Box::into_raw(Box::new(text(name).unwrap_or_default()))
    }
    fn [TF_RegisterOpDefinition](builder: *mut String, _status: *mut Status) {
        tell(&Event::Op(*Box::from_raw(builder)));
    }
    fn [TF_DeleteOpDefinitionBuilder](builder: *mut String) {
        delete(builder);
    }
}

fn type_name(data_type: TF_DataType) -> String {
    macro_rules! names {
        ($($data_type:ident)*) => { [$((tf_fs_sys::$data_type, stringify!($data_type))),*] };
    }
    let names = names!(
        TF_FLOAT TF_DOUBLE TF_INT32 TF_UINT8 TF_INT16 TF_INT8 TF_STRING TF_COMPLEX64 TF_INT64 TF_BOOL TF_QINT8 TF_QUINT8
        TF_QINT32 TF_BFLOAT16 TF_QINT16 TF_QUINT16 TF_UINT16 TF_COMPLEX128 TF_HALF TF_RESOURCE TF_VARIANT TF_UINT32
        TF_UINT64
    );
    match names.iter().find(|(number, _)| *number == data_type) {
        Some((_, name)) => name["TF_".len()..].to_lowercase(),
        None if data_type == 0 => "invalid".to_owned(),
        None => format!("type {data_type}"),
    }
}

/// Defines functions that need a running TensorFlow: a plugin that calls one cannot be examined further.
macro_rules! unavailable {
    ($($name:ident),* $(,)?) => {$(
        // SAFETY: no other function of this program has the name. It does not return, so its type does not matter.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> *const c_void {
            tell(&Event::Unavailable(stringify!($name).to_owned()));
            leave()
        }
    )*};
}

unavailable! {
    TF_AddNVariant, TF_AllocateOutput, TF_AllocateTemp, TF_AllocateTensor, TF_AppendWritableFile,
    TF_AssignRefVariable, TF_AssignUpdateVariable, TF_AssignVariable, TF_CloseWritableFile,
    TF_CreateDir, TF_DecNumDeferredOps, TF_DefaultThreadOptions, TF_DeleteDimensionHandle,
    TF_DeleteDir, TF_DeleteFile, TF_DeleteGraphProperties,
    TF_DeleteRecursively, TF_DeleteShapeHandle, TF_DeleteTensor, TF_DestroyTemporaryVariable,
    TF_Dim, TF_DimensionHandleValue, TF_DimensionHandleValueKnown, TF_ExpectedOutputDataType,
    TF_FileStat, TF_FlushWritableFile, TF_ForwardInputOrAllocateOutput, TF_GetChildren,
    TF_GetDeviceId, TF_GetDeviceName, TF_GetFetchNodesList, TF_GetFetchNodesListSize, TF_GetFrameId,
    TF_GetGraphDefVersion, TF_GetInput, TF_GetInputByName, TF_GetInputPropertiesList,
    TF_GetInputPropertiesListSize, TF_GetInputTensorFromVariable, TF_GetIterId,
    TF_GetLocalTempDirectories, TF_GetMutableOutput, TF_GetNodesToPreserveList,
    TF_GetNodesToPreserveListSize, TF_GetOpKernelName, TF_GetOpKernelRequestedInput,
    TF_GetOutputPropertiesList, TF_GetOutputPropertiesListSize, TF_GetRendezvous,
    TF_GetResourceMgrDefaultContainerName, TF_GetSerializedConfigProto,
    TF_GetSerializedFunctionDefLibrary, TF_GetSerializedResourceHandleProto, TF_GetStepId,
    TF_GetStream, TF_GetSymbolFromLibrary, TF_GetTempFileName, TF_IncNumDeferredOps,
    TF_InferStatically, TF_InputDatatype, TF_InputRange, TF_IsHostMemoryInput,
    TF_IsHostMemoryOutput, TF_IsRefInput, TF_JoinThread, TF_LoadSharedLibrary, TF_MaybeLockVariableInputMutexesInOrder, TF_NewDimensionHandle, TF_NewGraphProperties,
    TF_NewShapeHandle, TF_NewTensor, TF_NewWritableFile, TF_NowMicros, TF_NowNanos, TF_NowSeconds,
    TF_NumDims, TF_NumInputs, TF_NumOutputs, TF_OpKernelConstruction_Failure,
    TF_OpKernelConstruction_GetAttrBool, TF_OpKernelConstruction_GetAttrBoolList,
    TF_OpKernelConstruction_GetAttrFloat, TF_OpKernelConstruction_GetAttrFloatList,
    TF_OpKernelConstruction_GetAttrFunction, TF_OpKernelConstruction_GetAttrInt32,
    TF_OpKernelConstruction_GetAttrInt32List, TF_OpKernelConstruction_GetAttrInt64,
    TF_OpKernelConstruction_GetAttrInt64List, TF_OpKernelConstruction_GetAttrSize,
    TF_OpKernelConstruction_GetAttrString, TF_OpKernelConstruction_GetAttrStringList,
    TF_OpKernelConstruction_GetAttrTensor, TF_OpKernelConstruction_GetAttrTensorList,
    TF_OpKernelConstruction_GetAttrTensorShape, TF_OpKernelConstruction_GetAttrType,
    TF_OpKernelConstruction_GetAttrTypeList, TF_OpKernelConstruction_GetName,
    TF_OpKernelConstruction_GetNodeDef, TF_OpKernelConstruction_HasAttr, TF_OpKernelContext_Failure,
    TF_OpKernelContext_ForwardRefInputToRefOutput, TF_ReleaseVariableInputLockHolder,
    TF_RunAsyncOpKernelDoneCallback, TF_SetOutput, TF_SetShape,
    TF_ShapeInferenceContextConcatenateShapes, TF_ShapeInferenceContextDim,
    TF_ShapeInferenceContextGetInput, TF_ShapeInferenceContextNumInputs,
    TF_ShapeInferenceContextRank, TF_ShapeInferenceContextRankKnown, TF_ShapeInferenceContextScalar,
    TF_ShapeInferenceContextSetOutput, TF_ShapeInferenceContextSetUnknownShape,
    TF_ShapeInferenceContextSubshape, TF_ShapeInferenceContextVectorFromSize,
    TF_ShapeInferenceContextWithRank, TF_ShapeInferenceContextWithRankAtLeast,
    TF_ShapeInferenceContextWithRankAtMost, TF_ShapeInferenceContext_GetAttrType, TF_StartThread,
    TF_StepId, TF_StringAssignView, TF_StringCopy, TF_StringDealloc, TF_StringGetCapacity,
    TF_StringGetDataPointer, TF_StringGetSize, TF_StringGetType, TF_StringInit, TF_StringStreamDone,
    TF_StringStreamNext, TF_SyncWritableFile, TF_TemporaryVariable, TF_TensorBitcastFrom,
    TF_TensorByteSize, TF_TensorData, TF_TensorDefaultAlignment, TF_TensorElementCount,
    TF_TensorIsAligned, TF_TensorMaybeMove, TF_TensorType, TF_ZerosLikeVariant
}
