//! Shared code of `tf-fs-plugin` and `se-plugin`. Both re-export it: use it from there.
//!
//! [`Error`], its [`Code`] and [`ResultExt`] become TensorFlow's status; [`logging`] writes log
//! lines in TensorFlow's style; [`sync`] and [`ProcessOrigin`] make a plugin work in a forked child. The
//! hidden modules catch panics at the C boundary and write the status.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[expect(unsafe_code, reason = "the C boundary")]
mod abi;
mod elf_note;
mod error;
mod io_error;
pub mod logging;
mod process_origin;
mod result_ext;
pub mod sync;

pub use error::{Code, Error, Result};
pub use process_origin::ProcessOrigin;
pub use result_ext::ResultExt;

/// Used by the SDKs and by the macros' output only; it changes without notice.
#[doc(hidden)]
pub mod __private {
    /// The notes of a library.
    pub mod elf_note {
        pub use crate::elf_note::{ElfNote, LAYOUT, WRITER_DEFAULT, size};
    }

    /// Each call from TensorFlow, and each call of an author's code.
    pub mod boundary {
        pub use crate::abi::bytes::{has_byte, has_nul, host_size, lent};
        pub use crate::abi::failure_log::{log_error, logged_by};
        pub use crate::abi::fork;
        pub use crate::abi::guard::{
            SlotResult, catch, guard, guard_logged, guard_slot_result, log_failed, raise,
        };
        pub use crate::abi::panic::{Panic, discard, watch_panics};
        pub use crate::abi::status::{SlotStatus, write_error};
    }
}
