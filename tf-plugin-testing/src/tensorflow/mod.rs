//! Cases that run in a real TensorFlow, from Python and in its C library: what filesystems and devices share.
//!
//! `conformance!` makes a test of either, which `cargo tf-plugin test` runs once for each TensorFlow that it is told of:
//! it names the interpreter, or the directory of the C library, and the plugin's library in the environment. Alone those
//! tests say so and do nothing.

/// What is set in the same way of cases for filesystems and for devices, and which cases those are: of a type
/// `InTensorFlow` beside a module `list`.
macro_rules! in_tensorflow_options {
    () => {
        impl InTensorFlow {
            /// Sets an environment variable of TensorFlow's process: settings of the plugin.
            #[must_use]
            pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.environment.push((name.into(), value.into()));
                self
            }

            /// Leaves out the case of this name, and those that check the same as the in-process case of this name.
            #[must_use]
            pub fn without(mut self, case: impl Into<String>, reason: impl Into<String>) -> Self {
                self.without.push((case.into(), reason.into()));
                self
            }

            /// How long a case may take; 120 seconds if nothing is said.
            #[must_use]
            pub fn limit(self, limit: Duration) -> Self {
                Self { limit, ..self }
            }

            /// How long TensorFlow may take to load the plugin and come to the first case, and to end after the last one; 120
            /// seconds if nothing is said, or as long as a case may take if that is more.
            #[must_use]
            pub fn start_limit(self, limit: Duration) -> Self {
                Self { start_limit: Some(limit), ..self }
            }

            /// All cases from Python, in their order.
            #[must_use]
            pub fn all_from_python() -> &'static [&'static TensorFlowCase] {
                list::PYTHON
            }

            /// All cases in C, in their order.
            #[must_use]
            pub fn all_in_c() -> &'static [&'static TensorFlowCase] {
                list::C
            }

            /// Those of the two that this value runs.
            #[must_use]
            pub fn cases(&self) -> &'static [&'static TensorFlowCase] {
                match self.way {
                    Way::Python(_) => list::PYTHON,
                    Way::C { .. } => list::C,
                }
            }
        }
    };
}

/// Makes of two lists of cases the modules `python_cases` and `c_cases`, the tables `PYTHON` and `C`, and `RUN_IN_C`: what
/// the cases in C are, by the same names in the module `in_c`. In brackets are the in-process cases that check the same.
macro_rules! tensorflow_cases {
    (
        from_python $program:literal { $($python:tt)* }
        in_c $place:ident { $($group:literal {
            $($name:ident $([$($follows:ident),*])? $asks:literal, $why:literal;)*
        })* }
    ) => {
        tensorflow_cases! {
            /// Each case that runs in a real TensorFlow, from Python, as a value.
            python_cases PYTHON; $($python)*
        }
        tensorflow_cases! {
            /// Each case that runs in TensorFlow's C library, without Python, as a value.
            c_cases C; $($group { $($name $([$($follows),*])? $asks, $why;)* })*
        }

        /// What the cases in C are.
        pub(super) static RUN_IN_C: &[crate::tensorflow::work::Named<$place>] =
            &[$($((stringify!($name), in_c::$name),)*)*];

        #[cfg(test)]
        mod tests {
            #[test]
            fn each_case_is_in_the_program() {
                let defined = include_str!($program).split("@case\ndef ").skip(1);
                let defined = defined.map(|rest| rest.split('(').next().unwrap_or_default());
                let listed = super::PYTHON.iter().map(|case| case.name);
                assert_eq!(defined.collect::<Vec<_>>(), listed.collect::<Vec<_>>());
            }
        }
    };
    ($(#[$doc:meta])* $module:ident $all:ident; $($group:literal {
        $($name:ident $([$($follows:ident),*])? $asks:literal, $why:literal;)*
    })*) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals, reason = "the names that tests know")]
        pub mod $module {
            use crate::tensorflow::TensorFlowCase;

            $($(
                #[doc = $asks]
                #[doc = ""]
                #[doc = concat!("Why: ", $why, ".")]
                pub static $name: TensorFlowCase = TensorFlowCase {
                    name: stringify!($name),
                    group: $group,
                    asks: $asks,
                    why: $why,
                    follows: &[$($(super::super::super::conformance::cases::$follows.name(),)*)?],
                };
            )*)*
        }

        /// All of them, in their order.
        pub(super) static $all: &[&crate::tensorflow::TensorFlowCase] =
            &[$($(&$module::$name,)*)*];
    };
}

mod process;
pub(crate) mod work;

pub(crate) use process::{Asked, Job, Program, Scratch, start_limit};

use crate::verdict::Verdict;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A question that a filesystem or a device is asked through a real TensorFlow. Those about filesystems are in
/// `python_cases` and `c_cases` of each host.
#[derive(Debug)]
#[non_exhaustive]
pub struct TensorFlowCase {
    /// The name, by which `without` of `conformance!` leaves it out.
    pub name: &'static str,
    /// What it is about.
    pub group: &'static str,
    /// What it checks, in Markdown.
    pub asks: &'static str,
    /// Why users of TensorFlow care.
    pub why: &'static str,
    /// The in-process cases that check the same: without one of them there is nothing to check here.
    pub follows: &'static [&'static str],
}

/// What a case came to in a TensorFlow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The case.
    pub case: &'static TensorFlowCase,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

/// Which program has TensorFlow in it.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// This interpreter.
    Python(PathBuf),
    /// This executable, with the libraries of a directory, and the test that works.
    C { directory: PathBuf, worker: String },
}

impl Way {
    /// The program, with the text of the cases in Python and what is loaded when it imports TensorFlow.
    pub(crate) fn program<'p>(
        &'p self,
        text: &'p [&'static str],
        library: Option<&'p Path>,
    ) -> Program<'p> {
        match self {
            Self::Python(interpreter) => Program::Python { interpreter, text, library },
            Self::C { directory, worker } => Program::Test { name: worker, directory },
        }
    }

    /// In this executable, by the test of this name in a module, as `module_path!` gives it.
    #[must_use]
    pub(crate) fn in_c(directory: &Path, module: &str, test: &str) -> Self {
        // The name of the crate is none of a test's.
        let module = module.split_once("::").map_or("", |(_, module)| module);
        let worker = if module.is_empty() { test.to_owned() } else { format!("{module}::{test}") };
        Self::C { directory: directory.to_owned(), worker }
    }
}

/// Each of these cases, with the reason if it is left out: by its own name, or by that of a case that checks the same.
#[must_use]
pub(crate) fn with_reasons(
    cases: &[&'static TensorFlowCase],
    without: &[(String, String)],
) -> Vec<(&'static TensorFlowCase, Option<String>)> {
    let reason = |case: &TensorFlowCase| {
        let of = |name: &String| name == case.name || case.follows.contains(&name.as_str());
        without.iter().find(|(name, _)| of(name)).map(|(_, reason)| reason.clone())
    };
    cases.iter().map(|case| (*case, reason(case))).collect()
}

/// What runs the cases in Python.
pub(crate) const RUNNER: &str = include_str!("runner.py");
