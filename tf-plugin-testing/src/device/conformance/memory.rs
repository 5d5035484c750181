//! Allocating.

use super::run::{Block, Run, Step, Stop, content, needs};
use crate::deviation::Deviation;

/// TensorFlow divides the memory that it gets at multiples of this.
const ALIGNMENT: u64 = 256;

/// Checks memory of this length: its address, and that it keeps its content.
pub(super) fn of(run: &mut Run<'_>, bytes: usize) -> Step {
    let block = run.allocate(bytes)?;
    let address = block.start().address();
    run.that(
        format_args!("{address:#x} is not a multiple of {ALIGNMENT}"),
        address.is_multiple_of(ALIGNMENT),
    );
    drop(block);
    let content = content(bytes, 1);
    let block = run.filled(&content)?;
    let back = run.read(&block)?;
    run.equal(format_args!("{bytes} bytes of memory"), &back, &content);
    Ok(())
}

pub(super) fn allocations_do_not_overlap(run: &mut Run<'_>) -> Step {
    let lengths = [1, 255, 256, 257, 4096, 10_000, 65_536, 3];
    let mut blocks = Vec::new();
    for round in 0..8 {
        for len in lengths {
            blocks.push(run.allocate(len + round)?);
        }
    }
    let mut ranges: Vec<_> =
        blocks.iter().map(|block| (block.start().address(), block.len as u64)).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let ((one, len), (other, _)) = (pair[0], pair[1]);
        if one + len > other {
            let what = format!("{len} bytes at {one:#x} and the memory at {other:#x} overlap");
            run.deviation(Deviation::new(what));
            return Ok(());
        }
    }
    Ok(())
}

pub(super) fn allocations_keep_their_content(run: &mut Run<'_>) -> Step {
    let contents: Vec<_> =
        (0..32).map(|salt| content(1000 * usize::from(salt) + 1, salt)).collect();
    let mut blocks: Vec<Option<Block<'_>>> = Vec::new();
    for content in &contents {
        blocks.push(Some(run.filled(content)?));
    }
    // Other memory is freed and allocated meanwhile.
    for at in (0..blocks.len()).step_by(3) {
        blocks[at] = None;
    }
    for len in [1, 5000, 100_000] {
        drop(run.filled(&content(len, 0xff))?);
    }
    for (block, content) in blocks.iter().zip(&contents) {
        if let Some(block) = block {
            let back = run.read(block)?;
            run.equal("memory while other memory is allocated and freed", &back, content);
        }
    }
    Ok(())
}

pub(super) fn too_much_is_refused(run: &mut Run<'_>) -> Step {
    let [_, total] = usage(run)?;
    for bytes in [total.saturating_mul(2), 1 << 60, u64::MAX, u64::MAX - 255] {
        if let Some(memory) = run.device.allocate(bytes) {
            run.device.deallocate(memory);
            let what = format!("`allocate` of {bytes} bytes, of {total} that there are");
            run.deviation(Deviation::new(what).wanted("nothing".into()).got("memory".into()));
        }
    }
    // The device still works.
    of(run, 4096)?;
    run.ok("`synchronize_all_activity` after memory was refused", run.device.synchronize())
}

/// Returns how many bytes are free, and how many there are.
fn usage(run: &Run<'_>) -> Step<[u64; 2]> {
    let Some(usage) = run.device.memory_usage() else {
        return Err(Stop::skip("the device does not know how much memory it has"));
    };
    let wrong = |_| Deviation::new(format_args!("`device_memory_usage` gives {usage:?} bytes"));
    let bytes = |bytes| u64::try_from(bytes).map_err(wrong);
    Ok([bytes(usage[0])?, bytes(usage[1])?])
}

/// Returns how many bytes are free, and how many of them a test may take.
fn share(run: &Run<'_>, part: u64) -> Step<(u64, usize)> {
    let [free, _] = usage(run)?;
    Ok((free, (free / part).min(256 << 20) as usize))
}

