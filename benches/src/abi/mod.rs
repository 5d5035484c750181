//! The function that callgrind finds by its name, and TensorFlow's interface for programs.

pub mod eager;

/// The name of [`tf_plugin_bench_counted`] as the linker knows it.
pub(crate) const COUNTED_SYMBOL: &str = "tf_plugin_bench_counted";

/// What callgrind counts: the instructions of `work`. It finds this function by its name, which
/// therefore must not be mangled.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn tf_plugin_bench_counted(work: &mut dyn FnMut()) {
    work();
    // Without this the call above would be a jump, and callgrind would not see this function return.
    std::hint::black_box(());
}
