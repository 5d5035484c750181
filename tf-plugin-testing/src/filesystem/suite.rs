//! The value from which [`conformance!`](crate::filesystem::conformance!) makes its tests.

use super::abi::at_exit::drop_at_exit;
use super::conformance::{Case, Conformance};
use super::host::Host;
use super::semantics::{Append, Directories, Files, Semantics, Visibility, declarations};
use crate::options::{Exclusions, OptionText};
use crate::tensorflow::TestRequest;
use std::sync::{Arc, OnceLock, Weak};
use tf_plugin_core::Result;

/// The directory in which the tests of [`conformance!`](crate::filesystem::conformance!) work,
/// created by their set-up. Dropping it is the tear-down.
///
/// Implemented for a URI, and for a pair of a URI and a value that is kept meanwhile: a temporary
/// directory, a server.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a directory for the tests of `conformance!`",
    label = "this does not return a URI",
    note = "make a URI, such as `\"my://host/\"`; a pair of one and what is to live as long, such as \
            `(format!(\"my://{{}}/\", server.port()), server)`; or implement `TestRoot` for `{Self}`"
)]
pub trait TestRoot: Send + Sync + 'static {
    /// Returns the URI of a directory that exists.
    fn uri(&self) -> String;

    /// Prepares a new host before a test uses it, for example by configuring the filesystem.
    ///
    /// # Errors
    /// May return any error; the test fails with it.
    fn prepare(&self, host: &Host) -> Result<()> {
        let _ = host;
        Ok(())
    }

    /// Returns environment variables, by name and value, from which the filesystem takes its settings. They do for the
    /// process of a real TensorFlow what [`prepare`](Self::prepare) does for a host.
    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

impl TestRoot for String {
    fn uri(&self) -> String {
        self.clone()
    }
}

impl TestRoot for &'static str {
    fn uri(&self) -> String {
        String::from(*self)
    }
}

impl<T: Send + Sync + 'static> TestRoot for (String, T) {
    fn uri(&self) -> String {
        self.0.clone()
    }
}

type MakeHost = fn() -> Result<Host>;
type SetUp = Box<dyn Fn() -> Arc<dyn TestRoot> + Send + Sync>;

/// Whether each case or the process has a root. Used by [`conformance!`](crate::filesystem::conformance!).
#[doc(hidden)]
pub struct RootSource {
    set_up: SetUp,
    shared: bool,
}

impl RootSource {
    /// Creates a root for each case.
    pub fn each_case<R: TestRoot>(set_up: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self { set_up: Box::new(move || Arc::new(set_up())), shared: false }
    }

    /// Creates one root for the process, which is dropped when the process exits.
    pub fn once<R: TestRoot>(set_up: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self { shared: true, ..Self::each_case(set_up) }
    }
}

/// All tests of one [`conformance!`](crate::filesystem::conformance!).
#[doc(hidden)]
pub struct Suite {
    make_host: MakeHost,
    root: Option<RootSource>,
    /// The root of the process. Its owner is dropped when the process ends.
    shared: OnceLock<Weak<dyn TestRoot>>,
    semantics: Semantics,
    without: Exclusions,
}

declarations! { Suite, semantics, OptionText }

impl Suite {
    pub fn new(make_host: MakeHost) -> Self {
        Self {
            make_host,
            root: None,
            shared: OnceLock::new(),
            semantics: Semantics::default(),
            without: Exclusions::default(),
        }
    }
    pub fn root(mut self, root: RootSource) -> Self {
        self.root = Some(root);
        self
    }
    pub fn other_host(mut self, uri: impl OptionText) -> Self {
        self.semantics.other_host = Some(uri.into());
        self
    }
    pub fn without(mut self, case: &'static str, reason: impl OptionText) -> Self {
        self.without.add(case, reason);
        self
    }

    /// Runs one case as a test.
    #[track_caller]
    pub fn test(&self, case: &'static Case) {
        if self.without.has(case.name()) {
            return;
        }
        let root = self.make_root();
        let host = (self.make_host)().unwrap_or_else(|error| {
            panic!("the filesystem cannot be registered: {error:#}");
        });
        if let Err(error) = root.prepare(&host) {
            panic!("the host cannot be prepared for the tests: {error:#}");
        }
        let uri = root.uri();
        let conformance = Conformance::with_semantics(&host, &uri, self.semantics.clone());
        case.judge(conformance.run(case), &uri, "the filesystem");
    }

    /// Runs the Python or C cases as a test, if `cargo tf-plugin test` requests them; or is the process of the C cases.
    #[track_caller]
    pub fn test_in_tensorflow(&self, module: &str, in_c: bool) {
        let Some(request) = TestRequest::new::<Semantics>(module, in_c) else { return };
        let root = self.make_root();
        let uri = root.uri();
        let cases = request.cases(self.semantics.clone(), &self.without);
        let environment = root.environment().into_iter();
        let cases = environment.fold(cases, |cases, (name, value)| cases.env(name, value));
        request.judge(&cases.run(&uri), &uri, "the filesystem");
    }

