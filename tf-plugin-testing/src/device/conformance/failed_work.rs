//! Work that fails after it was enqueued, which only the author can provoke.

use super::run::{Step, failed, lock, turn_of};
use crate::abi::exit_report::Running;
use crate::deviation::Deviation;
use crate::outcome::Outcome;
use se_plugin::{Device, Event as _, EventStatus, Platform, Stream};
use std::time::{Duration, Instant};
use tf_plugin_core::Result;

/// Checks that the first device of a platform reports work that fails after it was enqueued. `fail` enqueues such work, for
/// example a kernel that ends with an error.
///
/// Such a device must complete the events behind the work, since TensorFlow waits for them, and return the failure from
/// [`Stream::status`] and [`Device::synchronize`]. Otherwise programs go on with wrong values.
///
/// ```no_run
/// # use se_plugin::host::{HostDevice, HostMemory};
/// # use se_plugin::prelude::*;
/// # struct My;
/// # impl Platform for My {
/// #     const NAME: &'static str = "MY";
/// #     const TYPE: &'static str = "MY";
/// #     type Device = HostDevice;
/// #     fn new() -> Result<Self> { Ok(Self) }
/// #     fn device_count(&self) -> Result<usize> { Ok(1) }
/// #     fn open(&self, _: usize) -> Result<HostDevice> { Ok(HostDevice::new(HostMemory::new(1 << 20)?)) }
/// # }
/// use tf_plugin_testing::device::{Outcome, failed_work};
///
/// #[test]
/// fn failures_are_reported() {
///     let outcome = failed_work::<My>(|stream| {
///         stream.launch("a bad kernel", [], [], |[]: [&[u8]; 0], []: [&mut [u8]; 0]| Err(Error::internal("it fails")))
///     });
///     assert_eq!(outcome, Outcome::Passed);
/// }
/// ```
#[must_use]
pub fn failed_work<P: Platform>(
    fail: impl FnOnce(&<P::Device as Device>::Stream) -> Result<()>,
) -> Outcome {
    // As for the cases, no two threads open a driver, and a crash is named.
    let turn = turn_of::<P>();
    let mut left = lock(&turn);
    let _running = Running::new("failed_work");
    *left = None;
    let opened = P::new().and_then(|platform| match platform.device_count()? {
        0 => Ok(None),
        _ => Ok(Some((platform.open(0)?, platform))),
    });
    match opened {
        Ok(Some((device, _platform))) => {
            let mut deviations = Vec::new();
            let outcome = check(&device, fail, &mut deviations);
            Outcome::of(deviations, outcome, [])
        }
        Ok(None) => Outcome::Skipped("this machine has no device of the platform".into()),
        Err(error) => failed(format!("the device cannot be opened: {error:#}")),
    }
}

fn check<D: Device>(
    device: &D,
    fail: impl FnOnce(&D::Stream) -> Result<()>,
    deviations: &mut Vec<Deviation>,
) -> Step {
    let must = |what, error| Deviation::of_error(what, "OK", &error);
    let stream = device.create_stream().map_err(|error| must("`create_stream`", error))?;
    let event = device.create_event().map_err(|error| must("`create_event`", error))?;
    fail(&stream).map_err(|error| must("enqueuing work that will fail", error))?;
    // The failure may be there already, and refuse this.
    if stream.record_event(&event).is_ok() {
        let start = Instant::now();
        while matches!(event.status(), Ok(EventStatus::Pending)) {
            if start.elapsed() > Duration::from_secs(20) {
                return Err(Deviation::new(
                    "an event behind failed work is still pending after 20 s",
                )
                .into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    for (what, result) in [
        ("`Device::synchronize` after work has failed", device.synchronize()),
        ("`Stream::status` after work has failed", stream.status()),
    ] {
        if result.is_ok() {
            deviations.push(Deviation::new(what).wanted("its error".into()).got("OK".into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{cases, run_case};
    use super::*;
    use se_plugin::host::{HostDevice, HostMemory};
    use se_plugin::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A driver that counts how often it is open.
    struct Driver;

    static OPEN: AtomicUsize = AtomicUsize::new(0);

    impl Platform for Driver {
        const NAME: &'static str = "DRIVER";
        const TYPE: &'static str = "DRIVER";
        type Device = HostDevice;

        fn new() -> Result<Self> {
            OPEN.fetch_add(1, Ordering::SeqCst);
            Ok(Self)
        }
        fn device_count(&self) -> Result<usize> {
            Ok(1)
        }
        fn open(&self, _: usize) -> Result<HostDevice> {
            Ok(HostDevice::new(HostMemory::new(1 << 20)?))
        }
    }

    impl Drop for Driver {
        fn drop(&mut self) {
            OPEN.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_driver_is_open_once_beside_the_cases() {
        let limit = Duration::from_secs(60);
        assert_eq!(run_case::<Driver>(&cases::all_devices_open, limit), Outcome::Passed);
        let mut open = 0;
        let outcome = failed_work::<Driver>(|stream| {
            open = OPEN.load(Ordering::SeqCst);
            let turn = turn_of::<Driver>();
            assert!(turn.try_lock().is_err(), "a case may run");
            stream.launch("a bad kernel", [], [], |[]: [&[u8]; 0], []: [&mut [u8]; 0]| {
                Err(Error::internal("requested"))
            })
        });
        assert_eq!((open, outcome), (1, Outcome::Passed));
    }
}
