//! What kernels of every device have in common: elements, attributes, definitions of ops and their registration.

mod attribute;
pub(crate) mod definition;
mod element;
pub(crate) mod names;
mod partial_shape;
pub(crate) mod register;
pub(crate) mod registry;

pub use crate::abi::construction::OpKernelConstruction;
pub use crate::abi::host_tensor::{HostTensor, HostTensorMut};
pub use crate::abi::shapes::{ShapeHandle, ShapeInferenceContext};
pub use attribute::Attribute;
pub use definition::{OpDefinition, OpDefinitionBuilder, host_has_op};
pub use element::Element;
pub use partial_shape::PartialShape;
