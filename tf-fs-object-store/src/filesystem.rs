//! A store as a filesystem of TensorFlow.

use crate::{Client, Connect, Connection, CurrentConnection, Name, Process, Reader, Writer};
use std::any::{Any, TypeId};
use std::fmt::{self, Debug};
use std::sync::{Arc, PoisonError};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::Mutex;

/// A store as a plugin: how its client is made, and what differs from other stores.
///
/// [`ObjectFilesystem`] turns it into a filesystem, and `filesystem_plugins! { "mem" => ObjectFilesystem<Memory> }`
/// into the plugin. A process has one value of it, which all schemes share.
pub trait StorePlugin: Debug + Default + Send + Sync + 'static {
    /// The store.
    type Client: Client;

    /// Creates the client with the current settings. `before` is this process's client with other settings. It is
    /// called at the first use, and again in a forked child; not when TensorFlow is imported.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings are wrong.
    fn connect(&self, before: Option<&Self::Client>) -> Result<Self::Client>;

    /// Returns whether the client has the current settings. If not, [`connect`](Self::connect) makes another.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings are wrong.
    fn is_up_to_date(&self, _client: &Self::Client) -> Result<bool> {
        Ok(true)
    }

    /// Returns whether `bucket` is what the new client would open under this name.
    fn can_reuse_bucket(
        &self,
        _client: &Self::Client,
        _name: &str,
        _bucket: &BucketOf<Self>,
    ) -> bool {
        false
    }

    /// Returns the threads and memory of the process.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings are wrong.
    fn resources(&self) -> Result<Resources> {
        Ok(Resources::default())
    }

    /// Returns a file that the plugin itself provides under this name: a report on itself.
    ///
    /// # Errors
    /// If the settings are wrong.
    fn report(
        &self,
        _filesystem: &ObjectFilesystem<Self>,
        _name: &Name,
    ) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Returns the options that TensorFlow can set.
    ///
    /// # Errors
    /// If the settings are wrong.
    fn options(&self) -> Result<Vec<FilesystemOption>> {
        Ok(Vec::new())
    }

    /// Sets options.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is no such option, `INVALID_ARGUMENT` for a wrong value. Then none is set.
    fn set_options(&self, options: &[FilesystemOption]) -> Result<()> {
        match options.first() {
            Some(option) => Err(Error::not_found(format_args!(
                "{}://: option {}",
                Self::Client::scheme(),
                option.name
            ))),
            None => Ok(()),
        }
    }
}

/// A bucket of a plugin's store.
pub type BucketOf<P> = <<P as StorePlugin>::Client as Client>::Store;

/// Resources of a process, for all its stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resources {
    /// Worker threads. The number of the first plugin that is used applies.
    pub threads: usize,
    /// Bytes of memory for data on its way.
    pub memory_budget: usize,
}

impl Resources {
    /// Creates resources of so many worker threads, and so many bytes of memory.
    pub fn new(threads: usize, memory_budget: usize) -> Self {
        Self { threads, memory_budget }
    }
}

impl Default for Resources {
    /// Returns 4 threads and 1 GiB.
    fn default() -> Self {
        Self::new(4, 1 << 30)
    }
}

/// The filesystem of a store. All values of it share one connection in a process, for all schemes.
pub struct ObjectFilesystem<P: StorePlugin>(Arc<Shared<P>>);

struct Shared<P: StorePlugin> {
    plugin: P,
    /// Of this process, or of its parent until the first use after a fork.
    connection: CurrentConnection<P::Client>,
}

/// The shared part of each type of plugin.
static SHARED: Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>> = Mutex::new(Vec::new());

impl<P: StorePlugin> ObjectFilesystem<P> {
    /// Returns the filesystem of this plugin in this process.
    pub fn shared() -> Self {
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(id, _)| *id == TypeId::of::<P>());
        if let Some(shared) = found.and_then(|(_, any)| Arc::clone(any).downcast().ok()) {
            return Self(shared);
        }
        let new = Self::new_with(P::default());
        all.push((TypeId::of::<P>(), Arc::clone(&new.0) as Arc<dyn Any + Send + Sync>));
        new
    }

    /// Creates a filesystem of this plugin that shares nothing with others: for tests, and for programs with several.
    pub fn new_with(plugin: P) -> Self {
        Self(Arc::new(Shared { plugin, connection: CurrentConnection::default() }))
    }

    /// Returns the plugin, which creates the client.
    pub fn plugin(&self) -> &P {
        &self.0.plugin
    }

    fn report(&self, name: &Name) -> Result<Option<Vec<u8>>> {
        self.plugin().report(self, name)
    }
}

