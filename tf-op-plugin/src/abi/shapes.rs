//! Shape inference for the outputs of a node.

use super::status::{Status, ask};
use crate::dtype::DType;
use crate::kernel::OpDefinition;
use crate::op::Op;
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::ffi::CString;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{OpFunctions, TF_ShapeHandle, TF_ShapeInferenceContext, TF_Status};
use tf_plugin_core::__private::boundary::guard;
use tf_plugin_core::{Error, Result, ensure};

/// The function that infers shapes.
pub(crate) type Infer = unsafe extern "C" fn(*mut TF_ShapeInferenceContext, *mut TF_Status);

/// Runs the shape inference of an op definition.
///
/// # Safety
/// Only the host calls it: it passes a node and a status.
pub(crate) unsafe extern "C" fn infer<O: OpDefinition>(
    raw: *mut TF_ShapeInferenceContext,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a node and a status.
    unsafe { infer_by(O::NAME, raw, status, O::infer_shapes) };
}

/// Runs the shape inference of an op.
///
/// # Safety
/// Only the host calls it: it passes a node and a status.
pub(crate) unsafe extern "C" fn infer_op<O: Op>(
    raw: *mut TF_ShapeInferenceContext,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a node and a status.
    unsafe { infer_by(O::SPEC.name, raw, status, O::infer_shapes) };
}

/// Runs an author's shape inference.
///
/// # Safety
/// `raw` is null or a node, and `status` a status, both for the length of the call.
unsafe fn infer_by(
    name: &'static str,
    raw: *mut TF_ShapeInferenceContext,
    status: *mut TF_Status,
    infer: fn(&mut ShapeInferenceContext<'_>) -> Result<()>,
) {
    let body = || {
        let host = OpFunctions::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw).ok_or_else(|| Error::internal("TensorFlow passed no node"))?;
        let status = Status::new()?;
        infer(&mut ShapeInferenceContext { raw, host, status, call: PhantomData })
    };
    // SAFETY: the host passes a status.
    unsafe { guard(name, status, (), body) };
}

/// A node whose shapes are inferred.
pub struct ShapeInferenceContext<'a> {
    raw: NonNull<TF_ShapeInferenceContext>,
    host: &'static OpFunctions,
    status: Status,
    call: PhantomData<&'a mut TF_ShapeInferenceContext>,
}

/// A shape in shape inference. Its rank and its dimensions may be unknown.
pub struct ShapeHandle<'a> {
    raw: NonNull<TF_ShapeHandle>,
    host: &'static OpFunctions,
    call: PhantomData<&'a TF_ShapeInferenceContext>,
}

impl Drop for ShapeHandle<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, freed once.
        unsafe { (self.host.TF_DeleteShapeHandle)(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for ShapeHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShapeHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for ShapeInferenceContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShapeInferenceContext").finish_non_exhaustive()
    }
}

/// Returns the shape that one of the host's functions creates.
macro_rules! made {
    ($of:ident.$function:ident($($argument:expr),*)) => {{
        let shape = $of.empty()?;
        // SAFETY: a node of the host's, handles that are ours and a status.
        unsafe { ask!($of.host.$function($($argument,)* shape.raw.as_ptr())) };
        Ok(shape)
    }};
}

