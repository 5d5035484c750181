//! The reference device against what TensorFlow asks of a device.

se_plugin::conformance!(refdevice::RefPlatform);
