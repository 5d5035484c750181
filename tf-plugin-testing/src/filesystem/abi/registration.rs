//! What TensorFlow does in `TF_RegisterFilesystemPlugin`.

use super::memory::{Blocks, FreeFn};
use super::mounted::{Mounted, Tables};
use crate::filesystem::host::Host;
use crate::filesystem::session::Session;
use core::ffi::{CStr, c_char, c_int};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::sync::Arc;
use tf_fs_plugin::__private::Plugin;
use tf_fs_plugin::__private::testing::{offer_all, registration_of, with_given};
use tf_fs_plugin::Filesystem;
use tf_fs_plugin::Ops;
use tf_fs_sys::{
    TF_FILESYSTEM_OPS_ABI, TF_FILESYSTEM_OPS_API, TF_FilesystemOps, TF_FilesystemPluginInfo,
    TF_FilesystemPluginOps, TF_RANDOM_ACCESS_FILE_OPS_ABI, TF_RANDOM_ACCESS_FILE_OPS_API,
    TF_READ_ONLY_MEMORY_REGION_OPS_ABI, TF_READ_ONLY_MEMORY_REGION_OPS_API, TF_RandomAccessFileOps,
    TF_ReadOnlyMemoryRegionOps, TF_WRITABLE_FILE_OPS_ABI, TF_WRITABLE_FILE_OPS_API,
    TF_WritableFileOps,
};
use tf_plugin_core::{Code, Error, Result};

const OP: &str = "TF_InitPlugin";

impl Host {
    /// Registers a plugin whose `TF_InitPlugin` is `init`, as TensorFlow does: `init` gets a zeroed
    /// struct to fill. For plugins that are not made with this SDK, and for broken ones.
    ///
    /// # Errors
    /// As [`Host::register`].
    ///
    /// # Safety
    /// What `init` fills in must keep the header's promises on memory: pointers are null or valid and
    /// from the plugin's allocator, functions have the types of their fields and may be called as
    /// the header says, from any thread, for as long as this host and its files live. Sizes, version
    /// numbers, missing functions and what functions answer may be as wrong as they like.
    pub unsafe fn register_raw(
        &self,
        init: impl FnOnce(*mut TF_FilesystemPluginInfo),
    ) -> Result<()> {
        let mut info = ZEROED;
        init(&raw mut info);
        // SAFETY: `info` holds what `init` wrote, whose pointers are null or valid: `register_raw` requires it.
        unsafe { self.take_over(&info) }
    }

    /// Registers a filesystem that the test has made, under `scheme`, without a
    /// [`new`](Filesystem::new) of its own: for one that the test configured or [`Faulty`] wraps.
    ///
    /// # Errors
    /// As [`Host::register`].
    ///
    /// [`Faulty`]: crate::filesystem::Faulty
    pub fn serve<F: Filesystem>(&self, scheme: &str, filesystem: F) -> Result<()> {
        let registration = registration_of::<F>(scheme);
        let mut info = ZEROED;
        offer_all(&mut info, &[registration])?;
        with_given(filesystem, registration, || {
            // SAFETY: the tables are those of this SDK, whose functions keep the header's promises.
            unsafe { self.take_over(&info) }
        })
    }

    /// As [`Host::register`], with the slots of `ops` made null, so that TensorFlow's own defaults
    /// run there. To see what a filesystem would do without the defaults of this SDK.
    ///
    /// # Errors
    /// As [`Host::register`].
    pub fn register_without<P: Plugin>(&self, ops: Ops) -> Result<()> {
        let mut info = ZEROED;
        // A plugin that cannot make its tables leaves `info` as it is, as `TF_InitPlugin` does.
        if let Err(error) = offer_all(&mut info, P::registrations()) {
            log::error!("the plugin cannot be registered: {error:#}");
        }
        let all = TF_FilesystemOps::default();
        for index in 0..info.num_schemes {
            // SAFETY: `offer_all` made `num_schemes` elements, each with a table.
            let table = unsafe { &mut *(*info.ops.add(index)).filesystem_ops };
            for (slot, (_, op)) in (2..).zip(Ops::NAMES) {
                if ops.contains(*op) {
                    // SAFETY: both tables are arrays of nullable function pointers of one size, in
                    // the order of `Ops::NAMES` after `init` and `cleanup`.
                    unsafe {
                        let null = (&raw const all).cast::<Option<extern "C" fn()>>().add(slot);
                        let place = ptr::from_mut(table).cast::<Option<extern "C" fn()>>();
                        place.add(slot).write(null.read());
                    }
                }
            }
        }
        // SAFETY: the tables are those of this SDK, whose functions keep the header's promises.
        unsafe { self.take_over(&info) }
    }

