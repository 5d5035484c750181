//! `tensorflow/c/tf_attrtype.h`: the types of an attribute of an op.

/// Type of an attribute's value: one of the constants of this module.
pub type TF_AttrType = core::ffi::c_uint;

/// A byte string.
pub const TF_ATTR_STRING: TF_AttrType = 0;
/// A signed 64-bit integer.
pub const TF_ATTR_INT: TF_AttrType = 1;
/// A 32-bit float.
pub const TF_ATTR_FLOAT: TF_AttrType = 2;
/// A boolean.
pub const TF_ATTR_BOOL: TF_AttrType = 3;
/// A [`TF_DataType`](crate::datatype::TF_DataType).
pub const TF_ATTR_TYPE: TF_AttrType = 4;
/// The shape of a tensor, possibly unknown in part.
pub const TF_ATTR_SHAPE: TF_AttrType = 5;
/// A tensor.
pub const TF_ATTR_TENSOR: TF_AttrType = 6;
/// The name of an attribute that is to be put in its place.
pub const TF_ATTR_PLACEHOLDER: TF_AttrType = 7;
/// The name and the attributes of a function.
pub const TF_ATTR_FUNC: TF_AttrType = 8;
