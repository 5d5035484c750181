//! A program that uses only `ash`, written just for these launches.

use crate::contestant::{Bare, Contestant, Launch, Way};
use anyhow::{Context as _, Result, bail};
use ash::vk;
use gpu::bench::Program;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The dispatches in a command buffer: the GPU begins with the first buffer while the others are recorded.
const DISPATCHES: usize = 256;
const PUSH_BYTES: u32 = 128;

/// A buffer with its own memory.
struct Memory {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    bytes: usize,
    /// The address for shaders.
    address: u64,
    /// Where the host maps it, or null.
    host: *mut u8,
}

/// A GPU, open until the process ends.
pub(crate) struct Vulkan {
    _entry: ash::Entry,
    _instance: ash::Instance,
    device: ash::Device,
    queue: vk::Queue,
    /// The types of the device's memory, and of memory that the host maps.
    types: [u32; 2],
    layout: vk::PipelineLayout,
    pool: vk::CommandPool,
    buffers: Vec<vk::CommandBuffer>,
    done: vk::Fence,
    programs: Vec<(vk::Pipeline, Program)>,
    compiled: HashMap<(&'static str, Vec<u32>), vk::Pipeline>,
    memory: Vec<Memory>,
    staging: Option<Memory>,
}

impl Vulkan {
    /// Opens the GPU with this name.
    pub(crate) fn open(name: &str) -> Result<Self> {
        // SAFETY: the system's Vulkan loader may be loaded by any process, and stays.
        let entry = unsafe { ash::Entry::load() }?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: `info` and what it points to outlive the call.
        let instance = unsafe { entry.create_instance(&info, None) }?;
        // SAFETY: the instance lives.
        let mut all = unsafe { instance.enumerate_physical_devices() }?.into_iter();
        let physical = all.find(|&physical| {
            // SAFETY: the GPU is of the instance.
            let properties = unsafe { instance.get_physical_device_properties(physical) };
            properties
                .device_name_as_c_str()
                .is_ok_and(|reported| reported.to_string_lossy() == name)
        });
        let physical = physical.with_context(|| format!("Vulkan has no GPU `{name}`"))?;
        // SAFETY: the GPU is of the instance.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let is_compute = |family: &vk::QueueFamilyProperties| {
            family.queue_flags.contains(vk::QueueFlags::COMPUTE)
        };
        let family = families.iter().position(is_compute).context("no queue for compute")? as u32;
        // SAFETY: the GPU is of the instance.
        let kinds = unsafe { instance.get_physical_device_memory_properties(physical) };
        let find = |flags| {
            let mut kinds = kinds.memory_types_as_slice().iter();
            kinds.position(|kind| kind.property_flags.contains(flags)).map(|index| index as u32)
        };
        let host = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let local = find(vk::MemoryPropertyFlags::DEVICE_LOCAL).context("no device memory")?;
        let mapped = find(host | vk::MemoryPropertyFlags::HOST_CACHED).or_else(|| find(host));
        let mapped = mapped.context("no memory that the host maps")?;
        let mut old =
            vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(true);
        let mut newer = vk::PhysicalDeviceVulkan12Features::default()
            .buffer_device_address(true)
            .timeline_semaphore(true)
            .scalar_block_layout(true)
            .storage_buffer8_bit_access(true);
        let features = vk::PhysicalDeviceFeatures::default().shader_int64(true);
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_features(&features)
            .push_next(&mut newer)
            .push_next(&mut old);
        // SAFETY: the GPU has the family, and the features: the plugin has opened it with them.
        let device = unsafe { instance.create_device(physical, &info, None) }?;
        // SAFETY: the device was created with one queue of the family.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let range = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(PUSH_BYTES)];
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&range);
        // SAFETY: the device lives, and `info` outlives the call.
        let layout = unsafe { device.create_pipeline_layout(&info, None) }?;
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the device has a queue of this family.
        let pool = unsafe { device.create_command_pool(&info, None) }?;
        // SAFETY: the device lives.
        let done = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }?;
        Ok(Self {
            _entry: entry,
            _instance: instance,
            device,
            queue,
            types: [local, mapped],
            layout,
            pool,
            buffers: Vec::new(),
            done,
            programs: Vec::new(),
            compiled: HashMap::new(),
            memory: Vec::new(),
            staging: None,
        })
    }

    fn memory(&self, bytes: usize, is_mapped: bool) -> Result<Memory> {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | match is_mapped {
                true => vk::BufferUsageFlags::empty(),
                false => vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS,
            };
        let info = vk::BufferCreateInfo::default().size(bytes as u64).usage(usage);
        let mut flags = vk::MemoryAllocateFlagsInfo::default();
        if !is_mapped {
            flags = flags.flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        }
        // SAFETY: the device lives; buffer and memory are new, of one size, and made for addresses if one is requested; the
        // type of the mapped memory is one that the host can map.
        unsafe {
            let buffer = self.device.create_buffer(&info, None)?;
            let needs = self.device.get_buffer_memory_requirements(buffer);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(self.types[usize::from(is_mapped)])
                .push_next(&mut flags);
            let memory = self.device.allocate_memory(&info, None)?;
            self.device.bind_buffer_memory(buffer, memory, 0)?;
            let (mut address, mut host) = (0, std::ptr::null_mut());
            if is_mapped {
                let none = vk::MemoryMapFlags::empty();
                host = self.device.map_memory(memory, 0, vk::WHOLE_SIZE, none)?.cast::<u8>();
            } else {
                let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
                address = self.device.get_buffer_device_address(&info);
            }
            Ok(Memory { buffer, memory, bytes, address, host })
        }
    }

    fn free(&self, memory: &Memory) {
        // SAFETY: each function waits for the GPU, so it is not at the memory, and nobody has it any more.
        unsafe {
            self.device.destroy_buffer(memory.buffer, None);
            self.device.free_memory(memory.memory, None);
        }
    }

    /// Returns at least `bytes` of memory that the host maps.
    fn stage(&mut self, bytes: usize) -> Result<(vk::Buffer, *mut u8)> {
        if self.staging.as_ref().is_none_or(|staging| staging.bytes < bytes) {
            if let Some(old) = self.staging.take() {
                self.free(&old);
            }
            self.staging = Some(self.memory(bytes, true)?);
        }
        let staging = self.staging.as_ref().context("no staging memory")?;
        Ok((staging.buffer, staging.host))
    }

    fn tensor(&self, number: usize, bytes: usize) -> Result<&Memory> {
        let memory = self.memory.get(number).context("no such tensor")?;
        if bytes > memory.bytes {
            bail!("{bytes} bytes of a tensor of {}", memory.bytes);
        }
        Ok(memory)
    }

    /// Begins the command buffer with this number, and returns it.
    fn begin(&mut self, number: usize) -> Result<vk::CommandBuffer> {
        if number == self.buffers.len() {
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(self.pool)
                .command_buffer_count(1);
            // SAFETY: the pool is this device's.
            self.buffers.extend(unsafe { self.device.allocate_command_buffers(&info) }?);
        }
        let info = vk::CommandBufferBeginInfo::default()
            .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the buffer is new, or was reset by `wait`.
        unsafe { self.device.begin_command_buffer(self.buffers[number], &info) }?;
        Ok(self.buffers[number])
    }

    /// Submits a command buffer; the last one with the fence.
    fn send(&self, buffer: vk::CommandBuffer, is_last: bool) -> Result<()> {
        let buffers = [buffer];
        let submit = [vk::SubmitInfo::default().command_buffers(&buffers)];
        let fence = if is_last { self.done } else { vk::Fence::null() };
        // SAFETY: the buffer is open, this thread alone has the queue, and `wait` has reset the fence.
        unsafe {
            self.device.end_command_buffer(buffer)?;
            self.device.queue_submit(self.queue, &submit, fence)?;
        }
        Ok(())
    }

    /// Waits for all submissions.
    fn wait(&self) -> Result<()> {
        // SAFETY: the fence was given to the last submission; then the GPU is done with all buffers of the pool.
        unsafe {
            self.device.wait_for_fences(&[self.done], true, u64::MAX)?;
            self.device.reset_fences(&[self.done])?;
            self.device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())?;
        }
        Ok(())
    }

    /// Makes writes visible to later commands, and to the host.
    ///
    /// # Safety
    /// The buffer is open.
    unsafe fn barrier(&self, buffer: vk::CommandBuffer, stages: vk::PipelineStageFlags) {
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)];
        let later = stages | vk::PipelineStageFlags::HOST;
        let none = vk::DependencyFlags::empty();
        // SAFETY: the buffer is open, and a memory barrier names no object.
        unsafe {
            self.device.cmd_pipeline_barrier(buffer, stages, later, none, &barrier, &[], &[]);
        }
    }

    fn compile(&self, program: &Program) -> Result<vk::Pipeline> {
        let words = program.spirv().chunks_exact(4);
        let words: Vec<u32> =
            words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
        let entry =
            |id: u32| vk::SpecializationMapEntry { constant_id: id, offset: 4 * id, size: 4 };
        let entries: Vec<_> = (0..program.constants.len() as u32).map(entry).collect();
        let data: Vec<u8> =
            program.constants.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: `words` is what glslang made of a shader of the plugin; module and layout are the device's; what the
        // structs point to outlives the calls.
        let pipeline = unsafe {
            let module = self.device.create_shader_module(&info, None)?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main")
                .specialization_info(&special);
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
            let pipelines =
                self.device.create_compute_pipelines(vk::PipelineCache::null(), &info, None);
            self.device.destroy_shader_module(module, None);
            pipelines.map_err(|(_, error)| error)?[0]
        };
        Ok(pipeline)
    }

    fn copy_buffers(
        &mut self,
        [to, from]: [vk::Buffer; 2],
        bytes: usize,
        times: usize,
    ) -> Result<()> {
        let buffer = self.begin(0)?;
        let region = [vk::BufferCopy::default().size(bytes as u64)];
        for _ in 0..times {
            // SAFETY: the command buffer is open; both buffers are so large, live until `wait`, and are not the same.
            unsafe {
                self.device.cmd_copy_buffer(buffer, from, to, &region);
                self.barrier(buffer, vk::PipelineStageFlags::TRANSFER);
            }
        }
        self.send(buffer, true)?;
        self.wait()
    }
}

