//! Calls from many threads, and at random.

use super::run::{Run, Step, content};
use crate::deviation::Deviation;
use crate::device::abi::{TestDevice, TestStream};
use crate::threads::on_threads;
use se_plugin::{DevicePtr, EventStatus, Pattern};
use std::thread;
use std::time::{Duration, Instant};
use tf_plugin_core::{Error, Result, ResultExt as _, ensure};

const THREADS: usize = 8;
const ROUNDS: u8 = 25;

/// Runs `body` on eight threads, and notes what goes wrong.
fn on_eight(run: &mut Run<'_>, body: impl Fn(u8) -> Result<()> + Sync) -> Step {
    let ends = on_threads(THREADS, |number| body(number as u8)).into_iter();
    let wrong: Vec<Error> = ends.filter_map(Result::err).collect();
    if let Some(first) = wrong.first() {
        let what = format!("{} of {THREADS} threads at a time go wrong", wrong.len());
        run.deviation(Deviation::new(what).because(format!("{first:#}")));
    }
    Ok(())
}

fn allocate(device: &TestDevice<'_>, bytes: u64) -> Result<DevicePtr> {
    let nothing = || Error::internal(format!("`allocate` of {bytes} bytes gives nothing"));
    device.allocate(bytes).ok_or_else(nothing)
}

/// Copies to new memory and back, `ROUNDS` times.
fn there_and_back(device: &TestDevice<'_>, stream: &TestStream<'_>, salt: u8) -> Result<()> {
    for round in 0..ROUNDS {
        let there = content(1000 + usize::from(round) * 97, salt ^ round);
        let len = there.len() as u64;
        let (one, other) = (allocate(device, len)?, allocate(device, len)?);
        let mut back = vec![0; there.len()];
        stream.copy_to_device(one, &there).context("memcpy_htod")?;
        stream.copy_on_device(other, one, len).context("memcpy_dtod")?;
        stream.copy_to_host(&mut back, other).context("memcpy_dtoh")?;
        ensure!(
            back == there,
            Error::data_loss(format!("{len} bytes are others after copies there and back"))
        );
        device.deallocate(one);
        device.deallocate(other);
    }
    Ok(())
}

pub(super) fn threads_with_their_own_streams(run: &mut Run<'_>) -> Step {
    let device = run.device;
    on_eight(run, |number| {
        let (stream, made) = device.stream();
        made.context("create_stream")?;
        there_and_back(device, &stream, number << 5)
    })
}

pub(super) fn threads_with_one_stream(run: &mut Run<'_>) -> Step {
    let device = run.device;
    let stream = run.stream()?;
    on_eight(run, |number| there_and_back(device, &stream, number << 5))
}

pub(super) fn threads_that_allocate(run: &mut Run<'_>) -> Step {
    let device = run.device;
    on_eight(run, |number| {
        for round in 0..ROUNDS {
            let there = content(300 + 100 * usize::from(round), number << 5);
            let memory = allocate(device, there.len() as u64)?;
            device.copy_to_device(memory, &there).context("sync_memcpy_htod")?;
            thread::yield_now();
            let mut back = vec![0; there.len()];
            device.copy_to_host(&mut back, memory).context("sync_memcpy_dtoh")?;
            device.deallocate(memory);
            ensure!(back == there, Error::data_loss("two threads have the same memory"));
        }
        Ok(())
    })
}

pub(super) fn threads_that_make_streams(run: &mut Run<'_>) -> Step {
    let device = run.device;
    on_eight(run, |_| {
        for _ in 0..ROUNDS {
            let (stream, made) = device.stream();
            made.context("create_stream")?;
            let event = device.event().context("create_event")?;
            stream.record_event(&event);
            drop(stream);
            let start = Instant::now();
            while event.status() == EventStatus::Pending {
                let is_late = start.elapsed() > Duration::from_secs(20);
                ensure!(!is_late, Error::internal("an event is still pending after 20 s"));
                thread::yield_now();
            }
        }
        Ok(())
    })
}

