//! The header's table: opening files, and files that are open.

use super::conditions::Is;
use super::run::{CONTENT, Run, Step};
use super::steps::{create, open};
use crate::filesystem::TestWritableFile;
use crate::filesystem::semantics::{Append, Visibility};
use crate::filesystem::test_filesystem::TestFilesystem;
use tf_plugin_core::{Code, Error, Result, ensure};

/// Drops a writer at once, or closes it if only that makes the file visible.
fn leave(run: &Run<'_>, opened: Result<TestWritableFile>) -> Result<()> {
    match run.semantics.visible {
        Visibility::Create | Visibility::InPlace => opened.map(drop),
        Visibility::Flush | Visibility::Close => opened?.close(),
    }
}

pub(super) fn new_writable_file(run: &Run<'_>, path: &str) -> Result<()> {
    leave(run, run.fs.new_writable_file(path))
}

pub(super) fn is_empty(run: &mut Run<'_>, what: &str, _: Is, path: &str) {
    run.expect_that(format_args!("{what}: an empty file is there"), run.has(path, b""));
}

pub(super) fn new_appendable_file(run: &Run<'_>, path: &str) -> Result<()> {
    leave(run, run.fs.new_appendable_file(path))
}

pub(super) fn is_kept(run: &mut Run<'_>, what: &str, is: Is, path: &str) {
    let content = if is == Is::File { CONTENT } else { b"" };
    run.expect_that(format_args!("{what}: the content is kept"), run.has(path, content));
}

pub(super) fn new_read_only_memory_region_from_file(run: &Run<'_>, path: &str) -> Result<()> {
    let region = run.fs.new_read_only_memory_region_from_file(path)?;
    ensure!(region.to_vec() == CONTENT, Error::data_loss("it is not the file's content"));
    Ok(())
}

pub(super) fn new_read_only_memory_region_from_file_of_empty_file(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let empty =
        run.fs.new_read_only_memory_region_from_file(format!("{cell}/empty_file")).map(drop);
    let what = "new_read_only_memory_region_from_file of an empty file";
    run.expect(what, &empty, Some(Code::InvalidArgument));
    Ok(())
}

/// Checks that the directory of a path lists it.
pub(super) fn is_listed(fs: &TestFilesystem, path: &str) -> Result<()> {
    let (dir, name) = path.rsplit_once('/').unwrap_or_default();
    let listed = fs.get_children(dir)?.iter().any(|child| child == name.as_bytes());
    ensure!(listed, Error::not_found("the listing lacks it"));
    Ok(())
}

/// Calls an operation on a file that is open for writing, or that was dropped without a close.
pub(super) fn look(
    run: &mut Run<'_>,
    op: &str,
    call: fn(&TestFilesystem, &str) -> Result<()>,
    want: Option<Code>,
    is_open: bool,
) -> Step {
    run.needs_visible_at_create()?;
    let cell = run.cell()?;
    let path = format!("{cell}/missing");
    let writer = run.must("new_writable_file", run.fs.new_writable_file(&path))?;
    let (writer, when) = match is_open {
        true => (Some(writer), "a file that is open for writing"),
        false => {
            drop(writer);
            (None, "a file that was dropped without a close")
        }
    };
    run.expect(format_args!("{op} of {when}"), &call(&run.fs, &path), want);
    drop(writer);
    Ok(())
}

pub(super) fn read(
    run: &mut Run<'_>,
    offset: u64,
    n: usize,
    bytes: &[u8],
    want: Option<Code>,
) -> Step {
    let cell = run.cell()?;
    let file = open(run, &format!("{cell}/file"))?;
    let (read, status) = file.read_with_status(offset, n);
    let what = format!("read of {n} bytes at {offset} of 7");
    run.expect(&what, &status, want);
    run.expect_that(format_args!("{what}: the bytes"), read == bytes);
    Ok(())
}

/// Appends, tells, closes, appends again, and replaces the file.
pub(super) fn write_append_replace(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let path = format!("{cell}/missing");
    let mut file = create(run, &path)?;
    let mut position = 0;
    for piece in [&b"ab"[..], b"", b"c"] {
        run.expect("append", &file.append(piece), None);
        position += piece.len() as u64;
        for _ in 0..2 {
            run.gives("tell", file.tell(), position);
        }
    }
    run.expect("flush", &file.flush(), None);
    run.expect("sync", &file.sync(), None);
    run.expect("close", &file.close(), None);
    run.expect("flush after close", &file.flush(), None);
    run.expect("a second close", &file.close(), None);
    drop(file);
    run.expect_that("close: the content is there", run.has(&path, b"abc"));
    let appends = run.semantics.append == Append::Supported;
    if let Some(opened) = appends.then(|| run.fs.new_appendable_file(&path))
        && run.expect("new_appendable_file", &opened, None)
        && let Ok(mut file) = opened
    {
        run.expect("append to an existing file", &file.append(b"def"), None);
        run.expect("flush of an existing file", &file.flush(), None);
        run.expect("close of an existing file", &file.close(), None);
        drop(file);
        run.expect_that("new_appendable_file: both parts are there", run.has(&path, b"abcdef"));
        let tail = run.fs.new_random_access_file(&path).and_then(|file| file.read(3, 3));
        run.expect_that(
            "new_appendable_file: the second part is at the old end",
            tail.is_ok_and(|tail| tail == b"def"),
        );
    }
    let mut file = create(run, &path)?;
    run.expect("close without data", &file.close(), None);
    drop(file);
    run.expect_that("new_writable_file: the old content is gone", run.has(&path, b""));
    Ok(())
}