impl Contestant for Vulkan {
    fn allocate(&mut self, bytes: usize) -> Result<usize> {
        let memory = self.memory(bytes, false)?;
        self.memory.push(memory);
        Ok(self.memory.len() - 1)
    }

    fn write(&mut self, tensor: usize, bytes: &[u8]) -> Result<()> {
        self.tensor(tensor, bytes.len())?;
        let (_, host) = self.stage(bytes.len())?;
        // SAFETY: so many bytes are mapped there, and the GPU is not at them.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), host, bytes.len()) };
        self.transfer(tensor, bytes.len(), Way::ToDevice)
    }

    fn read(&mut self, bytes: &mut [u8], tensor: usize) -> Result<()> {
        self.transfer(tensor, bytes.len(), Way::ToHost)?;
        let (_, host) = self.stage(bytes.len())?;
        // SAFETY: so many bytes are mapped there, and the GPU has written them.
        unsafe { std::ptr::copy_nonoverlapping(host, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn copy(&mut self, to: usize, from: usize, bytes: usize, times: usize) -> Result<()> {
        if to == from {
            bail!("a copy of a tensor onto itself");
        }
        let buffers = [self.tensor(to, bytes)?.buffer, self.tensor(from, bytes)?.buffer];
        self.copy_buffers(buffers, bytes, times)
    }

    fn prepare(&mut self, program: Program) -> Result<usize> {
        let key = (program.name(), program.constants.clone());
        let pipeline = match self.compiled.get(&key) {
            Some(pipeline) => *pipeline,
            None => self.compile(&program)?,
        };
        self.compiled.insert(key, pipeline);
        self.programs.push((pipeline, program));
        Ok(self.programs.len() - 1)
    }

    fn run(&mut self, launches: &[Launch]) -> Result<Duration> {
        let mut pushes = Vec::with_capacity(launches.len());
        for Launch { program, tensors } in launches {
            let (pipeline, program) = self.programs.get(*program).context("no such program")?;
            let mut push = Vec::new();
            for tensor in tensors {
                push.extend_from_slice(&self.tensor(*tensor, 0)?.address.to_ne_bytes());
            }
            push.extend(program.numbers.iter().flat_map(|number| number.to_ne_bytes()));
            if push.len() > PUSH_BYTES as usize {
                bail!("too much to push");
            }
            pushes.push((*pipeline, push, program.groups));
        }
        let start = Instant::now();
        let count = pushes.len().div_ceil(DISPATCHES);
        for (number, part) in pushes.chunks(DISPATCHES).enumerate() {
            let buffer = self.begin(number)?;
            let mut bound = vk::Pipeline::null();
            for (pipeline, push, [x, y, z]) in part {
                let compute = vk::PipelineBindPoint::COMPUTE;
                // SAFETY: the buffer is open; the pipeline lives; `push` is within the range of its layout, and has the
                // addresses of tensors of the sizes in it, which live until `wait`.
                unsafe {
                    if bound != *pipeline {
                        self.device.cmd_bind_pipeline(buffer, compute, *pipeline);
                    }
                    let stage = vk::ShaderStageFlags::COMPUTE;
                    self.device.cmd_push_constants(buffer, self.layout, stage, 0, push);
                    self.device.cmd_dispatch(buffer, *x, *y, *z);
                    self.barrier(buffer, vk::PipelineStageFlags::COMPUTE_SHADER);
                }
                bound = *pipeline;
            }
            self.send(buffer, number + 1 == count)?;
        }
        let took = start.elapsed();
        if count > 0 {
            self.wait()?;
        }
        Ok(took)
    }

    fn clear(&mut self) {
        for memory in std::mem::take(&mut self.memory) {
            self.free(&memory);
        }
    }
}

impl Bare for Vulkan {
    fn copies(&self) -> [&'static str; 3] {
        ["memcpy, vkCmdCopyBuffer", "vkCmdCopyBuffer, memcpy", "vkCmdCopyBuffer"]
    }

    fn transfer(&mut self, tensor: usize, bytes: usize, way: Way) -> Result<()> {
        let (staging, _) = self.stage(bytes)?;
        let tensor = self.tensor(tensor, bytes)?.buffer;
        let buffers = match way {
            Way::ToDevice => [tensor, staging],
            Way::ToHost => [staging, tensor],
        };
        self.copy_buffers(buffers, bytes, 1)
    }
}
