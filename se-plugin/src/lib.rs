//! Write TensorFlow devices in safe Rust.
//!
//! Implement [`Platform`], [`Device`], [`Stream`] and [`Event`], put
//! [`#[device_plugin]`](macro@device_plugin) on the `impl Platform`, and build a `cdylib`. TensorFlow 2.12 and
//! later then list the device. You need TensorFlow neither to build nor to test the plugin.
//!
//! # Failures
//! TensorFlow aborts the process on most mistakes of a device. The SDK prevents this:
//!
//! - It fills in every callback, because TensorFlow calls some without checking for null.
//! - A plugin that cannot work (no driver, no GPU, an unsuitable TensorFlow) has 0 devices, and one line in
//!   the log says why. A device that cannot be opened is not counted.
//! - A failure of enqueued work is sticky, as with CUDA: the log has it at once, and the next value that
//!   Python fetches and every later op raise it.
//! - An event never reports a failure, which would abort. If an event cannot be recorded, the SDK waits for
//!   the stream instead.
//! - A panic is caught and becomes an error, as in `tf-fs-plugin`.
//!
//! # Kernels
//! A kernel computes an op on the device: implement [`kernel::Kernel`], with [`#[kernel]`](macro@kernel) on the
//! `impl`.
//!
//! [`toolkit`] has the code that most kernels share: broadcasting, reductions, slices, type rules.
//!
//! # Threads
//! TensorFlow calls from many threads, several at once on one stream, so everything is `Send` and `Sync`.
//! At exit it destroys nothing.
//!
//! # Graphs and profiles
//! The attribute also takes a pass that rewrites graphs ([`graph`]) and a profiler ([`profiler`]):
//! `#[device_plugin(graph_pass = MyPass, profiler = &TIMELINE)]`.
//!
//! # Switching devices off
//! The environment variable `TF_SE_PLUGIN_DEVICES` limits the number of devices of each plugin built with
//! this SDK. With 0 there are none, and ops run on the CPU.
//!
//! # Loading
//! TensorFlow loads a plugin from `site-packages/tensorflow-plugins/`, from the path in
//! `TF_PLUGGABLE_DEVICE_LIBRARY_PATH`, or with `load_pluggable_device_library`. The same file may be
//! loaded twice; the second time adds no device.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations)]

// So that the macro's paths also work in this crate's own tests.
extern crate self as se_plugin;

#[expect(unsafe_code, reason = "the C boundary")]
mod abi;
mod counters;
mod device;
mod device_limit;
pub mod driver;
#[cfg(test)]
mod fuzz;
pub mod graph;
mod health;
pub mod host;
pub mod kernel;
mod memory;
mod platform;
pub mod profiler;
mod small_reserve;
mod stream;
mod sync;
mod timer;
pub mod toolkit;

pub use abi::device_type::{device_type, host_has_gpu_kernels};
pub use abi::host_buf::HostBuf;
pub use abi::host_callback::HostCallback;
pub use abi::host_memory::HostAllocator;
pub use abi::host_ptr::{HostSource, HostTarget};
pub use counters::Counters;
pub use device::{AllocatorStats, Device, MemoryUsage};
pub use memory::DevicePtr;
pub use platform::Platform;
pub use stream::{Event, EventStatus, Pattern, Stream, StreamOptions};
pub use tf_fs_plugin_macros::{device_plugin, kernel};
pub use tf_op_plugin::register_op;
pub use tf_plugin_core::{Code, Error, Result, ResultExt, ensure, logging};
pub use timer::{HostTimer, Timer};

/// The names that nearly every device needs: `use se_plugin::prelude::*;`.
pub mod prelude {
    pub use crate::kernel::{
        DType, DeviceTensor, Element, Kernel, OpKernelConstruction, OpKernelContext,
    };
    pub use crate::{
        Code, Device, DevicePtr, Error, Event, EventStatus, HostBuf, HostCallback, HostSource,
        HostTarget, MemoryUsage, Pattern, Platform, Result, ResultExt, Stream, StreamOptions,
        device_plugin, ensure, kernel,
    };
}

/// Used by the macros' output only; it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::exports::{Exported, GraphExport, PlatformExport, ProfilerExport};
    pub use crate::abi::graph::init_graph;
    pub use crate::abi::platform::init_plugin;
    pub use crate::abi::profiler::init_profiler;
    pub use crate::kernel::registration;
    pub use crate::kernel::{Element, KernelGroup, KernelList, LibraryKernel};
    pub use crate::platform::check;
    pub use tf_fs_sys::{
        SE_InitPluginFn, SE_PlatformRegistrationParams, TF_InitGraphFn, TF_InitProfilerFn,
        TF_ProfilerRegistrationParams, TF_Status, TP_OptimizerRegistrationParams,
    };
    pub use tf_op_plugin::__private::collect;
    pub use tf_op_plugin::__private::{OpRegistration, Options, Registration};
    pub use tf_plugin_core::__private::elf_note;

    /// The items that the in-process host of `tf-plugin-testing` needs in addition to the C interface.
    pub mod testing {
        pub use crate::abi::host_release::release_override;

        /// Structs of the host, by the versioning strategy.
        pub mod versions {
            pub use crate::abi::versions::{Versioned, fill, read};
        }

        /// Fields of serialised messages.
        pub mod wire {
            pub use tf_op_plugin::__private::wire::{Value, values};
        }
    }
}
