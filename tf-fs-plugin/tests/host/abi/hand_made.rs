//! A plugin made by hand, in which every field may be wrong, with an allocator that keeps a record.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use tf_fs_plugin::Result;
use tf_fs_sys::host::Table;
use tf_fs_sys::{
    StatusFunctions, TF_Code, TF_Filesystem, TF_FilesystemOps, TF_FilesystemPluginInfo,
    TF_FilesystemPluginOps, TF_NOT_FOUND, TF_OK, TF_RandomAccessFile, TF_RandomAccessFileOps,
    TF_ReadOnlyMemoryRegion, TF_ReadOnlyMemoryRegionOps, TF_SetFilesystemVersionMetadata,
    TF_Status, TF_WritableFile, TF_WritableFileOps,
};
use tf_plugin_testing::filesystem::Host;

/// A plugin's offer for one scheme; `None` is a null pointer.
#[derive(Clone)]
pub(crate) struct Offer {
    pub(crate) scheme: Option<&'static CStr>,
    pub(crate) filesystem: Option<TF_FilesystemOps>,
    pub(crate) random_access_file: Option<TF_RandomAccessFileOps>,
    pub(crate) writable_file: Option<TF_WritableFileOps>,
    pub(crate) memory_region: Option<TF_ReadOnlyMemoryRegionOps>,
    /// Changes the versions and sizes after the true ones were written.
    pub(crate) metadata: Vec<fn(&mut TF_FilesystemPluginOps)>,
    /// Bytes behind the filesystem's table, as a newer plugin has them.
    pub(crate) tail: usize,
}

impl Offer {
    /// Creates an offer that TensorFlow accepts, with all tables and no optional function.
    pub(crate) fn good(scheme: &'static CStr) -> Self {
        Self {
            scheme: Some(scheme),
            filesystem: Some(TF_FilesystemOps {
                init: Some(init),
                cleanup: Some(cleanup),
                ..Default::default()
            }),
            random_access_file: Some(TF_RandomAccessFileOps {
                cleanup: Some(cleanup_reader),
                read: None,
            }),
            writable_file: Some(TF_WritableFileOps {
                cleanup: Some(cleanup_writer),
                ..Default::default()
            }),
            memory_region: Some(TF_ReadOnlyMemoryRegionOps {
                cleanup: Some(cleanup_region),
                data: Some(data),
                length: Some(length),
            }),
            metadata: Vec::new(),
            tail: 0,
        }
    }

    pub(crate) fn without_files(scheme: &'static CStr) -> Self {
        Self {
            random_access_file: None,
            writable_file: None,
            memory_region: None,
            ..Self::good(scheme)
        }
    }
}

/// The content of the struct that a plugin's `TF_InitPlugin` fills in.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) offers: Vec<Offer>,
    pub(crate) allocate: bool,
    pub(crate) free: bool,
    /// Leaves the array of offers null.
    pub(crate) no_array: bool,
}

impl Plan {
    pub(crate) fn of(offers: impl IntoIterator<Item = Offer>) -> Self {
        Self { offers: offers.into_iter().collect(), allocate: true, free: true, no_array: false }
    }
}

thread_local! {
    /// Names of the blocks that are allocated.
    static BLOCKS: RefCell<BTreeMap<usize, String>> = const { RefCell::new(BTreeMap::new()) };
    /// Names of the blocks in the order in which they were freed.
    static FREED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static INITS: Cell<usize> = const { Cell::new(0) };
    static CLEANUPS: Cell<usize> = const { Cell::new(0) };
}

/// Returns how often `init` and `cleanup` ran on this thread.
pub(crate) fn counts() -> (usize, usize) {
    (INITS.get(), CLEANUPS.get())
}

/// Returns the names of the blocks that the host freed on this thread since the last call.
pub(crate) fn take_freed() -> Vec<String> {
    FREED.take()
}

/// Returns the names of the blocks of this thread that have not been freed.
pub(crate) fn live_blocks() -> Vec<String> {
    BLOCKS.with_borrow(|blocks| blocks.values().cloned().collect())
}

unsafe extern "C" fn allocate(_: usize) -> *mut c_void {
    panic!("TensorFlow never calls `plugin_memory_allocate`");
}

unsafe extern "C" fn free(block: *mut c_void) {
    let name = if block.is_null() {
        String::from("null")
    } else {
        BLOCKS
            .with_borrow_mut(|blocks| blocks.remove(&block.addr()))
            .expect("the host frees only what it got, and only once")
    };
    FREED.with_borrow_mut(|freed| freed.push(name));
    // SAFETY: null or from `malloc` in `block`, and not freed yet, as the map just said.
    unsafe { libc::free(block) }
}

/// Allocates a named block of `size` bytes, filled with a byte that is not a pointer.
pub(crate) fn raw_block(name: &str, size: usize) -> *mut c_void {
    // SAFETY: any size; the memory is checked and then filled.
    let block = unsafe {
        let block = libc::malloc(size.max(1));
        assert!(!block.is_null());
        block.cast::<u8>().write_bytes(0xee, size);
        block
    };
    BLOCKS.with_borrow_mut(|blocks| blocks.insert(block.addr(), name.to_owned()));
    block
}

