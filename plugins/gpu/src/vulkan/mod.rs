//! Vulkan 1.3, with buffer device addresses.

mod commands;
mod cooperative;
mod loader;
mod memory;
mod pipeline;

use ash::vk;
use commands::Commands;
use memory::Memory;
use se_plugin::{Code, Error, Result};
use se_plugin_gpu::backend::{
    Allocation, Backend, BackendError, BackendResult, CooperativeMatrix, Found, MemoryKind, Opened,
    Shader, Span,
};
use se_plugin_gpu::settings::Settings;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Vulkan, and this process's instance of it.
struct Instance {
    vulkan: ash::Instance,
    /// Last, since it has the functions above.
    library: ash::Entry,
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: no device of the instance is left: one that is opened keeps the instance for good.
        unsafe { self.vulkan.destroy_instance(None) };
    }
}

/// A GPU that can be opened, and its queue family for compute.
pub(crate) struct PhysicalDevice {
    instance: Arc<Instance>,
    physical: vk::PhysicalDevice,
    family: u32,
}

/// An open GPU.
pub(crate) struct Vulkan {
    raw: ash::Device,
    layout: vk::PipelineLayout,
    /// Vulkan requires that only one thread uses it at a time.
    queue: Mutex<vk::Queue>,
    family: u32,
    /// The type of the device's memory.
    local: u32,
    /// The type of memory that the host maps.
    mapped: u32,
    /// Whether shaders have 64-bit floats.
    float64: bool,
    /// The nanoseconds of a tick of the GPU's clock; 0 if it has none.
    tick: f64,
    /// Last, since it has the functions above. Never dropped: a GPU stays open until the process
    /// ends, as TensorFlow's devices do, and a driver cannot be closed while the process ends.
    _instance: ManuallyDrop<Arc<Instance>>,
}

/// Describes an error of Vulkan while doing `what`.
#[cold]
fn failed(what: impl std::fmt::Display, result: vk::Result) -> BackendError {
    let (code, help) = match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            (Code::ResourceExhausted, "use less memory, such as a smaller batch")
        }
        // Not `UNAVAILABLE`, after which TensorFlow's monitored sessions would retry in this process forever.
        vk::Result::ERROR_DEVICE_LOST => {
            (Code::Internal, "the GPU or its driver is gone; restart the process")
        }
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            (Code::FailedPrecondition, "install the Vulkan driver of the GPU")
        }
        _ => (Code::Internal, "run with VK_LAYER_KHRONOS_validation to see why"),
    };
    let is_lost = result == vk::Result::ERROR_DEVICE_LOST;
    BackendError {
        code,
        what: format!("vulkan cannot {what}"),
        cause: result.to_string(),
        help,
        is_lost,
    }
}

/// Returns a function that describes a driver's error before a GPU is open.
fn refused(what: &str) -> impl FnOnce(vk::Result) -> Error {
    move |result| failed(what, result).error(None)
}

/// Returns the queue family of a GPU, or why the GPU cannot be used.
fn suitable(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<u32, &'static str> {
    // SAFETY: `physical` is of `instance`, which lives.
    let properties = unsafe { instance.get_physical_device_properties(physical) };
    if properties.api_version < vk::API_VERSION_1_3 {
        return Err("its driver is older than Vulkan 1.3");
    }
    let mut old = vk::PhysicalDeviceVulkan11Features::default();
    let mut newer = vk::PhysicalDeviceVulkan12Features::default();
    let mut features =
        vk::PhysicalDeviceFeatures2::default().push_next(&mut newer).push_next(&mut old);
    // SAFETY: `physical` is of `instance`; the chain holds structs of Vulkan 1.1 and 1.2, which the GPU knows.
    unsafe { instance.get_physical_device_features2(physical, &mut features) };
    let int64 = features.features.shader_int64;
    for (feature, missing) in [
        (newer.buffer_device_address, "its driver has no buffer device addresses"),
        (newer.timeline_semaphore, "its driver has no timeline semaphores"),
        (newer.scalar_block_layout, "its driver has no scalar block layout"),
        (newer.storage_buffer8_bit_access, "its shaders cannot access bytes"),
        (old.storage_buffer16_bit_access, "its shaders cannot access 16-bit numbers"),
        (int64, "its shaders have no 64-bit integers"),
    ] {
        if feature == 0 {
            return Err(missing);
        }
    }
    // SAFETY: `physical` is of `instance`, which lives.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let compute = families.iter().position(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE));
    compute.and_then(|index| u32::try_from(index).ok()).ok_or("it has no queue for compute")
}

