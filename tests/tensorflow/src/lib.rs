//! Tests that need a real TensorFlow.
//!
//! `cargo test -p tf-plugin-tensorflow-tests` builds the examples, provides the newest TensorFlow and
//! runs both together: from Python, and from C with no Python in the process. With `--features matrix`
//! the older releases and the release candidates get the same `.so` files; with `--features named` the one that
//! `TF_PLUGIN_TEST_TENSORFLOW` names.
//!
//! This library is what the tests have in common: [`plugin`] and [`outside`] build, [`python`] and [`child`] run
//! within a time limit, [`overlay`] makes a `site-packages` that a test may change, [`s3`] starts a server, and
//! [`abi`] is TensorFlow's C API as safe functions.

#[expect(unsafe_code, reason = "TensorFlow's C API")]
pub mod abi;
pub mod child;
mod fork_server;
pub mod outside;
pub mod overlay;
pub mod plugin;
pub mod python;
pub mod s3;
pub mod scenarios;

pub use plugin::Plugin;

pub use cargo_tf_plugin::{TensorFlow, tensorflow_releases};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The environment variable that names a plugin, or a directory of them, to load at import.
pub const LIBRARY: &str = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH";

/// Makes a module for each TensorFlow release in [`cargo_tf_plugin::tensorflow_releases`], with a `#[test]` in it for each
/// function named: one that takes a [`TensorFlow`]. Releases but the newest need the feature `matrix`.
///
/// The tests named after `oldest and newest:` show nothing in the releases between these two that other tests do not;
/// release candidates run all of them. Four lists name the functions for each kind of release.
#[macro_export]
macro_rules! each_tensorflow {
    ($($test:ident),+ $(,)?) => {
        $crate::each_tensorflow!($($test),+; oldest and newest:);
    };
    ($($test:ident),+; oldest and newest: $($end:ident),* $(,)?) => {
        $crate::each_tensorflow!(
            oldest: [$($test)+ $($end)*];
            older: [$($test)+];
            newest: [$($test)+ $($end)*];
            candidates: [$($test)+ $($end)*];
        );
    };
    (oldest: $oldest:tt; older: $older:tt; newest: $newest:tt; candidates: $candidates:tt;) => {
        $crate::tensorflow_releases!([$crate::each_tensorflow] $oldest $older $newest $candidates);
    };
    (
        oldest $oldest:ident $oldest_version:literal;
        $(older $older:ident $older_version:literal;)*
        newest $newest:ident $newest_version:literal;
        $(candidate $candidate:ident $candidate_version:literal;)*
        [$($oldest_test:ident)*] [$($older_test:ident)*] [$($newest_test:ident)*] [$($candidate_test:ident)*]
    ) => {
        $crate::each_tensorflow!(@module $newest $newest_version [$($newest_test)*]);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@module $oldest $oldest_version [$($oldest_test)*]);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@modules [$($older_test)*] $($older $older_version)*);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@modules [$($candidate_test)*] $($candidate $candidate_version)*);
        #[cfg(feature = "named")]
        $crate::each_tensorflow!(@module tensorflow_named ($crate::named()) [$($candidate_test)*]);
    };
    (@modules $tests:tt $($module:ident $version:literal)*) => {
        $($crate::each_tensorflow!(@module $module $version $tests);)*
    };
    (@module $module:ident $version:tt []) => {};
    (@module $module:ident $version:tt [$($test:ident)+]) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    #[allow(unused_parens, reason = "a literal or an expression")]
                    super::$test(&$crate::tensorflow($version));
                }
            )+
        }
    };
}

/// Makes functions for [`each_tensorflow!`], a row each: the steps that the module's `run` gets, and settings if it gets any.
#[macro_export]
macro_rules! steps {
    ($($(#[$attribute:meta])* $test:ident: $steps:expr $(, $setting:expr)*;)*) => {$(
        $(#[$attribute])*
        fn $test(tensorflow: &$crate::TensorFlow) {
            run(tensorflow, &$steps, &[$($setting),*]);
        }
    )*};
}

/// A TensorFlow release, installed on first use.
///
/// # Panics
/// When it cannot be provided; the text says what to do.
pub fn tensorflow(version: &str) -> TensorFlow {
    TensorFlow::pinned(version).unwrap_or_else(|error| panic!("{error:#}"))
}

/// The release that the environment names, with the feature `named`.
pub fn named() -> &'static str {
    static NAMED: LazyLock<String> = LazyLock::new(|| {
        std::env::var(NAMED_VARIABLE).unwrap_or_else(|_| {
            panic!("{NAMED_VARIABLE} names no TensorFlow; set it to a release, such as 2.22.0rc1")
        })
    });
    &NAMED
}

/// The variable that names a release to be tested in addition to the known ones.
pub const NAMED_VARIABLE: &str = "TF_PLUGIN_TEST_TENSORFLOW";

/// A Python script of the project: a path from the workspace's `tests` directory on.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(name)
}

/// A plugin of `examples/` with the place in it that tests may use.
#[derive(Debug)]
pub struct Example {
    /// Its package.
    pub package: &'static str,
    /// The plugin.
    pub plugin: &'static Plugin,
    /// A URI without `/` at the end; nothing else uses what is below it.
    pub root: String,
    /// The directory that holds the root, for a filesystem on disk.
    scratch: Option<tempfile::TempDir>,
}

impl Example {
    /// `examples/memfs`.
    pub fn memfs() -> Self {
        Self::new("memfs", String::from("mem://box/tests"))
    }

    /// `examples/memstore`.
    pub fn memstore() -> Self {
        Self::new("memstore", String::from("memstore://bucket/tests"))
    }

    /// `examples/localfs`, with a root in a new directory that vanishes with the value.
    pub fn localfs() -> Self {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let root = format!("local://{}/tests", scratch.path().display());
        Self { scratch: Some(scratch), ..Self::new("localfs", root) }
    }

    fn new(package: &'static str, root: String) -> Self {
        Self { package, plugin: Plugin::of(package), root, scratch: None }
    }

    /// Where the root is on disk, if it is.
    pub fn directory(&self) -> Option<PathBuf> {
        self.scratch.as_ref().map(|scratch| scratch.path().join("tests"))
    }
}
