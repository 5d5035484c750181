//! Loading a platform, and the descriptions of its devices.

use super::run::{Run, Step, Stop};
use crate::deviation::Deviation;

pub(super) fn every_callback(run: &mut Run<'_>) -> Step {
    let missing = run.host.null_members();
    run.that(
        format_args!(
            "callbacks are missing, each with its table and its offset there: {missing:?}"
        ),
        missing.is_empty(),
    );
    Ok(())
}

pub(super) fn device_count_is_the_same(run: &mut Run<'_>) -> Step {
    for _ in 0..3 {
        let count = run.ok("`get_device_count`", run.host.device_count())?;
        run.that("a device is open, and `get_device_count` says 0", count > 0);
    }
    Ok(())
}

pub(super) fn all_devices_open(run: &mut Run<'_>) -> Step {
    let count = run.ok("`get_device_count`", run.host.device_count())?;
    for ordinal in 0..count {
        let device = run.host.device(ordinal as i32);
        let device = run.ok(format_args!("`create_device` of {ordinal}"), device)?;
        run.ok(format_args!("`synchronize_all_activity` of {ordinal}"), device.synchronize())?;
    }
    Ok(())
}

pub(super) fn devices_open_again(run: &mut Run<'_>) -> Step {
    for _ in 0..3 {
        let device = run.ok("`create_device`", run.host.device(0))?;
        let memory = device.allocate(256);
        run.that("`allocate` of a device that was opened again", memory.is_some());
        if let Some(memory) = memory {
            device.deallocate(memory);
        }
    }
    Ok(())
}

pub(super) fn no_device_beyond_the_last(run: &mut Run<'_>) -> Step {
    let count = run.ok("`get_device_count`", run.host.device_count())?;
    for ordinal in [count as i32, -1] {
        run.fails(
            format_args!("`create_device` of {ordinal}, of {count} devices"),
            run.host.device(ordinal),
        );
    }
    Ok(())
}

fn text(run: &mut Run<'_>, index: usize, what: &str) -> Step {
    let Some(text) = run.device.description().into_iter().nth(index).flatten() else {
        return Err(Stop::skip("the device does not say it"));
    };
    run.that(format_args!("the {what} is empty"), !text.trim().is_empty());
    Ok(())
}

pub(super) fn hardware_name(run: &mut Run<'_>) -> Step {
    text(run, 0, "hardware name")
}

pub(super) fn vendor(run: &mut Run<'_>) -> Step {
    text(run, 1, "vendor")
}

pub(super) fn pci_bus_id(run: &mut Run<'_>) -> Step {
    let [.., id] = run.device.description();
    let Some(id) = id else { return Err(Stop::skip("the device has no PCI address")) };
    let shape = |byte: u8| if byte.is_ascii_hexdigit() { b'0' } else { byte };
    let shape: Vec<u8> = id.bytes().map(shape).collect();
    if shape != b"0000:00:00.0" {
        let deviation = Deviation::new("the PCI address").wanted("as in 0000:00:02.1".into());
        run.deviation(deviation.got(id));
    }
    Ok(())
}

pub(super) fn figures(run: &mut Run<'_>) -> Step {
    let (node, bandwidth, gflops) = run.device.figures();
    run.that(format_args!("the NUMA node is {node}"), node >= -1);
    run.that(format_args!("the bandwidth of the memory is {bandwidth}"), bandwidth >= -1);
    run.that(format_args!("{gflops} operations a nanosecond"), gflops.is_finite());
    Ok(())
}

pub(super) fn memory_usage(run: &mut Run<'_>) -> Step {
    // Before the first allocation the SDK does not count the memory that it will set aside.
    drop(run.allocate(256)?);
    let Some([free, total]) = run.device.memory_usage() else {
        run.deviation(Deviation::new("`device_memory_usage` does not know"));
        return Ok(());
    };
    run.that(format_args!("{free} bytes of {total} are free"), 0 <= free && free <= total);
    run.that("there is no memory", total > 0);
    Ok(())
}

pub(super) fn allocator_stats(run: &mut Run<'_>) -> Step {
    const BYTES: usize = 1 << 16;
    let size = tf_fs_sys::SP_ALLOCATORSTATS_STRUCT_SIZE;
    let Some(before) = run.device.allocator_stats(size) else {
        return Err(Stop::skip("the device has no statistics"));
    };
    let block = run.allocate(BYTES)?;
    let Some(with) = run.device.allocator_stats(size) else { return Ok(()) };
    drop(block);
    run.that("an allocation is not counted", with.num_allocs > before.num_allocs);
    run.that("more is in use than ever was", with.bytes_in_use <= with.peak_bytes_in_use);
    run.that(
        format_args!("{BYTES} bytes are not in use while they are allocated"),
        with.bytes_in_use >= before.bytes_in_use + BYTES as i64,
    );
    run.that(
        format_args!("the largest allocation is below {BYTES} bytes"),
        with.largest_alloc_size >= BYTES as i64,
    );
    Ok(())
}
