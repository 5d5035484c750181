//! The systems on which a plugin can be loaded.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Result, bail};

use crate::artefact::{Artefact, ENTRY_POINTS};
use crate::elf_notes::NoteOf;

/// The prefixes of the libraries that every Linux with glibc has. Their versions are glibc's own,
/// or have not changed since any glibc that Rust supports.
const EVERYWHERE: &str = "libc.so. libm.so. libdl.so. librt.so. libpthread.so. libresolv.so. \
    libutil.so. libgcc_s.so. ld-linux";

/// How many functions are named as the reason for a glibc version.
const SHOWN_FUNCTIONS: usize = 6;

/// A version of glibc, such as 2.28.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glibc(pub(crate) u32, pub(crate) u32);

impl Glibc {
    /// The version that Rust's standard library needs.
    pub(crate) const OF_RUST: Self = Self(2, 17);

    /// Returns the version of a symbol version such as `GLIBC_2.17`.
    fn of_symbol_version(name: &str) -> Option<Self> {
        let number = name.strip_prefix("GLIBC_")?;
        if number == "ABI_DT_RELR" {
            // A kind of relocation, which is not named by a symbol.
            return Some(Self(2, 36));
        }
        let mut parts = number.split('.');
        Some(Self(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.0, self.1))
    }
}

/// The oldest glibc that the author promises to support, as `manylinux_2_28`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compat(pub(crate) Glibc);

impl fmt::Display for Compat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "manylinux_{}_{}", self.0.0, self.0.1)
    }
}

impl FromStr for Compat {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let glibc = match text {
            "manylinux2014" => Some(Glibc(2, 17)),
            "manylinux2010" => Some(Glibc(2, 12)),
            "manylinux1" => Some(Glibc(2, 5)),
            _ => text.strip_prefix("manylinux_").and_then(|numbers| {
                let (major, minor) = numbers.split_once('_')?;
                Some(Glibc(major.parse().ok()?, minor.parse().ok()?))
            }),
        };
        let Some(glibc) = glibc else {
            bail!("`{text}` is not a manylinux tag; write one such as manylinux_2_28");
        };
        if glibc < Glibc::OF_RUST {
            bail!("Rust itself needs glibc {}; write manylinux_2_17 or newer", Glibc::OF_RUST);
        }
        Ok(Self(glibc))
    }
}

impl Artefact {
    /// Returns the oldest glibc that can load the library.
    pub(crate) fn glibc(&self) -> Glibc {
        let named = self.versions.keys().filter_map(|name| Glibc::of_symbol_version(name));
        named.fold(Glibc::OF_RUST, Glibc::max)
    }

    /// Returns the needed libraries that some Linux systems lack.
    pub(crate) fn foreign(&self) -> Vec<&str> {
        let known = |name: &&str| EVERYWHERE.split(' ').any(|start| name.starts_with(start));
        self.needed.iter().map(String::as_str).filter(|name| !known(name)).collect()
    }

    /// Returns the platform tag of a wheel with this library: `compat`, or the oldest systems that can load it.
    pub(crate) fn platform(&self, compat: Option<Compat>) -> String {
        if self.foreign().is_empty() {
            format!("{}_{}", compat.unwrap_or(Compat(self.glibc())), self.machine)
        } else {
            format!("linux_{}", self.machine)
        }
    }

    /// Reads a library for any machine that TensorFlow is published for, and checks that it is a plugin.
    pub(crate) fn read_plugin(path: &Path) -> Result<Self> {
        let artefact = Self::read_for_any_machine(path)?;
        let shown = path.display();
        if !["x86_64", "aarch64"].contains(&artefact.machine.as_str()) {
            bail!(
                "{shown} is for {}, which TensorFlow is not published for; build it for x86_64 or aarch64",
                artefact.machine
            );
        }
        if artefact.entry_points.is_empty() {
            bail!(
                "{shown} exports nothing that TensorFlow looks for ({}); \
                 write `#[filesystem_plugin(scheme = \"…\")]` or `#[device_plugin]` on an impl in it, or `op_plugin!();` \
                 for its ops",
                ENTRY_POINTS[..3].join(", ")
            );
        }
        if let Some(musl) = artefact.needed.iter().find(|name| name.starts_with("libc.musl")) {
            bail!(
                "{shown} needs {musl}, and TensorFlow needs glibc; build it for a *-linux-gnu target"
            );
        }
        if artefact.needs_tensorflow() {
            bail!(
                "{shown} is linked with TensorFlow, which breaks `import tensorflow` where its libraries are not found; \
                 the SDK finds their functions at run time: link nothing of it"
            );
        }
        Ok(artefact)
    }

    /// Returns the schemes that it serves, or the types of its devices, from the notes of the SDK.
    pub(crate) fn noted(&self, of: NoteOf) -> Vec<String> {
        let notes = self.notes.iter().filter(|note| note.of == of);
        notes.map(|note| note.text.clone()).collect()
    }

