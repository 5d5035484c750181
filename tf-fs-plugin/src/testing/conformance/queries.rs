//! Questions about paths, listings, patterns and names.

use super::conditions::{Codes, FP, Is, NOT_FOUND};
use super::run::{CONTENT, Run};

impl Run<'_> {
    pub(super) fn queries(&mut self) {
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

    pub(super) fn listing(&mut self) {
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

    pub(super) fn matching(&mut self) {
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

    pub(super) fn names(&mut self) {
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
}
