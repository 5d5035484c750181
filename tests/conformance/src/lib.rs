//! Filesystems that are broken on purpose, to test the conformance cases. And the model of
//! the SDK, under the names that tests of several crates know.

#[expect(unsafe_code, reason = "defects at the C boundary")]
mod abi;
mod broken;
mod defect;
mod device_defects;
pub mod effort;
pub mod findings;
mod op_defects;
mod renames;

pub use abi::{doctor_plugin, raw_host};
pub use broken::{Broken, MALFORMED};
pub use defect::{DEFECT_VARIABLE, Defect};
pub use renames::readers_find_whole_files;
pub use tf_plugin_testing::filesystem::model;
pub use tf_plugin_testing::filesystem::model::{Name, Op, sequence};
