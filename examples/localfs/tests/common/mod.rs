//! A directory to test in, with and without a root.

#![allow(dead_code, reason = "each test file uses a part")]

use localfs::LocalFs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tempfile::TempDir;
use tf_fs_plugin::prelude::*;

/// A filesystem and a directory in it, which is removed at the end.
pub(crate) struct TestDir {
    pub(crate) fs: LocalFs,
    base: Vec<u8>,
    directory: TempDir,
}

impl TestDir {
    /// Creates an area whose directory is the root.
    pub(crate) fn confined() -> Self {
        take_openat2_away();
        let directory = tempfile::tempdir().unwrap();
        let fs = LocalFs::confined(directory.path()).unwrap();
        Self { fs, base: b"local://".to_vec(), directory }
    }

    /// Creates an area whose directory is one of the machine.
    pub(crate) fn unconfined() -> Self {
        take_openat2_away();
        let directory = tempfile::tempdir().unwrap();
        let mut base = b"local://".to_vec();
        base.extend_from_slice(directory.path().as_os_str().as_bytes());
        Self { fs: LocalFs::unconfined(), base, directory }
    }

    /// Creates both: nothing but names and links may differ.
    pub(crate) fn both() -> [Self; 2] {
        [Self::confined(), Self::unconfined()]
    }

    /// Returns the name that TensorFlow would pass for a path in the directory.
    pub(crate) fn uri(&self, path: impl AsRef<[u8]>) -> Vec<u8> {
        [&self.base, &b"/"[..], path.as_ref()].concat()
    }

    /// Returns the machine's path of a path in the directory.
    pub(crate) fn path(&self, path: impl AsRef<std::path::Path>) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(path), content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    pub(crate) fn mkdir(&self, path: &str) {
        std::fs::create_dir_all(self.path(path)).unwrap();
    }

    /// Returns the names in a directory, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.path(path))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Reads up to `n` bytes from `offset` on.
pub(crate) fn read_at(file: &impl RandomAccessFile, offset: u64, n: usize) -> Vec<u8> {
    let mut memory = vec![0xee; n];
    let mut buf = ReadBuf::from_slice(&mut memory);
    file.read_at(offset, &mut buf).unwrap();
    buf.filled().to_vec()
}

/// Returns the code of a failure.
#[track_caller]
pub(crate) fn code<T>(result: Result<T>) -> Code {
    match result {
        Ok(_) => panic!("succeeded"),
        Err(error) => error.code(),
    }
}

/// Runs `body` without the rights of root, so that permissions are denied for any user who runs the tests.
pub(crate) fn unprivileged<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                if rustix::process::geteuid().is_root() {
                    let nobody = rustix::process::Uid::from_raw(65534);
                    // Of this thread only; it ends with `body`.
                    rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
                }
                body()
            })
            .join()
            .unwrap()
    })
}

/// Set in a process that tests without `openat2`.
const WITHOUT_OPENAT2: &str = "LOCALFS_TEST_WITHOUT_OPENAT2";

/// Runs the other tests of this file once more on a kernel that seems to have no `openat2`, as it is
/// before Linux 5.6 and in some sandboxes.
#[track_caller]
pub(crate) fn repeat_without_openat2(this_test: &str) {
    if std::env::var_os(WITHOUT_OPENAT2).is_some() {
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--skip", this_test, "--skip", "ten_thousand", "--skip", "a_tree_deeper"])
        .env(WITHOUT_OPENAT2, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" passed"), "{text}");
}

/// Makes `openat2` fail in this process, if it is one of [`repeat_without_openat2`].
pub(crate) fn take_openat2_away() {
    static DONE: std::sync::Once = std::sync::Once::new();
    if std::env::var_os(WITHOUT_OPENAT2).is_none() {
        return;
    }
    DONE.call_once(|| {
        use seccompiler::{
            BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
            SeccompFilter, SeccompRule,
        };
        const OPENAT2: i64 = 437;
        // A file without a name cannot get one either, as where `/proc` is not mounted.
        const LINKAT: i64 = if cfg!(target_arch = "x86_64") { 265 } else { 37 };
        let missing = SeccompAction::Errno(rustix::io::Errno::NOSYS.raw_os_error().cast_unsigned());
        let flags = u64::from(rustix::fs::AtFlags::SYMLINK_FOLLOW.bits());
        let follows =
            SeccompCondition::new(4, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, flags).unwrap();
        let filter = SeccompFilter::new(
            [(OPENAT2, vec![]), (LINKAT, vec![SeccompRule::new(vec![follows]).unwrap()])].into(),
            SeccompAction::Allow,
            missing,
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program = BpfProgram::try_from(filter.unwrap()).unwrap();
        seccompiler::apply_filter_all_threads(&program).unwrap();
        let (flags, resolve) = (rustix::fs::OFlags::PATH, rustix::fs::ResolveFlags::BENEATH);
        let opened = rustix::fs::openat2(rustix::fs::CWD, ".", flags, 0.into(), resolve);
        assert_eq!(opened.unwrap_err(), rustix::io::Errno::NOSYS);
        let (cwd, follow) = (rustix::fs::CWD, rustix::fs::AtFlags::SYMLINK_FOLLOW);
        let linked = rustix::fs::linkat(cwd, "/no/such/file", cwd, "/no/such/name", follow);
        assert_eq!(linked.unwrap_err(), rustix::io::Errno::NOSYS);
    });
}