    /// Checks that the library can be loaded on every system that `compat` promises.
    pub(crate) fn keeps(&self, compat: Compat) -> Result<()> {
        let (glibc, foreign) = (self.glibc(), self.foreign());
        if !foreign.is_empty() {
            bail!(
                "{} needs {}, which not every system of {compat} has; link it statically, or leave `--compat` out",
                self.path.display(),
                foreign.join(", ")
            );
        }
        if glibc <= compat.0 {
            return Ok(());
        }
        let mut functions = BTreeMap::<Glibc, Vec<&str>>::new();
        for (version, names) in &self.versions {
            if let Some(version) = Glibc::of_symbol_version(version).filter(|it| *it > compat.0) {
                functions.entry(version).or_default().extend(names.iter().map(String::as_str));
            }
        }
        let mut reasons = String::new();
        for (version, names) in functions.iter().rev().filter(|(_, names)| !names.is_empty()) {
            let more = names.len().saturating_sub(SHOWN_FUNCTIONS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let shown = &names[..names.len().min(SHOWN_FUNCTIONS)];
            reasons.push_str(&format!("\n  glibc {version:<5} {}{more}", shown.join(", ")));
        }
        bail!(
            "{} needs glibc {}, and {compat} promises {}:{reasons}\n\
             ways out:\n  \
             - link with zig, which knows each glibc: `pip install cargo-zigbuild ziglang`, and the same command again\n  \
             - build on an older system, such as PyPA's container {compat}_{}\n  \
             - leave `--compat` out: the plugin is for {} then",
            self.path.display(),
            glibc,
            compat.0,
            self.machine,
            Compat(glibc)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn manylinux_tags_are_glibc_versions() {
        for (text, major, minor) in
            [("manylinux_2_28", 2, 28), ("manylinux2014", 2, 17), ("manylinux_2_17", 2, 17)]
        {
            assert_eq!(text.parse::<Compat>().expect(text), Compat(Glibc(major, minor)));
        }
        for text in
            ["", "2.28", "manylinux", "manylinux_2", "manylinux_2_28_x86_64", "musllinux_1_2"]
        {
            let error = text.parse::<Compat>().expect_err(text).to_string();
            assert!(error.contains("write one such as manylinux_2_28"), "{error}");
        }
        for text in ["manylinux_2_5", "manylinux2010", "manylinux1"] {
            let error = text.parse::<Compat>().expect_err(text).to_string();
            assert!(error.contains("Rust itself needs glibc 2.17"), "{error}");
        }
    }

    #[test]
    fn symbol_versions_are_compared_as_numbers() {
        let of = |name| Glibc::of_symbol_version(name);
        assert!(of("GLIBC_2.9") < of("GLIBC_2.17"));
        assert_eq!(of("GLIBC_2.2.5"), Some(Glibc(2, 2)));
        assert_eq!(of("GLIBC_ABI_DT_RELR"), Some(Glibc(2, 36)));
        assert_eq!(of("GLIBC_PRIVATE"), None);
        assert_eq!(of("GCC_3.0"), None);
    }

    /// Builds a shared library in C, linked with others that are made for it.
    fn library(code: &str, others: &[&str]) -> Result<Artefact> {
        let directory = tempfile::tempdir().expect("a directory");
        let make = |name: &str, code: &str, needed: &[&str]| {
            let (source, path) = (directory.path().join("x.c"), directory.path().join(name));
            fs::write(&source, code).expect("written");
            let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
            let output = Command::new(&compiler)
                .args(["-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed", "-x", "c", "-o"])
                .args([&path, &source])
                .arg(format!("-Wl,-soname,{name}"))
                .args(["-x", "none"])
                .args(needed.iter().map(|name| directory.path().join(name)))
                .arg("-lc")
                .output()
                .expect("a compiler");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            path
        };
        for other in others {
            make(other, "int other;", &[]);
        }
        Artefact::read_plugin(&make("libplugin.so", code, others))
    }

    const PLUGIN: &str = "void TF_InitPlugin(void) {}";

    #[test]
    fn the_platform_tag_is_from_the_needed_functions() {
        let mut alone = library(PLUGIN, &[]).expect("a plugin");
        let machine = std::env::consts::ARCH;
        assert_eq!(alone.platform(None), format!("manylinux_2_17_{machine}"));
        let compat = Compat(Glibc(2, 28));
        assert_eq!(alone.platform(Some(compat)), format!("manylinux_2_28_{machine}"));
        alone.keeps(compat).expect("it needs less");
        // A symbol version that no function has.
        alone.versions.insert("GLIBC_ABI_DT_RELR".to_owned(), Vec::new());
        assert_eq!(alone.platform(None), format!("manylinux_2_36_{machine}"));

        let with_ssl = library(PLUGIN, &["libssl.so.3", "libm.so.9"]).expect("a plugin");
        assert_eq!(with_ssl.foreign(), ["libssl.so.3"]);
        assert_eq!(with_ssl.platform(None), format!("linux_{machine}"));
        let error = with_ssl.keeps(compat).expect_err("not every system has it").to_string();
        assert!(error.contains("needs libssl.so.3"), "{error}");

        for (other, advice) in [
            ("libtensorflow_framework.so.2", "is linked with TensorFlow"),
            ("libc.musl-x86_64.so.1", "needs libc.musl-x86_64.so.1, and TensorFlow needs glibc"),
        ] {
            let error = library(PLUGIN, &[other]).expect_err(other).to_string();
            assert!(error.contains(advice), "{error}");
        }
    }

    #[test]
    fn a_newer_glibc_is_refused_with_the_functions_that_need_it() {
        // In the C library itself since 2.34.
        let code = "extern void *dlsym(void *, const char *);
            void TF_InitPlugin(void) { dlsym((void *)0, \"x\"); }";
        let plugin = library(code, &[]).expect("a plugin");
        assert_eq!(plugin.glibc(), Glibc(2, 34));
        plugin.keeps(Compat(Glibc(2, 34))).expect("it is new enough");
        let error = plugin.keeps(Compat(Glibc(2, 28))).expect_err("too new").to_string();
        for line in [
            "needs glibc 2.34, and manylinux_2_28 promises 2.28",
            "\n  glibc 2.34  dlsym\n",
            "pip install cargo-zigbuild ziglang",
        ] {
            assert!(error.contains(line), "`{line}` is missing in {error}");
        }
    }
}