impl<'a> ShapeInferenceContext<'a> {
    fn adopt(&self, raw: *mut TF_ShapeHandle) -> Result<ShapeHandle<'a>> {
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::resource_exhausted("TensorFlow made no shape"))?;
        Ok(ShapeHandle { raw, host: self.host, call: PhantomData })
    }

    fn empty(&self) -> Result<ShapeHandle<'a>> {
        // SAFETY: the function takes nothing; the handle is ours.
        self.adopt(unsafe { (self.host.TF_NewShapeHandle)() })
    }

    /// Returns the number of inputs.
    #[must_use]
    pub fn input_count(&self) -> usize {
        // SAFETY: a node of the host's for the length of the call.
        let count = unsafe { (self.host.TF_ShapeInferenceContextNumInputs)(self.raw.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Returns the shape of an input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such input.
    pub fn input(&self, index: usize) -> Result<ShapeHandle<'a>> {
        let at = c_int::try_from(index).map_err(Error::invalid_argument)?;
        made!(self.TF_ShapeInferenceContextGetInput(at))
    }

    /// Sets the shape of an output.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such output.
    pub fn set_output(&mut self, index: usize, shape: &ShapeHandle<'a>) -> Result<()> {
        let at = c_int::try_from(index).map_err(Error::invalid_argument)?;
        // SAFETY: a node of the host's, a handle that is ours, which the host copies, and a status.
        unsafe { ask!(self.host.TF_ShapeInferenceContextSetOutput(at, shape.raw.as_ptr())) };
        Ok(())
    }

    /// Sets the shapes of all outputs to unknown.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn set_unknown(&mut self) -> Result<()> {
        // SAFETY: a node of the host's and a status.
        unsafe { ask!(self.host.TF_ShapeInferenceContextSetUnknownShape()) };
        Ok(())
    }

    /// Returns the shape of a scalar.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn scalar(&self) -> Result<ShapeHandle<'a>> {
        // SAFETY: a node of the host's; the handle is ours.
        self.adopt(unsafe { (self.host.TF_ShapeInferenceContextScalar)(self.raw.as_ptr()) })
    }

    /// Returns the shape of a vector.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn vector(&self, len: usize) -> Result<ShapeHandle<'a>> {
        let vector = self.host.TF_ShapeInferenceContextVectorFromSize;
        // SAFETY: a node of the host's; the handle is ours.
        self.adopt(unsafe { vector(self.raw.as_ptr(), len) })
    }

    /// Returns the shape of a vector of unknown length.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn unknown_vector(&self) -> Result<ShapeHandle<'a>> {
        // TensorFlow takes the length for an `int64_t`, in which -1 is an unknown one.
        self.vector(usize::MAX)
    }

    /// Returns an attribute that is a type.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such attribute, `UNIMPLEMENTED` for a type that this SDK does not know.
    pub fn attr_type(&self, name: &str) -> Result<DType> {
        let name = CString::new(name).map_err(Error::invalid_argument)?;
        let mut dtype = 0;
        // SAFETY: a node of the host's, a C string, a place for the result and a status.
        unsafe {
            ask!(self.host.TF_ShapeInferenceContext_GetAttrType(name.as_ptr(), &raw mut dtype));
        }
        DType::known_or_error(dtype)
    }

    /// Returns the number of dimensions, if it is known.
    #[must_use]
    pub fn rank(&self, shape: &ShapeHandle<'a>) -> Option<usize> {
        let (raw, shape) = (self.raw.as_ptr(), shape.raw.as_ptr());
        // SAFETY: a node of the host's and a handle that is ours.
        let rank = unsafe {
            ((self.host.TF_ShapeInferenceContextRankKnown)(raw, shape) != 0)
                .then(|| (self.host.TF_ShapeInferenceContextRank)(raw, shape))
        };
        rank.and_then(|rank| usize::try_from(rank).ok())
    }

    /// Returns the shape with `rank` dimensions; an unknown rank is set to it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the shape has another rank.
    pub fn with_rank(&self, shape: &ShapeHandle<'a>, rank: usize) -> Result<ShapeHandle<'a>> {
        let rank = i64::try_from(rank).map_err(Error::invalid_argument)?;
        made!(self.TF_ShapeInferenceContextWithRank(shape.raw.as_ptr(), rank))
    }

    /// Returns the length of a dimension, if it is known. A negative index counts from the end.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an index that is out of range.
    pub fn dim(&self, shape: &ShapeHandle<'a>, index: i64) -> Result<Option<i64>> {
        let Some(rank) = self.rank(shape) else { return Ok(None) };
        let rank = i64::try_from(rank).map_err(Error::internal)?;
        ensure!(
            (-rank..rank).contains(&index),
            Error::invalid_argument(format!("there is no dimension {index} of {rank}"))
        );
        // SAFETY: a node of the host's and a handle that is ours. The handle of the dimension is not null, and is
        // deleted once.
        let len = unsafe {
            let dim = (self.host.TF_NewDimensionHandle)();
            ensure!(!dim.is_null(), Error::resource_exhausted("TensorFlow made no dimension"));
            let get = self.host.TF_ShapeInferenceContextDim;
            get(self.raw.as_ptr(), shape.raw.as_ptr(), index, dim);
            let len = (self.host.TF_DimensionHandleValue)(dim);
            (self.host.TF_DeleteDimensionHandle)(dim);
            len
        };
        Ok((len >= 0).then_some(len))
    }

    /// Returns the dimensions from `start` up to, not including, `end`; negative ones count from the end.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for dimensions that are out of range.
    pub fn subshape(
        &self,
        shape: &ShapeHandle<'a>,
        start: i64,
        end: i64,
    ) -> Result<ShapeHandle<'a>> {
        made!(self.TF_ShapeInferenceContextSubshape(shape.raw.as_ptr(), start, end))
    }

    /// Returns the dimensions of one shape, followed by those of another.
    ///
    /// # Errors
    /// Those of TensorFlow.
    pub fn concatenate(
        &self,
        first: &ShapeHandle<'a>,
        second: &ShapeHandle<'a>,
    ) -> Result<ShapeHandle<'a>> {
        let (first, second) = (first.raw.as_ptr(), second.raw.as_ptr());
        made!(self.TF_ShapeInferenceContextConcatenateShapes(first, second))
    }
}
