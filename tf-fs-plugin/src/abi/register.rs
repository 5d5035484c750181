//! Registration: what `TF_InitPlugin` gives to the host.

use super::alloc::{self, Block, Blocks, c_string};
pub use super::init_handoff::with_handoff;
use super::registration::Tables;
pub use super::registration::{Registration, Scheme};
use super::{configuration, files, filesystem, transactions};
use crate::filesystem::Filesystem;
use crate::operations::Operations;
use core::any::TypeId;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};
use tf_fs_sys::host::Table;
use tf_fs_sys::{
    StatusFunctions, TF_FilesystemOps, TF_FilesystemOpsWithoutTransactions,
    TF_FilesystemPluginInfo, TF_FilesystemPluginOps, TF_SetFilesystemVersionMetadata,
};
use tf_plugin_core::__private::boundary::{Panic, fork, log_error, watch_panics};
use tf_plugin_core::Result;

/// The filesystems that a crate exports: implemented by `#[filesystem_plugin]` for the filesystem itself, and by
/// `filesystem_plugins!` for the type `FilesystemPlugins`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a filesystem that is exported",
    label = "this type has no `#[filesystem_plugin]`",
    note = "put `#[filesystem_plugin(scheme = \"...\")]` on `impl Filesystem for {Self}`; with \
            `filesystem_plugins!` the type is `FilesystemPlugins`"
)]
pub trait Plugin: 'static {
    /// Returns one registration per scheme.
    fn registrations() -> &'static [&'static Registration];
}

impl Registration {
    /// Creates the registration of `F` under `scheme`, for the static that `S` refers to.
    #[must_use]
    pub const fn new<F: Filesystem, S: Scheme>(scheme: &'static str) -> Self {
        Self {
            scheme,
            provided: F::PROVIDED,
            tables: const { &tables::<F>(filesystem::init::<F, S>) },
            live: AtomicUsize::new(0),
        }
    }
}

/// Returns the tables of `F`, whose filesystems `init` creates.
const fn tables<F: Filesystem>(init: filesystem::Init) -> Tables {
    Tables {
        filesystem: configuration::add_to::<F>(transactions::add_to::<F>(filesystem::ops::<F>(
            init,
        ))),
        random_access_file: if F::PROVIDED.contains(Operations::NEW_RANDOM_ACCESS_FILE) {
            Some(files::random_access_ops::<F::Reader>())
        } else {
            None
        },
        writable_file: if F::PROVIDED
            .intersects(Operations::NEW_WRITABLE_FILE.union(Operations::NEW_APPENDABLE_FILE))
        {
            Some(files::writable_ops::<F::Writer>())
        } else {
            None
        },
        memory_region: if F::PROVIDED.contains(Operations::NEW_READ_ONLY_MEMORY_REGION_FROM_FILE) {
            Some(files::region_ops::<F::Region>())
        } else {
            None
        },
    }
}

/// Fills in `info`: the body of `TF_InitPlugin`. Schemes that this plugin serves already are not
/// offered again, so that registering a plugin twice is not an error.
///
/// If the plugin cannot work, `info` stays zeroed, which the host refuses with a clear error.
///
/// # Safety
/// `info` must be null or point to a zeroed [`TF_FilesystemPluginInfo`].
pub unsafe fn init_plugin(
    info: *mut TF_FilesystemPluginInfo,
    registrations: &[&'static Registration],
) {
    let result = catch_unwind(|| {
        watch_panics();
        fork::watch();
        if let Err(missing) = StatusFunctions::get() {
            log_error(&format_args!("the plugin cannot be registered: {missing}"));
            return;
        }
        let is_live = |one: &Registration| one.live.load(Ordering::Acquire) > 0;
        let fresh = registrations.iter().copied().filter(|one| !is_live(one));
        // SAFETY: `info` is null, or points to a zeroed `TF_FilesystemPluginInfo` of the host.
        if let Some(info) = unsafe { info.as_mut() }
            && let Err(error) = fill(info, fresh)
        {
            log_error(&format_args!("the plugin cannot be registered: {error:#}"));
        }
    });
    if let Err(payload) = result {
        log_error(&Panic::take("TF_InitPlugin", payload));
    }
}

/// Returns the registration of a type and a scheme. There is one for the whole process, because the
/// host's side keeps references forever.
#[must_use]
pub fn registration_of<F: Filesystem>(scheme: &str) -> &'static Registration {
    static ALL: Mutex<BTreeMap<(TypeId, String), &'static Registration>> =
        Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (TypeId::of::<F>(), scheme.to_owned());
    all.entry(key).or_insert_with(|| {
        Box::leak(Box::new(Registration {
            scheme: Box::leak(scheme.to_owned().into_boxed_str()),
            provided: F::PROVIDED,
            tables: const { &tables::<F>(filesystem::init_given::<F>) },
            live: AtomicUsize::new(0),
        }))
    })
}

