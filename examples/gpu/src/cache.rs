//! Compiled programs on disk, so that the next process does not have to compile them.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// The setting: a directory, or `0` for none.
pub(crate) const SETTING: &str = "RUST_GPU_CACHE";
/// The first bytes of each file; another layout has other bytes.
const MARK: &[u8] = b"RUST_GPU program 1\n";
/// The suffix of each file name: the user may have other files there.
const SUFFIX: &str = ".rust-gpu";
/// When a process finds more, it removes the least recently used programs until half of it is left.
const MOST_BYTES: u64 = 256 << 20;

/// A directory with a file for each program.
pub(crate) struct Cache {
    directory: PathBuf,
    /// Whether a warning said that programs cannot be kept.
    has_failed: AtomicBool,
}

/// Hashes bytes, equally in all processes with the same build of the plugin; others find nothing, or another key.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
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

/// Parses the setting, a directory; the inner `None` means none.
pub(crate) fn parse(text: &str) -> Option<Option<PathBuf>> {
    match text {
        "0" => Some(None),
        path => Path::new(path).is_absolute().then(|| Some(path.into())),
    }
}

/// Returns the user's directory, if the user has a home.
pub(crate) fn of_user() -> Option<PathBuf> {
    let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
    caches.map(|caches| caches.join("tensorflow-rust-gpu"))
}

impl Cache {
    /// Opens the cache. On failure a warning says why, and nothing is kept.
    pub(crate) fn open(directory: &Path) -> Option<Self> {
        let cache = Self { directory: directory.to_owned(), has_failed: AtomicBool::new(false) };
        cache.make().inspect_err(|error| cache.failed(error)).ok()?;
        cache.shrink();
        Some(cache)
    }

    /// Creates the directory, unless it exists.
    fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let found = fs::metadata(&self.directory)?;
        // The driver runs the programs in it.
        if found.uid() != fs::metadata("/proc/self")?.uid() {
            return Err(io::Error::other(format!("it belongs to the user {}", found.uid())));
        }
        if found.mode() & 0o022 != 0 {
            let mode = found.mode() & 0o777;
            return Err(io::Error::other(format!("its mode is {mode:o}: others can write it")));
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            log::warn!(
                "RUST_GPU cannot keep compiled programs in `{}`, and compiles them in each process: {error}; set {SETTING} to a \
                 directory of yours that is not there yet, or to 0",
                self.directory.display()
            );
        }
    }

    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{:016x}{SUFFIX}", hash(key.as_bytes())))
    }

    /// Returns the program with this key. A file with another key is ignored; so is a damaged one, with a warning.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.file(key);
        let file = fs::read(&path).ok()?;
        let Some((found, program)) = parts(&file) else {
            self.refuse(key, "it is torn, or of another version of this plugin");
            return None;
        };
        if found != key.as_bytes() {
            return None;
        }
        // Marks it as used. Errors do not matter.
        let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(program.to_vec())
    }

    /// Warns that the program with this key cannot be used.
    pub(crate) fn refuse(&self, key: &str, why: &str) {
        log::warn!(
            "RUST_GPU does not use the compiled program in `{}`, and compiles it again: {why}",
            self.file(key).display()
        );
    }

    /// Keeps a program. On failure a warning says why, once; the program is compiled again next time.
    pub(crate) fn put(&self, key: &str, program: &[u8]) {
        if let Err(error) = self.try_put(key, program) {
            self.failed(&error);
        }
    }

    fn try_put(&self, key: &str, program: &[u8]) -> io::Result<()> {
        let content = [key.as_bytes(), program].concat();
        // Another process sees a complete file or none.
        let mut file = tempfile::Builder::new().suffix(SUFFIX).tempfile_in(&self.directory)?;
        for part in
            [MARK, &hash(&content).to_le_bytes(), &(key.len() as u64).to_le_bytes(), &content]
        {
            file.write_all(part)?;
        }
        file.persist(self.file(key))?;
        Ok(())
    }

    fn shrink(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let (path, data) = entry.ok().map(|e| (e.path(), e.metadata()))?;
                let data = data.ok().filter(fs::Metadata::is_file)?;
                let is_ours = path.file_name()?.to_str()?.ends_with(SUFFIX);
                is_ours.then_some((data.modified().ok()?, data.len(), path))
            })
            .collect();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= MOST_BYTES {
            return;
        }
        files.sort();
        for (_, bytes, path) in files {
            if total <= MOST_BYTES / 2 {
                return;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            total -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn cache(directory: &Path) -> Cache {
        Cache::open(&directory.join("programs")).unwrap()
    }

    #[test]
    fn what_is_kept_is_found_by_its_key() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = cache(scratch.path());
        assert_eq!(cache.get("a"), None);
        cache.put("a", b"first");
        cache.put("b", b"");
        cache.put("a", b"second");
        assert_eq!(cache.get("a").as_deref(), Some(&b"second"[..]));
        assert_eq!(cache.get("b").as_deref(), Some(&b""[..]));
        assert_eq!(fs::read_dir(&cache.directory).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_is_torn_or_of_another_key_is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = cache(scratch.path());
        cache.put("key", b"program");
        let file = cache.file("key");
        let whole = fs::read(&file).unwrap();
        for len in 0..whole.len() {
            fs::write(&file, &whole[..len]).unwrap();
            assert_eq!(cache.get("key"), None, "{len} bytes");
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            fs::write(&file, wrong).unwrap();
            assert_eq!(cache.get("key"), None, "byte {at}");
        }
        fs::write(cache.file("other"), &whole).unwrap();
        assert_eq!(cache.get("other"), None);
    }

    #[test]
    fn of_too_much_the_oldest_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = cache(scratch.path());
        cache.put("old", b"program");
        let past = |seconds| SystemTime::now() - std::time::Duration::from_secs(seconds);
        fs::File::open(cache.file("old")).unwrap().set_modified(past(60)).unwrap();
        cache.put("new", b"program");
        cache.shrink();
        assert!(cache.get("old").is_some());
        // A file of another program.
        let other = cache.directory.join("0123456789abcdef");
        fs::File::create(&other).unwrap().set_len(2 * MOST_BYTES).unwrap();
        cache.shrink();
        // A program that was used is as new as one that was written.
        assert!(cache.get("old").is_some());
        fs::File::open(cache.file("old")).unwrap().set_modified(past(60)).unwrap();
        let large = fs::File::create(cache.file("large")).unwrap();
        large.set_len(MOST_BYTES).unwrap();
        large.set_modified(past(30)).unwrap();
        cache.shrink();
        assert!(other.exists());
        assert_eq!(cache.get("old"), None);
        assert!(!cache.file("large").exists());
        assert!(cache.get("new").is_some());
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        for mode in [0o770, 0o707] {
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert!(Cache::open(scratch.path()).is_none(), "{mode:o}");
        }
    }

    #[test]
    fn the_setting_is_a_whole_path_or_0() {
        assert_eq!(parse("0"), Some(None));
        assert_eq!(parse("/a/b"), Some(Some("/a/b".into())));
        assert_eq!(parse("1"), None);
        assert_eq!(parse("a/b"), None);
    }
}
