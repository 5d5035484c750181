//! The host's side of `tf_tensor.h` and `tf_buffer.h`.

use super::memory::{ALIGNMENT, Array, Memory, elements_of, size_of_type};
use crate::abi::status;
use crate::ops::account::Account;
use crate::ops::handles::Handles;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::slice;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tf_fs_sys::{
    BufferFunctions, TF_Buffer, TF_DataType, TF_STRING, TF_Status, TF_Tensor, TF_TensorDeallocator,
    TensorFunctions,
};
use tf_op_plugin::Error;

/// What a `TF_Tensor` of the plugin refers to.
type Object = Mutex<Array>;

static TENSORS: Handles<Object> = Handles::new(TENSOR, 1);
pub(in crate::ops) const TENSOR: &str = "tensor";

pub(super) static TENSOR_FUNCTIONS: TensorFunctions = TensorFunctions {
    TF_NewTensor: new_tensor,
    TF_TensorDefaultAlignment: Some(default_alignment),
    TF_AllocateTensor: allocate_tensor,
    TF_TensorMaybeMove: maybe_move,
    TF_DeleteTensor: delete_tensor,
    TF_TensorType: tensor_type,
    TF_SetShape: set_shape,
    TF_NumDims: num_dims,
    TF_Dim: dim,
    TF_TensorByteSize: byte_size,
    TF_TensorData: tensor_data,
    TF_TensorElementCount: element_count,
    TF_TensorBitcastFrom: bitcast_from,
    TF_TensorIsAligned: is_aligned,
};

pub(super) static BUFFER_FUNCTIONS: BufferFunctions = BufferFunctions {
    TF_NewBufferFromString: new_buffer_from_string,
    TF_NewBuffer: new_buffer,
    TF_DeleteBuffer: delete_buffer,
    TF_GetBuffer: get_buffer,
};

/// Returns a tensor for the plugin, which frees it.
pub(super) fn lend(array: Array) -> *mut TF_Tensor {
    TENSORS.add(Mutex::new(array))
}

/// Returns a copy of what a tensor of the plugin's refers to.
pub(super) fn array_of(function: &'static str, tensor: *const TF_Tensor) -> Option<Array> {
    let object = TENSORS.find(function, tensor)?;
    let array = object.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Some(array)
}

/// Calls `with` with what a tensor refers to.
fn with<T>(
    function: &'static str,
    tensor: *const TF_Tensor,
    otherwise: T,
    with: impl FnOnce(&mut Array) -> T,
) -> T {
    match TENSORS.find(function, tensor) {
        Some(object) => with(&mut object.lock().unwrap_or_else(PoisonError::into_inner)),
        None => otherwise,
    }
}

/// Returns the dimensions that a plugin passes.
///
/// # Safety
/// `count` dimensions are at `dims`, which may be null without any.
pub(super) unsafe fn shape_of(dims: *const i64, count: c_int) -> Vec<i64> {
    match usize::try_from(count) {
        // SAFETY: so many dimensions are there.
        Ok(count @ 1..) => unsafe { slice::from_raw_parts(dims, count) }.to_vec(),
        _ => Vec::new(),
    }
}

/// Records a shape on which TensorFlow aborts.
pub(super) fn no_such_shape(function: &'static str, shape: &[i64]) {
    if let Some(account) = Account::current() {
        account.add(
            function,
            format!("no tensor has the shape {shape:?}; TensorFlow aborts the process"),
        );
    }
}

