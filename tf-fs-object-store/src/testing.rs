//! Faults at every request of an operation, for the tests of a store.

use crate::{
    Attributes, BoxUpload, BucketPage, Client, CommitStrategy, ConflictOutcome, Connect,
    Connection, Content, CopyOptions, Directories, GetHead, GetOptions, ListOptions, Lookup,
    MissingCheck, Multipart, Name, ObjectMeta, ObjectStore, Page, Part, Payload, Process,
    PutOptions, Range, RenameOptions, Settings, StoreError, StoredObject, Terms, Upload,
    WriteLimits,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_plugin::prelude::*;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It does not reach the store, once.
    NotSent,
    /// It is done, and its response is lost, once.
    Lost,
    /// It and all that follow do not reach the store.
    Outage,
}

const FAULTS: [Fault; 3] = [Fault::NotSent, Fault::Lost, Fault::Outage];

/// When there is a fault, and which.
#[derive(Debug, Default)]
struct Plan {
    /// The request that fails, and how.
    fault: Mutex<Option<(u32, Fault)>>,
    requests: AtomicU32,
    was_hit: AtomicBool,
}

impl Plan {
    fn set(&self, fault: Option<(u32, Fault)>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.requests.store(0, Ordering::SeqCst);
        self.was_hit.store(false, Ordering::SeqCst);
    }

    /// Returns what happens to the next request.
    fn next(&self) -> Option<Fault> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = fault.and_then(|(at, fault)| match fault {
            Fault::Outage => (number >= at).then_some(fault),
            _ => (number == at).then_some(fault),
        });
        self.was_hit.fetch_or(fault.is_some(), Ordering::SeqCst);
        fault
    }

    async fn request<T, F: StoreError>(
        &self,
        request: impl Future<Output = Result<T, F>>,
    ) -> Result<T, F> {
        let lost = || F::stalled("a store that fails".to_owned(), Duration::ZERO);
        match self.next() {
            None => request.await,
            Some(Fault::Lost) => request.await.and_then(|_| Err(lost())),
            Some(_) => Err(lost()),
        }
    }
}

/// A store of which some requests fail.
#[derive(Clone, Debug)]
pub struct Faulty<C> {
    client: C,
    plan: Arc<Plan>,
}

/// A bucket of a [`Faulty`] store.
#[derive(Debug)]
pub struct FaultyBucket<S> {
    bucket: Arc<S>,
    plan: Arc<Plan>,
}

/// A connection to a [`Faulty`] store, to open files with.
#[derive(Debug)]
pub struct Session<C: Client + Clone>(Arc<Connection<Faulty<C>>>);

impl<C: Client + Clone> Clone for Session<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: Client + Clone> Connect for Session<C> {
    type Client = Faulty<C>;

    fn connection(&self) -> Result<Arc<Connection<Faulty<C>>>> {
        Ok(Arc::clone(&self.0))
    }
}

