//! Memory that TensorFlow takes over without copying it.

use core::ffi::c_void;
use core::mem::{self, ManuallyDrop};
use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc, dealloc};
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{TF_Tensor, TF_UINT8, TensorFunctions};

/// The alignment in bytes. `TF_NewTensor` copies memory with a lower one; no build of TensorFlow wants a higher one
/// (`EIGEN_MAX_ALIGN_BYTES`).
pub(super) const ALIGNMENT: usize = 64;

/// The size in bytes from which memory is from TensorFlow's allocator. It keeps large blocks, where the C library maps new
/// pages each time: an output of 64 MiB then takes 2.7 times as long (32 ms, 12 ms, in 2.12.1 and 2.21.0).
const FROM_HOST: usize = 256 * 1024;

/// Aligned memory, uninitialised at first.
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    /// The tensor that owns the memory, if it is TensorFlow's.
    tensor: Option<NonNull<TF_Tensor>>,
}

// SAFETY: the value alone owns its memory, and the host lets any thread delete a tensor.
unsafe impl Send for Memory {}
// SAFETY: a shared reference only reads the fields.
unsafe impl Sync for Memory {}

/// Stands before memory that is not TensorFlow's: the block that it is in. So a small output takes one allocation, and one
/// with the usual alignment, which the C library serves faster.
#[repr(C, align(16))]
struct Header {
    block: NonNull<u8>,
    size: usize,
}

const _: () = assert!(size_of::<Header>() == 16 && ALIGNMENT.is_multiple_of(size_of::<Header>()));

impl Header {
    /// The memory of the block of this size.
    const fn layout(size: usize) -> Option<Layout> {
        match Layout::from_size_align(size, align_of::<Self>()) {
            Ok(layout) => Some(layout),
            Err(_) => None,
        }
    }

    /// Frees the block around memory.
    ///
    /// # Safety
    /// `start` is the start of memory that [`Memory::new`] has allocated itself, which is freed once.
    unsafe fn free(start: NonNull<u8>) {
        // SAFETY: `Memory::new` has written a header before `start`, and allocated its block with this layout.
        unsafe {
            let Self { block, size } = start.sub(size_of::<Self>()).cast::<Self>().read();
            if let Some(layout) = Self::layout(size) {
                dealloc(block.as_ptr(), layout);
            }
        }
    }
}

impl Memory {
    /// Returns no memory at all.
    pub(super) const fn none() -> Self {
        let start = NonNull::new(ptr::without_provenance_mut(ALIGNMENT)).unwrap();
        Self { start, bytes: 0, tensor: None }
    }

    /// Allocates at least one byte. Returns `None` if there is no memory.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        if bytes >= FROM_HOST
            && let Some(memory) = Self::of_host(bytes)
        {
            return Some(memory);
        }
        let size = bytes.checked_add(ALIGNMENT).filter(|_| bytes > 0)?;
        let layout = Header::layout(size)?;
        // SAFETY: the layout has more than `ALIGNMENT` bytes. The block is aligned for a header, so that at least one fits
        // before the next multiple of `ALIGNMENT`, and `bytes` after that.
        unsafe {
            let block = NonNull::new(alloc(layout))?;
            let start = block.add(ALIGNMENT - block.addr().get() % ALIGNMENT);
            start.sub(size_of::<Header>()).cast::<Header>().write(Header { block, size });
            Some(Self { start, bytes, tensor: None })
        }
    }

    /// Allocates memory of TensorFlow's, if it is in the process.
    fn of_host(bytes: usize) -> Option<Self> {
        let host = TensorFunctions::get().ok()?;
        let len = i64::try_from(bytes).ok()?;
        // SAFETY: one dimension, with as many bytes as are said. The tensor is then ours, and deleted once.
        unsafe {
            let tensor =
                NonNull::new((host.TF_AllocateTensor)(TF_UINT8, &raw const len, 1, bytes))?;
            let start = NonNull::new((host.TF_TensorData)(tensor.as_ptr()).cast::<u8>());
            match start {
                Some(start) if start.addr().get().is_multiple_of(ALIGNMENT) => {
                    Some(Self { start, bytes, tensor: Some(tensor) })
                }
                _ => {
                    (host.TF_DeleteTensor)(tensor.as_ptr());
                    None
                }
            }
        }
    }

    /// Returns the first byte; aligned also if there is no memory.
    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the size.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the memory away: the first `bytes` of it are initialised.
    pub(super) fn into_released(self, bytes: usize) -> Released {
        let memory = ManuallyDrop::new(self);
        let argument = match memory.tensor {
            Some(tensor) => tensor.as_ptr().cast(),
            None if memory.bytes > 0 => ptr::null_mut(),
            None => NOTHING,
        };
        Released { start: memory.start.as_ptr().cast(), bytes, release, argument }
    }
}

/// Memory for `TF_NewTensor`, which takes it over: initialised bytes, and the function that frees them, with its argument.
pub(super) struct Released {
    pub(super) start: *mut c_void,
    pub(super) bytes: usize,
    pub(super) release: unsafe extern "C" fn(*mut c_void, usize, *mut c_void),
    pub(super) argument: *mut c_void,
}

/// The argument of [`release`] for no memory.
const NOTHING: *mut c_void = ptr::without_provenance_mut(1);

/// Frees memory that was given away: a `TF_TensorDeallocator`. `argument` is the tensor that owns it, null for a block, or
/// [`NOTHING`].
pub(super) unsafe extern "C" fn release(start: *mut c_void, _: usize, argument: *mut c_void) {
    match (NonNull::new(start.cast()), NonNull::new(argument)) {
        (_, Some(nothing)) if nothing.as_ptr() == NOTHING => {}
        (_, Some(tensor)) => {
            if let Ok(host) = TensorFunctions::get() {
                // SAFETY: `Memory` owned the tensor, and this is called once.
                unsafe { (host.TF_DeleteTensor)(tensor.as_ptr().cast()) }
            }
        }
        // SAFETY: `start` is that of a block, and this is called once.
        (Some(start), None) => unsafe { Header::free(start) },
        (None, None) => {}
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let memory = mem::replace(self, Self::none());
            let Released { start, bytes, release, argument } = memory.into_released(0);
            // SAFETY: memory of this value's, which is freed once.
            unsafe { release(start, bytes, argument) }
        }
    }
}
