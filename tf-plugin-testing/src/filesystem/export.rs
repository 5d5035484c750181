//! Exports filesystems to this process alone.

/// Makes a type the export of filesystems: `__export_filesystems!(Export: "mem" => MemFs, "log" => LogFs);`. A test can
/// have several, while `#[filesystem_plugin]` makes one for a crate, with the C entry points of a shared library.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_filesystems {
    ($export:ty: $($scheme:literal => $type:ty),+) => {
        impl $crate::filesystem::Plugin for $export {
            fn registrations() -> &'static [&'static $crate::__private::Registration] {
                use $crate::__private::{Registration, Scheme};
                static ALL: std::sync::LazyLock<Vec<&'static Registration>> =
                    std::sync::LazyLock::new(|| vec![$({
                        struct This;
                        impl Scheme for This {
                            fn registration() -> &'static Registration {
                                static REGISTRATION: Registration =
                                    Registration::new::<$type, This>($scheme);
                                &REGISTRATION
                            }
                        }
                        This::registration()
                    }),+]);
                &ALL
            }
        }
    };
}
