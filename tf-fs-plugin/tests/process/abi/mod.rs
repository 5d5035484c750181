//! The unsafe part of the benchmarks.

#[path = "../../host/abi/hand_made.rs"]
#[allow(dead_code, reason = "the tests of the host use the rest")]
pub(crate) mod hand_made;

/// Reads memory that was freed: a mistake, for tools that must find it.
pub(crate) fn use_after_free() {
    let freed = Box::into_raw(Box::new(7_u8));
    // SAFETY: there is none for the read; it is the mistake.
    unsafe {
        drop(Box::from_raw(freed));
        std::hint::black_box(freed.read_volatile());
    }
}
