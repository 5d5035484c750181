//! Each request of a store, made until it succeeds or no further attempt helps.

use crate::retry::{FinalError, Request};
use crate::{
    Attributes, BoxUpload, BucketPage, Client, Content, CopyOptions, Directories, ErrorKind,
    ListOptions, Lookup, Multipart, Name, ObjectMeta, ObjectStore, Page, Part, Payload, PutOptions,
    Range, RenameOptions, Settings, StoreError, StoredObject, max_wait,
};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// An upload that is slower than this counts as broken.
const SLOWEST_BYTES_PER_MS: u64 = 100;

pub(crate) type Outcome<T, S> = Result<T, FinalError<<S as ObjectStore>::Error>>;

/// How a request is named in errors.
pub(crate) const LOOKUP: &str = "look up";
pub(crate) const HEAD: &str = "head";
pub(crate) const PUT_MARKER: &str = "put marker";
pub(crate) const DELETE: &str = "delete";
pub(crate) const DELETE_MANY: &str = "delete many";
pub(crate) const COPY: &str = "copy";
pub(crate) const RENAME: &str = "rename";
pub(crate) const LIST_BUCKETS: &str = "list buckets";
pub(crate) const CREATE_MULTIPART: &str = "create multipart";
pub(crate) const PUT_PART: &str = "put part";
pub(crate) const COPY_PART: &str = "copy part";
pub(crate) const ABORT_MULTIPART: &str = "abort multipart";
pub(crate) const START_UPLOAD: &str = "start upload";
pub(crate) const UPLOAD: &str = "upload";
pub(crate) const ABORT_UPLOAD: &str = "abort upload";

fn request<'a, S: ObjectStore>(store: &'a S, op: &'a str, what: &'a Name) -> Request<'a> {
    let settings = store.settings();
    let deadline =
        (!store.has_timeouts()).then(|| (max_wait(settings.stall_timeout), store.endpoint()));
    Request { settings, op, what, deadline }
}

/// Makes a request that only this store has: until it succeeds, or its failure does not pass any more. `op` names it in
/// errors; what `make` returns ends by itself when it makes no progress.
///
/// # Errors
/// The last failure, as an error for the user.
pub async fn retry<S: ObjectStore, T, R: Future<Output = Result<T, S::Error>>>(
    store: &S,
    op: &str,
    name: &Name,
    make: impl Fn() -> R,
) -> Result<T> {
    let request = Request { deadline: None, ..request(store, op, name) };
    Ok(request.make(make).await?)
}

/// A request that sends so many bytes, or makes the store copy them.
pub(crate) fn transfer<'a, S: ObjectStore>(
    store: &'a S,
    op: &'a str,
    what: &'a Name,
    bytes: u64,
) -> Request<'a> {
    let mut request = request(store, op, what);
    if let Some((time, _)) = &mut request.deadline {
        // Parts that are sent at the same time share the link.
        let shared_by = store.settings().write_concurrency.max(1) as u64;
        *time += Duration::from_millis((bytes / SLOWEST_BYTES_PER_MS).saturating_mul(shared_by));
    }
    request
}

/// A page of a listing, for `name`.
pub(crate) async fn list<S: ObjectStore>(
    store: &S,
    name: &Name,
    options: &ListOptions,
    token: Option<&str>,
) -> Outcome<Page, S> {
    let request = request(store, store.terms().list, name);
    let is_real = store.directories() == Directories::Real;
    debug_assert!(!is_real || options.delimiter, "{name}: listed without a delimiter");
    let mut page = match request.make(|| store.list(options, token)).await {
        // A directory that is not there has no names.
        Err(failure)
            if is_real
                && failure.kind() == ErrorKind::NotFound
                && !options.directory().is_empty() =>
        {
            Page::default()
        }
        page => page?,
    };
    let names = page.objects.len() + page.common_prefixes.len();
    page.objects.retain(|object| object.key.starts_with(&options.prefix));
    page.common_prefixes
        .retain(|prefix| prefix.starts_with(&options.prefix) && prefix.ends_with('/'));
    if is_real {
        // Some servers show the directory among the names in it.
        page.objects.retain(|object| !object.key.ends_with('/'));
        page.common_prefixes.retain(|prefix| *prefix != options.directory());
    }
    page.strays = names - page.objects.len() - page.common_prefixes.len();
    Ok(page)
}

