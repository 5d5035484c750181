//! Several threads at a time, as in `tf.data`.

use super::conditions::EXISTS;
use super::run::{Run, Step};
use super::steps::{file, open, pattern};
use crate::abi::processes::{PANICKED, in_a_child, threads_start};
use crate::filesystem::semantics::Visibility;
use crate::filesystem::test_filesystem::TestFilesystem;
use crate::threads::{joined, on_threads};
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tf_plugin_core::{Code, Error, Result, ensure};

const THREADS: usize = 8;

/// Runs a body on eight threads, and reports the first error; one that skips the case comes last.
fn all_succeed(
    run: &Run<'_>,
    what: &str,
    body: impl Fn(&TestFilesystem, usize) -> Result<()> + Sync,
) -> Step {
    let mut answers = on_threads(THREADS, |index| body(&run.fs, index));
    answers.sort_by_key(|answer| matches!(answer, Err(e) if e.code() == Code::Unimplemented));
    for answer in answers {
        run.must(what, answer)?;
    }
    Ok(())
}

pub(super) fn readers_of_one_file(run: &mut Run<'_>) -> Step {
    let content = pattern(60_000);
    let path = file(run, &content)?;
    let reader = open(run, &path)?;
    all_succeed(run, "eight threads read one open file", |_, index| {
        for round in 0..30 {
            let offset = (index * 7001 + round * 1999) % content.len();
            let read = reader.read(offset as u64, 1500)?;
            let want = &content[offset..content.len().min(offset + 1500)];
            ensure!(read == want, Error::data_loss(format_args!("other bytes at {offset}")));
        }
        Ok(())
    })
}

pub(super) fn each_opens_the_same_file(run: &mut Run<'_>) -> Step {
    let content = pattern(20_000);
    let path = file(run, &content)?;
    all_succeed(run, "eight threads open and read one file", |fs, _| {
        for _ in 0..10 {
            ensure!(fs.read_file(&path)? == content, Error::data_loss("other bytes"));
        }
        Ok(())
    })
}

pub(super) fn writers_of_different_files(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    all_succeed(run, "eight threads write a file each", |fs, index| {
        let mut writer = fs.new_writable_file(format!("{cell}/shard-{index}"))?;
        for round in 0..50_u8 {
            writer.append(&[index as u8, round])?;
        }
        writer.close()
    })?;
    for index in 0..THREADS {
        let want: Vec<u8> = (0..50).flat_map(|round| [index as u8, round]).collect();
        run.holds("written by one of eight threads", &format!("{cell}/shard-{index}"), &want);
    }
    Ok(())
}

pub(super) fn listing_during_writes(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    run.write(&format!("{cell}/there"), b"")?;
    all_succeed(run, "listing while others write", |fs, index| {
        for round in 0..10 {
            if index % 2 == 0 {
                fs.write_file(format!("{cell}/file-{index}-{round}"), b"x")?;
                continue;
            }
            let names = fs.get_children(&cell)?;
            let lacks = Error::data_loss("a listing lacks a file that is always there");
            ensure!(names.iter().any(|name| name == b"there"), lacks);
            let is_odd = |name: &&Vec<u8>| *name != b"there" && !name.starts_with(b"file-");
            if let Some(name) = names.iter().find(is_odd) {
                let name = name.escape_ascii();
                return Err(Error::data_loss(format_args!("a listing has {name}")));
            }
        }
        Ok(())
    })?;
    let mut want: Vec<_> = (0..THREADS)
        .step_by(2)
        .flat_map(|index| (0..10).map(move |round| format!("file-{index}-{round}")))
        .collect();
    want.push(String::from("there"));
    run.lists("after all wrote", &cell, &want);
    Ok(())
}

pub(super) fn one_creates_a_directory(run: &mut Run<'_>) -> Step {
    run.needs_real_directories()?;
    let cell = run.bare_cell()?;
    for round in 0..5 {
        let dir = format!("{cell}/dir{round}");
        let answers = on_threads(THREADS, |_| run.fs.create_dir(&dir));
        let made = answers.iter().filter(|answer| answer.is_ok()).count();
        for answer in answers.iter().filter(|answer| answer.is_err()) {
            run.expect("create_dir while others create it", answer, EXISTS);
        }
        run.expect_eq("create_dir of one directory on eight threads: how many made it", made, 1);
    }
    Ok(())
}