    /// Checks and registers each scheme, and frees what the plugin allocated.
    ///
    /// # Safety
    /// As [`Host::register_raw`].
    unsafe fn take_over(&self, info: &TF_FilesystemPluginInfo) -> Result<()> {
        let missing = |hook: &str| {
            Err(Error::failed_precondition(format_args!(
                "Cannot load filesystem plugin which does not provide `{hook}`"
            )))
        };
        if info.plugin_memory_allocate.is_none() {
            return missing("plugin_memory_allocate");
        }
        let Some(free) = info.plugin_memory_free else {
            return missing("plugin_memory_free");
        };
        let blocks = Blocks::new(free, Arc::clone(&self.session.log));
        let mut first_error = Ok(());
        for index in 0..info.num_schemes {
            if info.ops.is_null() {
                self.session.log.add(
                    OP,
                    b"",
                    "offers schemes but no array of them; TensorFlow would crash",
                );
                break;
            }
            // SAFETY: an array of `num_schemes` elements, whose blocks are the host's to free; each
            // is freed once, in TensorFlow's order, when nothing uses it any more.
            unsafe {
                let offer = &*info.ops.add(index);
                let registered = self.register_scheme(offer, free);
                first_error = first_error.and(registered);
                release(&blocks, offer.scheme);
                release(&blocks, offer.filesystem_ops);
                release(&blocks, offer.random_access_file_ops);
                release(&blocks, offer.writable_file_ops);
                release(&blocks, offer.read_only_memory_region_ops);
            }
        }
        // SAFETY: the array is the plugin's block or null, and nothing uses it any more.
        unsafe { release(&blocks, info.ops) };
        first_error
    }

    /// # Safety
    /// As [`Host::register_raw`], for one scheme.
    unsafe fn register_scheme(&self, offer: &TF_FilesystemPluginOps, free: FreeFn) -> Result<()> {
        // SAFETY: the pointers in `offer` are null or valid for the sizes that it names: `register_raw`
        // requires it.
        let (scheme, tables) = unsafe {
            let scheme = scheme(offer.scheme)?;
            check_versions(offer)?;
            let tables = copy_tables(&self.session, &scheme, offer);
            check_tables(offer, &tables).map_err(|lack| lack.error(&self.session, &scheme))?;
            (scheme, tables)
        };
        // SAFETY: the tables hold functions that any thread may call: `register_raw` requires it.
        let mounted = unsafe { Mounted::init(&self.session, scheme, tables, free) }?;
        self.mount(mounted)
    }
}

const ZEROED: TF_FilesystemPluginInfo = TF_FilesystemPluginInfo {
    num_schemes: 0,
    ops: ptr::null_mut(),
    plugin_memory_allocate: None,
    plugin_memory_free: None,
};

/// Frees a block that came with a registration, unless it came twice.
///
/// # Safety
/// As [`Blocks::free`].
unsafe fn release<T>(blocks: &Blocks, block: *mut T) {
    if blocks.receive(OP, b"", block) {
        // SAFETY: `receive` was true for the block, which is the plugin's and is not used again.
        unsafe { blocks.free(block) };
    }
}

/// # Safety
/// `scheme` must be null or a C string.
unsafe fn scheme(scheme: *const c_char) -> Result<Vec<u8>> {
    if scheme.is_null() {
        return Err(Error::invalid_argument(
            "Attempted to register filesystem with `nullptr` URI scheme",
        ));
    }
    // SAFETY: `scheme` is not null, so it is a C string.
    Ok(unsafe { CStr::from_ptr(scheme) }.to_bytes().to_vec())
}

