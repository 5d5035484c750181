//! Tests real environments, and what can go wrong with them.

use tempfile::TempDir;

use super::*;
use crate::pinned::{distribution, environments, goal};
use crate::{NEWEST, TensorFlow};

/// Creates an empty directory on the file system of the real environments, since hard links cannot cross file systems.
fn scratch() -> TempDir {
    let environments = environments().expect("tests run in a workspace");
    fs::create_dir_all(&environments).expect("the directory can be made");
    tempfile::tempdir_in(environments).expect("a scratch directory")
}

/// Copies the real environment of [`NEWEST`], as if it had been installed into `directory` without a stamp.
fn unstamped(directory: &Path) -> Installation<TensorFlow> {
    TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let installation = Installation::new(NEWEST, directory).expect("a version");
    let real = environments().expect("a workspace").join(NEWEST);
    // Hard links take no space. The trailing `.` copies the content, even if the directory is a link.
    let linked = Command::new("cp").arg("-al").arg(real.join(".")).arg(&installation.venv).status();
    assert!(linked.expect("cp runs").success());
    fs::remove_file(installation.stamp()).expect("the stamp was there");
    installation
}

#[test]
fn an_interrupted_environment_is_made_again() {
    let directory = scratch();
    let mut installation = unstamped(directory.path());
    installation.python = Some("/nonexistent/python".into());
    let error = installation.provide().expect_err("it must be made again");
    let error = format!("{error:#}");
    assert!(error.contains(PYTHON_VARIABLE) && error.contains("/nonexistent/python"), "{error}");
}

#[test]
fn a_lost_library_makes_a_stamped_environment_incomplete() {
    let directory = scratch();
    let installation = unstamped(directory.path());
    installation.write_stamp().expect("a stamp");
    let tensorflow = installation.complete().expect("complete");
    fs::remove_file(tensorflow.library_dir().join("libtensorflow_cc.so.2")).expect("it was there");
    assert!(installation.complete().is_none());
    let error = TensorFlow::from_python(tensorflow.python()).expect_err("incomplete");
    assert!(error.to_string().contains("libtensorflow_cc.so.2 is missing"), "{error:#}");
}

#[test]
fn a_second_process_waits_for_the_first() {
    let directory = scratch();
    let installation = unstamped(directory.path());
    let lock = installation.lock().expect("the lock");
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let provided = installation.provide();
            sender.send(provided.is_ok()).expect("the test listens");
        });
        let early = receiver.recv_timeout(Duration::from_secs(3));
        assert!(early.is_err(), "it did not wait");
        installation.write_stamp().expect("a stamp");
        drop(lock);
        assert!(receiver.recv().expect("an answer"), "it failed after waiting");
    });
}

#[test]
fn an_unreachable_package_index_is_named_and_leaves_no_complete_environment() {
    let directory = scratch();
    let mut installation = Installation::new(NEWEST, directory.path()).expect("a version");
    installation.environment = [
        // Nothing listens on port 1.
        ("PIP_INDEX_URL", "http://127.0.0.1:1/simple"),
        ("PIP_EXTRA_INDEX_URL", ""),
        ("PIP_FIND_LINKS", ""),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_RETRIES", "0"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    let error = installation.provide().expect_err("nothing can be installed").to_string();
    assert!(error.contains("  | "), "pip's own words are missing: {error}");
    assert!(error.contains("pip could not reach its package index"), "{error}");
    assert!(!installation.venv.exists(), "what cannot be used is left behind");
}

#[test]
fn only_the_oldest_release_needs_help_in_choosing_its_companions() {
    let of = |version: &str| goal(version).requirements;
    assert_eq!(of("2.12.1"), [format!("{}==2.12.1", distribution()), "jax<0.4.31".to_owned()]);
    assert_eq!(of("2.21.0"), [format!("{}==2.21.0", distribution())]);
}

#[test]
fn a_release_that_does_not_exist_is_named() {
    let directory = scratch();
    // An index that has another release; pip only reads the file name.
    let wheels = tempfile::tempdir().expect("an empty directory");
    let name = distribution().replace('-', "_");
    fs::write(wheels.path().join(format!("{name}-2.20.0-py3-none-any.whl")), "").expect("a file");
    let mut installation = Installation::new("2.21.99", directory.path()).expect("a version");
    installation.environment = [
        ("PIP_NO_INDEX", "1".as_ref()),
        ("PIP_FIND_LINKS", wheels.path().as_os_str()),
        ("PIP_CONFIG_FILE", "/dev/null".as_ref()),
    ]
    .map(|(name, value): (_, &std::ffi::OsStr)| (name.into(), value.into()))
    .into();
    let error = installation.provide().expect_err("no such release").to_string();
    assert!(error.contains("the package index has no TensorFlow 2.21.99"), "{error}");
    assert!(!installation.venv.exists(), "what cannot be used is left behind");
}

#[test]
fn a_full_disk_is_named_with_its_place() {
    let installation = Installation::new(NEWEST, Path::new("/somewhere")).expect("a version");
    let error = installation.disk_error(io::ErrorKind::StorageFull.into());
    assert!(
        format!("{error:#}").contains("the disk is full: free 3 GB for /somewhere/"),
        "{error:#}"
    );
    let output =
        ["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
            .to_owned()];
    let error = installation.venv_failure(Path::new("python3"), &output).to_string();
    assert!(error.contains("the disk is full"), "{error}");
}
