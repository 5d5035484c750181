//! A shared library, read without running it.

use std::collections::{BTreeMap, BTreeSet};
use std::env::consts::ARCH;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::elf::FileHeader64;
use object::read::ReadCache;
use object::read::elf::{
    Dyn as _, ElfFile64, FileHeader as _, ProgramHeader as _, SectionHeader as _,
};
use object::{Endianness, FileKind, Object as _, ObjectSymbol as _, elf};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::TensorFlow;
use crate::elf_notes::{Note, WRITER_DEFAULT, number};

/// The functions that TensorFlow looks for in a shared library.
pub(crate) const ENTRY_POINTS: [&str; 7] = [
    "TF_InitPlugin",
    "TF_InitKernel",
    "SE_InitPlugin",
    "TF_InitGraph",
    "TF_InitProfiler",
    "TFNPD_InitPlugin",
    "GetPjrtApi",
];

/// The other exports of the SDK's macros, for Python and for this command.
const OF_THE_SDK: [&str; 2] = ["tf_plugin_device_type", OPS];

/// The export that describes the ops of a library.
pub(crate) const OPS: &str = "tf_plugin_ops";

/// The names of TensorFlow's libraries, without version and ending.
const TENSORFLOW_LIBRARIES: [&str; 2] = ["libtensorflow_framework.", "libtensorflow_cc."];

/// The section with the notes of the SDK's macros.
const NOTES: &str = ".note.tf_plugin";

/// A shared library.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Artefact {
    pub(crate) path: PathBuf,
    /// The size in bytes.
    pub size: u64,
    pub(crate) sha256: String,
    pub(crate) machine: String,
    /// TensorFlow's entry points that the library exports.
    pub entry_points: Vec<&'static str>,
    /// Its other exports, except those of the SDK's macros.
    pub other_exports: Vec<String>,
    /// Whether it describes its ops.
    #[serde(skip)]
    pub(crate) describes_ops: bool,
    /// The libraries that the dynamic linker loads for it.
    pub needed: Vec<String>,
    /// The highest version that it needs of each: `GLIBC`, `GLIBCXX`, `CXXABI`.
    pub(crate) floors: BTreeMap<String, Floor>,
    /// The versions of the system's libraries that it names, such as `GLIBC_2.34`, with the functions of each.
    #[serde(skip)]
    pub versions: BTreeMap<String, Vec<String>>,
    /// The functions of TensorFlow's C API that it imports.
    pub c_imports: BTreeSet<String>,
    /// Its other imports from TensorFlow, by the linker's names.
    pub cpp_imports: BTreeSet<String>,
    /// Whether its code is relocated when it is loaded.
    pub text_relocations: bool,
    pub(crate) executable_stack: bool,
    pub(crate) notes: Vec<Note>,
    /// The SDK's defaults that some type of the library has in `WritableFile`: 1 `flush`, 2 `sync`, 4 `close`.
    #[serde(skip)]
    pub(crate) writer_defaults: u32,
}

/// The oldest version of a system library with which a plugin can be loaded.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Floor {
    pub(crate) version: String,
    /// The functions that need this version.
    pub(crate) because: Vec<String>,
}

impl Artefact {
    /// Reads a shared library for this machine.
    pub fn read(path: &Path) -> Result<Self> {
        let artefact = Self::read_for_any_machine(path)?;
        if artefact.machine != ARCH {
            bail!(
                "{} is for {} and this machine is {ARCH}; check it on a machine of its kind, or build it for this one",
                path.display(),
                artefact.machine
            );
        }
        Ok(artefact)
    }

