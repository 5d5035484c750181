//! Kernels and their runs.

use super::construction::{self, EMPTY, in_range, keep_first, view};
use super::definitions::text;
use super::memory::{Array, elements_of};
use super::tensors::{array_of, fill_buffer, lend, no_such_shape, shape_of};
use crate::abi::status;
use crate::ops::handles::Handles;
use crate::ops::node::{DEVICE, Node};
use crate::ops::registry::KernelDef;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tf_fs_sys::{
    TF_AllocatorAttributes, TF_Buffer, TF_DataType, TF_InputRange_Args, TF_OpKernelContext,
    TF_Status, TF_StringView, TF_Tensor,
};
use tf_op_plugin::{Error, Result};

/// A kernel of the plugin's, for one node.
#[derive(Debug)]
pub(in crate::ops) struct Kernel {
    node: Arc<Node>,
    functions: Arc<KernelDef>,
    state: *mut c_void,
}

// SAFETY: the header lets any thread run and delete a kernel.
unsafe impl Send for Kernel {}
// SAFETY: the header lets several threads run a kernel at once; the fields do not change.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Creates the kernel.
    pub(in crate::ops) fn new(node: Arc<Node>, functions: Arc<KernelDef>) -> Result<Self> {
        let (state, created) = match functions.create {
            Some(create) => construction::create(&node, create),
            None => (ptr::null_mut(), Ok(())),
        };
        let kernel = Self { node, functions, state };
        // An error deletes what the plugin has returned, as TensorFlow does.
        created?;
        Ok(kernel)
    }

    pub(in crate::ops) fn node(&self) -> &Node {
        &self.node
    }

    /// Runs the kernel. Returns its outputs, of which those that it did not set are `None`.
    pub(in crate::ops) fn run(
        &self,
        inputs: Vec<Array>,
        config: Vec<u8>,
    ) -> Result<Vec<Option<Array>>> {
        let outputs = Mutex::new(vec![None; self.node.outputs.len()]);
        let (node, failure) = (Arc::clone(&self.node), Mutex::new(Ok(())));
        let run = Arc::new(Run { node, inputs: Mutex::new(inputs), outputs, config, failure });
        if let Some(compute) = self.functions.compute {
            self.node.account.call(|| {
                // SAFETY: the plugin's functions, with the state of its own, which is deleted later, and a context for the
                // length of the call.
                CONTEXTS.lend(Arc::clone(&run), |context| unsafe { compute(self.state, context) });
            });
        }
        std::mem::replace(&mut *lock(&run.failure), Ok(()))?;
        Ok(std::mem::take(&mut *lock(&run.outputs)))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if let Some(delete) = self.functions.delete {
            // SAFETY: the plugin's function, once, with what it has returned.
            self.node.account.call(|| unsafe { delete(self.state) });
        }
    }
}

/// One run of a kernel.
struct Run {
    node: Arc<Node>,
    inputs: Mutex<Vec<Array>>,
    outputs: Mutex<Vec<Option<Array>>>,
    config: Vec<u8>,
    failure: Mutex<Result<()>>,
}

static CONTEXTS: Handles<Run> = Handles::new("op kernel context", 9);

type Context = *mut TF_OpKernelContext;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn context(function: &'static str, context: Context) -> Option<Arc<Run>> {
    CONTEXTS.find(function, context)
}

impl Run {
    /// Notes an output. A second one for the same index is a violation.
    fn set(&self, function: &'static str, index: usize, array: Array) {
        let mut outputs = lock(&self.outputs);
        let Some(place) = outputs.get_mut(index) else { return };
        if place.is_some() {
            let name = &self.node.outputs[index].name;
            self.node.account.add(
                function,
                format!("output {index}, `{name}`, is set twice; TensorFlow aborts the process"),
            );
        }
        if !array.is_complete() {
            let (shape, bytes) = (&array.shape, array.bytes());
            let what = format!("a tensor of {bytes} bytes does not have the shape {shape:?}");
            self.node.account.add(function, format!("{what}; TensorFlow reads behind its memory"));
            return;
        }
        *place = Some(array);
    }

    /// Returns the type of an output.
    fn output_type(&self, index: usize) -> TF_DataType {
        self.node.outputs.get(index).map_or(0, |slot| slot.dtype.as_raw())
    }

    /// Allocates a tensor of the host's.
    fn allocate(
        &self,
        function: &'static str,
        data_type: TF_DataType,
        shape: &[i64],
    ) -> Result<Array> {
        if elements_of(shape).is_none() {
            no_such_shape(function, shape);
        }
        Array::new(data_type, shape).ok_or_else(|| {
            Error::resource_exhausted(format!("OOM when allocating tensor with shape {shape:?}"))
        })
    }
}

/// Sets the status, and returns the tensor that the result is for the plugin.
fn returned(status: *mut TF_Status, result: Result<Array>) -> *mut TF_Tensor {
    match result {
        Ok(array) => {
            status::write(status, Ok(()));
            lend(array)
        }
        Err(error) => {
            status::write(status, Err(error));
            ptr::null_mut()
        }
    }
}

