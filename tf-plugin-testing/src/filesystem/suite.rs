//! What [`conformance!`](crate::filesystem::conformance!) makes its tests of.

use super::abi::at_exit::drop_at_exit;
use super::conformance::{Case, Conformance};
use super::declared::{Append, Declared, Directories, Files, Visible};
use super::host::Host;
use crate::options::{LeftOut, Named, OptionText};
use crate::tensorflow::Asked;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tf_plugin_core::Result;

/// Where the tests of [`conformance!`](crate::filesystem::conformance!) work: what its set-up makes. Dropping it is
/// the tear-down.
///
/// A URI is one, and so is a pair of a URI and anything that is to live as long: a temporary directory,
/// a server.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a directory for the tests of `conformance!`",
    label = "this does not return a URI",
    note = "make a URI, such as `\"my://host/\"`; a pair of one and what is to live as long, such as \
            `(format!(\"my://{{}}/\", server.port()), server)`; or implement `TestRoot` for `{Self}`"
)]
pub trait TestRoot: Send + Sync + 'static {
    /// The URI of a directory that exists.
    fn uri(&self) -> String;

    /// Runs on a host that was just made, before any test uses it: to configure the filesystem.
    ///
    /// # Errors
    /// Any; the test fails with it.
    fn prepare(&self, host: &Host) -> Result<()> {
        let _ = host;
        Ok(())
    }

    /// What [`prepare`](Self::prepare) is for a host, for the process of a real TensorFlow: environment variables, by
    /// name and value, that the filesystem takes its settings from.
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

/// Whether each case or the process makes a root. Written by [`conformance!`](crate::filesystem::conformance!).
#[doc(hidden)]
pub struct RootSource {
    set_up: SetUp,
    shared: bool,
}

impl RootSource {
    /// A root for each case.
    pub fn each_case<R: TestRoot>(set_up: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self { set_up: Box::new(move || Arc::new(set_up())), shared: false }
    }

    /// One root for the process, torn down at its end.
    pub fn once<R: TestRoot>(set_up: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self { shared: true, ..Self::each_case(set_up) }
    }
}

/// All tests of one [`conformance!`](crate::filesystem::conformance!).
#[doc(hidden)]
pub struct Suite {
    make_host: MakeHost,
    root: RootSource,
    /// The root of the process. What holds it is dropped when the process ends.
    shared: Mutex<Option<Weak<dyn TestRoot>>>,
    declared: Declared,
    without: LeftOut,
}

impl Suite {
    pub fn new(make_host: MakeHost, root: RootSource) -> Self {
        Self {
            make_host,
            root,
            shared: Mutex::default(),
            declared: Declared::default(),
            without: LeftOut::default(),
        }
    }
    pub fn files(mut self, files: Files) -> Self {
        self.declared.files = files;
        self
    }
    pub fn malformed(mut self, uri: impl OptionText) -> Self {
        self.declared.malformed = Some(uri.into());
        self
    }
    pub fn other_host(mut self, uri: impl OptionText) -> Self {
        self.declared.other_host = Some(uri.into());
        self
    }
    pub fn visible(mut self, visible: Visible) -> Self {
        self.declared.visible = visible;
        self
    }
    pub fn directories(mut self, directories: Directories) -> Self {
        self.declared.directories = directories;
        self
    }
    pub fn append(mut self, append: Append) -> Self {
        self.declared.append = append;
        self
    }
    pub fn without(mut self, case: &'static impl Named, reason: impl OptionText) -> Self {
        self.without.add(case, reason);
        self
    }

    /// Runs one case as a test.
    #[track_caller]
    pub fn test(&self, case: &'static Case) {
        if self.without.has(case) {
            return;
        }
        let root = self.root();
        let host = (self.make_host)().unwrap_or_else(|error| {
            panic!("the filesystem cannot be registered: {error:#}");
        });
        if let Err(error) = root.prepare(&host) {
            panic!("the host cannot be prepared for the tests: {error:#}");
        }
        let uri = root.uri();
        let conformance = Conformance::declared(&host, &uri, self.declared.clone());
        case.judge(conformance.run(case), &uri, "the filesystem");
    }

    /// Runs the cases for Python as a test, if somebody requests them.
    #[track_caller]
    pub fn test_in_python(&self, module: &str) {
        self.test_in_tensorflow(Asked::in_python(module));
    }

    /// Runs the cases in C as a test, if somebody requests them; or is the process that they run in.
    #[track_caller]
    pub fn test_in_c(&self, module: &str) {
        self.test_in_tensorflow(Asked::in_c::<Declared>(module));
    }

    #[track_caller]
    fn test_in_tensorflow(&self, asked: Option<Asked<'_>>) {
        let Some(asked) = asked else { return };
        let root = self.root();
        let uri = root.uri();
        let cases = asked.cases(self.declared.clone(), &self.without);
        let environment = root.environment().into_iter();
        let cases = environment.fold(cases, |cases, (name, value)| cases.env(name, value));
        asked.judge(&cases.run(&uri), &uri, "the filesystem");
    }

