//! The Python package of a plugin, in its wheel and for development.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::Package;
use cargo_metadata::semver::{BuildMetadata, Version};

use crate::artefact::Artefact;
use crate::elf_notes::NoteOf;
use crate::ops::{Description, python};
use crate::output::write_file;
use crate::project::{Project, distribution};
use crate::template::is_taken_in_python;

/// The longest summary, in characters: a longer line of RFC 822 would be hard to read.
const SUMMARY_LIMIT: usize = 512;

/// The name of the file that an author may write.
const INIT: &str = "__init__.py";

/// Where the plugin's library is.
#[derive(Debug)]
pub(crate) enum Place {
    /// In `tensorflow-plugins`, next to the package.
    SitePackages,
    /// At this path.
    At(PathBuf),
}

/// A Python package: what a plugin brings, and functions for its ops.
#[derive(Debug)]
pub(crate) struct PythonPackage {
    /// The name for pip.
    pub(crate) distribution: String,
    /// The name in Python.
    pub(crate) module: String,
    pub(crate) version: String,
    pub(crate) summary: String,
    /// The files, by their paths in the package.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl PythonPackage {
    pub(crate) fn of(project: &Project, library: &Artefact, place: &Place) -> Result<Self> {
        let package = &project.package;
        let name = distribution(package)?;
        let module = name.replace('-', "_");
        if is_taken_in_python(&module) {
            bail!(
                "a Python module `{module}` would hide Python's own or TensorFlow's; rename the package `{}`, or name \
                 the wheel with `wheel = \"…\"` below `[package.metadata.tf-plugin]`",
                package.name
            );
        }
        let [schemes, device_types, mut ops] =
            [NoteOf::Filesystem, NoteOf::Device, NoteOf::Op].map(|of| library.noted(of));
        ops.sort();
        // A device may have ops that are not for users: it does not describe them.
        if !(library.describes_ops || schemes.is_empty() && device_types.is_empty()) {
            ops.clear();
        }
        if schemes.is_empty() && device_types.is_empty() && ops.is_empty() {
            bail!(
                "{} does not say what it brings, which the wheel's Python module is to know; export it with \
                 `#[filesystem_plugin(scheme = \"…\")]`, `#[device_plugin]` or `#[op]` of this version of the SDK",
                library.path.display()
            );
        }
        let file = library.path.file_name().and_then(|name| name.to_str());
        let file = file.context("the plugin's file has no name in UTF-8")?;
        let path = match place {
            Place::SitePackages => format!(
                "os.path.join(\n    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), \"tensorflow-plugins\", {}\n)",
                python_text(file)
            ),
            Place::At(path) => {
                python_text(path.to_str().context("the plugin's path is not UTF-8")?)
            }
        };
        let version = python_version(&package.version)?;
        let summary = summary(package);
        let render = |text: &str| {
            text.replace("@summary@", &summary.replace('\\', "\\\\").replace('"', "'"))
                .replace("@version@", &python_text(&version))
                .replace("@schemes@", &python_tuple(&schemes))
                .replace("@device_types@", &python_tuple(&device_types))
                .replace("@ops@", &python_tuple(&ops))
                .replace("@path@", &path)
                .replace("@module@", &module)
                .replace("@name@", name)
        };
        let mut files = vec![
            ("__main__.py", render(include_str!("__main__.py"))),
            ("_plugin.py", render(include_str!("_plugin.py"))),
        ];
        let init = if ops.is_empty() {
            include_str!("__init__.py")
        } else {
            let description = Description::of(library)?;
            files.extend([
                ("_runtime.py", render(include_str!("_runtime.py"))),
                ("ops.py", python::module(file, &description)?),
                ("py.typed", String::new()),
            ]);
            include_str!("_ops_init.py")
        };
        let mut files: Vec<_> =
            files.into_iter().map(|(path, text)| (path.to_owned(), text.into_bytes())).collect();
        let by_hand = by_hand(package)?;
        for (path, _) in &by_hand {
            if files.iter().any(|(other, _)| other == path) {
                bail!(
                    "`package.metadata.tf-plugin.python` of the package `{}` has a file {path}, which the wheel has, too; \
                     rename it",
                    package.name
                );
            }
        }
        if !by_hand.iter().any(|(path, _)| path == INIT) {
            files.push((INIT.to_owned(), render(init).into_bytes()));
        }
        files.extend(by_hand);
        Ok(Self { distribution: name.to_owned(), module, version, summary, files })
    }

    /// Writes the package into a directory that can be on `PYTHONPATH`, and returns that directory.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let package = directory.join(&self.module);
        for (path, content) in &self.files {
            let path = package.join(path);
            let failed = || format!("cannot write {}; is it writable?", path.display());
            // A running program may be reading it.
            if fs::read(&path).is_ok_and(|there| there == *content) {
                continue;
            }
            fs::create_dir_all(path.parent().unwrap_or(&package)).with_context(failed)?;
            write_file(&path, content).with_context(failed)?;
        }
        Ok(())
    }

    /// Writes the package of a library of ops for programs that use the library where cargo has built it, and returns
    /// the directory for `PYTHONPATH`; `None` for a library that describes no ops and needs no package.
    pub(crate) fn for_development(
        project: &Project,
        library: &Artefact,
    ) -> Result<Option<PathBuf>> {
        if library.noted(NoteOf::Op).is_empty() || !library.describes_ops {
            return Ok(None);
        }
        let path = fs::canonicalize(&library.path).unwrap_or_else(|_| library.path.clone());
        let package = Self::of(project, library, &Place::At(path))?;
        let profile = library.path.parent().and_then(Path::file_name).unwrap_or_default();
        let directory = project.workspace.target_dir().join("tf-plugin/modules").join(profile);
        package.write(&directory)?;
        Ok(Some(directory))
    }
}

