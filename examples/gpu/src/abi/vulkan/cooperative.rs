//! Cooperative matrices: what a card's matrix units multiply.

use crate::abi::driver::CooperativeMatrix;
use ash::vk;

/// The extension that has them.
pub(super) const EXTENSION: &std::ffi::CStr = ash::khr::cooperative_matrix::NAME;

/// Those of 16-bit floats with sums in 32 bits, if the card and its driver have them and all that the shaders need beside them.
pub(super) fn find(
    library: &ash::Entry,
    instance: &ash::Instance,
    card: vk::PhysicalDevice,
) -> Option<CooperativeMatrix> {
    // SAFETY: `card` is of `instance`, which lives.
    let extensions = unsafe { instance.enumerate_device_extension_properties(card) }.ok()?;
    let is_it = |known: &vk::ExtensionProperties| known.extension_name_as_c_str() == Ok(EXTENSION);
    if !extensions.iter().any(is_it) {
        return None;
    }
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
    let mut of_12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut of_13 = vk::PhysicalDeviceVulkan13Features::default();
    let mut features = vk::PhysicalDeviceFeatures2::default()
        .push_next(&mut matrices)
        .push_next(&mut of_12)
        .push_next(&mut of_13);
    // SAFETY: as above; the chain holds structs of Vulkan 1.2 and 1.3, and of an extension, which the card knows.
    unsafe { instance.get_physical_device_features2(card, &mut features) };
    let mut subgroups = vk::PhysicalDeviceVulkan13Properties::default();
    let mut usual = vk::PhysicalDeviceSubgroupProperties::default();
    let mut properties =
        vk::PhysicalDeviceProperties2::default().push_next(&mut subgroups).push_next(&mut usual);
    // SAFETY: as above, for structs of properties.
    unsafe { instance.get_physical_device_properties2(card, &mut properties) };
    let shared = properties.properties.limits.max_compute_shared_memory_size;
    let needed = [
        matrices.cooperative_matrix,
        of_12.shader_float16,
        of_12.vulkan_memory_model,
        of_13.subgroup_size_control,
        of_13.compute_full_subgroups,
    ];
    let has_size = subgroups.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE);
    if needed.contains(&vk::FALSE) || !has_size {
        return None;
    }
    let functions = ash::khr::cooperative_matrix::Instance::new(library, instance);
    // SAFETY: the card has the extension, and the functions are those of its instance.
    let kinds = unsafe { functions.get_physical_device_cooperative_matrix_properties(card) };
    let half = vk::ComponentTypeKHR::FLOAT16;
    let float = vk::ComponentTypeKHR::FLOAT32;
    let kinds = kinds.ok()?.into_iter().filter(|kind| {
        [kind.a_type, kind.b_type] == [half; 2]
            && [kind.c_type, kind.result_type] == [float; 2]
            && kind.scope == vk::ScopeKHR::SUBGROUP
    });
    let subgroup = usual.subgroup_size;
    kinds
        .map(|kind| CooperativeMatrix { m: kind.m_size, n: kind.n_size, k: kind.k_size, subgroup })
        .filter(|matrix| matrix.is_usable(shared))
        // Where there are several, the one of which a tile needs the fewest.
        .max_by_key(|matrix| (matrix.m * matrix.n, matrix.k))
}
