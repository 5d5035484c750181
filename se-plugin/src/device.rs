//! One device.

use crate::abi::host_buf::HostBuf;
use crate::abi::host_memory::HostAllocator;
use crate::memory::DevicePtr;
use crate::stream::{Event, Stream, StreamOptions};
use crate::timer::{HostTimer, Timer};
use tf_plugin_core::Result;

/// One device: it allocates memory and creates streams and events.
pub trait Device: Send + Sync + 'static {
    /// A queue of work.
    type Stream: Stream<Event = Self::Event>;
    /// A point in a queue.
    type Event: Event;

    /// Allocates `bytes` of device memory, never 0, at an address that is a multiple of 256.
    ///
    /// If TensorFlow divides regions ([`USE_BFC_ALLOCATOR`](crate::Platform::USE_BFC_ALLOCATOR)) and requests them one after
    /// the other ([`FORCE_MEMORY_GROWTH`](crate::Platform::FORCE_MEMORY_GROWTH)), the first request is the SDK's: at most
    /// 1 MiB and a 64th of the free memory, for small tensors after the memory is used up.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if not enough is left: TensorFlow requests less, or raises the error.
    fn allocate(&self, bytes: u64) -> Result<DevicePtr>;

    /// Frees memory of [`allocate`](Self::allocate). The device knows the size.
    ///
    /// # Errors
    /// Any; the SDK logs them.
    fn deallocate(&self, memory: DevicePtr) -> Result<()>;

    /// Returns the size of the memory, from which TensorFlow derives how much it will use. The SDK calls it
    /// first when it opens the device.
    ///
    /// # Errors
    /// When the device is opened: as for [`Platform::open`](crate::Platform::open). Later, the SDK logs
    /// them and returns the previous result.
    fn memory_usage(&self) -> Result<MemoryUsage>;

    /// Creates a stream. TensorFlow creates four for each device and does not use all of them.
    ///
    /// # Errors
    /// Any. The device is unusable without the stream, and every later op raises the error. Reserve the
    /// resources of streams when the device is opened.
    fn create_stream(&self) -> Result<Self::Stream>;

    /// Creates a stream with a priority. By default it calls [`create_stream`](Self::create_stream), which is
    /// enough for a device without priorities.
    ///
    /// TensorFlow 2.22 and later call this. Older releases call `create_stream`.
    ///
    /// # Errors
    /// As for [`create_stream`](Self::create_stream).
    fn create_stream_with_options(&self, options: &StreamOptions) -> Result<Self::Stream> {
        let _ = options;
        self.create_stream()
    }

    /// Creates an event, which is complete until it is recorded.
    ///
    /// # Errors
    /// Any. Where the event would be recorded, the SDK then waits for the stream.
    fn create_event(&self) -> Result<Self::Event>;

    /// Copies from the host before it returns, in no order with any stream.
    ///
    /// # Errors
    /// Any; TensorFlow's caller gets it.
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()>;

    /// Fills all of `target` from the device before it returns, in no order with any stream.
    ///
    /// # Errors
    /// Any; TensorFlow's caller gets it.
    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()>;

    /// Copies `bytes` within the device before it returns, in no order with any stream.
    ///
    /// # Errors
    /// Any; TensorFlow's caller gets it.
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()>;

    /// Waits for the current work of all streams. TensorFlow calls it whenever Python fetches a value.
    ///
    /// # Errors
    /// Those of work since the last call: here they become an error in Python.
    fn synchronize(&self) -> Result<()>;

    /// Returns statistics of the allocator; `None` by default.
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        None
    }

    /// Returns an allocator of host memory with which the device copies faster than with ordinary memory,
    /// such as pinned memory.
    fn host_allocator(&self) -> Option<&dyn HostAllocator> {
        None
    }

    /// Creates a timer. The default measures when the stream reaches its start and its end.
    ///
    /// # Errors
    /// Any; TensorFlow's caller gets it. Only TensorFlow 2.12 and 2.13 use timers.
    fn create_timer(&self) -> Result<Box<dyn Timer<Self::Stream>>> {
        Ok(Box::new(HostTimer::default()))
    }

    /// Returns the name of the hardware, without NUL. TensorFlow does not show it.
    fn hardware_name(&self) -> Option<String> {
        None
    }

    /// Returns the name of the vendor, without NUL. TensorFlow does not show it.
    fn vendor(&self) -> Option<String> {
        None
    }

    /// Returns the PCI address, as in `0000:00:02.1`. TensorFlow does not show it.
    fn pci_bus_id(&self) -> Option<String> {
        None
    }

    /// Returns the NUMA node of the device.
    fn numa_node(&self) -> Option<u16> {
        None
    }

    /// Returns the bandwidth of the device's memory in bytes per second.
    fn memory_bandwidth(&self) -> Option<u64> {
        None
    }

    /// Returns the estimated floating-point operations per nanosecond.
    fn gflops(&self) -> Option<f64> {
        None
    }
}

/// The memory of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Free memory. TensorFlow uses what is free when the device starts, except for a reserve.
    pub free: u64,
    /// All memory.
    pub total: u64,
}

/// The statistics of an allocator; sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// Number of allocations so far.
    pub allocations: u64,
    /// Allocated now.
    pub in_use: u64,
    /// The most that was allocated at any time.
    pub peak_in_use: u64,
    /// The largest single allocation.
    pub largest_allocation: u64,
    /// The most that can be allocated, if there is a limit.
    pub limit: Option<u64>,
    /// Reserved, whether allocated or not.
    pub reserved: u64,
    /// The most that was reserved at any time.
    pub peak_reserved: u64,
    /// The most that can be reserved, if there is a limit.
    pub reservable_limit: Option<u64>,
    /// The largest free block.
    pub largest_free_block: u64,
}