/// Runs an operation with each fault at each of its requests, and returns how many requests it makes.
///
/// `prepare` creates what the operation begins with. `check` looks at what is there afterwards: as before if the
/// operation failed, whole if it succeeded (`true`). Each run has its own connection, which remembers nothing. The
/// store's [`Settings::retry_timeout`] should be short.
///
/// # Errors
/// `INTERNAL` with the fault and the request if an operation fails because of one that is not sent, has another code
/// than a failing store gives, or takes longer than `limit`; the error of `prepare` or of `check`.
pub fn sweep<C: Client + Clone>(
    client: &C,
    limit: Duration,
    prepare: impl Fn(&Session<C>) -> Result<()>,
    operation: impl Fn(&Session<C>) -> Result<()>,
    check: impl Fn(&Session<C>, bool) -> Result<()>,
) -> Result<u32> {
    let process = Process::current(C::scheme(), 2, 64 << 20)?;
    let plan = Arc::new(Plan::default());
    let session = || {
        let faulty = Faulty { client: client.clone(), plan: Arc::clone(&plan) };
        Session(Arc::new(Connection::new(Arc::clone(&process), faulty)))
    };
    for at in 1.. {
        for fault in FAULTS {
            plan.set(None);
            prepare(&session())?;
            plan.set(Some((at, fault)));
            let began = Instant::now();
            let outcome = operation(&session());
            let took = began.elapsed();
            let was_hit = plan.was_hit.load(Ordering::SeqCst);
            plan.set(None);
            let wrong = |what: String| {
                Error::internal(format_args!("{fault:?} at request {at} of the operation: {what}"))
            };
            ensure!(took <= limit, wrong(format!("it took {took:?}")));
            let is_done = outcome.is_ok();
            if let Err(error) = outcome {
                let is_fit = match fault {
                    Fault::NotSent => false,
                    // Where the store cannot tell whose object is there, it is unknown.
                    Fault::Lost => error.code() == Code::FailedPrecondition,
                    Fault::Outage => {
                        matches!(error.code(), Code::Unavailable | Code::DeadlineExceeded)
                    }
                };
                ensure!(is_fit && was_hit, wrong(format!("{:?}: {error:#}", error.code())));
            }
            // Only the store knows what became of a lost request.
            if fault != Fault::Lost || is_done {
                check(&session(), is_done).context(wrong("what is there".to_owned()))?;
            }
            if !was_hit {
                return Ok(at - 1);
            }
        }
    }
    Ok(0)
}

impl<C: Client + Clone> Client for Faulty<C> {
    type Store = FaultyBucket<C::Store>;

    const SCHEMES: &'static [&'static str] = C::SCHEMES;

    fn settings(&self) -> Settings {
        self.client.settings()
    }

    fn has_timeouts(&self) -> bool {
        self.client.has_timeouts()
    }

    async fn open(&self, bucket: &Arc<str>) -> Result<Self::Store> {
        let bucket = Arc::new(self.client.open(bucket).await?);
        Ok(FaultyBucket { bucket, plan: Arc::clone(&self.plan) })
    }

    async fn list_buckets(
        &self,
        token: Option<&str>,
    ) -> Result<BucketPage, <C::Store as ObjectStore>::Error> {
        self.plan.request(self.client.list_buckets(token)).await
    }

    fn max_key_len(bucket: &str) -> usize {
        C::max_key_len(bucket)
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        C::split(uri)
    }

    fn name(bucket: &str, key: &str) -> Result<Name> {
        C::name(bucket, key)
    }
}

impl<S: ObjectStore> ObjectStore for FaultyBucket<S> {
    type Error = S::Error;
    type Body = S::Body;

    fn settings(&self) -> &Settings {
        self.bucket.settings()
    }

    fn endpoint(&self) -> String {
        self.bucket.endpoint()
    }

    fn terms(&self) -> Terms {
        self.bucket.terms()
    }

    fn directories(&self) -> Directories {
        self.bucket.directories()
    }

    fn supports_start_after(&self) -> bool {
        self.bucket.supports_start_after()
    }

    fn has_stable_page_tokens(&self) -> bool {
        self.bucket.has_stable_page_tokens()
    }

    fn has_timeouts(&self) -> bool {
        self.bucket.has_timeouts()
    }

    fn mirrors(&self) -> Option<&str> {
        self.bucket.mirrors()
    }

    fn cache_scope(&self) -> Option<String> {
        self.bucket.cache_scope()
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, S::Body), S::Error> {
        self.plan.request(self.bucket.get(options)).await
    }

    async fn list(&self, options: &ListOptions, token: Option<&str>) -> Result<Page, S::Error> {
        self.plan.request(self.bucket.list(options, token)).await
    }

    fn supports_lookup(&self) -> bool {
        self.bucket.supports_lookup()
    }

