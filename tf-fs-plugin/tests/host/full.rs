//! `memfs` with every operation, which fails or panics where a test wants it.

use crate::trips::{trip, trip_or_panic};
use memfs::{File, MemFs};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use tf_fs_plugin::__private::testing::defaults;
use tf_fs_plugin::*;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The filesystem.
pub(crate) struct Full {
    files: MemFs,
    options: Mutex<BTreeMap<String, FilesystemOption>>,
    transactions: Mutex<Vec<Arc<Tx>>>,
}

thread_local! {
    /// How many filesystems and open things were made on this thread, less those dropped on it.
    static ALIVE: Cell<i64> = const { Cell::new(0) };
    /// The transaction that was started last.
    static TRANSACTION: RefCell<Weak<Tx>> = const { RefCell::new(Weak::new()) };
}

/// How many filesystems, files, regions and transactions are alive, in a test of one thread.
pub(crate) fn alive() -> i64 {
    ALIVE.get()
}

/// The transaction that this thread started last.
pub(crate) fn last_transaction() -> Weak<Tx> {
    TRANSACTION.with_borrow(Weak::clone)
}

macro_rules! counted {
    ($($type:ident, $place:literal;)*) => {$(
        impl Drop for $type {
            fn drop(&mut self) {
                ALIVE.set(ALIVE.get() - 1);
                trip_or_panic($place);
            }
        }
    )*};
}
counted! {
    Full, "drop filesystem";
    Reader, "drop reader";
    Writer, "drop writer";
    Region, "drop region";
    Tx, "drop transaction";
}

fn born<T>(value: T) -> T {
    ALIVE.set(ALIVE.get() + 1);
    value
}

pub(crate) struct Reader(File);

pub(crate) struct Writer(File);

pub(crate) struct Region(Vec<u8>);

/// A transaction: the paths in it.
pub(crate) struct Tx {
    paths: Mutex<Vec<Vec<u8>>>,
}

export!(Full: "full" => Full);

impl Full {
    /// Deletes what is at a path and all below it.
    fn delete(&self, uri: Uri<'_>) -> Result<()> {
        if !self.files.stat(uri)?.is_directory {
            return self.files.delete_file(uri);
        }
        for child in &self.files.get_children(uri)? {
            self.delete(Uri::new(&uri.join(child)))?;
        }
        self.files.delete_dir(uri)
    }

    fn transaction_of(&self, uri: Uri<'_>) -> Option<Arc<Tx>> {
        lock(&self.transactions)
            .iter()
            .find(|transaction| lock(&transaction.paths).iter().any(|path| path == uri.as_bytes()))
            .map(Arc::clone)
    }

    fn begin(&self) -> Arc<Tx> {
        let transaction = Arc::new(born(Tx { paths: Mutex::default() }));
        TRANSACTION.set(Arc::downgrade(&transaction));
        lock(&self.transactions).push(Arc::clone(&transaction));
        transaction
    }

    fn option(&self, key: &str) -> Result<FilesystemOption> {
        lock(&self.options)
            .get(key)
            .cloned()
            .ok_or_else(|| Error::not_found(format_args!("option `{key}`")))
    }

    fn set_option(&self, option: &FilesystemOption) -> Result<()> {
        if option.name == "fixed" {
            return Err(Error::invalid_argument("option `fixed` cannot be set"));
        }
        lock(&self.options).insert(option.name.clone(), option.clone());
        Ok(())
    }
}

#[tf_fs_plugin::filesystem]
impl Filesystem for Full {
    type Reader = Reader;
    type Writer = Writer;
    type Region = Region;
    type Transaction = Tx;

    fn new(scheme: &str) -> Result<Self> {
        trip("init")?;
        Ok(born(Self {
            files: MemFs::new(scheme)?,
            options: Mutex::default(),
            transactions: Mutex::default(),
        }))
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Reader> {
        trip("new_random_access_file")?;
        self.files.new_random_access_file(uri).map(|file| born(Reader(file)))
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Writer> {
        trip("new_writable_file")?;
        self.files.new_writable_file(uri).map(|file| born(Writer(file)))
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Writer> {
        trip("new_appendable_file")?;
        self.files.new_appendable_file(uri).map(|file| born(Writer(file)))
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<Region> {
        trip("new_read_only_memory_region_from_file")?;
        let mut file = self.files.new_random_access_file(uri)?;
        let mut content = vec![0; file.tell()? as usize];
        file.read_at(0, &mut ReadBuf::from_slice(&mut content))?;
        Ok(born(Region(content)))
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        trip("create_dir")?;
        self.files.create_dir(uri)
    }

    fn recursively_create_dir(&self, uri: Uri<'_>) -> Result<()> {
        trip("recursively_create_dir")?;
        defaults::recursively_create_dir(self, uri)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        trip("delete_file")?;
        self.files.delete_file(uri)
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        trip("delete_dir")?;
        self.files.delete_dir(uri)
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), Undeleted> {
        trip("delete_recursively").map_err(|error| Undeleted { error, files: 3, dirs: 2 })?;
        Ok(self.delete(uri)?)
    }

    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        trip("rename_file")?;
        defaults::rename_file(self, src, dst)
    }

    fn copy_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        trip("copy_file")?;
        defaults::copy_file(self, src, dst)
    }

    fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
        trip("path_exists")?;
        defaults::path_exists(&self.files, uri)
    }

    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        match trip("paths_exist") {
            // Too few answers.
            Err(_) => Vec::new(),
            Ok(()) => uris.iter().map(|uri| defaults::path_exists(&self.files, *uri)).collect(),
        }
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        trip("stat")?;
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
        Ok(self.files.stat(uri)?.with_modified(time))
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        trip("is_directory")?;
        Ok(self.files.stat(uri)?.is_directory)
    }

