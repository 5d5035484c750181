//! Files open for writing.
//!
//! What is appended is collected in a [`Buffer`] until it is a part, which is uploaded while TensorFlow goes on
//! writing. A file of at most one part is stored by one PUT when it is closed or flushed. Nothing is visible
//! before the whole object is.
//!
//! A flush publishes what there is. Up to 5 MiB, which S3 wants of a part, the bytes stay in memory and are sent
//! again the next time; from then on the next version is made in the store, of a copy of the published object
//! and the new bytes.

mod body;
pub(crate) mod checksum;
pub(crate) mod course;
pub(crate) mod guard;
pub(crate) mod object;
mod parts;
mod upload;

use crate::Filesystem;
use crate::connection::Connection;
use guard::Before;
use object::{Kept, Stored, Target};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tf_fs_object_store::{Buffer, Connect as _, Name, PendingWrite, Reservation};
use tf_fs_plugin::prelude::*;
use upload::{Upload, again};

/// How long giving a file up waits for the store. It goes on in the background.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);

/// `Dataset.cache` writes such a file, drops it open and deletes it: nothing is lost.
const LOCK_FILE: &str = ".lockfile";

/// An object open for writing. It becomes visible whole, at a flush, a sync or the close; whoever drops
/// it without closing it gives up what was not published.
#[derive(Debug)]
pub(crate) struct Writer(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    connection: Arc<Connection>,
    target: Arc<Target>,
    pending: PendingWrite,
    /// What the store has to have under this name, when something is published.
    before: Before,
    published_at: Option<Instant>,
    /// How long the file was at an attempt to publish it that failed, but may have been done.
    undecided: Option<u64>,
    /// The last bytes of the file: all of it, or what comes after the parts of `upload` or, without one,
    /// after what is published.
    held: Buffer,
    /// Where in the file `held` begins.
    held_from: u64,
    upload: Option<Upload>,
    len: u64,
    /// Whether the log says that what is written goes nowhere.
    goes_nowhere: bool,
    /// Whether the last attempt to publish it failed.
    was_told: bool,
    /// Why the file cannot be completed any more.
    broken: Option<Error>,
}

impl Writer {
    /// A new file; asks the store nothing.
    pub(crate) fn create(s3: &Filesystem, name: Name) -> Result<Self> {
        let connection = s3.connection()?;
        let bucket = connection.block_on(connection.bucket(&name.bucket))?;
        Ok(Self::new(connection, Target { bucket, name, kept: Kept::default() }))
    }

    /// A file that goes on after the bytes of an object, or a new one.
    pub(crate) fn append_to(s3: &Filesystem, name: Name) -> Result<Self> {
        let connection = s3.connection()?;
        let bucket = connection.block_on(connection.bucket(&name.bucket))?;
        match connection.block_on(object::find(&bucket, &name))? {
            None => {
                let mut writer =
                    Self::new(connection, Target { bucket, name, kept: Kept::default() });
                // Had somebody else written it meanwhile, theirs would have to be appended to.
                writer.open()?.before = Before::Nothing;
                Ok(writer)
            }
            Some((object, kept)) => {
                let mut writer = Self::new(connection, Target { bucket, name, kept });
                writer.open()?.go_on_after(object)?;
                Ok(writer)
            }
        }
    }

    fn new(connection: Arc<Connection>, target: Target) -> Self {
        Self(Some(Box::new(Open {
            pending: connection.pending.begin(&target.name),
            connection,
            target: Arc::new(target),
            before: Before::Anything,
            published_at: None,
            undecided: None,
            held: Buffer::default(),
            held_from: 0,
            upload: None,
            len: 0,
            goes_nowhere: false,
            was_told: false,
            broken: None,
        })))
    }

    fn open(&mut self) -> Result<&mut Open> {
        let open = self.0.as_mut().expect("taken only by `drop`");
        ensure!(
            open.connection.is_of_this_process(),
            Error::failed_precondition(format_args!(
                "{}: was opened for writing before this process was forked; open it in the process that writes it",
                open.target.name
            ))
        );
        match &open.broken {
            Some(error) => Err(again(error)),
            None => Ok(open),
        }
    }
}

impl WritableFile for Writer {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        let open = self.open()?;
        open.append(data).or_else(|error| open.fail(error))
    }

    fn tell(&mut self) -> Result<u64> {
        Ok(self.open()?.len)
    }

    fn flush(&mut self) -> Result<()> {
        let open = self.open()?;
        let settings = &open.target.bucket.settings;
        let is_too_soon = open
            .published_at
            .is_some_and(|published_at| published_at.elapsed() < settings.engine.flush_interval);
        // An empty file is published when it is closed.
        if !settings.engine.publish_on_flush || is_too_soon || open.len == 0 {
            return Ok(());
        }
        open.publish()
    }

    fn close(&mut self) -> Result<()> {
        let open = self.open()?;
        open.publish()?;
        // TensorFlow may keep the file for a while.
        open.held = Buffer::default();
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        if open.connection.is_of_this_process() {
            open.give_up();
        } else {
            // The upload is the parent's, and so are the locks in here, which nobody may ever open.
            mem::forget(open);
        }
    }
}

