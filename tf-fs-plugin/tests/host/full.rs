//! `memfs` with every operation, each of which fails or panics where a test requests it.

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

/// Returns how many filesystems, files, regions and transactions are alive, in a test of one thread.
pub(crate) fn alive() -> i64 {
    ALIVE.get()
}

/// Returns the transaction that this thread started last.
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

    fn set_option(&self, option: &FilesystemOption) -> Result<()> {
        if option.name == "fixed" {
            return Err(Error::invalid_argument("option `fixed` cannot be set"));
        }
        lock(&self.options).insert(option.name.clone(), option.clone());
        Ok(())
    }
}

/// Implements the filesystem with these items, and with operations that a test may make fail before their bodies run.
macro_rules! filesystem {
    ({ $($items:tt)* } $this:ident {
        $($op:ident($($arg:ident: $type:ty),*) -> $answer:ty $body:block)*
    }) => {
        #[tf_fs_plugin::filesystem]
        impl Filesystem for Full {
            $($items)*
            $(
                fn $op(&self, $($arg: $type),*) -> Result<$answer> {
                    trip(stringify!($op))?;
                    let $this = self;
                    $body
                }
            )*
        }
    };
}
filesystem! {
    {
        type Reader = Reader;
        type Writer = Writer;
        type Region = Region;
        type Transaction = Tx;

        fn new(scheme: &str) -> Result<Self> {
            trip("init")?;
            let (options, transactions) = Default::default();
            Ok(born(Self { files: MemFs::new(scheme)?, options, transactions }))
        }
        fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), DeleteRecursivelyError> {
            trip("delete_recursively").map_err(|error| DeleteRecursivelyError { error, files: 3, dirs: 2 })?;
            Ok(self.delete(uri)?)
        }
        fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
            match trip("paths_exist") {
                // Too few results.
                Err(_) => Vec::new(),
                Ok(()) => uris.iter().map(|uri| defaults::path_exists(&self.files, *uri)).collect(),
            }
        }
        fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
            trip_or_panic("translate_name");
            let name = Uri::canonical(uri).into_owned();
            // What TensorFlow expects of the root.
            if name == b"full:///" { b"/".to_vec() } else { name }
        }
        fn flush_caches(&self) {
            trip_or_panic("flush_caches");
        }
        fn decode_transaction_token(&self, transaction: &Arc<Tx>) -> String {
            trip_or_panic("decode_transaction_token");
            let paths = lock(&transaction.paths);
            let paths: Vec<String> = paths.iter().map(|path| Uri::new(path).to_string()).collect();
            format!("[{}]\0", paths.join(", "))
        }
    }
    this {
        new_random_access_file(uri: Uri<'_>) -> Reader {
            this.files.new_random_access_file(uri).map(|file| born(Reader(file)))
        }
        new_writable_file(uri: Uri<'_>) -> Writer {
            this.files.new_writable_file(uri).map(|file| born(Writer(file)))
        }
        new_appendable_file(uri: Uri<'_>) -> Writer {
            this.files.new_appendable_file(uri).map(|file| born(Writer(file)))
        }
        new_read_only_memory_region_from_file(uri: Uri<'_>) -> Region {
            let mut file = this.files.new_random_access_file(uri)?;
            let mut content = vec![0; file.tell()? as usize];
            file.read_at(0, &mut ReadBuf::from_slice(&mut content))?;
            Ok(born(Region(content)))
        }
        create_dir(uri: Uri<'_>) -> () { this.files.create_dir(uri) }
        recursively_create_dir(uri: Uri<'_>) -> () { defaults::recursively_create_dir(this, uri) }
        delete_file(uri: Uri<'_>) -> () { this.files.delete_file(uri) }
        delete_dir(uri: Uri<'_>) -> () { this.files.delete_dir(uri) }
        rename_file(src: Uri<'_>, dst: Uri<'_>) -> () { defaults::rename_file(this, src, dst) }
        copy_file(src: Uri<'_>, dst: Uri<'_>) -> () { defaults::copy_file(this, src, dst) }
        path_exists(uri: Uri<'_>) -> bool { defaults::path_exists(&this.files, uri) }
        stat(uri: Uri<'_>) -> FileStatistics {
            let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
            Ok(this.files.stat(uri)?.with_modified(time))
        }
        is_directory(uri: Uri<'_>) -> bool { Ok(this.files.stat(uri)?.is_directory) }
        get_file_size(uri: Uri<'_>) -> u64 {
            let statistics = this.files.stat(uri)?;
            ensure!(!statistics.is_directory, Error::expected_file(uri));
            Ok(statistics.length)
        }
        get_children(uri: Uri<'_>) -> Entries { this.files.get_children(uri) }
        get_matching_paths(pattern: Uri<'_>) -> Entries { defaults::get_matching_paths(this, pattern) }
        start_transaction() -> Arc<Tx> { Ok(this.begin()) }
        end_transaction(transaction: Arc<Tx>) -> () {
            lock(&this.transactions).retain(|other| !Arc::ptr_eq(other, &transaction));
            Ok(())
        }
        add_to_transaction(uri: Uri<'_>, transaction: &Arc<Tx>) -> () {
            let other = this.transaction_of(uri).filter(|other| !Arc::ptr_eq(other, transaction));
            if other.is_some() {
                return Err(Error::failed_precondition(format_args!("{uri} is in another transaction")));
            }
            lock(&transaction.paths).push(uri.as_bytes().to_vec());
            Ok(())
        }
        get_transaction_for_path(uri: Uri<'_>) -> Option<Arc<Tx>> { Ok(this.transaction_of(uri)) }
        get_or_start_transaction_for_path(uri: Uri<'_>) -> Arc<Tx> {
            Ok(this.transaction_of(uri).unwrap_or_else(|| {
                let transaction = this.begin();
                lock(&transaction.paths).push(uri.as_bytes().to_vec());
                transaction
            }))
        }
        get_filesystem_configuration() -> Vec<FilesystemOption> {
            Ok(lock(&this.options).values().cloned().collect())
        }
        set_filesystem_configuration(options: &[FilesystemOption]) -> () {
            options.iter().try_for_each(|option| this.set_option(option))
        }
        get_filesystem_configuration_option(key: &str) -> FilesystemOption {
            let option = lock(&this.options).get(key).cloned();
            option.ok_or_else(|| Error::not_found(format_args!("option `{key}`")))
        }
        set_filesystem_configuration_option(option: &FilesystemOption) -> () { this.set_option(option) }
        get_filesystem_configuration_keys() -> Vec<String> {
            Ok(lock(&this.options).keys().cloned().collect())
        }
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
