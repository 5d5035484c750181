//! The order that streams, events, callbacks and timers promise.

use super::run::{Block, Run, Step, content};
use crate::deviation::Deviation;
use crate::device::abi::{TestEvent, TestStream};
use se_plugin::{EventStatus, Pattern};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Enough work to notice an operation that does not wait.
const MUCH: usize = 1 << 20;
const TIMES: u8 = 8;

/// Keeps a stream busy: fills `block` several times, at last with `value`.
fn keep_busy(run: &mut Run<'_>, stream: &TestStream<'_>, block: &Block<'_>, value: u8) -> Step {
    for round in 0..TIMES {
        let byte = if round + 1 == TIMES { value } else { round ^ 0x80 };
        run.ok("`memset`", stream.fill(block.start(), Pattern::Byte(byte), block.len as u64))?;
    }
    Ok(())
}

/// Creates a stream that is busy with filling memory, at last with `value`.
fn busy<'h>(run: &mut Run<'h>, value: u8) -> Step<(TestStream<'h>, Block<'h>)> {
    let (stream, block) = (run.stream()?, run.allocate(MUCH)?);
    keep_busy(run, &stream, &block, value)?;
    Ok((stream, block))
}

/// Notes a deviation if not all bytes are `value`.
fn expect_all(run: &mut Run<'_>, what: &str, got: &[u8], value: u8) {
    let wrong = got.iter().filter(|&&byte| byte != value).count();
    if wrong > 0 {
        let deviation = Deviation::new(what).wanted(format!("{value:#04x} everywhere"));
        run.deviation(deviation.got(format!("{wrong} of {} bytes are others", got.len())));
    }
}

fn expect_block(run: &mut Run<'_>, what: &str, block: &Block<'_>, value: u8) -> Step {
    let back = run.read(block)?;
    expect_all(run, what, &back, value);
    Ok(())
}

pub(super) fn a_stream_works_in_order(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    let (one, other) = (run.allocate(MUCH)?, run.allocate(MUCH)?);
    let len = MUCH as u64;
    for value in 1..=20 {
        run.ok("`memset`", stream.fill(one.start(), Pattern::Byte(value), len))?;
        run.ok("`memcpy_dtod`", stream.copy_on_device(other.start(), one.start(), len))?;
        run.ok("`mem_zero`", stream.fill(one.start(), Pattern::Zero, len))?;
        let mut back = vec![0; MUCH];
        run.ok("`memcpy_dtoh`", stream.copy_to_host(&mut back, other.start()))?;
        expect_all(run, "a copy between two fills in one stream", &back, value);
    }
    Ok(())
}

pub(super) fn block_host_until_done_waits(run: &mut Run<'_>) -> Step {
    let (stream, block) = busy(run, 7)?;
    run.ok("`block_host_until_done`", stream.synchronize())?;
    expect_block(run, "memory after `block_host_until_done`", &block, 7)
}

pub(super) fn synchronize_waits_for_all_streams(run: &mut Run<'_>) -> Step {
    let mut streams = Vec::new();
    for value in 1..=4 {
        let (stream, block) = busy(run, value)?;
        streams.push((stream, block, value));
    }
    run.ok("`synchronize_all_activity`", run.device.synchronize())?;
    for (_, block, value) in &streams {
        expect_block(run, "memory of a stream after `synchronize_all_activity`", block, *value)?;
    }
    Ok(())
}

