//! Trying operations and noting what deviates.

use super::conditions::{Codes, Is};
use crate::error::{Code, Error, Result};
use crate::testing::{Filesystem, Tables};
use std::fmt::Display;

pub(super) const CONTENT: &[u8] = b"content";

/// One pass through all conditions.
pub(super) struct Run<'r> {
    pub(super) fs: Filesystem,
    pub(super) tables: Tables,
    pub(super) root: &'r str,
    pub(super) malformed: Option<&'r str>,
    cells: usize,
    deviations: Vec<String>,
}

pub(super) fn shown(code: Option<Code>) -> String {
    code.map_or_else(|| String::from("OK"), |code| format!("{code:?}"))
}

pub(super) fn code_of<T>(result: &Result<T>) -> Option<Code> {
    result.as_ref().err().map(Error::code)
}

impl<'r> Run<'r> {
    pub(super) fn new(fs: Filesystem, root: &'r str, malformed: Option<&'r str>) -> Self {
        Self { tables: fs.tables(), fs, root, malformed, cells: 0, deviations: Vec::new() }
    }

    pub(super) fn into_deviations(self) -> Vec<String> {
        self.deviations
    }
}

impl Run<'_> {
    /// A fresh directory that holds `file`, `empty_file`, `empty/` and `full/file`.
    pub(super) fn cell(&mut self) -> String {
        self.cells += 1;
        let cell = format!("{}/cell{}", self.root, self.cells);
        let made = self.fs.create_dir(&cell).and_then(|()| {
            self.fs.write_file(format!("{cell}/file"), CONTENT)?;
            self.fs.write_file(format!("{cell}/empty_file"), b"")?;
            self.fs.create_dir(format!("{cell}/empty"))?;
            self.fs.create_dir(format!("{cell}/full"))?;
            self.fs.write_file(format!("{cell}/full/file"), CONTENT)
        });
        if let Err(error) = made {
            panic!(
                "cannot make files and directories to test with in {cell}: {error:#}; the tests need \
                 create_dir, new_writable_file, new_random_access_file and stat"
            );
        }
        cell
    }

    /// The path of a condition; `None` for a malformed one if there is none.
    pub(super) fn path(&self, cell: &str, is: Is) -> Option<String> {
        match is {
            Is::Malformed => self.malformed.map(str::to_owned),
            is => Some(format!("{cell}/{}", is.name())),
        }
    }

    pub(super) fn deviation(&mut self, what: impl Display) {
        self.deviations.push(what.to_string());
    }

    /// Notes a code that is not the wanted one; `UNIMPLEMENTED` is always allowed. Whether it is the
    /// wanted one.
    pub(super) fn expect(
        &mut self,
        what: impl Display,
        result: &Result<impl Sized>,
        want: Option<Code>,
    ) -> bool {
        let got = code_of(result);
        if got == want {
            return true;
        }
        if got != Some(Code::Unimplemented) {
            let text = match result {
                Ok(_) => String::new(),
                Err(error) => format!(" ({error:#})"),
            };
            self.deviation(format_args!("{what}: {}, not {}{text}", shown(want), shown(got)));
        }
        false
    }

    pub(super) fn expect_that(&mut self, what: impl Display, holds: bool) {
        if !holds {
            self.deviation(what);
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.fs.stat(path).is_ok()
    }

    pub(super) fn has(&self, path: &str, content: &[u8]) -> bool {
        self.fs.read_file(path).is_ok_and(|read| read == content)
    }

    /// Notes it if a cell is not as it was made.
    pub(super) fn untouched(&mut self, what: impl Display, cell: &str) {
        let is_dir = |name: &str| {
            self.fs.stat(format!("{cell}/{name}")).is_ok_and(|found| found.is_directory)
        };
        let holds = self.has(&format!("{cell}/file"), CONTENT)
            && self.has(&format!("{cell}/full/file"), CONTENT)
            && is_dir("empty")
            && is_dir("full")
            && !self.exists(&format!("{cell}/missing"))
            && !self.exists(&format!("{cell}/none"));
        self.expect_that(format_args!("{what}: failed, but changed something"), holds);
    }

    /// Runs an operation under each condition in a fresh cell. `after` looks at what a success did.
    pub(super) fn each(
        &mut self,
        op: &str,
        codes: &Codes,
        call: impl Fn(&Filesystem, &str) -> Result<()>,
        after: impl Fn(&mut Self, Is, &str),
    ) {
        for is in Is::ALL {
            let cell = self.cell();
            let Some(path) = self.path(&cell, is) else { continue };
            let what = format!("{op} of {is:?}");
            let result = call(&self.fs, &path);
            let want = codes.of(is);
            if self.expect(&what, &result, want) && want.is_none() {
                after(self, is, &path);
            } else if result.is_err() {
                self.untouched(&what, &cell);
            }
        }
    }
}
