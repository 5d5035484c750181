//! The texts that follow from the type of an argument or a result alone.

use std::ffi::{c_char, c_int, c_void};

use tf_fs_sys::*;

use super::format::text;
use crate::call::Call;

/// An argument, or a result. Its own methods are preferred to those of [`NoFormat`], which all types have.
pub(super) struct AutoFormat<T>(pub(super) T);

/// Adds no text, for all other types.
pub(super) trait NoFormat {
    /// Adds a status, on which later texts depend.
    unsafe fn status(&self, _: &mut Call) {}
    /// Adds an argument.
    unsafe fn argument(&self, _: &mut Call) {}
    /// Adds what an argument points to now.
    unsafe fn created(&self, _: &mut Call) {}
    /// Adds the returned value.
    unsafe fn value(&self, _: &mut Call) {}
}

impl<T> NoFormat for AutoFormat<T> {}

macro_rules! auto_format {
    ($($type:ty, $method:ident: |$it:ident, $call:ident| $what:expr;)*) => {$(
        impl AutoFormat<$type> {
            /// # Safety
            /// Null, or valid as the table's header says.
            pub(super) unsafe fn $method(&self, $call: &mut Call) {
                let $it = self.0;
                // SAFETY: the value is null, or what the header of its table promises for the call.
                #[allow(unused_unsafe, reason = "numbers are safe")]
                unsafe { $what };
            }
        }
    )*};
}

auto_format! {
    *mut TF_Status, status: |status, call| call.status(status);
    *const c_char, argument: |path, call| call.path(path);
    *const TF_RandomAccessFile, argument: |file, call| call.file(file);
    *const TF_WritableFile, argument: |file, call| call.file(file);
    *const TF_ReadOnlyMemoryRegion, argument: |region, call| call.file(region);
    *mut TF_TransactionToken, argument: |token, call| call.handle("token", token);
    *const TF_TransactionToken, argument: |token, call| call.handle("token", token);
    *const SP_Device, argument: |device, call| call.device(device.as_ref());
    SP_Stream, argument: |stream, call| call.handle("stream", stream);
    SP_Event, argument: |event, call| call.handle("event", event);
    SP_Timer, argument: |timer, call| call.handle("timer", timer);
    *mut SP_Stream, created: |created, call| call.created("stream", created.as_ref());
    *mut SP_Event, created: |created, call| call.created("event", created.as_ref());
    *mut SP_Timer, created: |created, call| call.created("timer", created.as_ref());
    bool, value: |truth, call| call.truth(truth);
    TF_Bool, value: |truth, call| call.truth(truth != 0);
    c_int, value: |number, call| call.value(format_args!("{number}"));
    u64, value: |number, call| call.value(format_args!("{number}"));
    i64, value: |number, call| call.value(format_args!("{number}"));
    f64, value: |number, call| call.value(format_args!("{number}"));
    *mut c_char, value: |words, call| call.value(format_args!("{}", text(words)));
    *const c_void, value: |address, call| call.address(address);
    *mut c_void, value: |address, call| call.address(address);
}

/// Describes a call with these arguments that has returned `$value`: first by their types, then as the list says. A
/// second name in the list is the returned value; with `only`, the list describes everything except the status.
macro_rules! describe {
    ([$($arg:ident)*] $call_text:ident $value:ident) => {{
        $(AutoFormat($arg).argument($call_text);)*
        $(AutoFormat($arg).created($call_text);)*
        AutoFormat($value).value($call_text);
    }};
    ([$($arg:ident)*] $call_text:ident $value:ident => |$call:ident| $more:expr) => {{
        $crate::abi::auto_format::describe!([$($arg)*] $call_text $value);
        let $call = $call_text;
        $more
    }};
    ([$($arg:ident)*] $call_text:ident $value:ident => |$call:ident, $result:pat_param| $more:expr) => {{
        $(AutoFormat($arg).argument($call_text);)*
        let ($call, $result) = ($call_text, $value);
        $more
    }};
    ([$($arg:ident)*] $call_text:ident $value:ident => only |$call:ident, $result:pat_param| $more:expr) => {{
        let ($call, $result) = ($call_text, $value);
        $more
    }};
}
pub(super) use describe;
