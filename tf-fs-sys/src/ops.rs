//! `tensorflow/c/ops.h`: definitions of new ops, and what shapes their outputs have.
//!
//! Notes on behaviour say what TensorFlow 2.12 to 2.21 really does.

#[cfg(feature = "host")]
use crate::datatype::TF_DataType;
use crate::status::TF_Status;
#[cfg(feature = "host")]
use core::ffi::{c_char, c_int};

crate::layout::opaque! {
    /// The length of a dimension, which may be unknown. Opaque.
    pub struct TF_DimensionHandle;

    /// The definition of an op in the making. Opaque.
    pub struct TF_OpDefinitionBuilder;

    /// A shape, of which rank and dimensions may be unknown. Opaque.
    pub struct TF_ShapeHandle;

    /// A node whose shapes are being inferred. Opaque; the host's, for the length of a call.
    pub struct TF_ShapeInferenceContext;
}

/// A plugin's function that sets the shapes of a node's outputs.
pub type TF_ShapeInferenceFn =
    Option<unsafe extern "C" fn(ctx: *mut TF_ShapeInferenceContext, status: *mut TF_Status)>;

#[cfg(feature = "host")]
crate::host::host_functions! {
    /// The functions of `ops.h`, in `libtensorflow_framework.so.2`.
    ///
    /// Handles that a function of this table returns are the caller's, who frees them; handles
    /// that a function fills in (`result`) are the caller's before and after.
    pub struct OpFunctions {
        /// Starts the definition of an op. Freed by registering it or by
        /// [`TF_DeleteOpDefinitionBuilder`](Self::TF_DeleteOpDefinitionBuilder), never both.
        required fn TF_NewOpDefinitionBuilder(op_name: *const c_char) -> *mut TF_OpDefinitionBuilder;
        /// Registers the op and frees `builder`. If there is an op of that name already, or a text of the
        /// definition is wrong, `status` does not say so: the host **aborts a process that has imported
        /// TensorFlow**, also from inside `TF_InitKernel`.
        required fn TF_RegisterOpDefinition(
            builder: *mut TF_OpDefinitionBuilder,
            status: *mut TF_Status,
        );
        /// Frees a definition that is not registered.
        required fn TF_DeleteOpDefinitionBuilder(builder: *mut TF_OpDefinitionBuilder);
        /// Adds an attribute, `name: type` or `name: type = default`, as in `T: {float, double}`.
        required fn TF_OpDefinitionBuilderAddAttr(
            builder: *mut TF_OpDefinitionBuilder,
            attr_spec: *const c_char,
        );
        /// Adds an input, `name: type`, where the type may be an attribute's name, as in `x: T` or
        /// `xs: N * T`.
        required fn TF_OpDefinitionBuilderAddInput(
            builder: *mut TF_OpDefinitionBuilder,
            input_spec: *const c_char,
        );
        /// Adds an output, in the same way.
        required fn TF_OpDefinitionBuilderAddOutput(
            builder: *mut TF_OpDefinitionBuilder,
            output_spec: *const c_char,
        );
        /// Says that two inputs may be exchanged. **The host ignores the boolean**, here and in the
        /// next three: any call means true.
        required fn TF_OpDefinitionBuilderSetIsCommutative(
            builder: *mut TF_OpDefinitionBuilder,
            is_commutative: bool,
        );
        /// Says that the op combines any number of inputs of one type and shape into one output, in any
        /// grouping.
        required fn TF_OpDefinitionBuilderSetIsAggregate(
            builder: *mut TF_OpDefinitionBuilder,
            is_aggregate: bool,
        );
        /// Says that the op depends on more than its inputs or has an effect besides its outputs, so
        /// that it is neither merged with an equal one nor moved.
        required fn TF_OpDefinitionBuilderSetIsStateful(
            builder: *mut TF_OpDefinitionBuilder,
            is_stateful: bool,
        );
        /// Says that inputs may be variables that were not initialised.
        required fn TF_OpDefinitionBuilderSetAllowsUninitializedInput(
            builder: *mut TF_OpDefinitionBuilder,
            allows_uninitialized_input: bool,
        );
        /// Says that the op is deprecated from a version of GraphDef on, and what to use in place of it.
        required fn TF_OpDefinitionBuilderDeprecated(
            builder: *mut TF_OpDefinitionBuilder,
            version: c_int,
            explanation: *const c_char,
        );
        /// Sets the function that infers shapes.
        required fn TF_OpDefinitionBuilderSetShapeInferenceFunction(
            builder: *mut TF_OpDefinitionBuilder,
            shape_inference_func: TF_ShapeInferenceFn,
        );
        /// The number of inputs.
        required fn TF_ShapeInferenceContextNumInputs(ctx: *mut TF_ShapeInferenceContext) -> i64;
        /// Makes a handle for a shape.
        required fn TF_NewShapeHandle() -> *mut TF_ShapeHandle;
        /// Fills in the shape of an input. An index that is out of range is `TF_INVALID_ARGUMENT`.
        required fn TF_ShapeInferenceContextGetInput(
            ctx: *mut TF_ShapeInferenceContext,
            i: c_int,
            handle: *mut TF_ShapeHandle,
            status: *mut TF_Status,
        );
        /// Sets the shape of an output; the handle is copied. An index that is out of range is
        /// `TF_INVALID_ARGUMENT`.
        required fn TF_ShapeInferenceContextSetOutput(
            ctx: *mut TF_ShapeInferenceContext,
            i: c_int,
            handle: *mut TF_ShapeHandle,
            status: *mut TF_Status,
        );
        /// The shape of a scalar.
        required fn TF_ShapeInferenceContextScalar(
            ctx: *mut TF_ShapeInferenceContext,
        ) -> *mut TF_ShapeHandle;
        /// The shape of a vector of `size` elements.
        required fn TF_ShapeInferenceContextVectorFromSize(
            ctx: *mut TF_ShapeInferenceContext,
            size: usize,
        ) -> *mut TF_ShapeHandle;
        /// Makes a handle for a dimension.
        required fn TF_NewDimensionHandle() -> *mut TF_DimensionHandle;
        /// Reads an attribute that is a type.
        required fn TF_ShapeInferenceContext_GetAttrType(
            ctx: *mut TF_ShapeInferenceContext,
            attr_name: *const c_char,
            val: *mut TF_DataType,
            status: *mut TF_Status,
        );
        /// The rank of a shape, which must be known.
        required fn TF_ShapeInferenceContextRank(
            ctx: *mut TF_ShapeInferenceContext,
            handle: *mut TF_ShapeHandle,
        ) -> i64;
        /// 1 if the rank of a shape is known, 0 if not.
        required fn TF_ShapeInferenceContextRankKnown(
            ctx: *mut TF_ShapeInferenceContext,
            handle: *mut TF_ShapeHandle,
        ) -> c_int;
        /// Fills in the shape, with this rank if it was unknown; an error if it has another.
        required fn TF_ShapeInferenceContextWithRank(
            ctx: *mut TF_ShapeInferenceContext,
            handle: *mut TF_ShapeHandle,
            rank: i64,
            result: *mut TF_ShapeHandle,
            status: *mut TF_Status,
        );
        /// Fills in the shape; an error if its rank is known and smaller.
        required fn TF_ShapeInferenceContextWithRankAtLeast(
            ctx: *mut TF_ShapeInferenceContext,
            handle: *mut TF_ShapeHandle,
            rank: i64,
            result: *mut TF_ShapeHandle,
            status: *mut TF_Status,
        );
        /// Fills in the shape; an error if its rank is known and greater.
        required fn TF_ShapeInferenceContextWithRankAtMost(
            ctx: *mut TF_ShapeInferenceContext,
            handle: *mut TF_ShapeHandle,
            rank: i64,
            result: *mut TF_ShapeHandle,
            status: *mut TF_Status,
        );
        /// Fills in one dimension of a shape; a negative index counts from the end. An index that is out
        /// of range gives a dimension that reads as 0.
        required fn TF_ShapeInferenceContextDim(
            ctx: *mut TF_ShapeInferenceContext,
            shape_handle: *mut TF_ShapeHandle,
            i: i64,
            result: *mut TF_DimensionHandle,
        );
        /// Fills in the shape of the dimensions from `start` up to, not including, `end`; negative
        /// ones count from the end.
        required fn TF_ShapeInferenceContextSubshape(
            ctx: *mut TF_ShapeInferenceContext,
            shape_handle: *mut TF_ShapeHandle,
            start: i64,
            end: i64,
            result: *mut TF_ShapeHandle,
            status: *mut TF_Status,
        );
        /// Says that the shape of no output is known.
        required fn TF_ShapeInferenceContextSetUnknownShape(
            ctx: *mut TF_ShapeInferenceContext,
            status: *mut TF_Status,
        );
        /// 1 if the length of a dimension is known, 0 if not.
        required fn TF_DimensionHandleValueKnown(dim_handle: *mut TF_DimensionHandle) -> c_int;
        /// The length of a dimension; -1 if it is unknown.
        required fn TF_DimensionHandleValue(dim_handle: *mut TF_DimensionHandle) -> i64;
        /// Fills in the dimensions of `first` followed by those of `second`.
        required fn TF_ShapeInferenceContextConcatenateShapes(
            ctx: *mut TF_ShapeInferenceContext,
            first: *mut TF_ShapeHandle,
            second: *mut TF_ShapeHandle,
            result: *mut TF_ShapeHandle,
            status: *mut TF_Status,
        );
        /// Frees a shape; null is allowed.
        required fn TF_DeleteShapeHandle(handle: *mut TF_ShapeHandle);
        /// Frees a dimension; null is allowed.
        required fn TF_DeleteDimensionHandle(handle: *mut TF_DimensionHandle);
    }
}
