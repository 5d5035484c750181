//! Modification times, for filesystems that know them.

use super::run::{Run, Step, needs};
use super::steps::{append, file};
use std::time::{Duration, Instant, SystemTime};

/// Longer than the resolution of many object stores, which is a second.
const PATIENCE: Duration = Duration::from_millis(2500);

const PAUSE: Duration = Duration::from_millis(20);

fn modified(run: &mut Run<'_>, path: &str) -> Step<SystemTime> {
    let found = run.fs.stat(path);
    let found = run.must("stat", found)?.modified;
    needs(found != SystemTime::UNIX_EPOCH, "stat says no time of modification")?;
    Ok(found)
}

/// Changes a file until its modification time changes, since clocks are coarse.
fn moves(
    run: &mut Run<'_>,
    what: &str,
    path: &str,
    change: fn(&mut Run<'_>, &str) -> Step,
) -> Step {
    let before = modified(run, path)?;
    let end = Instant::now() + PATIENCE;
    loop {
        change(run, path)?;
        let after = modified(run, path)?;
        if after > before {
            return Ok(());
        }
        if after < before || Instant::now() >= end {
            let times = format!("from {before:?} to {after:?}");
            run.deviation(format_args!("{what}: the time of modification went {times}"));
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}

pub(super) fn modified_moves_on_append(run: &mut Run<'_>) -> Step {
    let path = file(run, b"one line\n")?;
    moves(run, "append", &path, |run, path| {
        let mut writer = append(run, path)?;
        run.must("append", writer.append(b"another line\n"))?;
        run.must("close", writer.close())
    })
}

pub(super) fn modified_moves_on_overwrite(run: &mut Run<'_>) -> Step {
    let path = file(run, b"one content")?;
    moves(run, "written again", &path, |run, path| run.write(path, b"same length"))
}

pub(super) fn modified_stays(run: &mut Run<'_>) -> Step {
    let path = file(run, b"one content")?;
    let before = modified(run, &path)?;
    std::thread::sleep(PAUSE);
    run.holds("read", &path, b"one content");
    let after = modified(run, &path)?;
    run.expect_eq("the time of modification after the file was only read", after, before);
    Ok(())
}