/// Lists the GPUs.
///
/// # Errors
/// `FAILED_PRECONDITION` without the loader; `NOT_FOUND` without a GPU.
fn list() -> Result<Vec<Found<PhysicalDevice>>> {
    loader::load();
    // SAFETY: the system's Vulkan loader may be loaded by any process; it is not unloaded before its
    // last user, since `Instance` keeps it.
    let library = unsafe { ash::Entry::load() }.map_err(|error| {
        Error::failed_precondition(format!(
            "cannot load the Vulkan loader: {error}; install `libvulkan1` or the GPU's driver"
        ))
    })?;
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    // SAFETY: `info` and what it points to outlive the call.
    let vulkan =
        unsafe { library.create_instance(&info, None) }.map_err(refused("create an instance"))?;
    let instance = Arc::new(Instance { vulkan, library });
    // SAFETY: `instance` lives.
    let all = unsafe { instance.vulkan.enumerate_physical_devices() }
        .map_err(refused("list the GPUs"))?;
    if all.is_empty() {
        return Err(Error::not_found(
            "Vulkan finds no GPU; install the Vulkan driver of the GPU, and see whether `vulkaninfo` lists it",
        ));
    }
    let found =
        all.into_iter().map(|physical| {
            // SAFETY: `physical` is of `instance`, which lives.
            let properties = unsafe { instance.vulkan.get_physical_device_properties(physical) };
            let name = properties.device_name_as_c_str().unwrap_or_default().to_string_lossy();
            let physical_device = suitable(&instance.vulkan, physical)
                .map(|family| PhysicalDevice { instance: Arc::clone(&instance), physical, family });
            Found {
                name: name.into_owned(),
                is_software: properties.device_type == vk::PhysicalDeviceType::CPU,
                physical_device: physical_device.map_err(str::to_owned),
            }
        });
    Ok(found.collect())
}

