//! A filesystem around another that fails, waits, reads less or panics when it is told to.

use crate::abi::region_content::RegionContent;
use crate::defaults;
use crate::entries::Entries;
use crate::file::{RandomAccessFile, ReadOnlyMemoryRegion, WritableFile};
use crate::filesystem::{Filesystem, Undeleted};
use crate::ops::{OperationTable, Ops};
use crate::options::FilesystemOption;
use crate::read_buf::ReadBuf;
use crate::statistics::FileStatistics;
use crate::sync::{Mutex, MutexGuard};
use crate::uri::Uri;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tf_plugin_core::{Code, Error, Result};

/// What happens instead of a call, or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call fails with this code, and what it was to do is not done.
    Fail(Code),
    /// The call is made and does what it does, and then fails with this code: an answer that was lost.
    FailAfter(Code),
    /// The call waits for so long and is then made.
    Delay(Duration),
    /// A read gives at most so many bytes, which is not an end of file: the SDK asks again. Other calls are
    /// made as they are.
    Shorten(usize),
    /// The call panics.
    Panic,
}

/// Which call meets a fault: counted from 0, by the operation's name in the header (`read`, `append`,
/// `tell`, `flush`, `sync` and `close` included).
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// `None` for any operation.
    operation: Option<&'static str>,
    from: u64,
    /// Every how many calls from there on; 0 for once.
    every: u64,
    fault: Fault,
}

#[derive(Debug, Default)]
struct Script {
    rules: Vec<Rule>,
    /// Probability in 1/65,536, state, and the faults to choose from.
    random: Option<(u16, u64, Vec<Fault>)>,
    counts: std::collections::BTreeMap<&'static str, u64>,
    calls: u64,
    faults: u64,
}

impl Script {
    /// The fault of the next call.
    fn next(&mut self, operation: &'static str) -> Option<Fault> {
        let count = self.counts.entry(operation).or_default();
        let (of_operation, of_all) = (*count, self.calls);
        *count += 1;
        self.calls += 1;
        let meets = |rule: &&Rule| {
            let index = match rule.operation {
                None => of_all,
                Some(name) if name == operation => of_operation,
                Some(_) => return false,
            };
            index == rule.from
                || rule.every > 0
                    && index > rule.from
                    && (index - rule.from).is_multiple_of(rule.every)
        };
        let mut fault = self.rules.iter().find(meets).map(|rule| rule.fault);
        if let (None, Some((chance, state, choices))) = (fault, &mut self.random) {
            // The generator of Knuth's MMIX; its high bits are good enough to choose calls by.
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            if (*state >> 48) < u64::from(*chance) && !choices.is_empty() {
                let index = (*state >> 16) % choices.len() as u64;
                fault = choices.get(usize::try_from(index).unwrap_or_default()).copied();
            }
        }
        self.faults += u64::from(fault.is_some());
        fault
    }
}

/// The controls of a [`Faulty`], also after the host got it. Clones control the same.
///
/// Operations are named as in `filesystem_interface.h`, and those of files `read`, `append`, `tell`,
/// `flush`, `sync` and `close`. Calls count from 0 on since the start or the last
/// [`reset`](Self::reset). What the SDK's defaults call counts too: a `copy_file` that the author did
/// not write is one `copy_file`, and the opens, reads and appends that it is made of.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
    /// The operations, if they are not a filesystem's, and where they have their names from.
    others: Option<(&'static [&'static str], &'static str)>,
}

