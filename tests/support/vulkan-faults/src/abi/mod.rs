//! The functions that a program loads: those of the real loader, some of them with faults.

use crate::{Fault, REAL};
use ash::vk;
use libloading::os::unix::{Library, Symbol};
use std::ffi::{CStr, c_char};
use std::sync::{LazyLock, OnceLock};

/// A function of Vulkan, of any type.
type Function = unsafe extern "system" fn();

static FAULT: LazyLock<Option<Fault>> = LazyLock::new(Fault::of_environment);

/// `vkGetInstanceProcAddr` of the real loader, which stays loaded.
static LOADER: LazyLock<Option<vk::PFN_vkGetInstanceProcAddr>> = LazyLock::new(|| {
    let path = std::env::var_os(REAL)?;
    // SAFETY: the environment names a Vulkan loader, which any process may load; its function has this type.
    unsafe {
        let library = std::mem::ManuallyDrop::new(Library::new(path).ok()?);
        let function: Symbol<vk::PFN_vkGetInstanceProcAddr> =
            library.get(b"vkGetInstanceProcAddr\0").ok()?;
        Some(*function)
    }
});

/// The function of the real loader or of a layer.
static OF_DEVICES: OnceLock<vk::PFN_vkGetDeviceProcAddr> = OnceLock::new();

/// Keeps the found function, of this type, and returns the one that replaces it.
macro_rules! replaced {
    ($real:ident: $type:ident, $found:ident, $function:ident) => {{
        // SAFETY: the function of this name has this type; and the one in its place is called as any function of its type.
        unsafe {
            $real.get_or_init(|| std::mem::transmute::<Function, vk::$type>($found));
            Some(std::mem::transmute::<vk::$type, Function>($function))
        }
    }};
}

/// # Safety
/// The name is a string, as Vulkan requires.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Vulkan's name")]
pub(crate) unsafe extern "system" fn vkGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    let loader = (*LOADER)?;
    // SAFETY: the arguments are those of the caller.
    let found = unsafe { loader(instance, name) }?;
    // SAFETY: `name` is a string, by Vulkan's rules.
    let name = unsafe { CStr::from_ptr(name) };
    match name.to_str().ok()? {
        "vkGetDeviceProcAddr" => replaced!(OF_DEVICES: PFN_vkGetDeviceProcAddr, found, of_device),
        "vkGetPhysicalDeviceFeatures2" => {
            replaced!(FEATURES: PFN_vkGetPhysicalDeviceFeatures2, found, features)
        }
        "vkGetPhysicalDeviceProperties" => {
            replaced!(PROPERTIES: PFN_vkGetPhysicalDeviceProperties, found, properties)
        }
        "vkGetPhysicalDeviceQueueFamilyProperties" => {
            replaced!(FAMILIES: PFN_vkGetPhysicalDeviceQueueFamilyProperties, found, families)
        }
        _ => Some(found),
    }
}

/// Returns the feature that GPUs lack in this process.
fn lacks() -> Option<&'static str> {
    FAULT.as_ref().and_then(Fault::lacks)
}

static FEATURES: OnceLock<vk::PFN_vkGetPhysicalDeviceFeatures2> = OnceLock::new();