/// What a name is.
pub(crate) async fn lookup<S: ObjectStore>(store: &S, name: &Name) -> Outcome<Lookup, S> {
    match request(store, LOOKUP, name).make(|| store.lookup(name)).await {
        Ok(Lookup::File(_)) if name.is_always_directory() => Ok(Lookup::Missing),
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(Lookup::Missing),
        outcome => outcome,
    }
}

/// One object; `None` if there is none.
pub(crate) async fn head<S: ObjectStore>(store: &S, name: &Name) -> Outcome<Option<ObjectMeta>, S> {
    match request(store, HEAD, name).make(|| store.head(name)).await {
        Ok(meta) => Ok(Some(meta)),
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The empty object that marks a directory.
pub(crate) async fn put_marker<S: ObjectStore>(store: &S, marker: &Name) -> Outcome<(), S> {
    request(store, PUT_MARKER, marker).make(|| store.put_marker(marker)).await
}

/// Deletes one key, whether or not there is such an object.
pub(crate) async fn delete<S: ObjectStore>(store: &S, name: &Name) -> Outcome<(), S> {
    match request(store, DELETE, name).make(|| store.delete(name)).await {
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Deletes a temporary object, in one attempt. It is nobody's loss if it stays.
pub(crate) async fn discard<S: ObjectStore>(store: &S, name: &Name) {
    if let Err(failure) = at_most(1, request(store, DELETE, name), || store.delete(name)).await {
        log::debug!("{:#}", failure.into_error());
    }
}

/// The keys that a deletion has left.
pub(crate) struct Undeletable<F> {
    /// Those that were refused.
    pub(crate) refused: Vec<(String, F)>,
    /// Those of which nothing is known, or whose failure might pass.
    pub(crate) untold: Vec<String>,
    /// Why no further attempt is made.
    pub(crate) last: Option<FinalError<F>>,
}

/// Deletes these keys, and returns those that are left. A key whose own failure may pass counts as a failure of the
/// request: a store that is overloaded says so of each key.
pub(crate) async fn delete_many<S: ObjectStore>(
    store: &S,
    directory: &Name,
    keys: Vec<String>,
    attempts: u32,
) -> Undeletable<S::Error> {
    let state = Mutex::new((keys, Vec::new()));
    fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    let deleted = at_most(attempts, request(store, DELETE_MANY, directory), || async {
        let keys = lock(&state).0.clone();
        let failed = store.delete_many(directory, &keys).await?;
        let mut state = lock(&state);
        let (untold, refused) = &mut *state;
        untold.clear();
        let mut may_pass = None;
        for (key, failure) in failed {
            // Only requested keys count as deleted, whatever the store returns.
            let is_transient =
                matches!(failure.kind(), ErrorKind::Transient | ErrorKind::InvalidResponse);
            if is_transient && keys.contains(&key) {
                untold.push(key);
                may_pass = Some(failure);
            } else {
                refused.push((key, failure));
            }
        }
        may_pass.map_or(Ok(()), Err)
    });
    let last = deleted.await.err();
    let (untold, refused) = std::mem::take(&mut *lock(&state));
    Undeletable { refused, untold, last }
}

/// Copies an object within a store. `options` makes what is copied, once an attempt.
pub(crate) async fn copy<'a, S: ObjectStore>(
    from: &'a Arc<S>,
    to: &'a Arc<S>,
    src: &'a Name,
    options: impl Fn() -> CopyOptions<'a>,
) -> Outcome<Option<ObjectMeta>, S> {
    // A large copy takes long within the store, which alone knows whether it gets on.
    let request = Request { deadline: None, ..request(&**to, COPY, src) };
    request.make(|| S::copy(from, to, options())).await
}

/// Renames an object within a store. `may_be_done` is set if an attempt may have been done although it failed.
pub(crate) async fn rename<S: ObjectStore>(
    from: &Arc<S>,
    to: &Arc<S>,
    options: RenameOptions<'_>,
    may_be_done: &Cell<bool>,
) -> Outcome<Option<ObjectMeta>, S> {
    let request = request(&**to, RENAME, options.src);
    request
        .make(|| async {
            // An attempt that is dropped at its deadline may have been done.
            let before = may_be_done.replace(true);
            let renamed = S::rename(from, to, options).await;
            may_be_done.set(before || renamed.as_ref().is_err_and(StoreError::is_ambiguous));
            renamed
        })
        .await
}

/// A page of the list of buckets.
pub(crate) async fn list_buckets<C: Client>(
    client: &C,
    settings: &Settings,
    name: &Name,
    token: Option<&str>,
) -> Outcome<BucketPage, C::Store> {
    let stall = max_wait(settings.stall_timeout);
    let deadline = (!client.has_timeouts()).then(|| (stall, String::new()));
    let request = Request { settings, op: LIST_BUCKETS, what: name, deadline };
    request.make(|| client.list_buckets(token)).await
}

/// One object and what it has besides its bytes; `None` if there is none.
pub(crate) async fn stored<S: ObjectStore>(
    store: &S,
    name: &Name,
    attempts: u32,
) -> Outcome<Option<(StoredObject, Attributes)>, S> {
    match at_most(attempts, request(store, HEAD, name), || store.stored(name)).await {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Makes a request in so many attempts at most.
async fn at_most<T, F: StoreError, R: Future<Output = Result<T, F>>>(
    attempts: u32,
    request: Request<'_>,
    make: impl Fn() -> R,
) -> Result<T, FinalError<F>> {
    let mut settings = request.settings.clone();
    settings.max_attempts = settings.max_attempts.min(attempts);
    Request { settings: &settings, ..request }.make(make).await
}

/// Whether an upload is forgotten, of which the store knew until now.
pub(crate) async fn is_aborted<S: ObjectStore>(
    store: &S,
    upload: Multipart<'_>,
    attempts: u32,
) -> bool {
    let request = request(store, ABORT_MULTIPART, upload.name);
    at_most(attempts, request, || store.abort_multipart(upload)).await.is_ok()
}

/// Whether `found` is what was sent, if the store can tell.
pub(crate) async fn is_ours<S: ObjectStore>(
    store: &S,
    name: &Name,
    sent: Payload<'_>,
    found: &StoredObject,
) -> Outcome<Option<bool>, S> {
    request(store, HEAD, name).make(|| store.is_ours(name, sent, found)).await
}

/// A new multipart upload: the store's name of it.
pub(crate) async fn create_multipart<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
) -> Outcome<String, S> {
    request(store, CREATE_MULTIPART, to.name).make(|| store.create_multipart(to)).await
}

/// A new upload from the first byte to the last.
pub(crate) async fn start_upload<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
) -> Outcome<BoxUpload<S::Error>, S> {
    request(store, START_UPLOAD, to.name).make(|| store.start_upload(to)).await
}

/// A part of an upload.
pub(crate) async fn put_part<S: ObjectStore>(
    store: &S,
    upload: Multipart<'_>,
    number: u32,
    content: &Content,
) -> Outcome<Part, S> {
    let request = transfer(store, PUT_PART, upload.name, content.len());
    request.make(|| store.put_part(upload, number, content)).await
}

/// A part of an upload that is a copy.
pub(crate) async fn copy_part<S: ObjectStore>(
    store: &S,
    upload: Multipart<'_>,
    number: u32,
    source: &StoredObject,
    range: Range,
) -> Outcome<Part, S> {
    let request = transfer(store, COPY_PART, upload.name, range.len());
    request.make(|| store.copy_part(upload, number, source, range)).await
}

/// Forgets an upload, whether or not there is one.
pub(crate) async fn abort_multipart<S: ObjectStore>(
    store: &S,
    upload: Multipart<'_>,
) -> Outcome<(), S> {
    let request = request(store, ABORT_MULTIPART, upload.name);
    match request.make(|| store.abort_multipart(upload)).await {
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
