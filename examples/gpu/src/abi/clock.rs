//! When the card ran the commands of a batch.

use super::card::Gpu;
use ash::vk;
use se_plugin::{Result, profiler};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn positive(nanoseconds: i64) -> u64 {
    u64::try_from(nanoseconds).unwrap_or_default()
}

/// A command that ran.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// Nanoseconds since the Unix epoch.
    pub(crate) start: u64,
    pub(crate) duration: Duration,
}

/// Timestamps of a batch: one at its begin, and one behind each command. Commands run one after the other.
pub(super) struct Clock {
    gpu: Arc<Gpu>,
    queries: vk::QueryPool,
    names: Vec<&'static str>,
    commands: usize,
    /// When the batch was sent: nanoseconds since the Unix epoch.
    sent: i64,
}

impl Clock {
    /// For so many commands, or `None` if the card has no timestamps.
    ///
    /// # Errors
    /// Those of the driver.
    pub(super) fn new(gpu: &Arc<Gpu>, commands: usize) -> Result<Option<Self>> {
        if gpu.tick == 0.0 {
            return Ok(None);
        }
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(commands as u32 + 1);
        // SAFETY: the device lives, and `info` outlives the call.
        let queries = unsafe { gpu.device.create_query_pool(&info, None) }
            .map_err(|error| gpu.failed("create timestamps", error))?;
        Ok(Some(Self { gpu: Arc::clone(gpu), queries, names: Vec::new(), commands, sent: 0 }))
    }

    /// Begins a batch.
    ///
    /// # Safety
    /// `buffer` is open, of this clock's card, and the card is not at a batch with this clock.
    pub(super) unsafe fn begin(&mut self, buffer: vk::CommandBuffer) {
        self.names.clear();
        // SAFETY: as the caller says; there are so many queries.
        unsafe {
            let device = &self.gpu.device;
            device.cmd_reset_query_pool(buffer, self.queries, 0, self.commands as u32 + 1);
            self.stamp(buffer);
        }
    }

    /// Takes the time at which the command of this name, which was recorded last, is done.
    ///
    /// # Safety
    /// `buffer` is open, and is the one of the last [`begin`](Self::begin).
    pub(super) unsafe fn mark(&mut self, buffer: vk::CommandBuffer, name: &'static str) {
        if self.names.len() < self.commands {
            self.names.push(name);
            // SAFETY: as the caller says.
            unsafe { self.stamp(buffer) };
        }
    }

    /// # Safety
    /// As for [`mark`](Self::mark).
    unsafe fn stamp(&self, buffer: vk::CommandBuffer) {
        let (stage, at) = (vk::PipelineStageFlags::BOTTOM_OF_PIPE, self.names.len() as u32);
        // SAFETY: the buffer is open; the query exists, and was reset by `begin` in the same batch.
        unsafe { self.gpu.device.cmd_write_timestamp(buffer, stage, self.queries, at) };
    }

    /// The batch is sent next.
    pub(super) fn send(&mut self) {
        self.sent = i64::try_from(profiler::now()).unwrap_or(i64::MAX);
    }

    /// The commands of a batch that is done.
    ///
    /// # Errors
    /// Those of the driver.
    pub(super) fn read(&mut self) -> Result<Vec<Measured>> {
        let mut ticks = vec![0_u64; self.names.len() + 1];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: so many queries were written by the batch, which is done.
        unsafe { self.gpu.device.get_query_pool_results(self.queries, 0, &mut ticks, flags) }
            .map_err(|error| self.gpu.failed("read timestamps", error))?;
        let nanoseconds = |ticks: u64| (ticks as f64 * self.gpu.tick) as i64;
        let times: Vec<_> = ticks.iter().map(|&ticks| nanoseconds(ticks)).collect();
        // The card's clock begins anywhere. The batch began after it was sent, and was done before now; between both the
        // difference stays what it was.
        let (first, last) = (times[0], times[times.len() - 1]);
        let now = i64::try_from(profiler::now()).unwrap_or(i64::MAX);
        let (least, most) = (self.sent.saturating_sub(first), now.saturating_sub(last));
        let offset = self.gpu.offset.load(Ordering::Relaxed).max(least).min(most);
        self.gpu.offset.store(offset, Ordering::Relaxed);
        let measured = self.names.drain(..).zip(times.windows(2)).map(|(name, ends)| Measured {
            name,
            start: positive(ends[0].saturating_add(offset)),
            duration: Duration::from_nanos(positive(ends[1].saturating_sub(ends[0]))),
        });
        Ok(measured.collect())
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        if self.gpu.check_process().is_err() || self.gpu.is_lost() {
            return;
        }
        // SAFETY: a batch waits before it drops its clock.
        unsafe { self.gpu.device.destroy_query_pool(self.queries, None) };
    }
}
