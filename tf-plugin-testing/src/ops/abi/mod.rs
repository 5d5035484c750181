//! The host's side of the C boundary.

mod construction;
mod definitions;
pub(super) mod elements;
mod memory;
mod runs;
mod shapes;
mod strings;
mod tensors;
#[cfg(test)]
mod violations;

pub(super) use memory::Array;
pub(super) use runs::Kernel;
pub(super) use shapes::infer;
pub use strings::FUNCTIONS as STRING_FUNCTIONS;
pub(super) use tensors::TENSOR;

use crate::abi::{graph_functions, status};
use std::sync::Once;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::tstring::StringFunctions;
use tf_fs_sys::{BufferFunctions, KernelFunctions, OpFunctions, TensorFunctions};

/// Makes the plugins of this process use the functions of this host.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    status::install();
    // SAFETY: the functions keep the promises of the tables' fields, for handles of this host, the only ones in a process
    // without TensorFlow.
    ONCE.call_once(|| unsafe {
        OpFunctions::install(&OP_FUNCTIONS);
        KernelFunctions::install(&KERNEL_FUNCTIONS);
        TensorFunctions::install(&tensors::TENSOR_FUNCTIONS);
        BufferFunctions::install(&tensors::BUFFER_FUNCTIONS);
        StringFunctions::install(&STRING_FUNCTIONS);
        graph_functions::change(|table| {
            table.TF_NewFunctionLibraryDefinition = Some(definitions::new_library);
            table.TF_DeleteFunctionLibraryDefinition = Some(definitions::delete_library);
            table.TF_LookUpOpDef = Some(definitions::look_up_op);
        });
    });
}

static OP_FUNCTIONS: OpFunctions = OpFunctions {
    TF_NewOpDefinitionBuilder: definitions::new_op,
    TF_RegisterOpDefinition: definitions::register_op,
    TF_DeleteOpDefinitionBuilder: definitions::delete_op,
    TF_OpDefinitionBuilderAddAttr: definitions::add_attr,
    TF_OpDefinitionBuilderAddInput: definitions::add_input,
    TF_OpDefinitionBuilderAddOutput: definitions::add_output,
    TF_OpDefinitionBuilderSetIsCommutative: definitions::set_flag,
    TF_OpDefinitionBuilderSetIsAggregate: definitions::set_flag,
    TF_OpDefinitionBuilderSetIsStateful: definitions::set_stateful,
    TF_OpDefinitionBuilderSetAllowsUninitializedInput: definitions::set_flag,
    TF_OpDefinitionBuilderDeprecated: definitions::deprecated,
    TF_OpDefinitionBuilderSetShapeInferenceFunction: definitions::set_infer,
    TF_ShapeInferenceContextNumInputs: shapes::num_inputs,
    TF_NewShapeHandle: shapes::new_shape,
    TF_ShapeInferenceContextGetInput: shapes::get_input,
    TF_ShapeInferenceContextSetOutput: shapes::set_output,
    TF_ShapeInferenceContextScalar: shapes::scalar,
    TF_ShapeInferenceContextVectorFromSize: shapes::vector,
    TF_NewDimensionHandle: shapes::new_dimension,
    TF_ShapeInferenceContext_GetAttrType: shapes::attr_type,
    TF_ShapeInferenceContextRank: shapes::rank,
    TF_ShapeInferenceContextRankKnown: shapes::rank_known,
    TF_ShapeInferenceContextWithRank: shapes::with_rank,
    TF_ShapeInferenceContextWithRankAtLeast: shapes::with_rank_at_least,
    TF_ShapeInferenceContextWithRankAtMost: shapes::with_rank_at_most,
    TF_ShapeInferenceContextDim: shapes::dim,
    TF_ShapeInferenceContextSubshape: shapes::subshape,
    TF_ShapeInferenceContextSetUnknownShape: shapes::set_unknown,
    TF_DimensionHandleValueKnown: shapes::dimension_known,
    TF_DimensionHandleValue: shapes::dimension_value,
    TF_ShapeInferenceContextConcatenateShapes: shapes::concatenate,
    TF_DeleteShapeHandle: shapes::delete_shape,
    TF_DeleteDimensionHandle: shapes::delete_dimension,
};

