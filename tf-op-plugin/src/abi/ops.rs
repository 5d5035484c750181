//! The registration of new ops, and the definitions of existing ones.

use super::shapes::Infer;
use super::status::Status;
use crate::kernel::OpDefinitionBuilder;
use crate::kernel::definition::Definition;
use core::ffi::c_char;
use core::fmt;
use std::ffi::CString;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{
    BufferFunctions, GrapplerFunctions, OpFunctions, TF_Buffer, TF_FunctionLibraryDefinition,
    TF_Status,
};
use tf_plugin_core::__private::boundary::catch;
use tf_plugin_core::__private::boundary::lent;
use tf_plugin_core::{Code, Error, Result, ensure};

/// The ops of the host, those that are registered later too.
pub struct Ops<'s> {
    library: *mut TF_FunctionLibraryDefinition,
    status: &'s Status,
    buffers: &'static BufferFunctions,
    look_up: unsafe extern "C" fn(
        *mut TF_FunctionLibraryDefinition,
        *const c_char,
        *mut TF_Buffer,
        *mut TF_Status,
    ),
    delete: unsafe extern "C" fn(*mut TF_FunctionLibraryDefinition),
}

impl<'s> Ops<'s> {
    /// Fails if the host cannot look ops up.
    pub fn of_host(status: &'s Status) -> Result<Self> {
        let host = GrapplerFunctions::get().map_err(Error::failed_precondition)?;
        let buffers = BufferFunctions::get().map_err(Error::failed_precondition)?;
        let (Some(new), Some(look_up), Some(delete)) = (
            host.TF_NewFunctionLibraryDefinition,
            host.TF_LookUpOpDef,
            host.TF_DeleteFunctionLibraryDefinition,
        ) else {
            return Err(Error::failed_precondition(
                "this TensorFlow does not say which ops there are",
            ));
        };
        // A graph with only its field `versions`, which is empty.
        let graph = [0x22_u8, 0];
        // SAFETY: the buffer is made and deleted here.
        let library = unsafe {
            let graph = (buffers.TF_NewBufferFromString)(graph.as_ptr().cast(), graph.len());
            let library = new(graph, status.as_ptr());
            (buffers.TF_DeleteBuffer)(graph);
            library
        };
        let creation = status.check();
        if library.is_null() {
            creation?;
            return Err(Error::internal("TensorFlow made no library"));
        }
        Ok(Self { library, status, buffers, look_up, delete })
    }

    /// Returns the definition of an op, or `None` if there is no such op.
    pub fn get(&self, op: &str) -> Result<Option<Definition>> {
        let op = CString::new(op).map_err(Error::invalid_argument)?;
        // SAFETY: the library lives as long as `self`; the buffer is made and deleted here, and its bytes are used before that.
        unsafe {
            let buffer = (self.buffers.TF_NewBuffer)();
            (self.look_up)(self.library, op.as_ptr(), buffer, self.status.as_ptr());
            let outcome = self.status.check();
            let content = (self.buffers.TF_GetBuffer)(buffer);
            let definition = catch("the definition of an op", || match outcome {
                Err(error) if error.code() == Code::NotFound => Ok(None),
                Err(error) => Err(error),
                Ok(()) if content.data.is_null() => Ok(None),
                Ok(()) => Definition::read(lent(content.data, content.length)?).map(Some),
            });
            (self.buffers.TF_DeleteBuffer)(buffer);
            definition
        }
    }

    /// Returns whether the host is known to have an op.
    pub fn has(&self, op: &str) -> bool {
        self.get(op).is_ok_and(|outcome| outcome.is_some())
    }
}

impl fmt::Debug for Ops<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ops").finish_non_exhaustive()
    }
}

impl Drop for Ops<'_> {
    fn drop(&mut self) {
        // SAFETY: made by the host, and deleted once.
        unsafe { (self.delete)(self.library) }
    }
}

/// Registers an op. There must be no op of this name yet: a second one would abort the process.
pub(crate) fn register(
    status: &Status,
    name: &str,
    op: &OpDefinitionBuilder,
    infer: Infer,
) -> Result<()> {
    let host = OpFunctions::get().map_err(Error::failed_precondition)?;
    let texts = |texts: &[String]| -> Result<Vec<CString>> {
        texts
            .iter()
            .map(|text| CString::new(text.as_str()).map_err(Error::invalid_argument))
            .collect()
    };
    let name = CString::new(name).map_err(Error::invalid_argument)?;
    let attributes = texts(&op.attributes)?;
    let inputs = texts(&op.inputs)?;
    let outputs = texts(&op.outputs)?;
    // SAFETY: C strings, a builder that the host frees when it registers it, and a status.
    unsafe {
        let raw = (host.TF_NewOpDefinitionBuilder)(name.as_ptr());
        ensure!(!raw.is_null(), Error::resource_exhausted("TensorFlow made no builder"));
        let lists = [
            (attributes, host.TF_OpDefinitionBuilderAddAttr),
            (inputs, host.TF_OpDefinitionBuilderAddInput),
            (outputs, host.TF_OpDefinitionBuilderAddOutput),
        ];
        for (texts, add) in &lists {
            texts.iter().for_each(|text| add(raw, text.as_ptr()));
        }
        // TensorFlow ignores the argument: any call means true.
        for (is, set) in [
            (op.is_stateful, host.TF_OpDefinitionBuilderSetIsStateful),
            (op.is_commutative, host.TF_OpDefinitionBuilderSetIsCommutative),
            (op.is_aggregate, host.TF_OpDefinitionBuilderSetIsAggregate),
            (op.allows_uninitialized_input, host.TF_OpDefinitionBuilderSetAllowsUninitializedInput),
        ] {
            if is {
                set(raw, true);
            }
        }
        (host.TF_OpDefinitionBuilderSetShapeInferenceFunction)(raw, Some(infer));
        (host.TF_RegisterOpDefinition)(raw, status.as_ptr());
    }
    status.check()
}
