//! The options of the `conformance!` macros.

/// The type of an option of `conformance!` that is a text.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an option of `conformance!` is `{Self}`, where a string is expected",
    label = "this is not a string",
    note = "write it in quotes: `malformed: \"my://host/x\"`, `without: [case => \"why\"]`"
)]
pub trait OptionText: Into<String> {}

impl OptionText for &str {}
impl OptionText for String {}

/// The cases that are left out, each with the reason.
#[derive(Debug, Default)]
pub(crate) struct Exclusions(pub(crate) Vec<(&'static str, String)>);

impl Exclusions {
    pub(crate) fn add(&mut self, case: &'static str, reason: impl OptionText) {
        self.0.push((case, reason.into()));
    }

    /// Returns whether a case is left out, and prints the reason if it is.
    pub(crate) fn has(&self, case: &str) -> bool {
        let found = self.0.iter().find(|(name, _)| *name == case);
        if let Some((_, reason)) = found {
            println!("left out: {reason}");
        }
        found.is_some()
    }
}

/// The options of the `conformance!` macros, one after the other: the kind, whether there is a
/// root, the calls that build the suite, and the names of the options so far.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_options {
    (filesystem () $suite:tt $keys:tt) => {
        ::core::compile_error!(
            "the tests need a directory to work in; add `root: \"my://host/\"`, \
             `root: each_case(|| ...)` or `root: once(|| ...)`"
        );
    };
    ($kind:ident $root:tt [$($suite:tt)*] [$($key:ident)*]) => {
        // A repeated option defines a module twice, which does not compile.
        const _: () = { $(mod $key {})* };
        fn __conformance_suite() -> &'static $crate::$kind::Suite {
            static SUITE: ::std::sync::LazyLock<$crate::$kind::Suite> =
                ::std::sync::LazyLock::new(|| $($suite)*);
            &SUITE
        }
        $crate::__conformance_tests! { $kind __conformance_suite }
        #[test]
        fn conformance_in_python() {
            __conformance_suite().test_in_tensorflow(::core::module_path!(), false);
        }
    };
    ($kind:ident $root:tt $suite:tt [$($keys:ident)*] $key:ident $($rest:tt)*) => {
        $crate::__conformance_option! { $kind $root $suite [$($keys)* $key] $key $($rest)* }
    };
    ($kind:ident $root:tt $suite:tt $keys:tt $other:tt $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected an option, found `",
            ::core::stringify!($other),
            "`; each is written as `name: value`, with a comma before the next one"
        ));
    };
}

/// The tests of the cases, except those in Python.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    (filesystem $suite:ident) => {
        $crate::__filesystem_header_tests! { $suite }
        $crate::__filesystem_file_tests! { $suite }
        $crate::__filesystem_large_tests! { $suite }
        $crate::__conformance_tests! { @in_c $suite }
    };
    (device $suite:ident) => {
        $crate::__device_conformance_tests! { $suite }
        $crate::__conformance_tests! { @in_c $suite }
    };
    (ops $suite:ident) => {};
    (@in_c $suite:ident) => {
        #[test]
        fn conformance_in_c() {
            $suite().test_in_tensorflow(::core::module_path!(), true);
        }
    };
}

