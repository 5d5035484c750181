//! The operations that TensorFlow never calls: transactions and configuration.

use super::abi::transactions::RawToken;
use super::handle::TestFilesystem;
use core::ffi::c_int;
use std::sync::Arc;
use tf_fs_plugin::FilesystemOption;
use tf_fs_sys::TF_TransactionToken;
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
fn null_slot(op: &str) -> Error {
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
        let answer = self.mounted.raw_start_transaction();
        let (result, token) = answer.ok_or_else(|| null_slot(OP))?;
        self.judge_token(OP, b"", result, token)
    }

    /// Ends a transaction; `transaction` may be of another filesystem or ended already, to see what
    /// the plugin makes of it.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn end_transaction(&self, transaction: &TestTransaction) -> Result<()> {
        const OP: &str = "end_transaction";
        let answer = self.mounted.raw_end_transaction(transaction.token);
        let (result, returned) = answer.ok_or_else(|| null_slot(OP))?;
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
        let answer = self.mounted.raw_add_to_transaction(&path, transaction.token);
        let (result, returned) = answer.ok_or_else(|| null_slot(OP))?;
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
        slot: Option<tf_fs_sys::TF_TransactionForPathOp>,
        uri: &[u8],
    ) -> Result<TestTransaction> {
        let path = self.translate_name(uri)?;
        let answer = self.mounted.raw_transaction_for_path(op, slot, &path);
        let (result, token) = answer.ok_or_else(|| null_slot(op))?;
        self.judge_token(op, &path, result, token)
    }

    /// A transaction as text for people.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the slot is null, `INTERNAL` if the answer is.
    pub fn decode_transaction_token(&self, transaction: &TestTransaction) -> Result<String> {
        const OP: &str = "decode_transaction_token";
        let answer = self.mounted.raw_decode_transaction_token(transaction.token);
        match answer.ok_or_else(|| null_slot(OP))? {
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
        result: Result<()>,
        raw: RawToken,
    ) -> Result<TestTransaction> {
        self.judge_zero(op, subject, &result, raw.returned);
        match (&result, raw.token.is_null()) {
            (Ok(()), true) => {
                self.violation(op, subject, "answered OK without a token");
                return Err(Error::internal("no token"));
            }
            (Err(_), false) => {
                self.violation(op, subject, "failed but wrote a token, which nobody ends");
            }
            _ => {}
        }
        if !raw.is_own {
            let what = "the owner of the token is not the filesystem that gave it";
            self.violation(op, subject, what);
        }
        result.map(|()| TestTransaction { filesystem: self.clone(), token: raw.token })
    }

    /// All options of the filesystem. TensorFlow never asks.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        self.mounted
            .raw_get_filesystem_configuration()
            .unwrap_or_else(|| Err(null_slot("get_filesystem_configuration")))
    }

    /// Sets several options. An empty description goes over as null, as TensorFlow's do.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        self.mounted.raw_set_filesystem_configuration(options).unwrap_or_else(|| {
            Err(Error::new(Code::Unimplemented, "Filesystem does not support SetConfiguration()"))
        })
    }

    /// One option by its key. TensorFlow never asks.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        const OP: &str = "get_filesystem_configuration_option";
        self.mounted
            .raw_get_filesystem_configuration_option(key)
            .unwrap_or_else(|| Err(null_slot(OP)))?
            .ok_or_else(|| Error::internal("the plugin answered OK without an option"))
    }

    /// Sets one option. TensorFlow never does.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        const OP: &str = "set_filesystem_configuration_option";
        self.mounted
            .raw_set_filesystem_configuration_option(option)
            .unwrap_or_else(|| Err(null_slot(OP)))
    }

    /// The keys of all options. TensorFlow never asks. The header leaves open how several keys fit
    /// into one string; this SDK puts them one after the other, each with its NUL.
    ///
    /// # Errors
    /// That of the plugin; `UNIMPLEMENTED` if the slot is null.
    pub fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        self.mounted
            .raw_get_filesystem_configuration_keys()
            .unwrap_or_else(|| Err(null_slot("get_filesystem_configuration_keys")))
    }
}