pub(super) fn all_create_a_path(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    let dir = format!("{cell}/a/b/c");
    all_succeed(run, "recursively_create_dir of one path on eight threads", |fs, _| {
        fs.recursively_create_dir(&dir)
    })
}

pub(super) fn each_renames_its_file(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    all_succeed(run, "eight threads write and rename", |fs, index| {
        for round in 0..5 {
            let new = format!("{cell}/{index}.tmp{round}");
            fs.write_file(&new, format!("{index} {round}"))?;
            fs.rename_file(&new, format!("{cell}/{index}"))?;
        }
        Ok(())
    })?;
    let want: Vec<_> = (0..THREADS).map(|index| index.to_string()).collect();
    run.lists("renamed by eight threads", &cell, &want);
    for index in 0..THREADS {
        let path = format!("{cell}/{index}");
        run.holds("renamed by one of eight threads", &path, format!("{index} 4").as_bytes());
    }
    Ok(())
}

pub(super) fn each_deletes_its_file(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    run.write(&format!("{cell}/stays"), b"here")?;
    all_succeed(run, "eight threads write and delete", |fs, index| {
        let path = format!("{cell}/{index}");
        for _ in 0..5 {
            fs.write_file(&path, b"x")?;
            fs.delete_file(&path)?;
            match fs.path_exists(&path) {
                Err(error) if error.code() == Code::NotFound => {}
                Err(error) => return Err(error),
                Ok(()) => return Err(Error::data_loss("a deleted file is there")),
            }
        }
        Ok(())
    })?;
    run.lists("all but one were deleted", &cell, &["stays"]);
    Ok(())
}

pub(super) fn readers_of_a_growing_file(run: &mut Run<'_>) -> Step {
    run.needs_visible_at_flush()?;
    let content = pattern(40_000);
    let cell = run.bare_cell()?;
    let path = format!("{cell}/grows");
    run.write(&path, b"")?;
    let may_be_refused = run.semantics.visible == Visibility::Flush;
    all_succeed(run, "seven threads read what one appends", |fs, index| {
        if index == 0 {
            let mut writer = fs.new_writable_file(&path)?;
            for (round, piece) in content.chunks(1000).enumerate() {
                writer.append(piece)?;
                writer.flush()?;
                // Reads of the other threads may all be refused. The writer publishes nothing meanwhile.
                if round == 20 && fs.read_file(&path)? != content[..21_000] {
                    return Err(Error::data_loss("what was flushed is not read"));
                }
            }
            return writer.close();
        }
        for _ in 0..10 {
            let read = match fs.read_file(&path) {
                // Each publication is a new version. Reading an old one fails, so that versions are not mixed.
                Err(error) if may_be_refused && error.code() == Code::FailedPrecondition => {
                    continue;
                }
                read => read?,
            };
            let what = "what was read is not a beginning of the file";
            ensure!(content.starts_with(&read), Error::data_loss(what));
        }
        Ok(())
    })?;
    run.holds("appended while others read", &path, &content);
    Ok(())
}

/// The steps of a forked child, with their names in the report.
const STEPS: [&str; 4] = ["stat", "a read", "writing a file", "reading what it wrote"];

/// The exit status of a child that reads other bytes. Else it is the code of an error, plus 32 for each step before.
const OTHER_BYTES: i32 = 31;

/// The exit status of a child in which no thread starts, which is not the plugin's fault.
const NO_THREADS: i32 = 201;