fn check_versions(offer: &TF_FilesystemPluginOps) -> Result<()> {
    let tables = [
        (
            true,
            "filesystem",
            (offer.filesystem_ops_abi, TF_FILESYSTEM_OPS_ABI),
            (offer.filesystem_ops_api, TF_FILESYSTEM_OPS_API),
        ),
        (
            !offer.random_access_file_ops.is_null(),
            "random access file",
            (offer.random_access_file_ops_abi, TF_RANDOM_ACCESS_FILE_OPS_ABI),
            (offer.random_access_file_ops_api, TF_RANDOM_ACCESS_FILE_OPS_API),
        ),
        (
            !offer.writable_file_ops.is_null(),
            "writable file",
            (offer.writable_file_ops_abi, TF_WRITABLE_FILE_OPS_ABI),
            (offer.writable_file_ops_api, TF_WRITABLE_FILE_OPS_API),
        ),
        (
            !offer.read_only_memory_region_ops.is_null(),
            "read only memory region",
            (offer.read_only_memory_region_ops_abi, TF_READ_ONLY_MEMORY_REGION_OPS_ABI),
            (offer.read_only_memory_region_ops_api, TF_READ_ONLY_MEMORY_REGION_OPS_API),
        ),
    ];
    let differs = |kind: &str, name: &str, (plugin, core): (c_int, c_int), end: &str| {
        format!(
            "Plugin {kind} ({plugin}) for {name} operations doesn't match expected core {kind} ({core}). {end}"
        )
    };
    let present = || tables.iter().filter(|(present, ..)| *present);
    for (_, name, abi, _) in present() {
        if abi.0 != abi.1 {
            let text = differs("ABI", name, *abi, "Plugin cannot be loaded.");
            return Err(Error::failed_precondition(text));
        }
    }
    for (_, name, _, api) in present() {
        if api.0 != api.1 {
            let end = "Plugin will be loaded but functionality might be missing.";
            log::info!("{}", differs("API", name, *api, end));
        }
    }
    Ok(())
}

/// The smaller of both sides' sizes, and zeros behind it.
///
/// # Safety
/// `table` must be null, or valid for `size` bytes or the whole of `T`, whichever is less; the all-zero
/// bytes must be a `T`, and `size` must not cut a field in two.
unsafe fn copy_table<T>(table: *const T, size: usize) -> T {
    let mut copy = MaybeUninit::<T>::zeroed();
    if !table.is_null() {
        // SAFETY: `table` is valid for `size` bytes or the whole of `T`, whichever is less, and so is `copy`.
        unsafe {
            ptr::copy_nonoverlapping(
                table.cast::<u8>(),
                copy.as_mut_ptr().cast(),
                size.min(size_of::<T>()),
            );
        }
    }
    // SAFETY: zeros, over which whole fields were copied.
    unsafe { copy.assume_init() }
}

/// # Safety
/// As [`Host::register_raw`], for one scheme.
unsafe fn copy_tables(session: &Session, scheme: &[u8], offer: &TF_FilesystemPluginOps) -> Tables {
    // A function pointer of which only a part lies within the size is none.
    let whole = |size: usize, ours: usize| {
        let size = size.min(ours);
        let cut = size % size_of::<usize>();
        if cut != 0 {
            session.log.add(
                OP,
                scheme,
                format!("a table of {size} bytes ends inside a function pointer; TensorFlow would call half an address"),
            );
        }
        size - cut
    };
    // SAFETY: the tables are structs of nullable function pointers, valid for their declared sizes.
    unsafe {
        Tables {
            filesystem: copy_table(
                offer.filesystem_ops,
                whole(offer.filesystem_ops_size, size_of::<TF_FilesystemOps>()),
            ),
            random_access_file: copy_table(
                offer.random_access_file_ops,
                whole(offer.random_access_file_ops_size, size_of::<TF_RandomAccessFileOps>()),
            ),
            writable_file: copy_table(
                offer.writable_file_ops,
                whole(offer.writable_file_ops_size, size_of::<TF_WritableFileOps>()),
            ),
            read_only_memory_region: copy_table(
                offer.read_only_memory_region_ops,
                whole(
                    offer.read_only_memory_region_ops_size,
                    size_of::<TF_ReadOnlyMemoryRegionOps>(),
                ),
            ),
        }
    }
}