    fn get_file_size(&self, uri: Uri<'_>) -> Result<u64> {
        trip("get_file_size")?;
        let statistics = self.files.stat(uri)?;
        ensure!(!statistics.is_directory, Error::expected_file(uri));
        Ok(statistics.length)
    }

    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        trip_or_panic("translate_name");
        let name = Uri::canonical(uri).into_owned();
        // What TensorFlow expects of the root.
        if name == b"full:///" { b"/".to_vec() } else { name }
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        trip("get_children")?;
        self.files.get_children(uri)
    }

    fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        trip("get_matching_paths")?;
        defaults::get_matching_paths(self, pattern)
    }

    fn flush_caches(&self) {
        trip_or_panic("flush_caches");
    }

    fn start_transaction(&self) -> Result<Arc<Tx>> {
        trip("start_transaction")?;
        Ok(self.begin())
    }

    fn end_transaction(&self, transaction: Arc<Tx>) -> Result<()> {
        trip("end_transaction")?;
        lock(&self.transactions).retain(|other| !Arc::ptr_eq(other, &transaction));
        Ok(())
    }

    fn add_to_transaction(&self, uri: Uri<'_>, transaction: &Arc<Tx>) -> Result<()> {
        trip("add_to_transaction")?;
        match self.transaction_of(uri) {
            Some(other) if !Arc::ptr_eq(&other, transaction) => {
                Err(Error::failed_precondition(format_args!("{uri} is in another transaction")))
            }
            _ => {
                lock(&transaction.paths).push(uri.as_bytes().to_vec());
                Ok(())
            }
        }
    }

    fn get_transaction_for_path(&self, uri: Uri<'_>) -> Result<Option<Arc<Tx>>> {
        trip("get_transaction_for_path")?;
        Ok(self.transaction_of(uri))
    }

    fn get_or_start_transaction_for_path(&self, uri: Uri<'_>) -> Result<Arc<Tx>> {
        trip("get_or_start_transaction_for_path")?;
        Ok(self.transaction_of(uri).unwrap_or_else(|| {
            let transaction = self.begin();
            lock(&transaction.paths).push(uri.as_bytes().to_vec());
            transaction
        }))
    }

    fn decode_transaction_token(&self, transaction: &Arc<Tx>) -> String {
        trip_or_panic("decode_transaction_token");
        let paths = lock(&transaction.paths);
        let paths: Vec<String> = paths.iter().map(|path| Uri::new(path).to_string()).collect();
        format!("[{}]\0", paths.join(", "))
    }

    fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
        trip("get_filesystem_configuration")?;
        Ok(lock(&self.options).values().cloned().collect())
    }

    fn set_filesystem_configuration(&self, options: &[FilesystemOption]) -> Result<()> {
        trip("set_filesystem_configuration")?;
        options.iter().try_for_each(|option| self.set_option(option))
    }

    fn get_filesystem_configuration_option(&self, key: &str) -> Result<FilesystemOption> {
        trip("get_filesystem_configuration_option")?;
        self.option(key)
    }

    fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
        trip("set_filesystem_configuration_option")?;
        self.set_option(option)
    }

    fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
        trip("get_filesystem_configuration_keys")?;
        Ok(lock(&self.options).keys().cloned().collect())
    }
}

impl RandomAccessFile for Reader {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        trip("read")?;
        self.0.read_at(offset, buf)
    }
}

impl WritableFile for Writer {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        trip("append")?;
        self.0.append(data)
    }

    fn tell(&mut self) -> Result<u64> {
        trip("tell")?;
        self.0.tell()
    }

    fn flush(&mut self) -> Result<()> {
        trip("flush")
    }

    fn sync(&mut self) -> Result<()> {
        trip("sync")
    }

    fn close(&mut self) -> Result<()> {
        trip("close")
    }
}

impl ReadOnlyMemoryRegion for Region {
    fn content(&self) -> RegionContent<'_> {
        trip_or_panic("content");
        self.0.as_slice().into()
    }
}
