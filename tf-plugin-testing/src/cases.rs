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

            /// Ends a test as the case did on `on`, which is of this kind.
            #[track_caller]
            pub(crate) fn judge(&self, verdict: crate::verdict::Verdict, on: &str, whose: &str) {
                use crate::verdict::Verdict;
                match verdict {
                    Verdict::Passed => {}
                    Verdict::Skipped(reason) => println!("skipped: {reason}"),
                    Verdict::Failed(deviations) => {
                        let Self { name, asks, why, .. } = self;
                        let report = crate::deviation::report(name, asks, why, on, whose, &deviations);
                        panic!("{report}")
                    }
                }
            }
        }

        impl std::fmt::Debug for Case {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "Case({})", self.name)
            }
        }
    };
}

/// Makes the type `Group` of what cases are about, each with its title.
macro_rules! groups {
    ($($group:ident $title:literal,)*) => {
        /// What a case is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Group {
            $(#[doc = $title] $group,)*
        }

        impl Group {
            /// What its cases are about.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$group => $title,)* }
            }
        }
    };
}

/// Makes of a list of cases the module `cases`, the table `CASES`, and `$tests`, a macro with a test a case.
macro_rules! case_list {
    (($d:tt) $module:ident $tests:ident $($group:ident {
        $($name:ident = $run:expr, $asks:expr, $why:expr;)*
    })*) => {
        /// Each case as a value.
        #[allow(non_upper_case_globals, reason = "the names of tests")]
        pub(crate) mod cases {
            use super::*;
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

        /// The cases of this list, in their order.
        pub(super) static CASES: &[&Case] = &[$($(&cases::$name,)*)*];

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
