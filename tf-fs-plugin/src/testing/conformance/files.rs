//! Opening, reading and writing files.

use super::conditions::{Codes, EXISTS, FP, Is, NOT_FOUND};
use super::run::{CONTENT, Run};
use crate::error::{Code, Error, Result};
use crate::testing::Filesystem;

impl Run<'_> {
    pub(super) fn opening(&mut self) {
        self.each(
            "new_random_access_file",
            &Codes {
                missing: NOT_FOUND,
                parent_missing: NOT_FOUND,
                file: None,
                empty_dir: FP,
                full_dir: FP,
            },
            |fs, path| fs.new_random_access_file(path).map(drop),
            |_, _, _| {},
        );
        let creating = Codes {
            missing: None,
            parent_missing: NOT_FOUND,
            file: None,
            empty_dir: FP,
            full_dir: FP,
        };
        self.each(
            "new_writable_file",
            &creating,
            |fs, path| fs.new_writable_file(path).map(drop),
            |run, is, path| {
                let what = format!("new_writable_file of {is:?}: an empty file is there");
                let holds = run.has(path, b"");
                run.expect_that(what, holds);
            },
        );
        self.each(
            "new_appendable_file",
            &creating,
            |fs, path| fs.new_appendable_file(path).map(drop),
            |run, is, path| {
                let content = if is == Is::File { CONTENT } else { b"" };
                let what = format!("new_appendable_file of {is:?}: the content is kept");
                let holds = run.has(path, content);
                run.expect_that(what, holds);
            },
        );
        self.each(
            "new_read_only_memory_region_from_file",
            &Codes {
                missing: NOT_FOUND,
                parent_missing: NOT_FOUND,
                file: None,
                empty_dir: FP,
                full_dir: FP,
            },
            |fs, path| {
                let region = fs.new_read_only_memory_region_from_file(path)?;
                if region.bytes() == CONTENT {
                    Ok(())
                } else {
                    Err(Error::data_loss("the region is not the file's content"))
                }
            },
            |_, _, _| {},
        );
        let cell = self.cell();
        let empty =
            self.fs.new_read_only_memory_region_from_file(format!("{cell}/empty_file")).map(drop);
        let what = "new_read_only_memory_region_from_file of an empty file";
        self.expect(what, &empty, Some(Code::InvalidArgument));
    }

    /// A path that was opened for writing exists from then on.
    pub(super) fn visible_while_open(&mut self) {
        type Look = fn(&Filesystem, &str) -> Result<()>;
        let looks: [(&str, Look, Option<Code>); 11] = [
            ("path_exists", |fs, path| fs.path_exists(path), None),
            ("stat", |fs, path| fs.stat(path).map(drop), None),
            ("is_directory", |fs, path| fs.is_directory(path), FP),
            ("get_file_size", |fs, path| fs.get_file_size(path).map(drop), None),
            ("new_random_access_file", |fs, path| fs.new_random_access_file(path).map(drop), None),
            ("new_appendable_file", |fs, path| fs.new_appendable_file(path).map(drop), None),
            ("create_dir", |fs, path| fs.create_dir(path), EXISTS),
            (
                "get_children",
                |fs, path| {
                    let (dir, name) = path.rsplit_once('/').unwrap_or_default();
                    if fs.get_children(dir)?.iter().any(|child| child == name.as_bytes()) {
                        Ok(())
                    } else {
                        Err(Error::not_found("the listing lacks it"))
                    }
                },
                None,
            ),
            ("copy_file", |fs, path| fs.copy_file(path, format!("{path}2")), None),
            ("rename_file", |fs, path| fs.rename_file(path, format!("{path}3")), None),
            ("delete_file", |fs, path| fs.delete_file(path), None),
        ];
        for (op, look, want) in looks {
            for is_open in [true, false] {
                let cell = self.cell();
                let path = format!("{cell}/missing");
                let mut writer = match self.fs.new_writable_file(&path) {
                    Ok(writer) => Some(writer),
                    Err(error) if error.code() == Code::Unimplemented => return,
                    Err(error) => {
                        self.deviation(format_args!("new_writable_file: {error:#}"));
                        return;
                    }
                };
                if !is_open {
                    writer = None;
                }
                let when = if is_open {
                    "a file that is open for writing"
                } else {
                    "a file that was dropped without a close"
                };
                self.expect(format_args!("{op} of {when}"), &look(&self.fs, &path), want);
                drop(writer);
            }
        }
    }

    pub(super) fn file_objects(&mut self) {
        let cell = self.cell();
        let path = format!("{cell}/file");
        if let Ok(file) = self.fs.new_random_access_file(&path) {
            for (offset, n, bytes, want) in [
                (0, 7, CONTENT, None),
                (3, 4, b"tent", None),
                (0, 0, b"", None),
                (7, 0, b"", None),
                (100, 0, b"", None),
                (3, 100, b"tent", Some(Code::OutOfRange)),
                (7, 1, b"", Some(Code::OutOfRange)),
                (100, 1, b"", Some(Code::OutOfRange)),
            ] {
                let (read, status) = file.read_with_status(offset, n);
                let what = format!("read of {n} bytes at {offset} of 7");
                self.expect(&what, &status, want);
                self.expect_that(format_args!("{what}: the bytes"), read == bytes);
            }
        }
        let path = format!("{cell}/missing");
        let Ok(mut file) = self.fs.new_writable_file(&path) else { return };
        let mut position = 0;
        for piece in [&b"ab"[..], b"", b"c"] {
            let appended = file.append(piece);
            self.expect("append", &appended, None);
            position += piece.len() as u64;
            for _ in 0..2 {
                let told = file.tell();
                if self.expect("tell", &told, None) {
                    let holds = told.is_ok_and(|told| told == position);
                    self.expect_that("tell: the bytes appended so far", holds);
                }
            }
        }
        self.expect("flush", &file.flush(), None);
        self.expect("sync", &file.sync(), None);
        self.expect("close", &file.close(), None);
        self.expect("flush after close", &file.flush(), None);
        self.expect("a second close", &file.close(), None);
        drop(file);
        let holds = self.has(&path, b"abc");
        self.expect_that("close: the content is there", holds);
        if let Ok(mut file) = self.fs.new_appendable_file(&path) {
            self.expect("append to an existing file", &file.append(b"def"), None);
            self.expect("flush of an existing file", &file.flush(), None);
            self.expect("close of an existing file", &file.close(), None);
            drop(file);
            let holds = self.has(&path, b"abcdef");
            self.expect_that("new_appendable_file: both parts are there", holds);
            let tail = self.fs.new_random_access_file(&path).and_then(|file| file.read(3, 3));
            let holds = tail.is_ok_and(|tail| tail == b"def");
            self.expect_that("new_appendable_file: the second part is at the old end", holds);
        }
        if let Ok(mut file) = self.fs.new_writable_file(&path) {
            self.expect("close without data", &file.close(), None);
            drop(file);
            let holds = self.has(&path, b"");
            self.expect_that("new_writable_file: the old content is gone", holds);
        }
    }
}
