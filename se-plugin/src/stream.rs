//! Streams and events.

use crate::abi::host_callback::HostCallback;
use crate::abi::host_ptr::{HostSource, HostTarget};
use crate::memory::DevicePtr;
use tf_plugin_core::Result;

/// A queue of work for a device. It runs in order, and several threads use it at once.
///
/// "Enqueues" means that the work runs when the queue reaches it, before the call returns or after. Its
/// memory stays valid until an event that is recorded after it is complete.
///
/// # Errors
/// An error of a method means that the work could not be enqueued. Where TensorFlow handles errors, it
/// raises this one. Where TensorFlow would abort (up to 2.16) or ignore it, the error is sticky: every
/// later op on the device raises it. Work that fails later completes its token ([`HostSource`],
/// [`HostTarget`]) with an error, or is reported by [`status`](Self::status) and by
/// [`Device::synchronize`](crate::Device::synchronize).
pub trait Stream: Sized + Send + Sync + 'static {
    /// The events of the device.
    type Event: Event;

    /// Enqueues a copy of all of `source` to the device.
    ///
    /// # Errors
    /// See [`Stream`].
    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()>;

    /// Enqueues a copy that fills all of `target` from the device.
    ///
    /// # Errors
    /// See [`Stream`].
    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()>;

    /// Enqueues a copy of `bytes`, never 0, within the device, or between two devices of the platform.
    /// The ranges do not overlap.
    ///
    /// # Errors
    /// See [`Stream`].
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()>;

    /// Enqueues filling `bytes`, never 0, with a pattern.
    ///
    /// # Errors
    /// See [`Stream`].
    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()>;

    /// Makes later work of this stream wait for the work that is in `other` now, not for later work.
    /// The two can be the same stream. TensorFlow's C API calls this `create_stream_dependency`.
    ///
    /// # Errors
    /// See [`Stream`].
    fn wait_stream(&self, other: &Self) -> Result<()>;

    /// Records an event after the work that is in the stream now. It may have been recorded before, in any
    /// stream: only the latest record counts.
    ///
    /// # Errors
    /// Any. The SDK then waits for the stream, and the error is sticky.
    fn record_event(&self, event: &Self::Event) -> Result<()>;

    /// Enqueues a wait: later work of this stream waits for the latest record of an event, and the caller does not.
    /// [`Event::wait`] blocks the caller instead. TensorFlow's C API calls this `wait_for_event`.
    ///
    /// # Errors
    /// See [`Stream`].
    fn wait_event(&self, event: &Self::Event) -> Result<()>;

    /// Enqueues a host callback: when the stream reaches it, the device calls [`HostCallback::complete`].
    ///
    /// - **Order:** all earlier work of this stream is done, and its earlier callbacks have returned. Later work of the
    ///   stream, the events recorded behind the callback, [`synchronize`](Self::synchronize) and
    ///   [`Device::synchronize`](crate::Device::synchronize) wait until `complete` has returned. Other streams do not wait.
    /// - **Thread:** any thread, such as one of the driver's, but not the one that calls `host_callback`: it may hold locks
    ///   that the callback takes.
    /// - **Blocking:** `complete` may block and may take long, so call it without a lock of the device. Where the driver's
    ///   threads serve all streams, as for OpenCL's event callbacks, call it on a thread of the stream's own, and make later
    ///   work wait for that thread, for example with a user event.
    /// - **Calls of the device:** the callback may allocate, free, and enqueue work, into this stream too. Drivers that do
    ///   not allow calls from their callbacks, as CUDA for `cuLaunchHostFunc`, need a thread of the stream's own as well.
    ///   A callback that waits for work behind itself waits forever.
    ///
    /// TensorFlow's C++ classes enqueue callbacks; no Python program is known to.
    ///
    /// # Errors
    /// See [`Stream`]. Dropping the callback makes the call with the error `CANCELLED`.
    fn host_callback(&self, callback: HostCallback) -> Result<()>;

    /// Waits for the current work.
    ///
    /// # Errors
    /// Those of the work.
    fn synchronize(&self) -> Result<()>;

    /// Returns whether the stream has failed, without waiting for it. OK by default.
    ///
    /// # Errors
    /// The failure of the stream.
    fn status(&self) -> Result<()> {
        Ok(())
    }
}

/// The pattern of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Zeros.
    Zero,
    /// A byte.
    Byte(u8),
    /// Four bytes in native byte order. Size and address of the range are multiples of 4.
    Word(u32),
}

impl Pattern {
    /// Returns the pattern as four bytes in native byte order.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 4] {
        match self {
            Self::Zero => [0; 4],
            Self::Byte(byte) => [byte; 4],
            Self::Word(word) => word.to_ne_bytes(),
        }
    }

    /// Fills a slice with the pattern.
    pub fn fill(self, target: &mut [u8]) {
        match self {
            Self::Zero => target.fill(0),
            Self::Byte(byte) => target.fill(byte),
            Self::Word(word) => {
                let bytes = word.to_ne_bytes();
                let (words, rest) = target.as_chunks_mut();
                words.fill(bytes);
                rest.copy_from_slice(&bytes[..rest.len()]);
            }
        }
    }
}

/// A point in a stream that can be waited for.
pub trait Event: Send + Sync + 'static {
    /// Returns the state of the latest record, without waiting for it. TensorFlow polls about every 10 µs.
    ///
    /// # Errors
    /// Any. The SDK then waits for the stream, and the error is sticky: TensorFlow would abort.
    fn status(&self) -> Result<EventStatus>;

    /// Blocks the caller until the latest record is complete (`block_host_for_event` in TensorFlow's C API).
    /// [`Stream::wait_event`] lets a stream wait instead.
    ///
    /// # Errors
    /// Any; TensorFlow's caller gets it.
    fn wait(&self) -> Result<()>;
}

/// The options of a stream that TensorFlow creates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The priority, as TensorFlow passes it; `None` for the default.
    pub priority: Option<i32>,
}

/// The state of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStatus {
    /// The work before the event is not done.
    Pending,
    /// The work before the event is done, or the event was never recorded.
    Complete,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fill_ranges_of_any_length() {
        for len in [0, 1, 3, 4, 7, 64] {
            for (pattern, expected) in [
                (Pattern::Zero, [0; 4]),
                (Pattern::Byte(7), [7; 4]),
                (Pattern::Word(u32::from_ne_bytes([1, 2, 3, 4])), [1, 2, 3, 4]),
            ] {
                let mut target = vec![0xee; len];
                pattern.fill(&mut target);
                let expected: Vec<u8> = expected.into_iter().cycle().take(len).collect();
                assert_eq!(target, expected, "{pattern:?} on {len} bytes");
            }
        }
    }
}
