//! Operators on strings, run eagerly.

use super::Result;
use super::functions::{EagerContext, Functions, Op, TF_STRING, TString, Tensor, TensorHandle};
use core::ffi::{CStr, c_int};
use core::{ptr, slice};

/// Where operators run. Lives as long as the process.
pub(super) struct Context(*mut EagerContext);

// SAFETY: a context may be used from all threads; Python does so too.
unsafe impl Send for Context {}
// SAFETY: TensorFlow allows any thread to use a context; Python does so too.
unsafe impl Sync for Context {}

/// Calls a function when dropped: what C++ would do in a destructor.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Context {
    pub(super) fn new(functions: &Functions) -> Result<Self> {
        // SAFETY: the options are made and deleted here.
        let context = unsafe {
            let options = (functions.TFE_NewContextOptions)();
            let context = functions.check(|status| (functions.TFE_NewContext)(options, status));
            (functions.TFE_DeleteContextOptions)(options);
            context?
        };
        Ok(Self(context))
    }

    /// Runs an operator whose inputs are strings and whose one output, if any, is a tensor of strings.
    pub(super) fn run(
        &self,
        functions: &Functions,
        operator: &CStr,
        inputs: &[&[u8]],
    ) -> Result<Vec<Vec<u8>>> {
        let handles = inputs
            .iter()
            .map(|input| string(functions, input))
            .collect::<Result<Vec<*mut TensorHandle>>>()?;
        let _handles = Finally(|| {
            for &handle in &handles {
                // SAFETY: made by `string` and no longer used.
                unsafe { (functions.TFE_DeleteTensorHandle)(handle) };
            }
        });
        // SAFETY: the context is never deleted; a C string and a status.
        let op: *mut Op = functions
            .check(|status| unsafe { (functions.TFE_NewOp)(self.0, operator.as_ptr(), status) })?;
        // SAFETY: made above, and no longer used.
        let _op = Finally(|| unsafe { (functions.TFE_DeleteOp)(op) });
        for &handle in &handles {
            // SAFETY: an operator, a tensor and a status, all alive.
            functions.check(|status| unsafe { (functions.TFE_OpAddInput)(op, handle, status) })?;
        }
        let mut output: *mut TensorHandle = ptr::null_mut();
        let mut outputs: c_int = 1;
        // SAFETY: an operator, room for one answer, which is said, and a status.
        functions.check(|status| unsafe {
            (functions.TFE_Execute)(op, &mut output, &mut outputs, status)
        })?;
        if outputs == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the answer belongs to the caller, and is no longer used.
        let _output = Finally(|| unsafe { (functions.TFE_DeleteTensorHandle)(output) });
        // SAFETY: a tensor that is alive and a status.
        let tensor = functions
            .check(|status| unsafe { (functions.TFE_TensorHandleResolve)(output, status) })?;
        // SAFETY: the tensor belongs to the caller, and is no longer used.
        let _tensor = Finally(|| unsafe { (functions.TF_DeleteTensor)(tensor) });
        // SAFETY: the operators in use return tensors of strings, which are copied while the
        // tensor lives. An empty tensor may have no data.
        unsafe {
            let count = usize::try_from((functions.TF_TensorElementCount)(tensor)).unwrap_or(0);
            if count == 0 {
                return Ok(Vec::new());
            }
            let data = (functions.TF_TensorData)(tensor).cast::<TString>();
            let copy = |string| {
                let start = (functions.TF_StringGetDataPointer)(string).cast::<u8>();
                slice::from_raw_parts(start, (functions.TF_StringGetSize)(string)).to_vec()
            };
            Ok((0..count).map(|index| copy(data.add(index))).collect())
        }
    }
}

/// A tensor that is one string. It borrows `text`: the operator must have run before that ends.
fn string(functions: &Functions, text: &[u8]) -> Result<*mut TensorHandle> {
    // SAFETY: a scalar, in which the one string is initialised before it is set.
    let tensor: *mut Tensor = unsafe {
        let tensor = (functions.TF_AllocateTensor)(TF_STRING, ptr::null(), 0, size_of::<TString>());
        let place = (functions.TF_TensorData)(tensor).cast();
        (functions.TF_StringInit)(place);
        (functions.TF_StringAssignView)(place, text.as_ptr().cast(), text.len());
        tensor
    };
    // SAFETY: a tensor and a status; the handle has a share of the tensor, which is not used again.
    let handle =
        functions.check(|status| unsafe { (functions.TFE_NewTensorHandle)(tensor, status) });
    // SAFETY: `tensor` is ours and is not used again; the handle has its own reference to the buffer.
    unsafe { (functions.TF_DeleteTensor)(tensor) };
    handle
}
