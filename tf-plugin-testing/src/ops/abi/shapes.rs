//! The host's side of shape functions.

use super::definitions::text;
use crate::abi::status;
use crate::ops::account::Account;
use crate::ops::definition::{AttrValue, Dims};
use crate::ops::handles::Handles;
use crate::ops::node::Node;
use core::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_sys::{
    TF_DataType, TF_DimensionHandle, TF_ShapeHandle, TF_ShapeInferenceContext, TF_Status,
};
use tf_op_plugin::kernel::PartialShape;
use tf_op_plugin::{Error, Result};

/// A node whose shapes are inferred.
pub(super) struct Inference {
    inputs: Vec<PartialShape>,
    outputs: Mutex<Vec<Option<PartialShape>>>,
    types: Vec<(String, TF_DataType)>,
}

/// A shape of the plugin's; `None` until a function fills it in.
type ShapeObject = Mutex<Option<PartialShape>>;

static CONTEXTS: Handles<Inference> = Handles::new("shape inference context", 5);
static SHAPES: Handles<ShapeObject> = Handles::new("shape handle", 6);
static DIMENSIONS: Handles<Mutex<Option<i64>>> = Handles::new("dimension handle", 7);

type Context = *mut TF_ShapeInferenceContext;
type Shape = *mut TF_ShapeHandle;
type Dimension = *mut TF_DimensionHandle;

/// Runs the shape function of a node. An output that it does not set is `None`.
pub(in crate::ops) fn infer(
    node: &Node,
    inputs: Vec<PartialShape>,
) -> Result<Vec<Option<PartialShape>>> {
    let outputs = Mutex::new(vec![None; node.outputs.len()]);
    let Some(function) = node.op.infer_shapes else {
        return Ok(vec![Some(PartialShape::unknown()); node.outputs.len()]);
    };
    let types = node.attributes.iter().filter_map(|(name, value)| match value {
        AttrValue::Type(dtype) => Some((name.clone(), dtype.as_raw())),
        _ => None,
    });
    let inference = Arc::new(Inference { inputs, outputs, types: types.collect() });
    let status = node.account.status("the shape function");
    node.account.call(|| {
        CONTEXTS.lend(Arc::clone(&inference), |context| {
            // SAFETY: the plugin's function, with a context and a status for the length of the call.
            unsafe { function(context, status.as_ptr()) };
        });
    });
    status.result()?;
    let outputs = inference.outputs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(outputs)
}

fn context(function: &'static str, context: Context) -> Option<Arc<Inference>> {
    CONTEXTS.find(function, context)
}

/// Returns a shape of the plugin's; one that was never filled in is a null handle, which TensorFlow follows.
fn shape(function: &'static str, handle: Shape) -> PartialShape {
    let Some(object) = SHAPES.find(function, handle) else { return PartialShape::unknown() };
    let shape = object.lock().unwrap_or_else(PoisonError::into_inner).clone();
    shape.unwrap_or_else(|| {
        if let Some(account) = Account::current() {
            account.add(
                function,
                "the plugin used a shape that nothing has filled in; TensorFlow would crash",
            );
        }
        PartialShape::unknown()
    })
}

/// Fills in a shape of the plugin's, or sets its status.
fn fill(
    function: &'static str,
    handle: Shape,
    status: *mut TF_Status,
    result: Result<PartialShape>,
) {
    status::write(
        status,
        result.map(|shape| {
            if let Some(object) = SHAPES.find(function, handle) {
                *object.lock().unwrap_or_else(PoisonError::into_inner) = Some(shape);
            }
        }),
    );
}

fn new(shape: Option<PartialShape>) -> Shape {
    SHAPES.add(Mutex::new(shape))
}

pub(super) unsafe extern "C" fn num_inputs(ctx: Context) -> i64 {
    context("TF_ShapeInferenceContextNumInputs", ctx)
        .map_or(0, |context| context.inputs.len() as i64)
}

pub(super) unsafe extern "C" fn new_shape() -> Shape {
    new(None)
}

pub(super) unsafe extern "C" fn get_input(
    ctx: Context,
    index: c_int,
    handle: Shape,
    status: *mut TF_Status,
) {
    const NAME: &str = "TF_ShapeInferenceContextGetInput";
    let Some(context) = context(NAME, ctx) else { return };
    let input = usize::try_from(index).ok().and_then(|index| context.inputs.get(index)).cloned();
    let input = input.ok_or_else(|| Error::invalid_argument("input index out of range"));
    fill(NAME, handle, status, input);
}

