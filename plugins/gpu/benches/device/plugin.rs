//! The plugin.

use crate::contestant::{Contestant, Launch};
use anyhow::{Context as _, Result, anyhow};
use gpu::bench::{self, Addresses, Program};
use gpu::{GpuDevice, GpuPlatform, GpuStream};
use se_plugin::kernel::DType;
use se_plugin::{Device as _, DevicePtr, HostBuf, Platform as _, Stream as _};
use std::time::{Duration, Instant};
use tf_plugin_testing::device::{Host, TestDevice, TestStream};

/// The plugin on a GPU, with the name that the driver has for it.
pub(crate) struct Plugin {
    pub(crate) gpu_name: String,
    device: GpuDevice,
    pub(crate) stream: GpuStream,
    memory: Vec<(DevicePtr, u64)>,
    programs: Vec<Program>,
}

/// Converts an error, with its code.
pub(crate) fn text(error: se_plugin::Error) -> anyhow::Error {
    anyhow!("{error}")
}

impl Plugin {
    /// Opens the GPU that the settings in the environment name.
    pub(crate) fn open() -> Result<Self> {
        let device = GpuPlatform::new().and_then(|platform| platform.open(0)).map_err(text)?;
        let stream = device.create_stream().map_err(text)?;
        let gpu_name = device.name().to_owned();
        Ok(Self { gpu_name, device, stream, memory: Vec::new(), programs: Vec::new() })
    }

    /// Prepares `MatMul` of square matrices, as the kernel does for this GPU.
    pub(crate) fn matmul(&mut self, dtype: DType, size: usize) -> Result<usize> {
        let program = bench::matmul(Some(&self.stream), dtype, [size; 3], Addresses::Aligned)
            .map_err(text)?;
        self.prepare(program)
    }

    fn tensor(&self, number: usize) -> Result<(DevicePtr, u64)> {
        self.memory.get(number).copied().context("no such tensor")
    }
}

impl Contestant for Plugin {
    fn allocate(&mut self, bytes: usize) -> Result<usize> {
        let bytes = bytes as u64;
        self.memory.push((self.device.allocate(bytes).map_err(text)?, bytes));
        Ok(self.memory.len() - 1)
    }

    fn write(&mut self, tensor: usize, bytes: &[u8]) -> Result<()> {
        self.device.copy_to_device(self.tensor(tensor)?.0, bytes).map_err(text)
    }

    fn read(&mut self, bytes: &mut [u8], tensor: usize) -> Result<()> {
        let source = self.tensor(tensor)?.0;
        self.device.copy_to_host(HostBuf::from_slice(bytes), source).map_err(text)
    }

    fn copy(&mut self, to: usize, from: usize, bytes: usize, times: usize) -> Result<()> {
        let (target, source) = (self.tensor(to)?.0, self.tensor(from)?.0);
        for _ in 0..times {
            self.stream.copy_on_device(target, source, bytes as u64).map_err(text)?;
        }
        self.stream.synchronize().map_err(text)
    }

    fn prepare(&mut self, program: Program) -> Result<usize> {
        self.programs.push(program);
        Ok(self.programs.len() - 1)
    }

    fn run(&mut self, launches: &[Launch]) -> Result<Duration> {
        let mut tensors = Vec::with_capacity(launches.len());
        for launch in launches {
            let program = self.programs.get(launch.program).context("no such program")?;
            let all: Vec<_> =
                launch.tensors.iter().map(|&tensor| self.tensor(tensor)).collect::<Result<_>>()?;
            tensors.push((program, all));
        }
        let start = Instant::now();
        for (program, tensors) in &tensors {
            program.enqueue(&self.stream, tensors).map_err(text)?;
        }
        let took = start.elapsed();
        self.stream.synchronize().map_err(text)?;
        Ok(took)
    }

    fn clear(&mut self) {
        for (ptr, _) in std::mem::take(&mut self.memory) {
            // Fails only for memory that is not of this device.
            let _ = self.device.deallocate(ptr);
        }
    }
}

/// The plugin, called for copies as TensorFlow does.
pub(crate) struct Hosted {
    device: &'static TestDevice<'static>,
    stream: TestStream<'static>,
}

impl Hosted {
    pub(crate) fn open() -> Result<Self> {
        // A GPU stays open until the process ends.
        let host: &'static Host = Box::leak(Box::new(Host::load::<GpuPlatform>().map_err(text)?));
        let device: &'static _ = Box::leak(Box::new(host.device(0).map_err(text)?));
        let (stream, created) = device.stream();
        created.map_err(text)?;
        Ok(Self { device, stream })
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Result<DevicePtr> {
        self.device.allocate(bytes as u64).context("no memory on the GPU")
    }

    pub(crate) fn deallocate(&self, memory: DevicePtr) {
        self.device.deallocate(memory);
    }

    pub(crate) fn write(&self, target: DevicePtr, bytes: &[u8]) -> Result<()> {
        self.stream.copy_to_device(target, bytes).map_err(text)?;
        self.stream.synchronize().map_err(text)
    }

    pub(crate) fn read(&self, bytes: &mut [u8], source: DevicePtr) -> Result<()> {
        self.stream.copy_to_host(bytes, source).map_err(text)?;
        self.stream.synchronize().map_err(text)
    }

    pub(crate) fn copy(&self, to: DevicePtr, from: DevicePtr, len: usize, n: usize) -> Result<()> {
        for _ in 0..n {
            self.stream.copy_on_device(to, from, len as u64).map_err(text)?;
        }
        self.stream.synchronize().map_err(text)
    }
}
