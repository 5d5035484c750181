//! What TensorFlow does in `TF_RegisterFilesystemPlugin`.

use super::memory::{Blocks, FreeFn};
use super::mounted::{Mounted, Tables};
use crate::filesystem::host::Host;
use crate::filesystem::session::Session;
use core::ffi::{CStr, c_int};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::sync::Arc;
use tf_fs_plugin::__private::Plugin;
use tf_fs_plugin::__private::testing::{register_all, registration_of, with_handoff};
use tf_fs_plugin::{Filesystem, Operations};
use tf_fs_sys::{TF_FilesystemPluginInfo, TF_FilesystemPluginOps};
use tf_plugin_core::{Error, Result};

const OP: &str = "TF_InitPlugin";

impl Host {
    /// Registers a plugin whose `TF_InitPlugin` is `init`, as TensorFlow does: `init` gets a zeroed
    /// struct to fill. For plugins that do not use this SDK, and for broken ones.
    ///
    /// # Errors
    /// Returns the errors of [`Host::register`].
    ///
    /// # Safety
    /// What `init` writes must follow the header's memory rules: pointers are null or valid and
    /// from the plugin's allocator. Functions have the types of their fields, and may be called as
    /// the header says, from any thread, while this host or one of its files exists. Sizes, version
    /// numbers, missing functions and what functions return may be wrong.
    pub unsafe fn register_raw(
        &self,
        init: impl FnOnce(*mut TF_FilesystemPluginInfo),
    ) -> Result<()> {
        let mut info = TF_FilesystemPluginInfo::default();
        init(&raw mut info);
        // SAFETY: `info` holds what `init` wrote, whose pointers are null or valid: `register_raw` requires it.
        unsafe { self.take_over(&info) }
    }

    /// Registers a filesystem that the test has created, under `scheme`, without calling
    /// [`new`](Filesystem::new): for one that the test configured or that [`Faulty`] wraps.
    ///
    /// # Errors
    /// Returns the errors of [`Host::register`].
    ///
    /// [`Faulty`]: crate::filesystem::Faulty
    pub fn serve<F: Filesystem>(&self, scheme: &str, filesystem: F) -> Result<()> {
        let registration = registration_of::<F>(scheme);
        let mut info = TF_FilesystemPluginInfo::default();
        register_all(&mut info, &[registration])?;
        with_handoff(filesystem, registration, || {
            // SAFETY: the tables are those of this SDK, whose functions keep the header's promises.
            unsafe { self.take_over(&info) }
        })
    }

