//! The memory of tensors.

use super::strings;
use crate::tensor::{Content, Tensor};
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::slice;
use std::alloc::{Layout, alloc, dealloc};
use std::sync::Arc;
use tf_fs_sys::{TF_DataType, TF_STRING, TF_TString, TF_TensorDeallocator};
use tf_op_plugin::DType;

/// The alignment in bytes, as in TensorFlow.
pub(super) const ALIGNMENT: usize = 64;
/// The content of new memory: no plugin may rely on zeros.
const FRESH: u8 = 0xa5;
/// The largest number of dimensions of TensorFlow's tensors.
const MAX_RANK: usize = 254;

/// A block of memory, which several tensors may share.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// The host, with so many strings that it frees.
    Host { layout: Layout, strings: usize, _viewed: Vec<u8> },
    /// The plugin, which frees it with this function.
    Plugin { free: TF_TensorDeallocator, argument: *mut c_void },
}

// SAFETY: the host lets any thread use and free memory; plugins allow that by the header.
unsafe impl Send for Memory {}
// SAFETY: a shared reference only reads the fields.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates memory. Returns `None` if there is none.
    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout has at least one byte, and all of them are written.
        let start = unsafe {
            let start = NonNull::new(alloc(layout))?;
            start.as_ptr().write_bytes(FRESH, layout.size());
            start
        };
        Some(Self { start, bytes, owner: Owner::Host { layout, strings: 0, _viewed: Vec::new() } })
    }

    /// Takes over memory of the plugin's.
    pub(super) fn of_plugin(
        start: NonNull<u8>,
        bytes: usize,
        free: TF_TensorDeallocator,
        argument: *mut c_void,
    ) -> Self {
        Self { start, bytes, owner: Owner::Plugin { free, argument } }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Host { layout, strings, .. } => {
                let first = self.start.as_ptr().cast::<TF_TString>();
                // SAFETY: allocated with this layout, with so many initialised strings, and freed once.
                unsafe {
                    (0..*strings).for_each(|at| strings::dealloc(first.add(at)));
                    dealloc(self.start.as_ptr(), *layout);
                }
            }
            Owner::Plugin { free: Some(free), argument } => {
                // SAFETY: the plugin passed the function for this memory, and it is called once.
                unsafe { free(self.start.as_ptr().cast(), self.bytes, *argument) }
            }
            Owner::Plugin { free: None, .. } => {}
        }
    }
}

/// A tensor at the C boundary: a type and a shape over memory that others may share. Without elements it has no memory.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Array {
    pub(super) data_type: TF_DataType,
    pub(super) shape: Vec<i64>,
    pub(super) memory: Option<Arc<Memory>>,
}

/// Returns the number of elements of a shape; `None` for one on which TensorFlow aborts.
pub(super) fn elements_of(shape: &[i64]) -> Option<usize> {
    let mut product = 1_i64;
    for &dim in shape {
        product = product.checked_mul(dim).filter(|_| dim >= 0)?;
    }
    usize::try_from(product).ok().filter(|_| shape.len() <= MAX_RANK)
}

/// Returns the size of an element.
pub(super) fn size_of_type(data_type: TF_DataType) -> Option<usize> {
    match data_type {
        TF_STRING => Some(size_of::<TF_TString>()),
        other => DType::from_raw(other)?.size(),
    }
}

impl Array {
    /// Allocates a tensor; strings are empty. Returns `None` without memory, or for a shape that no tensor has.
    pub(super) fn new(data_type: TF_DataType, shape: &[i64]) -> Option<Self> {
        let elements = elements_of(shape)?;
        let bytes = elements.checked_mul(size_of_type(data_type)?)?;
        let mut array = Self::of_size(data_type, shape, bytes)?;
        if data_type == TF_STRING
            && let Some(memory) = array.memory.as_mut().and_then(Arc::get_mut)
        {
            // SAFETY: new memory for so many strings: zeros are empty ones.
            unsafe { memory.start.as_ptr().write_bytes(0, bytes) };
            if let Owner::Host { strings, .. } = &mut memory.owner {
                *strings = elements;
            }
        }
        Some(array)
    }

