//! Copies and fills.

use super::run::{Outcome, Run, content};
use se_plugin::Pattern;

/// A way to copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    StreamToDevice,
    StreamToHost,
    StreamOnDevice,
    SyncToDevice,
    SyncToHost,
    SyncOnDevice,
}

impl Way {
    fn callback(self) -> &'static str {
        match self {
            Self::StreamToDevice => "memcpy_htod",
            Self::StreamToHost => "memcpy_dtoh",
            Self::StreamOnDevice => "memcpy_dtod",
            Self::SyncToDevice => "sync_memcpy_htod",
            Self::SyncToHost => "sync_memcpy_dtoh",
            Self::SyncOnDevice => "sync_memcpy_dtod",
        }
    }
}

/// What is around the bytes that an operation is about, and must stay.
const AROUND: usize = 512;

/// Copies `bytes` in one way, `offset` bytes behind where TensorFlow would, and looks also at what is around.
pub(super) fn copy(run: &mut Run<'_>, way: Way, bytes: usize, offset: usize) -> Outcome {
    let op = way.callback();
    let there = content(bytes, 3);
    let len = bytes as u64;
    let start = AROUND + offset;
    let around = vec![0xa5; bytes + 2 * AROUND + offset];
    let mut wanted = around.clone();
    wanted[start..][..bytes].copy_from_slice(&there);
    let stream = run.stream()?;
    if let Way::StreamToHost | Way::SyncToHost = way {
        let source = run.filled(&wanted)?;
        let mut back = around.clone();
        let part = &mut back[start..][..bytes];
        let copied = match way {
            Way::StreamToHost => stream.copy_to_host(part, source.at(start)),
            _ => run.device.copy_to_host(part, source.at(start)),
        };
        run.ok(format_args!("`{op}` of {bytes} bytes"), copied)?;
        run.equal(format_args!("the host's memory after `{op}`"), &back, &wanted);
        let unchanged = run.read(&source)?;
        run.equal(format_args!("the source after `{op}`"), &unchanged, &wanted);
        return Ok(());
    }
    let target = run.filled(&around)?;
    // The source is a part of a region, too.
    let mut whole = vec![0x77; offset];
    whole.extend(&there);
    let source = run.filled(&whole)?;
    let copied = match way {
        Way::StreamToDevice => stream.copy_to_device(target.at(start), &there),
        Way::StreamOnDevice => stream
            .copy_on_device(target.at(start), source.at(offset), len)
            .and_then(|()| stream.synchronize()),
        Way::SyncToDevice => run.device.copy_to_device(target.at(start), &there),
        _ => run.device.copy_on_device(target.at(start), source.at(offset), len),
    };
    run.ok(format_args!("`{op}` of {bytes} bytes"), copied)?;
    let back = run.read(&target)?;
    run.equal(format_args!("the target and what is around it after `{op}`"), &back, &wanted);
    let unchanged = run.read(&source)?;
    run.equal(format_args!("the source after `{op}`"), &unchanged, &whole);
    Ok(())
}

/// Fills `bytes` with a pattern and looks also at what is around.
pub(super) fn fill(run: &mut Run<'_>, pattern: Pattern, bytes: usize) -> Outcome {
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
