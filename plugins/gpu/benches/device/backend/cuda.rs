//! A program that uses only CUDA's driver, written just for these launches.

use crate::contestant::{Bare, Contestant, Launch, Way};
use anyhow::{Context as _, Result, anyhow, bail};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use gpu::bench::{Program, THREADS, ptx};
use std::collections::HashMap;
use std::ffi::CString;
use std::time::{Duration, Instant};

/// The argument of a kernel: the data that is pushed to the shader.
#[derive(Clone)]
#[repr(align(8))]
struct Push([u8; 128]);

/// Pinned memory of the host.
struct Pinned {
    host: *mut u8,
    bytes: usize,
}

/// A GPU, open until the process ends.
pub(crate) struct Cuda {
    pub(super) stream: sys::CUstream,
    context: sys::CUcontext,
    capability: (i32, i32),
    /// The addresses and sizes of the tensors.
    memory: Vec<(sys::CUdeviceptr, usize)>,
    pinned: Option<Pinned>,
    programs: Vec<(sys::CUfunction, Program)>,
    compiled: HashMap<(&'static str, Vec<u32>), sys::CUfunction>,
}

impl Cuda {
    /// Opens the GPU with this name.
    pub(crate) fn open(name: &str) -> Result<Self> {
        // SAFETY: the driver's library may be loaded by any process.
        if !unsafe { sys::is_culib_present() } {
            bail!("cannot load `libcuda.so.1`; install the driver of the GPU");
        }
        result::init()?;
        for ordinal in 0..result::device::get_count()? {
            let device = result::device::get(ordinal)?;
            if result::device::get_name(device)? != name {
                continue;
            }
            let attribute = |attribute| {
                // SAFETY: the device is one of the driver.
                unsafe { result::device::get_attribute(device, attribute) }
            };
            let capability = (
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            );
            // SAFETY: the device is one of the driver; its context is retained for good.
            let context = unsafe {
                let context = result::primary_ctx::retain(device)?;
                result::ctx::set_current(context)?;
                context
            };
            let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
            return Ok(Self {
                stream,
                context,
                capability,
                memory: Vec::new(),
                pinned: None,
                programs: Vec::new(),
                compiled: HashMap::new(),
            });
        }
        bail!("CUDA has no GPU `{name}`")
    }

    /// Makes the context current in this thread. The plugin uses the same one, but others may have replaced it.
    fn enter(&self) -> Result<()> {
        // SAFETY: the context was retained for good.
        Ok(unsafe { result::ctx::set_current(self.context) }?)
    }

    pub(super) fn tensor(&self, number: usize, bytes: usize) -> Result<sys::CUdeviceptr> {
        let (address, size) = self.memory.get(number).context("no such tensor")?;
        if bytes > *size {
            bail!("{bytes} bytes of a tensor of {size}");
        }
        Ok(*address)
    }

    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the stream lives.
        Ok(unsafe { result::stream::synchronize(self.stream) }?)
    }

    fn compile(&self, program: &Program) -> Result<sys::CUfunction> {
        let image = ptx(program, self.capability).map_err(|error| anyhow!("{error}"))?;
        // SAFETY: the image is PTX with a zero at its end, as NVRTC makes it; the module stays.
        let function = unsafe {
            let module = result::module::load_data(image.as_ptr().cast())?;
            result::module::get_function(module, CString::new("run")?)?
        };
        Ok(function)
    }

    /// Returns at least `bytes` of pinned memory.
    fn pin(&mut self, bytes: usize) -> Result<*mut u8> {
        if let Some(Pinned { host, .. }) = self.pinned.take_if(|pinned| pinned.bytes < bytes) {
            // SAFETY: it was allocated below, and each function waits for the GPU.
            unsafe { result::free_host(host.cast()) }?;
        }
        if let Some(pinned) = &self.pinned {
            return Ok(pinned.host);
        }
        // SAFETY: nothing is read from it before it is written.
        let host = unsafe { result::malloc_host(bytes, 0) }?.cast::<u8>();
        // SAFETY: so many bytes are there.
        unsafe { host.write_bytes(1, bytes) };
        self.pinned = Some(Pinned { host, bytes });
        Ok(host)
    }
}

