//! The crates that `cargo tf-plugin new` makes.
//!
//! They are in `templates/`, as ordinary Rust that uses a placeholder name, and become a crate when
//! that name is replaced. Filesystems begin with an example of the book. Only their manifests have
//! another file name: cargo leaves directories with a `Cargo.toml` out of packages.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::findings::device::is_identifier;
use crate::findings::filesystem::is_scheme;
use crate::ops::snake_case;
use crate::{MATRIX, NEWEST};

/// Names that Python uses already, or with which a plugin would hide a module from TensorFlow.
const PYTHON_NAMES: &str = include_str!("python_names.txt");

/// Words of Rust, and crates that a plugin depends on, which cannot be a package's name.
const RUST_NAMES: &str = "abstract alloc become box const core crate do dyn enum extern false final fn gen impl let loop \
    macro match mod move mut override priv proc_macro pub ref self static std struct super trait true type typeof \
    unsafe unsized use virtual where bytemuck bytes libc log tf_fs_object_store tf_fs_plugin tf_fs_plugin_macros tf_fs_sys tf_op_plugin se_plugin se_plugin_gpu cl3 \
    tf_plugin_testing cargo_tf_plugin deps examples build incremental";

/// The schemes that TensorFlow itself registers, in all versions.
const TENSORFLOW_SCHEMES: [&str; 3] = ["file", "ram", "gs"];

/// Types and names of TensorFlow's own devices.
const TENSORFLOW_DEVICES: [&str; 6] = ["CPU", "GPU", "DEFAULT", "HOST", "CUDA", "ROCM"];

/// The path to the SDK in the templates, which a new crate replaces.
const SDK_PATH: &str = "path = \"../../../";

/// Additional lines of the `.gitignore` if the SDK is a clone.
const OF_THIS_MACHINE: &str = "\
# Names the clone of the SDK on this machine: elsewhere, as in CI, `cargo tf-plugin` would not run.
/.cargo/config.toml
";

/// The kind of plugin that a new crate builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Filesystem,
    /// A filesystem on `tf-fs-object-store`.
    ObjectStore,
    Device,
    /// A device on a driver of the author's own.
    Driver,
    /// A device on `se-plugin-gpu`.
    Gpu,
    Both,
    /// Ops for the CPU.
    Ops,
}

impl Kind {
    pub(crate) fn has_filesystem(self) -> bool {
        !matches!(self, Self::Device | Self::Driver | Self::Gpu | Self::Ops)
    }

    pub(crate) fn has_device(self) -> bool {
        matches!(self, Self::Device | Self::Driver | Self::Gpu | Self::Both)
    }

    fn files(self) -> Vec<(&'static str, Cow<'static, str>)> {
        macro_rules! from {
            ($folder:literal: $($path:literal),*) => {
                [$(($path, Cow::Borrowed(include_str!(concat!("../templates/", $folder, "/", $path))))),*]
            };
        }
        let mut files = vec![
            // The first one: a clone adds lines to it.
            (".gitignore", include_str!("../templates/common/gitignore").into()),
            (".github/workflows/ci.yml", workflow().into()),
        ];
        let [manifest, own @ ..] = match self {
            Self::Filesystem => from!("fs": "manifest.toml", "README.md", "src/lib.rs"),
            Self::ObjectStore => from!("object-store": "manifest.toml", "README.md", "src/lib.rs"),
            Self::Device => from!("device": "manifest.toml", "README.md", "src/lib.rs"),
            Self::Driver => from!("driver": "manifest.toml", "README.md", "src/lib.rs"),
            Self::Gpu => from!("gpu": "manifest.toml", "README.md", "src/lib.rs"),
            Self::Both => from!("both": "manifest.toml", "README.md", "src/lib.rs"),
            Self::Ops => from!("ops": "manifest.toml", "README.md", "src/lib.rs"),
        };
        files.push(("Cargo.toml", manifest.1));
        files.extend(own);
        match self {
            Self::ObjectStore => {
                let [(path, test)] = from!("fs": "tests/filesystem.rs");
                let test = test.replace(OTHER_HOST, &format!("{OTHER_HOST}{STORE_CASES}"));
                files.extend([("src/store.rs", store().into()), (path, test.into())]);
            }
            Self::Filesystem | Self::Both => {
                files.push(("src/filesystem.rs", filesystem().into()));
                files.extend(from!("fs": "tests/filesystem.rs"));
            }
            Self::Ops => files.extend(from!("ops": "tests/conformance.rs", "tests/python/ops.py")),
            Self::Device => {}
            Self::Driver => files.extend(from!(
                "driver": "src/device.rs", "src/driver.rs", "src/kernels.rs", "src/programs.rs", "src/stream.rs",
                "tests/device.rs"
            )),
            Self::Gpu => {
                files.extend(from!("gpu": "tests/device.rs", "tests/python/layers.py"));
                files.extend(OPENCL.map(|(path, source)| {
                    // Its tests use this project's drivers.
                    (path, source.split("\n#[cfg(test)]").next().unwrap_or(source).into())
                }));
            }
        }
        if self.has_filesystem() {
            files.extend(from!("fs": "tests/python/filesystem.py"));
        }
        if self.has_device() {
            files.extend(from!("device": "tests/python/device.py", "tests/python/training.py"));
        }
        if matches!(self, Self::Device | Self::Both) {
            files.extend(from!("device": "src/device.rs", "tests/device.rs"));
        }
        files
    }
}

