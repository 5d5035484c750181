//! Values that are collected from all modules of a plugin when its library is loaded.

use std::sync::{Mutex, PoisonError};

/// A list that constructors of the library add to, before it is read.
///
/// The crate `inventory` does the same, but its macro contains an `#[allow]`, which is an error in a crate that forbids
/// the lint.
#[derive(Debug)]
pub(crate) struct Inventory<T: 'static>(Mutex<Vec<&'static T>>);

impl<T> Inventory<T> {
    /// Creates an empty list.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Adds a value.
    pub(crate) fn push(&self, value: &'static T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }

    /// Returns the values, in any order.
    pub(crate) fn all(&self) -> Vec<&'static T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Collects a value of a type with a method `collect`, when the library is loaded.
#[doc(hidden)]
#[macro_export]
macro_rules! __tf_op_plugin_collect {
    ($type:path, $value:expr) => {
        const _: () = {
            static __TF_OP_PLUGIN_VALUE: $type = $value;
            extern "C" fn __tf_op_plugin_constructor() {
                __TF_OP_PLUGIN_VALUE.collect();
            }
            #[used]
            #[unsafe(link_section = ".init_array")]
            static __TF_OP_PLUGIN_CONSTRUCTOR: extern "C" fn() = __tf_op_plugin_constructor;
        };
    };
}
