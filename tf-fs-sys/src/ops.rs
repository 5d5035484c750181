//! `tensorflow/c/ops.h`: definitions of new ops, and what shapes their outputs have.
//!
//! Notes on behaviour say what TensorFlow 2.12 to 2.21 really does.

use crate::datatype::TF_DataType;
use crate::layout::{Status, Text};
use core::ffi::c_int;

type OpBuilder = *mut TF_OpDefinitionBuilder;
type ShapeContext = *mut TF_ShapeInferenceContext;
type Shape = *mut TF_ShapeHandle;
type Dimension = *mut TF_DimensionHandle;

crate::layout::opaque! {
    /// The length of a dimension, which may be unknown. Opaque.
    pub struct TF_DimensionHandle;

    /// The definition of an op that is being built. Opaque.
    pub struct TF_OpDefinitionBuilder;

    /// A shape, of which rank and dimensions may be unknown. Opaque.
    pub struct TF_ShapeHandle;

    /// A node whose shapes are being inferred. Opaque; the host's, for the length of a call.
    pub struct TF_ShapeInferenceContext;
}

/// A plugin's function that sets the shapes of a node's outputs.
pub type TF_ShapeInferenceFn = Option<unsafe extern "C" fn(ctx: ShapeContext, status: Status)>;

crate::layout::host_functions! {
    /// The functions of `ops.h`, in `libtensorflow_framework.so.2`.
    ///
    /// Handles that a function of this table returns belong to the caller, who frees them; handles
    /// that a function fills in (`result`) belong to the caller before and after.
    pub struct OpFunctions {
        /// Starts the definition of an op. Freed by registering it or by
        /// [`TF_DeleteOpDefinitionBuilder`](Self::TF_DeleteOpDefinitionBuilder), never both.
        required fn TF_NewOpDefinitionBuilder(op_name: Text) -> OpBuilder;
        /// Registers the op and frees `builder`. If an op of that name exists already, or a text of
        /// the definition is wrong, `status` does not report it: the host **aborts a process that
        /// has imported TensorFlow**, also from inside `TF_InitKernel`.
        required fn TF_RegisterOpDefinition(builder: OpBuilder, status: Status);
        /// Frees a definition that is not registered.
        required fn TF_DeleteOpDefinitionBuilder(builder: OpBuilder);
        /// Adds an attribute, `name: type` or `name: type = default`, as in `T: {float, double}`.
        required fn TF_OpDefinitionBuilderAddAttr(builder: OpBuilder, attr_spec: Text);
        /// Adds an input, `name: type`, where the type may be an attribute's name, as in `x: T` or
        /// `xs: N * T`.
        required fn TF_OpDefinitionBuilderAddInput(builder: OpBuilder, input_spec: Text);
        /// Adds an output, in the same way.
        required fn TF_OpDefinitionBuilderAddOutput(builder: OpBuilder, output_spec: Text);
        /// Says that two inputs may be exchanged. **The host ignores the boolean**, here and in the
        /// next three: any call means true.
        required fn TF_OpDefinitionBuilderSetIsCommutative(builder: OpBuilder, is_commutative: bool);
        /// Says that the op combines any number of inputs of one type and shape into one output, in any
        /// grouping.
        required fn TF_OpDefinitionBuilderSetIsAggregate(builder: OpBuilder, is_aggregate: bool);
        /// Says that the op depends on more than its inputs or has an effect besides its outputs, so
        /// that it is neither merged with an equal one nor moved.
        required fn TF_OpDefinitionBuilderSetIsStateful(builder: OpBuilder, is_stateful: bool);
        /// Says that inputs may be variables that were not initialised.
        required fn TF_OpDefinitionBuilderSetAllowsUninitializedInput(builder: OpBuilder, allows_uninitialized_input: bool);
        /// Marks the op as deprecated since a version of GraphDef, and says what to use instead.
        required fn TF_OpDefinitionBuilderDeprecated(builder: OpBuilder, version: c_int, explanation: Text);
        /// Sets the function that infers shapes.
        required fn TF_OpDefinitionBuilderSetShapeInferenceFunction(
            builder: OpBuilder, shape_inference_func: TF_ShapeInferenceFn
        );
        /// Returns the number of inputs.
        required fn TF_ShapeInferenceContextNumInputs(ctx: ShapeContext) -> i64;
        /// Creates a handle for a shape.
        required fn TF_NewShapeHandle() -> Shape;
        /// Fills in the shape of an input. An index that is out of range is `TF_INVALID_ARGUMENT`.
        required fn TF_ShapeInferenceContextGetInput(ctx: ShapeContext, i: c_int, handle: Shape, status: Status);
        /// Sets the shape of an output; the handle is copied. An index that is out of range is
        /// `TF_INVALID_ARGUMENT`.
        required fn TF_ShapeInferenceContextSetOutput(ctx: ShapeContext, i: c_int, handle: Shape, status: Status);
        /// Returns the shape of a scalar.
        required fn TF_ShapeInferenceContextScalar(ctx: ShapeContext) -> Shape;
        /// Returns the shape of a vector of `size` elements.
        required fn TF_ShapeInferenceContextVectorFromSize(ctx: ShapeContext, size: usize) -> Shape;
        /// Creates a handle for a dimension.
        required fn TF_NewDimensionHandle() -> Dimension;
        /// Reads an attribute that is a type.
        required fn TF_ShapeInferenceContext_GetAttrType(
            ctx: ShapeContext, attr_name: Text, val: *mut TF_DataType, status: Status
        );
        /// Returns the rank of a shape, which must be known.
        required fn TF_ShapeInferenceContextRank(ctx: ShapeContext, handle: Shape) -> i64;
        /// Returns 1 if the rank of a shape is known, 0 if not.
        required fn TF_ShapeInferenceContextRankKnown(ctx: ShapeContext, handle: Shape) -> c_int;
        /// Fills in the shape, with this rank if its rank is unknown; fails if it has another.
        required fn TF_ShapeInferenceContextWithRank(
            ctx: ShapeContext, handle: Shape, rank: i64, result: Shape, status: Status
        );
        /// Fills in the shape; fails if its rank is known and smaller.
        required fn TF_ShapeInferenceContextWithRankAtLeast(
            ctx: ShapeContext, handle: Shape, rank: i64, result: Shape, status: Status
        );
        /// Fills in the shape; fails if its rank is known and greater.
        required fn TF_ShapeInferenceContextWithRankAtMost(
            ctx: ShapeContext, handle: Shape, rank: i64, result: Shape, status: Status
        );
        /// Fills in one dimension of a shape; a negative index counts from the end. An index that
        /// is out of range gives a dimension that reads as 0.
        required fn TF_ShapeInferenceContextDim(ctx: ShapeContext, shape_handle: Shape, i: i64, result: Dimension);
        /// Fills in the shape of the dimensions from `start` up to, not including, `end`; negative
        /// ones count from the end.
        required fn TF_ShapeInferenceContextSubshape(
            ctx: ShapeContext, shape_handle: Shape, start: i64, end: i64, result: Shape, status: Status
        );
        /// Says that the shapes of all outputs are unknown.
        required fn TF_ShapeInferenceContextSetUnknownShape(ctx: ShapeContext, status: Status);
        /// Returns 1 if the length of a dimension is known, 0 if not.
        required fn TF_DimensionHandleValueKnown(dim_handle: Dimension) -> c_int;
        /// Returns the length of a dimension; -1 if it is unknown.
        required fn TF_DimensionHandleValue(dim_handle: Dimension) -> i64;
        /// Fills in the dimensions of `first` followed by those of `second`.
        required fn TF_ShapeInferenceContextConcatenateShapes(
            ctx: ShapeContext, first: Shape, second: Shape, result: Shape, status: Status
        );
        /// Frees a shape; null is allowed.
        required fn TF_DeleteShapeHandle(handle: Shape);
        /// Frees a dimension; null is allowed.
        required fn TF_DeleteDimensionHandle(handle: Dimension);
    }
}
