//! Calls the entry point of filesystems and reads the tables that it offers.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use cargo_tf_plugin::host::text;
use cargo_tf_plugin::probe::{Event, Scheme, Table};
use cargo_tf_plugin::tables;
use tf_fs_sys::*;

use super::events::{step, tell};
use super::load::{Loaded, call};
use super::stubs;

impl Loaded {
    /// Calls the entry point that `register_filesystem_plugin` calls, and what follows.
    pub(super) fn registered(&self) {
        let Some(function) = self.0.symbol(c"TF_InitPlugin") else { return };
        step("TF_InitPlugin");
        // SAFETY: the type that the header gives to the function of this name.
        let function: TF_InitPluginFn = unsafe { transmute(function) };
        let init = || {
            let mut info = TF_FilesystemPluginInfo::default();
            // SAFETY: a zeroed struct to fill in; TensorFlow calls the function as often as a library is registered.
            unsafe { function(&raw mut info) };
            info
        };
        let info = init();
        tell(&Event::Offer {
            schemes: info.num_schemes,
            allocate: info.plugin_memory_allocate.is_some(),
            free: info.plugin_memory_free.is_some(),
        });
        if info.plugin_memory_allocate.is_none() || info.plugin_memory_free.is_none() {
            return;
        }
        if stubs::release_was_asked() {
            // A plugin gives each release the table that it reads; a scheme that is initialized is not offered again.
            step("TF_InitPlugin in TensorFlow 2.22");
            let newer = stubs::in_2_22(init);
            for index in 0..newer.num_schemes {
                // SAFETY: the plugin says that there are so many.
                let ops = unsafe { &*newer.ops.add(index) };
                tell(&Event::Newer(self.scheme(ops)));
            }
        }
        for index in 0..info.num_schemes {
            step(format!("reading what TF_InitPlugin has filled in for scheme {}", index + 1));
            // SAFETY: the plugin says that there are so many.
            let ops = unsafe { &*info.ops.add(index) };
            let scheme = self.scheme(ops);
            // TensorFlow does not initialize what it refuses.
            let accepted = tables::refusal(&scheme).is_none();
            let initialized = accepted && scheme.tables[0].has("init");
            let name = scheme.scheme.clone().unwrap_or_default();
            tell(&Event::Scheme(scheme));
            if !initialized {
                continue;
            }
            // SAFETY: a table with `init`, as was seen above.
            let init = unsafe { (*ops.filesystem_ops).init };
            let Some(init) = init else { continue };
            // For the rest of the process, as in TensorFlow.
            let filesystem =
                Box::leak(Box::new(TF_Filesystem { plugin_filesystem: std::ptr::null_mut() }));
            call(&format!("init of {name}://"), |status| {
                // SAFETY: a zeroed filesystem and a status.
                unsafe { init(filesystem, status) }
            });
        }
    }

    fn scheme(&self, ops: &TF_FilesystemPluginOps) -> Scheme {
        let table =
            |(name, fields): (&str, &[&str]), [abi, api]: [c_int; 2], size, at: *const c_void| {
                let mut table = Table {
                    name: name.to_owned(),
                    present: !at.is_null(),
                    abi: Some(abi.into()),
                    api: Some(api.into()),
                    size: size as u64,
                    slots: Vec::new(),
                };
                if table.present {
                    let pointers = at.cast::<usize>();
                    let given = size / size_of::<usize>();
                    table.slots.extend(fields.iter().enumerate().map(|(at, field)| {
                        // SAFETY: within the size that the plugin gives. TensorFlow takes the slots behind it for null.
                        let pointer = if at < given { unsafe { *pointers.add(at) } } else { 0 };
                        self.slot(field, pointer)
                    }));
                }
                table
            };
        macro_rules! table {
            ($names:expr, $abi:ident $api:ident $size:ident $at:ident) => {
                table($names, [ops.$abi, ops.$api], ops.$size, ops.$at.cast())
            };
        }
        let filesystem = (tables::FILESYSTEM.0, &*tables::filesystem(ops.filesystem_ops_size));
        let tables = vec![
            table!(filesystem, filesystem_ops_abi filesystem_ops_api filesystem_ops_size filesystem_ops),
            table!(tables::names::<TF_RandomAccessFileOps>(), random_access_file_ops_abi
                random_access_file_ops_api random_access_file_ops_size random_access_file_ops),
            table!(tables::names::<TF_WritableFileOps>(), writable_file_ops_abi
                writable_file_ops_api writable_file_ops_size writable_file_ops),
            table!(tables::names::<TF_ReadOnlyMemoryRegionOps>(), read_only_memory_region_ops_abi
                read_only_memory_region_ops_api read_only_memory_region_ops_size read_only_memory_region_ops),
        ];
        // SAFETY: a string of the plugin's, or null.
        Scheme { scheme: unsafe { text(ops.scheme) }, tables }
    }
}
