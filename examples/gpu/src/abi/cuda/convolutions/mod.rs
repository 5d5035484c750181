//! Convolutions by cuDNN, where it is, in the place of the shader `convolve`.

mod plan;
mod sizes;
mod trial;

pub(super) use sizes::Convolution;

use super::libraries::CUDNN;
use super::substitutes::pushed;
use super::{broken, failed};
use crate::abi::driver::Done;
use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use cudarc::driver::sys::CUstream;
use plan::{ALIGNMENT, Plan};
use sizes::Sizes;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The memory for filters in cuDNN's order and for what an algorithm writes meanwhile: at most so much, and at most this part of
/// what the card has.
const WORKSPACE: (usize, usize) = (256 << 20, 16);
/// How many different convolutions are kept ready.
const MOST_PLANS: usize = 4096;

/// cuDNN, opened for a card.
pub(super) struct Cudnn(Mutex<Opened>);

struct Opened {
    handle: sys::cudnnHandle_t,
    stream: CUstream,
    /// Its address and bytes. Commands run one after the other, so that all have the same.
    workspace: (u64, usize),
    /// Whether it computes what the shader does, once that was tried.
    is_right: Option<bool>,
    /// `None` for those that cuDNN does not have.
    plans: HashMap<(Convolution, Sizes), Option<Plan>>,
}

// SAFETY: handles, streams and descriptors are addresses that any thread may use, one at a time.
unsafe impl Send for Opened {}

impl Cudnn {
    /// Opens it for the context of this thread, if it is there.
    pub(super) fn open(stream: CUstream, free: usize) -> Done<Option<Self>> {
        if !CUDNN.find() {
            return Ok(None);
        }
        let version = result::get_version();
        // The numbers of its errors are those of version 9.
        if version / 10_000 != 9 {
            let cause = format!("it is version {version}, and has to be 9, which is 9xxxx");
            return Err(broken("open cuDNN", cause));
        }
        let what = |error: CudnnError| broken("open cuDNN", error.to_string());
        let handle = result::create_handle().map_err(what)?;
        // SAFETY: both are of this context.
        unsafe { result::set_stream(handle, stream.cast()) }.map_err(what)?;
        let (most, part) = WORKSPACE;
        let bytes = most.min(free / part) / ALIGNMENT * ALIGNMENT;
        // SAFETY: what is in it is not read before it is written.
        let address = unsafe { cudarc::driver::result::malloc_sync(bytes + trial::SPACE) }
            .map_err(|error| failed(format_args!("allocate {bytes} bytes for cuDNN"), error))?;
        Ok(Some(Self(Mutex::new(Opened {
            handle,
            stream,
            workspace: (address, bytes),
            is_right: None,
            plans: HashMap::new(),
        }))))
    }

    /// Whether it computes the shader with these numbers. The context is that of this thread.
    pub(super) fn takes(&self, convolution: Convolution, numbers: &[u32]) -> bool {
        let sizes = || Sizes::of(convolution, numbers.try_into().ok()?);
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.is_right()
            && sizes()
                .is_some_and(|sizes| opened.plan(convolution, sizes).is_ok_and(|of| of.is_some()))
    }

    /// Enqueues a convolution into the stream, if it has it. Returns whether it does.
    ///
    /// # Safety
    /// The context is that of this thread; the tensors are in memory of the card, which lives until they are computed.
    pub(super) unsafe fn enqueue(
        &self,
        convolution: Convolution,
        push: &[u8],
    ) -> Result<bool, String> {
        let Some((addresses, numbers)) = pushed(push) else { return Ok(false) };
        let Some(sizes) = Sizes::of(convolution, numbers) else { return Ok(false) };
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !opened.is_right() {
            return Ok(false);
        }
        let (handle, workspace) = (opened.handle, opened.workspace.0);
        let enqueued = match opened.plan(convolution, sizes) {
            Ok(None) => return Ok(false),
            // SAFETY: as the caller says; the plan needs no more than there is of the workspace.
            Ok(Some(plan)) => unsafe { plan.enqueue(handle, workspace, addresses) },
            Err(error) => Err(error),
        };
        let Err(error) = enqueued else { return Ok(true) };
        // It is not tried again.
        opened.plans.insert((convolution, sizes), None);
        if is_refusal(error) { Ok(false) } else { Err(error.to_string()) }
    }
}

/// Whether cuDNN has no such convolution, while the shader has.
fn is_refusal(error: CudnnError) -> bool {
    // The thousands are the kind: the parameters are wrong, or what they say is not supported.
    matches!(error.0 as u32 / 1000, 2 | 3)
}

impl Opened {
    /// Whether it computes what the shader does. The first call tries it, and waits for the card.
    fn is_right(&mut self) -> bool {
        if let Some(is_right) = self.is_right {
            return is_right;
        }
        let tried = trial::run(self);
        if let Err(why) = &tried {
            log::warn!(
                "RUST_GPU convolves without cuDNN: {why}; RUST_GPU_NVIDIA_LIBRARIES=0 leaves it out from the start"
            );
        }
        *self.is_right.insert(tried.is_ok())
    }

    /// What is ready for it, or `None` if cuDNN does not have it.
    fn plan(
        &mut self,
        convolution: Convolution,
        sizes: Sizes,
    ) -> Result<Option<&Plan>, CudnnError> {
        if self.plans.len() >= MOST_PLANS {
            self.plans.clear();
        }
        if !self.plans.contains_key(&(convolution, sizes)) {
            let plan = match Plan::new(self.handle, self.workspace.1, convolution, sizes) {
                Err(error) if is_refusal(error) => None,
                plan => plan?,
            };
            self.plans.insert((convolution, sizes), plan);
        }
        Ok(self.plans.get(&(convolution, sizes)).and_then(Option::as_ref))
    }
}
