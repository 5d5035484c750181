//! Operations that run eagerly: `tensorflow/c/eager/c_api.h`.

use super::library::{Device, Owned, TensorFlow, call, number, start, text};
use crate::tensor::{Content, Tensor};
use core::ffi::CStr;
use core::ptr;
use tf_fs_sys::{TF_DataType, TFE_Context, TFE_TensorHandle};
use tf_plugin_core::Result;

/// Where operations run.
pub type Context<'t> = Owned<'t, TFE_Context>;

// SAFETY: a context may be used from all threads; Python does so too.
unsafe impl Send for Context<'_> {}
// SAFETY: TensorFlow allows any thread to use a context, several at once; Python does so too.
unsafe impl Sync for Context<'_> {}

/// A tensor of a context, on any device.
pub type Handle<'c> = Owned<'c, TFE_TensorHandle>;

// SAFETY: a handle is a counted reference to a tensor that does not change, for all threads.
unsafe impl Send for Handle<'_> {}
// SAFETY: a handle is a counted reference to a tensor that does not change.
unsafe impl Sync for Handle<'_> {}

impl TensorFlow {
    /// Creates a context with all devices that TensorFlow knows by now.
    ///
    /// # Errors
    /// Fails with TensorFlow's error: a device may refuse.
    pub fn context(&self) -> Result<Context<'_>> {
        // SAFETY: it takes nothing.
        let options = unsafe { (self.eager.TFE_NewContextOptions)() };
        let context = call!(self, eager.TFE_NewContext(options));
        // SAFETY: the options are from above, and nothing uses them any more.
        unsafe { (self.eager.TFE_DeleteContextOptions)(options) };
        Ok(Owned { tensorflow: self, pointer: context?, free: self.eager.TFE_DeleteContext })
    }

    /// Takes ownership of a handle that a function has created.
    ///
    /// # Safety
    /// `pointer` must be a handle of this library that only the caller owns.
    unsafe fn handle(&self, pointer: *mut TFE_TensorHandle) -> Handle<'_> {
        Owned { tensorflow: self, pointer, free: self.eager.TFE_DeleteTensorHandle }
    }
}

impl Context<'_> {
    /// Returns the devices.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let list = call!(self.tensorflow, eager.TFE_ContextListDevices(self.pointer))?;
        // SAFETY: the list is the caller's.
        unsafe { self.tensorflow.listed(list) }
    }

    /// Creates a handle of a tensor in host memory.
    pub fn handle(&self, tensor: &Tensor) -> Result<Handle<'_>> {
        let tensor = self.tensorflow.in_c(tensor)?;
        // The handle shares ownership of the tensor.
        let handle = call!(self.tensorflow, eager.TFE_NewTensorHandle(tensor.pointer))?;
        // SAFETY: the function has made it for its caller.
        Ok(unsafe { self.tensorflow.handle(handle) })
    }

    /// Runs an operation with at most `outputs` results, on `device` or where TensorFlow places it.
    /// `types` is the name and value of an attribute that is a list of types.
    pub fn execute(
        &self,
        operation: &str,
        inputs: &[&Handle<'_>],
        types: Option<(&str, &[TF_DataType])>,
        device: Option<&str>,
        outputs: usize,
    ) -> Result<Vec<Handle<'_>>> {
        let tensorflow = self.tensorflow;
        let name = text(operation)?;
        let op = call!(tensorflow, eager.TFE_NewOp(self.pointer, name.as_ptr()))?;
        let op = Owned { tensorflow, pointer: op, free: tensorflow.eager.TFE_DeleteOp };
        if let Some(device) = device {
            let device = text(device)?;
            call!(tensorflow, eager.TFE_OpSetDevice(op.pointer, device.as_ptr()))?;
        }
        for input in inputs {
            call!(tensorflow, eager.TFE_OpAddInput(op.pointer, input.pointer))?;
        }
        if let Some((name, types)) = types {
            let name = text(name)?;
            // SAFETY: an operation, a C string, and values that are copied, with their number.
            unsafe {
                let count = number(types.len());
                let set = tensorflow.eager.TFE_OpSetAttrTypeList;
                set(op.pointer, name.as_ptr(), start(types), count);
            }
        }
        let mut found = vec![ptr::null_mut(); outputs];
        let mut count = number(outputs);
        call!(tensorflow, eager.TFE_Execute(op.pointer, found.as_mut_ptr(), &raw mut count))?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        // SAFETY: the function has made as many as it says, for its caller.
        Ok(found.into_iter().map(|handle| unsafe { tensorflow.handle(handle) }).collect())
    }

    /// Returns the strings that an operation without attributes computes from tensors.
    pub fn strings(&self, operation: &str, inputs: &[Tensor]) -> Result<Vec<Vec<u8>>> {
        let inputs: Vec<_> =
            inputs.iter().map(|input| self.handle(input)).collect::<Result<_>>()?;
        let given = self.execute(operation, &inputs.iter().collect::<Vec<_>>(), None, None, 1)?;
        match given.first().map(Handle::tensor).transpose()?.map(|tensor| tensor.content) {
            Some(Content::Strings(strings)) => Ok(strings),
            _ => Ok(Vec::new()),
        }
    }
}

impl Handle<'_> {
    /// Waits for the content and returns it.
    pub fn tensor(&self) -> Result<Tensor> {
        let tensor = call!(self.tensorflow, eager.TFE_TensorHandleResolve(self.pointer))?;
        // SAFETY: the function has made it for its caller.
        let tensor = unsafe { self.tensorflow.owned(tensor) };
        self.tensorflow.in_rust(&tensor)
    }

    /// Copies the tensor to another device.
    pub fn copy_to<'c>(&self, context: &'c Context<'_>, device: &str) -> Result<Handle<'c>> {
        let name = text(device)?;
        let handle = call!(
            self.tensorflow,
            eager.TFE_TensorHandleCopyToDevice(self.pointer, context.pointer, name.as_ptr())
        )?;
        // SAFETY: the function has made it for its caller.
        Ok(unsafe { context.tensorflow.handle(handle) })
    }

    /// Returns the device whose memory holds the tensor.
    pub fn backing_device(&self) -> Result<String> {
        let name = call!(self.tensorflow, eager.TFE_TensorHandleBackingDeviceName(self.pointer))?;
        // SAFETY: a C string, which is copied while the tensor lives.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}
