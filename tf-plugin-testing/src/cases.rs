//! What the in-process cases for filesystems and for devices share: their type and the form of their list.

/// Makes the type `Case`, beside a type `Group` and the modules `run` and `list`.
macro_rules! case_type {
    ($(#[$doc:meta])*) => {
        $(#[$doc])*
        pub struct Case {
            pub(super) name: &'static str,
            pub(super) asks: &'static str,
            pub(super) why: &'static str,
            pub(super) group: Group,
            pub(super) run: fn(&mut super::run::Run<'_>) -> super::run::Outcome,
        }

        impl Case {
            /// All cases, in their order.
            #[must_use]
            pub fn all() -> &'static [&'static Case] {
                super::list::CASES
            }

            /// The name, as of the test.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                self.name
            }

            /// What it checks, in Markdown.
            #[must_use]
            pub fn asks(&self) -> &'static str {
                self.asks
            }

            /// Why TensorFlow cares.
            #[must_use]
            pub fn why(&self) -> &'static str {
                self.why
            }

            /// What it is about.
            #[must_use]
            pub fn group(&self) -> Group {
                self.group
            }
        }

        impl std::fmt::Debug for Case {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "Case({})", self.name)
            }
        }
    };
}

/// Makes of a list of cases the module `cases`, the table `CASES`, the titles of groups, and `$tests`, a macro with
/// a test a case.
macro_rules! case_list {
    (($d:tt) $module:ident $tests:ident $($group:ident $title:literal {
        $($name:ident = $run:expr, $asks:literal, $why:literal;)*
    })*) => {
        /// Each case as a value: to run it alone, and for the option `without` of
        #[doc = concat!("[`conformance!`](crate::", stringify!($module), "::conformance!).")]
        #[allow(non_upper_case_globals, reason = "the names of tests")]
        pub mod cases {
            use super::*;
            // One name for all that `without` can leave out.
            #[doc(inline)]
            pub use crate::$module::{c_cases::*, python_cases::*};
            $($(
                #[doc = $asks]
                #[doc = ""]
                #[doc = concat!("Why: ", $why, ".")]
                pub static $name: Case = Case {
                    name: stringify!($name),
                    asks: $asks,
                    why: $why,
                    group: Group::$group,
                    run: $run,
                };
            )*)*
        }

        /// All cases, in their order.
        pub(super) static CASES: &[&Case] = &[$($(&cases::$name,)*)*];

        impl Group {
            /// What its cases are about.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$group => $title,)* }
            }
        }

        #[doc = concat!("A test a case, for [`conformance!`](crate::", stringify!($module), "::conformance!).")]
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $tests {
            ($d suite:ident) => {
                $($(
                    #[test]
                    fn $name() {
                        $d suite().test(&$d crate::$module::cases::$name);
                    }
                )*)*
            };
        }
    };
}
