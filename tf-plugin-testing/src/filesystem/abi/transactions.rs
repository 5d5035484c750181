//! The slots of transactions.

use super::mounted::{Mounted, c_path};
use core::ffi::c_int;
use core::ptr;
use tf_fs_sys::{TF_TransactionForPathOp, TF_TransactionToken};
use tf_plugin_core::Result;

/// What a slot that makes or finds a token has answered.
pub(in crate::filesystem) struct RawToken {
    pub(in crate::filesystem) returned: c_int,
    pub(in crate::filesystem) token: *mut TF_TransactionToken,
    /// Whether the token says that it is of the filesystem that gave it.
    pub(in crate::filesystem) is_own: bool,
}

impl Mounted {
    fn raw_token(
        &self,
        (result, returned): (Result<()>, c_int),
        token: *mut TF_TransactionToken,
    ) -> (Result<()>, RawToken) {
        // SAFETY: on success the plugin has set a token, which lives until it is ended.
        let is_own =
            result.is_err() || token.is_null() || unsafe { (*token).owner } == self.as_ptr();
        let token = RawToken { returned, token, is_own };
        (result, token)
    }

    pub(in crate::filesystem) fn raw_start_transaction(&self) -> Option<(Result<()>, RawToken)> {
        let slot = self.tables.filesystem.start_transaction?;
        let mut token = ptr::null_mut();
        // SAFETY: an initialised filesystem of this table, a place for the token and a status.
        let answer = self.call("start_transaction", b"", |status| unsafe {
            slot(self.as_ptr(), &mut token, status)
        });
        Some(self.raw_token(answer, token))
    }

    pub(in crate::filesystem) fn raw_end_transaction(
        &self,
        token: *mut TF_TransactionToken,
    ) -> Option<(Result<()>, c_int)> {
        let slot = self.tables.filesystem.end_transaction?;
        // SAFETY: an initialised filesystem of this table, a token that some filesystem gave and a
        // status.
        Some(
            self.call("end_transaction", b"", |status| unsafe {
                slot(self.as_ptr(), token, status)
            }),
        )
    }

    pub(in crate::filesystem) fn raw_add_to_transaction(
        &self,
        path: &[u8],
        token: *mut TF_TransactionToken,
    ) -> Option<(Result<()>, c_int)> {
        let slot = self.tables.filesystem.add_to_transaction?;
        let c = c_path(path);
        // SAFETY: an initialised filesystem of this table, a C string, a token that some filesystem
        // gave and a status.
        Some(self.call("add_to_transaction", path, |status| unsafe {
            slot(self.as_ptr(), c.as_ptr(), token, status)
        }))
    }

    pub(in crate::filesystem) fn raw_transaction_for_path(
        &self,
        op: &'static str,
        slot: Option<TF_TransactionForPathOp>,
        path: &[u8],
    ) -> Option<(Result<()>, RawToken)> {
        let slot = slot?;
        let c = c_path(path);
        let mut token = ptr::null_mut();
        // SAFETY: an initialised filesystem of this table, a C string, a place for the token and a
        // status.
        let answer = self.call(op, path, |status| unsafe {
            slot(self.as_ptr(), c.as_ptr(), &mut token, status)
        });
        Some(self.raw_token(answer, token))
    }

    /// The text of a token; `Some(None)` if it is null.
    pub(in crate::filesystem) fn raw_decode_transaction_token(
        &self,
        token: *mut TF_TransactionToken,
    ) -> Option<Option<Vec<u8>>> {
        const OP: &str = "decode_transaction_token";
        let slot = self.tables.filesystem.decode_transaction_token?;
        // SAFETY: an initialised filesystem of this table and a token that some filesystem gave; the
        // answer is null or a C string from the plugin's allocator, which is the host's to free.
        unsafe {
            let text = slot(self.as_ptr(), token);
            Some(self.blocks.take_string(OP, b"", text))
        }
    }
}
