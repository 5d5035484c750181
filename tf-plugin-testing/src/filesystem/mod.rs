//! An in-process host: test a filesystem without TensorFlow.
//!
//! [`Host`] does what TensorFlow does with a plugin: it registers it with TensorFlow's checks,
//! copies the tables of C functions, and calls them as TensorFlow does. Every path goes through
//! `translate_name` first, an operation that the plugin does not have gets TensorFlow's default,
//! and memory is freed with the plugin's hook. So a test sees what TensorFlow's users will see,
//! codes and messages included.
//!
//! ```
//! # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/filesystem/toy.rs")); }
//! # use toy::Toy as Greetings;
//! use tf_fs_plugin::Code;
//! use tf_plugin_testing::filesystem::Host;
//!
//! // `Greetings` is a type whose `impl Filesystem` carries `#[filesystem_plugin(scheme = "greet")]`.
//! let host = Host::load::<Greetings>()?;
//! assert_eq!(host.read_file("greet://world/hello")?, b"hello\n");
//! let error = host.stat("greet://world/goodbye").unwrap_err();
//! assert_eq!(error.code(), Code::NotFound);
//! # Ok::<(), tf_fs_plugin::Error>(())
//! ```
//!
//! [`conformance!`](crate::filesystem::conformance!) defines a test for each [case](cases). It uses
//! [`Conformance`], which runs single cases.
//!
//! # Rules of the C boundary
//! With each call the host checks for what would harm TensorFlow: a status that was never set, more
//! bytes than were requested, a write past the end of a buffer, bytes that are claimed but were
//! never written, null or duplicate names, counters that were not written, memory that was passed
//! twice … Each is a [`Violation`]. [`Host::check`] panics with a list of them, and so does
//! dropping the host and everything that is open on it. This SDK follows the rules for its authors,
//! so a violation is a bug of the SDK or of a hand-made plugin.
//!
//! To find memory leaks inside the plugin, run the test under valgrind or with AddressSanitizer:
//! the host runs every `cleanup`, that of the filesystem included, which TensorFlow never does.
//!
//! # Where it differs from TensorFlow
//! - Where TensorFlow would crash, abort or never return, there is a violation and an error.
//! - [`TestRandomAccessFile::read`] may call the plugin several times; see there.
//! - Each process has one table of status functions. A process that has created a `Host` cannot use
//!   those of a real TensorFlow.

#[expect(unsafe_code, reason = "the host's side of the C boundary")]
mod abi;
mod conformance;
mod defaults;
mod export;
mod faulty;
mod host;
pub mod model;
mod open_ops;
mod semantics;
mod session;
mod suite;
mod tensorflow;
mod test_filesystem;

#[doc(inline)]
pub use crate::__filesystem_conformance as conformance;
pub use crate::deviation::Deviation;
pub use crate::faults::{Fault, Faults};
pub use crate::outcome::Outcome;
pub use crate::tensorflow::{CaseResult, TensorFlowCase};
pub use crate::violations::Violation;
pub use abi::file::{TestRandomAccessFile, TestReadOnlyMemoryRegion, TestWritableFile};
pub use abi::mounted::Tables;
pub use abi::transactions::TestTransaction;
pub use conformance::samples::{Sample, samples};
pub use conformance::{Case, Conformance, Group};
pub use faulty::{Faulty, sweep};
pub use host::Host;
pub use semantics::{Append, Directories, Files, Visibility};
pub use suite::TestRoot;
#[doc(hidden)]
pub use suite::{RootSource, Suite};
pub use tensorflow::{InTensorFlow, c_cases, python_cases};
pub use test_filesystem::TestFilesystem;
pub use tf_fs_plugin::__private::Plugin;

/// Each case as a value: to run it alone, and for the option `without` of
/// [`conformance!`](crate::filesystem::conformance!).
pub mod cases {
    pub use super::conformance::cases::*;
    pub use super::tensorflow::c_cases::*;
    pub use super::tensorflow::python_cases::*;
}