impl Contestant for Cuda {
    fn allocate(&mut self, bytes: usize) -> Result<usize> {
        self.enter()?;
        // SAFETY: tensors are written before they are read.
        let address = unsafe { result::malloc_sync(bytes) }?;
        self.memory.push((address, bytes));
        Ok(self.memory.len() - 1)
    }

    fn write(&mut self, tensor: usize, bytes: &[u8]) -> Result<()> {
        self.enter()?;
        let target = self.tensor(tensor, bytes.len())?;
        // SAFETY: the tensor has so many bytes.
        unsafe { result::memcpy_htod_sync(target, bytes) }?;
        // The copy from memory that is not pinned may still be running.
        Ok(result::ctx::synchronize()?)
    }

    fn read(&mut self, bytes: &mut [u8], tensor: usize) -> Result<()> {
        self.enter()?;
        let source = self.tensor(tensor, bytes.len())?;
        // SAFETY: the tensor has so many bytes.
        Ok(unsafe { result::memcpy_dtoh_sync(bytes, source) }?)
    }

    fn copy(&mut self, to: usize, from: usize, bytes: usize, times: usize) -> Result<()> {
        self.enter()?;
        let (target, source) = (self.tensor(to, bytes)?, self.tensor(from, bytes)?);
        for _ in 0..times {
            // SAFETY: both tensors have so many bytes, and live until `wait`.
            unsafe { result::memcpy_dtod_async(target, source, bytes, self.stream) }?;
        }
        self.wait()
    }

    fn prepare(&mut self, program: Program) -> Result<usize> {
        self.enter()?;
        let key = (program.name(), program.constants.clone());
        let function = match self.compiled.get(&key) {
            Some(function) => *function,
            None => self.compile(&program)?,
        };
        self.compiled.insert(key, function);
        self.programs.push((function, program));
        Ok(self.programs.len() - 1)
    }

    fn run(&mut self, launches: &[Launch]) -> Result<Duration> {
        self.enter()?;
        let mut pushes = Vec::with_capacity(launches.len());
        for Launch { program, tensors } in launches {
            let (function, program) = self.programs.get(*program).context("no such program")?;
            let mut push = Vec::new();
            for tensor in tensors {
                push.extend_from_slice(&self.tensor(*tensor, 0)?.to_ne_bytes());
            }
            push.extend(program.numbers.iter().flat_map(|number| number.to_ne_bytes()));
            let mut argument = Push([0; 128]);
            let room = argument.0.get_mut(..push.len()).context("too much to push")?;
            room.copy_from_slice(&push);
            pushes.push((*function, argument, program.groups));
        }
        let start = Instant::now();
        for (function, argument, [x, y, z]) in &mut pushes {
            let mut arguments = [(&raw mut *argument).cast()];
            let (grid, block) = ((*x, *y, *z), (THREADS, 1, 1));
            // SAFETY: the function stays; its only argument is at most so large, and has the addresses of tensors of the
            // sizes in it, which live until `wait`.
            unsafe {
                result::launch_kernel(*function, grid, block, 0, self.stream, &mut arguments)
            }?;
        }
        let took = start.elapsed();
        self.wait()?;
        Ok(took)
    }

    fn clear(&mut self) {
        for (address, _) in std::mem::take(&mut self.memory) {
            // SAFETY: `allocate` made it, and each function waits for the GPU. There is nothing to do about an error.
            let _ = unsafe { result::free_sync(address) };
        }
    }
}

impl Bare for Cuda {
    fn copies(&self) -> [&'static str; 3] {
        ["cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoDAsync"]
    }

    fn transfer(&mut self, tensor: usize, bytes: usize, way: Way) -> Result<()> {
        self.enter()?;
        let address = self.tensor(tensor, bytes)?;
        let host = self.pin(bytes)?;
        // SAFETY: so many pinned bytes are there, which have values; nothing else reaches them until `wait`.
        let host = unsafe { std::slice::from_raw_parts_mut(host, bytes) };
        // SAFETY: tensor and memory have so many bytes, and live until `wait`.
        unsafe {
            match way {
                Way::ToDevice => result::memcpy_htod_async(address, host, self.stream),
                Way::ToHost => result::memcpy_dtoh_async(host, address, self.stream),
            }
        }?;
        self.wait()
    }
}