    pub(crate) fn read_for_any_machine(path: &Path) -> Result<Self> {
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("{} does not exist; build the plugin first", path.display())
            }
            metadata => metadata.with_context(|| format!("cannot read {}", path.display()))?,
        };
        if metadata.is_dir() {
            bail!(
                "{} is a directory; name the `.so` in it, or run this in the directory of a package",
                path.display()
            );
        }
        if !metadata.is_file() {
            bail!("{} is not a regular file; name the `.so` of a plugin", path.display());
        }
        let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        check_kind(path, &content)?;
        let damaged = || format!("{} is damaged; build it again", path.display());
        let file: ElfFile64<'_> = ElfFile64::parse(&*content).with_context(damaged)?;
        check_type(path, &file)?;
        let mut artefact = Self {
            path: path.to_owned(),
            size: metadata.len(),
            sha256: Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect(),
            machine: format!("{:?}", file.architecture()).to_lowercase(),
            ..Self::default()
        };
        artefact.fill(&file).with_context(damaged)?;
        Ok(artefact)
    }

    fn fill(&mut self, file: &ElfFile64<'_>) -> object::Result<()> {
        let (endian, data) = (file.endian(), file.data());
        let mut exports = BTreeSet::new();
        for symbol in file.dynamic_symbols() {
            let name = symbol.name()?.to_owned();
            if name.is_empty() || symbol.is_local() {
                continue;
            }
            if !symbol.is_undefined() {
                // Weak symbols, such as templates that several object files share, are not an interface.
                if !symbol.is_weak() && !name.starts_with("_ZGT") {
                    exports.insert(name);
                }
            } else if !symbol.is_weak() {
                if is_c_api(&name) {
                    self.c_imports.insert(name);
                } else if is_tensorflows_cpp(&name) {
                    self.cpp_imports.insert(name);
                }
            }
        }
        self.entry_points =
            ENTRY_POINTS.into_iter().filter(|name| exports.contains(*name)).collect();
        self.describes_ops = exports.contains(OPS);
        self.other_exports = exports
            .into_iter()
            .filter(|name| {
                !self.entry_points.contains(&name.as_str()) && !OF_THE_SDK.contains(&&**name)
            })
            .collect();

        let sections = file.elf_header().sections(endian, data)?;
        for section in sections.iter() {
            if let Some((entries, strings)) = section.dynamic(endian, data)? {
                let strings = sections.strings(endian, data, strings)?;
                for entry in entries {
                    let tag = entry.tag(endian);
                    if tag == elf::DT_NEEDED {
                        let name = entry.string(endian, strings)?;
                        self.needed.push(String::from_utf8_lossy(name).into_owned());
                    }
                    self.text_relocations |= tag == elf::DT_TEXTREL;
                }
            }
            if sections.section_name(endian, section)? == NOTES.as_bytes()
                && let Some(mut notes) = section.notes(endian, data)?
            {
                while let Some(note) = notes.next()? {
                    if note.name() == b"tf-plugin" {
                        let (kind, description) = (note.n_type(endian).0, note.desc());
                        self.notes.extend(Note::parse(kind, description, endian));
                        if kind == WRITER_DEFAULT {
                            self.writer_defaults |= number(description, 4, endian).unwrap_or(0);
                        }
                    }
                }
            }
        }
        self.executable_stack = file.elf_program_headers().iter().any(|segment| {
            segment.p_type(endian) == elf::PT_GNU_STACK
                && segment.p_flags(endian).contains(elf::PF_X)
        });
        self.versions = versions(file)?;
        self.floors = floors(&self.versions);
        Ok(())
    }

    /// Returns whether the dynamic linker has to load TensorFlow's libraries for it.
    pub(crate) fn needs_tensorflow(&self) -> bool {
        self.needed.iter().any(|name| is_tensorflow_library(name))
    }
}

pub(crate) fn is_tensorflow_library(name: &str) -> bool {
    TENSORFLOW_LIBRARIES.iter().any(|library| name.starts_with(library))
}