impl Open {
    fn append(&mut self, mut data: &[u8]) -> Result<()> {
        if let Some(upload) = &mut self.upload {
            upload.arrivals()?;
        }
        while !data.is_empty() {
            let part = self.part_size();
            if self.held.len() == part {
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
        self.pending.set_len(self.len);
        Ok(())
    }

    /// The bytes of the part that `held` becomes.
    fn part_size(&self) -> usize {
        let settings = &self.target.bucket.settings;
        let next = match &self.upload {
            Some(upload) => upload.next(),
            None if self.held_from > 0 => parts::copy_count(self.held_from) + 1,
            None => 1,
        };
        let size =
            parts::size(settings.engine.write_part as u64, next, settings.engine.write_parts_equal);
        usize::try_from(size).unwrap_or(usize::MAX)
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
                _ => return Ok(budget.overdraw(bytes)),
            }
        }
    }

    /// Sends what is held as the next part.
    fn send_part(&mut self) -> Result<()> {
        let (connection, target) = (&self.connection, &self.target);
        let most = target.bucket.settings.engine.write_concurrency.max(1);
        let free_place = |upload: &mut Upload| -> Result<()> {
            while upload.in_flight() >= most {
                connection.block_on(upload.arrival())?;
            }
            Ok(())
        };
        if self.upload.is_none() {
            let upload = Upload::start(target, &connection.process, self.before.clone());
            let upload = self.upload.insert(upload);
            if self.held_from > 0
                && let Some(published) = self.before.stored()
            {
                for range in parts::copies(published.len) {
                    free_place(upload)?;
                    upload.copy(published, range);
                }
            }
        }
        let upload = self.upload.as_mut().expect("begun above, if not before");
        free_place(upload)?;
        self.held_from += self.held.len() as u64;
        upload.send(self.held.take())
    }

    /// Makes everything appended so far visible.
    fn publish(&mut self) -> Result<()> {
        if self.before.stored().is_some_and(|published| published.len == self.len) {
            return Ok(());
        }
        if self.pending.is_deleted() {
            // As with any file that is deleted while it is open: writing goes on, but nobody sees it.
            if !mem::replace(&mut self.goes_nowhere, true) {
                log::warn!(
                    "{}: this process deleted or renamed it while it was open for writing; what is still \
                     written goes nowhere",
                    self.target.name
                );
            }
            return Ok(());
        }
        let listings = Arc::clone(&self.connection.listings);
        let began = listings.begin();
        let stored = if self.upload.is_none() && self.held_from == 0 {
            // What is held stays, so this can be tried again.
            let content = self.held.share();
            let mut is_open = self.undecided == Some(self.len);
            let put = self.target.put(&content, &self.before, &mut is_open);
            let stored = self.connection.block_on(put);
            self.undecided = (is_open && stored.is_err()).then_some(self.len);
            stored
        } else {
            self.publish_parts().or_else(|error| self.fail(error))
        };
        self.was_told = stored.is_err();
        let stored = stored.inspect_err(|_| {
            // It may have been done all the same.
            listings.changed(&self.target.name);
        })?;
        let ttl = self.target.bucket.settings.engine.listing_ttl;
        listings.wrote(&self.target.name, Some(stored.known()), began, ttl);
        self.pending.published();
        self.before = Before::This(stored);
        self.published_at = Some(Instant::now());
        if self.len >= parts::SMALLEST {
            // The store can copy it from now on.
            self.held = Buffer::default();
            self.held_from = self.len;
        }
        Ok(())
    }

    fn publish_parts(&mut self) -> Result<Stored> {
        if !self.held.is_empty() {
            self.send_part()?;
        }
        let upload = self.upload.as_mut().expect("there are bytes that are not published");
        let stored = self.connection.block_on(upload.complete())?;
        self.upload = None;
        Ok(stored)
    }

    /// The file cannot be completed any more.
    #[cold]
    fn fail<T>(&mut self, error: Error) -> Result<T> {
        self.abort();
        self.held = Buffer::default();
        self.broken = Some(again(&error));
        Err(error)
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

    fn give_up(mut self: Box<Self>) {
        self.abort();
        let published = self.before.stored().map(|published| published.len);
        if published.is_none() {
            self.pending.given_up();
        }
        let lost = self.len - published.unwrap_or(0);
        // Whoever was told of a failure knows.
        if lost > 0 && self.broken.is_none() && !self.was_told && !self.pending.is_deleted() {
            let rest = if published.is_some() { "; what was there before stays" } else { "" };
            let is_lock = self.target.name.key.ends_with(LOCK_FILE);
            log::log!(
                if is_lock { log::Level::Debug } else { log::Level::Warn },
                "{}: dropped without being closed: {lost} bytes are lost{rest}",
                self.target.name
            );
        }
    }

    /// Makes `object`, which is in the store, the beginning of the file.
    fn go_on_after(&mut self, object: Stored) -> Result<()> {
        self.len = object.len;
        self.pending.set_len(self.len);
        self.pending.published();
        if object.len >= parts::SMALLEST {
            self.held_from = object.len;
        } else {
            self.fetch(&object)?;
        }
        self.before = Before::This(object);
        Ok(())
    }

    /// Reads a small object, so that it can be sent again with what comes.
    fn fetch(&mut self, object: &Stored) -> Result<()> {
        let len = usize::try_from(object.len).expect("a small object");
        let reservation = self.reserve(len)?;
        let target = Arc::clone(&self.target);
        let bytes = self.connection.block_on(target.fetch(object))?;
        self.held.grow(len, reservation);
        self.held.append(&bytes);
        Ok(())
    }
}
