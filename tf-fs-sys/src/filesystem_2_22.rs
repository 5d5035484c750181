//! What TensorFlow 2.22 has otherwise in [`filesystem`](crate::filesystem). It is known from 2.22.0rc0.

use crate::filesystem_ops::TF_FilesystemOps;
use core::mem::{offset_of, size_of};

/// An operation of which only the place counts.
type AnyOperation = Option<unsafe extern "C" fn()>;

const OPERATION: usize = size_of::<AnyOperation>();
/// Where the six operations of transactions begin, in operations.
const TRANSACTIONS: usize = offset_of!(TF_FilesystemOps, start_transaction) / OPERATION;
/// Where those after them begin.
const CONFIGURATION: usize = offset_of!(TF_FilesystemOps, get_filesystem_configuration) / OPERATION;
const ALL: usize = size_of::<TF_FilesystemOps>() / OPERATION;
const ALL_OTHERS: usize = ALL - (CONFIGURATION - TRANSACTIONS);

/// [`TF_FilesystemOps`] as TensorFlow has it from 2.22 on, under the same ABI number: the operations of
/// transactions are gone, and those of configuration follow on `flush_caches`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_FilesystemOpsWithoutTransactions {
    operations: [AnyOperation; ALL_OTHERS],
}

impl TF_FilesystemOps {
    /// The same operations for TensorFlow 2.22 and newer.
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
    /// The same operations at the places of older releases; those of transactions are null.
    fn from(table: TF_FilesystemOpsWithoutTransactions) -> Self {
        let mut all: [AnyOperation; ALL] = [None; ALL];
        let (before, after) = table.operations.split_at(TRANSACTIONS);
        all[..TRANSACTIONS].copy_from_slice(before);
        all[CONFIGURATION..].copy_from_slice(after);
        // SAFETY: the table is made of optional functions and nothing else, and each is at its place again.
        unsafe { core::mem::transmute::<[AnyOperation; ALL], Self>(all) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::filesystem::{TF_Filesystem, TF_Filesystem_Option, TF_TransactionToken};
    use crate::status::TF_Status;
    use core::ffi::c_int;
    use std::vec::Vec;

    unsafe extern "C" fn flush_caches(_: *const TF_Filesystem) {}
    unsafe extern "C" fn end_transaction(
        _: *const TF_Filesystem,
        _: *mut TF_TransactionToken,
        _: *mut TF_Status,
    ) -> c_int {
        0
    }
    unsafe extern "C" fn set_filesystem_configuration(
        _: *const TF_Filesystem,
        _: *const TF_Filesystem_Option,
        _: c_int,
        _: *mut TF_Status,
    ) {
    }

    /// The places are those of TensorFlow 2.22's header.
    #[test]
    fn operations_of_configuration_follow_on_flush_caches_without_transactions() {
        let ops = TF_FilesystemOps {
            flush_caches: Some(flush_caches),
            end_transaction: Some(end_transaction),
            set_filesystem_configuration: Some(set_filesystem_configuration),
            ..TF_FilesystemOps::default()
        };
        let table = ops.without_transactions();
        assert_eq!(size_of_val(&table), 216);
        let filled = |(place, operation): (usize, &AnyOperation)| {
            operation.map(|function| (place * OPERATION, function as usize))
        };
        let filled: Vec<_> = table.operations.iter().enumerate().filter_map(filled).collect();
        assert_eq!(
            filled,
            [
                (168, flush_caches as *const () as usize),
                (184, set_filesystem_configuration as *const () as usize)
            ]
        );
        let back = TF_FilesystemOps::from(table);
        assert!(back.start_transaction.is_none() && back.end_transaction.is_none());
        assert_eq!(
            back.flush_caches.map(|function| function as usize),
            Some(flush_caches as *const () as usize)
        );
        assert_eq!(
            back.set_filesystem_configuration.map(|function| function as usize),
            Some(set_filesystem_configuration as *const () as usize)
        );
    }
}
