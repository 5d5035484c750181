//! The conformance cases for devices, with the reference device.

tf_plugin_testing::device::conformance!(refdevice::RefPlatform);
