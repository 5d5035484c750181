//! Running an op on the CPU, from a kernel of the device.
//!
//! TensorFlow has no function for it in a kernel. So there is an eager context, without the plugin's devices, in which
//! kernels run ops as Python does.

use super::context::OpKernelContext;
use crate::graph::Node;
use crate::kernel::functions::{Function, functions};
use crate::kernel::{Element, OpKernelConstruction};
use crate::platform::Platform;
use crate::sync::{Mutex, lock};
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{
    BufferFunctions, EagerFunctions, TF_Tensor, TFE_Context, TFE_Op, TFE_TensorHandle,
};
use tf_op_plugin::__private::abi::{Argument, Tensor};
use tf_op_plugin::__private::abi::{HostApi, Status};
use tf_op_plugin::__private::ask;
use tf_op_plugin::__private::wire::{each_of, put_bytes, put_message, put_varint};
use tf_plugin_core::__private::boundary::lent;
use tf_plugin_core::{Error, Result, ensure};

/// An attribute: its name and a serialised `AttrValue`.
type Attribute = (CString, Vec<u8>);

/// A node's attributes, to run an op on the CPU with.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    all: Vec<Attribute>,
    /// Whether one of them is a function.
    has_functions: bool,
}

impl Attributes {
    /// Reads those of a node, except the ones that belong to the node and not to its op.
    pub(crate) fn of(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let node = Node::decode(construction.node()?)?;
        let names = node.attr_names().filter(|name| !name.starts_with('_'));
        let values = names.filter_map(|name| Some((name, node.raw_attr(name)?)));
        let mut attributes = Self::default();
        for (name, value) in values {
            attributes.has_functions |= is_function(value)?;
            let name = CString::new(name).map_err(Error::invalid_argument)?;
            attributes.all.push((name, value.to_vec()));
        }
        Ok(attributes)
    }

    /// Returns the op's name with its attributes.
    pub(crate) fn op(construction: &OpKernelConstruction<'_>) -> Result<(CString, Self)> {
        let op = CString::new(construction.op_name()?).map_err(Error::invalid_argument)?;
        Ok((op, Self::of(construction)?))
    }
}

/// Returns whether an `AttrValue` is a function, its field 10, or a list of functions, the field 9 of its field 1.
fn is_function(value: &[u8]) -> Result<bool> {
    if each_of(value, 10).next().transpose()?.is_some() {
        return Ok(true);
    }
    let lists = each_of(value, 1).collect::<Result<Vec<_>>>()?;
    Ok(lists.into_iter().any(|list| each_of(list, 9).next().is_some()))
}

/// Returns a `ConfigProto` for a context without devices of a type: its map `device_count`, field 1, has an entry with 0.
fn without(device_type: &str) -> Vec<u8> {
    let mut config = Vec::new();
    put_message(&mut config, 1, |entry| {
        put_bytes(entry, 1, device_type.as_bytes());
        put_varint(entry, 2, 0);
    });
    config
}

/// A value of the host's that this owns.
struct Owned<T> {
    raw: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// Takes over a value that a call with `status` has returned.
    ///
    /// # Safety
    /// `raw` is null or a value that nothing else frees, and `free` frees it.
    unsafe fn adopt(
        raw: *mut T,
        free: unsafe extern "C" fn(*mut T),
        status: &Status,
    ) -> Result<Self> {
        let owned = NonNull::new(raw).map(|raw| Self { raw, free });
        status.check()?;
        owned.ok_or_else(|| Error::internal("TensorFlow returned nothing"))
    }

    fn as_ptr(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `free` is the host's function for values like `raw`, which this alone frees.
        unsafe { (self.free)(self.as_ptr()) }
    }
}

/// A tensor of the context.
pub(crate) struct Handle(Owned<TFE_TensorHandle>);

/// The context, and the functions of the host that it is used with.
pub(crate) struct Cpu {
    context: NonNull<TFE_Context>,
    eager: &'static EagerFunctions,
    host: HostApi,
    /// The names and digests of the functions that it has.
    functions: Mutex<HashMap<Vec<u8>, u64>>,
}

/// The most contexts, which differ in functions of the same names. They last as long as the process.
const MOST_CONTEXTS: usize = 16;

#[cold]
fn too_many(name: &[u8]) -> Error {
    Error::failed_precondition(format!(
        "{MOST_CONTEXTS} graphs in this process have different functions with the same names, such as `{}`; rename \
         the functions, or load each model in its own process",
        String::from_utf8_lossy(name)
    ))
}

// SAFETY: TensorFlow allows any thread to use a context, several at once; Python does so too.
unsafe impl Send for Cpu {}
// SAFETY: as for `Send`; the tables only hold functions.
unsafe impl Sync for Cpu {}