fn is_c_api(name: &str) -> bool {
    ["TF_", "TFE_", "TSL_", "TFNPD_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether a mangled name belongs to a namespace of TensorFlow's libraries.
fn is_tensorflows_cpp(name: &str) -> bool {
    const NAMESPACES: &str = "10tensorflow 3tsl 3xla 4absl 15stream_executor 6google8protobuf \
        4mlir 5Eigen";
    name.strip_prefix("_Z").is_some_and(|rest| {
        // The kind of an entity, such as a virtual table or a constant method, comes before its namespace.
        let head: String = rest.chars().take(40).collect();
        let head = head.trim_start_matches(|letter: char| {
            matches!(letter, 'N' | 'K' | 'T' | 'V' | 'S' | 'I' | 'G' | 'R' | 'L')
        });
        NAMESPACES.split(' ').any(|namespace| head.starts_with(namespace))
    })
}

/// Returns a name as C++ programmers write it.
pub(crate) fn demangled(name: &str) -> String {
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle().ok())
        .unwrap_or_else(|| name.to_owned())
}

/// Refuses a file that is not a shared library for this system, and says what it is.
fn check_kind(path: &Path, data: &[u8]) -> Result<()> {
    let path = path.display();
    let is = match FileKind::parse(data) {
        Ok(FileKind::Elf64) => return Ok(()),
        Ok(FileKind::Elf32) => {
            "a 32-bit library, and TensorFlow is 64-bit; build it for a 64-bit target"
        }
        Ok(FileKind::Archive) => {
            "a static library; give the crate `crate-type = [\"cdylib\"]` and name the `.so`"
        }
        Ok(FileKind::MachO32 | FileKind::MachO64 | FileKind::MachOFat32 | FileKind::MachOFat64) => {
            "a library for macOS; this command looks into those for Linux"
        }
        Ok(FileKind::Pe32 | FileKind::Pe64) => {
            "a library for Windows; this command looks into those for Linux"
        }
        Ok(other) => {
            bail!("{path} is not a shared library but a file of the kind {other:?}; name a `.so`")
        }
        Err(_) if data.starts_with(b"PK\x03\x04") => {
            "an archive such as a wheel; unpack it with `unzip` and name the `.so` in it"
        }
        Err(_) => "not a shared library; name the `.so` of a plugin",
    };
    bail!("{path} is {is}")
}

fn check_type(path: &Path, file: &ElfFile64<'_>) -> Result<()> {
    let endian = file.endian();
    let path = path.display();
    let kind = file.elf_header().e_type(endian);
    // Programs are position-independent, too: only they name the linker that starts them.
    let interpreted =
        file.elf_program_headers().iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP);
    if kind == elf::ET_REL {
        bail!(
            "{path} is an object file; link it to a shared library (`crate-type = [\"cdylib\"]`)"
        );
    }
    if kind == elf::ET_CORE {
        bail!("{path} is a core dump; name the `.so` of a plugin");
    }
    if kind == elf::ET_EXEC || interpreted {
        bail!("{path} is a program; give the crate `crate-type = [\"cdylib\"]` and name the `.so`");
    }
    Ok(())
}

/// Returns the versions that it names of the system's libraries. A version may have no function.
fn versions(file: &ElfFile64<'_>) -> object::Result<BTreeMap<String, Vec<String>>> {
    let (endian, data, sections) = (file.endian(), file.data(), file.elf_section_table());
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let mut needed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if let Some((mut libraries, link)) = sections.gnu_verneed(endian, data)? {
        let strings = sections.strings(endian, data, link)?;
        while let Some((_, mut versions)) = libraries.next()? {
            while let Some(version) = versions.next()? {
                needed.entry(text(version.name(endian, strings)?)).or_default();
            }
        }
    }
    if let Some(versions) = sections.versions(endian, data)? {
        for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_undefined()) {
            let index = versions.version_index(endian, symbol.index()).index();
            if let Some(version) = versions.version(index)? {
                needed.entry(text(version.name())).or_default().push(symbol.name()?.to_owned());
            }
        }
    }
    Ok(needed)
}