    async fn lookup(&self, name: &Name) -> Result<Lookup, S::Error> {
        self.plan.request(self.bucket.lookup(name)).await
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, S::Error> {
        self.plan.request(self.bucket.head(name)).await
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), S::Error> {
        self.plan.request(self.bucket.put_marker(marker)).await
    }

    async fn delete(&self, name: &Name) -> Result<(), S::Error> {
        self.plan.request(self.bucket.delete(name)).await
    }

    fn delete_many_limit(&self) -> usize {
        self.bucket.delete_many_limit()
    }

    fn can_batch_delete(&self, key: &str) -> bool {
        self.bucket.can_batch_delete(key)
    }

    async fn delete_many(
        &self,
        directory: &Name,
        keys: &[String],
    ) -> Result<Vec<(String, S::Error)>, S::Error> {
        self.plan.request(self.bucket.delete_many(directory, keys)).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, S::Error> {
        from.plan.request(S::copy(&from.bucket, &to.bucket, options)).await
    }

    fn supports_rename(&self) -> bool {
        self.bucket.supports_rename()
    }

    async fn rename(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: RenameOptions<'_>,
    ) -> Result<Option<ObjectMeta>, S::Error> {
        from.plan.request(S::rename(&from.bucket, &to.bucket, options)).await
    }

    fn is_copy(source: &ObjectMeta, destination: &ObjectMeta) -> bool {
        S::is_copy(source, destination)
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        self.bucket.write_limits()
    }

    fn commit_strategy<'a>(
        &'a self,
        to: PutOptions<'a>,
        sent: Payload<'a>,
    ) -> impl CommitStrategy<Error = S::Error> + 'a {
        FaultyCommit { plan: &self.plan, inner: self.bucket.commit_strategy(to, sent) }
    }

    async fn stored(&self, name: &Name) -> Result<(StoredObject, Attributes), S::Error> {
        self.plan.request(self.bucket.stored(name)).await
    }

    async fn is_ours(
        &self,
        name: &Name,
        sent: Payload<'_>,
        found: &StoredObject,
    ) -> Result<Option<bool>, S::Error> {
        self.plan.request(self.bucket.is_ours(name, sent, found)).await
    }

    async fn start_upload(&self, to: PutOptions<'_>) -> Result<BoxUpload<S::Error>, S::Error> {
        let inner = self.plan.request(self.bucket.start_upload(to)).await?;
        Ok(BoxUpload::new(FaultyUpload { plan: Arc::clone(&self.plan), inner }))
    }

    async fn create_multipart(&self, to: PutOptions<'_>) -> Result<String, S::Error> {
        self.plan.request(self.bucket.create_multipart(to)).await
    }

    async fn put_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        content: &Content,
    ) -> Result<Part, S::Error> {
        self.plan.request(self.bucket.put_part(upload, number, content)).await
    }

    async fn copy_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        source: &StoredObject,
        range: Range,
    ) -> Result<Part, S::Error> {
        self.plan.request(self.bucket.copy_part(upload, number, source, range)).await
    }

    async fn abort_multipart(&self, upload: Multipart<'_>) -> Result<(), S::Error> {
        self.plan.request(self.bucket.abort_multipart(upload)).await
    }
}

struct FaultyUpload<E> {
    plan: Arc<Plan>,
    inner: BoxUpload<E>,
}

impl<E: StoreError> Upload for FaultyUpload<E> {
    type Error = E;

    async fn append(&mut self, content: &Content) -> Result<(), E> {
        self.plan.request(self.inner.append(content)).await
    }

    async fn commit(&mut self) -> Result<StoredObject, E> {
        self.plan.request(self.inner.commit()).await
    }

    async fn abort(&mut self) -> Result<(), E> {
        self.plan.request(self.inner.abort()).await
    }
}

struct FaultyCommit<'a, P> {
    plan: &'a Plan,
    inner: P,
}

impl<P: CommitStrategy> CommitStrategy for FaultyCommit<'_, P> {
    type Error = P::Error;

    fn missing_check(&self) -> Option<MissingCheck> {
        self.inner.missing_check()
    }

    async fn send(&mut self) -> Result<StoredObject, P::Error> {
        self.plan.request(self.inner.send()).await
    }

    fn has_false_conflicts(&self) -> bool {
        self.inner.has_false_conflicts()
    }

    fn on_conflict(&mut self, failure: &P::Error, is_as_before: bool) -> ConflictOutcome {
        self.inner.on_conflict(failure, is_as_before)
    }
}