/// The functions for kernels on the CPU. Asynchronous kernels are for devices.
static KERNEL_FUNCTIONS: KernelFunctions = KernelFunctions {
    TF_RunAsyncOpKernelDoneCallback: None,
    TF_NewKernelBuilder: definitions::new_kernel,
    TF_NewAsyncKernelBuilder: None,
    TF_KernelBuilder_TypeConstraint: definitions::type_constraint,
    TF_KernelBuilder_HostMemory: definitions::host_memory,
    TF_KernelBuilder_Priority: definitions::priority,
    TF_KernelBuilder_Label: definitions::label,
    TF_RegisterKernelBuilder: definitions::register_kernel,
    TF_RegisterKernelBuilderWithKernelDef: definitions::register_kernel_with_def,
    TF_DeleteKernelBuilder: definitions::delete_kernel_builder,
    TF_GetStream: runs::stream,
    TF_NumInputs: runs::num_inputs,
    TF_NumOutputs: runs::num_outputs,
    TF_GetInput: runs::get_input,
    TF_InputRange: runs::input_range,
    TF_InputDatatype: runs::input_type,
    TF_SetOutput: runs::set_output,
    TF_GetMutableOutput: runs::mutable_output,
    TF_GetSerializedFunctionDefLibrary: runs::functions,
    TF_GetSerializedConfigProto: runs::config,
    TF_GetSerializedResourceHandleProto: runs::resource_handle,
    TF_OpKernelConstruction_Failure: construction::failure,
    TF_OpKernelContext_Failure: runs::failure,
    TF_ExpectedOutputDataType: runs::output_type,
    TF_IsHostMemoryInput: runs::is_host_memory,
    TF_IsHostMemoryOutput: runs::is_host_memory,
    TF_StepId: runs::zero_i64,
    TF_OpKernelConstruction_GetNodeDef: construction::node_def,
    TF_GetFrameId: runs::zero_u64,
    TF_GetIterId: runs::zero_i64,
    TF_GetStepId: runs::zero_i64,
    TF_GetDeviceId: runs::zero_int,
    TF_GetDeviceName: Some(runs::device_name),
    TF_GetGraphDefVersion: runs::zero_int,
    TF_GetOpKernelName: runs::kernel_name,
    TF_GetResourceMgrDefaultContainerName: runs::no_text,
    TF_GetOpKernelRequestedInput: runs::requested_input,
    TF_OpKernelConstruction_GetAttrSize: construction::attr_size,
    TF_OpKernelConstruction_GetAttrType: construction::attr_type,
    TF_OpKernelConstruction_GetAttrInt32: construction::attr_int32,
    TF_OpKernelConstruction_GetAttrInt64: construction::attr_int64,
    TF_OpKernelConstruction_GetAttrFloat: construction::attr_float,
    TF_OpKernelConstruction_GetAttrBool: construction::attr_bool,
    TF_OpKernelConstruction_GetAttrString: construction::attr_string,
    TF_OpKernelConstruction_GetAttrTensor: construction::attr_tensor,
    TF_OpKernelConstruction_GetAttrTypeList: construction::attr_types,
    TF_OpKernelConstruction_GetAttrInt32List: construction::attr_int32s,
    TF_OpKernelConstruction_GetAttrInt64List: construction::attr_int64s,
    TF_OpKernelConstruction_GetAttrFloatList: construction::attr_floats,
    TF_OpKernelConstruction_GetAttrBoolList: construction::attr_bools,
    TF_OpKernelConstruction_GetAttrStringList: construction::attr_strings,
    TF_OpKernelConstruction_GetAttrTensorList: construction::attr_tensors,
    TF_OpKernelConstruction_GetAttrFunction: construction::attr_function,
    TF_OpKernelConstruction_HasAttr: construction::has_attr,
    TF_OpKernelConstruction_GetName: construction::name,
    TF_AllocateOutput: runs::allocate_output,
    TF_ForwardInputOrAllocateOutput: runs::forward,
    TF_AllocateTemp: runs::allocate_temp,
    TF_IncNumDeferredOps: None,
    TF_DecNumDeferredOps: None,
};