/// The next option, which becomes a call on the suite.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_option {
    (@call $kind:ident $root:tt [$($suite:tt)*] $keys:tt ($($call:tt)*) $($rest:tt)*) => {
        $crate::__conformance_options! { $kind $root [$($suite)* $($call)*] $keys $($rest)* }
    };
    (filesystem $r:tt $s:tt $k:tt root: each_case($f:expr) $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! {
            @call filesystem (given) $s $k (.root($crate::filesystem::RootSource::each_case($f))) $($($rest)*)?
        }
    };
    (filesystem $r:tt $s:tt $k:tt root: once($f:expr) $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! {
            @call filesystem (given) $s $k (.root($crate::filesystem::RootSource::once($f))) $($($rest)*)?
        }
    };
    (filesystem $r:tt $s:tt $k:tt root: $root:expr $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! { filesystem $r $s $k root: each_case(|| $root) $(, $($rest)*)? }
    };
    (filesystem $r:tt $s:tt $k:tt malformed: $uri:expr $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! { @call filesystem $r $s $k (.malformed($uri)) $($($rest)*)? }
    };
    (filesystem $r:tt $s:tt $k:tt other_host: $uri:expr $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! { @call filesystem $r $s $k (.other_host($uri)) $($($rest)*)? }
    };
    (device $r:tt $s:tt $k:tt limit: $limit:expr $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! { @call device $r $s $k (.limit($limit)) $($($rest)*)? }
    };
    (ops $r:tt $s:tt $k:tt limit: $limit:expr $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! { @call ops $r $s $k (.limit($limit)) $($($rest)*)? }
    };
    ($kind:ident $r:tt $s:tt $k:tt without: [$($case:ident => $reason:expr),* $(,)?] $(, $($rest:tt)*)?) => {
        $crate::__conformance_option! {
            @call $kind $r $s $k ($(.without(
                {
                    let _ = &$crate::$kind::cases::$case;
                    ::core::stringify!($case)
                },
                $reason,
            ))*) $($($rest)*)?
        }
    };
    (filesystem $r:tt $s:tt $k:tt $key:ident : $value:ident $(, $($rest:tt)*)?) => {
        $crate::__conformance_value! { filesystem $key $value [$r $s $k] $($($rest)*)? }
    };
    ($kind:ident $r:tt $s:tt $k:tt $key:ident $($rest:tt)*) => {
        $crate::__conformance_value! { $kind $key }
    };
}

/// Defines `__conformance_value`: the values of options that have named values, the error for any
/// other value, and the list of options.
macro_rules! conformance_values {
    (($d:tt) $($kind:ident $all:literal {
        $($key:ident $([$type:ident $($value:ident $variant:ident)*])? $text:literal;)*
    })*) => {
        #[doc(hidden)]
        #[macro_export]
        macro_rules! __conformance_value {
            $($(
                $($(($kind $key $value [$d r:tt $d s:tt $d k:tt] $d($d rest:tt)*) => {
                    $d crate::__conformance_option! {
                        @call $kind $d r $d s $d k (.$key($d crate::$kind::$type::$variant)) $d($d rest)*
                    }
                };)*)?
                ($kind $key $d($d other:tt)*) => { ::core::compile_error!($text); };
            )*
            ($kind $d key:ident $d($d other:tt)*) => {
                ::core::compile_error!(::core::concat!("unknown option `", ::core::stringify!($d key), $all));
            };)*
        }
    };
}
conformance_values! {
    ($)
    filesystem "`; there are `root`, `files`, `malformed`, `other_host`, `visible`, `directories`, `append` and `without`, each as `name: value`" {
        root "`root` is a URI, `each_case(|| ...)` or `once(|| ...)`, and a comma separates it from the next option: `root: \"my://host/\", directories: implied`";
        files [Files written Written provided Provided] "`files` is `written` or `provided`, with a comma before the next option";
        malformed "`malformed` is a URI in quotes, with a comma before the next option: `malformed: \"my://host/x\"`";
        other_host "`other_host` is a URI in quotes, with a comma before the next option: `other_host: \"my://other/\"`";
        visible [Visibility create Create in_place InPlace flush Flush close Close] "`visible` is `create`, `in_place`, `flush` or `close`, with a comma before the next option";
        directories [Directories real Real implied Implied] "`directories` is `real` or `implied`, with a comma before the next option";
        append [Append supported Supported unsupported Unsupported] "`append` is `supported` or `unsupported`, with a comma before the next option";
        without "`without` is a list of cases, each with its reason: `without: [checkpoint => \"why\"]`";
    }
    device "`; there are `limit` and `without`, each as `name: value`" {
        limit "`limit` is a duration, with a comma before the next option: `limit: std::time::Duration::from_secs(300)`";
        without "`without` is a list of cases, each with its reason: `without: [timer_measures => \"why\"]`";
    }
    ops "`; there are `limit` and `without`, each as `name: value`" {
        limit "`limit` is a duration, with a comma before the next option: `limit: std::time::Duration::from_secs(300)`";
        without "`without` is a list of cases, each with its reason: `without: [python_forks => \"why\"]`";
    }
}
