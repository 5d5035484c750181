//! How types of the headers are laid out: ends of fields, which versioned structs measure themselves by, and opaque types.

/// The offset of the first byte after a field: what the headers' macro `TF_OFFSET_OF_END` gives.
/// Unlike `size_of` of the struct it leaves out the padding behind the last field, where a newer
/// release may put the next one. (`memoffset::span_of!` computes the same, but not in a constant.)
macro_rules! offset_of_end {
    ($record:ident, $field:ident) => {
        core::mem::offset_of!($record, $field)
            + crate::layout::size_of_field(|record: &$record| &record.$field)
    };
}
pub(crate) use offset_of_end;

/// The size of the field that the function picks.
pub(crate) const fn size_of_field<Record, Field>(_pick: fn(&Record) -> &Field) -> usize {
    size_of::<Field>()
}

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