/// The backend that a new GPU plugin begins with: that of the GPU plugin.
const OPENCL: [(&str, &str); 2] = [
    ("src/opencl/mod.rs", include_str!("../templates/gpu/opencl/mod.rs")),
    ("src/opencl/program.rs", include_str!("../templates/gpu/opencl/program.rs")),
];

/// Returns the workflow of a new crate, which tests it in the oldest and the newest TensorFlow.
fn workflow() -> String {
    let releases = format!("--tf {} --tf {NEWEST}", MATRIX[0]);
    include_str!("../templates/common/ci.yml").replace("--tf OLDEST --tf NEWEST", &releases)
}

/// The last line of the cases in the filesystem's test, and the lines that a store's test adds.
const OTHER_HOST: &str = "    other_host: \"templateplugin://other/\",\n";
const STORE_CASES: &str = "    visible: flush,
    directories: implied,
    without: [
        translate_name_cleans => \"keys are exact: none is cleaned\",
        untidy_names => \"keys are exact: none is cleaned\",
    ],
";

/// Returns the filesystem that a new crate begins with.
fn filesystem() -> String {
    let introduction = "\
//! A filesystem in memory, to begin with: replace the bodies of the methods with calls to your storage.
//!
//! For a missing operation TensorFlow's or the SDK's default runs: copying and globs use the operations here.";
    example(introduction, include_str!("../templates/fs/memfs"))
        .replace("MemFs", "TemplatePluginFs")
        .replace("\"mem\"", "\"templateplugin\"")
        .replace("mem://", "templateplugin://")
}

/// Returns the object store that a new crate begins with.
fn store() -> String {
    let introduction = "\
//! An object store in memory, to begin with: replace the bodies of `ObjectStore` with requests to your store.
//!
//! Each method makes one request, once: the engine reads ahead, writes in parts, lists and repeats. What a store
//! does not have is left out.";
    example(introduction, include_str!("../templates/object-store/memstore"))
        .replace("MemStore", "TemplatePluginStore")
        .replace("memstore", "templateplugin")
}

/// Returns the code of an example of the book, with another introduction.
fn example(introduction: &str, source: &str) -> String {
    // The introduction of the crate ends with an empty line.
    let code = source.split_once("\n\n").map_or(source, |(_, code)| code);
    format!("{introduction}\n\n{code}")
}

/// The names in a new crate, all derived from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    package: String,
    pub(crate) scheme: String,
    pub(crate) device_type: String,
}

impl Names {
    /// Checks a name for all of its uses: a package of cargo and of pip, a module of Rust and of
    /// Python, a scheme, a device type. The last two can be given separately.
    pub(crate) fn new(
        name: &str,
        kind: Kind,
        scheme: Option<&str>,
        device_type: Option<&str>,
    ) -> Result<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        let ends_well = name.ends_with(|c: char| c.is_ascii_alphanumeric());
        if !name.starts_with(|c: char| c.is_ascii_lowercase())
            || !name.chars().all(plain)
            || !ends_well
        {
            bail!(
                "`{name}` cannot be the name of a package for cargo and pip; write lower-case letters, digits and \
                 `-`, beginning with a letter, such as my-plugin"
            );
        }
        let module = name.replace('-', "_");
        if RUST_NAMES.split_whitespace().any(|taken| taken == module) {
            bail!(
                "`{name}` is taken in Rust or by a crate that the plugin needs; choose another name, such as my-{name}"
            );
        }
        if is_taken_in_python(&module) {
            bail!(
                "a Python module `{module}` would hide Python's own or TensorFlow's; choose another name, such as my-{name}"
            );
        }

