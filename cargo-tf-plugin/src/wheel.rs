//! Wheels: the files that `pip install` takes.

use std::env;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cargo_metadata::Package;
use cargo_metadata::semver::{BuildMetadata, Version};
use chrono::{Datelike as _, TimeZone as _, Utc};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::artefact::Artefact;
use crate::elf_notes::NoteOf;
use crate::output::write_file;
use crate::platform::Compat;
use crate::project::{Project, distribution};
use crate::template::is_taken_in_python;

const MODULE: &str = include_str!("wheel/__init__.py");
const MAIN: &str = include_str!("wheel/__main__.py");

/// The variable with the time in seconds that all files of a reproducible archive have.
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// The longest summary, in characters: a longer line of RFC 822 would be hard to read.
const SUMMARY_LIMIT: usize = 512;

#[derive(Debug)]
pub(crate) struct Wheel {
    /// The name, such as `notes-0.1.0-py3-none-manylinux_2_34_x86_64.whl`.
    pub(crate) file_name: String,
    pub(crate) content: Vec<u8>,
    /// The name of the package in Python.
    pub(crate) module: String,
}

impl Wheel {
    pub(crate) fn new(
        project: &Project,
        library: &Artefact,
        compat: Option<Compat>,
    ) -> Result<Self> {
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
        let [schemes, device_types] =
            [NoteOf::Filesystem, NoteOf::Device].map(|of| library.noted(of));
        if schemes.is_empty() && device_types.is_empty() {
            bail!(
                "{} does not say what it brings, which the wheel's Python module is to know; export it with \
                 `#[filesystem_plugin(scheme = \"…\")]` or `#[device_plugin]` of this version of the SDK",
                library.path.display()
            );
        }
        let file = library.path.file_name().and_then(|name| name.to_str());
        let file = file.context("the plugin's file has no name in UTF-8")?;
        let version = python_version(&package.version)?;
        let platform = library.platform(compat);
        let tag = format!("py3-none-{platform}");
        let info = format!("{module}-{version}.dist-info");
        let summary = summary(package);

        let render = |text: &str| {
            text.replace("@summary@", &summary.replace('\\', "\\\\").replace('"', "'"))
                .replace("@version@", &python_text(&version))
                .replace("@schemes@", &python_tuple(&schemes))
                .replace("@device_types@", &python_tuple(&device_types))
                .replace("@library@", &python_text(file))
                .replace("@module@", &module)
                .replace("@name@", name)
        };
        let mut files = vec![
            File::text(format!("{module}/__init__.py"), render(MODULE)),
            File::text(format!("{module}/__main__.py"), render(MAIN)),
            File {
                path: format!("tensorflow-plugins/{file}"),
                content: fs::read(&library.path)
                    .with_context(|| format!("cannot read {}", library.path.display()))?,
                mode: 0o755,
            },
            File::text(
                format!("{info}/WHEEL"),
                format!(
                    "Wheel-Version: 1.0\nGenerator: cargo-tf-plugin {}\nRoot-Is-Purelib: false\nTag: {tag}\n",
                    env!("CARGO_PKG_VERSION")
                ),
            ),
        ];
        let licences = licences(package)?;
        let metadata = metadata(package, name, &version, &summary, &licences)?;
        files.push(File::text(format!("{info}/METADATA"), metadata));
        for (name, content) in licences {
            files.push(File { path: format!("{info}/licenses/{name}"), content, mode: 0o644 });
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let record = format!("{info}/RECORD");
        let mut lines: Vec<_> = files.iter().map(File::record).collect();
        lines.push(format!("{record},,\n"));
        // Last, as the format requires.
        files.push(File::text(record, lines.concat()));

        let time = timestamp(env::var(EPOCH_VARIABLE).ok().as_deref())?;
        Ok(Self {
            file_name: format!("{module}-{version}-{tag}.whl"),
            content: pack(&files, time).context("cannot pack the wheel")?,
            module,
        })
    }

    /// Writes the wheel into a directory, whole or not at all, and returns its path.
    pub(crate) fn write(&self, directory: &Path) -> Result<PathBuf> {
        let failed = || format!("cannot write a wheel into {}", directory.display());
        fs::create_dir_all(directory).with_context(failed)?;
        let path = directory.join(&self.file_name);
        write_file(&path, &self.content).with_context(failed)?;
        Ok(path)
    }
}

#[derive(Debug)]
struct File {
    path: String,
    content: Vec<u8>,
    mode: u32,
}

impl File {
    fn text(path: String, content: String) -> Self {
        Self { path, content: content.into_bytes(), mode: 0o644 }
    }

    /// Returns its line in `RECORD`.
    fn record(&self) -> String {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&self.content));
        format!("{},sha256={digest},{}\n", self.path, self.content.len())
    }
}

fn pack(files: &[File], time: DateTime) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(time)
            .unix_permissions(file.mode);
        archive.start_file(&*file.path, options)?;
        archive.write_all(&file.content)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// Returns the time of all files: that in [`EPOCH_VARIABLE`], else the first that an archive can have.
fn timestamp(epoch: Option<&str>) -> Result<DateTime> {
    let Some(text) = epoch.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(DateTime::default());
    };
    let Ok(seconds) = text.parse::<u64>() else {
        bail!(
            "{EPOCH_VARIABLE} is `{text}`; set it to seconds since 1970, such as the output of `date +%s`"
        );
    };
    let known =
        i64::try_from(seconds).ok().and_then(|seconds| Utc.timestamp_opt(seconds, 0).single());
    let time = known.and_then(|time| match time.year() {
        ..1980 => Some(DateTime::default()),
        _ => time.naive_utc().try_into().ok(),
    });
    time.with_context(|| format!("{EPOCH_VARIABLE} is `{text}`, which is too late for an archive"))
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

