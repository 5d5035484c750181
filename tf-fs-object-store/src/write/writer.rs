//! One file open for writing: its bytes, and what the store has of it.

use super::parts;
use super::sequential::Sequence;
use super::types::{Attributes, Payload, Publication, PutMode, StoredObject, WriteLimits};
use super::upload::{PartsUpload, Upload, WriteTarget, again};
use super::{by_rename, commit};
use crate::read::Whole;
use crate::{
    Buffer, Client, Connection, Name, ObjectStore, Reservation, Settings, UnpublishedWrite,
};
use bytes::BytesMut;
use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::Mutex;

/// How long giving a file up waits for the store. It goes on in the background.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);
/// Bytes that are read at a time of the object that is appended to.
const PIECE: usize = 256 << 10;
/// `Dataset.cache` writes such a file, drops it open and deletes it: nothing is lost.
const LOCK_FILE: &str = ".lockfile";

#[derive(Debug)]
pub(super) struct Open<C: Client> {
    pub(super) connection: Arc<Connection<C>>,
    pub(super) object: Arc<WriteTarget<C::Store>>,
    limits: WriteLimits,
    unpublished: UnpublishedWrite,
    /// The object that must have this name when a file is published.
    mode: PutMode,
    published_at: Option<Instant>,
    /// How long the file was at each attempt to publish all of it that failed, but may have been done.
    undecided: Vec<u64>,
    /// The last bytes of the file: all of it, or what comes after the parts of `upload` or, without one,
    /// after what is published.
    held: Buffer,
    /// Where in the file `held` begins.
    held_from: u64,
    upload: Option<Upload<C::Store>>,
    pub(super) len: u64,
    /// Whether the log says that what is written goes nowhere.
    goes_nowhere: bool,
    /// Whether the last attempt to publish it failed.
    was_told: bool,
    /// Why the file cannot be completed any more.
    pub(super) broken: Option<Error>,
}

/// Warns once for each bucket of this process.
#[cold]
fn warn_of_writes_in_place(name: &Name) {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let bucket = name.with_key("").to_string();
    if WARNED.lock().is_ok_and(|mut warned| warned.insert(bucket.clone())) {
        log::warn!(
            "{bucket}: the store writes files in place: until a file is closed, others read a part of it, and a writer \
             that is killed loses what was there before; write to a new name, and do not read it before it is closed"
        );
    }
}

/// The error of a store that only reads.
#[cold]
pub(super) fn read_only(name: &Name) -> Error {
    let text = format!("{name}: the store cannot be written to; write to another filesystem");
    Error::new(Code::Unimplemented, text)
}

impl<C: Client> Open<C> {
    pub(super) fn new(
        connection: Arc<Connection<C>>,
        store: Arc<C::Store>,
        name: Name,
        attributes: Attributes,
        mode: PutMode,
    ) -> Result<Self> {
        let mut limits = store.write_limits().ok_or_else(|| read_only(&name))?;
        if let Some(parts) = &mut limits.parts
            // The last of them would have another size; the object to copy has another name.
            && (store.settings().write_parts_equal || limits.publication == Publication::Rename)
        {
            parts.copies = None;
        }
        if limits.publication == Publication::InPlace {
            warn_of_writes_in_place(&name);
        }
        Ok(Self {
            unpublished: connection.unpublished.begin(&name),
            connection,
            object: Arc::new(WriteTarget { store, name, attributes }),
            limits,
            mode,
            published_at: None,
            undecided: Vec::new(),
            held: Buffer::default(),
            held_from: 0,
            upload: None,
            len: 0,
            goes_nowhere: false,
            was_told: false,
            broken: None,
        })
    }

    fn settings(&self) -> &Settings {
        self.object.store.settings()
    }

    pub(super) fn append(&mut self, mut data: &[u8]) -> Result<()> {
        if let Some(upload) = &mut self.upload {
            upload.arrivals()?;
        }
        while !data.is_empty() {
            let part = self.part_size();
            if self.held.len() >= part {
                self.send_part()?;
                continue;
            }
            if self.held.room() == 0 {
                let chunk = self.held.next_chunk(data.len(), part);
                let reservation = self.reserve(chunk)?;
                self.held.grow(chunk, reservation);
            }
            let room = self.held.room().min(part - self.held.len());
            let (now, later) = data.split_at(data.len().min(room));
            self.held.append(now);
            self.len += now.len() as u64;
            data = later;
        }
        self.unpublished.set_len(self.len);
        Ok(())
    }

