//! The tokens that represent transactions in the host.

use super::alloc::Block;
use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::Arc;
use tf_fs_sys::{TF_Filesystem, TF_TransactionToken};
use tf_plugin_core::{Code, Error, Result};

/// The transactions that the host holds a token of, by the token's address. A token that is not in
/// here is never looked into, so a stale or foreign one does no harm.
pub(super) struct Tokens<T> {
    live: HashMap<usize, (Block<TF_TransactionToken>, Arc<T>)>,
    /// The address of the token of each transaction in `live`, by the transaction's own.
    by_transaction: HashMap<usize, usize>,
}

// SAFETY: the blocks are owned memory that is only used through the lock around `Tokens`.
unsafe impl<T: Send + Sync> Send for Tokens<T> {}

impl<T> Default for Tokens<T> {
    fn default() -> Self {
        Self { live: HashMap::new(), by_transaction: HashMap::new() }
    }
}

impl<T> Tokens<T> {
    /// The token of a transaction: the one that it has, or a new one.
    pub(super) fn token(
        &mut self,
        owner: *const TF_Filesystem,
        transaction: Arc<T>,
    ) -> Result<*mut TF_TransactionToken> {
        let identity = Arc::as_ptr(&transaction).addr();
        if let Some(&address) = self.by_transaction.get(&identity) {
            return Ok(core::ptr::with_exposed_provenance_mut(address));
        }
        let token = Arc::as_ptr(&transaction).cast_mut().cast::<c_void>();
        let block = Block::of(&[TF_TransactionToken { token, owner: owner.cast_mut() }])?;
        let address = block.as_ptr().expose_provenance();
        self.live.insert(address, (block, transaction));
        self.by_transaction.insert(identity, address);
        Ok(core::ptr::with_exposed_provenance_mut(address))
    }

    /// Forgets a token, which is freed.
    pub(super) fn remove(&mut self, token: *const TF_TransactionToken) -> Result<Arc<T>> {
        let (_, transaction) = self.live.remove(&token.addr()).ok_or_else(unknown)?;
        self.by_transaction.remove(&Arc::as_ptr(&transaction).addr());
        Ok(transaction)
    }

    pub(super) fn find(&self, token: *const TF_TransactionToken) -> Result<Arc<T>> {
        let (_, transaction) = self.live.get(&token.addr()).ok_or_else(unknown)?;
        Ok(Arc::clone(transaction))
    }
}

#[cold]
fn unknown() -> Error {
    Error::new(Code::NotFound, "the transaction has ended or is not of this filesystem")
}
