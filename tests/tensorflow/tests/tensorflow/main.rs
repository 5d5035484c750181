//! Everything that needs a real TensorFlow, one module a subject: one program, whose tests run side by side.

mod artefacts;
mod az;
mod conformance;
mod defects_of_tensorflow_io;
mod demo;
mod device_faults;
mod devices;
// Its crates are built for a release only: `new` of the command and `readme` train with the same ones in the newest TensorFlow.
mod files;
#[cfg(feature = "matrix")]
mod first_device;
mod fork_server;
mod gpu;
mod gpu_cooperative;
mod gpu_counts;
mod gpu_cuda;
mod gpu_lost;
mod gpu_opencl;
mod graphs;
mod host;
mod https;
mod leaving;
mod loading;
mod object_store;
mod op_conformance;
mod ops;
mod panics;
mod readme;
mod refdevice;
mod s3_disk_cache;
mod s3_process;
mod s3_scale;
mod s3_scenarios;
mod s3_tensorboard;
// It builds what users get, which takes minutes.
#[cfg(feature = "optimised")]
mod s3_wheel;
mod scenarios;
mod together;
mod webdav;
