//! What only a real TensorFlow can judge.
//!
//! `cargo test -p tf-plugin-tensorflow-tests` builds the examples, provides the newest TensorFlow and
//! runs both together: from Python, and from C with no Python in the process. With `--features matrix`
//! the older releases and the release candidates get the same `.so` files; with `--features named` the one that
//! `TF_PLUGIN_TEST_TENSORFLOW` names.
//!
//! This library is what the tests have in common: [`plugin`] and [`outside`] build, [`python`] and [`child`] run
//! within a time limit, [`overlay`] makes a `site-packages` that a test may change, [`s3`] starts a server, and
//! [`abi`] is TensorFlow's C API as safe functions.

#[allow(unsafe_code, reason = "TensorFlow's C API; every block is argued")]
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

pub use cargo_tf_plugin::TensorFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The environment variable that names a plugin, or a directory of them, to load at import.
pub const LIBRARY: &str = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH";

/// Makes a module for each TensorFlow release, with a `#[test]` in it for each function named: one that
/// takes a [`TensorFlow`]. Releases but the newest need the feature `matrix`.
///
/// What is named after `oldest and newest:` shows nothing in the releases between these two that other tests do not;
/// release candidates run all of it.
#[macro_export]
macro_rules! each_tensorflow {
    ($($test:ident),+ $(,)?) => {
        $crate::each_tensorflow!($($test),+; oldest and newest:);
    };
    ($($test:ident),+; oldest and newest: $($end:ident),* $(,)?) => {
        $crate::each_tensorflow!(@module tensorflow_2_21_0 "2.21.0" $($test)+ $($end)*);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@module tensorflow_2_12_1 "2.12.1" $($test)+ $($end)*);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@module tensorflow_2_16_2 "2.16.2" $($test)+);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@module tensorflow_2_18_1 "2.18.1" $($test)+);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@module tensorflow_2_19_1 "2.19.1" $($test)+);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@module tensorflow_2_20_0 "2.20.0" $($test)+);
        #[cfg(feature = "matrix")]
        $crate::each_tensorflow!(@module tensorflow_2_22_0rc0 "2.22.0rc0" $($test)+ $($end)*);
        #[cfg(feature = "named")]
        $crate::each_tensorflow!(@module tensorflow_named ($crate::named()) $($test)+ $($end)*);
    };
    (@module $module:ident $version:tt $($test:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    #[allow(unused_parens, reason = "a literal or an expression")]
                    super::$test(&$crate::tensorflow($version));
                }
            )*
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
    /// What the root is in, for a filesystem on disk.
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_releases_are_those_of_the_command_line_tool() {
        let mut releases = vec![cargo_tf_plugin::NEWEST];
        releases.extend(cargo_tf_plugin::MATRIX);
        releases.extend(cargo_tf_plugin::CANDIDATES);
        // Those of `each_tensorflow!`: the newest, the older ones, then release candidates.
        let tested = ["2.21.0", "2.12.1", "2.16.2", "2.18.1", "2.19.1", "2.20.0", "2.22.0rc0"];
        assert_eq!(releases, tested);
    }
}
