//! The sizes and fields that versioned structs go by.

use memoffset::span_of;
use tf_fs_sys::*;

/// Compares two ways to compute the end. Neither gives the size of the struct where that is padded.
#[test]
fn a_struct_size_is_the_end_of_the_last_field() {
    assert_eq!(SP_PLATFORM_STRUCT_SIZE, span_of!(SP_Platform, ..=force_memory_growth).end);
    assert_eq!(SP_PLATFORM_STRUCT_SIZE, 35);
    assert_eq!(size_of::<SP_Platform>(), 40);
    assert_eq!(
        TP_OPTIMIZER_CONFIGS_STRUCT_SIZE,
        span_of!(TP_OptimizerConfigs, ..=scoped_allocator_optimization).end
    );
    assert_eq!(TP_OPTIMIZER_CONFIGS_STRUCT_SIZE, 92);
    assert_eq!(size_of::<TP_OptimizerConfigs>(), 96);
    assert_eq!(
        TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE,
        span_of!(TF_AllocatorAttributes, ..=on_host).end
    );
    assert_eq!(TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE, 9);
    assert_eq!(size_of::<TF_AllocatorAttributes>(), 16);
    assert_eq!(SP_STREAMEXECUTOR_STRUCT_SIZE, span_of!(SP_StreamExecutor, ..=host_callback).end);
    assert_eq!(SP_STREAMEXECUTOR_STRUCT_SIZE, size_of::<SP_StreamExecutor>());
}

#[test]
fn fields_and_functions_are_those_of_the_struct() {
    assert_eq!(SP_Device::FIELDS, [8..16, 16..20, 24..32, 32..40, 40..48, 48..56]);
    assert_eq!(TP_ProfilerFns::FUNCTIONS, ["start", "stop", "collect_data_xspace"]);
    assert_eq!(TP_ProfilerFns::NAME, "TP_ProfilerFns");
}
