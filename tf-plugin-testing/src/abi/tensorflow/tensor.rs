//! The conversion of tensors between Rust and C.

use super::library::{Owned, TensorFlow, number, start};
use crate::tensor::{Content, Tensor};
use core::slice;
use tf_fs_sys::{TF_STRING, TF_TString, TF_Tensor};
use tf_plugin_core::{Error, Result};

impl TensorFlow {
    /// Takes ownership of a C tensor, which is freed with the value. Long strings in it are not
    /// freed: TensorFlow may have kept the buffer, and does not free them itself.
    ///
    /// # Safety
    /// `pointer` must be a tensor of this library that only the caller owns.
    pub(super) unsafe fn owned(&self, pointer: *mut TF_Tensor) -> Owned<'_, TF_Tensor> {
        Owned { tensorflow: self, pointer, free: self.tensors.TF_DeleteTensor }
    }

    pub(super) fn in_c(&self, tensor: &Tensor) -> Result<Owned<'_, TF_Tensor>> {
        let size = match &tensor.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Strings(strings) => strings.len() * size_of::<TF_TString>(),
        };
        let dims = number(tensor.shape.len());
        let no_memory = || Error::resource_exhausted(format!("no tensor of {size} bytes"));
        // SAFETY: as many lengths as are said. What comes is the caller's.
        let made = unsafe {
            let shape = start(&tensor.shape);
            let made = (self.tensors.TF_AllocateTensor)(tensor.data_type, shape, dims, size);
            if made.is_null() {
                return Err(no_memory());
            }
            self.owned(made)
        };
        // SAFETY: the tensor has this size and is not shared yet; strings are initialised before they are set.
        unsafe {
            let data = (self.tensors.TF_TensorData)(made.pointer);
            match &tensor.content {
                Content::Bytes(bytes) if bytes.is_empty() => {}
                Content::Bytes(bytes) => {
                    data.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
                Content::Strings(strings) => {
                    let (init, copy) = (self.strings.TF_StringInit, self.strings.TF_StringCopy);
                    let (Some(init), Some(copy)) = (init, copy) else {
                        return Err(Error::unimplemented("this TensorFlow has no strings for C"));
                    };
                    for (at, text) in strings.iter().enumerate() {
                        let place = data.cast::<TF_TString>().add(at);
                        init(place);
                        copy(place, text.as_ptr().cast(), text.len());
                    }
                }
            }
        }
        Ok(made)
    }

    pub(super) fn in_rust(&self, tensor: &Owned<'_, TF_Tensor>) -> Result<Tensor> {
        let tensor = tensor.pointer;
        // SAFETY: a tensor that lives until the end of this function, in host memory. An empty one may have no data.
        unsafe {
            let dims = (self.tensors.TF_NumDims)(tensor);
            let shape = (0..dims).map(|at| (self.tensors.TF_Dim)(tensor, at)).collect();
            let data_type = (self.tensors.TF_TensorType)(tensor);
            let data = (self.tensors.TF_TensorData)(tensor);
            let content = if data_type == TF_STRING {
                let (Some(start), Some(size)) =
                    (self.strings.TF_StringGetDataPointer, self.strings.TF_StringGetSize)
                else {
                    return Err(Error::unimplemented("this TensorFlow has no strings for C"));
                };
                let count = (self.tensors.TF_TensorElementCount)(tensor);
                let copy = |at| {
                    let text = data.cast::<TF_TString>().add(at);
                    slice::from_raw_parts(start(text).cast::<u8>(), size(text)).to_vec()
                };
                Content::Strings((0..usize::try_from(count).unwrap_or(0)).map(copy).collect())
            } else {
                let size = (self.tensors.TF_TensorByteSize)(tensor);
                let bytes = match size {
                    0 => Vec::new(),
                    _ => slice::from_raw_parts(data.cast::<u8>(), size).to_vec(),
                };
                Content::Bytes(bytes)
            };
            Ok(Tensor { data_type, shape, content })
        }
    }
}