/// Returns the files of the directory that the manifest names, which the author has written.
fn by_hand(package: &Package) -> Result<Vec<(String, Vec<u8>)>> {
    let wanted = &package.metadata["tf-plugin"]["python"];
    if wanted.is_null() {
        return Ok(Vec::new());
    }
    let manifest = package.manifest_path.parent().context("a manifest is in a directory")?;
    let directory = wanted.as_str().map(|path| manifest.join(path).into_std_path_buf());
    let Some(directory) = directory.filter(|directory| directory.is_dir()) else {
        bail!(
            "`package.metadata.tf-plugin.python` of the package `{}` is {wanted}; name a directory next to its Cargo.toml, \
             with the modules that the wheel is to have",
            package.name
        );
    };
    let mut files = Vec::new();
    let mut places = vec![directory.clone()];
    while let Some(place) = places.pop() {
        let failed = || format!("cannot read {}", place.display());
        for entry in fs::read_dir(&place).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "__pycache__" || name.ends_with(".pyc") {
                continue;
            }
            if path.is_dir() {
                places.push(path);
                continue;
            }
            let inner = path.strip_prefix(&directory).unwrap_or(&path);
            let inner =
                inner.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
            let content =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((inner.to_owned(), content));
        }
    }
    files.sort();
    Ok(files)
}

/// Converts a version of cargo's to pip's form: `1.2.3-rc.1` is `1.2.3rc1`.
fn python_version(version: &Version) -> Result<String> {
    let mut text = format!("{}.{}.{}", version.major, version.minor, version.patch);
    if !version.pre.is_empty() {
        let pre = version.pre.as_str();
        let split = pre.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(pre.len());
        let (kind, number) = pre.split_at(split);
        let number = number.strip_prefix(['.', '-']).unwrap_or(number);
        let number = if number.is_empty() { "0" } else { number };
        let kind = match kind {
            "a" | "alpha" => "a",
            "b" | "beta" => "b",
            "c" | "rc" | "pre" | "preview" => "rc",
            "dev" => ".dev",
            "post" => ".post",
            _ => "",
        };
        let Some(number) = number.parse::<u64>().ok().filter(|_| !kind.is_empty()) else {
            bail!(
                "pip has no version like {version}; write the part after `-` as alpha.N, beta.N, rc.N or dev.N"
            );
        };
        text.push_str(&format!("{kind}{number}"));
    }
    if version.build != BuildMetadata::EMPTY {
        text.push_str(&format!("+{}", version.build.replace('-', ".").to_ascii_lowercase()));
    }
    Ok(text)
}

/// Returns one line that says what the package is.
fn summary(package: &Package) -> String {
    let text = package.description.as_deref().unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line =
        if line.is_empty() { format!("{}, a plugin for TensorFlow", package.name) } else { line };
    line.chars().take(SUMMARY_LIMIT).collect()
}

fn python_text(text: &str) -> String {
    // JSON strings are also Python strings.
    serde_json::Value::from(text).to_string()
}

fn python_tuple(texts: &[String]) -> String {
    let all: String = texts.iter().map(|text| format!("{}, ", python_text(text))).collect();
    format!("({})", all.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn versions_become_pip_s() {
        for (cargo, pip) in [
            ("1.2.3", "1.2.3"),
            ("0.1.0-alpha", "0.1.0a0"),
            ("0.1.0-alpha.2", "0.1.0a2"),
            ("0.1.0-beta3", "0.1.0b3"),
            ("1.0.0-rc.1", "1.0.0rc1"),
            ("1.0.0-dev.4+Build-5", "1.0.0.dev4+build.5"),
        ] {
            let version = cargo.parse().expect(cargo);
            assert_eq!(python_version(&version).expect(cargo), pip);
        }
        for cargo in ["1.0.0-1", "1.0.0-nightly", "1.0.0-rc.1.2", "1.0.0-alpha.x"] {
            let error = python_version(&cargo.parse().expect(cargo)).expect_err(cargo).to_string();
            assert!(error.contains("alpha.N, beta.N, rc.N or dev.N"), "{error}");
        }
    }

    #[test]
    fn the_manifest_names_modules_that_are_written_by_hand() {
        let place = tempfile::tempdir().expect("a directory");
        let workspace = Workspace::current().expect("tests run in the workspace");
        let mut package = workspace.package("s3").expect("a package").clone();
        package.manifest_path = place.path().join("Cargo.toml").try_into().expect("UTF-8");
        assert!(by_hand(&package).expect("none").is_empty());
        package.metadata = serde_json::json!({"tf-plugin": {"python": "python"}});
        let error = by_hand(&package).expect_err("no such directory").to_string();
        assert!(error.contains("is \"python\"; name a directory"), "{error}");
        for path in ["python/a.py", "python/b/c.py", "python/__pycache__/a.pyc", "python/.x"] {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "x").expect("written");
        }
        let found = by_hand(&package).expect("two");
        let found: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(found, ["a.py", "b/c.py"]);
    }

    #[test]
    fn python_sees_the_texts_as_they_are() {
        assert_eq!(python_tuple(&[]), "()");
        assert_eq!(python_tuple(&["a".into()]), "(\"a\",)");
        assert_eq!(python_tuple(&["a".into(), "b".into()]), "(\"a\", \"b\",)");
        assert_eq!(python_text("a\"\\\n"), "\"a\\\"\\\\\\n\"");
    }
}
