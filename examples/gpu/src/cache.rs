//! Compiled programs on disk, so that the next process need not compile them.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// The setting: a directory, or `0` for none.
const SETTING: &str = "RUST_GPU_CACHE";
/// Begins each file; another layout is another one.
const MARK: &[u8] = b"RUST_GPU program 1\n";
/// When a process finds more, it removes the oldest until half of it is left.
const MOST_BYTES: u64 = 256 << 20;

/// A directory with a file for each program.
pub(crate) struct Cache {
    directory: PathBuf,
    /// Whether it was said that programs cannot be kept.
    has_failed: AtomicBool,
}

/// The same in each process with the same build of the plugin; others find nothing, or what has another key.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl Cache {
    /// The one that the environment names, or else the user's. `None` if there is to be none, or the user has no home.
    pub(crate) fn of_environment() -> Option<Self> {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let directory = match path(SETTING) {
            Some(set) if set.as_os_str() == "0" => return None,
            Some(set) => set,
            None => path("XDG_CACHE_HOME")
                .filter(|path| path.is_absolute())
                .or_else(|| path("HOME").map(|home| home.join(".cache")))?
                .join("tensorflow-rust-gpu"),
        };
        let cache = Self { directory, has_failed: AtomicBool::new(false) };
        cache.shrink();
        Some(cache)
    }

    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{:016x}", hash(key.as_bytes())))
    }

    /// What was kept with this key. A file that is torn or of something else is none.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let file = fs::read(self.file(key)).ok()?;
        let rest = file.strip_prefix(MARK)?;
        let (sum, rest) = rest.split_first_chunk()?;
        let (len, content) = rest.split_first_chunk()?;
        let (found, program) =
            content.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        (u64::from_le_bytes(*sum) == hash(content) && found == key.as_bytes())
            .then(|| program.to_vec())
    }

    /// Keeps a program. Without success a line says why, once, and nothing is lost but time.
    pub(crate) fn put(&self, key: &str, program: &[u8]) {
        let Err(error) = self.try_put(key, program) else { return };
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            log::warn!(
                "RUST_GPU cannot keep compiled programs in `{}`, and compiles them in each process: {error}; set {SETTING} to a \
                 directory that can be written, or to 0",
                self.directory.display()
            );
        }
    }

    fn try_put(&self, key: &str, program: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let content = [key.as_bytes(), program].concat();
        // Another process sees a whole file or none.
        let scratch =
            self.directory.join(format!("{:016x}.{}", hash(key.as_bytes()), std::process::id()));
        let write = || {
            let mut file = fs::File::create(&scratch)?;
            for part in
                [MARK, &hash(&content).to_le_bytes(), &(key.len() as u64).to_le_bytes(), &content]
            {
                file.write_all(part)?;
            }
            fs::rename(&scratch, self.file(key))
        };
        write().inspect_err(|_| {
            // There is nothing to do about a second error.
            let _ = fs::remove_file(&scratch);
        })
    }

    fn shrink(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let (path, data) = entry.ok().map(|e| (e.path(), e.metadata()))?;
                let data = data.ok().filter(fs::Metadata::is_file)?;
                Some((data.modified().ok()?, data.len(), path))
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

    fn cache(directory: &std::path::Path) -> Cache {
        Cache { directory: directory.join("programs"), has_failed: AtomicBool::new(false) }
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
        let large = fs::File::create(cache.file("large")).unwrap();
        large.set_len(MOST_BYTES).unwrap();
        large.set_modified(past(30)).unwrap();
        cache.shrink();
        assert_eq!(cache.get("old"), None);
        assert!(!cache.file("large").exists());
        assert!(cache.get("new").is_some());
    }
}