impl Cpu {
    /// Returns a context with these functions, which lasts as long as the process. Libraries of two graphs may have
    /// different functions of the same name: TensorFlow optimizes a function for each graph, and models can be made
    /// in other processes. Each such library needs its own context.
    fn get(device_type: &str, functions: &[Function<'_>]) -> Result<&'static Self> {
        static CONTEXTS: Mutex<Vec<&'static Cpu>> = Mutex::new(Vec::new());
        let mut contexts = lock(&CONTEXTS);
        let mut conflict = None;
        let fits = |cpu: &&&Self| {
            conflict = cpu.conflict(functions);
            conflict.is_none()
        };
        let cpu = match contexts.iter().find(fits) {
            Some(&cpu) => cpu,
            None => {
                ensure!(contexts.len() < MOST_CONTEXTS, too_many(conflict.unwrap_or_default()));
                let cpu: &Self = Box::leak(Box::new(Self::new(&without(device_type))?));
                contexts.push(cpu);
                cpu
            }
        };
        cpu.add(functions)?;
        Ok(cpu)
    }

    fn new(config: &[u8]) -> Result<Self> {
        let eager = EagerFunctions::get().map_err(Error::failed_precondition)?;
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let status = Status::new()?;
        // SAFETY: options that are made and freed here, a configuration of so many bytes and a status.
        let context = unsafe {
            let options = (eager.TFE_NewContextOptions)();
            let (bytes, len) = (config.as_ptr().cast(), config.len());
            (eager.TFE_ContextOptionsSetConfig)(options, bytes, len, status.as_ptr());
            let context = match status.check() {
                Ok(()) => (eager.TFE_NewContext)(options, status.as_ptr()),
                Err(error) => {
                    (eager.TFE_DeleteContextOptions)(options);
                    return Err(error);
                }
            };
            (eager.TFE_DeleteContextOptions)(options);
            context
        };
        status.check()?;
        let context = NonNull::new(context);
        let context = context.ok_or_else(|| Error::internal("TensorFlow made no context"))?;
        Ok(Self { context, eager, host, functions: Mutex::default() })
    }

    /// Runs an op and returns its outputs.
    pub(crate) fn run<'a>(
        &self,
        op: &CStr,
        inputs: impl IntoIterator<Item = &'a Handle>,
        attributes: &Attributes,
        outputs: usize,
    ) -> Result<Vec<Handle>> {
        let (eager, status) = (self.eager, Status::new()?);
        let answer = status.as_ptr();
        // SAFETY: C strings, attributes of so many bytes, handles and an operation that live, a status, and `count`
        // places for results, each of which is then ours.
        unsafe {
            let op = (eager.TFE_NewOp)(self.context.as_ptr(), op.as_ptr(), answer);
            let op: Owned<TFE_Op> = Owned::adopt(op, eager.TFE_DeleteOp, &status)?;
            (eager.TFE_OpSetDevice)(op.as_ptr(), c"/device:CPU:0".as_ptr(), answer);
            status.check()?;
            for Handle(input) in inputs {
                (eager.TFE_OpAddInput)(op.as_ptr(), input.as_ptr(), answer);
                status.check()?;
            }
            for (name, value) in &attributes.all {
                let (bytes, len) = (value.as_ptr().cast(), value.len());
                let set = eager.TFE_OpSetAttrValueProto;
                set(op.as_ptr(), name.as_ptr(), bytes, len, answer);
                status.check()?;
            }
            let mut results = vec![ptr::null_mut(); outputs];
            let mut count = c_int::try_from(outputs).map_err(Error::invalid_argument)?;
            (eager.TFE_Execute)(op.as_ptr(), results.as_mut_ptr(), &raw mut count, answer);
            status.check()?;
            results.truncate(usize::try_from(count).unwrap_or(0));
            let free = eager.TFE_DeleteTensorHandle;
            let results = results.into_iter().map(|raw| Owned::adopt(raw, free, &status));
            let results: Vec<_> = results.map(|one| one.map(Handle)).collect::<Result<_>>()?;
            ensure!(
                results.len() == outputs,
                Error::internal("TensorFlow returned another number of outputs")
            );
            Ok(results)
        }
    }

    /// Creates a handle of a scalar.
    pub(crate) fn scalar<T: Element>(&self, value: T) -> Result<Handle> {
        let (tensors, len) = (self.host.tensors, size_of::<T>());
        // SAFETY: a tensor without dimensions; an element is written into its `len` bytes, of any alignment.
        let tensor = unsafe {
            let raw = (tensors.TF_AllocateTensor)(T::DTYPE.as_raw(), ptr::null(), 0, len);
            let tensor = Tensor::adopt(raw, &self.host, &"memory for a scalar")?;
            ensure!(tensor.bytes >= len, Error::internal("TensorFlow made too small a tensor"));
            tensor.data.cast::<T>().write_unaligned(value);
            tensor
        };
        self.handle(tensor.as_ptr())
    }

    /// Creates a handle of a tensor in host memory, which stays the caller's.
    fn handle(&self, tensor: *mut TF_Tensor) -> Result<Handle> {
        let status = Status::new()?;
        // SAFETY: a tensor that lives, whose content the handle shares, and a status.
        unsafe {
            let raw = (self.eager.TFE_NewTensorHandle)(tensor, status.as_ptr());
            Owned::adopt(raw, self.eager.TFE_DeleteTensorHandle, &status).map(Handle)
        }
    }

    /// Returns one of the functions whose name is that of another function of the context.
    fn conflict<'a>(&self, functions: &[Function<'a>]) -> Option<&'a [u8]> {
        let known = lock(&self.functions);
        let differs =
            |one: &&Function<'_>| known.get(one.name).is_some_and(|&digest| digest != one.digest);
        functions.iter().find(differs).map(|one| one.name)
    }

    /// Adds the functions that the context does not have.
    fn add(&self, functions: &[Function<'_>]) -> Result<()> {
        let (status, mut known) = (Status::new()?, lock(&self.functions));
        for Function { name, definition, digest } in functions {
            if known.contains_key(*name) {
                continue;
            }
            // SAFETY: a context, a function of so many bytes and a status.
            unsafe {
                let (bytes, len) = (definition.as_ptr().cast(), definition.len());
                let add = self.eager.TFE_ContextAddFunctionDef;
                add(self.context.as_ptr(), bytes, len, status.as_ptr());
            }
            status.check()?;
            known.insert(name.to_vec(), *digest);
        }
        Ok(())
    }
}