/// Fills in `info` as [`init_plugin`] does, but offers every scheme: a test may have several hosts
/// at a time, each with its own filesystems.
pub fn register_all(
    info: &mut TF_FilesystemPluginInfo,
    registrations: &[&'static Registration],
) -> Result<()> {
    watch_panics();
    fork::watch();
    fill(info, registrations.iter().copied())
}

/// Fills `info`, or leaves it untouched on an error.
fn fill(
    info: &mut TF_FilesystemPluginInfo,
    registrations: impl Iterator<Item = &'static Registration>,
) -> Result<()> {
    let release = tf_fs_sys::host::release();
    let mut blocks = Blocks::default();
    let offers = registrations.map(|registration| offer(registration, release, &mut blocks));
    let offers = offers.collect::<Result<Vec<_>>>()?;
    let array = Block::of(&offers)?;
    info.num_schemes = offers.len();
    info.ops = blocks.give(array);
    info.plugin_memory_allocate = Some(alloc::allocate);
    info.plugin_memory_free = Some(alloc::free);
    Ok(())
}

/// Copies a scheme's tables to memory for the host, which frees each block that `blocks` keeps.
fn offer(
    registration: &'static Registration,
    release: Option<(u32, u32)>,
    blocks: &mut Blocks,
) -> Result<TF_FilesystemPluginOps> {
    fn keep<T: Copy>(blocks: &mut Blocks, table: Option<T>) -> Result<*mut T> {
        table.map_or(Ok(core::ptr::null_mut()), |table| Ok(blocks.keep(Block::of(&[table])?)))
    }
    let tables = registration.tables;
    let (filesystem_ops, filesystem_ops_size) =
        filesystem_table(&tables.filesystem, release, blocks)?;
    let mut ops = TF_FilesystemPluginOps {
        scheme: blocks.keep(c_string(registration.scheme.as_bytes())?),
        filesystem_ops,
        random_access_file_ops: keep(blocks, tables.random_access_file)?,
        writable_file_ops: keep(blocks, tables.writable_file)?,
        read_only_memory_region_ops: keep(blocks, tables.memory_region)?,
        ..TF_FilesystemPluginOps::default()
    };
    TF_SetFilesystemVersionMetadata(&mut ops);
    ops.filesystem_ops_size = filesystem_ops_size;
    Ok(ops)
}

/// Returns the table in the layout of the host's release, with its size in bytes.
fn filesystem_table(
    ops: &TF_FilesystemOps,
    release: Option<(u32, u32)>,
    blocks: &mut Blocks,
) -> Result<(*mut TF_FilesystemOps, usize)> {
    // The ABI number is the same, so only the release tells which layout the host reads.
    if release >= Some((2, 22)) {
        let table = blocks.keep(Block::of(&[ops.without_transactions()])?);
        return Ok((table.cast(), size_of::<TF_FilesystemOpsWithoutTransactions>()));
    }
    Ok((blocks.keep(Block::of(&[*ops])?), size_of::<TF_FilesystemOps>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_release_decides_which_table_it_gets() {
        let size = |release| {
            let mut blocks = Blocks::default();
            filesystem_table(&TF_FilesystemOps::EMPTY, release, &mut blocks).expect("memory").1
        };
        assert_eq!([None, Some((2, 12)), Some((2, 21))].map(size), [264; 3]);
        assert_eq!([Some((2, 22)), Some((3, 0))].map(size), [216; 2]);
    }
}