/// Allocates a named block that holds a value, with some bytes behind it.
fn block<T: Copy>(name: &str, value: &T, tail: usize) -> *mut T {
    let block = raw_block(name, size_of::<T>() + tail).cast::<T>();
    // SAFETY: a fresh block of at least this size; `malloc` aligns for any C type.
    unsafe { block.write(*value) };
    block
}

/// Allocates a named C string.
pub(crate) fn c_string(name: &str, text: &CStr) -> *mut c_char {
    let bytes = text.to_bytes_with_nul();
    let block = raw_block(name, bytes.len()).cast::<c_char>();
    // SAFETY: a fresh block of this size.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), block, bytes.len()) };
    block
}

fn fill(plan: &Plan, info: &mut TF_FilesystemPluginInfo) {
    assert!(info.num_schemes == 0 && info.ops.is_null());
    assert!(info.plugin_memory_allocate.is_none() && info.plugin_memory_free.is_none());
    info.plugin_memory_allocate = plan.allocate.then_some(allocate);
    info.plugin_memory_free = plan.free.then_some(free);
    info.num_schemes = plan.offers.len();
    if plan.no_array {
        return;
    }
    let array = raw_block("ops", size_of::<TF_FilesystemPluginOps>() * plan.offers.len())
        .cast::<TF_FilesystemPluginOps>();
    for (index, offer) in plan.offers.iter().enumerate() {
        fn table<T: Copy>(name: &str, value: &Option<T>, tail: usize) -> *mut T {
            value.as_ref().map_or(ptr::null_mut(), |value| block(name, value, tail))
        }
        let mut ops = TF_FilesystemPluginOps::default();
        TF_SetFilesystemVersionMetadata(&mut ops);
        ops.scheme = offer.scheme.map_or(ptr::null_mut(), |scheme| c_string("scheme", scheme));
        ops.filesystem_ops = table("filesystem", &offer.filesystem, offer.tail);
        ops.random_access_file_ops = table("random access file", &offer.random_access_file, 0);
        ops.writable_file_ops = table("writable file", &offer.writable_file, 0);
        ops.read_only_memory_region_ops = table("memory region", &offer.memory_region, 0);
        offer.metadata.iter().for_each(|change| change(&mut ops));
        // SAFETY: the index is within the array.
        unsafe { array.add(index).write(ops) };
    }
    info.ops = array;
}

/// Registers a plan.
pub(crate) fn register(host: &Host, plan: &Plan) -> Result<()> {
    // SAFETY: the tables are valid for the sizes that the tests declare or larger, the blocks come
    // from `free`'s allocator, and every function of this module and of `broken` may be called.
    unsafe {
        host.register_raw(|info| {
            if let Some(info) = info.as_mut() {
                fill(plan, info);
            }
        })
    }
}

/// Sets a status.
///
/// # Safety
/// `status` must be a status of the host.
pub(crate) unsafe fn set(status: *mut TF_Status, code: TF_Code, message: &CStr) {
    let host = StatusFunctions::get().expect("the host has installed its functions");
    // SAFETY: `status` is a status of the host, and `message` a C string.
    unsafe { (host.TF_SetStatus)(status, code, message.as_ptr()) }
}

/// Some state, so that it is not null.
pub(crate) const STATE: *mut c_void = ptr::without_provenance_mut(0x1000);

pub(crate) unsafe extern "C" fn init(filesystem: *mut TF_Filesystem, status: *mut TF_Status) {
    INITS.set(INITS.get() + 1);
    // SAFETY: the host passes a filesystem to fill and a status.
    unsafe {
        assert!((*filesystem).plugin_filesystem.is_null(), "zeroed");
        (*filesystem).plugin_filesystem = STATE;
        set(status, TF_OK, c"");
    }
}

pub(crate) unsafe extern "C" fn failing_init(_: *mut TF_Filesystem, status: *mut TF_Status) {
    INITS.set(INITS.get() + 1);
    // SAFETY: the host passes a status.
    unsafe { set(status, TF_NOT_FOUND, c"no credentials") }
}

pub(crate) unsafe extern "C" fn cleanup(_: *mut TF_Filesystem) {
    CLEANUPS.set(CLEANUPS.get() + 1);
}

pub(crate) unsafe extern "C" fn cleanup_reader(_: *mut TF_RandomAccessFile) {}

pub(crate) unsafe extern "C" fn cleanup_writer(_: *mut TF_WritableFile) {}

pub(crate) unsafe extern "C" fn cleanup_region(_: *mut TF_ReadOnlyMemoryRegion) {}

/// The content of every region of a hand-made plugin.
pub(crate) static CONTENT: &[u8] = b"content";

pub(crate) unsafe extern "C" fn data(_: *const TF_ReadOnlyMemoryRegion) -> *const c_void {
    CONTENT.as_ptr().cast()
}

pub(crate) unsafe extern "C" fn length(_: *const TF_ReadOnlyMemoryRegion) -> u64 {
    CONTENT.len() as u64
}