impl Faults {
    /// Of something that is not a filesystem, with operations of these names, from that header.
    #[doc(hidden)]
    #[must_use]
    pub fn of(operations: &'static [&'static str], header: &'static str) -> Self {
        Self { script: Arc::default(), others: Some((operations, header)) }
    }

    /// The name of an operation, forever.
    #[track_caller]
    fn known(&self, operation: &str) -> &'static str {
        let own = Ops::NAMES.iter().map(|(name, _)| *name).chain(FILE_OPERATIONS);
        let (names, header) = match self.others {
            None => (own.collect(), "filesystem_interface.h"),
            Some((names, header)) => (names.to_vec(), header),
        };
        match names.iter().find(|name| **name == operation) {
            Some(name) => name,
            None => panic!(
                "there is no operation `{operation}`; the names are those of {header}: {}",
                names.join(", ")
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call of this number of an operation meets a fault.
    ///
    /// # Panics
    /// If there is no operation of this name.
    pub fn at(&self, operation: &str, call: u64, fault: Fault) -> &Self {
        self.add(Some(operation), call, 0, fault)
    }

    /// Every call of an operation meets a fault.
    ///
    /// # Panics
    /// If there is no operation of this name.
    pub fn always(&self, operation: &str, fault: Fault) -> &Self {
        self.add(Some(operation), 0, 1, fault)
    }

    /// Every `nth` call of an operation meets a fault: calls `nth - 1`, `2 * nth - 1` and so on.
    ///
    /// # Panics
    /// If there is no operation of this name, or if `nth` is 0.
    pub fn every(&self, operation: &str, nth: u64, fault: Fault) -> &Self {
        assert!(nth > 0, "every 0th call is none; write 1 for every call");
        self.add(Some(operation), nth - 1, nth, fault)
    }

    /// The call of this number, of whatever operation, meets a fault. [`sweep`] tries each.
    pub fn at_call(&self, call: u64, fault: Fault) -> &Self {
        self.add(None, call, 0, fault)
    }

    /// Calls meet one of `faults` at random, with this probability between 0 and 1. The same seed and
    /// the same calls give the same faults.
    pub fn at_random(&self, seed: u64, probability: f64, faults: &[Fault]) -> &Self {
        // Saturates at both ends.
        let chance = (probability * 65_536.0) as u16;
        // A seed of few bits set is spread over all.
        let state = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.lock().random = Some((chance, state, faults.to_vec()));
        self
    }

    fn add(&self, operation: Option<&str>, from: u64, every: u64, fault: Fault) -> &Self {
        let operation = operation.map(|operation| self.known(operation));
        self.lock().rules.push(Rule { operation, from, every, fault });
        self
    }

    /// Forgets all faults and counts.
    pub fn reset(&self) {
        *self.lock() = Script::default();
    }

    /// How many calls were made since the start or the last [`reset`](Self::reset).
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// How many calls of an operation were made.
    ///
    /// # Panics
    /// If there is no operation of this name.
    #[must_use]
    pub fn calls_of(&self, operation: &str) -> u64 {
        let operation = self.known(operation);
        self.lock().counts.get(operation).copied().unwrap_or_default()
    }

    /// How many calls met a fault.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.lock().faults
    }

    /// Makes a call, with the fault that it meets.
    ///
    /// # Errors
    /// That of the call, or of the fault.
    #[doc(hidden)]
    pub fn call<T>(&self, operation: &'static str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let fault = self.lock().next(operation);
        match fault {
            None | Some(Fault::Shorten(_)) => call(),
            Some(Fault::Fail(code)) => Err(told(operation, code)),
            Some(Fault::FailAfter(code)) => {
                // Whatever it answered is lost.
                let _ = call();
                Err(told(operation, code))
            }
            Some(Fault::Delay(time)) => {
                std::thread::sleep(time);
                call()
            }
            Some(Fault::Panic) => panic!("`{operation}` was told to panic"),
        }
    }
}

const FILE_OPERATIONS: [&str; 6] = ["read", "append", "tell", "flush", "sync", "close"];

#[cold]
fn told(operation: &str, code: Code) -> Error {
    Error::new(code, format!("`{operation}` was told to fail"))
}