/// Returns the licence texts next to the manifest, and the one that it names; two of them may have the same name.
fn licences(package: &Package) -> Result<Vec<(String, Vec<u8>)>> {
    let directory = package.manifest_path.parent().context("a manifest is in a directory")?;
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .with_context(|| format!("cannot read {directory}"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|start| name.starts_with(start))
        })
        .filter(|path| path.is_file())
        .collect();
    paths.extend(package.license_file().map(Into::into));
    paths.sort();
    paths.dedup();
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    for path in paths {
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((_, other)) = found.iter().find(|(other, _)| *other == name) {
            if *other == content {
                continue;
            }
            name = format!("{}/{name}", found.len());
        }
        found.push((name, content));
    }
    Ok(found)
}

fn metadata(
    package: &Package,
    name: &str,
    version: &str,
    summary: &str,
    licences: &[(String, Vec<u8>)],
) -> Result<String> {
    // 2.4 is the first version with licence expressions, as cargo's licences are.
    let mut text = format!("Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n");
    let mut field = |name: &str, value: &str| {
        let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() {
            text.push_str(&format!("{name}: {line}\n"));
        }
    };
    field("Summary", summary);
    field("Keywords", &package.keywords.join(","));
    // Each field may occur once.
    for (name, has_address) in [("Author", false), ("Author-email", true)] {
        let authors = package.authors.iter().filter(|author| author.contains('@') == has_address);
        field(name, &authors.map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    // Cargo still accepts the `/` of its first years.
    let licence = package.license.as_deref().unwrap_or_default();
    let licence = licence.replace(" / ", "/").replace('/', " OR ");
    field("License-Expression", &licence);
    for (name, _) in licences {
        field("License-File", name);
    }
    for (label, address) in [
        ("Homepage", &package.homepage),
        ("Repository", &package.repository),
        ("Documentation", &package.documentation),
    ] {
        if let Some(address) = address {
            field("Project-URL", &format!("{label}, {address}"));
        }
    }
    field("Requires-Python", ">=3.8");
    if let Some(readme) = package.readme() {
        let content =
            fs::read_to_string(&readme).with_context(|| format!("cannot read {readme}"))?;
        let kind = match readme.extension() {
            Some("md" | "markdown") => "text/markdown",
            Some("rst") => "text/x-rst",
            _ => "text/plain",
        };
        field("Description-Content-Type", &format!("{kind}; charset=UTF-8"));
        text.push('\n');
        text.push_str(&content);
    }
    Ok(text)
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
    fn authors_share_a_field_and_licences_do_not_share_a_name() {
        let scratch = tempfile::tempdir().expect("a directory");
        let place = scratch.path().join("kit");
        fs::create_dir(&place).expect("made");
        let workspace = Workspace::current().expect("tests run in the workspace");
        let mut package = workspace.package("s3").expect("a package").clone();
        package.manifest_path = place.join("Cargo.toml").try_into().expect("UTF-8");
        (package.license_file, package.readme) = (Some("../LICENSE".into()), None);
        package.authors = ["Ada", "Bo <bo@x.org>", "Cy", "Di <di@x.org>"].map(Into::into).into();
        for (text, names) in [("Do.", "LICENSE"), ("Don't.", "LICENSE 1/LICENSE")] {
            fs::write(scratch.path().join("LICENSE"), "Do.").expect("written");
            fs::write(place.join("LICENSE"), text).expect("written");
            let licences = licences(&package).expect("read");
            let found = licences.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
            assert_eq!(found.join(" "), names);
            let text = metadata(&package, "kit", "1.0.0", "", &licences).expect("written");
            let authors = "Author: Ada, Cy\nAuthor-email: Bo <bo@x.org>, Di <di@x.org>\n";
            assert!(text.contains(authors), "{text}");
        }
    }

    #[test]
    fn the_time_of_all_files_is_the_epoch_s() {
        let read = |text| {
            let time = timestamp(Some(text)).expect(text);
            (time.year(), time.month(), time.day(), time.hour(), time.minute(), time.second())
        };
        assert_eq!(read("1709208000"), (2024, 2, 29, 12, 0, 0));
        assert_eq!(read("1735689599"), (2024, 12, 31, 23, 59, 58), "two seconds is the step");
        assert_eq!(read("951868800"), (2000, 3, 1, 0, 0, 0));
        let first = (1980, 1, 1, 0, 0, 0);
        assert_eq!([read("0"), read(""), read("315532799")], [first; 3]);
        for text in ["soon", "-1", "99999999999999"] {
            let error = format!("{:#}", timestamp(Some(text)).expect_err(text));
            assert!(error.contains("SOURCE_DATE_EPOCH is `"), "{error}");
        }
    }

    #[test]
    fn python_sees_the_texts_as_they_are() {
        assert_eq!(python_tuple(&[]), "()");
        assert_eq!(python_tuple(&["a".into()]), "(\"a\",)");
        assert_eq!(python_tuple(&["a".into(), "b".into()]), "(\"a\", \"b\",)");
        assert_eq!(python_text("a\"\\\n"), "\"a\\\"\\\\\\n\"");
    }
}
