//! The slots of transactions.

use super::alloc::c_string;
use super::registration::table;
use super::state::{Path, State, bytes, place, slots};
use crate::filesystem::Filesystem;
use crate::operations::Operations;
use crate::uri::Uri;
use core::ffi::{c_char, c_int};
use tf_fs_sys::{TF_Filesystem, TF_FilesystemOps, TF_Status, TF_TransactionToken};
use tf_plugin_core::__private::boundary::{guard, guard_logged};
use tf_plugin_core::{Code, Error};

/// A place for a token.
type NewToken = *mut *mut TF_TransactionToken;

/// Adds the slots of transactions to a table.
pub(super) const fn add_to<F: Filesystem>(ops: TF_FilesystemOps) -> TF_FilesystemOps {
    let parts = Operations::START_TRANSACTION
        .union(Operations::ADD_TO_TRANSACTION)
        .union(Operations::GET_TRANSACTION_FOR_PATH);
    let ops = table! {
        start_transaction if START_TRANSACTION;
        end_transaction if END_TRANSACTION;
        add_to_transaction if ADD_TO_TRANSACTION;
        get_transaction_for_path if GET_TRANSACTION_FOR_PATH;
        get_or_start_transaction_for_path if GET_OR_START_TRANSACTION_FOR_PATH;
        decode_transaction_token if DECODE_TRANSACTION_TOKEN
            | START_TRANSACTION | GET_TRANSACTION_FOR_PATH | GET_OR_START_TRANSACTION_FOR_PATH;
        ..ops
    };
    match F::PROVIDED.contains(parts) {
        true => table! { get_or_start_transaction_for_path; ..ops },
        false => ops,
    }
}

slots! {
    fn start_transaction(filesystem: state, token: NewToken) -> c_int, or -1 {
        let place = place(token)?;
        let transaction = state.filesystem.start_transaction()?;
        *place = state.tokens.lock()?.token(filesystem, transaction)?;
        Ok(0)
    }
    fn end_transaction(filesystem: state, token: *mut TF_TransactionToken) -> c_int, or -1 {
        let transaction = state.tokens.lock()?.remove(token)?;
        state.filesystem.end_transaction(transaction)?;
        Ok(0)
    }
    fn add_to_transaction(
        filesystem: state, path: Path, token: *mut TF_TransactionToken
    ) -> c_int, or -1 {
        let transaction = state.tokens.lock()?.find(token)?;
        state.with_uri(path, |uri| state.filesystem.add_to_transaction(uri, &transaction))?;
        Ok(0)
    }
    fn get_transaction_for_path(filesystem: state, path: Path, token: NewToken) -> c_int, or -1 {
        let place = place(token)?;
        let transaction = state.with_uri(path, |uri| {
            let transaction = state.filesystem.get_transaction_for_path(uri)?;
            transaction.ok_or_else(|| Error::not_found(format_args!("a transaction for {uri}")))
        })?;
        *place = state.tokens.lock()?.token(filesystem, transaction)?;
        Ok(0)
    }
    fn get_or_start_transaction_for_path(
        filesystem: state, path: Path, token: NewToken
    ) -> c_int, or -1 {
        let place = place(token)?;
        // Only this operation has a separate code for a path of another filesystem.
        let checked = state.check_scheme(Uri::new(bytes(path)?));
        checked.map_err(|error| error.with_code(Code::NotFound))?;
        let transaction =
            state.with_uri(path, |uri| state.filesystem.get_or_start_transaction_for_path(uri))?;
        *place = state.tokens.lock()?.token(filesystem, transaction)?;
        Ok(0)
    }
}

unsafe extern "C" fn decode_transaction_token<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    token: *const TF_TransactionToken,
) -> *mut c_char {
    let text = |text: &str| Ok(c_string(text.as_bytes())?.into_raw());
    let fallback = || text("(unknown transaction)").unwrap_or(core::ptr::null_mut());
    guard_logged("decode_transaction_token", fallback, || {
        // SAFETY: the host passes a filesystem of this table and any token.
        let state = unsafe { State::<F>::of(filesystem) }?;
        let transaction = state.tokens.lock()?.find(token)?;
        text(&state.filesystem.decode_transaction_token(&transaction).replace('\0', "\\0"))
    })
}
