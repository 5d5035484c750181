//! A host for tests of a device: it loads a platform and calls it as TensorFlow does, without TensorFlow.
//!
//! The host allocates the structs at their exact sizes with guard bytes behind them, and refuses names with
//! TensorFlow's error texts. It counts what is created and destroyed, and makes calls that no Python program leads to.

#[expect(unsafe_code, reason = "the C boundary from the host's side")]
mod abi;
mod conformance;
mod faulty;
mod suite;
mod tensorflow;

#[doc(inline)]
pub use crate::__device_conformance as conformance;
pub use crate::deviation::Deviation;
pub use crate::faults::{Fault, Faults};
pub use crate::outcome::Outcome;
pub use crate::tensorflow::{CaseResult, TensorFlowCase};
pub use crate::violations::Violation;
pub use abi::{
    GraphHost, GraphSizes, Host, ProfilerHost, ProfilerSizes, Sizes, TestDevice, TestEvent,
    TestStream, TestTimer,
};
pub use conformance::{Case, Group, failed_work, run_case};
pub use faulty::{Faulty, sweep};
#[doc(hidden)]
pub use suite::{OptionDuration, Suite};
pub use tensorflow::{InTensorFlow, c_cases, python_cases};

/// Each case as a value: to run it alone, and for the option `without` of
/// [`conformance!`](crate::device::conformance!).
pub mod cases {
    pub use super::conformance::cases::*;
    pub use super::tensorflow::c_cases::*;
    pub use super::tensorflow::python_cases::*;
}
