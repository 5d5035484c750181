//! The differences of TensorFlow 2.22 from [`filesystem`](crate::filesystem), as of 2.22.0rc0.

use crate::filesystem_ops::TF_FilesystemOps;
use core::mem::{offset_of, size_of};

/// An operation of any type, of which only the place counts.
type AnyOperation = Option<unsafe extern "C" fn()>;

const OPERATION: usize = size_of::<AnyOperation>();
/// Where the six operations of transactions begin, in operations.
const TRANSACTIONS: usize = offset_of!(TF_FilesystemOps, start_transaction) / OPERATION;
/// Where those after them begin.
const CONFIGURATION: usize = offset_of!(TF_FilesystemOps, get_filesystem_configuration) / OPERATION;
const ALL: usize = size_of::<TF_FilesystemOps>() / OPERATION;
const ALL_OTHERS: usize = ALL - (CONFIGURATION - TRANSACTIONS);

/// [`TF_FilesystemOps`] in TensorFlow 2.22 and later, under the same ABI number: the operations of
/// transactions are gone, and those of configuration follow `flush_caches`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_FilesystemOpsWithoutTransactions {
    operations: [AnyOperation; ALL_OTHERS],
}

impl TF_FilesystemOps {
    /// Returns the same operations for TensorFlow 2.22 and newer.
    #[must_use]
    pub fn without_transactions(&self) -> TF_FilesystemOpsWithoutTransactions {
        // SAFETY: the table is made of optional functions and nothing else; they are never called through this type.
        let all = unsafe { core::mem::transmute::<Self, [AnyOperation; ALL]>(*self) };
        let mut operations = [None; ALL_OTHERS];
        let (before, after) = operations.split_at_mut(TRANSACTIONS);
        before.copy_from_slice(&all[..TRANSACTIONS]);
        after.copy_from_slice(&all[CONFIGURATION..]);
        TF_FilesystemOpsWithoutTransactions { operations }
    }
}

impl From<TF_FilesystemOpsWithoutTransactions> for TF_FilesystemOps {
    /// Moves the operations to the places of older releases; those of transactions are null.
    fn from(table: TF_FilesystemOpsWithoutTransactions) -> Self {
        let mut all: [AnyOperation; ALL] = [None; ALL];
        let (before, after) = table.operations.split_at(TRANSACTIONS);
        all[..TRANSACTIONS].copy_from_slice(before);
        all[CONFIGURATION..].copy_from_slice(after);
        // SAFETY: the table is made of optional functions and nothing else, and each is at its place again.
        unsafe { core::mem::transmute::<[AnyOperation; ALL], Self>(all) }
    }
}
