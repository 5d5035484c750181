//! The registration of ops and kernels, and the look-up of ops.

use super::tensors::fill_buffer;
use crate::abi::status;
use crate::ops::definition::{OpDef, argument, attribute};
use crate::ops::handles::Handles;
use crate::ops::registry::{self, KernelDef};
use core::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, PoisonError};
use tf_fs_sys::{
    TF_Buffer, TF_ComputeKernelFn, TF_CreateKernelFn, TF_DataType, TF_DeleteKernelFn,
    TF_FunctionLibraryDefinition, TF_KernelBuilder, TF_OpDefinitionBuilder, TF_ShapeInferenceFn,
    TF_Status,
};
use tf_op_plugin::{Code, DType, Error, Result};

/// The definition of an op that is being built.
#[derive(Default)]
struct OpBuilder {
    name: String,
    attributes: Vec<String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    is_stateful: bool,
    infer_shapes: TF_ShapeInferenceFn,
}

static OP_BUILDERS: Handles<Mutex<OpBuilder>> = Handles::new("op definition builder", 2);
static KERNEL_BUILDERS: Handles<Mutex<KernelDef>> = Handles::new("kernel builder", 3);
static LIBRARIES: Handles<()> = Handles::new("function library", 4);

/// Returns a copy of a C string.
///
/// # Safety
/// `text` is null or a C string.
pub(super) unsafe fn text(text: *const c_char) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: a C string.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

