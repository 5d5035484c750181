//! The slots of transactions, which TensorFlow never calls.

use super::mounted::c_path;
use crate::filesystem::test_filesystem::TestFilesystem;
use core::ffi::c_int;
use core::ptr;
use std::sync::Arc;
use tf_fs_sys::TF_TransactionToken;
use tf_plugin_core::{Code, Error, Result};

/// A transaction of a filesystem. Only [`TestFilesystem::end_transaction`] ends it; dropping it
/// does not.
#[derive(Clone, Debug)]
pub struct TestTransaction {
    filesystem: TestFilesystem,
    token: *mut TF_TransactionToken,
}

/// Compares tokens and filesystems.
impl PartialEq for TestTransaction {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
            && Arc::ptr_eq(&self.filesystem.mounted, &other.filesystem.mounted)
    }
}

impl Eq for TestTransaction {}

impl TestTransaction {
    /// Returns the pointer that the C functions get. It is valid until the transaction is ended.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_TransactionToken {
        self.token
    }

    /// Returns the filesystem of the transaction.
    #[must_use]
    pub fn filesystem(&self) -> &TestFilesystem {
        &self.filesystem
    }
}

/// Returns this host's error for a null slot that TensorFlow never calls.
#[cold]
pub(super) fn null_slot(op: &str) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("the plugin has no `{op}`, which TensorFlow never calls"),
    )
}

/// Calls a slot that TensorFlow never calls.
macro_rules! call {
    ($filesystem:expr, $subject:expr, $slot:ident($($argument:expr),*)) => {{
        const OP: &str = stringify!($slot);
        let filesystem: &TestFilesystem = $filesystem;
        let slot = filesystem.mounted.tables.filesystem.$slot.ok_or_else(|| null_slot(OP))?;
        // SAFETY: an initialised filesystem of this table, arguments as the header wants them, which live until the
        // call is over, and a status. Tokens are those that some filesystem gave.
        filesystem.mounted.call(OP, $subject, |status| unsafe {
            slot(filesystem.as_ptr(), $($argument,)* status)
        })
    }};
}
pub(super) use call;

impl TestFilesystem {
    /// Starts a transaction. TensorFlow up to 2.21 calls none of the transaction operations.
    pub fn start_transaction(&self) -> Result<TestTransaction> {
        let mut token = ptr::null_mut();
        let answer = call!(self, b"", start_transaction(&mut token));
        self.judge_token("start_transaction", b"", answer, token)
    }

    /// Ends a transaction. `transaction` may be of another filesystem or ended already, to test
    /// what the plugin does then.
    pub fn end_transaction(&self, transaction: &TestTransaction) -> Result<()> {
        let (result, returned) = call!(self, b"", end_transaction(transaction.token));
        self.judge_zero("end_transaction", b"", &result, returned);
        result
    }

    /// Adds a path to a transaction.
    pub fn add_to_transaction(
        &self,
        uri: impl AsRef<[u8]>,
        transaction: &TestTransaction,
    ) -> Result<()> {
        let path = self.translate_name(uri)?;
        let c = c_path(&path);
        let (result, returned) =
            call!(self, &path, add_to_transaction(c.as_ptr(), transaction.token));
        self.judge_zero("add_to_transaction", &path, &result, returned);
        result
    }

    /// Returns the transaction that a path belongs to.
    pub fn get_transaction_for_path(&self, uri: impl AsRef<[u8]>) -> Result<TestTransaction> {
        let path = self.translate_name(uri)?;
        let (c, mut token) = (c_path(&path), ptr::null_mut());
        let answer = call!(self, &path, get_transaction_for_path(c.as_ptr(), &mut token));
        self.judge_token("get_transaction_for_path", &path, answer, token)
    }

    /// Returns the transaction that a path belongs to, or starts one.
    pub fn get_or_start_transaction_for_path(
        &self,
        uri: impl AsRef<[u8]>,
    ) -> Result<TestTransaction> {
        let path = self.translate_name(uri)?;
        let (c, mut token) = (c_path(&path), ptr::null_mut());
        let answer = call!(self, &path, get_or_start_transaction_for_path(c.as_ptr(), &mut token));
        self.judge_token("get_or_start_transaction_for_path", &path, answer, token)
    }

    /// Returns a transaction as text for people.
    ///
    /// # Errors
    /// Returns `UNIMPLEMENTED` if the slot is null, and `INTERNAL` if the text is.
    pub fn decode_transaction_token(&self, transaction: &TestTransaction) -> Result<String> {
        const OP: &str = "decode_transaction_token";
        let slot = self.mounted.tables.filesystem.decode_transaction_token;
        let slot = slot.ok_or_else(|| null_slot(OP))?;
        // SAFETY: an initialised filesystem of this table and a token that some filesystem gave; the
        // answer is null or a C string from the plugin's allocator, which is the host's to free.
        let text = unsafe {
            self.mounted.blocks.take_string(OP, b"", slot(self.as_ptr(), transaction.token))
        };
        match text {
            Some(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            None => {
                self.violation(OP, b"", "returned null");
                Err(Error::internal("decode_transaction_token returned null"))
            }
        }
    }

    fn judge_zero(&self, op: &'static str, subject: &[u8], result: &Result<()>, returned: c_int) {
        let expected = if result.is_ok() { 0 } else { -1 };
        if returned != expected {
            let what = format!("returned {returned} where {expected} belongs to the status");
            self.violation(op, subject, what);
        }
    }

    fn judge_token(
        &self,
        op: &'static str,
        subject: &[u8],
        (result, returned): (Result<()>, c_int),
        token: *mut TF_TransactionToken,
    ) -> Result<TestTransaction> {
        self.judge_zero(op, subject, &result, returned);
        match (&result, token.is_null()) {
            (Ok(()), true) => {
                self.violation(op, subject, "answered OK without a token");
                return Err(Error::internal("no token"));
            }
            (Err(_), false) => {
                self.violation(op, subject, "failed but wrote a token, which nobody ends");
            }
            // SAFETY: on success the plugin has set a token, which lives until it is ended.
            (Ok(()), false) if unsafe { (*token).owner } != self.as_ptr() => {
                let what = "the owner of the token is not the filesystem that gave it";
                self.violation(op, subject, what);
            }
            _ => {}
        }
        result.map(|()| TestTransaction { filesystem: self.clone(), token })
    }
}
