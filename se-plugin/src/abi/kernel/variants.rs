//! Variants, as the host has them: it takes them apart, and lets the plugin compute with the tensors in them.

use super::run::{Run, fail};
use super::status::HostApi;
use super::tensor::{Tensor, not_plain};
use crate::device::Device;
use crate::dtype::DType;
use core::cell::RefCell;
use tf_fs_sys::host::{Table as _, release};
use tf_fs_sys::{KernelExperimentalFunctions, TF_OpKernelContext, TF_Tensor};
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Code, Error, Result, ensure};

/// An error for a function that this TensorFlow lacks.
#[cold]
fn not_exported() -> Error {
    Error::new(
        Code::Unimplemented,
        "this TensorFlow does not export its functions for variants; register the kernel with \
         `variants`, so that it is left out here",
    )
}

/// Whether a release leaves it to the callback to delete its tensors, as the header says. 2.22 deletes them itself, with the
/// same header. The releases between do not export the functions, so whatever does is taken for a later one: a tensor too
/// many leaks, and one too few is a crash.
fn gives_away(release: Option<(u32, u32)>) -> bool {
    release.is_some_and(|release| release < (2, 19))
}

/// Whether TensorFlow exports what kernels need to compute with variants. 2.19 to 2.21 do not.
#[must_use]
pub fn host_has_variants() -> bool {
    KernelExperimentalFunctions::get()
        .is_ok_and(|host| host.TF_AddNVariant.is_some() && host.TF_ZerosLikeVariant.is_some())
}

thread_local! {
    /// The tensors of the host's call on this thread, in its order; `None` outside of a call. The host's callbacks
    /// have no argument of the plugin's, so they leave their tensors here, and work on them begins after the call.
    static TENSORS: RefCell<Option<Vec<Tensor>>> = const { RefCell::new(None) };
}

impl<D: Device> Run<'_, D> {
    /// Makes output 0 the sum of the inputs, which are variants. Returns the tensors to add: two, and the sum's, in the
    /// order in which sums need each other.
    pub(crate) fn add_variants(&self) -> Result<Vec<[Tensor; 3]>> {
        let host = KernelExperimentalFunctions::get().map_err(Error::failed_precondition)?;
        let add = host.TF_AddNVariant.ok_or_else(not_exported)?;
        for input in 0..self.inputs() {
            self.check_variant(input)?;
        }
        self.check_variant_output(self.inputs())?;
        // SAFETY: a run that has not ended, whose inputs and output are variants, a callback that keeps what it gets,
        // and a status.
        self.collect(|| unsafe {
            add(self.raw.as_ptr(), Some(keep_three), self.status.as_ptr());
        })
    }

    /// Makes output 0 what input 0 is, a variant, with other tensors in it. Returns each tensor, and the other.
    pub(crate) fn variant_like(&self) -> Result<Vec<[Tensor; 2]>> {
        let host = KernelExperimentalFunctions::get().map_err(Error::failed_precondition)?;
        let zeros_like = host.TF_ZerosLikeVariant.ok_or_else(not_exported)?;
        self.check_variant(0)?;
        self.check_variant_output(1)?;
        // SAFETY: a run that has not ended, whose input and output 0 are variants, a callback that keeps what it gets, and a
        // status.
        self.collect(|| unsafe {
            zeros_like(self.raw.as_ptr(), Some(keep_two), self.status.as_ptr());
        })
    }

    fn check_variant(&self, input: usize) -> Result<()> {
        let dtype = self.input_dtype(input)?;
        ensure!(
            dtype == DType::Variant,
            Error::invalid_argument(format!("input {input} is of {dtype}, not a variant"))
        );
        ensure!(
            !self.input_is_on_host(input)?,
            Error::invalid_argument(format!(
                "input {input} is in host memory; register the kernel without `host_memory`"
            ))
        );
        Ok(())
    }

    /// The host reads input 0 and writes output 0, without looking whether they are there.
    fn check_variant_output(&self, inputs: usize) -> Result<()> {
        ensure!(inputs > 0, Error::invalid_argument("the op has no inputs"));
        let dtype = self.output_dtype(0)?;
        ensure!(
            dtype == DType::Variant,
            Error::invalid_argument(format!("output 0 is of {dtype}, not a variant"))
        );
        Ok(())
    }

    fn collect<const N: usize>(&self, call: impl FnOnce()) -> Result<Vec<[Tensor; N]>> {
        TENSORS.set(Some(Vec::new()));
        call();
        let tensors = TENSORS.take().unwrap_or_default();
        self.status.check()?;
        let mut groups = Vec::with_capacity(tensors.len() / N);
        let mut group = Vec::with_capacity(N);
        for tensor in tensors {
            group.push(tensor);
            if group.len() == N {
                groups.extend(<[Tensor; N]>::try_from(core::mem::take(&mut group)));
            }
        }
        Ok(groups)
    }
}

