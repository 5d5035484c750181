//! The slots of transactions.

use super::alloc::c_string;
use super::registration::if_written;
use super::state::{State, place};
use crate::filesystem::Filesystem;
use crate::ops::Ops;
use core::ffi::{c_char, c_int};
use std::sync::Arc;
use tf_fs_sys::{TF_Filesystem, TF_FilesystemOps, TF_Status, TF_TransactionToken};
use tf_plugin_core::__private::boundary::{guard, guard_quiet};
use tf_plugin_core::{Code, Error, Result};

/// Adds the slots of transactions to a table.
pub(super) const fn add_to<F: Filesystem>(ops: TF_FilesystemOps) -> TF_FilesystemOps {
    TF_FilesystemOps {
        start_transaction: if_written!(START_TRANSACTION => start_transaction::<F>),
        end_transaction: if_written!(END_TRANSACTION => end_transaction::<F>),
        add_to_transaction: if_written!(ADD_TO_TRANSACTION => add_to_transaction::<F>),
        get_transaction_for_path: if_written!(
            GET_TRANSACTION_FOR_PATH => get_transaction_for_path::<F>
        ),
        get_or_start_transaction_for_path: if F::PROVIDED
            .contains(Ops::GET_OR_START_TRANSACTION_FOR_PATH)
            || F::PROVIDED.contains(
                Ops::START_TRANSACTION
                    .union(Ops::ADD_TO_TRANSACTION)
                    .union(Ops::GET_TRANSACTION_FOR_PATH),
            ) {
            Some(get_or_start_transaction_for_path::<F>)
        } else {
            None
        },
        decode_transaction_token: if_written!(
            DECODE_TRANSACTION_TOKEN | START_TRANSACTION | GET_OR_START_TRANSACTION_FOR_PATH
                => decode_transaction_token::<F>
        ),
        ..ops
    }
}

/// Writes the token of the transaction that `body` finds or makes.
///
/// # Safety
/// The arguments must be those of a transaction slot called by the host.
unsafe fn answer_token<F: Filesystem>(
    op: &'static str,
    filesystem: *const TF_Filesystem,
    token: *mut *mut TF_TransactionToken,
    status: *mut TF_Status,
    body: impl FnOnce(&State<F>) -> Result<Arc<F::Transaction>>,
) -> c_int {
    // SAFETY: the host passes a filesystem of this table, a place for the token and a status.
    unsafe {
        guard(op, status, -1, || {
            let state = State::<F>::of(filesystem)?;
            let place = place(token)?;
            let transaction = body(state)?;
            *place = state.tokens.lock()?.token(filesystem, transaction)?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn start_transaction<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    token: *mut *mut TF_TransactionToken,
    status: *mut TF_Status,
) -> c_int {
    // SAFETY: the host's arguments are passed on.
    unsafe {
        answer_token::<F>("start_transaction", filesystem, token, status, |state| {
            state.filesystem.start_transaction()
        })
    }
}

unsafe extern "C" fn end_transaction<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    token: *mut TF_TransactionToken,
    status: *mut TF_Status,
) -> c_int {
    // SAFETY: the host passes a filesystem of this table, any token and a status.
    unsafe {
        guard("end_transaction", status, -1, || {
            let state = State::<F>::of(filesystem)?;
            let transaction = state.tokens.lock()?.remove(token)?;
            state.filesystem.end_transaction(transaction)?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn add_to_transaction<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    token: *mut TF_TransactionToken,
    status: *mut TF_Status,
) -> c_int {
    // SAFETY: the host passes a filesystem of this table, a C string, any token and a status.
    unsafe {
        guard("add_to_transaction", status, -1, || {
            let state = State::<F>::of(filesystem)?;
            let transaction = state.tokens.lock()?.find(token)?;
            state.with_uri(path, |uri| state.filesystem.add_to_transaction(uri, &transaction))?;
            Ok(0)
        })
    }
}

unsafe extern "C" fn get_transaction_for_path<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    token: *mut *mut TF_TransactionToken,
    status: *mut TF_Status,
) -> c_int {
    // SAFETY: the host's arguments are passed on; `path` is a C string.
    unsafe {
        answer_token::<F>("get_transaction_for_path", filesystem, token, status, |state| {
            state.with_uri(path, |uri| {
                let found = state.filesystem.get_transaction_for_path(uri)?;
                found.ok_or_else(|| Error::not_found(format_args!("a transaction for {uri}")))
            })
        })
    }
}

unsafe extern "C" fn get_or_start_transaction_for_path<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    token: *mut *mut TF_TransactionToken,
    status: *mut TF_Status,
) -> c_int {
    // SAFETY: the host's arguments are passed on; `path` is a C string.
    unsafe {
        answer_token::<F>("get_or_start_transaction_for_path", filesystem, token, status, |state| {
            // Only this operation has a separate code for a path of another filesystem.
            state.require_own(path, Code::NotFound)?;
            state.with_uri(path, |uri| state.filesystem.get_or_start_transaction_for_path(uri))
        })
    }
}

unsafe extern "C" fn decode_transaction_token<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    token: *const TF_TransactionToken,
) -> *mut c_char {
    let text = |text: &str| Ok(c_string(text.as_bytes())?.into_raw());
    let fallback = || text("(unknown transaction)").unwrap_or(core::ptr::null_mut());
    guard_quiet("decode_transaction_token", fallback, || {
        // SAFETY: the host passes a filesystem of this table and any token.
        let state = unsafe { State::<F>::of(filesystem) }?;
        let transaction = state.tokens.lock()?.find(token)?;
        text(&state.filesystem.decode_transaction_token(&transaction).replace('\0', "\\0"))
    })
}