pub(super) fn freed_memory_comes_back(run: &mut Run<'_>) -> Step {
    let (free, bytes) = share(run, 4)?;
    let rounds = free / bytes.max(1) as u64 + 8;
    needs(rounds <= 10_000, "the device has more memory than a test can use up")?;
    for round in 0..rounds {
        let Some(memory) = run.device.allocate(bytes as u64) else {
            let what = format!("{bytes} bytes were allocated and freed {round} times");
            run.deviation(Deviation::new(what).wanted("memory".into()).got("none".into()));
            return Ok(());
        };
        run.device.deallocate(memory);
    }
    Ok(())
}

pub(super) fn usage_counts_allocations(run: &mut Run<'_>) -> Step {
    // On the first allocation the SDK sets memory aside.
    drop(run.allocate(256)?);
    let (before, bytes) = share(run, 8)?;
    let block = run.allocate(bytes)?;
    let (with, _) = share(run, 8)?;
    drop(block);
    needs(with != before, "the device does not count what is allocated")?;
    run.that(format_args!("{before} bytes were free and now {with}"), with < before);
    run.ok("`synchronize_all_activity`", run.device.synchronize())?;
    let (after, _) = share(run, 8)?;
    run.that(
        format_args!("{before} bytes were free, and {after} after {bytes} were freed again"),
        after >= before,
    );
    Ok(())
}

/// Checks parts of a region. TensorFlow divides regions: most addresses that it passes are inside one.
pub(super) fn parts_of_a_region(run: &mut Run<'_>) -> Step {
    const PART: usize = 768;
    let whole = run.filled(&[0xee; 16 * PART])?;
    let mut wanted = Vec::new();
    for part in 0..16 {
        let content = content(PART, part as u8);
        run.ok(
            "`sync_memcpy_htod` to a part of a region",
            run.device.copy_to_device(whole.at(part * PART), &content),
        )?;
        wanted.extend(content);
    }
    let back = run.read(&whole)?;
    run.equal("a region that was written in parts", &back, &wanted);
    for part in [0, 7, 15] {
        let mut back = vec![0; PART];
        run.ok(
            "`sync_memcpy_dtoh` from a part of a region",
            run.device.copy_to_host(&mut back, whole.at(part * PART)),
        )?;
        run.equal("a part of a region", &back, &wanted[part * PART..][..PART]);
    }
    Ok(())
}

pub(super) fn devices_have_their_own_addresses(run: &mut Run<'_>) -> Step {
    let count = run.ok("`get_device_count`", run.host.device_count())?;
    needs(count > 1, "the platform has one device")?;
    let mut all = Vec::new();
    let mut others = Vec::new();
    for ordinal in 1..count {
        let device = run.host.device(ordinal as i32);
        others.push(run.ok(format_args!("`create_device` of {ordinal}"), device)?);
    }
    let devices: Vec<_> = std::iter::once(run.device).chain(&others).collect();
    // In turn, since the first memory of each may be anywhere.
    for len in [256, 4096, 1 << 20, 256] {
        for (ordinal, device) in devices.iter().enumerate() {
            if let Some(start) = device.allocate(len) {
                all.push((start, len, ordinal));
            }
        }
    }
    all.sort_unstable();
    for pair in all.windows(2) {
        let ((start, len, one), (next, _, other)) = (pair[0], pair[1]);
        if one != other && start.address() + len > next.address() {
            let what = format!(
                "{len} bytes of device {one} at {start:?} and memory of device {other} at {next:?} overlap"
            );
            run.deviation(Deviation::new(what));
            break;
        }
    }
    for (start, _, ordinal) in all {
        devices[ordinal].deallocate(start);
    }
    Ok(())
}

/// Checks host memory of this length.
pub(super) fn of_the_host(run: &mut Run<'_>, bytes: usize) -> Step {
    match run.device.host_memory(bytes) {
        0 => run.deviation(
            Deviation::new(format!("`host_memory_allocate` of {bytes} bytes"))
                .wanted("memory".into())
                .got("none".into()),
        ),
        alignment => run.that(
            format_args!("host memory is aligned to {alignment} bytes, not 64"),
            alignment >= 64,
        ),
    }
    Ok(())
}
