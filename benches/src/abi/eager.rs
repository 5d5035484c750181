//! TensorFlow's eager C interface, as far as it takes to call an op with one input.

use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::ptr;

use anyhow::{Result, anyhow, bail, ensure};
use cargo_tf_plugin::host::{Library, text};
use tf_fs_sys::host::Table as _;
use tf_fs_sys::tstring::StringFunctions;
use tf_fs_sys::{
    EagerFunctions, StatusFunctions, TF_FLOAT, TF_OK, TF_STRING, TF_Status, TF_TString, TF_Tensor,
    TFE_Context, TFE_TensorHandle, TensorFunctions,
};

/// A context that computes each op in the thread that calls it. It lasts as long as the process.
#[derive(Debug)]
pub struct Eager {
    eager: &'static EagerFunctions,
    tensors: &'static TensorFunctions,
    statuses: &'static StatusFunctions,
    strings: &'static StringFunctions,
    status: *mut TF_Status,
    context: *mut TFE_Context,
}

/// A tensor of a context.
#[derive(Debug)]
pub struct Handle<'e> {
    eager: &'e Eager,
    raw: *mut TFE_TensorHandle,
}

/// An op with the attributes that differ from their defaults: serialised `AttrValue`s.
#[derive(Debug)]
pub struct EagerOp {
    name: CString,
    attributes: Vec<(CString, Vec<u8>)>,
    outputs: usize,
}

impl EagerOp {
    /// Describes an op with this number of outputs, at most two.
    pub fn new(name: &str, attributes: &[(&str, Vec<u8>)], outputs: usize) -> Result<Self> {
        ensure!(outputs <= MOST_OUTPUTS, "{name} has too many outputs");
        let attributes =
            attributes.iter().map(|(name, value)| Ok((CString::new(*name)?, value.clone())));
        Ok(Self {
            name: CString::new(name)?,
            attributes: attributes.collect::<Result<_>>()?,
            outputs,
        })
    }
}

const MOST_OUTPUTS: usize = 2;

impl Eager {
    /// Loads TensorFlow from a directory of libraries, and creates a context.
    pub fn open(libraries: &Path) -> Result<Self> {
        for library in ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"] {
            Library::open_for_all(&libraries.join(library)).map_err(|why| anyhow!(why))?;
        }
        let (eager, statuses) = (EagerFunctions::get()?, StatusFunctions::get()?);
        // SAFETY: options and a status that are made here; the options are freed once.
        let (status, context) = unsafe {
            let status = (statuses.TF_NewStatus)();
            let options = (eager.TFE_NewContextOptions)();
            let context = (eager.TFE_NewContext)(options, status);
            (eager.TFE_DeleteContextOptions)(options);
            (status, context)
        };
        let (tensors, strings) = (TensorFunctions::get()?, StringFunctions::get()?);
        let context = Self { eager, tensors, statuses, strings, status, context };
        context.check()?;
        Ok(context)
    }

    fn check(&self) -> Result<()> {
        // SAFETY: the status lasts as long as `self`, and its message is copied.
        let (code, message) = unsafe {
            let code = (self.statuses.TF_GetCode)(self.status);
            let failed = code != TF_OK;
            (code, failed.then(|| text((self.statuses.TF_Message)(self.status))).flatten())
        };
        match message {
            None => Ok(()),
            Some(message) => bail!("TensorFlow returned {code}: {message}"),
        }
    }

    /// Creates a vector of numbers.
    pub fn floats(&self, floats: &[f32]) -> Result<Handle<'_>> {
        let (len, bytes) = (i64::try_from(floats.len())?, size_of_val(floats));
        // SAFETY: one dimension; the new tensor has room for so many bytes, which overlap with no others.
        let tensor = unsafe {
            let tensor = (self.tensors.TF_AllocateTensor)(TF_FLOAT, &raw const len, 1, bytes);
            let to = (self.tensors.TF_TensorData)(tensor).cast::<f32>();
            ptr::copy_nonoverlapping(floats.as_ptr(), to, floats.len());
            tensor
        };
        self.handle(tensor)
    }

    /// Creates a vector of strings.
    pub fn strings(&self, strings: &[String]) -> Result<Handle<'_>> {
        let len = i64::try_from(strings.len())?;
        let (Some(init), Some(copy)) = (self.strings.TF_StringInit, self.strings.TF_StringCopy)
        else {
            bail!("this TensorFlow does not export its functions for strings");
        };
        // SAFETY: one dimension; the new tensor has room for so many strings, each of which is initialised before its use.
        let tensor = unsafe {
            let bytes = strings.len() * size_of::<TF_TString>();
            let tensor = (self.tensors.TF_AllocateTensor)(TF_STRING, &raw const len, 1, bytes);
            let to = (self.tensors.TF_TensorData)(tensor).cast::<TF_TString>();
            for (at, string) in strings.iter().enumerate() {
                init(to.add(at));
                copy(to.add(at), string.as_ptr().cast(), string.len());
            }
            tensor
        };
        self.handle(tensor)
    }

    /// Makes a tensor one of the context, and deletes it.
    fn handle(&self, tensor: *mut TF_Tensor) -> Result<Handle<'_>> {
        // SAFETY: a tensor that is the caller's, whose content the handle shares, and a status.
        let raw = unsafe {
            let raw = (self.eager.TFE_NewTensorHandle)(tensor, self.status);
            (self.tensors.TF_DeleteTensor)(tensor);
            raw
        };
        self.check()?;
        Ok(Handle { eager: self, raw })
    }

    /// Runs an op, and frees its outputs.
    pub fn run(&self, op: &EagerOp, input: &Handle<'_>) -> Result<()> {
        let eager = self.eager;
        // SAFETY: C strings, attributes of so many bytes, handles and an op that live, and a status. There are
        // `MOST_OUTPUTS` places for the outputs, each of which is then ours.
        unsafe {
            let call = (eager.TFE_NewOp)(self.context, op.name.as_ptr(), self.status);
            self.check()?;
            (eager.TFE_OpAddInput)(call, input.raw, self.status);
            for (name, value) in &op.attributes {
                let set = eager.TFE_OpSetAttrValueProto;
                set(call, name.as_ptr(), value.as_ptr().cast(), value.len(), self.status);
            }
            let mut outputs = [ptr::null_mut(); MOST_OUTPUTS];
            let mut count = op.outputs as c_int;
            (eager.TFE_Execute)(call, outputs.as_mut_ptr(), &raw mut count, self.status);
            (eager.TFE_DeleteOp)(call);
            self.check()?;
            for output in outputs.into_iter().filter(|output| !output.is_null()) {
                (eager.TFE_DeleteTensorHandle)(output);
            }
        }
        Ok(())
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's, and no call uses it after this one.
        unsafe { (self.eager.eager.TFE_DeleteTensorHandle)(self.raw) }
    }
}

impl EagerOp {
    /// Returns the name.
    pub fn name(&self) -> &CStr {
        &self.name
    }
}
