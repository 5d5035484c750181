//! Runs operations and notes deviations.

use super::conditions::{Codes, FP, Is, code_of};
use super::samples::Store;
use crate::deviation::Deviation;
use crate::filesystem::host::Host;
use crate::filesystem::semantics::{Append, Directories, Semantics, Visibility};
use crate::filesystem::test_filesystem::TestFilesystem;
use crate::violations::names_shown;
use std::fmt::{Debug, Display};
use tf_plugin_core::{Code, Error, Result};

pub(super) use crate::outcome::{Step, Stop, needs};

pub(super) const CONTENT: &[u8] = b"content";

/// Where the files and directories of the cases come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'r> {
    /// The cases create them.
    Written,
    /// They exist already.
    Provided,
    /// They are recorded here, from where the filesystem reads them.
    Recorded(&'r Store),
}

/// One operation with one path, and what the header requires of it.
pub(super) struct Operation {
    pub(super) name: &'static str,
    pub(super) codes: Codes,
    pub(super) call: fn(&Run<'_>, &str) -> Result<()>,
    /// Checks what a success did to a path of this condition; the text says what was called.
    pub(super) after: fn(&mut Run<'_>, &str, Is, &str),
}

/// One case that runs on one filesystem.
pub(super) struct Run<'r> {
    pub(super) host: &'r Host,
    pub(super) fs: TestFilesystem,
    pub(super) root: &'r str,
    pub(super) semantics: &'r Semantics,
    pub(super) source: Source<'r>,
    /// The prefix of the names of all cells.
    pub(super) prefix: String,
    /// The directories that [`cell`](Self::cell) created.
    pub(super) cells: Vec<String>,
    pub(super) deviations: Vec<Deviation>,
    /// The first operation that turned out not to be implemented.
    pub(super) unimplemented: Option<String>,
}

fn shown(code: Option<Code>) -> String {
    code.map_or_else(|| String::from("OK"), |code| format!("{code:?}"))
}

impl Run<'_> {
    /// Creates a new directory that holds `file`, `empty_file`, `empty/` and `full/file`.
    pub(super) fn cell(&mut self) -> Step<String> {
        let cell = self.bare_cell()?;
        let has_dirs = self.has_directories();
        let make_dir = |dir: &str| if has_dirs { self.make_dir(dir) } else { Ok(()) };
        let made = self
            .make_file(&format!("{cell}/file"), CONTENT)
            .and_then(|()| self.make_file(&format!("{cell}/empty_file"), b""))
            .and_then(|()| make_dir(&format!("{cell}/empty")))
            .and_then(|()| make_dir(&format!("{cell}/full")))
            .and_then(|()| self.make_file(&format!("{cell}/full/file"), CONTENT));
        made.map_err(|error| Self::nothing_to_test_with(&cell, &error))?;
        Ok(cell)
    }

    /// Creates a new directory.
    pub(super) fn bare_cell(&mut self) -> Step<String> {
        let writes = !self.may_change() || self.fs.tables().filesystem.new_writable_file.is_some();
        needs(writes, "new_writable_file is not implemented")?;
        let cell = format!("{}/{}cell{}", self.root, self.prefix, self.cells.len() + 1);
        self.cells.push(cell.clone());
        if self.has_directories() {
            let made = self.make_dir(&cell);
            made.map_err(|error| Self::nothing_to_test_with(&cell, &error))?;
        }
        Ok(cell)
    }

    /// Creates a file for the test in an existing directory.
    pub(super) fn make_file(&self, path: &str, content: &[u8]) -> Result<()> {
        match self.source {
            Source::Written => self.fs.write_file(path, content),
            Source::Provided => Ok(()),
            Source::Recorded(store) => store.file(self.below_root(path), content),
        }
    }

    fn make_dir(&self, path: &str) -> Result<()> {
        match self.source {
            Source::Written => self.fs.create_dir(path),
            Source::Provided => Ok(()),
            Source::Recorded(store) => store.directory(self.below_root(path)),
        }
    }

    /// Creates a directory for the test, and those above it, which has to succeed.
    pub(super) fn make_dirs(&mut self, path: &str) -> Step {
        let made = match self.source {
            Source::Written => self.fs.recursively_create_dir(path),
            _ => self.make_dir(path),
        };
        self.must(format_args!("recursively_create_dir of {path}"), made)
    }