impl<P: StorePlugin> Clone for ObjectFilesystem<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: StorePlugin> Debug for ObjectFilesystem<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectFilesystem").field(&self.0.plugin).finish()
    }
}

impl<P: StorePlugin> Connect for ObjectFilesystem<P> {
    type Client = P::Client;

    fn connection(&self) -> Result<Arc<Connection<P::Client>>> {
        let plugin = self.plugin();
        self.0.connection.get(
            |client| plugin.is_up_to_date(client),
            |before| {
                let client = plugin.connect(before.map(|before| &before.client))?;
                let Resources { threads, memory_budget } = plugin.resources()?;
                let process = Process::current(P::Client::scheme(), threads, memory_budget)?;
                Ok(match before {
                    Some(before) => before.renewed(process, client, |client, name, bucket| {
                        plugin.can_reuse_bucket(client, name, bucket)
                    }),
                    None => Connection::new(process, client),
                })
            },
        )
    }
}

/// A file open for reading.
#[derive(Debug)]
pub enum File<P: StorePlugin> {
    /// An object of the store.
    Object(Reader<ObjectFilesystem<P>>),
    /// The plugin's report on itself, from when the file was opened.
    Report(Vec<u8>),
}

impl<P: StorePlugin> RandomAccessFile for File<P> {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        match self {
            Self::Object(object) => object.read_at(offset, buf),
            Self::Report(text) => {
                buf.fill_from(text, offset);
                Ok(())
            }
        }
    }
}

#[filesystem]
impl<P: StorePlugin> Filesystem for ObjectFilesystem<P> {
    type Reader = File<P>;
    type Writer = Writer<Self>;
    type Region = AlignedRegion;

    // Runs at `import tensorflow`: no thread, no connection, no look at the environment yet.
    fn new(_scheme: &str) -> Result<Self> {
        Ok(Self::shared())
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<File<P>> {
        let name = P::Client::file(uri)?;
        match self.report(&name)? {
            Some(text) => Ok(File::Report(text)),
            None => Reader::open(self, name).map(File::Object),
        }
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Writer<Self>> {
        Writer::create(self, P::Client::file(uri)?)
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Writer<Self>> {
        Writer::append_to(self, P::Client::file(uri)?)
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<AlignedRegion> {
        let file = Reader::open(self, P::Client::file(uri)?)?;
        loop {
            let len = file.size();
            ensure!(
                len > 0,
                Error::invalid_argument(format_args!("{uri}: an empty file has no memory region"))
            );
            let region = AlignedRegion::read(&file, len);
            // Otherwise the remembered length was out of date, and the first read found another.
            if file.size() == len {
                return region.context(uri);
            }
        }
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.create_dir(&P::Client::parse(uri)?)
    }

    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.recursively_create_dir(&P::Client::parse(uri)?)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.delete_file(&P::Client::file(uri)?)
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        self.connection()?.delete_dir(&P::Client::parse(uri)?)
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), DeleteRecursivelyError> {
        self.connection()?.delete_recursively(&P::Client::parse(uri)?)
    }

    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.connection()?.rename_file(&P::Client::parse(src)?, &P::Client::parse(dst)?)
    }

    fn copy_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        self.connection()?.copy_file(&P::Client::parse(src)?, &P::Client::parse(dst)?)
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        let name = P::Client::parse(uri)?;
        Ok(self.report(&name)?.is_some() || self.connection()?.path_exists(&name)?)
    }

    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        match self.connection() {
            Ok(connection) => connection.paths_exist(uris),
            Err(error) => {
                uris.iter().map(|_| Err(Error::new(error.code(), format!("{error:#}")))).collect()
            }
        }
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        let name = P::Client::parse(uri)?;
        match self.report(&name)? {
            Some(text) => Ok(FileStatistics::file(text.len() as u64)),
            None => self.connection()?.stat(&name),
        }
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        self.connection()?.is_directory(&P::Client::parse(uri)?)
    }

    // Keys are exact: `a//b`, `./a` and `a/../b` are distinct names. Only the list of all buckets has several names, of
    // which TensorFlow wants to see this one.
    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        match Uri::new(uri) {
            root if root.host().is_empty() && root.path().iter().all(|&byte| byte == b'/') => {
                b"/".to_vec()
            }
            _ => uri.to_vec(),
        }
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        self.connection()?.get_children(&P::Client::parse(uri)?)
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        self.connection()?.get_matching_paths(pattern)
    }

    fn flush_caches(&self) {
        self.0.connection.flush_caches();
    }

    fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        self.plugin().options()
    }

    fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        self.plugin().set_options(options)
    }

    fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        self.plugin().set_options(std::slice::from_ref(option))
    }
}
