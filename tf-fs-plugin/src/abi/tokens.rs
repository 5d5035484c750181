//! The tokens that represent transactions in the host.

use super::alloc::Block;
use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::Arc;
use tf_fs_sys::{TF_Filesystem, TF_TransactionToken};
use tf_plugin_core::{Code, Error, Result};

/// The transactions whose tokens the host holds, by the token's address. A token that is not in
/// this map is never dereferenced, so a stale or foreign one does no harm.
pub(super) struct Tokens<T>(HashMap<usize, (Block<TF_TransactionToken>, Arc<T>)>);

// SAFETY: the blocks are owned memory that is only used through the lock around `Tokens`.
unsafe impl<T: Send + Sync> Send for Tokens<T> {}

impl<T> Default for Tokens<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Tokens<T> {
    /// Returns the token of a transaction, or creates one. Searches all open transactions, of which there are few.
    pub(super) fn token(
        &mut self,
        owner: *const TF_Filesystem,
        transaction: Arc<T>,
    ) -> Result<*mut TF_TransactionToken> {
        let has_one = |(_, known): &&(_, Arc<T>)| Arc::ptr_eq(known, &transaction);
        if let Some((block, _)) = self.0.values().find(has_one) {
            return Ok(block.as_ptr());
        }
        let token = Arc::as_ptr(&transaction).cast_mut().cast::<c_void>();
        let block = Block::of(&[TF_TransactionToken { token, owner: owner.cast_mut() }])?;
        let start = block.as_ptr();
        self.0.insert(start.addr(), (block, transaction));
        Ok(start)
    }

    /// Removes and frees a token, and returns its transaction.
    pub(super) fn remove(&mut self, token: *const TF_TransactionToken) -> Result<Arc<T>> {
        let (_, transaction) = self.0.remove(&token.addr()).ok_or_else(unknown)?;
        Ok(transaction)
    }

    pub(super) fn find(&self, token: *const TF_TransactionToken) -> Result<Arc<T>> {
        let (_, transaction) = self.0.get(&token.addr()).ok_or_else(unknown)?;
        Ok(Arc::clone(transaction))
    }
}

#[cold]
fn unknown() -> Error {
    Error::new(Code::NotFound, "the transaction has ended or is not of this filesystem")
}
