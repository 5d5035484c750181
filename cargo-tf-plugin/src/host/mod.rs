//! The C tables of a plugin, called as TensorFlow calls them: for `cargo tf-plugin bench`, and for other programs that
//! measure plugins.
//!
//! The status functions are those of this process: TensorFlow's, once [`Library::open_for_all`] has
//! opened its library, or functions of the same names that the program exports. Nothing is checked
//! except what memory safety needs; the in-process hosts of the SDKs check what a plugin does.
//!
//! # Errors
//! Each call of a slot fails with a [`CallError`]: the plugin left the slot empty, set the status, or
//! returned an invalid value, such as a null pointer.

#[expect(unsafe_code, reason = "calls C tables")]
mod abi;

pub use abi::device::{Copying, Device, Event, Memory, Stream};
pub use abi::filesystem::{Filesystem, Reader, Writer};
pub use abi::{CallError, CallResult, Library, Status, code_name};
#[doc(hidden)]
pub use abi::{sized, text};
