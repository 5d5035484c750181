//! The host's side of `tf_status.h`.
//!
//! A status is a number that was never an address, so a pointer from the plugin is never followed.
//! Pointers to deleted statuses, and pointers that were never a status, are reported instead.

use crate::violations::Log;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use tf_fs_sys::host::Table;
use tf_fs_sys::{
    StatusFunctions, TF_Code, TF_OK, TF_PayloadVisitor, TF_Status, TF_UNAUTHENTICATED, TF_UNKNOWN,
};
use tf_plugin_core::{Code, Error, Result};

static FUNCTIONS: StatusFunctions = StatusFunctions {
    TF_NewStatus: new_status,
    TF_DeleteStatus: delete_status,
    TF_SetStatus: set_status,
    TF_SetPayload: Some(set_payload),
    TF_SetStatusFromIOError: Some(set_status_from_io_error),
    TF_GetCode: get_code,
    TF_Message: message,
    TF_ForEachPayload: Some(for_each_payload),
};

/// Makes this process's plugins use the statuses of this module.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    // SAFETY: the functions below keep the promises of the table's fields, for any pointers.
    ONCE.call_once(|| unsafe { StatusFunctions::install(&FUNCTIONS) });
}

/// The first status. No program on a 64-bit system has this address, so following it faults at once.
const FIRST: usize = 0x5ad0_0000_0000_0000_u64 as usize;
const STEP: usize = 16;
/// How many deleted statuses are remembered, to report which operation they belonged to.
const REMEMBERED: usize = 4096;

struct Object {
    log: Option<Arc<Log>>,
    operation: &'static str,
    subject: Vec<u8>,
    code: TF_Code,
    message: CString,
    payloads: Vec<(CString, CString)>,
    /// Whether the plugin has set the code since the host passed the status to it.
    was_set: bool,
}

struct Statuses {
    made: usize,
    live: BTreeMap<usize, Object>,
    deleted: VecDeque<(usize, Object)>,
}

/// The statuses of each thread. Calls on several threads do not wait for each other here, so they
/// can meet inside the plugin. A forked child finds the lock of its thread free. One lock that all
/// threads wait for at a fork would hide from the tests what the plugin's own locks do then.
static STATUSES: [Mutex<Statuses>; 256] =
    [const { Mutex::new(Statuses { made: 0, live: BTreeMap::new(), deleted: VecDeque::new() }) };
        256];

fn lock(number: usize) -> MutexGuard<'static, Statuses> {
    STATUSES[number % STATUSES.len()].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the statuses that contain this one.
fn statuses_with(status: *const TF_Status) -> MutexGuard<'static, Statuses> {
    lock(status.addr().wrapping_sub(FIRST) / STEP)
}

/// The number of a living thread, which no other one has. It is taken without a lock, since a forked child could find
/// that held. Numbers of threads that a child does not have stay taken in it, as their locks may be.
struct Number(usize);

static TAKEN: [AtomicBool; STATUSES.len()] = [const { AtomicBool::new(false) }; STATUSES.len()];

impl Number {
    /// Takes a free number; returns `None` if there are more threads than numbers.
    fn take() -> Option<Self> {
        let free = TAKEN.iter().position(|taken| !taken.swap(true, Ordering::Relaxed));
        free.map(Self)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        TAKEN[self.0].store(false, Ordering::Relaxed);
    }
}

/// Returns the number of this thread: the last one while the thread ends, and if there are too many threads.
fn number() -> usize {
    thread_local! {
        static MINE: Option<Number> = Number::take();
    }
    let mine = MINE.try_with(|mine| mine.as_ref().map(|mine| mine.0)).ok().flatten();
    mine.unwrap_or(STATUSES.len() - 1)
}

