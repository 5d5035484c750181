//! The codes and effects that `filesystem_interface.h` asks for, condition by condition.

use super::filesystem::Filesystem;
use super::{Host, Tables};
use crate::error::{Code, Error, Result};
use std::fmt::Display;

/// Holds a filesystem against what TensorFlow's header asks of it: each operation under each condition
/// (the path is missing, a parent is missing, a file, a directory, a parent is a file …), with the code
/// and the effect.
///
/// An operation may be unwritten: then TensorFlow's default or the SDK's is held against the same
/// table, and `UNIMPLEMENTED` is fine where there is none.
///
/// ```no_run
/// # fn host() -> tf_fs_plugin::testing::Host { unimplemented!() }
/// # let host = host();
/// use tf_fs_plugin::testing::Conformance;
/// Conformance::new(&host, "mem://box/").check();
/// ```
#[derive(Debug)]
pub struct Conformance<'h> {
    host: &'h Host,
    root: String,
    malformed: Option<String>,
}

impl<'h> Conformance<'h> {
    /// Checks below `root`, the URI of a directory that exists; what is created there stays.
    #[must_use]
    pub fn new(host: &'h Host, root: impl Into<String>) -> Self {
        let mut root: String = root.into();
        if root.ends_with('/') {
            root.pop();
        }
        Self { host, root, malformed: None }
    }

    /// A URI that this filesystem can never accept; each operation must answer
    /// `FAILED_PRECONDITION` to it.
    #[must_use]
    pub fn malformed(mut self, uri: impl Into<String>) -> Self {
        self.malformed = Some(uri.into());
        self
    }

    /// Checks everything.
    ///
    /// # Panics
    /// If anything deviates, with a list of all that does; or if the directory, or the files and
    /// directories to test with, cannot be made at all.
    #[track_caller]
    pub fn check(&self) {
        let deviations = self.deviations();
        let list: String = deviations.iter().map(|line| format!("\n  {line}")).collect();
        assert!(
            deviations.is_empty(),
            "{} deviation(s) from what TensorFlow's header asks for:{list}",
            deviations.len()
        );
        self.host.check();
    }

    /// What deviates, one line each: the condition, what is wanted and what came.
    ///
    /// # Panics
    /// If the directory, or the files and directories to test with, cannot be made at all.
    #[must_use]
    pub fn deviations(&self) -> Vec<String> {
        let fs = self
            .host
            .filesystem_for(format!("{}/", self.root))
            .expect("the root is of a registered scheme");
        let mut run = Run {
            tables: fs.tables(),
            fs,
            root: &self.root,
            malformed: self.malformed.as_deref(),
            cells: 0,
            deviations: Vec::new(),
        };
        run.opening();
        run.visible_while_open();
        run.file_objects();
        run.directories();
        run.deleting();
        run.renaming_and_copying();
        run.queries();
        run.listing();
        run.matching();
        run.names();
        run.transactions();
        run.configuration();
        run.deviations
    }
}

const CONTENT: &[u8] = b"content";

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Missing,
    ParentMissing,
    File,
    EmptyDir,
    FullDir,
    /// Directly below a file.
    BelowFile,
    /// Two levels below a file.
    FarBelowFile,
    Malformed,
}

impl Is {
    const ALL: [Self; 8] = [
        Self::Missing,
        Self::ParentMissing,
        Self::File,
        Self::EmptyDir,
        Self::FullDir,
        Self::BelowFile,
        Self::FarBelowFile,
        Self::Malformed,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::ParentMissing => "none/missing",
            Self::File => "file",
            Self::EmptyDir => "empty",
            Self::FullDir => "full",
            Self::BelowFile => "file/below",
            Self::FarBelowFile => "file/far/below",
            Self::Malformed => "",
        }
    }
}

/// The codes of an operation for each condition; `None` is OK. A path below a file and a malformed one
/// are `FAILED_PRECONDITION` for every operation.
struct Codes {
    missing: Option<Code>,
    parent_missing: Option<Code>,
    file: Option<Code>,
    empty_dir: Option<Code>,
    full_dir: Option<Code>,
}