    /// The bytes of the part that `held` becomes.
    fn part_size(&self) -> usize {
        let settings = self.settings();
        let size = match (&self.limits.parts, &self.upload) {
            (None, None) if self.limits.has_upload => {
                self.limits.put.min(settings.write_part as u64)
            }
            (None, Some(_)) => settings.write_part as u64,
            (None, None) => self.limits.put,
            (Some(limits), upload) => {
                let next = match upload {
                    Some(Upload::Parts(upload)) => upload.next(),
                    _ => self.copies().unwrap_or(0) + 1,
                };
                let first = settings.write_part as u64;
                let size = parts::size(limits, first, next, settings.write_parts_equal);
                // It may be the whole file.
                if next == 1 { size.min(self.limits.put.max(limits.smallest)) } else { size }
            }
        };
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// Returns how many parts are copies of what is published; `None` if nothing is to be copied.
    fn copies(&self) -> Option<u32> {
        let limits = self.limits.parts.filter(|_| self.held_from > 0)?;
        Some(parts::copy_count(&limits, limits.copies?, self.held_from))
    }

    /// Memory for `bytes` more. Waits only for parts of this file, which arrive whatever others do, and
    /// never for other files: the same thread may be what they wait for. With nothing to wait for,
    /// the file gets the memory all the same, one part at most.
    fn reserve(&mut self, bytes: usize) -> Result<Reservation> {
        let budget = &self.connection.process.budget;
        loop {
            if let Some(reservation) = budget.try_reserve(bytes) {
                return Ok(reservation);
            }
            match &mut self.upload {
                Some(upload) if upload.in_flight() > 0 => {
                    self.connection.block_on(upload.arrival())?;
                }
                _ => {
                    let part = self.object.store.settings().write_part;
                    ensure!(
                        self.limits.parts.is_some()
                            || self.limits.has_upload
                            || self.held.len() + bytes <= part,
                        Error::resource_exhausted(format_args!(
                            "{}: the memory budget of {} bytes is used up, and without an upload the file is in memory \
                             until it is closed; raise the budget, or write smaller files",
                            self.object.name,
                            budget.limit()
                        ))
                    );
                    return Ok(budget.overdraw(bytes));
                }
            }
        }
    }

    /// Sends what is held as the next part.
    fn send_part(&mut self) -> Result<()> {
        let (connection, object) = (&self.connection, &self.object);
        ensure!(
            self.limits.parts.is_some() || self.limits.has_upload,
            Error::resource_exhausted(format_args!(
                "{}: the store takes objects of at most {} bytes; write smaller files",
                object.name, self.limits.put
            ))
        );
        let copies = self.copies();
        let most = match self.limits.parts {
            Some(_) => object.store.settings().write_concurrency.max(1),
            // One on its way, and one that waits for it.
            None => 2,
        };
        if self.upload.is_none() && !self.undecided.is_empty() {
            // Bytes that were sent as parts are no longer in memory to compare.
            self.settle()?;
            self.undecided.clear();
            return self.send_part();
        }
        let free_place = |upload: &mut Upload<C::Store>| -> Result<()> {
            while upload.in_flight() >= most {
                connection.block_on(upload.arrival())?;
            }
            Ok(())
        };
        if self.upload.is_none() {
            let (object, mode) = match self.limits.publication {
                Publication::Rename => (&object.staged(), PutMode::Overwrite),
                _ => (object, self.mode.clone()),
            };
            let process = &connection.process;
            let upload = self.upload.insert(match self.limits.parts {
                Some(limits) => Upload::Parts(PartsUpload::start(object, process, limits, mode)),
                None => Upload::Sequence(Sequence::start(object, process, mode)),
            });
            if let (Some(count), Some(published)) = (copies, self.mode.stored()) {
                for range in parts::copies(count, published.size) {
                    free_place(upload)?;
                    if let Upload::Parts(upload) = upload {
                        upload.copy(published, range);
                    }
                }
            }
        }
        let upload = self.upload.as_mut().expect("begun above, if not before");
        free_place(upload)?;
        self.held_from += self.held.len() as u64;
        upload.send(self.held.take())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        let settings = self.settings();
        let is_too_soon = self
            .published_at
            .is_some_and(|published_at| published_at.elapsed() < settings.flush_interval);
        // Without copies the next version would have to be sent from its first byte on.
        let is_whole = self.upload.is_some() && !self.is_copied(self.len);
        // An empty file is published when it is closed.
        if !settings.publish_on_flush || is_too_soon || is_whole || self.len == 0 {
            return Ok(());
        }
        self.publish()
    }

    pub(super) fn close(&mut self) -> Result<()> {
        self.publish()?;
        // TensorFlow may keep the file for a while.
        self.held = Buffer::default();
        Ok(())
    }

    /// Whether the store can copy an object of `len` bytes into the next version.
    fn is_copied(&self, len: u64) -> bool {
        let copies = self.limits.parts.and_then(|parts| parts.copies);
        copies.is_some_and(|copies| len >= copies.smallest.max(1))
    }

    /// Makes everything appended so far visible.
    fn publish(&mut self) -> Result<()> {
        if self.mode.stored().is_some_and(|published| published.size == self.len) {
            return Ok(());
        }
        if self.unpublished.is_deleted() {
            // As with any file that is deleted while it is open: writing goes on, but nobody sees it.
            if !mem::replace(&mut self.goes_nowhere, true) {
                log::warn!(
                    "{}: this process deleted or renamed it while it was open for writing; what is still \
                     written goes nowhere",
                    self.object.name
                );
            }
            return Ok(());
        }
        let listings = Arc::clone(&self.connection.listings);
        let began = listings.begin();
        let stored = if self.upload.is_none() && self.held_from == 0 {
            self.put()
        } else {
            self.publish_parts().or_else(|error| self.fail(error))
        };
        let stored = match stored {
            Ok(stored) if stored.size != self.len => self.fail(Error::data_loss(format_args!(
                "{}: the store says that it has {} bytes of the {} that were written; write it again",
                self.object.name, stored.size, self.len
            ))),
            stored => stored,
        };
        self.was_told = stored.is_err();
        let stored = stored.inspect_err(|_| {
            // It may have been done all the same.
            listings.invalidate(&self.object.name);
        })?;
        let ttl = self.settings().listing_ttl;
        listings.record_write(&self.object.name, Some(stored.known()), began, ttl);
        self.unpublished.mark_published();
        self.mode = PutMode::Update(stored);
        self.published_at = Some(Instant::now());
        if self.is_copied(self.len) {
            self.held = Buffer::default();
            self.held_from = self.len;
        }
        Ok(())
    }

    /// Stores all of the file in one request. What is held stays, so this can be tried again.
    fn put(&mut self) -> Result<StoredObject> {
        self.settle()?;
        let content = self.held.share();
        let mut is_open = self.undecided.contains(&self.len);
        let (object, mode) = (&self.object, &self.mode);
        let (store, to) = (&object.store, object.target(mode));
        let stored = self.connection.block_on(async {
            match self.limits.publication {
                Publication::Rename => by_rename::put(store, to, &content, &mut is_open).await,
                _ => commit::commit(&**store, to, Payload::Whole(&content), &mut is_open).await,
            }
        });
        if stored.is_ok() {
            self.undecided.clear();
        } else if is_open && !self.undecided.contains(&self.len) {
            self.undecided.push(self.len);
        }
        stored
    }

    /// Finds out whether the store has one of the shorter versions whose publication failed. Then the next version
    /// replaces that one.
    fn settle(&mut self) -> Result<()> {
        let shorter = self.undecided.iter().filter(|&&len| len != self.len);
        if shorter.clone().next().is_none() || self.mode == PutMode::Overwrite {
            return Ok(());
        }
        let all = self.held.share();
        let contents: Vec<_> = shorter.map(|&len| all.prefix(len as usize)).collect();
        let (object, mode) = (&self.object, &self.mode);
        let found = commit::find_ours(&*object.store, object.target(mode), &contents);
        if let Some(found) = self.connection.block_on(found)? {
            self.undecided.retain(|&len| len == self.len);
            self.mode = PutMode::Update(found);
        }
        Ok(())
    }

    fn publish_parts(&mut self) -> Result<StoredObject> {
        if !self.held.is_empty() {
            self.send_part()?;
        }
        let upload = self.upload.as_mut().expect("there are bytes that are not published");
        let stored = self.connection.block_on(async {
            let made = upload.complete().await;
            match self.limits.publication {
                Publication::Rename if made.is_ok() => {
                    let (store, to) = (&self.object.store, self.object.target(&self.mode));
                    let temporary = upload.name();
                    by_rename::publish(store, to, temporary, made, self.len, &mut false).await
                }
                _ => made,
            }
        })?;
        self.upload = None;
        Ok(stored)
    }

    /// The file cannot be completed any more.
    #[cold]
    pub(super) fn fail<T>(&mut self, error: Error) -> Result<T> {
        let name = self.object.name.to_string();
        // An upload under a temporary name fails with that one, which the user has never seen.
        let error = match self.upload.is_some() && !error.message().starts_with(&name) {
            true => error.context(name),
            false => error,
        };
        self.has_failed(&error);
        Err(error)
    }

    #[cold]
    pub(super) fn has_failed(&mut self, error: &Error) {
        self.abort();
        self.held = Buffer::default();
        self.broken = Some(again(error));
    }

    /// Aborts the upload, if there is one.
    fn abort(&mut self) {
        if let Some(upload) = self.upload.take() {
            let aborted = upload.abort();
            let _ = self
                .connection
                .block_on(async { tokio::time::timeout(ABORT_PATIENCE, aborted).await });
        }
    }

    pub(super) fn give_up(mut self: Box<Self>) {
        self.abort();
        let published = self.mode.stored().map(|published| published.size);
        if published.is_none() {
            self.unpublished.abandon();
        }
        let lost = self.len.saturating_sub(published.unwrap_or(0));
        // A reported failure is not reported again.
        if lost > 0 && self.broken.is_none() && !self.was_told && !self.unpublished.is_deleted() {
            let rest = if published.is_some() { "; what was there before stays" } else { "" };
            let is_lock = self.object.name.key.ends_with(LOCK_FILE);
            log::log!(
                if is_lock { log::Level::Debug } else { log::Level::Warn },
                "{}: dropped without being closed: {lost} bytes are lost{rest}",
                self.object.name
            );
        }
    }

    /// Makes `object`, which is in the store, the beginning of the file.
    pub(super) fn go_on_after(&mut self, object: &StoredObject) -> Result<()> {
        self.unpublished.set_len(object.size);
        self.unpublished.mark_published();
        if self.is_copied(object.size) {
            self.len = object.size;
            self.held_from = object.size;
            return Ok(());
        }
        let read = self.fetch(object);
        read.context(format_args!("{}: cannot be appended to", self.object.name))
    }

    /// Reads an object, so that it can be sent again with what comes.
    fn fetch(&mut self, object: &StoredObject) -> Result<()> {
        let connection = Arc::clone(&self.connection);
        let name = self.object.name.clone();
        let store = Arc::clone(&self.object.store);
        let mut whole = Whole::new(&connection, store, name, object);
        let mut piece = BytesMut::with_capacity(PIECE);
        while connection.block_on(whole.fill(&mut piece))? > 0 {
            self.append(&piece)?;
            piece.clear();
        }
        if self.upload.is_some() || self.held.is_empty() {
            return Ok(());
        }
        let content = self.held.share();
        let (store, name) = (&self.object.store, &self.object.name);
        let is_same =
            connection.block_on(commit::is_ours(&**store, name, Payload::Whole(&content), object));
        ensure!(
            is_same? != Some(false),
            Error::data_loss(format_args!(
                "{name}: get: what was read is not what the store's checksum says; open it again"
            ))
        );
        Ok(())
    }
}