unsafe extern "C" fn new_tensor(
    data_type: TF_DataType,
    dims: *const i64,
    num_dims: c_int,
    data: *mut c_void,
    len: usize,
    deallocator: TF_TensorDeallocator,
    argument: *mut c_void,
) -> *mut TF_Tensor {
    const NAME: &str = "TF_NewTensor";
    // SAFETY: the plugin passes as many dimensions as it says.
    let shape = unsafe { shape_of(dims, num_dims) };
    // Without an address there is nothing to free but the plugin still gets its call.
    let start = NonNull::new(data.cast::<u8>()).unwrap_or(NonNull::dangling());
    let given = Memory::of_plugin(start, len, deallocator, argument);
    let Some(elements) = elements_of(&shape) else {
        no_such_shape(NAME, &shape);
        return ptr::null_mut();
    };
    let wanted = size_of_type(data_type).and_then(|size| elements.checked_mul(size));
    // TensorFlow returns null after a call of the deallocator, which drops here.
    let Some(wanted) = wanted.filter(|wanted| *wanted <= len) else { return ptr::null_mut() };
    if elements == 0 {
        return lend(Array { data_type, shape, memory: None });
    }
    if start.addr().get().is_multiple_of(ALIGNMENT) || data_type == TF_STRING {
        return lend(Array { data_type, shape, memory: Some(Arc::new(given)) });
    }
    let Some(copy) = Array::of_size(data_type, &shape, wanted) else { return ptr::null_mut() };
    // SAFETY: the plugin passes `len` bytes, of which `wanted` are copied to new memory of that size.
    unsafe { copy.data().copy_from_nonoverlapping(start.as_ptr(), wanted) };
    lend(copy)
}

unsafe extern "C" fn default_alignment() -> usize {
    ALIGNMENT
}

unsafe extern "C" fn allocate_tensor(
    data_type: TF_DataType,
    dims: *const i64,
    num_dims: c_int,
    len: usize,
) -> *mut TF_Tensor {
    // SAFETY: the plugin passes as many dimensions as it says.
    let shape = unsafe { shape_of(dims, num_dims) };
    if elements_of(&shape).is_none() {
        no_such_shape("TF_AllocateTensor", &shape);
        return ptr::null_mut();
    }
    Array::of_size(data_type, &shape, len).map_or(ptr::null_mut(), lend)
}