/// A filesystem that does what `F` does, until [`Faults`] tell it otherwise: for tests of what happens
/// when a disk is full or a server does not answer.
///
/// TensorFlow sees the same table as of `F`: what is null there is null here, and where the SDK's
/// default stands in for `F`, it runs on this filesystem, so that the calls that it makes meet faults
/// too.
///
/// ```
/// # use tf_fs_plugin::{__private::*, *};
/// # #[derive(Default)] struct MemFs;
/// # impl OperationTable for MemFs { const PROVIDED: Ops = Ops::STAT; }
/// # impl Filesystem for MemFs {
/// #     type Reader = Unsupported; type Writer = Unsupported; type Region = Unsupported; type Transaction = ();
/// #     fn new(_: &str) -> Result<Self> { Ok(Self) }
/// #     fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> { Ok(FileStatistics::file(6)) }
/// # }
/// use tf_fs_plugin::Code;
/// use tf_fs_plugin::testing::{Fault, Faulty, Host};
///
/// let (faulty, faults) = Faulty::new(MemFs::default());
/// let host = Host::new();
/// host.serve("mem", faulty)?;
///
/// faults.at("stat", 1, Fault::Fail(Code::Unavailable));
/// assert!(host.stat("mem://box/a").is_ok());
/// assert_eq!(host.stat("mem://box/a").unwrap_err().code(), Code::Unavailable);
/// assert!(host.stat("mem://box/a").is_ok());
/// # Ok::<(), tf_fs_plugin::Error>(())
/// ```
#[derive(Debug)]
pub struct Faulty<F> {
    inner: F,
    faults: Faults,
}

impl<F: Filesystem> Faulty<F> {
    /// Wraps a filesystem; hand it to [`Host::serve`](super::Host::serve). It meets no fault yet.
    #[must_use]
    pub fn new(inner: F) -> (Self, Faults) {
        let faults = Faults::default();
        (Self { inner, faults: faults.clone() }, faults)
    }

    fn provides(op: Ops) -> bool {
        F::PROVIDED.contains(op)
    }
}

impl<F: Filesystem> OperationTable for Faulty<F> {
    const PROVIDED: Ops = F::PROVIDED;
}

/// Operations that call the inner one.
macro_rules! forward {
    ($($op:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $op(&self, $($arg: $type),*) -> Result<$answer> {
            self.faults.call(stringify!($op), || self.inner.$op($($arg),*))
        }
    )*};
}

/// The same where the default, if it stands in, is to call this filesystem's operations.
macro_rules! forward_or_default {
    ($($op:ident, $flag:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $op(&self, $($arg: $type),*) -> Result<$answer> {
            self.faults.call(stringify!($op), || {
                if Self::provides(Ops::$flag) {
                    self.inner.$op($($arg),*)
                } else {
                    defaults::$op(self, $($arg),*)
                }
            })
        }
    )*};
}

impl<F: Filesystem> Filesystem for Faulty<F> {
    type Reader = FaultyFile<F::Reader>;
    type Writer = FaultyFile<F::Writer>;
    type Region = FaultyRegion<F::Region>;
    type Transaction = F::Transaction;