        let own = name.replace(['-', '_'], "");
        let scheme = scheme.unwrap_or(&own).to_owned();
        if kind.has_filesystem() {
            if !is_scheme(&scheme) {
                bail!(
                    "`{scheme}` cannot be a scheme of TensorFlow's: a scheme is an ASCII letter followed by one or \
                     more ASCII letters, digits and `.`; name one with `--scheme`"
                );
            }
            if TENSORFLOW_SCHEMES.contains(&scheme.as_str()) {
                bail!(
                    "the scheme `{scheme}` is TensorFlow's own; name another one with `--scheme`"
                );
            }
        }
        let own = module.to_ascii_uppercase();
        let device_type = device_type.unwrap_or(&own).to_owned();
        if kind.has_device() {
            if !is_identifier(&device_type) {
                bail!(
                    "`{device_type}` cannot be a type of TensorFlow's devices: a type is capital letters and `_`, beginning \
                     with a letter; name one with `--device-type`, such as MY_DEVICE"
                );
            }
            if TENSORFLOW_DEVICES.contains(&device_type.as_str()) {
                bail!(
                    "the device type `{device_type}` is TensorFlow's own; name another one with `--device-type`, such as MY_{device_type}"
                );
            }
        }
        Ok(Self { package: name.to_owned(), scheme, device_type })
    }

    /// Returns the prefix of the types' names: `my-plugin` has `MyPluginFs`.
    fn camel(&self) -> String {
        let words = self.package.split(['-', '_']);
        words
            .flat_map(|word| {
                let mut letters = word.chars();
                letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
            })
            .collect()
    }

    fn replace(&self, text: &str) -> String {
        [
            ("template-plugin", self.package.as_str()),
            ("template_plugin", &self.package.replace('-', "_")),
            ("templateplugin", &self.scheme),
            ("TemplatePlugin", &self.camel()),
            ("TEMPLATE_PLUGIN", &self.device_type),
            // The beginning of the names of the ops' wrappers.
            ("template_op", &snake_case(&self.camel())),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (placeholder, name)| text.replace(placeholder, name))
    }
}

/// Returns whether Python or TensorFlow has a module or a keyword of this name.
pub(crate) fn is_taken_in_python(module: &str) -> bool {
    PYTHON_NAMES.split_whitespace().any(|taken| taken == module)
}

/// Where a new crate gets the SDK from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sdk {
    /// A clone of the project.
    Clone(PathBuf),
    /// The package registry, in the version of this command.
    Published,
}

impl Sdk {
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)?;
        if !Self::is_clone(&path) {
            bail!(
                "{} is not a clone of the SDK: there is no se-plugin/Cargo.toml in it",
                path.display()
            );
        }
        if path.to_str().is_none() {
            bail!("{} is not UTF-8, which a Cargo.toml must be; move the clone", path.display());
        }
        Ok(Self::Clone(path))
    }

    /// Returns the clone that this command was built from, if that still exists, else the registry.
    pub(crate) fn own() -> Self {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .filter(|path| Self::is_clone(path) && path.to_str().is_some())
            .map_or(Self::Published, |path| Self::Clone(path.to_owned()))
    }

    fn is_clone(path: &Path) -> bool {
        ["tf-fs-plugin", "se-plugin", "tf-plugin-testing", "cargo-tf-plugin"]
            .iter()
            .all(|package| path.join(package).join("Cargo.toml").is_file())
    }

    fn replace(&self, text: &str) -> String {
        match self {
            Self::Clone(path) => {
                let path = toml_text(&path.to_string_lossy());
                text.replace(SDK_PATH, &format!("path = \"{path}/"))
            }
            Self::Published => {
                let mut text = text.to_owned();
                for package in ["tf-fs-plugin", "tf-op-plugin", "se-plugin", "tf-plugin-testing"] {
                    let dependency = format!("{SDK_PATH}{package}\"");
                    let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
                    text = text.replace(&dependency, &version);
                }
                text
            }
        }
    }

    /// Returns cargo's settings for the new crate: where the command is, if it cannot be installed from a registry.
    fn cargo_config(&self) -> Option<String> {
        let Self::Clone(path) = self else { return None };
        let manifest = path.join("cargo-tf-plugin/Cargo.toml");
        Some(format!(
            "# `cargo tf-plugin`, from the clone that has the SDK.\n[alias]\ntf-plugin = [\"run\", \"--quiet\", \
             \"--manifest-path\", \"{}\", \"--\"]\n",
            toml_text(&manifest.to_string_lossy())
        ))
    }
}

