//! Compiled programs on disk, so that the next process does not have to compile them.

use crate::backend::BackendResult;
use crate::settings::Settings;
use se_plugin::Code;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tf_private_dir::{OtherUsers, PrivateDir};

/// The first bytes of each file; another layout has other bytes.
const MARK: &[u8] = b"RUST_GPU program 1\n";
/// The suffix of each file name: the user may have other files there.
const SUFFIX: &str = ".rust-gpu";
/// When a process finds more, it removes the least recently used programs until half of it is left.
const MOST_BYTES: u64 = 256 << 20;

/// A directory with a file for each program, which the driver runs: nobody else may change them.
#[derive(Debug)]
pub struct Cache {
    /// The begin of the names of settings, and of log lines.
    prefix: &'static str,
    directory: PrivateDir,
    /// Whether a warning said that programs cannot be kept.
    has_failed: AtomicBool,
}

/// Hashes bytes, equally in all processes with the same build of the plugin; others find nothing, or another key.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Returns the name of the file of a program.
fn name(key: &str) -> String {
    format!("{:016x}{SUFFIX}", hash(key.as_bytes()))
}

fn warn(prefix: &str, directory: &Path, error: &io::Error) {
    log::warn!(
        "{prefix} cannot keep compiled programs in `{}`, and compiles them in each process: {error}; set {prefix}_CACHE to a \
         directory of yours that is not there yet, or to 0",
        directory.display()
    );
}

/// Returns the key and the program in a file, unless the file is incomplete.
fn parts(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = file.strip_prefix(MARK)?;
    let (sum, rest) = rest.split_first_chunk()?;
    let (len, content) = rest.split_first_chunk()?;
    if u64::from_le_bytes(*sum) != hash(content) {
        return None;
    }
    content.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)
}

/// Writes what [`parts`] reads.
fn write(file: &mut impl io::Write, key: &str, program: &[u8]) -> io::Result<()> {
    let content = [key.as_bytes(), program].concat();
    let (sum, len) = (hash(&content).to_le_bytes(), (key.len() as u64).to_le_bytes());
    [MARK, &sum, &len, &content].iter().try_for_each(|part| file.write_all(part))
}

/// Parses the setting, a directory; the inner `None` means none.
pub(crate) fn parse(text: &str) -> Option<Option<PathBuf>> {
    match text {
        "0" => Some(None),
        path => Path::new(path).is_absolute().then(|| Some(path.into())),
    }
}

/// Returns the user's directory for programs of a plugin, if the user has a home.
pub(crate) fn of_user(prefix: &str) -> Option<PathBuf> {
    let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
    let name = prefix.to_lowercase().replace('_', "-");
    caches.map(|caches| caches.join(format!("tensorflow-{name}")))
}

impl Cache {
    /// Opens the cache that the settings name, if any. On failure a warning says why, and nothing is kept.
    #[must_use]
    pub fn open(settings: &Settings) -> Option<Self> {
        Self::open_in(settings.prefix, settings.cache.as_deref()?)
    }

    fn open_in(prefix: &'static str, path: &Path) -> Option<Self> {
        let opened =
            PrivateDir::open(path, OtherUsers::Read).inspect_err(|error| warn(prefix, path, error));
        let cache = Self { prefix, directory: opened.ok()?, has_failed: AtomicBool::new(false) };
        cache.shrink();
        Some(cache)
    }

