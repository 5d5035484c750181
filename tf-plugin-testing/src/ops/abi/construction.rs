//! The creation of kernels: the attributes of their nodes.

use super::definitions::text;
use super::tensors::lend_bytes;
use crate::abi::status;
use crate::ops::definition::AttrValue;
use crate::ops::handles::Handles;
use crate::ops::node::Node;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_sys::{
    TF_Bool, TF_Buffer, TF_DataType, TF_OpKernelConstruction, TF_Status, TF_StringView, TF_Tensor,
};
use tf_op_plugin::{Error, Result, ensure};

/// A node for which a kernel is created.
pub(super) struct Construction {
    node: Arc<Node>,
    failure: Mutex<Result<()>>,
}

static CONSTRUCTIONS: Handles<Construction> = Handles::new("op kernel construction", 8);

type Context = *mut TF_OpKernelConstruction;

/// Creates a kernel with the plugin's function.
pub(super) fn create(
    node: &Arc<Node>,
    create: unsafe extern "C" fn(Context) -> *mut c_void,
) -> (*mut c_void, Result<()>) {
    let construction =
        Arc::new(Construction { node: Arc::clone(node), failure: Mutex::new(Ok(())) });
    let kernel = node.account.call(|| {
        // SAFETY: the plugin's function, with a construction for the length of the call.
        CONSTRUCTIONS.lend(Arc::clone(&construction), |context| unsafe { create(context) })
    });
    let failure = &mut *construction.failure.lock().unwrap_or_else(PoisonError::into_inner);
    (kernel, std::mem::replace(failure, Ok(())))
}

fn construction(function: &'static str, context: Context) -> Option<Arc<Construction>> {
    CONSTRUCTIONS.find(function, context)
}

/// Returns the bytes of a text for the plugin to read.
pub(super) fn view(text: &str) -> TF_StringView {
    TF_StringView { data: text.as_ptr().cast(), len: text.len() }
}

/// Returns an empty text.
pub(super) const EMPTY: TF_StringView = TF_StringView { data: c"".as_ptr(), len: 0 };

pub(super) unsafe extern "C" fn failure(ctx: Context, failed: *mut TF_Status) {
    const NAME: &str = "TF_OpKernelConstruction_Failure";
    let Some(construction) = construction(NAME, ctx) else { return };
    keep_first(&construction.failure, status::read(NAME, failed));
}

/// Keeps the first error, as TensorFlow does.
pub(super) fn keep_first(kept: &Mutex<Result<()>>, result: Result<()>) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_ok() {
        *kept = result;
    }
}

pub(super) unsafe extern "C" fn node_def(ctx: Context, status: *mut TF_Status) -> *mut TF_Buffer {
    let Some(construction) = construction("TF_OpKernelConstruction_GetNodeDef", ctx) else {
        return ptr::null_mut();
    };
    status::write(status, Ok(()));
    lend_bytes(&construction.node.definition)
}

pub(super) unsafe extern "C" fn name(ctx: Context) -> TF_StringView {
    let construction = construction("TF_OpKernelConstruction_GetName", ctx);
    // The node outlives the call, for which the plugin may use the text.
    construction.map_or(EMPTY, |construction| view(&construction.node.name))
}

pub(super) unsafe extern "C" fn has_attr(
    ctx: Context,
    name: *const c_char,
    status: *mut TF_Status,
) -> bool {
    // SAFETY: the plugin passes a C string.
    let name = unsafe { text(name) };
    let construction = construction("TF_OpKernelConstruction_HasAttr", ctx);
    status::write(status, Ok(()));
    construction.is_some_and(|construction| construction.node.attributes.contains_key(&name))
}

/// Finds an attribute, and passes what `read` makes of it to `write`.
///
/// # Safety
/// `name` is a C string.
unsafe fn attribute<T>(
    ctx: Context,
    name: *const c_char,
    status: *mut TF_Status,
    wanted: &str,
    read: impl FnOnce(&AttrValue) -> Option<T>,
    write: impl FnOnce(T),
) {
    // SAFETY: a C string.
    let name = unsafe { text(name) };
    let Some(construction) = construction("TF_OpKernelConstruction_GetAttr...", ctx) else {
        return;
    };
    let attributes = &construction.node.attributes;
    let result = match attributes.get(&name) {
        None => Err(Error::invalid_argument(format!(
            "Operation '{}' has no attr named '{name}'.",
            construction.node.name
        ))),
        Some(value) => read(value).map(write).ok_or_else(|| {
            Error::invalid_argument(format!(
                "AttrValue had value with type '{}' when '{wanted}' expected for attr '{name}'",
                value.kind()
            ))
        }),
    };
    status::write(status, result);
}

pub(super) unsafe extern "C" fn attr_size(
    ctx: Context,
    name: *const c_char,
    list_size: *mut i32,
    total_size: *mut i32,
    status: *mut TF_Status,
) {
    let total = |value: &AttrValue| match value {
        AttrValue::String(bytes) => bytes.len() as i32,
        AttrValue::Shape(shape) => shape.dims().map_or(-1, |dims| dims.len() as i32),
        _ => -1,
    };
    let sizes = |value: &AttrValue| {
        Some(match value {
            AttrValue::List(values) => match values.first() {
                Some(AttrValue::String(_) | AttrValue::Shape(_)) => {
                    (values.len() as i32, values.iter().map(total).filter(|size| *size > 0).sum())
                }
                _ => (values.len() as i32, -1),
            },
            value => (-1, total(value)),
        })
    };
    // SAFETY: the plugin passes a C string and places for the sizes.
    unsafe {
        attribute(ctx, name, status, "any", sizes, |(list, total)| {
            list_size.write(list);
            total_size.write(total);
        });
    }
}

