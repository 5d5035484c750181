//! The slots of transactions, which TensorFlow never calls.

use super::mounted::c_path;
use crate::filesystem::handle::TestFilesystem;
use core::ffi::c_int;
use core::ptr;
use std::sync::Arc;
use tf_fs_sys::{TF_TransactionForPathOp, TF_TransactionToken};
use tf_plugin_core::{Code, Error, Result};

/// A transaction of a filesystem. Ended with [`TestFilesystem::end_transaction`] only, not when it is
/// dropped.
#[derive(Clone, Debug)]
pub struct TestTransaction {
    filesystem: TestFilesystem,
    token: *mut TF_TransactionToken,
}

/// Whether both are the same token of the same filesystem.
impl PartialEq for TestTransaction {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
            && Arc::ptr_eq(&self.filesystem.mounted, &other.filesystem.mounted)
    }
}

impl Eq for TestTransaction {}

impl TestTransaction {
    /// What the C functions get. Valid until the transaction was ended.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_TransactionToken {
        self.token
    }

    /// The filesystem that it belongs to.
    #[must_use]
    pub fn filesystem(&self) -> &TestFilesystem {
        &self.filesystem
    }
}

/// This host's answer to a null slot that TensorFlow never calls.
#[cold]
pub(super) fn null_slot(op: &str) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("the plugin has no `{op}`, which TensorFlow never calls"),
    )
}

impl TestFilesystem {
    /// Starts a transaction. TensorFlow up to 2.21 calls none of the transaction operations.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn start_transaction(&self) -> Result<TestTransaction> {
        const OP: &str = "start_transaction";
        let slot = self.mounted.tables.filesystem.start_transaction;
        let slot = slot.ok_or_else(|| null_slot(OP))?;
        let mut token = ptr::null_mut();
        // SAFETY: an initialised filesystem of this table, a place for the token and a status.
        let call = |status| unsafe { slot(self.as_ptr(), &mut token, status) };
        let answer = self.mounted.call(OP, b"", call);
        self.judge_token(OP, b"", answer, token)
    }

    /// Ends a transaction; `transaction` may be of another filesystem or ended already, to see what
    /// the plugin makes of it.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn end_transaction(&self, transaction: &TestTransaction) -> Result<()> {
        const OP: &str = "end_transaction";
        let slot = self.mounted.tables.filesystem.end_transaction;
        let slot = slot.ok_or_else(|| null_slot(OP))?;
        // SAFETY: an initialised filesystem of this table, a token that some filesystem gave and a
        // status.
        let call = |status| unsafe { slot(self.as_ptr(), transaction.token, status) };
        let (result, returned) = self.mounted.call(OP, b"", call);
        self.judge_zero(OP, b"", &result, returned);
        result
    }

    /// Makes a path part of a transaction.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn add_to_transaction(
        &self,
        uri: impl AsRef<[u8]>,
        transaction: &TestTransaction,
    ) -> Result<()> {
        const OP: &str = "add_to_transaction";
        let path = self.translate_name(uri)?;
        let slot = self.mounted.tables.filesystem.add_to_transaction;
        let slot = slot.ok_or_else(|| null_slot(OP))?;
        let c = c_path(&path);
        // SAFETY: an initialised filesystem of this table, a C string, a token that some filesystem
        // gave and a status.
        let call = |status| unsafe { slot(self.as_ptr(), c.as_ptr(), transaction.token, status) };
        let (result, returned) = self.mounted.call(OP, &path, call);
        self.judge_zero(OP, &path, &result, returned);
        result
    }

    /// The transaction that a path is part of.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_transaction_for_path(&self, uri: impl AsRef<[u8]>) -> Result<TestTransaction> {
        let slot = self.mounted.tables.filesystem.get_transaction_for_path;
        self.transaction_for_path("get_transaction_for_path", slot, uri.as_ref())
    }

    /// The transaction that a path is part of, or a new one.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_or_start_transaction_for_path(
        &self,
        uri: impl AsRef<[u8]>,
    ) -> Result<TestTransaction> {
        let slot = self.mounted.tables.filesystem.get_or_start_transaction_for_path;
        self.transaction_for_path("get_or_start_transaction_for_path", slot, uri.as_ref())
    }

    fn transaction_for_path(
        &self,
        op: &'static str,
        slot: Option<TF_TransactionForPathOp>,
        uri: &[u8],
    ) -> Result<TestTransaction> {
        let path = self.translate_name(uri)?;
        let slot = slot.ok_or_else(|| null_slot(op))?;
        let (c, mut token) = (c_path(&path), ptr::null_mut());
        // SAFETY: an initialised filesystem of this table, a C string, a place for the token and a
        // status.
        let call = |status| unsafe { slot(self.as_ptr(), c.as_ptr(), &mut token, status) };
        let answer = self.mounted.call(op, &path, call);
        self.judge_token(op, &path, answer, token)
    }

    /// A transaction as text for people.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the slot is null, `INTERNAL` if the answer is.
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