/// Adds a status to those of this thread.
fn add(log: Option<Arc<Log>>, operation: &'static str, subject: &[u8]) -> usize {
    let mine = number();
    let mut statuses = lock(mine);
    let id = FIRST + (statuses.made * STATUSES.len() + mine) * STEP;
    statuses.made += 1;
    let object = Object {
        log,
        operation,
        subject: subject.to_vec(),
        code: TF_OK,
        message: CString::default(),
        payloads: Vec::new(),
        was_set: false,
    };
    statuses.live.insert(id, object);
    id
}

impl Statuses {
    fn delete(&mut self, id: usize) {
        let Some(object) = self.live.remove(&id) else { return };
        if self.deleted.len() == REMEMBERED {
            self.deleted.pop_front();
        }
        self.deleted.push_back((id, object));
    }

    /// Finds a living status. Any other pointer is a violation, reported to the host that made the status. A pointer
    /// that was never a status ends the process, since there is no test to report it to.
    fn find(&mut self, function: &str, status: *const TF_Status) -> Option<&mut Object> {
        let id = status.addr();
        // The borrow checker requires the successful look-up on its own.
        if self.live.contains_key(&id) {
            return self.live.get_mut(&id);
        }
        let owner =
            self.deleted.iter().find(|(deleted, _)| *deleted == id).map(|(_, object)| object);
        match owner.and_then(|object| Some((object, object.log.as_ref()?))) {
            Some((object, log)) => log.add(
                object.operation,
                &object.subject,
                format!("the plugin called {function} on the status after the operation had returned and the status was deleted; TensorFlow would corrupt its memory"),
            ),
            None => {
                eprintln!(
                    "the plugin called {function} on {status:p}, which is not a status; TensorFlow would crash, and so does this test"
                );
                std::process::abort();
            }
        }
        None
    }
}

impl Object {
    fn violation(&self, what: impl Into<String>) {
        if let Some(log) = &self.log {
            log.add(self.operation, &self.subject, what);
        }
    }

    fn set(&mut self, code: TF_Code, message: CString) {
        self.was_set = true;
        self.payloads.clear();
        if code > TF_UNAUTHENTICATED {
            self.violation(format!(
                "the status got the code {code}, which does not exist; TensorFlow 2.12 aborts the process"
            ));
            self.code = TF_UNKNOWN;
        } else {
            self.code = code;
        }
        self.message = if code == TF_OK { CString::default() } else { message };
    }

    fn result(&self) -> Result<()> {
        let Some(code) = Code::from_raw(self.code) else {
            return Ok(());
        };
        let text = |string: &CString| string.to_string_lossy().into_owned();
        let error = Error::new(code, text(&self.message));
        Err(self
            .payloads
            .iter()
            .fold(error, |error, (key, value)| error.with_payload(text(key), text(value))))
    }
}

/// A status that the host passes to one call, deleted when the call is over.
pub(crate) struct Status(usize);

impl Status {
    /// Creates a status for one call, which is `TF_OK`.
    pub(crate) fn new(log: &Arc<Log>, operation: &'static str, subject: &[u8]) -> Self {
        Self(add(Some(Arc::clone(log)), operation, subject))
    }

    /// Returns the pointer that the plugin gets.
    pub(crate) fn as_ptr(&self) -> *mut TF_Status {
        ptr::without_provenance_mut(self.0)
    }

    /// Returns what the plugin has set. It is a violation if the plugin never set it: TensorFlow
    /// takes that for success.
    pub(crate) fn result(&self) -> Result<()> {
        let statuses = statuses_with(self.as_ptr());
        let Some(object) = statuses.live.get(&self.0) else {
            // The plugin deleted it, which was reported then.
            return Ok(());
        };
        if !object.was_set {
            object.violation(
                "the status was never set, which TensorFlow takes for success; set it in every case",
            );
        }
        object.result()
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        statuses_with(self.as_ptr()).delete(self.0);
    }
}

/// Returns what a status of a plugin's, or of the host's, says.
pub(crate) fn read(function: &'static str, status: *const TF_Status) -> Result<()> {
    statuses_with(status).find(function, status).map_or(Ok(()), |object| object.result())
}