    fn new(scheme: &str) -> Result<Self> {
        F::new(scheme).map(|inner| Self::new(inner).0)
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Self::Reader> {
        let open = || self.inner.new_random_access_file(uri);
        self.faults.call("new_random_access_file", open).map(|file| self.file(file))
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        let open = || self.inner.new_writable_file(uri);
        self.faults.call("new_writable_file", open).map(|file| self.file(file))
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<Self::Writer> {
        let open = || self.inner.new_appendable_file(uri);
        self.faults.call("new_appendable_file", open).map(|file| self.file(file))
    }

    fn new_read_only_memory_region_from_file(&self, uri: Uri<'_>) -> Result<Self::Region> {
        let open = || self.inner.new_read_only_memory_region_from_file(uri);
        self.faults.call("new_read_only_memory_region_from_file", open).map(FaultyRegion)
    }

    forward! {
        create_dir(uri: Uri<'_>) -> ();
        delete_file(uri: Uri<'_>) -> ();
        delete_dir(uri: Uri<'_>) -> ();
        stat(uri: Uri<'_>) -> FileStatistics;
        get_children(uri: Uri<'_>) -> Entries;
        start_transaction() -> Arc<F::Transaction>;
        end_transaction(transaction: Arc<F::Transaction>) -> ();
        add_to_transaction(uri: Uri<'_>, transaction: &Arc<F::Transaction>) -> ();
        get_transaction_for_path(uri: Uri<'_>) -> Option<Arc<F::Transaction>>;
        get_or_start_transaction_for_path(uri: Uri<'_>) -> Arc<F::Transaction>;
        get_filesystem_configuration() -> Vec<FilesystemOption>;
        set_filesystem_configuration(options: &[FilesystemOption]) -> ();
        get_filesystem_configuration_option(key: &str) -> FilesystemOption;
        set_filesystem_configuration_option(option: &FilesystemOption) -> ();
        get_filesystem_configuration_keys() -> Vec<String>;
    }

    forward_or_default! {
        recursively_create_dir, RECURSIVELY_CREATE_DIR(uri: Uri<'_>) -> ();
        rename_file, RENAME_FILE(src: Uri<'_>, dst: Uri<'_>) -> ();
        copy_file, COPY_FILE(src: Uri<'_>, dst: Uri<'_>) -> ();
        path_exists, PATH_EXISTS(uri: Uri<'_>) -> bool;
        get_matching_paths, GET_MATCHING_PATHS(pattern: Uri<'_>) -> Entries;
    }

    fn is_directory(&self, uri: Uri<'_>) -> Result<bool> {
        self.faults.call("is_directory", || {
            if Self::provides(Ops::IS_DIRECTORY) {
                self.inner.is_directory(uri)
            } else {
                self.stat(uri).map(|found| found.is_directory)
            }
        })
    }

    fn get_file_size(&self, uri: Uri<'_>) -> Result<u64> {
        self.faults.call("get_file_size", || self.inner.get_file_size(uri))
    }

    fn delete_recursively(&self, uri: Uri<'_>) -> Result<(), Undeleted> {
        let mut left = None;
        let deleted = self.faults.call("delete_recursively", || {
            self.inner.delete_recursively(uri).map_err(|undeleted| {
                left = Some((undeleted.files, undeleted.dirs));
                undeleted.error
            })
        });
        deleted.map_err(|error| match left {
            Some((files, dirs)) => Undeleted { error, files, dirs },
            None => error.into(),
        })
    }

    fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        match self.faults.call("paths_exist", || Ok(self.inner.paths_exist(uris))) {
            Ok(answers) => answers,
            Err(error) => {
                let again = || Error::new(error.code(), error.message().to_owned());
                uris.iter().map(|_| Err(again())).collect()
            }
        }
    }

    fn translate_name(&self, uri: &[u8]) -> Vec<u8> {
        self.inner.translate_name(uri)
    }

    fn flush_caches(&self) {
        self.inner.flush_caches();
    }

    fn decode_transaction_token(&self, transaction: &Arc<F::Transaction>) -> String {
        self.inner.decode_transaction_token(transaction)
    }
}

impl<F: Filesystem> Faulty<F> {
    fn file<T>(&self, inner: T) -> FaultyFile<T> {
        FaultyFile { inner, faults: self.faults.clone() }
    }
}

/// An open file of a [`Faulty`].
#[derive(Debug)]
pub struct FaultyFile<T> {
    inner: T,
    faults: Faults,
}

impl<T: RandomAccessFile> RandomAccessFile for FaultyFile<T> {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        let fault = self.faults.lock().next("read");
        match fault {
            None => self.inner.read_at(offset, buf),
            Some(Fault::Fail(code)) => Err(told("read", code)),
            Some(Fault::FailAfter(code)) => {
                let _ = self.inner.read_at(offset, buf);
                Err(told("read", code))
            }
            Some(Fault::Delay(time)) => {
                std::thread::sleep(time);
                self.inner.read_at(offset, buf)
            }
            Some(Fault::Shorten(n)) => {
                let n = n.clamp(1, buf.remaining().max(1)).min(buf.remaining());
                buf.fill_parts(&[n], |parts| self.inner.read_at(offset, &mut parts[0]))?
            }
            Some(Fault::Panic) => panic!("`read` was told to panic"),
        }
    }
}

impl<T: WritableFile> WritableFile for FaultyFile<T> {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.faults.call("append", || self.inner.append(data))
    }

    fn tell(&mut self) -> Result<u64> {
        self.faults.call("tell", || self.inner.tell())
    }

    fn flush(&mut self) -> Result<()> {
        self.faults.call("flush", || self.inner.flush())
    }

    fn sync(&mut self) -> Result<()> {
        self.faults.call("sync", || self.inner.sync())
    }

    fn close(&mut self) -> Result<()> {
        self.faults.call("close", || self.inner.close())
    }
}

/// A mapped file of a [`Faulty`].
#[derive(Debug)]
pub struct FaultyRegion<T>(T);

impl<T: ReadOnlyMemoryRegion> ReadOnlyMemoryRegion for FaultyRegion<T> {
    fn content(&self) -> RegionContent<'_> {
        self.0.content()
    }
}

/// Runs `scenario` once without a fault, and then once for each call that it made, which fails with
/// `fault` that time. Each run has a filesystem of its own, made by `make`, on a host of its own, under
/// `scheme`; the answer says how many runs there were.
///
/// The scenario judges: it gets the host and whether a fault is waiting (`false` in the first run), and
/// panics if something is lost that must not be, or if an error does not come out.
///
/// ```
/// # use tf_fs_plugin::{__private::*, *};
/// # #[derive(Default)] struct MemFs;
/// # impl OperationTable for MemFs { const PROVIDED: Ops = Ops::STAT; }
/// # impl Filesystem for MemFs {
/// #     type Reader = Unsupported; type Writer = Unsupported; type Region = Unsupported; type Transaction = ();
/// #     fn new(_: &str) -> Result<Self> { Ok(Self) }
/// #     fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> { Ok(FileStatistics::file(6)) }
/// # }
/// use tf_fs_plugin::Code;
/// use tf_fs_plugin::testing::{Fault, sweep};
///
/// let runs = sweep("mem", MemFs::default, Fault::Fail(Code::Unavailable), |host, fails| {
///     let both = host.stat("mem://box/a").and(host.stat("mem://box/b"));
///     assert_eq!(both.is_err(), fails);
/// });
/// assert_eq!(runs, 3);
/// ```
///
/// # Panics
/// If the scenario does, if it makes no call, or does not make the call again that is to meet the fault, if the
/// filesystem cannot be registered, or if the plugin breaks a rule of the C boundary.
#[track_caller]
pub fn sweep<F: Filesystem>(
    scheme: &str,
    make: impl Fn() -> F,
    fault: Fault,
    scenario: impl Fn(&super::Host, bool),
) -> u64 {
    let run = |call: Option<u64>| {
        let (faulty, faults) = Faulty::new(make());
        if let Some(call) = call {
            faults.at_call(call, fault);
        }
        let host = super::Host::new();
        // What is asked again to find unwritten bytes would meet faults of its own.
        host.read_once();
        if let Err(error) = host.serve(scheme, faulty) {
            panic!("the filesystem cannot be registered: {error:#}");
        }
        scenario(&host, call.is_some());
        host.check();
        faults
    };
    faults_of_each(&[], run)
}

/// A run without a fault, and one for each call that it makes, which is to meet one. How many there were. How often the
/// operations in `polled` are called depends on how long others take.
#[doc(hidden)]
#[track_caller]
pub fn faults_of_each(polled: &[&str], run: impl Fn(Option<u64>) -> Faults) -> u64 {
    let others = |faults: &Faults| {
        let mut counts = faults.lock().counts.clone();
        counts.retain(|name, _| !polled.contains(name));
        counts
    };
    let without = run(None);
    let calls = without.calls();
    assert!(
        calls > 0,
        "the scenario makes no call, so that nothing can fail: call the host that it is given"
    );
    for call in 0..calls {
        let faults = run(Some(call));
        assert!(
            faults.met() > 0 || others(&faults) == others(&without),
            "call {call} was to fail and was not made: {} calls this time, {calls} without a fault. A scenario has to \
             make the same calls each time, up to the one that fails: take chance, time and threads out of it",
            faults.calls()
        );
    }
    calls + 1
}
