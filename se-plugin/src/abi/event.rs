//! Events.

use super::pending_copies::PendingCopies;
use super::recorded_stream::Recorded;
use super::state::{DeviceState, StreamState, weak};
use crate::device::Device;
use crate::stream::{Event as _, EventStatus, Stream as _};
use core::ptr::NonNull;
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Error, Result};

/// An event; `SP_Event` points to it.
pub(super) struct EventState<D: Device> {
    /// `None` if the author's event could not be created: then a record drains the stream instead.
    pub(super) event: Option<D::Event>,
    /// The copies before the latest record.
    pub(super) copies: PendingCopies,
    recorded: Recorded<StreamState<D>>,
}

impl<D: Device> EventState<D> {
    pub(super) fn new(event: Option<D::Event>) -> Self {
        let (copies, recorded) = Default::default();
        Self { event, copies, recorded }
    }

    /// Records the event. If that fails, the stream is drained, so that all work before the event is complete: the host
    /// ignores the status.
    ///
    /// # Safety
    /// `handle` is from `create_stream` of the same `D`, and not destroyed.
    #[inline]
    pub(super) unsafe fn record(&self, handle: NonNull<StreamState<D>>) -> Result<()> {
        const OP: &str = "record_event";
        // SAFETY: `handle` is from `create_stream` for this `D`, and `destroy_stream` has not freed it.
        let stream = unsafe { handle.as_ref() };
        let copies = stream.copies.open();
        let recorded = match &self.event {
            Some(event) => {
                boundary::catch(OP, || stream.author()?.record_event(event)).map_err(Some)
            }
            None => Err(None),
        };
        self.copies.set(copies);
        match recorded {
            // SAFETY: `handle` is a live handle from `create_stream`, so an `Arc<StreamState<D>>` owns it.
            Ok(()) => self.recorded.set(handle.addr().get(), || unsafe { weak(handle) }),
            Err(error) => self.drain(stream, error),
        }
        Ok(())
    }

    /// Drains the stream in place of a record that could not be made.
    #[cold]
    fn drain(&self, stream: &StreamState<D>, error: Option<Error>) {
        const OP: &str = "record_event";
        if let Some(error) = error {
            stream.health().note(OP, &error);
        }
        if let Err(error) = stream.drain(OP) {
            stream.health().note(OP, &error);
        }
        self.recorded.clear();
    }

    /// Returns the status of the latest record. It is never an error, which would abort the process.
    #[inline]
    pub(super) fn status(&self, device: &DeviceState<D>) -> EventStatus {
        const OP: &str = "get_event_status";
        if let Some(event) = &self.event
            && self.recorded.is_somewhere()
        {
            match boundary::catch(OP, || event.status()) {
                Ok(EventStatus::Pending) => return EventStatus::Pending,
                Ok(EventStatus::Complete) => {}
                Err(error) => self.wait_instead(device, error),
            }
        }
        if self.copies.is_done() { EventStatus::Complete } else { EventStatus::Pending }
    }

    /// Waits for the stream of an event that returned an error in place of its status.
    #[cold]
    fn wait_instead(&self, device: &DeviceState<D>, error: Error) {
        const OP: &str = "get_event_status";
        device.health.note(OP, &error);
        self.recorded.drain(|stream| {
            if let Err(error) = stream.drain(OP) {
                device.health.note(OP, &error);
            }
        });
    }

    /// Waits for the latest record.
    #[inline]
    pub(super) fn wait(&self) -> Result<()> {
        let result = match &self.event {
            Some(event) if self.recorded.is_somewhere() => {
                boundary::catch("block_host_for_event", || event.wait())
            }
            _ => Ok(()),
        };
        self.copies.wait();
        result
    }
}