/// Sets a status that a plugin has passed to a function of the host's.
pub(crate) fn write(status: *mut TF_Status, result: Result<()>) {
    let mut statuses = statuses_with(status);
    if let Some(object) = statuses.find("a function of the host", status) {
        match result {
            Ok(()) => object.set(TF_OK, CString::default()),
            Err(error) => {
                let text = format!("{error:#}").replace('\0', "\\0");
                object.set(error.code().as_raw(), CString::new(text).unwrap_or_default());
            }
        }
    }
}

/// Returns how many statuses are alive in this process: those of running calls, and those that
/// plugins made and did not delete.
pub(crate) fn live() -> usize {
    (0..STATUSES.len()).map(|number| lock(number).live.len()).sum()
}

unsafe extern "C" fn new_status() -> *mut TF_Status {
    ptr::without_provenance_mut(add(None, "TF_NewStatus", b""))
}

unsafe extern "C" fn delete_status(status: *mut TF_Status) {
    if status.is_null() {
        return;
    }
    let mut statuses = statuses_with(status);
    if let Some(object) = statuses.find("TF_DeleteStatus", status)
        && object.log.is_some()
    {
        object.violation("the plugin deleted the host's status; TensorFlow would delete it again");
    }
    statuses.delete(status.addr());
}

/// Copies a string of the plugin; null and text that is not UTF-8 are violations.
///
/// # Safety
/// `string` must be null or a C string.
unsafe fn copied(object: &Object, what: &str, string: *const c_char) -> CString {
    if string.is_null() {
        object
            .violation(format!("the {what} of the status is null; TensorFlow up to 2.20 crashes"));
        return CString::default();
    }
    // SAFETY: `string` is not null, so it is a C string.
    let string = unsafe { CStr::from_ptr(string) };
    if string.to_str().is_err() {
        object.violation(format!(
            "the {what} of the status is not UTF-8; Python raises UnicodeDecodeError in place of the error"
        ));
    }
    string.to_owned()
}

unsafe extern "C" fn set_status(status: *mut TF_Status, code: TF_Code, message: *const c_char) {
    let mut statuses = statuses_with(status);
    if let Some(object) = statuses.find("TF_SetStatus", status) {
        // SAFETY: the plugin passes a C string.
        let message = unsafe { copied(object, "message", message) };
        object.set(code, message);
    }
}

unsafe extern "C" fn set_payload(status: *mut TF_Status, key: *const c_char, value: *const c_char) {
    let mut statuses = statuses_with(status);
    if let Some(object) = statuses.find("TF_SetPayload", status) {
        // SAFETY: the plugin passes two C strings.
        let (key, value) = unsafe {
            (copied(object, "key of a payload", key), copied(object, "value of a payload", value))
        };
        if object.code != TF_OK {
            object.payloads.retain(|(known, _)| *known != key);
            object.payloads.push((key, value));
        }
    }
}

unsafe extern "C" fn set_status_from_io_error(
    status: *mut TF_Status,
    error_code: c_int,
    context: *const c_char,
) {
    let mut statuses = statuses_with(status);
    if let Some(object) = statuses.find("TF_SetStatusFromIOError", status) {
        // SAFETY: the plugin passes a C string.
        let context = unsafe { copied(object, "context", context) };
        let error = std::io::Error::from_raw_os_error(error_code);
        let text = format!("{}: {error}", context.to_string_lossy());
        let code = if error_code == 0 { TF_OK } else { Error::from(error).code().as_raw() };
        object.set(code, CString::new(text).unwrap_or_default());
    }
}

unsafe extern "C" fn get_code(status: *const TF_Status) -> TF_Code {
    statuses_with(status).find("TF_GetCode", status).map_or(TF_UNKNOWN, |object| object.code)
}

