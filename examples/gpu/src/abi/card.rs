//! The card.

use ash::vk;
use se_plugin::{Code, Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open card. It stays open until the process ends, as TensorFlow's devices do.
pub(crate) struct Gpu {
    pub(super) device: ash::Device,
    /// Vulkan wants one thread at a time.
    pub(super) queue: Mutex<vk::Queue>,
    pub(super) family: u32,
    /// The type of the device's memory.
    pub(super) local: u32,
    /// The type of memory that the host maps.
    pub(super) mapped: u32,
    /// Bytes of device memory that are allocated.
    pub(super) used: AtomicU64,
    /// Bytes of device memory.
    pub(crate) total: u64,
    /// The card's name, by the driver.
    pub(crate) name: String,
    /// A fork has the memory of a driver, and not its threads.
    process: u32,
    /// Last, since the functions above are its.
    _instance: ash::Instance,
    _library: ash::Entry,
}

/// An error of Vulkan while doing `what`.
pub(super) fn failed(what: &str, result: vk::Result) -> Error {
    let (code, help) = match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            (Code::ResourceExhausted, "use less memory, such as a smaller batch")
        }
        vk::Result::ERROR_DEVICE_LOST => {
            (Code::Unavailable, "the card or its driver is gone; restart the process")
        }
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            (Code::FailedPrecondition, "install the Vulkan driver of the card")
        }
        _ => (Code::Internal, "run with VK_LAYER_KHRONOS_validation to see why"),
    };
    Error::new(code, format!("vulkan cannot {what}: {result}; {help}"))
}

/// What keeps a card from being used, or its queue family.
fn suitable(instance: &ash::Instance, card: vk::PhysicalDevice) -> Result<u32, &'static str> {
    // SAFETY: `card` is of `instance`, which lives.
    let properties = unsafe { instance.get_physical_device_properties(card) };
    if properties.api_version < vk::API_VERSION_1_3 {
        return Err("its driver is older than Vulkan 1.3");
    }
    let mut newer = vk::PhysicalDeviceVulkan12Features::default();
    let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut newer);
    // SAFETY: `card` is of `instance`; the chain holds one struct of Vulkan 1.2, which the card knows.
    unsafe { instance.get_physical_device_features2(card, &mut features) };
    if newer.buffer_device_address == 0 || newer.timeline_semaphore == 0 {
        return Err("its driver has no buffer device addresses or no timeline semaphores");
    }
    // SAFETY: `card` is of `instance`, which lives.
    let families = unsafe { instance.get_physical_device_queue_family_properties(card) };
    let compute = families.iter().position(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE));
    compute.and_then(|index| u32::try_from(index).ok()).ok_or("it has no queue for compute")
}

impl Gpu {
    /// Opens the card whose name contains `wanted`, or else the first that is not software.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without the loader; `NOT_FOUND` without such a card, with each card's reason.
    pub(crate) fn open(wanted: Option<&str>) -> Result<Self> {
        // SAFETY: the system's Vulkan loader may be loaded by any process; it is not unloaded before its
        // last user, since `Gpu` keeps it.
        let library = unsafe { ash::Entry::load() }.map_err(|error| {
            Error::failed_precondition(format!(
                "cannot load the Vulkan loader: {error}; install `libvulkan1` or the card's driver"
            ))
        })?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: `info` and what it points to outlive the call.
        let instance = unsafe { library.create_instance(&info, None) }
            .map_err(|error| failed("create an instance", error))?;
        // SAFETY: `instance` lives.
        let cards = unsafe { instance.enumerate_physical_devices() }
            .map_err(|error| failed("list the cards", error))?;
        let mut refused = Vec::new();
        for card in cards {
            // SAFETY: `card` is of `instance`, which lives.
            let properties = unsafe { instance.get_physical_device_properties(card) };
            let name = properties.device_name_as_c_str().unwrap_or_default().to_string_lossy();
            let is_software = properties.device_type == vk::PhysicalDeviceType::CPU;
            let named = wanted.map(|w| name.to_lowercase().contains(&w.to_lowercase()));
            let reason = match (named, suitable(&instance, card)) {
                (Some(false), _) => "RUST_GPU_CARD names another",
                (None, _) if is_software => "it is software; RUST_GPU_CARD can name it",
                (_, Err(reason)) => reason,
                (_, Ok(family)) => return Self::create(library, instance, card, family, &name),
            };
            refused.push(format!("{name}: {reason}"));
        }
        // SAFETY: nothing of the instance is left.
        unsafe { instance.destroy_instance(None) };
        let refused = if refused.is_empty() { "none is there".into() } else { refused.join("; ") };
        Err(Error::not_found(format!("no Vulkan card can be used: {refused}")))
    }

    fn create(
        library: ash::Entry,
        instance: ash::Instance,
        card: vk::PhysicalDevice,
        family: u32,
        name: &str,
    ) -> Result<Self> {
        let mut newer = vk::PhysicalDeviceVulkan12Features::default()
            .buffer_device_address(true)
            .timeline_semaphore(true);
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&[1.0])];
        let info =
            vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut newer);
        // SAFETY: `card` is of `instance`, has the queue family and both features (`suitable`).
        let device = unsafe { instance.create_device(card, &info, None) }
            .map_err(|error| failed("open the card", error))?;
        // SAFETY: the device was created with one queue of this family.
        let queue = unsafe { device.get_device_queue(family, 0) };
        // SAFETY: `card` is of `instance`, which lives.
        let memory = unsafe { instance.get_physical_device_memory_properties(card) };
        let find = |flags: vk::MemoryPropertyFlags| {
            let types = memory.memory_types_as_slice();
            types.iter().position(|kind| kind.property_flags.contains(flags))
        };
        let (host, cached) = (
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT,
            vk::MemoryPropertyFlags::HOST_CACHED,
        );
        let local = find(vk::MemoryPropertyFlags::DEVICE_LOCAL);
        let (Some(local), Some(mapped)) = (local, find(host | cached).or_else(|| find(host)))
        else {
            return Err(Error::failed_precondition(format!(
                "`{name}` has no device memory or none that the host can map; update its driver"
            )));
        };
        let heap = memory.memory_types[local].heap_index as usize;
        Ok(Self {
            device,
            queue: Mutex::new(queue),
            family,
            local: local as u32,
            mapped: mapped as u32,
            used: AtomicU64::new(0),
            total: memory.memory_heaps[heap].size,
            name: name.to_owned(),
            process: std::process::id(),
            _instance: instance,
            _library: library,
        })
    }

    /// Bytes of device memory that are allocated.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Fails in a fork, before it takes a lock or calls the driver.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` there.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Error::failed_precondition(
            "this process is a fork of the one that opened the card, whose driver it cannot use; \
             start processes with `spawn`",
        ))
    }
}
