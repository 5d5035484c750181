//! Files that are replaced or deleted while they are open.

use super::directories::{COPY_FILE, RENAME_FILE, Transfer, transfer};
use super::run::{CONTENT, Run, Step, needs};
use super::steps::{append, created, file, open, pattern};
use crate::filesystem::TestRandomAccessFile;
use crate::filesystem::semantics::Visibility;
use tf_plugin_core::Code;

/// More bytes than a reader is likely to buffer.
const LONG: usize = 600_000;

/// How many bytes are read before the file changes, and at a time afterwards.
const PIECE: usize = 1 << 16;

/// Returns bytes that all differ from those of [`pattern`].
fn other_pattern(len: usize) -> Vec<u8> {
    pattern(len).iter().map(|byte| !byte).collect()
}

fn needs_new_files(run: &Run<'_>) -> Step {
    let in_place = run.semantics.visible == Visibility::InPlace;
    needs(!in_place, "files are declared to be written in place")
}

/// Checks what an open reader reads to the end after `change`, which gets the path and a new content: first a shorter
/// one, which would end the file early, then a longer one, which would continue in the middle.
fn reads_the_old(
    run: &mut Run<'_>,
    what: &str,
    change: impl Fn(&mut Run<'_>, &str, &[u8]) -> Step,
) -> Step {
    let old = pattern(LONG);
    for new in [LONG / 3, LONG * 2] {
        let path = file(run, &old)?;
        let reader = open(run, &path)?;
        let read = run.must("read before the change", reader.read(0, PIECE))?;
        run.expect_bytes("read before the change", &read, &old[..PIECE]);
        change(run, &path, &other_pattern(new))?;
        old_or_an_error(run, what, &reader, &old);
    }
    Ok(())
}

fn old_or_an_error(run: &mut Run<'_>, what: &str, reader: &TestRandomAccessFile, old: &[u8]) {
    for (index, want) in old.chunks(PIECE).enumerate() {
        let (bytes, status) = reader.read_with_status((index * PIECE) as u64, PIECE);
        let code = status.as_ref().err().map(|error| error.code());
        if code.is_some_and(|code| code != Code::OutOfRange) {
            return;
        }
        if bytes != want {
            let what = format!("{what}: a reader that was open, at {}", index * PIECE);
            run.expect_bytes(what, &bytes, want);
            return;
        }
        let code = (want.len() < PIECE).then_some(Code::OutOfRange);
        run.expect(format_args!("{what}: a reader that was open"), &status, code);
    }
}

pub(super) fn reader_of_a_file_that_is_written_again(run: &mut Run<'_>) -> Step {
    needs_new_files(run)?;
    reads_the_old(run, "written again", |run, path, new| run.write(path, new))
}

/// Replaces the file by another one.
fn taken_over(run: &mut Run<'_>, op: &Transfer) -> Step {
    let what = format!("{} of another file to it", op.name);
    reads_the_old(run, &what, |run, path, new| {
        let other = format!("{path}-new");
        run.write(&other, new)?;
        transfer(run, op, &other, path)
    })
}

pub(super) fn reader_of_a_file_that_is_renamed_over(run: &mut Run<'_>) -> Step {
    taken_over(run, &RENAME_FILE)
}

pub(super) fn reader_of_a_file_that_is_copied_over(run: &mut Run<'_>) -> Step {
    needs_new_files(run)?;
    taken_over(run, &COPY_FILE)
}

pub(super) fn reader_of_a_file_that_is_deleted(run: &mut Run<'_>) -> Step {
    reads_the_old(run, "delete_file", |run, path, _| {
        run.must("delete_file", run.fs.delete_file(path))
    })
}

pub(super) fn reader_of_a_file_that_is_renamed(run: &mut Run<'_>) -> Step {
    reads_the_old(run, "rename_file", |run, path, _| {
        transfer(run, &RENAME_FILE, path, &format!("{path}-renamed"))
    })
}

/// Checks that a file holds one of these contents, whole.
fn holds_one_of(run: &mut Run<'_>, what: &str, path: &str, contents: &[&[u8]]) {
    let read = run.fs.read_file(path);
    if run.expect(what, &read, None)
        && let Ok(read) = read
        && !contents.contains(&&read[..])
    {
        let lengths: Vec<_> = contents.iter().map(|content| content.len()).collect();
        run.deviation(format_args!(
            "{what}: the file has {} bytes, which are neither of the contents of {lengths:?} bytes",
            read.len()
        ));
    }
}

pub(super) fn two_writers_of_one_file(run: &mut Run<'_>) -> Step {
    needs_new_files(run)?;
    let (one, other) = (pattern(LONG), other_pattern(LONG / 3));
    let (path, mut first) = created(run)?;
    run.must("append", first.append(&one[..PIECE]))?;
    // An error is fine: there may be nothing to flush that others can see.
    let _ = first.flush();
    let mut contents: Vec<&[u8]> = vec![&one];
    // A filesystem may allow only one writer.
    if let Ok(mut second) = run.fs.new_writable_file(&path) {
        run.must("append of the second writer", second.append(&other))?;
        run.must("close of the second writer", second.close())?;
        contents.push(&other);
    }
    // These may succeed or fail.
    let _ = first.append(&one[PIECE..]);
    let _ = first.close();
    drop(first);
    holds_one_of(run, "written by two", &path, &contents);
    Ok(())
}

pub(super) fn writer_of_a_file_that_is_renamed_over(run: &mut Run<'_>) -> Step {
    let (one, other) = (pattern(LONG), other_pattern(LONG / 3));
    let (path, mut writer) = created(run)?;
    run.must("append", writer.append(&one[..PIECE]))?;
    let _ = writer.flush();
    let new = format!("{path}-new");
    run.write(&new, &other)?;
    transfer(run, &RENAME_FILE, &new, &path)?;
    let _ = writer.append(&one[PIECE..]);
    let _ = writer.close();
    drop(writer);
    holds_one_of(run, "renamed over while it was written", &path, &[&one, &other]);
    run.is_gone("renamed over a file that was written", &new);
    Ok(())
}

pub(super) fn writer_of_a_file_that_is_deleted(run: &mut Run<'_>) -> Step {
    let path = file(run, CONTENT)?;
    let mut writer = append(run, &path)?;
    run.must("append", writer.append(b" and more"))?;
    run.must("delete_file of a file that is open for appending", run.fs.delete_file(&path))?;
    let _ = writer.append(b" and the rest");
    let _ = writer.close();
    drop(writer);
    if run.exists(&path) {
        let what = "deleted while it was appended to, and there again";
        holds_one_of(run, what, &path, &[b"content and more and the rest"]);
    }
    Ok(())
}

/// Checks that a reader sees the change where files are declared to be written in place.
pub(super) fn in_place_is_declared_right(run: &mut Run<'_>) -> Step {
    let path = file(run, b"the old content")?;
    let reader = open(run, &path)?;
    run.write(&path, b"the new")?;
    let read = reader.read(0, 100).unwrap_or_default();
    run.expect_bytes(
        "read by a reader that was open when the file was written again, as `visible: in_place` declares",
        &read,
        b"the new",
    );
    Ok(())
}