/// Opens a suitable GPU, with one queue of the family, with cooperative matrices if they were found, and with 64-bit floats if its
/// shaders have them.
fn open_device(
    vulkan: &ash::Instance,
    physical: vk::PhysicalDevice,
    family: u32,
    is_cooperative: bool,
    float64: bool,
) -> Result<ash::Device, vk::Result> {
    let mut matrices =
        vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let mut old = vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(true);
    let mut newer = vk::PhysicalDeviceVulkan12Features::default()
        .buffer_device_address(true)
        .timeline_semaphore(true)
        .scalar_block_layout(true)
        .storage_buffer8_bit_access(true)
        .shader_float16(is_cooperative)
        .vulkan_memory_model(is_cooperative);
    let mut newest = vk::PhysicalDeviceVulkan13Features::default()
        .subgroup_size_control(is_cooperative)
        .compute_full_subgroups(is_cooperative);
    let features = vk::PhysicalDeviceFeatures::default().shader_int64(true).shader_float64(float64);
    let queues =
        [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
    let extensions = [cooperative::EXTENSION.as_ptr()];
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_features(&features)
        .push_next(&mut newer)
        .push_next(&mut newest)
        .push_next(&mut old);
    if is_cooperative {
        info = info.enabled_extension_names(&extensions).push_next(&mut matrices);
    }
    // SAFETY: `physical` is of `vulkan`, has the queue family and all features (`suitable`, `cooperative::find`).
    unsafe { vulkan.create_device(physical, &info, None) }
}

/// Returns the driver and its features, as in `Vulkan (llvmpipe Mesa 22.3.6 (LLVM 15.0.6), no cooperative matrices)`.
fn driver_info(
    vulkan: &ash::Instance,
    physical: vk::PhysicalDevice,
    cooperative: Option<&CooperativeMatrix>,
) -> String {
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
    // SAFETY: `physical` is of `vulkan`; the chain holds a struct of Vulkan 1.2, which the GPU knows.
    unsafe { vulkan.get_physical_device_properties2(physical, &mut properties) };
    let name = driver.driver_name_as_c_str().unwrap_or_default().to_string_lossy();
    let version = driver.driver_info_as_c_str().unwrap_or_default().to_string_lossy();
    let matrices = match cooperative {
        Some(matrix) => format!("cooperative matrices of {matrix}"),
        None => String::from("no cooperative matrices"),
    };
    format!("Vulkan ({name} {version}, {matrices})")
}

fn open(physical_device: PhysicalDevice, settings: &Settings) -> Result<Opened<Vulkan>> {
    let PhysicalDevice { instance, physical, family } = physical_device;
    let vulkan = &instance.vulkan;
    // SAFETY: `physical` is of `instance`, which lives.
    let memory = unsafe { vulkan.get_physical_device_memory_properties(physical) };
    let find = |flags: vk::MemoryPropertyFlags| {
        let types = memory.memory_types_as_slice();
        types.iter().position(|kind| kind.property_flags.contains(flags))
    };
    let (host, cached) = (
        vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT,
        vk::MemoryPropertyFlags::HOST_CACHED,
    );
    let local = find(vk::MemoryPropertyFlags::DEVICE_LOCAL);
    let (Some(local), Some(mapped)) = (local, find(host | cached).or_else(|| find(host))) else {
        return Err(Error::failed_precondition(
            "it has no device memory or none that the host can map; update its driver",
        ));
    };
    let offered = match settings.cooperative {
        true => cooperative::find(&instance.library, vulkan, physical),
        false => None,
    };
    let mut features = vk::PhysicalDeviceFeatures2::default();
    // SAFETY: `physical` is of `instance`, which lives; the chain has one struct, which the GPU knows.
    unsafe { vulkan.get_physical_device_features2(physical, &mut features) };
    let float64 = features.features.shader_float64 != 0;
    let open = |is_cooperative| open_device(vulkan, physical, family, is_cooperative, float64);
    let (device, cooperative) = match (open(offered.is_some()), offered) {
        (Err(error), Some(matrix)) => {
            log::warn!(
                "RUST_GPU opens the GPU without its cooperative matrices of {matrix}: {}",
                refused("open the GPU with them")(error).message()
            );
            (open(false), None)
        }
        (opened, offered) => (opened, offered),
    };
    let device = device.map_err(refused("open the GPU"))?;
    let layout = pipeline::layout(&device)
        .map_err(refused("create a pipeline layout"))
        .inspect_err(|_| {
            // SAFETY: nothing of the device is left.
            unsafe { device.destroy_device(None) };
        })?;
    // SAFETY: the device was created with one queue of this family.
    let queue = unsafe { device.get_device_queue(family, 0) };
    let heap = memory.memory_types[local].heap_index as usize;
    // SAFETY: `physical` is of `instance`, which lives.
    let (properties, families) = unsafe {
        let families = vulkan.get_physical_device_queue_family_properties(physical);
        (vulkan.get_physical_device_properties(physical), families)
    };
    let driver_info = driver_info(vulkan, physical, cooperative.as_ref());
    let has_clock = families[family as usize].timestamp_valid_bits > 0;
    let tick = if has_clock { properties.limits.timestamp_period.into() } else { 0.0 };
    let backend = Vulkan {
        raw: device,
        layout,
        queue: Mutex::new(queue),
        family,
        local: local as u32,
        mapped: mapped as u32,
        float64,
        tick,
        _instance: ManuallyDrop::new(instance),
    };
    Ok(Opened { backend, driver_info, total: memory.memory_heaps[heap].size, cooperative })
}

// SAFETY: mapped memory is as large as the buffer, whose bytes have values; the semaphore is signalled at the end of a batch.
unsafe impl Backend for Vulkan {
    const NAME: &'static str = "Vulkan";
    /// `LP_MAX_TGSI_LOOP_ITERATIONS` of llvmpipe, one counter for all loops of a shader.
    const SOFTWARE_TURNS: Option<usize> = Some(65_535);
    type PhysicalDevice = PhysicalDevice;
    type Memory = Memory;
    type Program = vk::Pipeline;
    type Batch = Commands;

    fn list() -> Result<Vec<Found<PhysicalDevice>>> {
        list()
    }
    fn open(physical_device: PhysicalDevice, settings: &Settings) -> Result<Opened<Self>> {
        open(physical_device, settings)
    }
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Allocation<Memory>> {
        self.buffer(bytes, kind)
    }
    unsafe fn free(&self, memory: Allocation<Memory>) {
        // SAFETY: the memory is of this GPU, and nothing uses it any longer.
        unsafe { self.release(&memory.memory) };
    }
    fn supports_float64(&self) -> bool {
        self.float64
    }
    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<vk::Pipeline> {
        self.pipeline(shader, constants)
    }
    fn batch(&self) -> BackendResult<Commands> {
        Commands::new(self)
    }
    unsafe fn begin(&self, batch: &mut Commands, is_measured: bool) -> BackendResult {
        // SAFETY: the batch is new or was reset, as the caller says.
        unsafe { batch.begin(self, is_measured) }
    }
    unsafe fn copy(
        &self,
        batch: &mut Commands,
        target: Span<'_, Memory>,
        source: Span<'_, Memory>,
    ) -> BackendResult {
        // SAFETY: the caller promises the same of batch and ranges.
        unsafe { batch.copy(self, target, source) };
        Ok(())
    }
    unsafe fn fill(
        &self,
        batch: &mut Commands,
        target: Span<'_, Memory>,
        word: u32,
    ) -> BackendResult {
        // SAFETY: the caller promises the same of batch and range.
        unsafe { batch.fill(self, target, word) };
        Ok(())
    }
    unsafe fn launch(
        &self,
        batch: &mut Commands,
        pipeline: &vk::Pipeline,
        push: &[u8],
        groups: [u32; 3],
    ) -> BackendResult {
        // SAFETY: the caller promises the same of batch, pipeline and arguments.
        unsafe { batch.launch(self, *pipeline, push, groups) };
        Ok(())
    }
    unsafe fn mark(&self, batch: &mut Commands) -> BackendResult {
        // SAFETY: the batch has begun, as the caller says.
        unsafe { batch.mark(self) };
        Ok(())
    }
    unsafe fn send(&self, batch: &mut Commands) -> BackendResult {
        // SAFETY: the batch has begun, and its commands were marked, as the caller says.
        unsafe { batch.send(self) }
    }
    fn wait(&self, batch: &mut Commands, limit: Duration) -> BackendResult<bool> {
        batch.wait(self, limit)
    }
    fn times(&self, batch: &mut Commands) -> BackendResult<Option<Vec<[i64; 2]>>> {
        batch.times(self)
    }
    unsafe fn reset(&self, batch: &mut Commands) -> BackendResult {
        // SAFETY: the batch is done, as the caller says.
        unsafe { batch.reset(self) }
    }
    unsafe fn destroy(&self, batch: Commands) {
        // SAFETY: the GPU does not execute the batch, as the caller says.
        unsafe { batch.destroy(self) };
    }
}