impl<P: Platform> OpKernelContext<'_, P> {
    /// Returns the context in which [`Cpu::run`] runs ops.
    pub(crate) fn cpu(&self, attributes: &Attributes) -> Result<&'static Cpu> {
        if !attributes.has_functions {
            return Cpu::get((self.device_type)(), &[]);
        }
        let library = self.functions()?;
        Cpu::get((self.device_type)(), &functions(&library)?)
    }

    /// Returns the functions that this run's node may call, a serialised `FunctionDefLibrary`.
    fn functions(&self) -> Result<Vec<u8>> {
        let buffers = BufferFunctions::get().map_err(Error::failed_precondition)?;
        // SAFETY: a run that has not ended and a status; the buffer is made and deleted here, and its bytes are copied
        // before that.
        unsafe {
            let buffer = (buffers.TF_NewBuffer)();
            let get = self.host.kernels.TF_GetSerializedFunctionDefLibrary;
            get(self.raw.as_ptr(), buffer, self.status.as_ptr());
            let content = (buffers.TF_GetBuffer)(buffer);
            let functions = lent(content.data, content.length).map(<[u8]>::to_vec);
            (buffers.TF_DeleteBuffer)(buffer);
            self.status.check()?;
            functions
        }
    }

    /// Returns an input in host memory for an op on the CPU.
    pub(crate) fn cpu_input(&self, cpu: &Cpu, index: usize) -> Result<Handle> {
        cpu.handle(self.input_in(index, true)?.as_ptr())
    }

    /// Sets an output in host memory to a result of an op on the CPU.
    pub(crate) fn set_cpu_output(&self, cpu: &Cpu, index: usize, result: &Handle) -> Result<()> {
        self.make(index, || {
            let at = self.output_in(index, true)?;
            // SAFETY: a handle that lives and a status. The tensor is then ours.
            let tensor = unsafe {
                let resolve = cpu.eager.TFE_TensorHandleResolve;
                let raw = resolve(result.0.as_ptr(), self.status.as_ptr());
                self.adopt(raw, &Argument("output", index))?
            };
            let dtype = self.output_dtype(index)?;
            ensure!(
                tensor.dtype == dtype,
                Error::internal(format!("output {index} is of {}, not of {dtype}", tensor.dtype))
            );
            // SAFETY: a run that has not ended, an index in range, and a tensor that stays ours.
            unsafe { ask!(self.host.kernels.TF_SetOutput(at, tensor.as_ptr())) };
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_among_attributes_are_found() {
        let (mut one, mut list, mut number) = (Vec::new(), Vec::new(), Vec::new());
        put_message(&mut one, 10, |function| put_bytes(function, 1, b"f"));
        put_message(&mut list, 1, |list| {
            put_message(list, 9, |function| put_bytes(function, 1, b"f"));
        });
        put_varint(&mut number, 3, 10);
        for (value, expected) in [(one, true), (list, true), (number, false), (Vec::new(), false)] {
            assert_eq!(is_function(&value).unwrap(), expected, "{value:?}");
        }
    }

    #[test]
    fn a_context_has_no_devices_of_the_plugin() {
        // device_count { key: "GPU" value: 0 }
        assert_eq!(without("GPU"), [0x0a, 7, 0x0a, 3, b'G', b'P', b'U', 0x10, 0]);
    }
}