macro_rules! attributes {
    ($($name:ident, $list:ident: $type:ty, $text:literal, $pattern:pat => $value:expr;)*) => {$(
        pub(super) unsafe extern "C" fn $name(
            ctx: Context,
            name: *const c_char,
            value: *mut $type,
            status: *mut TF_Status,
        ) {
            let read = |value: &AttrValue| match value { $pattern => $value, _ => None };
            // SAFETY: the plugin passes a C string and a place for the value.
            unsafe { attribute(ctx, name, status, $text, read, |found| value.write(found)) }
        }

        pub(super) unsafe extern "C" fn $list(
            ctx: Context,
            name: *const c_char,
            values: *mut $type,
            max_values: c_int,
            status: *mut TF_Status,
        ) {
            let read = |value: &AttrValue| match value { $pattern => $value, _ => None };
            let all = |value: &AttrValue| match value {
                AttrValue::List(values) => values.iter().map(read).collect::<Option<Vec<$type>>>(),
                _ => None,
            };
            // SAFETY: the plugin passes a C string and places for so many values.
            unsafe {
                attribute(ctx, name, status, concat!("list(", $text, ")"), all, |found| {
                    let max = usize::try_from(max_values).unwrap_or(0);
                    found.iter().take(max).enumerate().for_each(|(at, one)| values.add(at).write(*one));
                });
            }
        }
    )*};
}
attributes! {
    attr_type, attr_types: TF_DataType, "type", AttrValue::Type(dtype) => Some(dtype.as_raw());
    attr_int32, attr_int32s: i32, "int", AttrValue::Int(value) => i32::try_from(*value).ok();
    attr_int64, attr_int64s: i64, "int", AttrValue::Int(value) => Some(*value);
    attr_float, attr_floats: f32, "float", AttrValue::Float(value) => Some(*value);
    attr_bool, attr_bools: TF_Bool, "bool", AttrValue::Bool(value) => Some((*value).into());
}

fn bytes_of(value: &AttrValue) -> Option<Vec<u8>> {
    match value {
        AttrValue::String(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

pub(super) unsafe extern "C" fn attr_string(
    ctx: Context,
    name: *const c_char,
    value: *mut c_char,
    max_length: usize,
    status: *mut TF_Status,
) {
    // SAFETY: the plugin passes a C string and a place for so many bytes.
    unsafe {
        attribute(ctx, name, status, "string", bytes_of, |bytes| {
            let len = bytes.len().min(max_length);
            value.copy_from_nonoverlapping(bytes.as_ptr().cast(), len);
        });
    }
}

pub(super) unsafe extern "C" fn attr_strings(
    ctx: Context,
    name: *const c_char,
    values: *mut *mut c_char,
    lengths: *mut usize,
    max_values: c_int,
    storage: *mut c_void,
    storage_size: usize,
    status: *mut TF_Status,
) {
    let all = |value: &AttrValue| match value {
        AttrValue::List(values) => {
            let strings = values.iter().map(bytes_of).collect::<Option<Vec<_>>>()?;
            let fits = strings.iter().map(Vec::len).sum::<usize>() <= storage_size;
            fits.then_some(strings)
        }
        _ => None,
    };
    // SAFETY: the plugin passes a C string, places for so many values, and storage of its size, into which the strings fit.
    unsafe {
        attribute(ctx, name, status, "list(string)", all, |strings| {
            let mut place = storage.cast::<c_char>();
            let max = usize::try_from(max_values).unwrap_or(0);
            for (at, string) in strings.iter().take(max).enumerate() {
                place.copy_from_nonoverlapping(string.as_ptr().cast(), string.len());
                values.add(at).write(place);
                lengths.add(at).write(string.len());
                place = place.add(string.len());
            }
        });
    }
}

fn no_such_kind(status: *mut TF_Status, what: &str) {
    status::write(
        status,
        Err(Error::unimplemented(format!(
            "this host has no attributes that are {what}; test the op in TensorFlow"
        ))),
    );
}

pub(super) unsafe extern "C" fn attr_tensor(
    _: Context,
    _: *const c_char,
    _: *mut *mut TF_Tensor,
    status: *mut TF_Status,
) {
    no_such_kind(status, "tensors");
}

pub(super) unsafe extern "C" fn attr_tensors(
    _: Context,
    _: *const c_char,
    _: *mut *mut TF_Tensor,
    _: c_int,
    status: *mut TF_Status,
) {
    no_such_kind(status, "tensors");
}

pub(super) unsafe extern "C" fn attr_function(
    _: Context,
    _: *const c_char,
    status: *mut TF_Status,
) -> *mut TF_Buffer {
    no_such_kind(status, "functions");
    ptr::null_mut()
}

/// Returns an index that is in range, with TensorFlow's error for others.
pub(super) fn in_range(index: c_int, len: usize, what: &str) -> Result<usize> {
    let at = usize::try_from(index).unwrap_or(usize::MAX);
    ensure!(
        at < len,
        Error::new(tf_op_plugin::Code::OutOfRange, format!("{what} index out of range"))
    );
    Ok(at)
}
