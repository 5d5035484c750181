//! Cases that run in a real TensorFlow, from Python and in its C library: the part that filesystems, ops and devices share.
//!
//! `conformance!` defines a test for each of the two; ops have no C cases. `cargo tf-plugin test` runs them once for
//! each given TensorFlow: it passes the interpreter, or the directory of the C library, and the
//! plugin's library in the environment. Without that, the tests print that they are skipped.

/// Turns two lists of cases into the modules `python_cases` and `c_cases`, the tables `PYTHON` and `C`, `PROGRAM` of
/// the parts in `python/`, and `RUN_IN_C` of the functions in `in_c`; or one list into those for Python. In brackets are in-process cases that check the same.
macro_rules! tensorflow_cases {
    (from_python [$($part:literal),*] { $($python:tt)* }) => {
        tensorflow_cases! {
            /// Each case that runs in a real TensorFlow, from Python, as a value.
            python_cases PYTHON; $($python)*
        }

        /// The cases from Python as a program: its parts, of which none imports another, and the call that runs them.
        pub(super) const PROGRAM: &str =
            concat!($(include_str!(concat!("python/", $part, ".py")), "\n\n",)* "main(json.loads(REQUEST))\n");

        #[cfg(test)]
        mod tests {
            #[test]
            fn each_case_is_in_the_program() {
                let defined = super::PROGRAM.split("@case\ndef ").skip(1).filter_map(|rest| rest.split('(').next());
                let listed = super::PYTHON.iter().map(|case| case.name);
                assert_eq!(defined.collect::<Vec<_>>(), listed.collect::<Vec<_>>());
            }
        }
    };
    (
        from_python [$($part:literal),*] { $($python:tt)* }
        in_c $place:ident { $($group:literal {
            $($name:ident $([$($follows:ident),*])? $checks:literal, $why:literal;)*
        })* }
    ) => {
        tensorflow_cases! { from_python [$($part),*] { $($python)* } }
        tensorflow_cases! {
            /// Each case that runs in TensorFlow's C library, without Python, as a value.
            c_cases C; $($group { $($name $([$($follows),*])? $checks, $why;)* })*
        }

        /// The functions of the C cases.
        pub(super) const RUN_IN_C: &[crate::tensorflow::worker::Named<$place>] =
            &[$($((stringify!($name), in_c::$name),)*)*];
    };
    ($(#[$doc:meta])* $module:ident $all:ident; $($group:literal {
        $($name:ident $([$($follows:ident),*])? $checks:literal, $why:literal;)*
    })*) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals, reason = "the names that tests know")]
        pub mod $module {
            use crate::tensorflow::TensorFlowCase;

            $($(
                #[doc = $checks]
                #[doc = ""]
                #[doc = concat!("Why: ", $why, ".")]
                pub static $name: TensorFlowCase = TensorFlowCase {
                    name: stringify!($name),
                    group: $group,
                    checks: $checks,
                    why: $why,
                    follows: &[$($(super::super::super::conformance::cases::$follows.name(),)*)?],
                };
            )*)*
        }

        /// All of them, in their order.
        pub(super) const $all: &[&crate::tensorflow::TensorFlowCase] =
            &[$($(&$module::$name,)*)*];
    };
}

mod case;
mod env;
mod in_tensorflow;
mod process;
mod program;
pub(crate) mod worker;

pub use case::{CaseResult, TensorFlowCase};
pub(crate) use env::TestRequest;
pub(crate) use in_tensorflow::{InTensorFlow, Subject};