    fn root(&self) -> Arc<dyn TestRoot> {
        if !self.root.shared {
            return (self.root.set_up)();
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = shared.as_ref().and_then(Weak::upgrade) {
            return root;
        }
        let root = (self.root.set_up)();
        *shared = Some(Arc::downgrade(&root));
        drop_at_exit(Arc::clone(&root));
        root
    }
}

/// Makes a test of each [case](crate::filesystem::Case), so that `cargo test` lists them by name.
///
/// ```no_run
/// # struct MemFs;
/// # impl tf_plugin_testing::filesystem::Plugin for MemFs {
/// #     fn registrations() -> &'static [&'static tf_fs_plugin::__private::Registration] { &[] }
/// # }
/// tf_plugin_testing::filesystem::conformance!(MemFs, "mem://box/");
/// ```
///
/// `MemFs` is the type that carries `#[filesystem_plugin]`, or the one named in `filesystem_plugins!`;
/// the URI is that of a directory that exists. A case whose operation is not implemented passes and
/// prints `skipped: ...` (`cargo test -- --show-output` shows it). Each case has a host of its own and
/// works in new directories below the root, which it deletes if it passes.
///
/// With options, of which only `root` must be there:
///
/// ```no_run
/// # struct LocalFs;
/// # impl tf_plugin_testing::filesystem::Plugin for LocalFs {
/// #     fn registrations() -> &'static [&'static tf_fs_plugin::__private::Registration] { &[] }
/// # }
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
/// | Option | What it says |
/// |---|---|
/// | `root: "uri"` | the directory |
/// | `root: each_case(f)` | `f` makes a [`TestRoot`](crate::filesystem::TestRoot) for each case, such as a URI with a temporary directory; dropping it is the tear-down |
/// | `root: once(f)` | the same once a process: a server, a bucket. It is dropped when the process exits, whatever failed |
/// | `files: written` or `provided` | whether the cases write their files, or the set-up has put [`samples`](crate::filesystem::samples) there for a filesystem that only reads; see [`Files`](crate::filesystem::Files) |
/// | `malformed: "uri"` | a name that the filesystem can never accept; without it those cases are skipped |
/// | `other_host: "uri"` | a directory on another host of the scheme, to rename and copy to; without it those cases are skipped |
/// | `visible: create`, `in_place`, `flush` or `close` | when others see a file that is being written; see [`Visible`](crate::filesystem::Visible) |
/// | `directories: real` or `implied` | whether directories are made or implied by names; see [`Directories`](crate::filesystem::Directories) |
/// | `append: supported` or `unsupported` | whether files that exist can be appended to |
/// | `without: [case => "reason"]` | leaves [cases](crate::filesystem::cases) out; the test prints the reason, and an unknown name does not compile |
///
/// Two uses in one module make tests of the same names: put each into a `mod` of its own.
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
        $crate::__filesystem_conformance_options! { ($plugin) () () () () () () () () $key : $($rest)* }
    };
    ($plugin:ty, $root:expr $(,)?) => {
        $crate::__filesystem_conformance_options! { ($plugin) () () () () () () () () root: $root }
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

/// The options of [`conformance!`], one after the other. What is known of each is in parentheses, in the
/// order in which the last message but one names them.
#[doc(hidden)]
#[macro_export]
macro_rules! __filesystem_conformance_options {
    ($p:tt ($($given:tt)+) $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt root: $($rest:tt)*) => {
        ::core::compile_error!("`root` is given twice; keep one of the two");
    };
    ($p:tt () $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt root: each_case($set_up:expr) $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p (each_case($set_up)) $f $m $o $v $d $a $w $($($rest)*)? }
    };
    ($p:tt () $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt root: once($set_up:expr) $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p (once($set_up)) $f $m $o $v $d $a $w $($($rest)*)? }
    };
    ($p:tt () $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt root: $root:expr $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p (each_case(|| $root)) $f $m $o $v $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt root $($rest:tt)*) => {
        ::core::compile_error!(
            "`root` is a URI, `each_case(|| ...)` or `once(|| ...)`, and a comma separates it from the \
             next option: `root: \"my://host/\", directories: implied`"
        );
    };
    ($p:tt $r:tt ($($given:tt)+) $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt files: $($rest:tt)*) => {
        ::core::compile_error!("`files` is given twice; keep one of the two");
    };
    ($p:tt $r:tt () $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt files: written $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r (.files($crate::filesystem::Files::Written)) $m $o $v $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt () $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt files: provided $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r (.files($crate::filesystem::Files::Provided)) $m $o $v $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt files $($rest:tt)*) => {
        ::core::compile_error!("`files` is `written` or `provided`, with a comma before the next option");
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt ($($given:tt)+) $d:tt $a:tt $w:tt visible: $($rest:tt)*) => {
        ::core::compile_error!("`visible` is given twice; keep one of the two");
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt () $d:tt $a:tt $w:tt visible: create $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o (.visible($crate::filesystem::Visible::Create)) $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt () $d:tt $a:tt $w:tt visible: in_place $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o (.visible($crate::filesystem::Visible::InPlace)) $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt () $d:tt $a:tt $w:tt visible: flush $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o (.visible($crate::filesystem::Visible::Flush)) $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt () $d:tt $a:tt $w:tt visible: close $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o (.visible($crate::filesystem::Visible::Close)) $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt visible $($rest:tt)*) => {
        ::core::compile_error!("`visible` is `create`, `in_place`, `flush` or `close`, with a comma before the next option");
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt ($($given:tt)+) $a:tt $w:tt directories: $($rest:tt)*) => {
        ::core::compile_error!("`directories` is given twice; keep one of the two");
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt () $a:tt $w:tt directories: real $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o $v (.directories($crate::filesystem::Directories::Real)) $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt () $a:tt $w:tt directories: implied $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o $v (.directories($crate::filesystem::Directories::Implied)) $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt directories $($rest:tt)*) => {
        ::core::compile_error!("`directories` is `real` or `implied`, with a comma before the next option");
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt ($($given:tt)+) $w:tt append: $($rest:tt)*) => {
        ::core::compile_error!("`append` is given twice; keep one of the two");
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt () $w:tt append: supported $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o $v $d (.append($crate::filesystem::Append::Supported)) $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt () $w:tt append: unsupported $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m $o $v $d (.append($crate::filesystem::Append::Unsupported)) $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt append $($rest:tt)*) => {
        ::core::compile_error!("`append` is `supported` or `unsupported`, with a comma before the next option");
    };
    ($p:tt $r:tt $f:tt ($($given:tt)+) $o:tt $v:tt $d:tt $a:tt $w:tt malformed: $($rest:tt)*) => {
        ::core::compile_error!("`malformed` is given twice; keep one of the two");
    };
    ($p:tt $r:tt $f:tt () $o:tt $v:tt $d:tt $a:tt $w:tt malformed: $uri:expr $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f (.malformed($uri)) $o $v $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt malformed $($rest:tt)*) => {
        ::core::compile_error!(
            "`malformed` is a URI in quotes, with a comma before the next option: \
             `malformed: \"my://host/x\"`"
        );
    };
    ($p:tt $r:tt $f:tt $m:tt ($($given:tt)+) $v:tt $d:tt $a:tt $w:tt other_host: $($rest:tt)*) => {
        ::core::compile_error!("`other_host` is given twice; keep one of the two");
    };
    ($p:tt $r:tt $f:tt $m:tt () $v:tt $d:tt $a:tt $w:tt other_host: $uri:expr $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! { $p $r $f $m (.other_host($uri)) $v $d $a $w $($($rest)*)? }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt other_host $($rest:tt)*) => {
        ::core::compile_error!(
            "`other_host` is a URI in quotes, with a comma before the next option: \
             `other_host: \"my://other/\"`"
        );
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt ($($given:tt)+) without: $($rest:tt)*) => {
        ::core::compile_error!("`without` is given twice; keep one of the two");
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt ()
     without: [$($case:ident => $reason:expr),* $(,)?] $(, $($rest:tt)*)?) => {
        $crate::__filesystem_conformance_options! {
            $p $r $f $m $o $v $d $a ($(.without(&$crate::filesystem::cases::$case, $reason))*)
            $($($rest)*)?
        }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt without $($rest:tt)*) => {
        ::core::compile_error!(
            "`without` is a list of cases, each with its reason: `without: [checkpoint => \"why\"]`"
        );
    };
    ($p:tt () $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt) => {
        ::core::compile_error!(
            "the tests need a directory to work in; add `root: \"my://host/\"`, \
             `root: each_case(|| ...)` or `root: once(|| ...)`"
        );
    };
    (($plugin:ty) ($kind:ident($set_up:expr)) ($($f:tt)*) ($($m:tt)*) ($($o:tt)*) ($($v:tt)*) ($($d:tt)*) ($($a:tt)*) ($($w:tt)*)) => {

        fn __tf_fs_plugin_suite() -> &'static $crate::filesystem::Suite {
            static SUITE: ::std::sync::LazyLock<$crate::filesystem::Suite> =
                ::std::sync::LazyLock::new(|| {
                    $crate::filesystem::Suite::new(
                        $crate::filesystem::Host::load::<$plugin>,
                        $crate::filesystem::RootSource::$kind($set_up),
                    )
                    $($f)*
                    $($m)*
                    $($o)*
                    $($v)*
                    $($d)*
                    $($a)*
                    $($w)*
                });
            &SUITE
        }
        $crate::__filesystem_conformance_tests! { __tf_fs_plugin_suite }
        #[test]
        fn conformance_in_python() {
            __tf_fs_plugin_suite().test_in_python(::core::module_path!());
        }
        #[test]
        fn conformance_in_c() {
            __tf_fs_plugin_suite().test_in_c(::core::module_path!());
        }
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt $key:ident $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "unknown option `",
            ::core::stringify!($key),
            "`; there are `root`, `files`, `malformed`, `other_host`, `visible`, `directories`, \
             `append` and `without`, each as `name: value`"
        ));
    };
    ($p:tt $r:tt $f:tt $m:tt $o:tt $v:tt $d:tt $a:tt $w:tt $other:tt $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected an option, found `",
            ::core::stringify!($other),
            "`; each is written as `name: value`, with a comma before the next one"
        ));
    };
}
