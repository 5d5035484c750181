//! Defines the wrappers of a table from a list of its functions.

use std::sync::atomic::{AtomicBool, Ordering};

/// Reports that a table cannot be traced because there are too many.
pub(super) fn too_many(what: &str, subject: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        super::system::write_stderr(&format!(
            "note: there are more {what} than fit: the calls of {subject}, and of what comes behind it, are not traced\n"
        ));
    }
}

/// Defines a module for each table, with `wrap`, which wraps its functions, and `SLOTS`; and
/// `used`, which returns the used slots of all tables.
///
/// Each function is given with its arguments, which must be those of the table's type, and with the text that is added
/// to that of [`describe`](super::auto_format::describe) when a call has returned; `before` keeps what the call may change. `as` gives
/// a unique name to functions whose name several tables have.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $module:ident: $table:ident, $slots:tt {
            $(fn $name:ident $(as $label:literal)? ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?
                $(, before $kept:ident = $before:expr)?
                $(=> $($only:ident)? |$call:ident $(, $result:pat_param)?| $describe:expr)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        pub(super) mod $module {
            #![allow(unused_variables, reason = "not every call uses all of them")]
            #![allow(non_snake_case, reason = "the names are the table's")]
            use super::*;
            use $crate::abi::call_guard::CallGuard;
            use $crate::abi::auto_format::{AutoFormat, NoFormat as _, describe};
            use $crate::abi::slots::Slots;
            use $crate::abi::tables::too_many;

            #[allow(non_camel_case_types, reason = "the names are the table's")]
            #[derive(Clone, Copy)]
            enum Member { $($name,)* }

            pub(in $crate::abi) const MEMBERS: &[&str] = &[$($crate::abi::tables::label!($name $($label)?),)*];
            pub(in $crate::abi) static SLOTS: Slots<$slots> = Slots::new(MEMBERS);
            const OFFSETS: &[usize] = &[$(core::mem::offset_of!($table, $name),)*];

            $(
                // The list must agree with the header.
                const _: fn(&$table) -> Option<unsafe extern "C" fn($($ty),*) $(-> $ret)?> =
                    |table| table.$name;
            )*

            /// Returns the wrappers of one slot. They let exceptions through.
            fn wrappers<const SLOT: usize>() -> [usize; MEMBERS.len()] {
                $(
                    unsafe extern "C-unwind" fn $name<const SLOT: usize>($($arg: $ty),*) $(-> $ret)? {
                        // SAFETY: the arguments are those of the host.
                        unsafe { calls::$name(SLOT, $($arg),*) }
                    }
                )*
                [$(($name::<SLOT> as unsafe extern "C-unwind" fn($($ty),*) $(-> $ret)?) as usize,)*]
            }

            mod calls {
                use super::*;
                $(
                    #[allow(clippy::let_unit_value, reason = "some functions return nothing")]
                    pub(super) unsafe fn $name(slot: usize, $($arg: $ty),*) $(-> $ret)? {
                        let slot = SLOTS.get(slot);
                        let at = Member::$name as usize;
                        // SAFETY: the plugin's own function of this member, whose type was checked above except for
                        // exceptions, which C++ lets through both.
                        let function = unsafe {
                            core::mem::transmute::<usize, unsafe extern "C-unwind" fn($($ty),*) $(-> $ret)?>(
                                slot.functions[at],
                            )
                        };
                        $(
                            // SAFETY: the arguments are those of the host.
                            #[allow(unused_unsafe, reason = "not all of it is")]
                            let $kept = unsafe { $before };
                        )?
                        let guard = CallGuard::new(slot, at);
                        // SAFETY: the arguments are those of the host.
                        let result = unsafe { function($($arg),*) };
                        // SAFETY: the arguments are those of the host, still valid, and `result` is what
                        // the plugin returned.
                        #[allow(unused_unsafe, reason = "not all of it is")]
                        guard.returned(|call| unsafe {
                            $(AutoFormat($arg).status(call);)*
                            describe!([$($arg)*] call result $(=> $($only)? |$call $(, $result)?| $describe)?);
                        });
                        result
                    }
                )*
            }

            #[cfg(test)]
            pub(in $crate::abi) mod fakes {
                use super::*;
                use $crate::abi::samples::{Sample, called, returns};

                $(
                    unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                        called(&[$(Sample::bits($arg)),*]);
                        $(
                            // SAFETY: the tests' own arguments.
                            unsafe { $arg.fill() };
                        )*
                        returns()
                    }
                )*

                /// Returns a table of functions that record their arguments.
                #[allow(clippy::needless_update, reason = "some tables have other members, too")]
                pub(in $crate::abi) fn table() -> $table {
                    // SAFETY: numbers, pointers and functions that may be absent.
                    let zeros = unsafe { core::mem::zeroed::<$table>() };
                    $table { $($name: Some($name),)* ..zeros }
                }

                /// Calls each function of a table with arguments that differ from each other.
                /// Returns its name, the arguments and the result.
                pub(in $crate::abi) fn call_each(table: &$table) -> Vec<(&'static str, Vec<u64>, u64)> {
                    let mut calls = Vec::new();
                    $({
                        #[allow(unused_mut, reason = "some have no arguments")]
                        let mut seed = 0;
                        $(
                            seed += 1;
                            let $arg = <$ty as Sample>::sample(seed);
                        )*
                        let function = table.$name.expect("it is there");
                        // SAFETY: arguments of the function's types, with room behind each pointer.
                        let result = unsafe { function($($arg),*) };
                        calls.push((stringify!($name), vec![$(Sample::bits($arg)),*], Sample::bits(result)));
                    })*
                    calls
                }
            }

            /// Wraps the functions in the first `size` bytes of a table.
            ///
            /// # Safety
            /// Null, or a table of so many bytes that may be written.
            pub(in $crate::abi) unsafe fn wrap(table: *mut $table, size: usize, subject: &str) {
                static ALL: [fn() -> [usize; MEMBERS.len()]; $slots] =
                    $crate::abi::tables::numbered!($slots wrappers);
                if table.is_null() {
                    return;
                }
                let place = |offset: &usize| table.cast::<u8>().wrapping_add(*offset).cast::<usize>();
                let functions: Vec<usize> = OFFSETS
                    .iter()
                    .map(|offset| match offset + size_of::<usize>() <= size {
                        // SAFETY: a member of the table, aligned as it is; functions are as large as addresses.
                        true => unsafe { place(offset).read() },
                        false => 0,
                    })
                    .collect();
                // A table that the plugin keeps and offers again is wrapped already.
                let wrapped = |function: &usize| ALL.iter().any(|all| all().contains(function));
                if functions.iter().all(|function| *function == 0) || functions.iter().any(wrapped) {
                    return;
                }
                let Some(slot) = SLOTS.claim(subject, &functions) else {
                    return too_many(stringify!($table), subject);
                };
                for ((offset, function), wrapper) in OFFSETS.iter().zip(&functions).zip(ALL[slot]()) {
                    if *function != 0 {
                        // SAFETY: within the plugin's table, as a function was read there, and nothing else uses it yet;
                        // `wrapper` has the type of that function.
                        unsafe { place(offset).write(wrapper) };
                    }
                }
            }
        }
    )*
        pub(super) fn used() -> impl Iterator<Item = &'static $crate::totals::Slot> {
            core::iter::empty()$(.chain($module::SLOTS.used()))*
        }
    };
}
pub(super) use tables;

/// Expands to the name of a function in lines and totals.
macro_rules! label {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $label:literal) => {
        $label
    };
}
pub(super) use label;

/// Expands to the functions for all numbers of a slot.
macro_rules! numbered {
    (4 $name:ident) => {
        $crate::abi::tables::numbered!(@ $name 0 1 2 3)
    };
    (16 $name:ident) => {
        $crate::abi::tables::numbered!(@ $name 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $name:ident $($number:literal)*) => {
        [$($name::<$number>),*]
    };
}
pub(super) use numbered;
