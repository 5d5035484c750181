//! Values that are collected from all modules of a plugin when its library is loaded.

use crate::sync::Mutex;

/// A list that constructors of the library add to, before it is read.
///
/// The crate `inventory` does the same, but its macro contains an `#[allow]`, which is an error in a crate that forbids
/// the lint.
pub(crate) type Inventory<T> = Mutex<Vec<&'static T>>;

/// Collects a value of a type with a method `collect`, when the library is loaded.
#[doc(hidden)]
#[macro_export]
macro_rules! __se_plugin_collect {
    ($type:path, $value:expr) => {
        const _: () = {
            static __SE_PLUGIN_VALUE: $type = $value;
            extern "C" fn __se_plugin_constructor() {
                __SE_PLUGIN_VALUE.collect();
            }
            #[used]
            #[unsafe(link_section = ".init_array")]
            static __SE_PLUGIN_CONSTRUCTOR: extern "C" fn() = __se_plugin_constructor;
        };
    };
}