pub(super) unsafe extern "C" fn set_output(
    ctx: Context,
    index: c_int,
    handle: Shape,
    status: *mut TF_Status,
) {
    const NAME: &str = "TF_ShapeInferenceContextSetOutput";
    let Some(context) = context(NAME, ctx) else { return };
    let shape = shape(NAME, handle);
    let mut outputs = context.outputs.lock().unwrap_or_else(PoisonError::into_inner);
    let place = usize::try_from(index).ok().and_then(|index| outputs.get_mut(index));
    let result = place.map(|place| *place = Some(shape));
    status::write(
        status,
        result.ok_or_else(|| Error::invalid_argument("output index out of range")),
    );
}

pub(super) unsafe extern "C" fn set_unknown(ctx: Context, status: *mut TF_Status) {
    let Some(context) = context("TF_ShapeInferenceContextSetUnknownShape", ctx) else { return };
    let mut outputs = context.outputs.lock().unwrap_or_else(PoisonError::into_inner);
    outputs.fill(Some(PartialShape::unknown()));
    status::write(status, Ok(()));
}

pub(super) unsafe extern "C" fn scalar(_: Context) -> Shape {
    new(Some(PartialShape::new([])))
}

pub(super) unsafe extern "C" fn vector(_: Context, size: usize) -> Shape {
    // TensorFlow takes it for a signed number, of which a negative one is unknown.
    let size = size as i64;
    new(Some(PartialShape::new([(size >= 0).then_some(size)])))
}

pub(super) unsafe extern "C" fn new_dimension() -> Dimension {
    DIMENSIONS.add(Mutex::new(None))
}

pub(super) unsafe extern "C" fn attr_type(
    ctx: Context,
    name: *const c_char,
    value: *mut TF_DataType,
    status: *mut TF_Status,
) {
    let Some(context) = context("TF_ShapeInferenceContext_GetAttrType", ctx) else { return };
    // SAFETY: the plugin passes a C string.
    let name = unsafe { text(name) };
    let found = context.types.iter().find(|(known, _)| *known == name);
    let found = found.ok_or_else(|| {
        Error::invalid_argument(format!("No attr named '{name}' of type 'type' in NodeDef"))
    });
    // SAFETY: the plugin passes a place for the type.
    status::write(status, found.map(|(_, dtype)| unsafe { value.write(*dtype) }));
}

pub(super) unsafe extern "C" fn rank(_: Context, handle: Shape) -> i64 {
    shape("TF_ShapeInferenceContextRank", handle).dims().map_or(-1, |dims| dims.len() as i64)
}

pub(super) unsafe extern "C" fn rank_known(_: Context, handle: Shape) -> c_int {
    shape("TF_ShapeInferenceContextRankKnown", handle).dims().is_some().into()
}

/// How a rank is to compare with a number.
#[derive(Clone, Copy)]
enum Rank {
    Exactly,
    AtLeast,
    AtMost,
}

fn with(rank: Rank, wanted: i64, shape: PartialShape) -> Result<PartialShape> {
    let Some(dims) = shape.dims() else {
        return Ok(match rank {
            Rank::Exactly => PartialShape::new((0..wanted).map(|_| None)),
            Rank::AtLeast | Rank::AtMost => shape,
        });
    };
    let found = dims.len() as i64;
    let (fits, words) = match rank {
        Rank::Exactly => (found == wanted, ""),
        Rank::AtLeast => (found >= wanted, "at least "),
        Rank::AtMost => (found <= wanted, "at most "),
    };
    if fits {
        return Ok(shape);
    }
    Err(Error::invalid_argument(format!("Shape must be {words}rank {wanted} but is rank {found}")))
}

macro_rules! with_rank {
    ($($name:ident, $function:literal, $rank:ident;)*) => {$(
        pub(super) unsafe extern "C" fn $name(
            _: Context,
            handle: Shape,
            rank: i64,
            result: Shape,
            status: *mut TF_Status,
        ) {
            fill($function, result, status, with(Rank::$rank, rank, shape($function, handle)));
        }
    )*};
}
with_rank! {
    with_rank, "TF_ShapeInferenceContextWithRank", Exactly;
    with_rank_at_least, "TF_ShapeInferenceContextWithRankAtLeast", AtLeast;
    with_rank_at_most, "TF_ShapeInferenceContextWithRankAtMost", AtMost;
}

