//! Variants of the host: it unpacks them, and lets the plugin compute with the tensors in them.

use super::context::OpKernelContext;
use super::tensor::DeviceTensor;
use crate::platform::Platform;
use core::cell::RefCell;
use tf_fs_sys::host::{Table as _, release};
use tf_fs_sys::{KernelExperimentalFunctions, TF_OpKernelContext, TF_Tensor};
use tf_op_plugin::__private::abi::{HostApi, Status, fail, not_exported};
use tf_op_plugin::__private::abi::{Tensor, not_plain};
use tf_op_plugin::DType;
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Error, Result, ensure};

/// Returns whether a release leaves it to the callback to delete its tensors, as the header says. 2.22 deletes them
/// itself, with the same header. The releases between do not export the functions, so any release that does counts as a
/// later one: a tensor that nobody deletes leaks, and one that both delete is a crash.
fn gives_away(release: Option<(u32, u32)>) -> bool {
    release.is_some_and(|release| release < (2, 19))
}

/// Returns whether TensorFlow exports the functions for computing with variants. 2.19 to 2.21 do not.
#[must_use]
pub fn host_has_variants() -> bool {
    KernelExperimentalFunctions::get()
        .is_ok_and(|host| host.TF_AddNVariant.is_some() && host.TF_ZerosLikeVariant.is_some())
}

thread_local! {
    /// The tensors of the host's call on this thread, in its order, grouped by callback; `None` outside of a call. The
    /// host's callbacks have no argument for data of the plugin, so they store their tensors here, and work on them
    /// begins after the call.
    static TENSORS: RefCell<Option<Vec<Vec<Tensor>>>> = const { RefCell::new(None) };
}

impl<P: Platform> OpKernelContext<'_, P> {
    /// Creates output 0 as the sum of the inputs, which are variants such as TensorLists: `AddN` of variants.
    /// TensorFlow unpacks them, and `add` enqueues the sum of two tensors into a third of the same type and shape. It
    /// must fail for types that it does not support. Tensors that only one variant has are shared without `add`.
    ///
    /// Each intermediate sum has its own memory until this returns: the sums of three lists of tensors use as much as
    /// two lists.
    ///
    /// Only for kernels that are registered with `variants`.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if TensorFlow does not export what this needs (2.19 to 2.21), or for tensors whose elements are not
    /// plain bytes, such as variants; `INVALID_ARGUMENT` if an input is not a variant in device memory, or two tensors differ in
    /// type or shape; `INTERNAL` if output 0 was created before; those of TensorFlow, such as for lists of different
    /// lengths, and those of `add`.
    pub fn add_variants(
        &self,
        mut add: impl FnMut(&DeviceTensor, &DeviceTensor, &DeviceTensor) -> Result<()>,
    ) -> Result<()> {
        for tensors in self.variants_to_add()? {
            let [a, b, sum] = tensors.map(DeviceTensor::new);
            let (a, b, sum) = (a?, b?, sum?);
            for other in [&b, &sum] {
                ensure!(
                    a.dtype() == other.dtype() && a.shape() == other.shape(),
                    Error::invalid_argument(format!(
                        "tensors in variants must have the same type, size and shape to be added: {} {:?} != {} {:?}",
                        a.dtype(),
                        a.shape(),
                        other.dtype(),
                        other.shape()
                    ))
                );
            }
            add(&a, &b, &sum)?;
        }
        Ok(())
    }

    /// Creates output 0 as a variant like input 0, such as a TensorList, with zeros in it: `ZerosLike` of a variant.
    /// TensorFlow unpacks it, and `fill` enqueues zeros into its second tensor, which has the first's type and shape.
    /// For an input that is not a scalar, TensorFlow itself sets the error of the op, and this returns `Ok`.
    ///
    /// Only for kernels that are registered with `variants`.
    ///
    /// # Errors
    /// As for [`add_variants`](Self::add_variants).
    pub fn zeros_like_variant(
        &self,
        mut fill: impl FnMut(&DeviceTensor, &DeviceTensor) -> Result<()>,
    ) -> Result<()> {
        for tensors in self.variants_to_fill()? {
            let [like, zeros] = tensors.map(DeviceTensor::new);
            fill(&like?, &zeros?)?;
        }
        Ok(())
    }

    /// Creates output 0 as the sum of the inputs, which are variants. Returns the tensors of each addition: two to add,
    /// and the one for their sum. A sum comes before the additions that use it.
    fn variants_to_add(&self) -> Result<Vec<[Tensor; 3]>> {
        self.make(0, || {
            let host = KernelExperimentalFunctions::get().map_err(Error::failed_precondition)?;
            let add = host.TF_AddNVariant.ok_or_else(|| not_exported("variants"))?;
            self.check_variants(self.input_count())?;
            // SAFETY: a run that has not ended, whose inputs and output are variants, a callback that keeps what it gets,
            // and a status.
            self.collect(|| unsafe {
                add(self.raw.as_ptr(), Some(keep_three), self.status.as_ptr());
            })
        })
    }

    /// Creates output 0 as a variant like input 0, with new tensors in it. Returns each old tensor with the new one.
    fn variants_to_fill(&self) -> Result<Vec<[Tensor; 2]>> {
        self.make(0, || {
            let host = KernelExperimentalFunctions::get().map_err(Error::failed_precondition)?;
            let zeros_like = host.TF_ZerosLikeVariant.ok_or_else(|| not_exported("variants"))?;
            self.check_variants(1)?;
            // SAFETY: a run that has not ended, whose input and output 0 are variants, a callback that keeps what it gets,
            // and a status.
            self.collect(|| unsafe {
                zeros_like(self.raw.as_ptr(), Some(keep_two), self.status.as_ptr());
            })
        })
    }

    /// Checks the first `inputs` inputs. The host reads input 0 and writes output 0 without a check that they exist.
    fn check_variants(&self, inputs: usize) -> Result<()> {
        for input in 0..inputs {
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
        }
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
        let groups = TENSORS.take().unwrap_or_default();
        self.status.check()?;
        Ok(groups.into_iter().filter_map(|group| group.try_into().ok()).collect())
    }
}

/// Returns a tensor that the host passes to a callback.
///
/// # Safety
/// `raw` is null, or a tensor that lives for the call and that nothing else deletes if the host [gives it away](gives_away).
unsafe fn received(raw: *mut TF_Tensor, host: &HostApi) -> Result<Tensor> {
    let what = "tensor of a variant";
    if gives_away(release()) {
        // SAFETY: `raw` is null, or lives and is the callback's.
        let tensor = unsafe { Tensor::adopt(raw, host, &what) }?;
        ensure!(tensor.dtype.size().is_some(), not_plain(tensor.dtype));
        return Ok(tensor);
    }
    let status = Status::new()?;
    // SAFETY: `raw` is null or lives.
    unsafe { Tensor::share(raw, host, &status, &what) }
}

/// Keeps the tensors that the host passes to a callback during `collect`.
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
                kept.push(tensors);
                Ok(())
            }
            None => Err(Error::internal("TensorFlow takes a variant apart on another thread")),
        })
    });
    if let Err(error) = kept {
        // SAFETY: `raw` is null or a run that has not ended.
        unsafe { fail(OP, raw, |host| host.TF_OpKernelContext_Failure, error) };
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
