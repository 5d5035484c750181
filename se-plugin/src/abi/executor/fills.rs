//! Fills.

use super::callback::{Argument, Target, callbacks};
use crate::abi::state::{DeviceState, StreamState};
use crate::device::Device;
use crate::stream::{Pattern, Stream as _};
use tf_plugin_core::__private::boundary::catch;
use tf_plugin_core::{Error, Result, ensure};

/// Implements the three fills.
fn fill<D: Device>(
    op: &'static str,
    device: &DeviceState<D>,
    stream: &StreamState<D>,
    target: Target,
    pattern: Pattern,
    size: u64,
) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    ensure!(
        !matches!(pattern, Pattern::Word(_)) || size.is_multiple_of(4),
        Error::invalid_argument(format!("{size} bytes are not a multiple of a pattern of 4"))
    );
    let target = target.get()?;
    catch(op, || stream.author()?.fill(target, pattern, size)).inspect_err(|error| {
        // TensorFlow ignores the status and continues with the memory as it is. If `enqueue` returns no
        // error to the host, it keeps this one.
        if device.takes_errors {
            stream.health().note(op, error);
        }
    })
}

callbacks! {
    enqueue fn mem_zero(device, stream, target: Target, size: u64) {
        fill("mem_zero", device, stream, target, Pattern::Zero, size)
    }

    enqueue fn memset(device, stream, target: Target, pattern: u8, size: u64) {
        fill("memset", device, stream, target, Pattern::Byte(pattern), size)
    }

    enqueue fn memset32(device, stream, target: Target, pattern: u32, size: u64) {
        fill("memset32", device, stream, target, Pattern::Word(pattern), size)
    }
}