    /// Registers a plugin as [`Host::register`] does, but makes the slots of `ops` null, so that TensorFlow's own
    /// defaults run there. Shows how a filesystem would behave without the defaults of this SDK.
    pub fn register_without<P: Plugin>(&self, ops: Operations) -> Result<()> {
        let mut info = TF_FilesystemPluginInfo::default();
        // A plugin that cannot create its tables does not change `info`, as `TF_InitPlugin` does.
        if let Err(error) = register_all(&mut info, P::registrations()) {
            log::error!("the plugin cannot be registered: {error:#}");
        }
        for index in 0..info.num_schemes {
            // SAFETY: `register_all` made `num_schemes` elements, each with a table.
            let table = unsafe { &mut *(*info.ops.add(index)).filesystem_ops };
            for (slot, (_, op)) in (2..).zip(Operations::NAMES) {
                if ops.contains(*op) {
                    let place = ptr::from_mut(table).cast::<Option<extern "C" fn()>>();
                    // SAFETY: the table is an array of nullable function pointers of one size, in the order of
                    // `Operations::NAMES` after `init` and `cleanup`.
                    unsafe { place.add(slot).write(None) };
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
                blocks.release(OP, b"", offer.scheme);
                blocks.release(OP, b"", offer.filesystem_ops);
                blocks.release(OP, b"", offer.random_access_file_ops);
                blocks.release(OP, b"", offer.writable_file_ops);
                blocks.release(OP, b"", offer.read_only_memory_region_ops);
            }
        }
        // SAFETY: the array is the plugin's block or null, and nothing uses it any more.
        unsafe { blocks.release(OP, b"", info.ops) };
        first_error
    }

    /// # Safety
    /// As [`Host::register_raw`], for one scheme.
    unsafe fn register_scheme(&self, offer: &TF_FilesystemPluginOps, free: FreeFn) -> Result<()> {
        if offer.scheme.is_null() {
            let what = "Attempted to register filesystem with `nullptr` URI scheme";
            return Err(Error::invalid_argument(what));
        }
        // SAFETY: the pointers in `offer` are null or valid for the sizes that it names: `register_raw` requires it.
        // The scheme was checked above.
        let (scheme, tables) = unsafe {
            let scheme = CStr::from_ptr(offer.scheme).to_bytes().to_vec();
            check_versions(offer)?;
            let tables = copy_tables(&self.session, &scheme, offer);
            check_tables(&self.session, &scheme, offer, &tables)?;
            (scheme, tables)
        };
        // SAFETY: the tables hold functions that any thread may call: `register_raw` requires it.
        let mounted = unsafe { Mounted::init(&self.session, scheme, tables, free) }?;
        self.mount(mounted)
    }
}

fn check_versions(offer: &TF_FilesystemPluginOps) -> Result<()> {
    macro_rules! tables {
        ($($name:literal $ops:ident $abi:ident $core_abi:ident $api:ident $core_api:ident;)*) => {
            [$((
                $name,
                offer.$ops.is_null(),
                (offer.$abi, tf_fs_sys::$core_abi),
                (offer.$api, tf_fs_sys::$core_api),
            ),)*]
        };
    }
    let tables = tables! {
        "filesystem" filesystem_ops filesystem_ops_abi TF_FILESYSTEM_OPS_ABI filesystem_ops_api TF_FILESYSTEM_OPS_API;
        "random access file" random_access_file_ops random_access_file_ops_abi TF_RANDOM_ACCESS_FILE_OPS_ABI
            random_access_file_ops_api TF_RANDOM_ACCESS_FILE_OPS_API;
        "writable file" writable_file_ops writable_file_ops_abi TF_WRITABLE_FILE_OPS_ABI
            writable_file_ops_api TF_WRITABLE_FILE_OPS_API;
        "read only memory region" read_only_memory_region_ops read_only_memory_region_ops_abi
            TF_READ_ONLY_MEMORY_REGION_OPS_ABI read_only_memory_region_ops_api TF_READ_ONLY_MEMORY_REGION_OPS_API;
    };
    let differs = |kind: &str, name: &str, (plugin, core): (c_int, c_int), end: &str| {
        format!(
            "Plugin {kind} ({plugin}) for {name} operations doesn't match expected core {kind} ({core}). {end}"
        )
    };
    // TensorFlow compares the version of the first table before it looks whether the table is there.
    let present = || tables.iter().filter(|(name, is_null, ..)| *name == "filesystem" || !is_null);
    for (name, _, abi, _) in present() {
        if abi.0 != abi.1 {
            let text = differs("ABI", name, *abi, "Plugin cannot be loaded.");
            return Err(Error::failed_precondition(text));
        }
    }
    for (name, _, _, api) in present() {
        if api.0 != api.1 {
            let end = "Plugin will be loaded but functionality might be missing.";
            log::info!("{}", differs("API", name, *api, end));
        }
    }
    Ok(())
}

/// Copies as many bytes as both sides have, and fills the rest with zeros.
///
/// # Safety
/// `table` must be null, or valid for `size` bytes or the whole of `T`, whichever is less; `T` must be a struct of
/// nullable function pointers.
unsafe fn copy_table<T>(session: &Session, scheme: &[u8], table: *const T, size: usize) -> T {
    let size = size.min(size_of::<T>());
    // A function pointer that is only partly within the size counts as missing.
    let cut = size % size_of::<usize>();
    if cut != 0 {
        session.log.add(
            OP,
            scheme,
            format!("a table of {size} bytes ends inside a function pointer; TensorFlow would call half an address"),
        );
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    if !table.is_null() {
        // SAFETY: `table` is valid for `size` bytes, and `copy` has at least as many.
        unsafe {
            ptr::copy_nonoverlapping(table.cast::<u8>(), copy.as_mut_ptr().cast(), size - cut);
        }
    }
    // SAFETY: zeros, which are null, over which whole function pointers were copied.
    unsafe { copy.assume_init() }
}

/// # Safety
/// As [`Host::register_raw`], for one scheme.
unsafe fn copy_tables(session: &Session, scheme: &[u8], offer: &TF_FilesystemPluginOps) -> Tables {
    macro_rules! copies {
        ($($table:ident $ops:ident $size:ident;)*) => {
            Tables { $($table: copy_table(session, scheme, offer.$ops, offer.$size),)* }
        };
    }
    // SAFETY: the tables are structs of nullable function pointers, valid for their declared sizes.
    unsafe {
        copies! {
            filesystem filesystem_ops filesystem_ops_size;
            random_access_file random_access_file_ops random_access_file_ops_size;
            writable_file writable_file_ops writable_file_ops_size;
            read_only_memory_region read_only_memory_region_ops read_only_memory_region_ops_size;
        }
    }
}

/// Makes checks 4 to 11 of TensorFlow. TensorFlow checks the plugin's tables, and ignores their declared size; this
/// host checks the copies. It reports a function that is cut off differently from a missing one: TensorFlow finds the
/// function, but calls null later, since its copy of the table ends before.
fn check_tables(
    session: &Session,
    scheme: &[u8],
    offer: &TF_FilesystemPluginOps,
    tables: &Tables,
) -> Result<()> {
    macro_rules! required {
        ($($on:literal $of:literal $table:ident $type:ident $ops:ident $size:ident [$($op:ident)*];)*) => {
            [$($((
                !offer.$ops.is_null() && tables.$table.$op.is_none(),
                offset_of!(tf_fs_sys::$type, $op),
                offer.$size,
                concat!("`", stringify!($op), "`", $of),
                concat!("Trying to register filesystem without `", stringify!($op), "` operation", $on),
            ),)*)*]
        };
    }
    let refused = |text: &str| Err(Error::failed_precondition(text));
    if offer.filesystem_ops.is_null() {
        return refused("Trying to register filesystem without operations");
    }
    let required = required! {
        "" "" filesystem TF_FilesystemOps filesystem_ops filesystem_ops_size [init cleanup];
        " on random access files" " of random access files" random_access_file TF_RandomAccessFileOps
            random_access_file_ops random_access_file_ops_size [cleanup];
        " on writable files" " of writable files" writable_file TF_WritableFileOps
            writable_file_ops writable_file_ops_size [cleanup];
        " on read only memory regions" " of memory regions" read_only_memory_region TF_ReadOnlyMemoryRegionOps
            read_only_memory_region_ops read_only_memory_region_ops_size [cleanup data length];
    };
    for (lacks, offset, size, what, text) in required {
        if lacks && offset + size_of::<usize>() > size {
            let text = format!(
                "the table is said to have {size} bytes, which does not cover {what}; TensorFlow reads beyond the size to check it and then calls null"
            );
            session.log.add(OP, scheme, text.clone());
            return Err(Error::internal(text));
        } else if lacks {
            return refused(text);
        }
    }
    let fs = &tables.filesystem;
    let writes = fs.new_writable_file.is_some() || fs.new_appendable_file.is_some();
    let maps = fs.new_read_only_memory_region_from_file.is_some();
    for (opens, no_table, what) in [
        (
            fs.new_random_access_file.is_some(),
            offer.random_access_file_ops.is_null(),
            "random access files",
        ),
        (writes, offer.writable_file_ops.is_null(), "writable files"),
        (maps, offer.read_only_memory_region_ops.is_null(), "readonly memory regions"),
    ] {
        if opens && no_table {
            return Err(Error::failed_precondition(format_args!(
                "Filesystem allows creation of {what} but no operations on them have been supplied."
            )));
        }
    }
    Ok(())
}
