//! The header's table: opening files, and files that are open.

use super::conditions::{EXISTS, FP, Is};
use super::run::{CONTENT, Does, Outcome, Run};
use crate::filesystem::declared::{Append, Visible};
use crate::filesystem::file::TestWritableFile;
use crate::filesystem::handle::TestFilesystem;
use tf_plugin_core::{Code, Error, Result, ensure};

pub(super) const NEW_RANDOM_ACCESS_FILE: Does =
    Does { call: |run, path| run.fs.new_random_access_file(path).map(drop), after: |_, _, _| {} };

/// A file that is dropped at once, or closed if only that makes it visible.
fn leave(run: &Run<'_>, opened: Result<TestWritableFile>) -> Result<()> {
    match run.declared.visible {
        Visible::Create | Visible::InPlace => opened.map(drop),
        Visible::Flush | Visible::Close => opened?.close(),
    }
}

pub(super) const NEW_WRITABLE_FILE: Does = Does {
    call: |run, path| leave(run, run.fs.new_writable_file(path)),
    after: |run, is, path| {
        let what = format!("new_writable_file of {is:?}: an empty file is there");
        run.expect_that(what, run.has(path, b""));
    },
};

pub(super) const NEW_APPENDABLE_FILE: Does = Does {
    call: |run, path| leave(run, run.fs.new_appendable_file(path)),
    after: |run, is, path| {
        let content = if is == Is::File { CONTENT } else { b"" };
        let what = format!("new_appendable_file of {is:?}: the content is kept");
        run.expect_that(what, run.has(path, content));
    },
};

pub(super) const NEW_READ_ONLY_MEMORY_REGION_FROM_FILE: Does = Does {
    call: |run, path| {
        let region = run.fs.new_read_only_memory_region_from_file(path)?;
        ensure!(region.to_vec() == CONTENT, Error::data_loss("it is not the file's content"));
        Ok(())
    },
    after: |_, _, _| {},
};

pub(super) fn new_read_only_memory_region_from_file_of_empty_file(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    let empty =
        run.fs.new_read_only_memory_region_from_file(format!("{cell}/empty_file")).map(drop);
    let what = "new_read_only_memory_region_from_file of an empty file";
    run.expect(what, &empty, Some(Code::InvalidArgument));
    Ok(())
}

/// A question about a path that was opened for writing, which exists from then on.
pub(super) struct Look {
    name: &'static str,
    call: fn(&TestFilesystem, &str) -> Result<()>,
    want: Option<Code>,
}

impl Look {
    const fn new(
        name: &'static str,
        want: Option<Code>,
        call: fn(&TestFilesystem, &str) -> Result<()>,
    ) -> Self {
        Self { name, call, want }
    }
}

pub(super) const PATH_EXISTS: Look =
    Look::new("path_exists", None, |fs, path| fs.path_exists(path));
pub(super) const STAT: Look = Look::new("stat", None, |fs, path| fs.stat(path).map(drop));
pub(super) const IS_DIRECTORY: Look =
    Look::new("is_directory", FP, |fs, path| fs.is_directory(path));
pub(super) const GET_FILE_SIZE: Look =
    Look::new("get_file_size", None, |fs, path| fs.get_file_size(path).map(drop));
pub(super) const OPEN_FOR_READING: Look =
    Look::new("new_random_access_file", None, |fs, path| fs.new_random_access_file(path).map(drop));
pub(super) const OPEN_FOR_APPENDING: Look =
    Look::new("new_appendable_file", None, |fs, path| fs.new_appendable_file(path).map(drop));
pub(super) const CREATE_DIR: Look = Look::new("create_dir", EXISTS, |fs, path| fs.create_dir(path));
pub(super) const GET_CHILDREN: Look = Look::new("get_children", None, |fs, path| {
    let (dir, name) = path.rsplit_once('/').unwrap_or_default();
    let listed = fs.get_children(dir)?.iter().any(|child| child == name.as_bytes());
    ensure!(listed, Error::not_found("the listing lacks it"));
    Ok(())
});
pub(super) const COPY_FILE: Look =
    Look::new("copy_file", None, |fs, path| fs.copy_file(path, format!("{path}2")));
pub(super) const RENAME_FILE: Look =
    Look::new("rename_file", None, |fs, path| fs.rename_file(path, format!("{path}3")));
pub(super) const DELETE_FILE: Look =
    Look::new("delete_file", None, |fs, path| fs.delete_file(path));

/// Asks about a file that is open for writing, or that was dropped without a close.
pub(super) fn look(run: &mut Run<'_>, look: &Look, is_open: bool) -> Outcome {
    run.needs_visible_at_create()?;
    let cell = run.cell()?;
    let path = format!("{cell}/missing");
    let opened = run.fs.new_writable_file(&path);
    let writer = run.must("new_writable_file", opened)?;
    let (writer, when) = match is_open {
        true => (Some(writer), "a file that is open for writing"),
        false => {
            drop(writer);
            (None, "a file that was dropped without a close")
        }
    };
    run.expect(format_args!("{} of {when}", look.name), &(look.call)(&run.fs, &path), look.want);
    drop(writer);
    Ok(())
}

pub(super) fn read(
    run: &mut Run<'_>,
    offset: u64,
    n: usize,
    bytes: &[u8],
    want: Option<Code>,
) -> Outcome {
    let cell = run.cell()?;
    if let Ok(file) = run.fs.new_random_access_file(format!("{cell}/file")) {
        let (read, status) = file.read_with_status(offset, n);
        let what = format!("read of {n} bytes at {offset} of 7");
        run.expect(&what, &status, want);
        run.expect_that(format_args!("{what}: the bytes"), read == bytes);
    }
    Ok(())
}

/// Appends, tells, closes, appends again, replaces.
pub(super) fn write_append_replace(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    let path = format!("{cell}/missing");
    let opened = run.fs.new_writable_file(&path);
    let Ok(mut file) = opened else { return Ok(()) };
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
    if run.declared.append == Append::Supported
        && let Ok(mut file) = run.fs.new_appendable_file(&path)
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
    if let Ok(mut file) = run.fs.new_writable_file(&path) {
        run.expect("close without data", &file.close(), None);
        drop(file);
        run.expect_that("new_writable_file: the old content is gone", run.has(&path, b""));
    }
    Ok(())
}