unsafe extern "C" fn maybe_move(tensor: *mut TF_Tensor) -> *mut TF_Tensor {
    const NAME: &str = "TF_TensorMaybeMove";
    if !with(NAME, tensor, false, |array| array.is_unshared()) {
        return ptr::null_mut();
    }
    let Some(object) = TENSORS.remove(NAME, tensor) else { return ptr::null_mut() };
    lend(object.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

unsafe extern "C" fn delete_tensor(tensor: *mut TF_Tensor) {
    if !tensor.is_null() {
        TENSORS.remove("TF_DeleteTensor", tensor);
    }
}

unsafe extern "C" fn tensor_type(tensor: *const TF_Tensor) -> TF_DataType {
    with("TF_TensorType", tensor, 0, |array| array.data_type)
}

unsafe extern "C" fn set_shape(tensor: *mut TF_Tensor, dims: *const i64, num_dims: c_int) {
    // SAFETY: the plugin passes as many dimensions as it says.
    let shape = unsafe { shape_of(dims, num_dims) };
    with("TF_SetShape", tensor, (), |array| array.shape = shape);
}

unsafe extern "C" fn num_dims(tensor: *const TF_Tensor) -> c_int {
    with("TF_NumDims", tensor, 0, |array| c_int::try_from(array.shape.len()).unwrap_or(0))
}

unsafe extern "C" fn dim(tensor: *const TF_Tensor, index: c_int) -> i64 {
    const NAME: &str = "TF_Dim";
    let found =
        with(NAME, tensor, Some(0), |array| array.shape.get(usize::try_from(index).ok()?).copied());
    if let (None, Some(account)) = (found, Account::current()) {
        account.add(
            NAME,
            format!("the tensor has no dimension {index}; TensorFlow aborts the process"),
        );
    }
    found.unwrap_or(0)
}

unsafe extern "C" fn byte_size(tensor: *const TF_Tensor) -> usize {
    with("TF_TensorByteSize", tensor, 0, |array| array.bytes())
}

unsafe extern "C" fn tensor_data(tensor: *const TF_Tensor) -> *mut c_void {
    with("TF_TensorData", tensor, ptr::null_mut(), |array| array.data().cast())
}

unsafe extern "C" fn element_count(tensor: *const TF_Tensor) -> i64 {
    with("TF_TensorElementCount", tensor, 0, |array| array.elements() as i64)
}

unsafe extern "C" fn bitcast_from(
    from: *const TF_Tensor,
    data_type: TF_DataType,
    to: *mut TF_Tensor,
    dims: *const i64,
    num_dims: c_int,
    status: *mut TF_Status,
) {
    const NAME: &str = "TF_TensorBitcastFrom";
    // SAFETY: the plugin passes as many dimensions as it says.
    let shape = unsafe { shape_of(dims, num_dims) };
    let Some(from) = array_of(NAME, from) else { return };
    let size = |data_type: TF_DataType, shape: &[i64]| {
        let size = size_of_type(data_type).filter(|_| data_type != TF_STRING)?;
        elements_of(shape)?.checked_mul(size)
    };
    let fits = size(data_type, &shape)
        .is_some_and(|bytes| Some(bytes) == size(from.data_type, &from.shape));
    if fits {
        with(NAME, to, (), |array| *array = Array { data_type, shape, ..from });
        return status::write(status, Ok(()));
    }
    let text = "the sizes of the tensors differ, or they have no fixed size";
    status::write(status, Err(Error::invalid_argument(text)));
}

unsafe extern "C" fn is_aligned(tensor: *const TF_Tensor) -> bool {
    with("TF_TensorIsAligned", tensor, true, |array| array.data().addr().is_multiple_of(ALIGNMENT))
}

/// The buffers that exist, by their addresses, and the calls that have to free them.
static BUFFERS: Mutex<BTreeMap<usize, Option<Arc<Account>>>> = Mutex::new(BTreeMap::new());
const BUFFER: &str = "buffer";

/// Returns a buffer with a copy of bytes for the plugin, which frees it.
pub(super) fn lend_bytes(bytes: &[u8]) -> *mut TF_Buffer {
    let mut buffer = TF_Buffer::default();
    fill(&mut buffer, bytes);
    let account = Account::current();
    if let Some(account) = &account {
        account.created(BUFFER);
    }
    let buffer = Box::into_raw(Box::new(buffer));
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).insert(buffer.addr(), account);
    buffer
}

/// Makes a copy of bytes the content of a buffer.
fn fill(buffer: &mut TF_Buffer, bytes: &[u8]) {
    if !bytes.is_empty() {
        let content = Box::into_raw(Box::<[u8]>::from(bytes));
        *buffer = TF_Buffer {
            data: content.cast_const().cast(),
            length: bytes.len(),
            data_deallocator: Some(free_bytes),
        };
    }
}

/// Makes a copy of bytes the content of an empty buffer of the plugin's.
///
/// # Safety
/// `buffer` is a buffer of this host that lives, which nothing else uses.
pub(super) unsafe fn fill_buffer(buffer: *mut TF_Buffer, bytes: &[u8]) {
    // SAFETY: a buffer that lives.
    fill(unsafe { &mut *buffer }, bytes);
}

unsafe extern "C" fn free_bytes(data: *mut c_void, length: usize) {
    // SAFETY: `fill` leaked a box of so many bytes, which is freed once.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(data.cast::<u8>(), length)) });
}

unsafe extern "C" fn new_buffer_from_string(data: *const c_void, length: usize) -> *mut TF_Buffer {
    match length {
        0 => lend_bytes(&[]),
        // SAFETY: the plugin passes so many bytes.
        _ => lend_bytes(unsafe { slice::from_raw_parts(data.cast::<u8>(), length) }),
    }
}

unsafe extern "C" fn new_buffer() -> *mut TF_Buffer {
    lend_bytes(&[])
}

unsafe extern "C" fn delete_buffer(buffer: *mut TF_Buffer) {
    if buffer.is_null() {
        return;
    }
    let known = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&buffer.addr());
    let Some(account) = known else {
        if let Some(account) = Account::current() {
            account.add(
                "TF_DeleteBuffer",
                "the plugin deleted a buffer twice; TensorFlow would corrupt its memory",
            );
        }
        return;
    };
    if let Some(account) = account {
        account.freed(BUFFER);
    }
    // SAFETY: the buffer is a leaked box that is still in the list, so it is freed once; its deallocator is for its bytes.
    unsafe {
        let buffer = Box::from_raw(buffer);
        if let Some(free) = buffer.data_deallocator {
            free(buffer.data.cast_mut(), buffer.length);
        }
    }
}

unsafe extern "C" fn get_buffer(buffer: *mut TF_Buffer) -> TF_Buffer {
    // SAFETY: the plugin passes a buffer that lives; a copy of its fields owns nothing.
    unsafe { *buffer }
}
