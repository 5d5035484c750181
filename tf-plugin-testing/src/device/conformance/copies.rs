//! Copies and fills.

use super::run::{Run, Step, content};
use se_plugin::Pattern;

/// A way to copy, by its callback.
#[allow(non_camel_case_types, reason = "the names of the header")]
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    memcpy_htod,
    memcpy_dtoh,
    memcpy_dtod,
    sync_memcpy_htod,
    sync_memcpy_dtoh,
    sync_memcpy_dtod,
}

/// How many bytes before and behind those of an operation are checked to stay the same.
const AROUND: usize = 512;

/// Copies `bytes` in one way, `offset` bytes behind where TensorFlow would, and checks the bytes around them, too.
pub(super) fn copy(run: &mut Run<'_>, way: Way, bytes: usize, offset: usize) -> Step {
    let there = content(bytes, 3);
    let len = bytes as u64;
    let start = AROUND + offset;
    let around = vec![0xa5; bytes + 2 * AROUND + offset];
    let mut wanted = around.clone();
    wanted[start..][..bytes].copy_from_slice(&there);
    let stream = run.stream()?;
    if let Way::memcpy_dtoh | Way::sync_memcpy_dtoh = way {
        let source = run.filled(&wanted)?;
        let mut back = around.clone();
        let part = &mut back[start..][..bytes];
        let copied = match way {
            Way::memcpy_dtoh => stream.copy_to_host(part, source.at(start)),
            _ => run.device.copy_to_host(part, source.at(start)),
        };
        run.ok(format_args!("`{way:?}` of {bytes} bytes"), copied)?;
        run.equal(format_args!("the host's memory after `{way:?}`"), &back, &wanted);
        let unchanged = run.read(&source)?;
        run.equal(format_args!("the source after `{way:?}`"), &unchanged, &wanted);
        return Ok(());
    }
    let target = run.filled(&around)?;
    // The source is a part of a region, too.
    let mut whole = vec![0x77; offset];
    whole.extend(&there);
    let source = run.filled(&whole)?;
    let copied = match way {
        Way::memcpy_htod => stream.copy_to_device(target.at(start), &there),
        Way::memcpy_dtod => stream
            .copy_on_device(target.at(start), source.at(offset), len)
            .and_then(|()| stream.synchronize()),
        Way::sync_memcpy_htod => run.device.copy_to_device(target.at(start), &there),
        _ => run.device.copy_on_device(target.at(start), source.at(offset), len),
    };
    run.ok(format_args!("`{way:?}` of {bytes} bytes"), copied)?;
    let back = run.read(&target)?;
    run.equal(format_args!("the target and what is around it after `{way:?}`"), &back, &wanted);
    let unchanged = run.read(&source)?;
    run.equal(format_args!("the source after `{way:?}`"), &unchanged, &whole);
    Ok(())
}

/// Fills `bytes` with a pattern and checks the bytes around them, too.
pub(super) fn fill(run: &mut Run<'_>, pattern: Pattern, bytes: usize) -> Step {
    let around = vec![0xa5; bytes + 2 * AROUND];
    let target = run.filled(&around)?;
    let mut wanted = around;
    pattern.fill(&mut wanted[AROUND..][..bytes]);
    let stream = run.stream()?;
    run.ok(
        format_args!("filling {bytes} bytes with {pattern:?}"),
        stream.fill(target.at(AROUND), pattern, bytes as u64),
    )?;
    run.ok("`block_host_until_done`", stream.synchronize())?;
    let back = run.read(&target)?;
    run.equal(format_args!("{bytes} bytes filled with {pattern:?}"), &back, &wanted);
    Ok(())
}
