//! Wheels: the files that `pip install` takes.

pub(crate) mod package;

use std::env;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cargo_metadata::Package;
use chrono::{Datelike as _, TimeZone as _, Utc};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::artefact::Artefact;
use crate::output::write_file;
use crate::platform::Compat;
use crate::project::Project;
use package::{Place, PythonPackage};

/// The variable with the time in seconds that all files of a reproducible archive have.
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

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
        let PythonPackage { distribution: name, module, version, summary, files: of_package } =
            PythonPackage::of(project, library, &Place::SitePackages)?;
        let file = library.path.file_name().and_then(|name| name.to_str());
        let file = file.context("the plugin's file has no name in UTF-8")?;
        let platform = library.platform(compat);
        let tag = format!("py3-none-{platform}");
        let info = format!("{module}-{version}.dist-info");
        let mut files = vec![
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
        let metadata = metadata(package, &name, &version, &summary, &licences)?;
        files.push(File::text(format!("{info}/METADATA"), metadata));
        for (name, content) in licences {
            files.push(File { path: format!("{info}/licenses/{name}"), content, mode: 0o644 });
        }
        files.extend(of_package.into_iter().map(|(path, content)| File {
            path: format!("{module}/{path}"),
            content,
            mode: 0o644,
        }));
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
    let mut licences: Vec<(String, Vec<u8>)> = Vec::new();
    for path in paths {
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((_, other)) = licences.iter().find(|(other, _)| *other == name) {
            if *other == content {
                continue;
            }
            name = format!("{}/{name}", licences.len());
        }
        licences.push((name, content));
    }
    Ok(licences)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

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
            let listed = licences.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
            assert_eq!(listed.join(" "), names);
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
}