pub(super) unsafe extern "C" fn failure(ctx: Context, failed: *mut TF_Status) {
    const NAME: &str = "TF_OpKernelContext_Failure";
    let Some(run) = context(NAME, ctx) else { return };
    keep_first(&run.failure, status::read(NAME, failed));
}

pub(super) unsafe extern "C" fn num_inputs(ctx: Context) -> c_int {
    context("TF_NumInputs", ctx).map_or(0, |run| run.node.inputs.len() as c_int)
}

pub(super) unsafe extern "C" fn num_outputs(ctx: Context) -> c_int {
    context("TF_NumOutputs", ctx).map_or(0, |run| run.node.outputs.len() as c_int)
}

pub(super) unsafe extern "C" fn get_input(
    ctx: Context,
    index: c_int,
    tensor: *mut *mut TF_Tensor,
    status: *mut TF_Status,
) {
    let Some(run) = context("TF_GetInput", ctx) else { return };
    let inputs = lock(&run.inputs);
    let found = in_range(index, inputs.len(), "input").map(|index| inputs[index].clone());
    drop(inputs);
    let found = returned(status, found);
    // SAFETY: the plugin passes a place for the tensor.
    unsafe { tensor.write(found) };
}

pub(super) unsafe extern "C" fn input_range(
    ctx: Context,
    name: *const c_char,
    args: *mut TF_InputRange_Args,
) {
    let Some(run) = context("TF_InputRange", ctx) else { return };
    // SAFETY: the plugin passes a C string, and the struct with a status in it.
    unsafe {
        let name = text(name);
        let is_of = |slot: &str| slot == name || slot.starts_with(&format!("{name}["));
        let of: Vec<_> =
            (0..).zip(&run.node.inputs).filter(|(_, slot)| is_of(&slot.name)).collect();
        (*args).start = of.first().map_or(0, |(index, _)| *index);
        (*args).stop = of.last().map_or(0, |(index, _)| *index + 1);
        let known = run.node.op.inputs.iter().any(|one| one.name == name);
        let unknown = || Error::invalid_argument(format!("Unknown input name: {name}"));
        status::write((*args).status, if known { Ok(()) } else { Err(unknown()) });
    }
}

/// Returns the type at an index; TensorFlow aborts for one that is out of range.
fn type_at(function: &'static str, ctx: Context, index: c_int, of_inputs: bool) -> TF_DataType {
    let Some(run) = context(function, ctx) else { return 0 };
    let slots = if of_inputs { &run.node.inputs } else { &run.node.outputs };
    let slot = usize::try_from(index).ok().and_then(|index| slots.get(index));
    if slot.is_none() {
        let what = format!("there is no index {index}; TensorFlow aborts the process");
        run.node.account.add(function, what);
    }
    slot.map_or(0, |slot| slot.dtype.as_raw())
}

pub(super) unsafe extern "C" fn input_type(ctx: Context, index: c_int) -> TF_DataType {
    type_at("TF_InputDatatype", ctx, index, true)
}

pub(super) unsafe extern "C" fn output_type(ctx: Context, index: c_int) -> TF_DataType {
    type_at("TF_ExpectedOutputDataType", ctx, index, false)
}

pub(super) unsafe extern "C" fn set_output(
    ctx: Context,
    index: c_int,
    tensor: *const TF_Tensor,
    status: *mut TF_Status,
) {
    const NAME: &str = "TF_SetOutput";
    let Some(run) = context(NAME, ctx) else { return };
    let Some(array) = array_of(NAME, tensor) else { return };
    let index = in_range(index, run.node.outputs.len(), "output");
    status::write(status, index.map(|index| run.set(NAME, index, array)));
}

pub(super) unsafe extern "C" fn mutable_output(
    ctx: Context,
    index: c_int,
    status: *mut TF_Status,
) -> *mut TF_Tensor {
    let Some(run) = context("TF_GetMutableOutput", ctx) else { return ptr::null_mut() };
    let outputs = lock(&run.outputs);
    let found = in_range(index, outputs.len(), "output").and_then(|index| {
        outputs[index].clone().ok_or_else(|| Error::invalid_argument("the output is not set yet"))
    });
    drop(outputs);
    returned(status, found)
}

pub(super) unsafe extern "C" fn allocate_output(
    ctx: Context,
    index: c_int,
    _: TF_DataType,
    dims: *const i64,
    num_dims: c_int,
    _: usize,
    status: *mut TF_Status,
) -> *mut TF_Tensor {
    const NAME: &str = "TF_AllocateOutput";
    let Some(run) = context(NAME, ctx) else { return ptr::null_mut() };
    // SAFETY: the plugin passes as many dimensions as it says.
    let shape = unsafe { shape_of(dims, num_dims) };
    let array = in_range(index, run.node.outputs.len(), "output").and_then(|index| {
        let array = run.allocate(NAME, run.output_type(index), &shape)?;
        run.set(NAME, index, array.clone());
        Ok(array)
    });
    returned(status, array)
}

