//! One device.

use crate::abi::host_buf::HostBuf;
use crate::abi::host_memory::HostAllocator;
use crate::memory::DevicePtr;
use crate::stream::{Event, Stream, StreamOptions};
use crate::timer::{HostTimer, Timer};
use tf_plugin_core::Result;

/// One device: its memory, and where its streams and events come from.
pub trait Device: Send + Sync + 'static {
    /// Queues of work.
    type Stream: Stream<Event = Self::Event>;
    /// Points in the queues.
    type Event: Event;

    /// Allocates `bytes` of device memory, never 0, at an address that is a multiple of 256.
    ///
    /// Where TensorFlow divides regions ([`USE_BFC_ALLOCATOR`](crate::Platform::USE_BFC_ALLOCATOR)) and requests one after
    /// the other ([`FORCE_MEMORY_GROWTH`](crate::Platform::FORCE_MEMORY_GROWTH)) the first request is the SDK's own: up to
    /// 1 MiB, and a 64th of what is free, for small tensors after the memory is used up.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is not enough left: TensorFlow asks again for less, or raises it.
    fn allocate(&self, bytes: u64) -> Result<DevicePtr>;

    /// Frees what [`allocate`](Self::allocate) answered. The device knows the size.
    ///
    /// # Errors
    /// Are logged.
    fn deallocate(&self, memory: DevicePtr) -> Result<()>;

    /// How much memory there is. TensorFlow derives from it how much it will take. Asked first when the
    /// device is opened.
    ///
    /// # Errors
    /// When the device is opened: as for [`Platform::open`](crate::Platform::open). Later, the SDK logs
    /// them and answers what it was told before.
    fn memory_usage(&self) -> Result<MemoryUsage>;

    /// Makes a stream. TensorFlow makes four for each device, of which it does not use all.
    ///
    /// # Errors
    /// Leave the device without the stream, and so of no use: it reports them from then on. Whatever streams
    /// need is better reserved when the device is opened.
    fn create_stream(&self) -> Result<Self::Stream>;

    /// Makes a stream of a certain priority. By default it is one of [`create_stream`](Self::create_stream): a device
    /// whose streams are all alike need not know of priorities.
    ///
    /// TensorFlow calls this from 2.22 on. Older releases call `create_stream`.
    ///
    /// # Errors
    /// As for [`create_stream`](Self::create_stream).
    fn create_stream_with_options(&self, options: &StreamOptions) -> Result<Self::Stream> {
        let _ = options;
        self.create_stream()
    }

    /// Makes an event, complete as long as it is not recorded.
    ///
    /// # Errors
    /// The SDK then waits for the stream wherever the event would be recorded.
    fn create_event(&self) -> Result<Self::Event>;

    /// Copies from the host before it returns, in no order with any stream.
    ///
    /// # Errors
    /// Become those of TensorFlow's caller.
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()>;

    /// Fills all of `target` from the device before it returns, in no order with any stream.
    ///
    /// # Errors
    /// Become those of TensorFlow's caller.
    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()>;

    /// Copies `bytes` within the device before it returns, in no order with any stream.
    ///
    /// # Errors
    /// Become those of TensorFlow's caller.
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()>;

    /// Waits for the present work of all streams. Runs whenever Python fetches a value.
    ///
    /// # Errors
    /// Those of the work since: this is where they become an error in Python.
    fn synchronize(&self) -> Result<()>;

    /// What the allocator has done so far; by default nothing is known.
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        None
    }

    /// Host memory that the device can copy fast from and to, if there is something better than ordinary
    /// memory.
    fn host_allocator(&self) -> Option<&dyn HostAllocator> {
        None
    }

    /// Makes a stopwatch. By default it is one that measures when the stream gets to its start and to its
    /// end.
    ///
    /// # Errors
    /// Become those of TensorFlow's caller. Only TensorFlow 2.12 and 2.13 use timers.
    fn create_timer(&self) -> Result<Box<dyn Timer<Self::Stream>>> {
        Ok(Box::new(HostTimer::default()))
    }

    /// Name of the hardware; a text without NUL. TensorFlow shows it nowhere.
    fn hardware_name(&self) -> Option<String> {
        None
    }

    /// Name of the vendor; a text without NUL. TensorFlow shows it nowhere.
    fn vendor(&self) -> Option<String> {
        None
    }

    /// PCI address, as in `0000:00:02.1`. TensorFlow shows it nowhere.
    fn pci_bus_id(&self) -> Option<String> {
        None
    }

    /// The NUMA node that the device is attached to.
    fn numa_node(&self) -> Option<u16> {
        None
    }

    /// Bandwidth of the device's memory in bytes a second.
    fn memory_bandwidth(&self) -> Option<u64> {
        None
    }

    /// Estimated floating-point operations a nanosecond.
    fn gflops(&self) -> Option<f64> {
        None
    }
}

/// How much memory a device has, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Free now. TensorFlow takes what is free when the device starts, except for a reserve.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// What an allocator has done so far; sizes are in bytes.
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
