//! Creating, deleting, renaming and copying.

use super::conditions::{Codes, EXISTS, FP, Is, NOT_FOUND};
use super::run::{CONTENT, Run};
use crate::error::{Code, Result};
use crate::testing::Filesystem;

impl Run<'_> {
    pub(super) fn directories(&mut self) {
        let is_there = |op: &'static str| {
            move |run: &mut Self, is: Is, path: &str| {
                let found = run.fs.is_directory(path);
                run.expect(format_args!("{op} of {is:?}: is_directory afterwards"), &found, None);
            }
        };
        self.each(
            "create_dir",
            &Codes {
                missing: None,
                parent_missing: NOT_FOUND,
                file: EXISTS,
                empty_dir: EXISTS,
                full_dir: EXISTS,
            },
            |fs, path| fs.create_dir(path),
            is_there("create_dir"),
        );
        self.each(
            "recursively_create_dir",
            &Codes {
                missing: None,
                parent_missing: None,
                file: FP,
                empty_dir: None,
                full_dir: None,
            },
            |fs, path| fs.recursively_create_dir(path),
            is_there("recursively_create_dir"),
        );
        let root = self.fs.recursively_create_dir(format!("{}/", self.root));
        self.expect("recursively_create_dir of the root", &root, None);
    }

    pub(super) fn deleting(&mut self) {
        let is_gone = |op: &'static str| {
            move |run: &mut Self, is: Is, path: &str| {
                let found = run.fs.path_exists(path);
                let what = format!("{op} of {is:?}: path_exists afterwards");
                run.expect(what, &found, NOT_FOUND);
                let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                let found = run.fs.is_directory(parent);
                run.expect(format_args!("{op} of {is:?}: its parent afterwards"), &found, None);
            }
        };
        self.each(
            "delete_file",
            &Codes {
                missing: NOT_FOUND,
                parent_missing: NOT_FOUND,
                file: None,
                empty_dir: FP,
                full_dir: FP,
            },
            |fs, path| fs.delete_file(path),
            is_gone("delete_file"),
        );
        self.each(
            "delete_dir",
            &Codes {
                missing: NOT_FOUND,
                parent_missing: NOT_FOUND,
                file: FP,
                empty_dir: None,
                full_dir: FP,
            },
            |fs, path| fs.delete_dir(path),
            is_gone("delete_dir"),
        );
        let mut counters = Vec::new();
        for is in Is::ALL {
            let cell = self.cell();
            let Some(path) = self.path(&cell, is) else { continue };
            if let Err(left) = self.fs.delete_recursively(&path)
                && left.error.code() != Code::Unimplemented
                && (left.files, left.dirs) != (0, 1)
            {
                counters.push((is, left.files, left.dirs));
            }
        }
        for (is, files, dirs) in counters {
            self.deviation(format_args!(
                "delete_recursively of {is:?}: 0 files and 1 directory left, not {files} and {dirs}"
            ));
        }
        self.each(
            "delete_recursively",
            &Codes {
                missing: NOT_FOUND,
                parent_missing: NOT_FOUND,
                file: None,
                empty_dir: None,
                full_dir: None,
            },
            |fs, path| fs.delete_recursively(path).map_err(|left| left.error),
            is_gone("delete_recursively"),
        );
    }

    pub(super) fn renaming_and_copying(&mut self) {
        type Op = fn(&Filesystem, &str, &str) -> Result<()>;
        let ops: [(&str, Op, bool); 2] = [
            ("rename_file", |fs, src, dst| fs.rename_file(src, dst), true),
            ("copy_file", |fs, src, dst| fs.copy_file(src, dst), false),
        ];
        for (op, call, is_move) in ops {
            for src_is in Is::ALL {
                let cell = self.cell();
                let Some(src) = self.path(&cell, src_is) else { continue };
                let want = match src_is {
                    Is::Missing | Is::ParentMissing => NOT_FOUND,
                    Is::File => None,
                    _ => FP,
                };
                let what = format!("{op} from {src_is:?} to a new name");
                let dst = format!("{cell}/new");
                self.expect_moved(
                    &what,
                    &call(&self.fs, &src, &dst),
                    want,
                    (&cell, &src, &dst),
                    is_move,
                );
            }
            for dst_is in Is::ALL {
                let cell = self.cell();
                let Some(dst) = self.path(&cell, dst_is) else { continue };
                let want = match dst_is {
                    Is::Missing => None,
                    Is::ParentMissing => NOT_FOUND,
                    // `file` is the source here.
                    Is::File => continue,
                    _ => FP,
                };
                let src = format!("{cell}/file");
                let what = format!("{op} from a file to {dst_is:?}");
                self.expect_moved(
                    &what,
                    &call(&self.fs, &src, &dst),
                    want,
                    (&cell, &src, &dst),
                    is_move,
                );
            }
            let cell = self.cell();
            let (src, dst) = (format!("{cell}/file"), format!("{cell}/empty_file"));
            let what = format!("{op} from a file to an existing file");
            self.expect_moved(
                &what,
                &call(&self.fs, &src, &dst),
                None,
                (&cell, &src, &dst),
                is_move,
            );
            let cell = self.cell();
            let (src, dst) = (format!("{cell}/empty_file"), format!("{cell}/file"));
            let what = format!("{op} from an empty file to an existing file");
            if self.expect(&what, &call(&self.fs, &src, &dst), None) {
                let holds = self.has(&dst, b"") && self.exists(&src) != is_move;
                self.expect_that(format_args!("{what}: the effect"), holds);
            }
            let cell = self.cell();
            let same = format!("{cell}/file");
            let what = format!("{op} from a file to itself");
            if self.expect(&what, &call(&self.fs, &same, &same), None) {
                let holds = self.has(&same, CONTENT);
                self.expect_that(format_args!("{what}: the content is there"), holds);
            }
        }
    }

    pub(super) fn expect_moved(
        &mut self,
        what: &str,
        result: &Result<()>,
        want: Option<Code>,
        (cell, src, dst): (&str, &str, &str),
        is_move: bool,
    ) {
        if self.expect(what, result, want) && want.is_none() {
            let holds = self.has(dst, CONTENT)
                && if is_move { !self.exists(src) } else { self.has(src, CONTENT) };
            self.expect_that(format_args!("{what}: the effect"), holds);
        } else if result.is_err() {
            self.untouched(what, cell);
            let is_new = dst.ends_with("/new");
            let holds = !is_new || !self.exists(dst);
            self.expect_that(format_args!("{what}: failed, but the target is there"), holds);
        }
    }
}