/// A tensor that the host passes to a callback.
///
/// # Safety
/// `raw` is null, or a tensor that lives for the call and that nothing else deletes if the host [gives it away](gives_away).
unsafe fn received(raw: *mut TF_Tensor, host: &HostApi) -> Result<Tensor> {
    let what = "tensor of a variant";
    if gives_away(release()) {
        // SAFETY: `raw` is null, or lives and is the callback's.
        let tensor = unsafe { Tensor::adopt(raw, host, &what) }?;
        ensure!(tensor.dtype().size().is_some(), not_plain(tensor.dtype()));
        return Ok(tensor);
    }
    let status = host.new_status()?;
    // SAFETY: `raw` is null or lives.
    unsafe { Tensor::share(raw, host, &status, &what) }
}

/// Keeps what the host passes to a callback of [`Run::collect`].
///
/// # Safety
/// `raw` is null or a run that has not ended; each of `tensors` is null, or a tensor that lives for the call and that nothing
/// else deletes if the host [gives it away](gives_away).
unsafe fn keep<const N: usize>(raw: *mut TF_OpKernelContext, tensors: [*mut TF_Tensor; N]) {
    const OP: &str = "the tensors of a variant";
    let kept = boundary::catch(OP, || {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        // SAFETY: as this function's caller promises: each is null, or lives and is the callback's if the host gives it away.
        let tensors = tensors.map(|tensor| unsafe { received(tensor, &host) });
        let tensors = tensors.into_iter().collect::<Result<Vec<_>>>()?;
        TENSORS.with_borrow_mut(|kept| match kept {
            Some(kept) => {
                kept.extend(tensors);
                Ok(())
            }
            None => Err(Error::internal("TensorFlow takes a variant apart on another thread")),
        })
    });
    if let Err(error) = kept {
        // SAFETY: `raw` is null or a run that has not ended.
        unsafe { fail(OP, raw, error) };
    }
}

unsafe extern "C" fn keep_two(
    raw: *mut TF_OpKernelContext,
    input: *mut TF_Tensor,
    output: *mut TF_Tensor,
) {
    // SAFETY: the run of the call in `collect`, and two tensors, which the host deletes after the call or leaves to us.
    unsafe { keep(raw, [input, output]) };
}

unsafe extern "C" fn keep_three(
    raw: *mut TF_OpKernelContext,
    a: *mut TF_Tensor,
    b: *mut TF_Tensor,
    sum: *mut TF_Tensor,
) {
    // SAFETY: the run of the call in `collect`, and three tensors, which the host deletes after the call or leaves to us.
    unsafe { keep(raw, [a, b, sum]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_deleted_only_where_the_host_does_not() {
        for (release, given) in [
            (Some((2, 12)), true),
            (Some((2, 18)), true),
            (Some((2, 21)), false),
            (Some((2, 22)), false),
            (Some((3, 0)), false),
            (None, false),
        ] {
            assert_eq!(gives_away(release), given, "{release:?}");
        }
    }
}