    /// Allocates so many bytes for a tensor, whose strings are the plugin's.
    pub(super) fn of_size(data_type: TF_DataType, shape: &[i64], bytes: usize) -> Option<Self> {
        let memory = match bytes {
            0 => None,
            _ => Some(Arc::new(Memory::new(bytes)?)),
        };
        Some(Self { data_type, shape: shape.to_vec(), memory })
    }

    /// Copies a value. With `views`, strings refer to memory behind the tensor, as those of mapped files do.
    pub(in crate::ops) fn of(tensor: &Tensor, views: bool) -> Option<Self> {
        let mut array = Self::new(tensor.data_type, &tensor.shape)?;
        let elements = array.elements();
        let Some(memory) = array.memory.as_mut() else { return Some(array) };
        let memory = Arc::get_mut(memory)?;
        let start = memory.start.as_ptr();
        match &tensor.content {
            Content::Bytes(bytes) if bytes.len() == memory.bytes => {
                // SAFETY: new memory of the same size.
                unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            }
            Content::Strings(strings) if strings.len() == elements => {
                let viewed = if views { strings.concat() } else { Vec::new() };
                let mut at = 0;
                for (index, string) in strings.iter().enumerate() {
                    // SAFETY: new memory for so many strings, which are empty. What they view is moved into the owner of
                    // the memory below, and with it the address of the bytes stays.
                    unsafe {
                        let place = start.cast::<TF_TString>().add(index);
                        match views {
                            true => {
                                let from = viewed.as_ptr().add(at).cast();
                                strings::assign_view(place, from, string.len());
                            }
                            false => strings::copy(place, string.as_ptr().cast(), string.len()),
                        }
                    }
                    at += string.len();
                }
                if let Owner::Host { _viewed, .. } = &mut memory.owner {
                    *_viewed = viewed;
                }
            }
            _ => return None,
        }
        Some(array)
    }

    /// Returns the value of the elements.
    pub(in crate::ops) fn to_tensor(&self) -> Tensor {
        let elements = self.elements();
        let start = self.data();
        // SAFETY: a tensor with memory has that of its elements; the plugin has initialised it, as no output is read before
        // the plugin has returned, or the host has.
        let content = unsafe {
            match (self.data_type, start.is_null()) {
                (TF_STRING, true) => Content::Strings(Vec::new()),
                (_, true) => Content::Bytes(Vec::new()),
                (TF_STRING, false) => {
                    let string = |at| strings::bytes(start.cast::<TF_TString>().add(at)).to_vec();
                    Content::Strings((0..elements).map(string).collect())
                }
                (other, false) => {
                    let bytes = elements * size_of_type(other).unwrap_or(0);
                    Content::Bytes(slice::from_raw_parts(start, bytes).to_vec())
                }
            }
        };
        Tensor { data_type: self.data_type, shape: self.shape.clone(), content }
    }

    /// Returns whether the memory has all elements of the shape.
    pub(super) fn is_complete(&self) -> bool {
        let bytes = elements_of(&self.shape)
            .and_then(|elements| elements.checked_mul(size_of_type(self.data_type)?));
        bytes.is_some_and(|bytes| bytes <= self.bytes())
    }

    /// Returns the number of elements.
    pub(super) fn elements(&self) -> usize {
        elements_of(&self.shape).unwrap_or(0)
    }

    /// Returns the address of the first byte; null without memory.
    pub(super) fn data(&self) -> *mut u8 {
        self.memory.as_ref().map_or(ptr::null_mut(), |memory| memory.start.as_ptr())
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.bytes)
    }

    /// Returns the address of the memory; 0 without memory.
    pub(in crate::ops) fn address(&self) -> usize {
        self.data().addr()
    }

    /// Returns whether this value is the only user of its memory.
    pub(super) fn is_unshared(&self) -> bool {
        self.memory.as_ref().is_none_or(|memory| Arc::strong_count(memory) == 1)
    }
}