pub(super) unsafe extern "C" fn dim(_: Context, handle: Shape, index: i64, result: Dimension) {
    const NAME: &str = "TF_ShapeInferenceContextDim";
    let shape = shape(NAME, handle);
    let value = shape.dims().and_then(|dims| {
        let index = if index < 0 { index + dims.len() as i64 } else { index };
        // A dimension that is out of range reads as 0.
        usize::try_from(index).ok().and_then(|index| dims.get(index)).copied().unwrap_or(Some(0))
    });
    if let Some(object) = DIMENSIONS.find(NAME, result) {
        *object.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// Returns the dimensions from `start` to `end`, with TensorFlow's limits.
fn part(shape: &PartialShape, start: i64, end: i64) -> Result<PartialShape> {
    let Some(dims) = shape.dims() else { return Ok(PartialShape::unknown()) };
    let rank = dims.len() as i64;
    let place = |at: i64, what: &str| match at.min(rank) {
        at if at >= 0 => Ok(at),
        at if at + rank >= 0 => Ok(at + rank),
        at => Err(Error::invalid_argument(format!(
            "Subshape {what} out of bounds: {at}, for shape with rank {rank}"
        ))),
    };
    let (from, to) = (place(start, "start")?, place(end, "end")?);
    if from > to {
        return Err(Error::invalid_argument(format!(
            "Subshape must have computed start <= end, but is {from} and {to} (computed from start {start} and end {end} \
             over shape with rank {rank}: {})",
            Dims(dims)
        )));
    }
    Ok(PartialShape::new(dims[from as usize..to as usize].iter().copied()))
}

pub(super) unsafe extern "C" fn subshape(
    _: Context,
    handle: Shape,
    start: i64,
    end: i64,
    result: Shape,
    status: *mut TF_Status,
) {
    const NAME: &str = "TF_ShapeInferenceContextSubshape";
    fill(NAME, result, status, part(&shape(NAME, handle), start, end));
}

pub(super) unsafe extern "C" fn dimension_known(handle: Dimension) -> c_int {
    dimension("TF_DimensionHandleValueKnown", handle).is_some().into()
}

pub(super) unsafe extern "C" fn dimension_value(handle: Dimension) -> i64 {
    dimension("TF_DimensionHandleValue", handle).unwrap_or(-1)
}

fn dimension(function: &'static str, handle: Dimension) -> Option<i64> {
    *DIMENSIONS.find(function, handle)?.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) unsafe extern "C" fn concatenate(
    _: Context,
    first: Shape,
    second: Shape,
    result: Shape,
    status: *mut TF_Status,
) {
    const NAME: &str = "TF_ShapeInferenceContextConcatenateShapes";
    let joined = match (shape(NAME, first).dims(), shape(NAME, second).dims()) {
        (Some(first), Some(second)) => PartialShape::new(first.iter().chain(second).copied()),
        _ => PartialShape::unknown(),
    };
    fill(NAME, result, status, Ok(joined));
}

pub(super) unsafe extern "C" fn delete_shape(handle: Shape) {
    if !handle.is_null() {
        SHAPES.remove("TF_DeleteShapeHandle", handle);
    }
}

pub(super) unsafe extern "C" fn delete_dimension(handle: Dimension) {
    if !handle.is_null() {
        DIMENSIONS.remove("TF_DeleteDimensionHandle", handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_parts_of_shapes_are_those_of_tensorflow() {
        let shape = || PartialShape::new([Some(2), None, Some(3)]);
        let text = |result: Result<PartialShape>| match result {
            Ok(shape) => AttrValue::from(shape).to_string(),
            Err(error) => error.message().to_owned(),
        };
        for (result, expected) in [
            (with(Rank::Exactly, 3, shape()), "[2,?,3]"),
            (with(Rank::Exactly, 1, shape()), "Shape must be rank 1 but is rank 3"),
            (with(Rank::Exactly, 2, PartialShape::unknown()), "[?,?]"),
            (with(Rank::AtLeast, 4, shape()), "Shape must be at least rank 4 but is rank 3"),
            (with(Rank::AtMost, 2, shape()), "Shape must be at most rank 2 but is rank 3"),
            (with(Rank::AtMost, 2, PartialShape::unknown()), "<unknown>"),
            (part(&shape(), 1, i64::MAX), "[?,3]"),
            (part(&shape(), -1, 3), "[3]"),
            (part(&shape(), 0, -1), "[2,?]"),
            (part(&shape(), -4, 3), "Subshape start out of bounds: -4, for shape with rank 3"),
            (part(&PartialShape::unknown(), 1, 2), "<unknown>"),
        ] {
            assert_eq!(text(result), expected);
        }
        assert!(text(part(&shape(), 2, 1)).starts_with("Subshape must have computed start <= end"));
    }
}
