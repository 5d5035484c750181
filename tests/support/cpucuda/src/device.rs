//! The state of the driver: memory, and tables of handles.

use crate::abi::library::{Function, Module};
use crate::abi::memory::Region;
use crate::stream::{Record, Stream};
use cudarc::driver::sys::CUresult;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// The handle of the context of the first device; those of the others follow.
pub(crate) const CONTEXT: usize = 0xC0DA;

thread_local! {
    /// The context that is current in this thread, or 0.
    pub(crate) static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The state that a function needs when it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Initialized,
    Context,
    /// As `Context`, and checked again when the function returns.
    ContextAfter,
}

/// The blocks of memory, by address.
#[derive(Default)]
pub(crate) struct Memory(Mutex<BTreeMap<u64, Arc<Region>>>);

impl Memory {
    pub(crate) fn insert(&self, region: Region) -> u64 {
        let address = region.address();
        self.0.lock().unwrap().insert(address, Arc::new(region));
        address
    }

    /// Returns the block that contains a whole range.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Option<Arc<Region>> {
        let blocks = self.0.lock().unwrap();
        let (_, region) = blocks.range(..=address).next_back()?;
        let end = address.checked_add(bytes)?;
        (end <= region.address() + region.bytes()).then(|| region.clone())
    }

    /// Frees a block, or ends the process if queued work uses it.
    pub(crate) fn remove(&self, address: u64) -> Result<(), CUresult> {
        let region = self.0.lock().unwrap().remove(&address);
        let region = region.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let bytes = region.bytes();
        if Arc::into_inner(region).is_none() {
            crate::abi::abort(&format!(
                "{bytes} bytes at {address:#x} are freed while queued work uses them; synchronize first"
            ));
        }
        Ok(())
    }

    pub(crate) fn used(&self) -> u64 {
        self.0.lock().unwrap().values().map(|region| region.bytes()).sum()
    }

    fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// The values of the handles of one kind.
pub(crate) struct Table<T>(Mutex<HashMap<usize, Arc<T>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Table<T> {
    /// Adds a value, and returns its handle, which is unique among all kinds.
    pub(crate) fn insert(&self, value: T) -> usize {
        static LAST: AtomicUsize = AtomicUsize::new(0x10_0000);
        let handle = LAST.fetch_add(16, Ordering::Relaxed);
        self.0.lock().unwrap().insert(handle, Arc::new(value));
        handle
    }

    pub(crate) fn get<P>(&self, handle: *mut P) -> Result<Arc<T>, CUresult> {
        let value = self.0.lock().unwrap().get(&handle.addr()).cloned();
        value.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    pub(crate) fn remove<P>(&self, handle: *mut P) -> Result<Arc<T>, CUresult> {
        let value = self.0.lock().unwrap().remove(&handle.addr());
        value.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    fn all(&self) -> Vec<Arc<T>> {
        self.0.lock().unwrap().values().cloned().collect()
    }
}

/// An event: its last record, and whether it has a time.
pub(crate) struct Event {
    pub(crate) recorded: Mutex<Option<Arc<Record>>>,
    pub(crate) is_timed: bool,
}

impl Event {
    pub(crate) fn last(&self) -> Option<Arc<Record>> {
        self.recorded.lock().unwrap().clone()
    }
}

#[derive(Default)]
pub(crate) struct Device {
    /// Whether all calls that need the context fail.
    pub(crate) is_lost: AtomicBool,
    /// How often the context is retained.
    pub(crate) retained: Mutex<u32>,
    pub(crate) memory: Memory,
    /// The contexts whose memory this one may access.
    pub(crate) peers: Mutex<Vec<usize>>,
    /// The number of streams and calls that use the memory.
    users: Mutex<usize>,
    /// Page-locked memory of the host.
    pub(crate) host: Memory,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
    /// The default stream, which has no handle.
    first: Mutex<Option<Arc<Stream>>>,
}

/// Whether the driver is initialized.
pub(crate) static IS_INITIALIZED: AtomicBool = AtomicBool::new(false);

/// The devices, as many as the environment says.
pub(crate) static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    let count = std::env::var(crate::DEVICES).ok().and_then(|count| count.parse().ok());
    (0..count.unwrap_or(1)).map(|_| Device::default()).collect()
});

/// Returns the device of this context.
pub(crate) fn of_context(context: usize) -> Result<&'static Device, CUresult> {
    let device = context.checked_sub(CONTEXT).and_then(|number| DEVICES.get(number));
    device.ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
}

/// Returns the device whose context is current in this thread, or the first one: functions that need a context check it before.
pub(crate) fn current() -> &'static Device {
    of_context(CURRENT.get()).unwrap_or(&DEVICES[0])
}

/// Checks what a function needs.
pub(crate) fn check(needs: Needs) -> Result<(), CUresult> {
    if needs != Needs::Nothing && !IS_INITIALIZED.load(Ordering::Relaxed) {
        return Err(CUresult::CUDA_ERROR_NOT_INITIALIZED);
    }
    match needs {
        Needs::Nothing | Needs::Initialized => Ok(()),
        Needs::Context | Needs::ContextAfter => of_context(CURRENT.get())?.check(),
    }
}

impl Device {
    /// Calls `act`, which may use the memory of the device. At other times the memory is protected, as the host cannot
    /// access a GPU's memory: a program that tries ends.
    pub(crate) fn reach<R>(&self, act: impl FnOnce() -> R) -> R {
        self.count(|users| *users += 1);
        let result = act();
        self.count(|users| *users -= 1);
        result
    }

    fn count(&self, change: impl FnOnce(&mut usize)) {
        let mut users = self.users.lock().unwrap();
        let before = *users;
        change(&mut users);
        if before == 0 || *users == 0 {
            for region in self.memory.0.lock().unwrap().values() {
                region.open(*users > 0);
            }
        }
    }

    /// Adds a block of memory, and returns its address.
    pub(crate) fn add(&self, region: Region) -> u64 {
        let users = self.users.lock().unwrap();
        region.open(*users > 0);
        self.memory.insert(region)
    }

    /// Loses the GPU, and says so.
    pub(crate) fn lose(&self, how: &str) {
        eprintln!("{}{how}", crate::HAPPENED);
        self.is_lost.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), CUresult> {
        match *self.retained.lock().unwrap() {
            0 => Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED),
            _ if self.is_lost.load(Ordering::SeqCst) => Err(CUresult::CUDA_ERROR_LAUNCH_FAILED),
            _ => Ok(()),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        let mib = std::env::var(crate::MEMORY).ok().and_then(|mib| mib.parse().ok());
        mib.unwrap_or(2048_u64) << 20
    }

    pub(crate) fn stream<P>(&'static self, handle: *mut P) -> Result<Arc<Stream>, CUresult> {
        // 1, `CU_STREAM_LEGACY`, is the default stream, too.
        if handle.addr() > 1 {
            return self.streams.get(handle);
        }
        Ok(self.first.lock().unwrap().get_or_insert_with(|| Arc::new(Stream::new(self))).clone())
    }

    pub(crate) fn synchronize(&self) {
        let first = self.first.lock().unwrap().clone();
        for stream in self.streams.all().into_iter().chain(first) {
            stream.synchronize();
        }
    }

    /// Destroys the context and everything in it.
    pub(crate) fn clear(&self) {
        self.streams.0.lock().unwrap().clear();
        *self.first.lock().unwrap() = None;
        self.events.0.lock().unwrap().clear();
        self.functions.0.lock().unwrap().clear();
        self.modules.0.lock().unwrap().clear();
        self.peers.lock().unwrap().clear();
        self.memory.clear();
        self.host.clear();
    }
}