    fn failed(&self, error: &io::Error) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            warn(self.prefix, self.directory.path(), error);
        }
    }

    /// Returns the program with this key. A file with another key is ignored; so is a damaged one, with a warning.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut file = match self.directory.read(&name(key)) {
            Ok(file) => file,
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    self.refuse(key, &error.to_string());
                }
                return None;
            }
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let Some((found, program)) = parts(&bytes) else {
            self.refuse(key, "it is torn, or of another version of this plugin");
            return None;
        };
        if found != key.as_bytes() {
            return None;
        }
        // Marks it as used. Errors do not matter.
        let _ = file.set_modified(SystemTime::now());
        Some(program.to_vec())
    }

    /// Warns that the program with this key cannot be used.
    pub fn refuse(&self, key: &str, why: &str) {
        log::warn!(
            "{} does not use the compiled program in `{}`, and compiles it again: {why}",
            self.prefix,
            self.directory.path().join(name(key)).display()
        );
    }

    /// Keeps a program. On failure a warning says why, once; the program is compiled again next time.
    pub fn put(&self, key: &str, program: &[u8]) {
        if let Err(error) = self.try_put(key, program) {
            self.failed(&error);
        }
    }

    /// Returns what `load` makes of the program with this key that is kept in `cache`. Without one, or if the driver refuses it,
    /// returns what `compile` makes; the program that it also returns is kept, unless it is empty.
    ///
    /// # Errors
    /// Those of `compile`.
    pub fn load_or_compile<T>(
        cache: Option<&Self>,
        key: &str,
        load: impl FnOnce(&[u8]) -> BackendResult<T>,
        compile: impl FnOnce() -> BackendResult<(T, Vec<u8>)>,
    ) -> BackendResult<T> {
        let Some(cache) = cache else { return compile().map(|(loaded, _)| loaded) };
        match cache.get(key).map(|program| load(&program)) {
            Some(Ok(loaded)) => return Ok(loaded),
            // Another driver made it, unless the GPU is lost or has no memory.
            Some(Err(failure)) if !failure.is_lost && failure.code != Code::ResourceExhausted => {
                cache.refuse(key, &format!("the driver: {}", failure.cause));
            }
            _ => {}
        }
        let (loaded, program) = compile()?;
        if !program.is_empty() {
            cache.put(key, &program);
        }
        Ok(loaded)
    }

    fn try_put(&self, key: &str, program: &[u8]) -> io::Result<()> {
        self.directory.replace(&name(key), |file| write(file, key, program))
    }

    fn shrink(&self) {
        let Ok(mut files) = self.directory.entries() else { return };
        let is_ours = |name: &OsStr| name.to_str().is_some_and(|name| name.ends_with(SUFFIX));
        files.retain(|file| file.is_file && is_ours(&file.name));
        let mut total: u64 = files.iter().map(|file| file.len).sum();
        if total <= MOST_BYTES {
            return;
        }
        files.sort_by_key(|file| file.modified);
        for file in files {
            if total <= MOST_BYTES / 2 {
                return;
            }
            // Another process may have removed it.
            let _ = self.directory.remove(&file.name);
            total -= file.len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn cache(directory: &Path) -> Cache {
        Cache::open_in("RUST_GPU", &directory.join("programs")).unwrap()
    }

    fn file(cache: &Cache, key: &str) -> PathBuf {
        cache.directory.path().join(name(key))
    }

    #[test]
    fn a_kept_entry_is_found_by_its_key() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = cache(scratch.path());
        assert_eq!(cache.get("a"), None);
        cache.put("a", b"first");
        cache.put("b", b"");
        cache.put("a", b"second");
        assert_eq!(cache.get("a").as_deref(), Some(&b"second"[..]));
        assert_eq!(cache.get("b").as_deref(), Some(&b""[..]));
        assert_eq!(fs::read_dir(cache.directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_is_torn_or_of_another_key_is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = cache(scratch.path());
        cache.put("key", b"program");
        let path = file(&cache, "key");
        let whole = fs::read(&path).unwrap();
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(cache.get("key"), None, "{len} bytes");
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            fs::write(&path, wrong).unwrap();
            assert_eq!(cache.get("key"), None, "byte {at}");
        }
        fs::write(file(&cache, "other"), &whole).unwrap();
        assert_eq!(cache.get("other"), None);
    }

    #[test]
    fn the_oldest_entry_is_removed_beyond_the_limit() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = cache(scratch.path());
        cache.put("old", b"program");
        let past = |seconds| SystemTime::now() - std::time::Duration::from_secs(seconds);
        fs::File::open(file(&cache, "old")).unwrap().set_modified(past(60)).unwrap();
        cache.put("new", b"program");
        cache.shrink();
        assert!(cache.get("old").is_some());
        // A file of another program.
        let other = cache.directory.path().join("0123456789abcdef");
        fs::File::create(&other).unwrap().set_len(2 * MOST_BYTES).unwrap();
        cache.shrink();
        // A program that was used is as new as one that was written.
        assert!(cache.get("old").is_some());
        fs::File::open(file(&cache, "old")).unwrap().set_modified(past(60)).unwrap();
        let large = fs::File::create(file(&cache, "large")).unwrap();
        large.set_len(MOST_BYTES).unwrap();
        large.set_modified(past(30)).unwrap();
        cache.shrink();
        assert!(other.exists());
        assert_eq!(cache.get("old"), None);
        assert!(!file(&cache, "large").exists());
        assert!(cache.get("new").is_some());
    }

    #[test]
    fn a_directory_that_others_can_change_is_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        let below = scratch.path().join("programs");
        let set = |mode| {
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o770, 0o707] {
            set(mode);
            assert!(Cache::open_in("RUST_GPU", scratch.path()).is_none(), "{mode:o}");
        }
        // They can rename what is below it.
        assert!(Cache::open_in("RUST_GPU", &below).is_none());
        for mode in [0o1777, 0o755] {
            set(mode);
            assert!(Cache::open_in("RUST_GPU", &below).is_some(), "{mode:o}");
        }
        assert!(Cache::open_in("RUST_GPU", scratch.path()).is_some());
    }

    #[test]
    fn a_program_that_somebody_else_puts_there_is_not_run() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = cache(scratch.path());
        cache.put("key", b"mine");
        let path = file(&cache, "key");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"mine");
        // The whole directory is swapped after it was checked.
        fs::rename(cache.directory.path(), scratch.path().join("gone")).unwrap();
        let other = Cache::open_in("RUST_GPU", cache.directory.path()).unwrap();
        other.put("key", b"theirs");
        assert_eq!(cache.get("key").as_deref(), Some(&b"mine"[..]));
        fs::remove_dir_all(scratch.path().join("gone")).unwrap();
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"nowhere");
        assert_eq!(other.get("key").as_deref(), Some(&b"theirs"[..]));
    }

    #[test]
    fn the_setting_is_a_whole_path_or_0() {
        assert_eq!(parse("0"), Some(None));
        assert_eq!(parse("/a/b"), Some(Some("/a/b".into())));
        assert_eq!(parse("1"), None);
        assert_eq!(parse("a/b"), None);
    }

    #[test]
    fn fuzz_programs() {
        let words = ["RUST_GPU program 1\n", "\0\0\0\0\0\0\0\0", "\u{1}", "key", "program"];
        tf_plugin_fuzz::fuzz!(words, |bytes| {
            assert_eq!(parts(bytes), None, "it has no checksum");
            let (key, program) = tf_plugin_fuzz::halves(bytes);
            let key = tf_plugin_fuzz::text(key);
            let mut file = Vec::new();
            write(&mut file, &key, program).unwrap();
            assert_eq!(parts(&file), Some((key.as_bytes(), program)));
        });
    }
}