/// Checks that a stream copies what another stream writes, only after that one has written it.
fn behind(
    run: &mut Run<'_>,
    what: &str,
    wait: impl Fn(&mut Run<'_>, &TestStream<'_>, &TestStream<'_>) -> Step,
) -> Step {
    let (first, second) = (run.stream()?, run.stream()?);
    let (source, target) = (run.allocate(MUCH)?, run.allocate(MUCH)?);
    for value in 1..=3 {
        keep_busy(run, &first, &source, value)?;
        wait(run, &first, &second)?;
        run.ok(
            "`memcpy_dtod`",
            second.copy_on_device(target.start(), source.start(), MUCH as u64),
        )?;
        run.ok("`block_host_until_done`", second.synchronize())?;
        expect_block(run, what, &target, value)?;
    }
    run.ok("`synchronize_all_activity`", run.device.synchronize())
}

pub(super) fn a_stream_waits_for_another(run: &mut Run<'_>) -> Step {
    behind(run, "a copy behind `create_stream_dependency`", |run, first, second| {
        run.ok("`create_stream_dependency`", second.wait_stream(first))
    })
}

pub(super) fn a_stream_waits_for_an_event(run: &mut Run<'_>) -> Step {
    behind(run, "a copy behind `wait_for_event`", |run, first, second| {
        let event = run.event()?;
        first.record_event(&event);
        run.ok("`wait_for_event`", second.wait_event(&event))
    })
}

pub(super) fn a_stream_waits_for_a_chain(run: &mut Run<'_>) -> Step {
    let middle = run.stream()?;
    behind(run, "a copy behind a stream behind another", |run, first, second| {
        run.ok(
            "`create_stream_dependency`",
            middle.wait_stream(first).and_then(|()| second.wait_stream(&middle)),
        )
    })
}

pub(super) fn a_stream_that_only_waits_is_busy(run: &mut Run<'_>) -> Step {
    let (first, second, event) = (run.stream()?, run.stream()?, run.event()?);
    let block = run.allocate(MUCH)?;
    for value in 1..=3 {
        keep_busy(run, &first, &block, value)?;
        first.record_event(&event);
        run.ok("`create_stream_dependency`", second.wait_stream(&first))?;
        run.ok("`block_host_until_done`", second.synchronize())?;
        run.that(
            "a stream that waits is done before what it waits for",
            event.status() == EventStatus::Complete,
        );
    }
    Ok(())
}

pub(super) fn a_stream_waits_for_itself(run: &mut Run<'_>) -> Step {
    let event = run.event()?;
    let (stream, _block) = busy(run, 1)?;
    stream.record_event(&event);
    run.ok(
        "waiting for itself",
        stream.wait_stream(&stream).and_then(|()| stream.wait_event(&event)),
    )?;
    run.ok("`block_host_until_done`", stream.synchronize())
}

/// Checks that a stream does not wait for later work of the other one, which would be a deadlock.
pub(super) fn two_streams_wait_for_each_other(run: &mut Run<'_>) -> Step {
    let (first, second) = (run.stream()?, run.stream()?);
    run.ok(
        "`create_stream_dependency` in both directions",
        second.wait_stream(&first).and_then(|()| first.wait_stream(&second)),
    )?;
    run.ok("`block_host_until_done`", first.synchronize().and_then(|()| second.synchronize()))
}

pub(super) fn work_outlives_its_stream(run: &mut Run<'_>) -> Step {
    let (stream, block) = busy(run, 9)?;
    drop(stream);
    run.ok("`synchronize_all_activity`", run.device.synchronize())?;
    expect_block(run, "memory that a stream was to fill when it was destroyed", &block, 9)
}

pub(super) fn many_streams(run: &mut Run<'_>) -> Step {
    let block = run.filled(&content(64, 1))?;
    for _ in 0..200 {
        let stream = run.stream()?;
        let mut back = [0; 64];
        run.ok("`memcpy_dtoh` of a new stream", stream.copy_to_host(&mut back, block.start()))?;
        run.equal("what a new stream copies", &back, &content(64, 1));
    }
    Ok(())
}

pub(super) fn stream_status_is_good(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    run.ok("`get_stream_status` of a new stream", stream.status())?;
    let block = run.allocate(MUCH)?;
    keep_busy(run, &stream, &block, 1)?;
    run.ok("`get_stream_status` of a busy stream", stream.status())
}

// Events.

/// Waits for an event as TensorFlow does.
fn poll(event: &TestEvent<'_>) -> Step {
    let start = Instant::now();
    while event.status() == EventStatus::Pending {
        if start.elapsed() > Duration::from_secs(20) {
            return Err(Deviation::new("a recorded event is still pending after 20 s").into());
        }
        std::thread::sleep(Duration::from_micros(10));
    }
    Ok(())
}

pub(super) fn event_never_recorded(run: &mut Run<'_>) -> Step {
    let (stream, event) = (run.stream()?, run.event()?);
    run.that(
        "an event that was never recorded is pending",
        event.status() == EventStatus::Complete,
    );
    run.ok("`wait_for_event` of an event that was never recorded", stream.wait_event(&event))?;
    run.ok("`block_host_for_event` of an event that was never recorded", event.wait())?;
    run.ok("`block_host_until_done`", stream.synchronize())
}

/// Checks that everything written before an event is there when the event is complete.
fn complete_means_done(
    run: &mut Run<'_>,
    what: &str,
    wait: impl Fn(&mut Run<'_>, &TestEvent<'_>) -> Step,
) -> Step {
    let (stream, event) = (run.stream()?, run.event()?);
    let block = run.allocate(MUCH)?;
    // A later record replaces this one.
    stream.record_event(&event);
    for value in 1..=3 {
        keep_busy(run, &stream, &block, value)?;
        stream.record_event(&event);
        wait(run, &event)?;
        expect_block(run, what, &block, value)?;
    }
    Ok(())
}

pub(super) fn event_that_is_polled(run: &mut Run<'_>) -> Step {
    complete_means_done(run, "memory when an event behind the work is complete", |_, event| {
        poll(event)
    })
}

pub(super) fn event_that_is_waited_for(run: &mut Run<'_>) -> Step {
    complete_means_done(run, "memory after `block_host_for_event`", |run, event| {
        run.ok("`block_host_for_event`", event.wait())
    })
}

pub(super) fn event_is_complete_at_last(run: &mut Run<'_>) -> Step {
    let (stream, event) = (run.stream()?, run.event()?);
    for _ in 0..100 {
        stream.record_event(&event);
        poll(&event)?;
    }
    Ok(())
}

pub(super) fn event_moves_to_another_stream(run: &mut Run<'_>) -> Step {
    let (idle, event) = (run.stream()?, run.event()?);
    idle.record_event(&event);
    let (stream, block) = busy(run, 5)?;
    stream.record_event(&event);
    poll(&event)?;
    expect_block(run, "memory when an event is complete that moved to another stream", &block, 5)
}

pub(super) fn event_outlives_its_stream(run: &mut Run<'_>) -> Step {
    let event = run.event()?;
    let (stream, block) = busy(run, 3)?;
    stream.record_event(&event);
    drop(stream);
    poll(&event)?;
    expect_block(run, "memory when an event of a destroyed stream is complete", &block, 3)
}

pub(super) fn event_destroyed_while_pending(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    let block = run.allocate(MUCH)?;
    for _ in 0..20 {
        let event = run.event()?;
        keep_busy(run, &stream, &block, 3)?;
        stream.record_event(&event);
        drop(event);
    }
    run.ok("`block_host_until_done`", stream.synchronize())
}

pub(super) fn many_events(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    let mut events = Vec::new();
    for _ in 0..1000 {
        let event = run.event()?;
        stream.record_event(&event);
        events.push(event);
    }
    for event in &events {
        poll(event)?;
    }
    Ok(())
}

// Callbacks.

pub(super) fn callback_is_made_once(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    let mut all = Vec::new();
    for _ in 0..100 {
        all.push(run.ok("`host_callback`", stream.host_callback())?);
    }
    run.ok("`block_host_until_done`", stream.synchronize())?;
    for called in all {
        let codes: Vec<_> = called.try_iter().collect();
        if codes != [0] {
            let deviation = Deviation::new("the calls of a host callback, by their codes");
            run.deviation(deviation.wanted("[0]".into()).got(format!("{codes:?}")));
            return Ok(());
        }
    }
    Ok(())
}

pub(super) fn callback_is_made_in_order(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    let block = run.allocate(MUCH)?;
    let before = run.ok("`host_callback`", stream.host_callback())?;
    keep_busy(run, &stream, &block, 6)?;
    let behind = run.ok("`host_callback`", stream.host_callback())?;
    let code = behind.recv_timeout(Duration::from_secs(20));
    run.that(format_args!("a host callback ends with {code:?}"), code == Ok(0));
    run.that(
        "a host callback comes before one that was enqueued earlier",
        before.try_recv().is_ok(),
    );
    expect_block(run, "memory when a callback behind the work is made", &block, 6)
}

pub(super) fn callbacks_are_made_in_order(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    let (sender, order) = channel();
    for number in 0..20 {
        let sender = sender.clone();
        // The receiver lives.
        let note = move || sender.send(number).unwrap_or_default();
        run.ok("`host_callback`", stream.host_callback_that(note))?;
    }
    run.ok("`block_host_until_done`", stream.synchronize())?;
    let order: Vec<i32> = order.try_iter().collect();
    if order != Vec::from_iter(0..20) {
        let deviation = Deviation::new("the order of 20 host callbacks of one stream");
        run.deviation(deviation.wanted("0 to 19".into()).got(format!("{order:?}")));
    }
    Ok(())
}

pub(super) fn callback_is_made_on_another_thread(run: &mut Run<'_>) -> Step {
    let stream = run.stream()?;
    let (sender, thread) = channel();
    let note = move || sender.send(thread::current().id()).unwrap_or_default();
    run.ok("`host_callback`", stream.host_callback_that(note))?;
    // Without waiting for the stream, which may be what makes the call.
    let thread = thread.recv_timeout(Duration::from_secs(20));
    run.that("a host callback is not called within 20 s", thread.is_ok());
    run.that(
        "a host callback is called on the thread that enqueues it, which may hold locks that it needs",
        thread != Ok(thread::current().id()),
    );
    run.ok("`block_host_until_done`", stream.synchronize())
}

pub(super) fn work_waits_for_a_callback(run: &mut Run<'_>) -> Step {
    let (stream, event) = (run.stream()?, run.event()?);
    let block = run.allocate(MUCH)?;
    type Wait<'a> = &'a dyn Fn(&Run<'_>) -> Step;
    let all: [(&str, Wait<'_>); 3] = [
        ("an event behind it is complete", &|_| poll(&event)),
        ("`block_host_until_done` returns", &|run| {
            run.ok("`block_host_until_done`", stream.synchronize())
        }),
        ("`synchronize_all_activity` returns", &|run| {
            run.ok("`synchronize_all_activity`", run.device.synchronize())
        }),
    ];
    for (what, wait) in all {
        let has_returned = Arc::new(AtomicBool::new(false));
        let returns = Arc::clone(&has_returned);
        let slow = move || {
            thread::sleep(Duration::from_millis(20));
            returns.store(true, Ordering::Release);
        };
        run.ok("`host_callback`", stream.host_callback_that(slow))?;
        run.ok("`memset`", stream.fill(block.start(), Pattern::Byte(1), MUCH as u64))?;
        stream.record_event(&event);
        wait(run)?;
        let waited = has_returned.load(Ordering::Acquire);
        run.that(format_args!("{what} before a host callback returns"), waited);
    }
    Ok(())
}

// Timers.

pub(super) fn timer_measures(run: &mut Run<'_>) -> Step {
    let timer = run.ok("`create_timer`", run.device.timer())?;
    run.that(
        format_args!("a timer that was never started is at {:?}", timer.elapsed()),
        timer.elapsed() == Duration::ZERO,
    );
    let stream = run.stream()?;
    let pause = Duration::from_millis(10);
    for start in [true, false] {
        run.ok(if start { "`start_timer`" } else { "`stop_timer`" }, stream.time(&timer, start))?;
        run.ok("`block_host_until_done`", stream.synchronize())?;
        if start {
            std::thread::sleep(pause);
        }
    }
    // The device's clock may be a little faster.
    let elapsed = timer.elapsed();
    run.that(format_args!("{elapsed:?} between two marks {pause:?} apart"), elapsed >= pause / 2);
    run.that(format_args!("{elapsed:?} for {pause:?}"), elapsed < Duration::from_secs(20));
    Ok(())
}

pub(super) fn timer_measures_again(run: &mut Run<'_>) -> Step {
    let timer = run.ok("`create_timer`", run.device.timer())?;
    let stream = run.stream()?;
    let block = run.allocate(MUCH)?;
    for _ in 0..3 {
        run.ok("`start_timer`", stream.time(&timer, true))?;
        keep_busy(run, &stream, &block, 1)?;
        run.ok("`stop_timer`", stream.time(&timer, false))?;
        run.ok("`block_host_until_done`", stream.synchronize())?;
        let elapsed = timer.elapsed();
        run.that(
            format_args!("{elapsed:?} for filling memory {TIMES} times"),
            elapsed > Duration::ZERO,
        );
    }
    Ok(())
}
