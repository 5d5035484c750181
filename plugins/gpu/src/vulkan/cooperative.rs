//! Cooperative matrices: the products of a GPU's matrix units.

use ash::vk;
use se_plugin_gpu::backend::CooperativeMatrix;

/// The extension for cooperative matrices.
pub(super) const EXTENSION: &std::ffi::CStr = ash::khr::cooperative_matrix::NAME;

/// The vendor number of Intel.
const FEW_REGISTERS: u32 = 0x8086;

/// Finds matrices of 16-bit floats with sums in 32 bits, if GPU and driver have them and all that the shaders need.
pub(super) fn find(
    library: &ash::Entry,
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Option<CooperativeMatrix> {
    // SAFETY: `physical` is of `instance`, which lives.
    let extensions = unsafe { instance.enumerate_device_extension_properties(physical) }.ok()?;
    let is_it = |known: &vk::ExtensionProperties| known.extension_name_as_c_str() == Ok(EXTENSION);
    if !extensions.iter().any(is_it) {
        return None;
    }
    find_in(library, instance, physical)
        .inspect_err(|why| {
            log::info!("RUST_GPU does not use the GPU's cooperative matrices: {why}")
        })
        .ok()
}

/// Finds them on a GPU that has the extension, or returns why there are none.
fn find_in(
    library: &ash::Entry,
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Result<CooperativeMatrix, &'static str> {
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
    let mut of_12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut of_13 = vk::PhysicalDeviceVulkan13Features::default();
    let mut features = vk::PhysicalDeviceFeatures2::default()
        .push_next(&mut matrices)
        .push_next(&mut of_12)
        .push_next(&mut of_13);
    // SAFETY: `physical` is of `instance`, which lives; the chain holds structs of Vulkan 1.2, 1.3 and an extension, which it knows.
    unsafe { instance.get_physical_device_features2(physical, &mut features) };
    let mut sizes = vk::PhysicalDeviceVulkan13Properties::default();
    let mut usual = vk::PhysicalDeviceSubgroupProperties::default();
    let mut properties =
        vk::PhysicalDeviceProperties2::default().push_next(&mut sizes).push_next(&mut usual);
    // SAFETY: `physical` is of `instance`, which lives; the chain holds structs of properties that it knows.
    unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
    let properties = properties.properties;
    let subgroup = usual.subgroup_size;
    let invocations = subgroup.saturating_mul(sizes.max_compute_workgroup_subgroups);
    let stages = sizes.required_subgroup_size_stages;
    for (is_there, missing) in [
        (matrices.cooperative_matrix != 0, "it lacks `cooperativeMatrix`"),
        (of_12.shader_float16 != 0, "it lacks `shaderFloat16`"),
        (of_12.vulkan_memory_model != 0, "it lacks `vulkanMemoryModel`"),
        (of_13.subgroup_size_control != 0, "it lacks `subgroupSizeControl`"),
        (of_13.compute_full_subgroups != 0, "it lacks `computeFullSubgroups`"),
        (stages.contains(vk::ShaderStageFlags::COMPUTE), "its subgroups have no fixed size"),
        (invocations >= 256, "its workgroups are too small"),
    ] {
        if !is_there {
            return Err(missing);
        }
    }
    let functions = ash::khr::cooperative_matrix::Instance::new(library, instance);
    // SAFETY: the GPU has the extension, and the functions are those of its instance.
    let kinds = unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) };
    let (half, float) = (vk::ComponentTypeKHR::FLOAT16, vk::ComponentTypeKHR::FLOAT32);
    let is_ours = |kind: &vk::CooperativeMatrixPropertiesKHR<'_>| {
        [kind.a_type, kind.b_type] == [half; 2]
            && [kind.c_type, kind.result_type] == [float; 2]
            && kind.scope == vk::ScopeKHR::SUBGROUP
    };
    let most = if properties.vendor_id == FEW_REGISTERS { 4 } else { 8 };
    let kinds = kinds.map_err(|_| "it does not list them")?;
    let stores = |m, n| {
        let is_half = |kind: &vk::CooperativeMatrixPropertiesKHR<'_>| {
            (kind.m_size, kind.n_size, kind.result_type, kind.scope)
                == (m, n, half, vk::ScopeKHR::SUBGROUP)
        };
        kinds.iter().any(is_half)
    };
    let ours = kinds.iter().filter(|kind| is_ours(kind));
    ours.map(|kind| {
        let (m, n, k) = (kind.m_size, kind.n_size, kind.k_size);
        CooperativeMatrix { m, n, k, subgroup, most, stores: stores(m, n), parts: true }
    })
    .filter(|matrix| matrix.is_usable(properties.limits.max_compute_shared_memory_size))
    // The largest, of which a tile needs the fewest.
    .max_by_key(|matrix| (matrix.m * matrix.n, matrix.k))
    .ok_or("none is of float16, with sums in float32, and fits into the shaders' tiles")
}