/// Escapes a text for the quotes of TOML.
fn toml_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Writes a new crate into an empty directory; returns the paths of its files.
pub(crate) fn write(
    kind: Kind,
    names: &Names,
    sdk: &Sdk,
    directory: &Path,
) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = kind
        .files()
        .into_iter()
        .map(|(path, text)| (path, sdk.replace(&names.replace(&text))))
        .collect();
    if let Some(text) = sdk.cargo_config() {
        files.push((".cargo/config.toml", text));
        files[0].1.push_str(OF_THIS_MACHINE);
    }
    let mut written = Vec::new();
    for (path, text) in files {
        let path = directory.join(path);
        let failed = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(failed)?;
        }
        fs::write(&path, text).with_context(failed)?;
        written.push(path);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, scheme: Option<&str>, device_type: Option<&str>) -> String {
        Names::new(name, Kind::Both, scheme, device_type).expect_err(name).to_string()
    }

    #[test]
    fn one_name_becomes_all_others() {
        let names = Names::new("my-notes_fs", Kind::Both, None, None).expect("a name");
        assert_eq!(names.scheme, "mynotesfs");
        assert_eq!(names.device_type, "MY_NOTES_FS");
        let all = "template-plugin template_plugin templateplugin TemplatePlugin TEMPLATE_PLUGIN";
        assert_eq!(names.replace(all), "my-notes_fs my_notes_fs mynotesfs MyNotesFs MY_NOTES_FS");
        let names = Names::new("a-b-2c", Kind::Ops, None, None).expect("a name");
        assert_eq!(
            names.replace("TemplatePluginShorten template_op_shorten"),
            "AB2cShorten ab2c_shorten"
        );
        let names = Names::new("s3x", Kind::Both, Some("s3.x"), Some("X")).expect("names");
        assert_eq!(names.replace(all), "s3x s3x s3.x S3x X");
        Names::new("s3x", Kind::Filesystem, None, None).expect("no device, no type");
        Names::new("s3x", Kind::Device, Some("-"), Some("X")).expect("no filesystem, no scheme");
    }

    #[test]
    fn bad_names_are_refused_with_what_to_write() {
        for name in ["", "1x", "-x", "My", "a b", "../x", "x/y", "é", "x-", "x."] {
            assert!(refused(name, None, None).contains("such as my-plugin"), "{name}");
        }
        for name in ["fn", "gen", "std", "se-plugin", "tf_fs_plugin", "tf-plugin-testing"] {
            assert!(refused(name, None, None).contains("taken in Rust"), "{name}");
        }
        for name in ["json", "tensorflow", "numpy", "lambda"] {
            assert!(refused(name, None, None).contains("would hide Python's own"), "{name}");
        }
        for scheme in ["a-b", "", "1a", "a://", "a"] {
            assert!(
                refused("x", Some(scheme), None).contains("name one with `--scheme`"),
                "{scheme}"
            );
        }
        assert!(refused("gs", None, None).contains("scheme `gs` is TensorFlow's own"));
        for device_type in ["x", "X1", "_X", ""] {
            assert!(
                refused("xy", None, Some(device_type)).contains("such as MY_DEVICE"),
                "{device_type}"
            );
        }
        assert!(refused("gpu", None, None).contains("such as MY_GPU"));
    }

    #[test]
    fn a_published_command_names_its_version() {
        let directory = tempfile::tempdir().expect("a directory");
        let names = Names::new("xy", Kind::Both, None, None).expect("a name");
        write(Kind::Both, &names, &Sdk::Published, directory.path()).expect("written");
        let manifest = fs::read_to_string(directory.path().join("Cargo.toml")).expect("there");
        let version = env!("CARGO_PKG_VERSION");
        assert!(
            manifest.contains(&format!("tf-fs-plugin = {{ version = \"{version}\" }}")),
            "{manifest}"
        );
        assert!(
            manifest.contains(&format!("tf-plugin-testing = {{ version = \"{version}\", features")),
            "{manifest}"
        );
        assert!(!manifest.contains("path = "), "{manifest}");
        assert!(!directory.path().join(".cargo").exists());
        let ignored = || fs::read_to_string(directory.path().join(".gitignore")).expect("there");
        assert!(!ignored().contains(".cargo"), "{}", ignored());
        write(Kind::Both, &names, &Sdk::own(), directory.path()).expect("written");
        assert!(ignored().ends_with("\n/.cargo/config.toml\n"), "{}", ignored());
    }
}