    fn make_root(&self) -> Arc<dyn TestRoot> {
        let source = self.root.as_ref().expect("`conformance!` requires a root");
        if !source.shared {
            return (source.set_up)();
        }
        let shared = self.shared.get_or_init(|| {
            let root = (source.set_up)();
            drop_at_exit(Arc::clone(&root));
            Arc::downgrade(&root)
        });
        shared.upgrade().expect("tests end before the process does")
    }
}

/// Defines a test for each [case](crate::filesystem::Case), so that `cargo test` lists them by name.
///
/// ```no_run
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/filesystem/toy.rs")); }
/// # use toy::Toy as MemFs;
/// tf_plugin_testing::filesystem::conformance!(MemFs, "mem://box/");
/// ```
///
/// `MemFs` is the type that carries `#[filesystem_plugin]`, or the one named in
/// `filesystem_plugins!`; the URI is that of a directory that exists. A case whose operation is not
/// implemented passes and prints `skipped: ...` (`cargo test -- --show-output` shows it). Each case
/// has a new host and works in new directories below the root, which it deletes if it passes.
///
/// With options, of which only `root` is required:
///
/// ```no_run
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/filesystem/toy.rs")); }
/// # use toy::Toy as LocalFs;
/// # mod tempfile { pub fn tempdir() -> std::io::Result<std::path::PathBuf> { Ok("/".into()) } }
/// tf_plugin_testing::filesystem::conformance! {
///     LocalFs,
///     root: each_case(|| {
///         let dir = tempfile::tempdir().expect("a temporary directory");
/// #       struct Dir(std::path::PathBuf);
/// #       impl Dir { fn path(&self) -> &std::path::Path { &self.0 } }
/// #       let dir = Dir(dir);
///         (format!("local://{}", dir.path().display()), dir)
///     }),
///     files: written,
///     malformed: "local://host/x",
///     visible: in_place,
///     directories: real,
///     append: supported,
///     without: [
///         name_with_control => "the operator forbids such names",
///     ],
/// }
/// ```
///
/// | Option | Meaning |
/// |---|---|
/// | `root: "uri"` | the directory |
/// | `root: each_case(f)` | `f` creates a [`TestRoot`](crate::filesystem::TestRoot) for each case, such as a URI with a temporary directory; dropping it is the tear-down |
/// | `root: once(f)` | the same once for each process: a server, a bucket. It is dropped when the process exits, even if a test failed |
/// | `files: written` or `provided` | whether the cases write their files, or the set-up has created [`samples`](crate::filesystem::samples) for a read-only filesystem; see [`Files`](crate::filesystem::Files) |
/// | `malformed: "uri"` | a name that the filesystem can never accept; without it those cases are skipped |
/// | `other_host: "uri"` | a directory on another host of the scheme, to rename and copy to; without it those cases are skipped |
/// | `visible: create`, `in_place`, `flush` or `close` | when others see a file that is being written; see [`Visibility`](crate::filesystem::Visibility) |
/// | `directories: real` or `implied` | whether directories are created, or implied by names; see [`Directories`](crate::filesystem::Directories) |
/// | `append: supported` or `unsupported` | whether files that exist can be appended to |
/// | `without: [case => "reason"]` | leaves [cases](crate::filesystem::cases) out; the test prints the reason, and an unknown name does not compile |
///
/// Two uses in one module define tests of the same names: put each into its own `mod`.
#[doc(hidden)]
#[macro_export]
macro_rules! __filesystem_conformance {
    ($plugin:literal $($rest:tt)*) => {
        ::core::compile_error!(
            "the filesystem comes first: `conformance!(MyFs, \"my://host/\")`, where `MyFs` is the type \
             that carries `#[filesystem_plugin]`"
        );
    };
    ($plugin:ty, $key:ident : $($rest:tt)*) => {
        $crate::__conformance_options! {
            filesystem () [$crate::filesystem::Suite::new($crate::filesystem::Host::load::<$plugin>)] []
            $key : $($rest)*
        }
    };
    ($plugin:ty, $root:expr $(,)?) => {
        $crate::__filesystem_conformance! { $plugin, root: $root }
    };
    ($plugin:ty $(,)?) => {
        ::core::compile_error!(
            "the tests need a directory to work in; give its URI: `conformance!(MyFs, \"my://host/\")`"
        );
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "expected a filesystem and the URI of a directory, such as \
             `conformance!(MyFs, \"my://host/\")`, or options, such as \
             `conformance! { MyFs, root: \"my://host/\", directories: implied }`"
        );
    };
}