/// A function that must be there and is not.
enum Lack {
    /// TensorFlow refuses the plugin with this text.
    Refused(String),
    /// TensorFlow looks for the function in the plugin's table, finds something, and later calls null,
    /// since its copy of the table ends before: `what` is the function, `size` the table's.
    CutOff { what: &'static str, size: usize },
}

impl Lack {
    fn error(self, session: &Session, scheme: &[u8]) -> Error {
        match self {
            Self::Refused(text) => Error::new(Code::FailedPrecondition, text),
            Self::CutOff { what, size } => {
                let text = format!(
                    "the table is said to have {size} bytes, which does not cover {what}; TensorFlow reads beyond the size to check it and then calls null"
                );
                session.log.add(OP, scheme, text.clone());
                Error::internal(text)
            }
        }
    }
}

/// Rows 4 to 11 of TensorFlow's checks. It makes them on the plugin's tables, whatever their declared
/// size; this host looks at the copies and tells a function that is cut off from one that is missing.
fn check_tables(offer: &TF_FilesystemPluginOps, tables: &Tables) -> Result<(), Lack> {
    let refused = |text: &str| Err(Lack::Refused(text.to_owned()));
    let required = |present: bool, offset: usize, size: usize, what, text: &str| {
        if present {
            Ok(())
        } else if offset + size_of::<usize>() > size {
            Err(Lack::CutOff { what, size })
        } else {
            Err(Lack::Refused(text.to_owned()))
        }
    };
    if offer.filesystem_ops.is_null() {
        return refused("Trying to register filesystem without operations");
    }
    let fs = &tables.filesystem;
    let size = offer.filesystem_ops_size;
    required(
        fs.init.is_some(),
        offset_of!(TF_FilesystemOps, init),
        size,
        "`init`",
        "Trying to register filesystem without `init` operation",
    )?;
    required(
        fs.cleanup.is_some(),
        offset_of!(TF_FilesystemOps, cleanup),
        size,
        "`cleanup`",
        "Trying to register filesystem without `cleanup` operation",
    )?;
    if !offer.random_access_file_ops.is_null() {
        required(
            tables.random_access_file.cleanup.is_some(),
            offset_of!(TF_RandomAccessFileOps, cleanup),
            offer.random_access_file_ops_size,
            "`cleanup` of random access files",
            "Trying to register filesystem without `cleanup` operation on random access files",
        )?;
    }
    if !offer.writable_file_ops.is_null() {
        required(
            tables.writable_file.cleanup.is_some(),
            offset_of!(TF_WritableFileOps, cleanup),
            offer.writable_file_ops_size,
            "`cleanup` of writable files",
            "Trying to register filesystem without `cleanup` operation on writable files",
        )?;
    }
    if !offer.read_only_memory_region_ops.is_null() {
        let region = &tables.read_only_memory_region;
        let size = offer.read_only_memory_region_ops_size;
        required(
            region.cleanup.is_some(),
            offset_of!(TF_ReadOnlyMemoryRegionOps, cleanup),
            size,
            "`cleanup` of memory regions",
            "Trying to register filesystem without `cleanup` operation on read only memory regions",
        )?;
        required(
            region.data.is_some(),
            offset_of!(TF_ReadOnlyMemoryRegionOps, data),
            size,
            "`data` of memory regions",
            "Trying to register filesystem without `data` operation on read only memory regions",
        )?;
        required(
            region.length.is_some(),
            offset_of!(TF_ReadOnlyMemoryRegionOps, length),
            size,
            "`length` of memory regions",
            "Trying to register filesystem without `length` operation on read only memory regions",
        )?;
    }
    if fs.new_random_access_file.is_some() && offer.random_access_file_ops.is_null() {
        return refused(
            "Filesystem allows creation of random access files but no operations on them have been supplied.",
        );
    }
    if (fs.new_writable_file.is_some() || fs.new_appendable_file.is_some())
        && offer.writable_file_ops.is_null()
    {
        return refused(
            "Filesystem allows creation of writable files but no operations on them have been supplied.",
        );
    }
    if fs.new_read_only_memory_region_from_file.is_some()
        && offer.read_only_memory_region_ops.is_null()
    {
        return refused(
            "Filesystem allows creation of readonly memory regions but no operations on them have been supplied.",
        );
    }
    Ok(())
}