pub(super) unsafe extern "C" fn forward(
    ctx: Context,
    candidates: *const c_int,
    num_candidates: c_int,
    output: c_int,
    dims: *const i64,
    num_dims: c_int,
    forwarded: *mut c_int,
    status: *mut TF_Status,
) -> *mut TF_Tensor {
    const NAME: &str = "TF_ForwardInputOrAllocateOutput";
    let Some(run) = context(NAME, ctx) else { return ptr::null_mut() };
    // SAFETY: the plugin passes as many dimensions and candidates as it says.
    let (shape, candidates) = unsafe {
        let count = usize::try_from(num_candidates).unwrap_or(0);
        let candidates =
            if count == 0 { &[][..] } else { slice::from_raw_parts(candidates, count) };
        (shape_of(dims, num_dims), candidates)
    };
    let result = in_range(output, run.node.outputs.len(), "output").and_then(|index| {
        let data_type = run.output_type(index);
        for &candidate in candidates {
            let inputs = lock(&run.inputs);
            let input = &inputs[in_range(candidate, inputs.len(), "input")?];
            let fits =
                input.data_type == data_type && Some(input.elements()) == elements_of(&shape);
            if fits && input.is_unshared() {
                let array = Array { shape: shape.clone(), ..input.clone() };
                drop(inputs);
                run.set(NAME, index, array.clone());
                return Ok((array, candidate));
            }
        }
        let array = run.allocate(NAME, data_type, &shape)?;
        run.set(NAME, index, array.clone());
        Ok((array, -1))
    });
    if !forwarded.is_null() {
        // SAFETY: the plugin passes a place for the index.
        unsafe { forwarded.write(result.as_ref().map_or(-1, |(_, from)| *from)) };
    }
    returned(status, result.map(|(array, _)| array))
}

pub(super) unsafe extern "C" fn allocate_temp(
    ctx: Context,
    data_type: TF_DataType,
    dims: *const i64,
    num_dims: c_int,
    _: *mut TF_AllocatorAttributes,
    status: *mut TF_Status,
) -> *mut TF_Tensor {
    const NAME: &str = "TF_AllocateTemp";
    let Some(run) = context(NAME, ctx) else { return ptr::null_mut() };
    // SAFETY: the plugin passes as many dimensions as it says.
    let shape = unsafe { shape_of(dims, num_dims) };
    returned(status, run.allocate(NAME, data_type, &shape))
}

pub(super) unsafe extern "C" fn config(
    ctx: Context,
    buffer: *mut TF_Buffer,
    status: *mut TF_Status,
) {
    let Some(run) = context("TF_GetSerializedConfigProto", ctx) else { return };
    // SAFETY: the plugin passes a buffer of this host's that lives.
    unsafe { fill_buffer(buffer, &run.config) };
    status::write(status, Ok(()));
}

pub(super) unsafe extern "C" fn functions(_: Context, _: *mut TF_Buffer, status: *mut TF_Status) {
    status::write(status, Ok(()));
}

pub(super) unsafe extern "C" fn resource_handle(
    _: Context,
    _: c_int,
    _: *mut TF_Buffer,
    status: *mut TF_Status,
) {
    status::write(status, Err(Error::unimplemented("this host has no resources")));
}

pub(super) unsafe extern "C" fn is_host_memory(
    _: Context,
    _: c_int,
    status: *mut TF_Status,
) -> bool {
    status::write(status, Ok(()));
    true
}

pub(super) unsafe extern "C" fn stream<T>(_: Context, status: *mut TF_Status) -> *mut T {
    status::write(status, Err(Error::invalid_argument("a CPU has no stream")));
    ptr::null_mut()
}

pub(super) unsafe extern "C" fn zero_i64(_: Context) -> i64 {
    0
}

pub(super) unsafe extern "C" fn zero_u64(_: Context) -> u64 {
    0
}

pub(super) unsafe extern "C" fn zero_int(_: Context) -> c_int {
    0
}

pub(super) unsafe extern "C" fn kernel_name(ctx: Context) -> TF_StringView {
    // The node outlives the run, for which the plugin may use the text.
    context("TF_GetOpKernelName", ctx).map_or(EMPTY, |run| view(&run.node.name))
}

pub(super) unsafe extern "C" fn device_name(_: Context) -> TF_StringView {
    view(DEVICE)
}

pub(super) unsafe extern "C" fn no_text(_: Context) -> TF_StringView {
    EMPTY
}

pub(super) unsafe extern "C" fn requested_input(ctx: Context, index: usize) -> TF_StringView {
    let run = context("TF_GetOpKernelRequestedInput", ctx);
    run.map_or(EMPTY, |run| run.node.inputs.get(index).map_or(EMPTY, |slot| view(&slot.name)))
}