/// Returns the highest version of each library that has functions.
fn floors(versions: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Floor> {
    let mut floors: BTreeMap<String, Floor> = BTreeMap::new();
    for (version, functions) in versions.iter().filter(|(_, functions)| !functions.is_empty()) {
        let Some((family, number)) = version.split_once('_') else { continue };
        let known = floors.get(family).map_or("0", |floor| &floor.version);
        if numbers(number) > numbers(known) {
            let floor = Floor { version: number.to_owned(), because: functions.clone() };
            floors.insert(family.to_owned(), floor);
        }
    }
    floors
}

pub(crate) fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

impl Artefact {
    /// Returns the imports from TensorFlow that this release does not have, by the linker's names.
    pub(crate) fn missing_in(&self, tensorflow: &TensorFlow) -> Result<Vec<String>> {
        let mut missing: BTreeSet<&str> =
            self.c_imports.iter().chain(&self.cpp_imports).map(String::as_str).collect();
        // A plugin that names only the first library does not see the functions of the other.
        let both = self.needed.iter().any(|name| name.starts_with(TENSORFLOW_LIBRARIES[1]))
            || !self.needs_tensorflow();
        for library in &TENSORFLOW_LIBRARIES[..if both { 2 } else { 1 }] {
            let path = tensorflow.library_dir().join(format!("{library}so.2"));
            let failed = || format!("cannot read {}", path.display());
            let present = exported(&path, &missing).with_context(failed)?;
            missing.retain(|name| !present.contains(*name));
        }
        Ok(missing.into_iter().map(str::to_owned).collect())
    }
}

/// Returns which of `names` a library exports. It uses the hash table: these libraries have half a million names.
fn exported(path: &Path, names: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
    let cache = ReadCache::new(File::open(path)?);
    let data = &cache;
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let Some((table, _)) = sections.gnu_hash(endian, data)? else {
        bail!("it has no table of its names; reinstall TensorFlow");
    };
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    let versions = sections.versions(endian, data)?.unwrap_or_default();
    let present = names.iter().filter(|name| {
        let hash = elf::gnu_hash(name.as_bytes());
        table.find(endian, name.as_bytes(), hash, None, &symbols, &versions).is_some()
    });
    Ok(present.map(|name| (*name).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tensorflow_are_known_whatever_they_stand_for() {
        for name in [
            "_ZN3tsl8str_util8EndsWithEv",
            "_ZNK10tensorflow6Status8ToStringEv",
            "_ZTVN10tensorflow10FileSystemE",
            "_ZTIN3tsl8OpKernelE",
            "_ZN4absl12lts_202308026StatusC1Ev",
            "_ZN6google8protobuf7MessageE",
        ] {
            assert!(is_tensorflows_cpp(name), "{name}");
        }
        for name in ["_ZNSt6vectorIiE3endEv", "_Znwm", "malloc", "_ZN3Aws2S38S3ClientE", "tsl"] {
            assert!(!is_tensorflows_cpp(name), "{name}");
        }
        assert_eq!(demangled("_ZN3tsl5mutex6unlockEv"), "tsl::mutex::unlock()");
        assert_eq!(demangled("_ZN3"), "_ZN3");
    }

    #[test]
    fn the_newest_version_with_functions_is_the_floor() {
        let versions = [
            ("GLIBC_2.9", "a"),
            ("GLIBC_2.17", "b"),
            ("GLIBC_2.34", ""),
            ("GLIBCXX_3.4.9", "c"),
            ("GLIBCXX_3.4.30", "d"),
        ];
        let versions = versions.map(|(version, name)| {
            let names = Some(name.to_owned()).filter(|name| !name.is_empty());
            (version.to_owned(), names.into_iter().collect())
        });
        let floors = floors(&versions.into());
        assert_eq!((floors.len(), &*floors["GLIBC"].version), (2, "2.17"));
        assert_eq!(floors["GLIBCXX"].version, "3.4.30");
        assert_eq!(floors["GLIBC"].because, ["b"]);
    }
}