/// # Safety
/// The caller follows Vulkan's rules for `vkGetPhysicalDeviceFeatures2`.
unsafe extern "system" fn features(
    physical: vk::PhysicalDevice,
    features: *mut vk::PhysicalDeviceFeatures2<'_>,
) {
    if let Some(real) = FEATURES.get() {
        // SAFETY: the arguments are those of the caller.
        unsafe { real(physical, features) };
    }
    let Some(lacks) = lacks() else { return };
    // SAFETY: `features` is a struct, which nobody else has now, and begins a chain of structs.
    let mut next = unsafe {
        if lacks == "shader_int64" {
            (*features).features.shader_int64 = vk::FALSE;
        }
        if lacks == "shader_float64" {
            (*features).features.shader_float64 = vk::FALSE;
        }
        (*features).p_next.cast::<vk::BaseOutStructure<'_>>()
    };
    while !next.is_null() {
        // SAFETY: each struct of a chain begins as this one.
        let (kind, after) = unsafe { ((*next).s_type, (*next).p_next) };
        if kind == vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_FEATURES {
            // SAFETY: a struct of this type has this number, and nobody else has it now.
            let old = unsafe { &mut *next.cast::<vk::PhysicalDeviceVulkan11Features<'_>>() };
            if lacks == "storage_buffer16_bit_access" {
                old.storage_buffer16_bit_access = vk::FALSE;
            }
        }
        if kind == vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES {
            // SAFETY: a struct of this type has this number, and nobody else has it now.
            let newer = unsafe { &mut *next.cast::<vk::PhysicalDeviceVulkan12Features<'_>>() };
            match lacks {
                "buffer_device_address" => newer.buffer_device_address = vk::FALSE,
                "timeline_semaphore" => newer.timeline_semaphore = vk::FALSE,
                "scalar_block_layout" => newer.scalar_block_layout = vk::FALSE,
                "storage_buffer8_bit_access" => newer.storage_buffer8_bit_access = vk::FALSE,
                _ => {}
            }
        }
        next = after;
    }
}

static PROPERTIES: OnceLock<vk::PFN_vkGetPhysicalDeviceProperties> = OnceLock::new();

/// # Safety
/// The caller follows Vulkan's rules for `vkGetPhysicalDeviceProperties`.
unsafe extern "system" fn properties(
    physical: vk::PhysicalDevice,
    properties: *mut vk::PhysicalDeviceProperties,
) {
    if let Some(real) = PROPERTIES.get() {
        // SAFETY: the arguments are those of the caller.
        unsafe { real(physical, properties) };
    }
    if lacks() == Some("vulkan_1_3") {
        // SAFETY: `properties` is a struct, which nobody else has now.
        unsafe { (*properties).api_version = vk::API_VERSION_1_2 };
    }
}

static FAMILIES: OnceLock<vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties> = OnceLock::new();

/// # Safety
/// The caller follows Vulkan's rules for `vkGetPhysicalDeviceQueueFamilyProperties`.
unsafe extern "system" fn families(
    physical: vk::PhysicalDevice,
    count: *mut u32,
    families: *mut vk::QueueFamilyProperties,
) {
    if let Some(real) = FAMILIES.get() {
        // SAFETY: the arguments are those of the caller.
        unsafe { real(physical, count, families) };
    }
    if families.is_null() || lacks() != Some("compute_queue") {
        return;
    }
    // SAFETY: `count` is a number, and says how many of `families` were written, which nobody else has now.
    for family in unsafe { std::slice::from_raw_parts_mut(families, *count as usize) } {
        family.queue_flags &= !vk::QueueFlags::COMPUTE;
    }
}

/// The type of a function's result.
trait Returned {
    fn of(result: vk::Result) -> Self;
}

impl Returned for vk::Result {
    fn of(result: vk::Result) -> Self {
        result
    }
}

impl Returned for () {
    fn of(_: vk::Result) {}
}

macro_rules! faulty {
    ($($name:ident $type:ident($($argument:ident: $of:ty),*) -> $returned:ty;)*) => {
        /// # Safety
        /// The name is a string, as Vulkan requires.
        unsafe extern "system" fn of_device(
            device: vk::Device,
            name: *const c_char,
        ) -> vk::PFN_vkVoidFunction {
            let real = OF_DEVICES.get()?;
            // SAFETY: the arguments are those of the caller.
            let found = unsafe { real(device, name) }?;
            // SAFETY: `name` is a string, by Vulkan's rules.
            match unsafe { CStr::from_ptr(name) }.to_str().ok()? {
                $(stringify!($name) => {
                    // SAFETY: the function of this name has this type, as has the one in its place.
                    unsafe {
                        $name::REAL.get_or_init(|| std::mem::transmute::<Function, vk::$type>(found));
                        Some(std::mem::transmute::<vk::$type, Function>($name::faulty))
                    }
                })*
                _ => Some(found),
            }
        }

        $(
            #[allow(non_snake_case, reason = "Vulkan's name")]
            mod $name {
                use super::{FAULT, OnceLock, Returned as _, vk};

                pub(super) static REAL: OnceLock<vk::$type> = OnceLock::new();

                /// # Safety
                /// The caller follows Vulkan's rules for this function.
                pub(super) unsafe extern "system" fn faulty($($argument: $of),*) -> $returned {
                    let fault = FAULT.as_ref().and_then(|fault| fault.happens(stringify!($name)));
                    match (fault, REAL.get()) {
                        (Some(result), _) => <$returned>::of(result),
                        // SAFETY: the arguments are those of the caller.
                        (None, Some(real)) => unsafe { real($($argument),*) },
                        (None, None) => <$returned>::of(vk::Result::ERROR_UNKNOWN),
                    }
                }
            }
        )*
    };
}

faulty! {
    vkAllocateMemory PFN_vkAllocateMemory(
        device: vk::Device,
        info: *const vk::MemoryAllocateInfo<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        memory: *mut vk::DeviceMemory
    ) -> vk::Result;
    vkMapMemory PFN_vkMapMemory(
        device: vk::Device,
        memory: vk::DeviceMemory,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
        flags: vk::MemoryMapFlags,
        data: *mut *mut std::ffi::c_void
    ) -> vk::Result;
    vkCreateComputePipelines PFN_vkCreateComputePipelines(
        device: vk::Device,
        cache: vk::PipelineCache,
        count: u32,
        infos: *const vk::ComputePipelineCreateInfo<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        pipelines: *mut vk::Pipeline
    ) -> vk::Result;
    vkBeginCommandBuffer PFN_vkBeginCommandBuffer(
        buffer: vk::CommandBuffer,
        info: *const vk::CommandBufferBeginInfo<'_>
    ) -> vk::Result;
    vkEndCommandBuffer PFN_vkEndCommandBuffer(buffer: vk::CommandBuffer) -> vk::Result;
    vkResetCommandPool PFN_vkResetCommandPool(
        device: vk::Device,
        pool: vk::CommandPool,
        flags: vk::CommandPoolResetFlags
    ) -> vk::Result;
    vkQueueSubmit PFN_vkQueueSubmit(
        queue: vk::Queue,
        count: u32,
        submits: *const vk::SubmitInfo<'_>,
        fence: vk::Fence
    ) -> vk::Result;
    vkWaitSemaphores PFN_vkWaitSemaphores(
        device: vk::Device,
        info: *const vk::SemaphoreWaitInfo<'_>,
        timeout: u64
    ) -> vk::Result;
    vkFreeMemory PFN_vkFreeMemory(
        device: vk::Device,
        memory: vk::DeviceMemory,
        allocator: *const vk::AllocationCallbacks<'_>
    ) -> ();
    vkDestroyBuffer PFN_vkDestroyBuffer(
        device: vk::Device,
        buffer: vk::Buffer,
        allocator: *const vk::AllocationCallbacks<'_>
    ) -> ();
    vkDestroyCommandPool PFN_vkDestroyCommandPool(
        device: vk::Device,
        pool: vk::CommandPool,
        allocator: *const vk::AllocationCallbacks<'_>
    ) -> ();
}
