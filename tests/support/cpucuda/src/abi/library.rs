//! Loads compiled programs, and runs their kernels.

use super::memory::Stacks;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

/// A loaded program. It is never unloaded, since its kernels may be queued.
pub(crate) struct Module(std::mem::ManuallyDrop<Library>);

/// A function that writes the sizes of the parameters, unless it gets null, and returns their number.
type Sizes = unsafe extern "C" fn(*mut usize) -> usize;
/// A function that runs the grid, and returns null, or the reason if it fails.
type Run = unsafe extern "C" fn(*mut Launch) -> *const c_char;

/// The arguments of a [`Run`], as in `cpu.h`.
#[repr(C)]
struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    arguments: *mut *mut c_void,
    stacks: *mut Stacks,
}

/// A kernel.
#[derive(Clone)]
pub(crate) struct Function {
    name: String,
    /// The sizes of its parameters.
    sizes: Vec<usize>,
    run: Run,
}

thread_local! {
    /// The stacks of the kernels in this thread, which belongs to a stream.
    static STACKS: RefCell<Option<Stacks>> = const { RefCell::new(None) };
}

impl Module {
    /// Loads a library that was compiled for NVRTC.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        if !path.is_absolute() {
            return None;
        }
        // SAFETY: `program.rs` compiled the library; it has no initializers but those of the test's program.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        Some(Self(std::mem::ManuallyDrop::new(library.ok()?)))
    }

    /// Looks up an `extern "C"` kernel.
    pub(crate) fn function(&self, name: &str) -> Option<Function> {
        // SAFETY: nothing is called through this type. A kernel with a C++ name has no such symbol.
        unsafe { self.0.get::<*const c_void>(format!("{name}\0").as_bytes()) }.ok()?;
        // SAFETY: `program.rs` defines these functions with these types; the library stays loaded.
        let (sizes_of, run) = unsafe {
            let sizes = self.0.get::<Sizes>(format!("cpu_cuda_sizes_{name}\0").as_bytes()).ok()?;
            let run = self.0.get::<Run>(format!("cpu_cuda_run_{name}\0").as_bytes()).ok()?;
            (*sizes, *run)
        };
        // SAFETY: null is allowed.
        let mut sizes = vec![0; unsafe { sizes_of(std::ptr::null_mut()) }];
        // SAFETY: there is space for all of them.
        unsafe { sizes_of(sizes.as_mut_ptr()) };
        Some(Function { name: name.to_owned(), sizes, run })
    }
}

impl Function {
    /// Copies the arguments, each into its own words: types with an alignment above 16 are not supported.
    ///
    /// # Safety
    /// There is a pointer for each parameter, to a value of its type.
    pub(super) unsafe fn copy_arguments(&self, arguments: *const *const u8) -> Vec<Vec<u128>> {
        let copy = |(index, &size): (usize, &usize)| {
            let mut copy = vec![0_u128; size.div_ceil(16)];
            // SAFETY: the pointer of this parameter leads to `size` bytes, and the copy has space for them.
            unsafe {
                let from = *arguments.add(index);
                from.copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size);
            }
            copy
        };
        self.sizes.iter().enumerate().map(copy).collect()
    }

    pub(super) fn has_arguments(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Runs all blocks of the grid in this thread.
    ///
    /// # Safety
    /// The kernel may use the memory to which its arguments point, with this grid.
    pub(super) unsafe fn run(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &mut [Vec<u128>],
    ) -> Result<(), String> {
        let mut arguments: Vec<*mut c_void> =
            arguments.iter_mut().map(|argument| argument.as_mut_ptr().cast()).collect();
        STACKS.with_borrow_mut(|stacks| {
            if stacks.is_none() {
                *stacks = Stacks::new();
            }
            let stacks = stacks.as_mut().ok_or("no memory for the stacks of a block")?;
            let mut launch = Launch { grid, block, arguments: arguments.as_mut_ptr(), stacks };
            // SAFETY: what `launch` points to lives until the call returns; the kernel may use its memory.
            let why = unsafe { (self.run)(&mut launch) };
            if why.is_null() {
                return Ok(());
            }
            // SAFETY: `cpu.h` returns a literal.
            let why = unsafe { CStr::from_ptr(why) };
            Err(format!("{} in the kernel {}", why.to_string_lossy(), self.name))
        })
    }
}
