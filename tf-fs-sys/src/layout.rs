//! How types and functions of the headers are declared: tables of functions, versioned structs,
//! opaque types, and functions of the host.

use core::ffi::c_char;
use core::ops::Range;

/// A text that ends with NUL.
pub(crate) type Text = *const c_char;
/// Where a function reports its outcome.
pub(crate) type Status = *mut crate::status::TF_Status;

/// A table of functions, or a struct that begins with `struct_size`.
pub trait Record {
    /// The name in the header.
    const NAME: &'static str;
    /// The names of the functions, in their order.
    const FUNCTIONS: &'static [&'static str];
    /// Where the fields lie, in bytes and in their order; without `struct_size`.
    const FIELDS: &'static [Range<usize>];
}

/// A struct that begins with `struct_size`.
///
/// # Safety
/// The struct is `repr(C)`. `struct_size`, a `usize`, is its first field, [`FIELDS`](Record::FIELDS) are all others, and
/// zeros are a valid value. [`STRUCT_SIZE`](Self::STRUCT_SIZE) keeps its default.
pub unsafe trait Versioned: Record + Copy + Default {
    /// The offset of the first byte after the last field: what the headers' macro `TF_OFFSET_OF_END` gives. Unlike
    /// `size_of` of the struct it leaves out the padding behind that field, where a newer release may put the next one.
    const STRUCT_SIZE: usize = Self::FIELDS[Self::FIELDS.len() - 1].end;
}

/// Returns where the field that the function picks lies, if it begins at `start`.
pub(crate) const fn range<Struct, Field>(
    start: usize,
    _pick: fn(&Struct) -> &Field,
) -> Range<usize> {
    start..start + size_of::<Field>()
}

/// Declares tables of functions, `fn name(arguments) -> result;`, and other structs that grow from release to release,
/// with fields as in `pub name: type,`.
///
/// `pub struct X, X_STRUCT_SIZE, ext` is a versioned struct: it begins with `struct_size` and the pointer `ext`,
/// and `X_STRUCT_SIZE` is its size.
macro_rules! records {
    (@range $record:ident $field:ident) => {
        crate::layout::range(core::mem::offset_of!($record, $field), |record: &$record| &record.$field)
    };
    (@name $function:ident $($arguments:tt)*) => { stringify!($function) };
    ($(
        $(#[$meta:meta])*
        pub struct $record:ident $(, $size:ident $(, $ext:ident)?)? {
            $(
                $(#[$doc:meta])*
                $_keyword:ident $field:ident $(($($arguments:tt)*) $(-> $result:ty)?;)? $(: $type:ty,)?
            )*
        }
    )*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $record {
            $(
                #[doc = concat!("[`", stringify!($size), "`], or the size that the host knows.")]
                pub struct_size: usize,
                $(
                    /// Reserved, except where the documentation of the struct says that it is free for the plugin.
                    pub $ext: *mut core::ffi::c_void,
                )?
            )?
            $(
                $(#[$doc])*
                $(pub $field: Option<unsafe extern "C" fn($($arguments)*) $(-> $result)?>,)?
                $(pub $field: $type,)?
            )*
        }

        impl crate::layout::Record for $record {
            const NAME: &'static str = stringify!($record);
            const FUNCTIONS: &'static [&'static str] =
                &[$($(crate::layout::records!(@name $field $($arguments)*),)?)*];
            const FIELDS: &'static [core::ops::Range<usize>] = &[
                $($(crate::layout::records!(@range $record $ext),)?)?
                $(crate::layout::records!(@range $record $field),)*
            ];
        }

        $(
            #[doc = concat!("Size in bytes of [`", stringify!($record), "`] up to the end of its last field.")]
            pub const $size: usize = <$record as crate::layout::Versioned>::STRUCT_SIZE;

            // SAFETY: `struct_size` comes first, `FIELDS` names what the struct above has behind it, and zeros are integers,
            // null pointers and functions that are not there.
            unsafe impl crate::layout::Versioned for $record {}
        )?
    )*};
}
pub(crate) use records;

/// Declares types of which only the host, or only the plugin, knows the content: others have pointers to them.
macro_rules! opaque {
    ($($(#[$doc:meta])* pub struct $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
            _not_send_sync_unpin: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
        }
    )*};
}
pub(crate) use opaque;

/// Declares a table of host functions; see the module `host`. A function that takes further arguments as `printf` does
/// ends its list with `; ...`.
macro_rules! host_functions {
    (
        $(#[$table_doc:meta])*
        pub struct $table:ident {
            $(
                $(#[$doc:meta])*
                $need:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)? $(; $variadic:tt)?) $(-> $ret:ty)?;
            )*
        }
    ) => {
        $(#[$table_doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $table {
            $(
                $(#[$doc])*
                pub $name: crate::layout::host_functions!(@type $need unsafe extern "C" fn($($arg: $ty),* $(, $variadic)?) $(-> $ret)?),
            )*
        }

        #[cfg(feature = "host")]
        impl crate::host::Table for $table {
            fn bind() -> Result<Self, crate::host::MissingSymbol> {
                Ok(Self {
                    $($name: {
                        const NAME: &core::ffi::CStr = match core::ffi::CStr::from_bytes_with_nul(
                            concat!(stringify!($name), "\0").as_bytes(),
                        ) {
                            Ok(name) => name,
                            Err(_) => unreachable!(),
                        };
                        // SAFETY: the host exports a C function of this name and of the type that
                        // its header declares, which is the field's type; pointers of both kinds
                        // have one size on every system that has `dlsym`.
                        let function = crate::host::symbol(NAME).map(|address| unsafe {
                            core::mem::transmute::<
                                *mut core::ffi::c_void,
                                unsafe extern "C" fn($($arg: $ty),* $(, $variadic)?) $(-> $ret)?,
                            >(address)
                        });
                        crate::layout::host_functions!(@value $need function, stringify!($name))
                    },)*
                })
            }

            fn cell() -> &'static crate::host::Cell<Self> {
                static CELL: crate::host::Cell<$table> = crate::host::Cell::empty();
                &CELL
            }
        }
    };
    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@value required $function:ident, $name:expr) => {
        $function.ok_or(crate::host::MissingSymbol { name: $name })?
    };
    (@value optional $function:ident, $name:expr) => { $function };
}
pub(crate) use host_functions;