/// Returns the message, which is valid until the status changes, as TensorFlow's is.
unsafe extern "C" fn message(status: *const TF_Status) -> *const c_char {
    statuses_with(status)
        .find("TF_Message", status)
        .map_or(c"".as_ptr(), |object| object.message.as_ptr())
}

unsafe extern "C" fn for_each_payload(
    status: *const TF_Status,
    visitor: TF_PayloadVisitor,
    capture: *mut c_void,
) {
    let payloads = statuses_with(status)
        .find("TF_ForEachPayload", status)
        .map(|object| object.payloads.clone())
        .unwrap_or_default();
    if let Some(visitor) = visitor {
        for (key, value) in payloads {
            // SAFETY: two C strings that outlive the call, and the pointer that the caller wants.
            unsafe { visitor(key.as_ptr(), value.as_ptr(), capture) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_shares_its_number_with_no_living_one() {
        let mine = number();
        for _ in 0..2 * STATUSES.len() {
            let other = std::thread::spawn(number).join().unwrap();
            assert_ne!(other, mine);
        }
    }

    /// Calls the functions as a plugin does.
    #[test]
    fn a_status_says_what_was_set_last() {
        unsafe extern "C" fn visit(key: *const c_char, value: *const c_char, list: *mut c_void) {
            // SAFETY: two C strings, and the list that `payloads` below passes.
            unsafe {
                let payload = [key, value].map(|text| CStr::from_ptr(text).to_owned());
                (*list.cast::<Vec<[CString; 2]>>()).push(payload);
            }
        }
        let plugin = &FUNCTIONS;
        let mine = || lock(number()).live.len();
        let before = mine();
        // SAFETY: the functions take any status, and strings that outlive the calls; a message is read before the
        // status changes.
        unsafe {
            let status = (plugin.TF_NewStatus)();
            assert!(mine() == before + 1 && live() > before);
            let content =
                || ((plugin.TF_GetCode)(status), CStr::from_ptr((plugin.TF_Message)(status)));
            let payloads = || {
                let mut list: Vec<[CString; 2]> = Vec::new();
                plugin.TF_ForEachPayload.unwrap()(status, Some(visit), (&raw mut list).cast());
                list
            };
            let add = |key: &CStr, value: &CStr| {
                plugin.TF_SetPayload.unwrap()(status, key.as_ptr(), value.as_ptr());
            };
            let set_from_io_error = plugin.TF_SetStatusFromIOError.unwrap();
            set_from_io_error(status, 2, c"opening".as_ptr());
            let (code, message) = content();
            assert_eq!(Code::from_raw(code), Some(Code::NotFound));
            assert!(message.to_bytes().starts_with(b"opening: No such file"), "{message:?}");
            set_from_io_error(status, 0, c"fine".as_ptr());
            assert_eq!(content(), (TF_OK, c""));
            (plugin.TF_SetStatus)(status, 13, c"bad".as_ptr());
            assert_eq!(content(), (13, c"bad"));
            add(c"k", c"v");
            add(c"k2", c"v2");
            add(c"k", c"again");
            assert_eq!(payloads(), [[c"k2", c"v2"], [c"k", c"again"]]);
            (plugin.TF_SetStatus)(status, TF_OK, c"no message and no payload with OK".as_ptr());
            add(c"k", c"v");
            assert_eq!((content(), payloads()), ((TF_OK, c""), Vec::new()));
            (plugin.TF_DeleteStatus)(status);
            (plugin.TF_DeleteStatus)(ptr::null_mut());
            assert_eq!(mine(), before);
            // The child below ends within the call.
            if std::env::var_os(CHILD).is_some() {
                return (plugin.TF_SetStatus)(status, TF_OK, c"".as_ptr());
            }
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "abi::status::tests::a_status_says_what_was_set_last", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stderr);
        assert!(!child.status.success() && text.contains("which is not a status"), "{text}");
    }

    const CHILD: &str = "TF_PLUGIN_TEST_OF_A_DELETED_STATUS";
}
