//! The type of in-process cases and the form of their list, for filesystems and devices.

/// Defines the type `Case`, next to a type `Group` and the modules `run` and `list`.
macro_rules! case_type {
    ($(#[$doc:meta])*) => {
        $(#[$doc])*
        pub struct Case {
            pub(super) name: &'static str,
            pub(super) checks: &'static str,
            pub(super) why: &'static str,
            pub(super) group: Group,
            pub(super) run: fn(&mut super::run::Run<'_>) -> super::run::Step,
        }

        impl Case {
            /// Returns the name, which is that of the test.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                self.name
            }

            /// Returns what the case checks, in Markdown.
            #[must_use]
            pub fn checks(&self) -> &'static str {
                self.checks
            }

            /// Returns why this matters to TensorFlow.
            #[must_use]
            pub fn why(&self) -> &'static str {
                self.why
            }

            /// Returns the group of the case.
            #[must_use]
            pub fn group(&self) -> Group {
                self.group
            }

            /// Fails the test with a report if the case failed on `on`, a URI or platform of the kind `whose`.
            #[track_caller]
            pub(crate) fn judge(&self, outcome: crate::outcome::Outcome, on: &str, whose: &str) {
                use crate::outcome::Outcome;
                match outcome {
                    Outcome::Passed => {}
                    Outcome::Skipped(reason) => println!("skipped: {reason}"),
                    Outcome::Failed(deviations) => {
                        let Self { name, checks, why, .. } = self;
                        let report = crate::deviation::report(name, checks, why, on, whose, &deviations);
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

/// Defines the type `Group`, whose variants have a title each.
macro_rules! groups {
    ($($group:ident $title:literal,)*) => {
        /// The subject of a case.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Group {
            $(#[doc = $title] $group,)*
        }

        impl Group {
            /// Returns the title of the group.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$group => $title,)* }
            }
        }
    };
}

/// Turns a list of cases into the module `cases`, the table `CASES`, and `$tests`, a macro with a test for each case.
macro_rules! case_list {
    (($d:tt) $module:ident $tests:ident $($group:ident {
        $($name:ident = $run:expr, $checks:expr, $why:expr;)*
    })*) => {
        /// Each case as a value.
        #[allow(non_upper_case_globals, reason = "the names of tests")]
        pub(crate) mod cases {
            use super::*;
            $($(
                #[doc = $checks]
                #[doc = ""]
                #[doc = concat!("Why: ", $why, ".")]
                pub static $name: Case = Case {
                    name: stringify!($name),
                    checks: $checks,
                    why: $why,
                    group: Group::$group,
                    run: $run,
                };
            )*)*
        }

        /// The cases of this list, in their order.
        pub(super) static CASES: &[&Case] = &[$($(&cases::$name,)*)*];

        #[doc = concat!("Defines a test for each case, for [`conformance!`](crate::", stringify!($module), "::conformance!).")]
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
