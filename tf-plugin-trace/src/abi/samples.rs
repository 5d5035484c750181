//! Arguments, results and a TensorFlow for the tests of the wrappers, and what those have recorded.

use std::any::type_name;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_void};

use tf_fs_sys::host::Table as _;
use tf_fs_sys::*;

use super::system::set_errno;
use crate::call::Call;
use crate::totals::Slot;

thread_local! {
    /// The arguments that the fakes got.
    pub(super) static CALLED: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
    /// The reports of the wrappers: owner, function, arguments, result.
    pub(super) static REPORTED: RefCell<Vec<[String; 4]>> = const { RefCell::new(Vec::new()) };
    pub(super) static FAILING: Cell<bool> = const { Cell::new(false) };
}

pub(super) const ERRNO: i32 = 77;
/// The value that the fakes write where there is room for a pointer.
const HANDLE: usize = 0xbeef;
pub(super) const RETURNED: usize = 5;

pub(super) fn called(arguments: &[u64]) {
    set_errno(ERRNO);
    CALLED.with_borrow_mut(|called| called.push(arguments.to_owned()));
}

pub(super) fn returns<T: Sample>() -> T {
    T::sample(RETURNED)
}

pub(super) fn reported(slot: &Slot, member: usize, call: &Call) {
    REPORTED.with_borrow_mut(|reported| {
        let words = [&slot.subject, slot.members[member], &call.arguments, &call.result()];
        reported.push(words.map(str::to_owned));
    });
    // Code between the plugin and the host must not change `errno`.
    set_errno(1);
}

/// A value of a function's argument or result.
pub(super) trait Sample: Copy {
    /// Returns a value that differs with the seed.
    fn sample(seed: usize) -> Self;
    fn bits(self) -> u64;
    /// Writes what a plugin's function writes to its argument.
    unsafe fn fill(self) {}
}

pub(super) fn leaked<T>(seed: usize) -> *mut T {
    const SIZE: usize = 1024;
    let room: &'static mut [u64] = Box::leak(vec![0; SIZE / 8].into_boxed_slice());
    if type_name::<T>() == type_name::<c_char>() {
        let text = format!("path{seed}");
        let mut bytes = [0; 8];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        room[0] = u64::from_ne_bytes(bytes);
    }
    room.as_mut_ptr().cast()
}

impl<T> Sample for *mut T {
    fn sample(seed: usize) -> Self {
        leaked(seed)
    }
    fn bits(self) -> u64 {
        self.addr() as u64
    }
    unsafe fn fill(self) {
        let name = type_name::<T>();
        // SAFETY: there is room for more.
        unsafe {
            if name == type_name::<TF_Status>() {
                self.cast::<TF_Code>().write(if FAILING.get() { TF_NOT_FOUND } else { TF_OK });
            } else if name.starts_with('*') {
                self.cast::<usize>().write(HANDLE);
            }
        }
    }
}

impl<T> Sample for *const T {
    fn sample(seed: usize) -> Self {
        leaked(seed)
    }
    fn bits(self) -> u64 {
        self.addr() as u64
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Sample for $type {
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "small numbers")]
            fn sample(seed: usize) -> Self { seed as $type }
            #[allow(clippy::cast_sign_loss, clippy::cast_lossless, reason = "small numbers")]
            fn bits(self) -> u64 { self as u64 }
        }
    )*};
}
numbers!(u8 u32 i32 u64 i64 usize f64);

impl Sample for bool {
    fn sample(_: usize) -> Self {
        true
    }
    fn bits(self) -> u64 {
        self.into()
    }
}

impl Sample for () {
    fn sample(_: usize) -> Self {}
    fn bits(self) -> u64 {
        0
    }
}

impl Sample for SE_StatusCallbackFn {
    fn sample(_: usize) -> Self {
        unsafe extern "C" fn nothing(_: *mut c_void, _: *mut TF_Status) {}
        Some(nothing)
    }
    fn bits(self) -> u64 {
        self.map_or(0, |function| function as usize as u64)
    }
}

pub(super) fn install() {
    unsafe extern "C" fn new() -> *mut TF_Status {
        leaked(0)
    }
    unsafe extern "C" fn delete(_: *mut TF_Status) {}
    unsafe extern "C" fn set(status: *mut TF_Status, code: TF_Code, _: *const c_char) {
        // SAFETY: there is room.
        unsafe { status.cast::<TF_Code>().write(code) }
    }
    unsafe extern "C" fn code(status: *const TF_Status) -> TF_Code {
        // SAFETY: there is room, written or zero.
        unsafe { status.cast::<TF_Code>().read() }
    }
    unsafe extern "C" fn message(_: *const TF_Status) -> *const c_char {
        c"gone".as_ptr()
    }
    static FUNCTIONS: StatusFunctions = StatusFunctions {
        TF_NewStatus: new,
        TF_DeleteStatus: delete,
        TF_SetStatus: set,
        TF_SetPayload: None,
        TF_SetStatusFromIOError: None,
        TF_GetCode: code,
        TF_Message: message,
        TF_ForEachPayload: None,
    };
    // SAFETY: they keep the promises for the statuses of these tests.
    unsafe { StatusFunctions::install(&FUNCTIONS) };
}