    fn below_root<'p>(&self, path: &'p str) -> &'p str {
        path.get(self.root.len() + 1..).unwrap_or_default()
    }

    /// Stops the case if the set-up has not provided a sample.
    pub(super) fn is_provided(&self, sample: &str) -> Step {
        let path = format!("{}/{sample}", self.root);
        if self.fs.new_random_access_file(&path).is_ok() || self.exists(&path) {
            return Ok(());
        }
        let what = format!(
            "there is no {path}; with `files: provided` the set-up puts all that \
             `tf_plugin_testing::filesystem::samples()` lists below the root, by another way than the filesystem"
        );
        Err(Deviation::new(what).into())
    }

    /// Returns whether the case may change files; steps that do come last in a case, or are all of it.
    pub(super) fn may_change(&self) -> bool {
        matches!(self.source, Source::Written)
    }

    /// Returns whether directories exist by themselves: without `create_dir` they are implied by names.
    pub(super) fn has_directories(&self) -> bool {
        // A read-only filesystem may implement `create_dir` to refuse it.
        (self.may_change() && self.fs.tables().filesystem.create_dir.is_some())
            || self.semantics.directories == Directories::Real
    }

    fn nothing_to_test_with(cell: &str, error: &Error) -> Stop {
        let what = format!(
            "cannot make files and directories to test with in {cell}: {error:#}; the tests need \
             a root that is there (`root: once(|| ...)` can make it), and of the filesystem create_dir, \
             new_writable_file, new_random_access_file and stat"
        );
        Deviation::new(what).into()
    }

    /// Returns the path of a condition.
    pub(super) fn path(&self, cell: &str, is: Is) -> Step<String> {
        match is {
            Is::Malformed => self.semantics.malformed.clone().ok_or_else(|| {
                Stop::skip("no name is declared that the filesystem can never accept")
            }),
            Is::EmptyDir | Is::FullDir if !self.has_directories() => {
                Err(Stop::skip("create_dir is not implemented"))
            }
            is => Ok(format!("{cell}/{}", is.name())),
        }
    }

    pub(super) fn deviation(&mut self, what: impl Display) {
        self.deviations.push(Deviation::new(what));
    }

    /// Notes a code that is not the expected one; `UNIMPLEMENTED` is always allowed. Returns
    /// whether the code is the expected one.
    pub(super) fn expect(
        &mut self,
        what: impl Display,
        result: &Result<impl Sized>,
        want: Option<Code>,
    ) -> bool {
        self.expect_any(what, result, &[want])
    }

    /// Does the same as [`expect`](Self::expect) for several codes, of which the first is the header's.
    pub(super) fn expect_any(
        &mut self,
        what: impl Display,
        result: &Result<impl Sized>,
        want: &[Option<Code>],
    ) -> bool {
        let got = result.as_ref().err().map(Error::code);
        if want.contains(&got) {
            return true;
        }
        if got == Some(Code::Unimplemented) {
            self.unimplemented.get_or_insert_with(|| format!("{what}: not implemented"));
        } else {
            let first = shown(want.first().copied().unwrap_or_default());
            self.deviations.push(match result {
                Ok(_) => Deviation::new(what).wanted(first).got(shown(None)),
                Err(error) => Deviation::of_error(what, first, error),
            });
        }
        false
    }

    pub(super) fn expect_that(&mut self, what: impl Display, holds: bool) {
        if !holds {
            self.deviation(what);
        }
    }

    /// Checks that two values are equal.
    pub(super) fn expect_eq<T: PartialEq + Debug>(&mut self, what: impl Display, got: T, want: T) {
        if got != want {
            let deviation = Deviation::new(what);
            self.deviations.push(deviation.wanted(format!("{want:?}")).got(format!("{got:?}")));
        }
    }

    /// Checks that bytes are equal; the deviation says where they differ.
    pub(super) fn expect_bytes(&mut self, what: impl Display, got: &[u8], want: &[u8]) {
        self.deviations.extend(Deviation::of_bytes(what, got, want));
    }

    /// Checks that a call returns this value.
    pub(super) fn gives<T: PartialEq + Debug>(
        &mut self,
        what: impl Display,
        result: Result<T>,
        want: T,
    ) {
        if self.expect(&what, &result, None)
            && let Ok(got) = result
        {
            self.expect_eq(what, got, want);
        }
    }

    /// Checks that a call returns these names, in any order.
    pub(super) fn names(
        &mut self,
        what: impl Display,
        result: Result<Vec<Vec<u8>>>,
        want: &[impl AsRef<[u8]>],
    ) {
        let mut want: Vec<Vec<u8>> = want.iter().map(|name| name.as_ref().to_vec()).collect();
        want.sort_unstable();
        if self.expect(&what, &result, None)
            && let Ok(mut got) = result
        {
            got.sort_unstable();
            if got != want {
                let deviation = Deviation::new(what);
                self.deviations.push(deviation.wanted(names_shown(&want)).got(names_shown(&got)));
            }
        }
    }

    /// Checks that a pattern matches these paths.
    pub(super) fn matches(&mut self, pattern: &str, want: impl IntoIterator<Item = String>) {
        let want: Vec<_> = want.into_iter().collect();
        let found = self.fs.get_matching_paths(pattern);
        self.names(format_args!("get_matching_paths of {pattern}"), found, &want);
    }

    /// Returns the value of a step without which the case cannot go on.
    pub(super) fn must<T>(&self, what: impl Display, result: Result<T>) -> Step<T> {
        result.map_err(|error| match error.code() {
            Code::Unimplemented => Stop::skip(format!("{what}: not implemented")),
            _ => Deviation::of_error(what, "OK", &error).into(),
        })
    }

    /// Creates a file, which has to succeed.
    pub(super) fn write(&mut self, path: &str, content: impl AsRef<[u8]>) -> Step {
        let written = self.make_file(path, content.as_ref());
        self.must(format_args!("writing {path}"), written)
    }

    /// Checks the content of a file.
    pub(super) fn holds(&mut self, what: impl Display, path: &str, content: &[u8]) {
        let read = self.fs.read_file(path);
        let what = format!("{what}: the content of {path}");
        if self.expect(&what, &read, None)
            && let Ok(read) = read
        {
            self.expect_bytes(what, &read, content);
        }
    }

    /// Checks the entries of a directory.
    pub(super) fn lists(&mut self, what: impl Display, path: &str, want: &[impl AsRef<[u8]>]) {
        self.names(format_args!("{what}: the entries of {path}"), self.fs.get_children(path), want);
    }

    /// Checks that a path does not exist.
    pub(super) fn is_gone(&mut self, what: impl Display, path: &str) {
        let found = self.fs.path_exists(path);
        let want = [Some(Code::NotFound), FP];
        let want =
            if self.semantics.directories == Directories::Implied { &want[..] } else { &want[..1] };
        self.expect_any(format_args!("{what}: path_exists of {path}"), &found, want);
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.fs.stat(path).is_ok()
    }

    pub(super) fn has(&self, path: &str, content: &[u8]) -> bool {
        self.fs.read_file(path).is_ok_and(|read| read == content)
    }

    /// Skips the case unless a file exists from the moment that it is opened for writing.
    pub(super) fn needs_visible_at_create(&self) -> Step {
        let reason = match self.semantics.visible {
            Visibility::Create | Visibility::InPlace => return Ok(()),
            Visibility::Flush => "files are declared to be visible at flush",
            Visibility::Close => "files are declared to be visible at close",
        };
        Err(Stop::skip(reason))
    }

    /// Skips the case unless flushed bytes are visible before the file is closed.
    pub(super) fn needs_visible_at_flush(&self) -> Step {
        let is_at_close = self.semantics.visible == Visibility::Close;
        needs(!is_at_close, "files are declared to be visible at close")
    }

    /// Skips the case unless files that exist can be appended to.
    pub(super) fn needs_append(&self) -> Step {
        let appends = self.semantics.append == Append::Supported;
        needs(appends, "appending is declared not to be supported")
    }

    /// Skips the case unless directories are real.
    pub(super) fn needs_real_directories(&self) -> Step {
        let real = self.semantics.directories == Directories::Real;
        needs(real, "directories are declared to be implied")
    }

    /// Returns the codes that an operation may return for a path, the header's first. Where directories are implied,
    /// none has to exist, parents are not checked, and a file may be created next to a directory. TensorFlow's own
    /// filesystems return `INVALID_ARGUMENT` for a name that can never be valid.
    pub(super) fn allowed(&self, codes: &Codes, is: Is) -> Vec<Option<Code>> {
        let mut allowed = vec![code_of(codes, is)];
        let implied = self.semantics.directories == Directories::Implied;
        let creates_a_file = [Is::Missing, Is::File].iter().all(|is| code_of(codes, *is).is_none());
        match is {
            Is::Malformed => allowed.push(Some(Code::InvalidArgument)),
            Is::ParentMissing | Is::BelowFile | Is::FarBelowFile if implied => {
                allowed.push(code_of(codes, Is::Missing));
            }
            Is::EmptyDir | Is::FullDir if implied && creates_a_file => allowed.push(None),
            _ => {}
        }
        allowed
    }

    /// Checks that a cell has not changed since it was created.
    pub(super) fn untouched(&mut self, what: impl Display, cell: &str) {
        let has_dirs = self.has_directories();
        let is_dir = |name: &str| {
            !has_dirs
                || self.fs.stat(format!("{cell}/{name}")).is_ok_and(|found| found.is_directory)
        };
        let holds = self.has(&format!("{cell}/file"), CONTENT)
            && self.has(&format!("{cell}/full/file"), CONTENT)
            && is_dir("empty")
            && is_dir("full")
            && !self.exists(&format!("{cell}/missing"))
            && !self.exists(&format!("{cell}/none"));
        self.expect_that(format_args!("{what}: failed, but changed something"), holds);
    }

    /// Calls an operation under one condition in a new cell.
    pub(super) fn operation(&mut self, op: &Operation, is: Is) -> Step {
        let cell = self.cell()?;
        let path = self.path(&cell, is)?;
        let what = format!("{} of {is:?}", op.name);
        let result = (op.call)(self, &path);
        let want = self.allowed(&op.codes, is);
        if self.expect_any(&what, &result, &want) && result.is_ok() {
            (op.after)(self, &what, is, &path);
            if want[0].is_some() {
                // A call that succeeds where the header requires an error must not harm other files.
                let stays = self.has(&format!("{cell}/file"), CONTENT)
                    && self.has(&format!("{cell}/empty_file"), b"")
                    && self.has(&format!("{cell}/full/file"), CONTENT);
                self.expect_that(format_args!("{what}: what was there stays"), stays);
            }
        } else if result.is_err() {
            self.untouched(&what, &cell);
        }
        Ok(())
    }
}
