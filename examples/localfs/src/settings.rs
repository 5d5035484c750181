//! Configuration: the root and how files are written.

use crate::error::describe;
use crate::root::Root;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use tf_fs_plugin::sync::RwLock;
use tf_fs_plugin::{Error, FilesystemOption, OptionValues, Result, ResultExt};

/// The environment variable that confines the filesystem to a directory.
pub const ROOT_VARIABLE: &str = "LOCALFS_ROOT";

const ROOT: &str = "root";
const WRITE_BUFFER_BYTES: &str = "write_buffer_bytes";
const SYNC_ON_CLOSE: &str = "sync_on_close";
const KEYS: [&str; 3] = [ROOT, WRITE_BUFFER_BYTES, SYNC_ON_CLOSE];

const MAX_WRITE_BUFFER: i64 = 1 << 30;

/// The settings that an operation runs with; they do not change while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) root: Arc<Root>,
    pub(crate) write_buffer_bytes: usize,
    pub(crate) sync_on_close: bool,
}

/// The settings of the filesystem.
#[derive(Debug)]
pub(crate) struct Config {
    settings: RwLock<Arc<Settings>>,
    /// Whether the environment chose the root, so that no option may change it.
    root_is_fixed: bool,
}

impl Config {
    /// Creates the settings, with the root that the environment variable names, if it is set.
    pub(crate) fn from_environment() -> Result<Self> {
        match std::env::var_os(ROOT_VARIABLE) {
            None => Ok(Self::new(Root::Machine, false)),
            // Also if it is empty: a mistake there must not open the whole machine.
            Some(path) => Ok(Self::new(open_root(&path).context(ROOT_VARIABLE)?, true)),
        }
    }

    pub(crate) fn new(root: Root, root_is_fixed: bool) -> Self {
        let settings =
            Settings { root: Arc::new(root), write_buffer_bytes: 256 << 10, sync_on_close: false };
        Self { settings: RwLock::new(Arc::new(settings)), root_is_fixed }
    }

    pub(crate) fn confined(path: &Path) -> Result<Self> {
        Ok(Self::new(open_root(path.as_os_str())?, false))
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn keys() -> Vec<String> {
        KEYS.map(str::to_owned).to_vec()
    }

    pub(crate) fn options(&self) -> Vec<FilesystemOption> {
        let settings = self.settings();
        KEYS.into_iter().map(|key| option(key, &settings)).collect()
    }

    pub(crate) fn get(&self, key: &str) -> Result<FilesystemOption> {
        if !KEYS.contains(&key) {
            return Err(unknown(key));
        }
        Ok(option(key, &self.settings()))
    }

    /// Sets all options or, if one is wrong, none.
    pub(crate) fn set(&self, options: &[FilesystemOption]) -> Result<()> {
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Settings::clone(&settings);
        for option in options {
            self.apply(option, &mut changed)
                .map_err(|error| error.context(format_args!("option `{}`", option.name)))?;
        }
        *settings = Arc::new(changed);
        Ok(())
    }

    fn apply(&self, option: &FilesystemOption, settings: &mut Settings) -> Result<()> {
        match option.name.as_str() {
            ROOT => {
                let OptionValues::Buffer(values) = &option.values else {
                    return Err(Error::invalid_argument("takes a buffer: the path of a directory"));
                };
                let path = OsString::from_vec(single(values)?.clone());
                if self.root_is_fixed {
                    return Err(Error::failed_precondition(format_args!(
                        "the root is fixed by {ROOT_VARIABLE}; change it there"
                    )));
                }
                let root = if path.is_empty() { Root::Machine } else { open_root(&path)? };
                settings.root = Arc::new(root);
            }
            WRITE_BUFFER_BYTES => {
                settings.write_buffer_bytes = integer(option, MAX_WRITE_BUFFER)?;
            }
            SYNC_ON_CLOSE => settings.sync_on_close = integer(option, 1)? == 1,
            unknown_key => return Err(unknown(unknown_key)),
        }
        Ok(())
    }
}

fn option(key: &str, settings: &Settings) -> FilesystemOption {
    let (values, description) = match key {
        ROOT => {
            let path: &OsStr = match &*settings.root {
                Root::Machine => OsStr::new(""),
                Root::Confined { path, .. } => path.as_os_str(),
            };
            (
                OptionValues::Buffer(vec![path.as_bytes().to_vec()]),
                "directory that all paths are below and that nothing leaves; empty: the machine's root",
            )
        }
        WRITE_BUFFER_BYTES => (
            OptionValues::Int(vec![settings.write_buffer_bytes.try_into().unwrap_or(i64::MAX)]),
            "bytes that a file buffers before it writes them; for files that are opened from now on",
        ),
        _ => (
            OptionValues::Int(vec![settings.sync_on_close.into()]),
            "1: a file is durable once it is closed; for files that are opened from now on",
        ),
    };
    FilesystemOption::new(key, values).with_description(description)
}

fn single<T>(values: &[T]) -> Result<&T> {
    match values {
        [value] => Ok(value),
        _ => Err(Error::invalid_argument(format_args!("takes one value, not {}", values.len()))),
    }
}

fn integer(option: &FilesystemOption, max: i64) -> Result<usize> {
    let OptionValues::Int(values) = &option.values else {
        return Err(Error::invalid_argument("takes an integer"));
    };
    let value = *single(values)?;
    match usize::try_from(value) {
        Ok(small) if value <= max => Ok(small),
        _ => Err(Error::invalid_argument(format_args!("{value} is not between 0 and {max}"))),
    }
}

fn open_root(path: &OsStr) -> Result<Root> {
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(Error::invalid_argument(format_args!(
            "`{}` is not an absolute path; name a directory from `/` on",
            path.display()
        )));
    }
    Root::confined(path).map_err(|error| describe(error, path.display()))
}

#[cold]
fn unknown(key: &str) -> Error {
    Error::not_found(format_args!("option `{key}` (there are {})", KEYS.join(", ")))
}
