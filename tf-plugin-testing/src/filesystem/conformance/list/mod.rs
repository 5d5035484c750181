//! The list of all cases, from which the tests of authors,
//! [`Conformance`](super::super::Conformance) and the documentation are made.

use super::case::Case;
use std::sync::LazyLock;

/// Says in words what an operation returns under a condition.
macro_rules! returns {
    (OK) => {
        "returns OK"
    };
    (OK $effect:literal) => {
        concat!("returns OK, and ", $effect)
    };
    ($code:ident) => {
        concat!("returns ", stringify!($code), ", and nothing changes")
    };
}

/// Says why a rename or a copy matters: one reason for both, or one for each in parentheses.
macro_rules! why {
    (rename($rename:literal $copy:literal)) => {
        $rename
    };
    (copy($rename:literal $copy:literal)) => {
        $copy
    };
    ($op:ident $both:literal) => {
        $both
    };
}

/// The function that calls an operation.
macro_rules! call {
    ($op:ident) => {
        |run, path| run.fs.$op(path).map(drop)
    };
    ($op:ident $call:path) => {
        $call
    };
}

/// The function that checks an operation's success, if there is one.
macro_rules! after {
    () => {
        |_, _, _, _| {}
    };
    ($after:path) => {
        $after
    };
}

/// A list of cases in which one row can define several, each by its whole name, so that a search finds it:
///
/// - `conditions`: an operation, its call if that is not the method alone, `then` what checks a success, and why it
///   matters; then what it returns where the path is missing, its parent is missing, a file, an empty directory, a
///   directory with a file in it. Below a file, and for a malformed path, it is `FAILED_PRECONDITION` for all.
/// - `open_files`: an operation on a file that is open for writing or was dropped, and what it returns.
/// - `transfers`: a case for both `rename_file` and `copy_file`.
/// - `patterns`: a pattern, and what it matches.
/// - `names`: a file of this name.
/// - `reads`: so many bytes at an offset of a file, the bytes that are read, and the status.
macro_rules! filesystem_cases {
    ($d:tt $tests:ident $($group:ident {
        $(conditions {
            $($op:ident $(= $call:path)?, $(then $after:path,)? $op_why:literal:
                $of_missing:ident $missing:ident $($missing_effect:literal)?,
                $of_missing_parent:ident $missing_parent:ident $($missing_parent_effect:literal)?,
                $of_file:ident $file:ident $($file_effect:literal)?,
                $of_empty_dir:ident $empty_dir:ident $($empty_dir_effect:literal)?,
                $of_full_dir:ident $full_dir:ident $($full_dir_effect:literal)?,
                $of_below_file:ident, $of_far_below_file:ident, $of_malformed:ident;)*
        })?
        $(open_files $open_why:literal {
            $($of_open_file:ident $of_dropped_file:ident
                $look:ident $look_code:ident $verb:literal $tail:literal = $look_call:expr;)*
        })?
        $(transfers $transfer_why:tt {
            $($rename_file:ident $copy_file:ident = $transfer_run:expr, $transfer_checks:literal;)*
        })*
        $(patterns $pattern_why:literal {
            $($pattern_name:ident $pattern:literal [$($found:literal)*];)*
        })?
        $(names $name_why:literal {
            $($name_name:ident $name_value:literal $name_what:literal;)*
        })*
        $(reads $read_why:literal {
            $($read:ident $offset:literal $count:literal $bytes:literal $end:ident $read_checks:literal;)*
        })?
        $(of $at:ident { $($of:ident $checks:literal, $why:literal;)* })*
        $(cases { $($plain:tt)* })?
    })*) => {
        #[allow(non_upper_case_globals, unused_imports, reason = "the names of operations; not all lists have some")]
        mod operations {
            use super::*;
            $($($(
            pub(super) const $op: Operation = Operation {
                name: stringify!($op),
                codes: [$missing, $missing_parent, $file, $empty_dir, $full_dir],
                call: call!($op $($call)?),
                after: after!($($after)?),
            };
            )*)?)*
        }

        case_list! {
            $d filesystem $tests $($group {
                $($(
                    $of_missing = |run| run.operation(&operations::$op, Is::Missing),
                        concat!("`", stringify!($op), "` of a path that is missing ", returns!($missing $($missing_effect)?)), $op_why;
                    $of_missing_parent = |run| run.operation(&operations::$op, Is::ParentMissing),
                        concat!("`", stringify!($op), "` of a path whose parent is missing ", returns!($missing_parent $($missing_parent_effect)?)), $op_why;
                    $of_file = |run| run.operation(&operations::$op, Is::File),
                        concat!("`", stringify!($op), "` of a file ", returns!($file $($file_effect)?)), $op_why;
                    $of_empty_dir = |run| run.operation(&operations::$op, Is::EmptyDir),
                        concat!("`", stringify!($op), "` of an empty directory ", returns!($empty_dir $($empty_dir_effect)?)), $op_why;
                    $of_full_dir = |run| run.operation(&operations::$op, Is::FullDir),
                        concat!("`", stringify!($op), "` of a directory with a file in it ", returns!($full_dir $($full_dir_effect)?)), $op_why;
                    $of_below_file = |run| run.operation(&operations::$op, Is::BelowFile),
                        concat!("`", stringify!($op), "` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes"), $op_why;
                    $of_far_below_file = |run| run.operation(&operations::$op, Is::FarBelowFile),
                        concat!("`", stringify!($op), "` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes"), $op_why;
                    $of_malformed = |run| run.operation(&operations::$op, Is::Malformed),
                        concat!("`", stringify!($op), "` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes"), $op_why;
                )*)?
                $($(
                    $of_open_file = |run| look(run, stringify!($look), $look_call, $look_code, true),
                        concat!("`", stringify!($look), "` ", $verb, " a new file that is open for writing", $tail), $open_why;
                    $of_dropped_file = |run| look(run, stringify!($look), $look_call, $look_code, false),
                        concat!("`", stringify!($look), "` ", $verb, " a new file that was dropped without a close", $tail), $open_why;
                )*)?
                $(
                    $($rename_file = |run| {
                        const CHECK: fn(&mut Run<'_>, &Transfer) -> Step = $transfer_run;
                        CHECK(run, &RENAME_FILE)
                    }, concat!("`rename_file` ", $transfer_checks), why!(rename $transfer_why);)*
                    $($copy_file = |run| {
                        const CHECK: fn(&mut Run<'_>, &Transfer) -> Step = $transfer_run;
                        CHECK(run, &COPY_FILE)
                    }, concat!("`copy_file` ", $transfer_checks), why!(copy $transfer_why);)*
                )*
                $($($pattern_name = |run| queries::glob(run, $pattern, &[$($found),*]),
                    concat!("`get_matching_paths` of `", $pattern, "` is ", all!($($found)*)), $pattern_why;)*)?
                $($($name_name = |run| names::name(run, $name_value),
                    concat!("a file with a name ", $name_what, " is written, found, listed, renamed and deleted"), $name_why;)*)*
                $($($read = |run| files::read(run, $offset, $count, $bytes, $end), $read_checks, $read_why;)*)?
                $($($of = $at::$of, $checks, $why;)*)*
                $($($plain)*)?
            })*
        }
    };
}

/// Says in words what a pattern finds.
macro_rules! all {
    () => {
        "empty, and no error"
    };
    ($first:literal $($other:literal)*) => {
        concat!("`", $first, "`" $(, " and `", $other, "`")*)
    };
}

mod files;
mod header;
mod large;

/// Each case as a value.
pub(in crate::filesystem) mod cases {
    pub use super::files::cases::*;
    pub use super::header::cases::*;
    pub use super::large::cases::*;
}

impl Case {
    /// Returns all cases, in their order.
    #[must_use]
    pub fn all() -> &'static [&'static Self] {
        static ALL: LazyLock<Vec<&Case>> =
            LazyLock::new(|| [header::CASES, files::CASES, large::CASES].concat());
        &ALL
    }
}