/// Runs the steps of a child, and returns its exit status.
fn child(fs: &TestFilesystem, path: &str, content: &[u8], new: Option<&str>) -> i32 {
    let same = |read: Result<Vec<u8>>| match read {
        Ok(read) if read == content => 0,
        Ok(_) => OTHER_BYTES,
        Err(error) => error.code() as i32,
    };
    let ended = |result: Result<()>| result.map_or_else(|error| error.code() as i32, |()| 0);
    let steps: [&dyn Fn() -> i32; 4] = [
        &|| ended(fs.stat(path).map(drop)),
        &|| same(fs.read_file(path)),
        &|| new.map_or(0, |new| ended(fs.write_file(new, content))),
        &|| new.map_or(0, |new| same(fs.read_file(new))),
    ];
    let ends = steps.iter().enumerate().map(|(step, run)| (step as i32, run()));
    let refused = Code::FailedPrecondition as i32;
    // A child may fail with the error that the filesystem belongs to the parent.
    ends.take_while(|(_, end)| *end != refused)
        .find_map(|(step, end)| (end != 0).then_some(32 * step + end))
        .unwrap_or(0)
}

pub(super) fn forked_children(run: &mut Run<'_>) -> Step {
    /// As many as fit into two seconds: a lock that is held for a hundredth of the time affects one
    /// child in a hundred.
    const CHILDREN: std::ops::Range<usize> = 10..200;
    const TOGETHER: Duration = Duration::from_secs(2);
    /// The time limit of a child. Even on a busy machine a child that works takes a hundredth of it.
    const SECONDS: u32 = 20;
    /// Children that replace those in which no thread starts, which is one in thousands.
    const MORE: usize = 10;
    let content = pattern(5000);
    let path = file(run, &content)?;
    let may_change = run.may_change();
    let fs = run.fs.clone();
    let stop = AtomicBool::new(false);
    let own = |index: usize| format!("{path}-{index}");
    let load = |index: usize| {
        let mut answer = Ok(());
        while answer.is_ok() && !stop.load(Ordering::Relaxed) {
            // A lock that is held for reading keeps only writers out: most of the calls change something.
            answer = if may_change {
                fs.write_file(own(index), b"x").and_then(|()| fs.delete_file(own(index)))
            } else {
                fs.read_file(&path).map(drop)
            };
            answer = answer.and_then(|()| fs.stat(&path).map(drop));
        }
        answer
    };
    let (end, answers) = std::thread::scope(|scope| {
        let load = &load;
        let threads: Vec<_> = (0..4).map(|index| scope.spawn(move || load(index))).collect();
        let began = Instant::now();
        let goes_on = |number: &usize| *number < CHILDREN.start || began.elapsed() < TOGETHER;
        let ends = (0..CHILDREN.end).take_while(goes_on).map(|number| {
            let new = may_change.then(|| format!("{path}-child{number}"));
            in_a_child(SECONDS, || match threads_start() {
                true => child(&fs, &path, &content, new.as_deref()),
                false => NO_THREADS,
            })
        });
        let mut without = 0;
        let end = ends.into_iter().find(|end| {
            let is_other = end.code() == Some(NO_THREADS) && without < MORE;
            without += usize::from(is_other);
            !end.success() && !is_other
        });
        stop.store(true, Ordering::Relaxed);
        let answers: Vec<_> = threads.into_iter().map(joined).collect();
        (end, answers)
    });
    for answer in answers {
        run.must("stat, reading and writing in four threads", answer)?;
    }
    let Some(end) = end else { return Ok(()) };
    let what = match (end.code(), end.signal()) {
        (_, Some(libc::SIGALRM)) => format!(
            "it hangs: after {SECONDS} seconds it was ended. A lock that another thread held at the fork stays held in \
             the child; those of `tf_fs_plugin::sync` are free there"
        ),
        (Some(PANICKED), _) => String::from("it panicked"),
        (Some(NO_THREADS), _) => String::from("no thread starts in it"),
        (Some(status), _) => {
            let step = STEPS.get(status as usize / 32).copied().unwrap_or("it");
            match status % 32 {
                OTHER_BYTES => format!("{step} gives other bytes"),
                code => format!("{step} is {:?}", Code::from_raw(code as u32)),
            }
        }
        _ => format!("it ended with {end}"),
    };
    run.deviation(format_args!("a child that was forked while four threads made calls: {what}"));
    Ok(())
}