impl Codes {
    fn of(&self, is: Is) -> Option<Code> {
        match is {
            Is::Missing => self.missing,
            Is::ParentMissing => self.parent_missing,
            Is::File => self.file,
            Is::EmptyDir => self.empty_dir,
            Is::FullDir => self.full_dir,
            Is::BelowFile | Is::FarBelowFile | Is::Malformed => FP,
        }
    }
}

const FP: Option<Code> = Some(Code::FailedPrecondition);
const NOT_FOUND: Option<Code> = Some(Code::NotFound);
const EXISTS: Option<Code> = Some(Code::AlreadyExists);

struct Run<'r> {
    fs: Filesystem,
    tables: Tables,
    root: &'r str,
    malformed: Option<&'r str>,
    cells: usize,
    deviations: Vec<String>,
}

fn shown(code: Option<Code>) -> String {
    code.map_or_else(|| String::from("OK"), |code| format!("{code:?}"))
}

fn code_of<T>(result: &Result<T>) -> Option<Code> {
    result.as_ref().err().map(Error::code)
}

impl Run<'_> {
    /// A fresh directory that holds `file`, `empty_file`, `empty/` and `full/file`.
    fn cell(&mut self) -> String {
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
    fn path(&self, cell: &str, is: Is) -> Option<String> {
        match is {
            Is::Malformed => self.malformed.map(str::to_owned),
            is => Some(format!("{cell}/{}", is.name())),
        }
    }

    fn deviation(&mut self, what: impl Display) {
        self.deviations.push(what.to_string());
    }

    /// Notes a code that is not the wanted one; `UNIMPLEMENTED` is always allowed. Whether it is the
    /// wanted one.
    fn expect(
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

    fn expect_that(&mut self, what: impl Display, holds: bool) {
        if !holds {
            self.deviation(what);
        }
    }

    fn exists(&self, path: &str) -> bool {
        self.fs.stat(path).is_ok()
    }

    fn has(&self, path: &str, content: &[u8]) -> bool {
        self.fs.read_file(path).is_ok_and(|read| read == content)
    }

    /// Notes it if a cell is not as it was made.
    fn untouched(&mut self, what: impl Display, cell: &str) {
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
    fn each(
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

    fn opening(&mut self) {
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
    fn visible_while_open(&mut self) {
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

    fn file_objects(&mut self) {
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

    fn directories(&mut self) {
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

    fn deleting(&mut self) {
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

    fn renaming_and_copying(&mut self) {
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

    fn expect_moved(
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

    fn queries(&mut self) {
        let anything = Codes {
            missing: NOT_FOUND,
            parent_missing: NOT_FOUND,
            file: None,
            empty_dir: None,
            full_dir: None,
        };
        self.each("path_exists", &anything, |fs, path| fs.path_exists(path), |_, _, _| {});
        self.each(
            "stat",
            &anything,
            |fs, path| fs.stat(path).map(drop),
            |run, is, path| {
                if let Ok(found) = run.fs.stat(path) {
                    let is_file = is == Is::File;
                    let length = if is_file { CONTENT.len() as u64 } else { found.length };
                    run.expect_that(
                        format_args!("stat of {is:?}: kind and length"),
                        found.is_directory != is_file && found.length == length,
                    );
                }
            },
        );
        self.each(
            "is_directory",
            &Codes { file: FP, ..anything },
            |fs, path| fs.is_directory(path),
            |_, _, _| {},
        );
        self.each(
            "get_file_size",
            &Codes {
                missing: NOT_FOUND,
                parent_missing: NOT_FOUND,
                file: None,
                empty_dir: FP,
                full_dir: FP,
            },
            |fs, path| fs.get_file_size(path).map(drop),
            |run, is, path| {
                let holds = run.fs.get_file_size(path).is_ok_and(|size| size == 7);
                run.expect_that(format_args!("get_file_size of {is:?}: 7"), holds);
            },
        );
        let cell = self.cell();
        for (name, length) in [("empty_file", 0), ("file", 7)] {
            if let Ok(found) = self.fs.stat(format!("{cell}/{name}")) {
                self.expect_that(format_args!("stat of {name}: length"), found.length == length);
            }
        }
        let root = self.fs.is_directory(format!("{}/", self.root));
        self.expect("is_directory of the root", &root, None);

        let path = |is: Is| format!("{cell}/{}", is.name());
        let some = [Is::File, Is::EmptyDir, Is::BelowFile, Is::Missing];
        let wants = [None, None, FP, NOT_FOUND];
        match self.fs.paths_exist(&some.map(path)) {
            Ok(answers) => {
                for ((is, answer), want) in some.into_iter().zip(&answers).zip(wants) {
                    self.expect(format_args!("paths_exist of {is:?}"), answer, want);
                }
            }
            Err(error) => self.deviation(format_args!("paths_exist: {error:#}")),
        }
        for (paths, want) in
            [(&some[..2], true), (&some[..], false), (&some[3..], false), (&some[..0], true)]
        {
            let paths: Vec<String> = paths.iter().copied().map(path).collect();
            let all = self.fs.all_paths_exist(&paths).unwrap_or(!want);
            let what = format!("paths_exist without statuses, {} paths: {want}", paths.len());
            self.expect_that(what, all == want);
        }
    }

    fn listing(&mut self) {
        self.each(
            "get_children",
            &Codes {
                missing: NOT_FOUND,
                parent_missing: NOT_FOUND,
                file: FP,
                empty_dir: None,
                full_dir: None,
            },
            |fs, path| fs.get_children(path).map(drop),
            |run, is, path| {
                let want: &[&[u8]] = if is == Is::FullDir { &[b"file"] } else { &[] };
                let holds = run.fs.get_children(path).is_ok_and(|names| names == want);
                run.expect_that(format_args!("get_children of {is:?}: the names"), holds);
            },
        );
        let cell = self.cell();
        if let Ok(mut names) = self.fs.get_children(&cell) {
            names.sort_unstable();
            let want: [&[u8]; 4] = [b"empty", b"empty_file", b"file", b"full"];
            self.expect_that("get_children: files and directories, each once", names == want);
        }
    }

    fn matching(&mut self) {
        let cell = self.cell();
        for name in ["part-0", "part-1", "part-x", "full/part-0"] {
            if let Err(error) = self.fs.write_file(format!("{cell}/{name}"), name) {
                self.deviation(format_args!("write of {name}: {error:#}"));
            }
        }
        for (pattern, want) in [
            ("part-*", &["part-0", "part-1", "part-x"][..]),
            ("part-?", &["part-0", "part-1", "part-x"]),
            ("part-[01]", &["part-0", "part-1"]),
            ("part-[0-9]", &["part-0", "part-1"]),
            ("part-[^0]", &["part-1", "part-x"]),
            (r"part-\x", &["part-x"]),
            (r"part-\*", &[]),
            ("part", &[]),
            ("*/part-0", &["full/part-0"]),
            ("*/*", &["full/file", "full/part-0"]),
            ("f*", &["file", "full"]),
            ("f*t-0", &[]),
            ("file", &["file"]),
            ("empty", &["empty"]),
            ("missing", &[]),
            ("missing/*", &[]),
            ("file/*", &[]),
            ("empty/*", &[]),
        ] {
            let found = self.fs.get_matching_paths(format!("{cell}/{pattern}"));
            if self.expect(format_args!("get_matching_paths of {pattern}"), &found, None)
                && let Ok(mut found) = found
            {
                found.sort_unstable();
                let want: Vec<_> =
                    want.iter().map(|name| format!("{cell}/{name}").into_bytes()).collect();
                let holds = found == want;
                self.expect_that(format_args!("get_matching_paths of {pattern}: the names"), holds);
            }
        }
    }

    fn names(&mut self) {
        let cell = self.cell();
        let scheme = self.fs.scheme().escape_ascii().to_string();
        for root in ["://", ":///", ":////"] {
            let name = self.fs.translate_name(format!("{scheme}{root}"));
            let holds = name.is_ok_and(|name| name == b"/");
            self.expect_that(format_args!("translate_name of {scheme}{root}: /"), holds);
        }
        for (name, want) in [
            ("./a_file", "a_file"),
            ("a/convoluted/../path/./to/.//.///a/file", "a/path/to/a/file"),
        ] {
            let translated = self.fs.translate_name(format!("{cell}/{name}"));
            let whole = self.fs.translate_name(format!("{cell}/{want}"));
            let holds = match (translated, whole) {
                (Ok(translated), Ok(whole)) => translated == whole,
                _ => false,
            };
            self.expect_that(format_args!("translate_name of {name}: ends in {want}"), holds);
        }
        let holds = self.has(&format!("{cell}//full/./../full/file"), CONTENT);
        self.expect_that("a name that is not in canonical form names the same file", holds);
    }

    fn transactions(&mut self) {
        if self.tables.filesystem.start_transaction.is_none() {
            return;
        }
        let cell = self.cell();
        let path = format!("{cell}/file");
        match self.fs.start_transaction() {
            Ok(transaction) => {
                let fs = self.fs.clone();
                self.expect(
                    "get_transaction_for_path of a path in none",
                    &fs.get_transaction_for_path(&path),
                    NOT_FOUND,
                );
                let added = fs.add_to_transaction(&path, &transaction);
                if self.expect("add_to_transaction", &added, None) {
                    let found = fs.get_transaction_for_path(&path);
                    self.expect("get_transaction_for_path", &found, None);
                    let holds = found.is_ok_and(|found| found == transaction);
                    self.expect_that("get_transaction_for_path: the same transaction", holds);
                    let found = fs.get_or_start_transaction_for_path(&path);
                    if self.expect("get_or_start_transaction_for_path", &found, None) {
                        let holds = found.is_ok_and(|found| found == transaction);
                        let what = "get_or_start_transaction_for_path: the same transaction";
                        self.expect_that(what, holds);
                    }
                }
                self.expect("end_transaction", &fs.end_transaction(&transaction), None);
                let again = fs.end_transaction(&transaction);
                self.expect("end_transaction of one that has ended", &again, NOT_FOUND);
                let added = fs.add_to_transaction(&path, &transaction);
                self.expect("add_to_transaction of one that has ended", &added, NOT_FOUND);
            }
            Err(error) => {
                self.expect("start_transaction", &Err::<(), _>(error), None);
            }
        }
    }

    fn configuration(&mut self) {
        let fs = self.fs.clone();
        let ops = self.tables.filesystem;
        if ops.get_filesystem_configuration_option.is_some() {
            let found = fs.get_filesystem_configuration_option("no such option");
            let what = "get_filesystem_configuration_option of an unknown key";
            self.expect(what, &found, NOT_FOUND);
        }
        let listed = fs.get_filesystem_configuration();
        if self.expect("get_filesystem_configuration", &listed, None)
            && let Ok(options) = listed
        {
            let keys = fs.get_filesystem_configuration_keys();
            if self.expect("get_filesystem_configuration_keys", &keys, None)
                && let Ok(keys) = keys
            {
                let holds = keys.iter().eq(options.iter().map(|option| &option.name));
                self.expect_that("get_filesystem_configuration_keys: those of all options", holds);
            }
            for option in &options {
                let found = fs.get_filesystem_configuration_option(&option.name);
                let what = format!("get_filesystem_configuration_option of {}", option.name);
                if self.expect(&what, &found, None) {
                    let holds = found.is_ok_and(|found| found == *option);
                    self.expect_that(format_args!("{what}: as it is listed"), holds);
                }
            }
        }
    }
}