pub(super) fn threads_that_synchronize(run: &mut Run<'_>) -> Step {
    let device = run.device;
    on_eight(run, |number| {
        let (stream, made) = device.stream();
        made.context("create_stream")?;
        let memory = allocate(device, 1 << 16)?;
        for round in 0..ROUNDS {
            stream.fill(memory, Pattern::Byte(number ^ round), 1 << 16).context("memset")?;
            device.synchronize().context("synchronize_all_activity")?;
            let mut back = vec![0; 1 << 16];
            device.copy_to_host(&mut back, memory).context("sync_memcpy_dtoh")?;
            let waits = back.iter().all(|&byte| byte == number ^ round);
            let otherwise = "`synchronize_all_activity` does not wait for its caller's work";
            ensure!(waits, Error::data_loss(otherwise));
        }
        device.deallocate(memory);
        Ok(())
    })
}

pub(super) fn random_work(run: &mut Run<'_>) -> Step {
    for seed in 0..10 {
        random_work_from(run, seed)?;
        if !run.deviations.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs random work on three streams that wait for each other, and compares the memory with a model.
fn random_work_from(run: &mut Run<'_>, seed: u64) -> Step {
    const LEN: usize = 8192;
    let mut random = fastrand::Rng::with_seed(seed);
    let streams = [run.stream()?, run.stream()?, run.stream()?];
    let mut blocks = Vec::new();
    let mut model: Vec<Vec<u8>> = Vec::new();
    for salt in 0..4 {
        let there = content(LEN, salt);
        blocks.push(run.filled(&there)?);
        model.push(there);
    }
    let mut done = Vec::new();
    let mut last = 0;
    for step in 0..60_u32 {
        let now = random.usize(0..streams.len());
        let stream = &streams[now];
        if now != last {
            let result = if random.bool() {
                done.push(format!("{step}: stream {now} waits for stream {last}"));
                stream.wait_stream(&streams[last])
            } else {
                done.push(format!("{step}: stream {now} waits for an event of stream {last}"));
                let event = run.event()?;
                streams[last].record_event(&event);
                stream.wait_event(&event)
            };
            run.ok("waiting for another stream", result)?;
            last = now;
        }
        let (at, from) = (random.usize(0..4), random.usize(0..4));
        let start = random.usize(0..LEN / 4) * 4;
        let len = (random.usize(1..=(LEN - start) / 4)) * 4;
        let result = match random.u8(0..5) {
            0 => {
                let there = content(len, random.u8(..));
                done.push(format!("{step}: {len} bytes to {at} from {start} on"));
                model[at][start..][..len].copy_from_slice(&there);
                stream.copy_to_device(blocks[at].at(start), &there)
            }
            1 if at != from => {
                done.push(format!("{step}: {len} bytes from {from} to {at}, from {start} on"));
                let (source, target) = (model[from].clone(), &mut model[at]);
                target[start..][..len].copy_from_slice(&source[start..][..len]);
                stream.copy_on_device(blocks[at].at(start), blocks[from].at(start), len as u64)
            }
            2 => {
                let patterns =
                    [Pattern::Zero, Pattern::Byte(random.u8(..)), Pattern::Word(random.u32(..))];
                let pattern = patterns[random.usize(0..3)];
                done.push(format!("{step}: {len} bytes of {at} from {start} on are {pattern:?}"));
                pattern.fill(&mut model[at][start..][..len]);
                stream.fill(blocks[at].at(start), pattern, len as u64)
            }
            _ => {
                done.push(format!("{step}: {len} bytes back of {at} from {start} on"));
                let mut back = vec![0; len];
                let copied = stream.copy_to_host(&mut back, blocks[at].at(start));
                let wanted = &model[at][start..][..len];
                if copied.is_ok() && back != wanted {
                    let what = format!(
                        "random work with seed {seed} goes wrong: {len} bytes of block {at}"
                    );
                    let steps = done.join("; ");
                    run.equal(what, &back, wanted);
                    if let Some(last) = run.deviations.last_mut() {
                        let detail = last.detail.take().unwrap_or_default();
                        last.detail = Some(format!("{detail}; the steps: {steps}"));
                    }
                    return Ok(());
                }
                copied
            }
        };
        run.ok(format_args!("random work with seed {seed}, step {step}"), result)?;
    }
    run.ok("`synchronize_all_activity`", run.device.synchronize())
}
