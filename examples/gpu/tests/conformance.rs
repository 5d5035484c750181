//! The card against what TensorFlow asks of a device.

tf_plugin_testing::device::conformance!(gpu::GpuPlatform);