fn change<T, H>(
    handles: &Handles<Mutex<T>>,
    function: &'static str,
    handle: *const H,
    change: impl FnOnce(&mut T),
) {
    if let Some(builder) = handles.find(function, handle) {
        change(&mut builder.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl OpBuilder {
    /// Returns the definition; attributes come first, as arguments refer to them.
    fn finish(&self) -> Result<OpDef> {
        let wrong = |why: String| {
            Error::invalid_argument(format!(
                "TensorFlow aborts the process: the op {}: {why}",
                self.name
            ))
        };
        let attributes: std::result::Result<Vec<_>, _> =
            self.attributes.iter().map(|text| attribute(text)).collect();
        let attributes = attributes.map_err(wrong)?;
        let arguments = |texts: &[String]| -> Result<Vec<_>> {
            texts.iter().map(|text| argument(text, &attributes).map_err(wrong)).collect()
        };
        Ok(OpDef {
            name: self.name.clone(),
            inputs: arguments(&self.inputs)?,
            outputs: arguments(&self.outputs)?,
            is_stateful: self.is_stateful,
            infer_shapes: self.infer_shapes,
            attributes,
        })
    }
}

pub(super) unsafe extern "C" fn new_op(name: *const c_char) -> *mut TF_OpDefinitionBuilder {
    // SAFETY: the plugin passes a C string.
    let name = unsafe { text(name) };
    OP_BUILDERS.add(Mutex::new(OpBuilder { name, ..OpBuilder::default() }))
}

pub(super) unsafe extern "C" fn register_op(
    builder: *mut TF_OpDefinitionBuilder,
    status: *mut TF_Status,
) {
    let Some(builder) = OP_BUILDERS.remove("TF_RegisterOpDefinition", builder) else { return };
    let definition = builder.lock().unwrap_or_else(PoisonError::into_inner).finish();
    status::write(status, definition.and_then(registry::add_op));
}

pub(super) unsafe extern "C" fn delete_op(builder: *mut TF_OpDefinitionBuilder) {
    OP_BUILDERS.remove("TF_DeleteOpDefinitionBuilder", builder);
}

macro_rules! texts {
    ($($name:ident, $function:literal, $list:ident;)*) => {$(
        pub(super) unsafe extern "C" fn $name(builder: *mut TF_OpDefinitionBuilder, spec: *const c_char) {
            // SAFETY: the plugin passes a C string.
            let spec = unsafe { text(spec) };
            change(&OP_BUILDERS, $function, builder, |op| op.$list.push(spec));
        }
    )*};
}
texts! {
    add_attr, "TF_OpDefinitionBuilderAddAttr", attributes;
    add_input, "TF_OpDefinitionBuilderAddInput", inputs;
    add_output, "TF_OpDefinitionBuilderAddOutput", outputs;
}

// As in TensorFlow, any call means true.
pub(super) unsafe extern "C" fn set_stateful(builder: *mut TF_OpDefinitionBuilder, _: bool) {
    const NAME: &str = "TF_OpDefinitionBuilderSetIsStateful";
    change(&OP_BUILDERS, NAME, builder, |op| op.is_stateful = true);
}

/// Does what the setters do that make no difference without a graph.
pub(super) unsafe extern "C" fn set_flag(builder: *mut TF_OpDefinitionBuilder, _: bool) {
    change(&OP_BUILDERS, "TF_OpDefinitionBuilderSet...", builder, |_| ());
}

pub(super) unsafe extern "C" fn deprecated(
    builder: *mut TF_OpDefinitionBuilder,
    _: c_int,
    _: *const c_char,
) {
    change(&OP_BUILDERS, "TF_OpDefinitionBuilderDeprecated", builder, |_| ());
}

pub(super) unsafe extern "C" fn set_infer(
    builder: *mut TF_OpDefinitionBuilder,
    infer: TF_ShapeInferenceFn,
) {
    const NAME: &str = "TF_OpDefinitionBuilderSetShapeInferenceFunction";
    change(&OP_BUILDERS, NAME, builder, |op| op.infer_shapes = infer);
}

pub(super) unsafe extern "C" fn new_kernel(
    op: *const c_char,
    device: *const c_char,
    create: TF_CreateKernelFn,
    compute: TF_ComputeKernelFn,
    delete: TF_DeleteKernelFn,
) -> *mut TF_KernelBuilder {
    // SAFETY: the plugin passes C strings.
    let (op, device) = unsafe { (text(op), text(device)) };
    KERNEL_BUILDERS.add(Mutex::new(KernelDef {
        op,
        device,
        create,
        compute,
        delete,
        types: Vec::new(),
        host_memory: Vec::new(),
        priority: 0,
        label: String::new(),
    }))
}

pub(super) unsafe extern "C" fn delete_kernel_builder(builder: *mut TF_KernelBuilder) {
    if !builder.is_null() {
        KERNEL_BUILDERS.remove("TF_DeleteKernelBuilder", builder);
    }
}

pub(super) unsafe extern "C" fn type_constraint(
    builder: *mut TF_KernelBuilder,
    attribute: *const c_char,
    data_type: TF_DataType,
    status: *mut TF_Status,
) {
    // SAFETY: the plugin passes a C string.
    let attribute = unsafe { text(attribute) };
    let dtype = DType::known_or_error(data_type);
    status::write(
        status,
        dtype.map(|dtype| {
            change(&KERNEL_BUILDERS, "TF_KernelBuilder_TypeConstraint", builder, |kernel| {
                kernel.types.push((attribute, dtype));
            });
        }),
    );
}

pub(super) unsafe extern "C" fn host_memory(
    builder: *mut TF_KernelBuilder,
    argument: *const c_char,
) {
    // SAFETY: the plugin passes a C string.
    let argument = unsafe { text(argument) };
    change(&KERNEL_BUILDERS, "TF_KernelBuilder_HostMemory", builder, |kernel| {
        kernel.host_memory.push(argument);
    });
}

pub(super) unsafe extern "C" fn priority(builder: *mut TF_KernelBuilder, priority: i32) {
    change(&KERNEL_BUILDERS, "TF_KernelBuilder_Priority", builder, |kernel| {
        kernel.priority = priority
    });
}

pub(super) unsafe extern "C" fn label(builder: *mut TF_KernelBuilder, label: *const c_char) {
    // SAFETY: the plugin passes a C string.
    let label = unsafe { text(label) };
    change(&KERNEL_BUILDERS, "TF_KernelBuilder_Label", builder, |kernel| kernel.label = label);
}

pub(super) unsafe extern "C" fn register_kernel(
    _: *const c_char,
    builder: *mut TF_KernelBuilder,
    status: *mut TF_Status,
) {
    let Some(builder) = KERNEL_BUILDERS.remove("TF_RegisterKernelBuilder", builder) else { return };
    let kernel = builder.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let result = match kernel.compute {
        Some(_) => {
            registry::add_kernel(kernel);
            Ok(())
        }
        None => Err(Error::invalid_argument(format!(
            "the kernel for {} has no compute function, which TensorFlow calls without a check",
            kernel.op
        ))),
    };
    status::write(status, result);
}

pub(super) unsafe extern "C" fn register_kernel_with_def(
    _: *const c_char,
    name: *const c_char,
    builder: *mut TF_KernelBuilder,
    status: *mut TF_Status,
) {
    // SAFETY: the arguments are those of the caller.
    unsafe { register_kernel(name, builder, status) }
}

pub(super) unsafe extern "C" fn new_library(
    _: *const TF_Buffer,
    status: *mut TF_Status,
) -> *mut TF_FunctionLibraryDefinition {
    status::write(status, Ok(()));
    LIBRARIES.add(())
}

pub(super) unsafe extern "C" fn delete_library(library: *mut TF_FunctionLibraryDefinition) {
    LIBRARIES.remove("TF_DeleteFunctionLibraryDefinition", library);
}

pub(super) unsafe extern "C" fn look_up_op(
    library: *mut TF_FunctionLibraryDefinition,
    name: *const c_char,
    buffer: *mut TF_Buffer,
    status: *mut TF_Status,
) {
    if LIBRARIES.find("TF_LookUpOpDef", library).is_none() {
        return status::write(status, Err(Error::internal("no library")));
    }
    // SAFETY: the plugin passes a C string.
    let name = unsafe { text(name) };
    let found = registry::op(&name)
        .map(|op| op.to_proto())
        .ok_or_else(|| Error::new(Code::NotFound, format!("Op type not registered '{name}'")));
    status::write(
        status,
        // SAFETY: the plugin passes a buffer of this host's that lives.
        found.map(|definition| unsafe { fill_buffer(buffer, &definition) }),
    );
}
