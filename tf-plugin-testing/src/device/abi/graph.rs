//! The host's side of graph passes.

use super::guarded::{Guarded, sizes};
use crate::abi::graph_functions;
use crate::abi::status::{Status, install};
use crate::violations::{Log, Violation};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use se_plugin::__private::testing::versions::Versioned as _;
use se_plugin::__private::{Exported, init_graph};
use se_plugin::{Code, Result};
use std::sync::{Arc, Once};
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{
    GO_MAJOR, GO_MINOR, GO_PATCH, StatusFunctions, TF_Buffer, TF_Code, TF_GrapplerItem, TF_OK,
    TF_Status, TF_TriState, TP_Optimizer, TP_OptimizerConfigs, TP_OptimizerRegistrationParams,
};

sizes! {
    GraphSizes {
        params: TP_OptimizerRegistrationParams,
        configs: TP_OptimizerConfigs,
        optimizer: TP_Optimizer,
    }
    GO_MAJOR
}

/// A host into which the graph pass of a plugin is loaded: first the SDK's own, then the author's.
#[derive(Debug)]
pub struct GraphHost {
    pub(super) log: Arc<Log>,
    pub(super) device_type: String,
    pub(super) configs: TP_OptimizerConfigs,
    pub(super) optimizer: TP_Optimizer,
}

// SAFETY: the pointers in the structs are the plugin's, whose callbacks are called from any thread.
unsafe impl Send for GraphHost {}
// SAFETY: the header allows any thread to call the plugin's callbacks, several at once; the structs do not
// change.
unsafe impl Sync for GraphHost {}

/// The names of the nodes that a pass must keep, behind the pointer to a `TF_GrapplerItem`.
type Item<'a> = [&'a str];

impl GraphHost {
    /// Loads the graph pass of a platform with `#[device_plugin]` as TensorFlow does.
    ///
    /// # Errors
    /// Returns the errors with which TensorFlow would abort, with its texts.
    pub fn load<P: Exported>() -> Result<Self> {
        Self::load_with::<P>(GraphSizes::default(), 0)
    }

    /// Does [`load`](Self::load) as a host of these sizes and version, and after `load` earlier loads.
    pub fn load_with<P: Exported>(sizes: GraphSizes, load: usize) -> Result<Self> {
        const OP: &str = "TF_InitGraph";
        install();
        install_items();
        let log = Arc::new(Log::default());
        let mut configs = Guarded::<TP_OptimizerConfigs>::new(sizes.configs);
        let mut optimizer = Guarded::<TP_Optimizer>::new(sizes.optimizer);
        let whole = TP_OptimizerRegistrationParams {
            major_version: sizes.major,
            minor_version: GO_MINOR,
            patch_version: GO_PATCH,
            optimizer_configs: configs.as_mut_ptr(),
            optimizer: optimizer.as_mut_ptr(),
            ..Default::default()
        };
        let mut params = Guarded::holding(sizes.params, &whole);
        let status = Status::new(&log, OP, b"");
        // SAFETY: the structs that the function wants.
        unsafe { init_graph::<P>(params.as_mut_ptr(), status.as_ptr(), Some(load)) };
        status.result()?;
        let params = params.take(&log, OP)?;
        let configs = configs.take(&log, OP)?;
        let optimizer = optimizer.take(&log, OP)?;
        assert!(!params.device_type.is_null(), "the SDK names each platform");
        assert_eq!(optimizer.create_func.is_some(), optimizer.destroy_func.is_some());
        // SAFETY: a C string that lives as long as the process.
        let device_type = unsafe { CStr::from_ptr(params.device_type) };
        let device_type = device_type.to_string_lossy().into_owned();
        Ok(Self { log, device_type, configs, optimizer })
    }

    /// Returns the device type that the pass is registered for.
    #[must_use]
    pub fn device_type(&self) -> &str {
        &self.device_type
    }

    /// Returns the members of `TP_OptimizerConfigs`, in the order of the header: 0 is default, 1 off, 2 on.
    #[must_use]
    pub fn configs(&self) -> [u32; 19] {
        let configs = ptr::from_ref(&self.configs).cast::<TF_TriState>();
        // SAFETY: the 19 members are of this type and begin behind the first 16 bytes.
        std::array::from_fn(|at| unsafe { configs.add(4 + at).read() })
    }

    /// Runs the pass on a serialised `GraphDef`. The nodes in `preserved` must stay. Returns `None`
    /// if the pass left the graph unchanged.
    ///
    /// # Errors
    /// Returns the plugin's error. TensorFlow logs it and continues with the original graph.
    pub fn optimize(&self, graph: &[u8], preserved: &[&str]) -> Result<Option<Vec<u8>>> {
        const OP: &str = "optimize_func";
        // As in TensorFlow, an empty buffer has no bytes at all.
        let data = if graph.is_empty() { ptr::null() } else { graph.as_ptr().cast() };
        let input = TF_Buffer { data, length: graph.len(), data_deallocator: None };
        let mut output = TF_Buffer::default();
        let item: *const Item<'_> = preserved;
        let item: *const *const Item<'_> = &item;
        let optimize = self.optimizer.optimize_func.expect("every callback is there");
        let status = Status::new(&self.log, OP, b"");
        // SAFETY: the arguments that the callbacks want, in their order.
        unsafe {
            let state = self.optimizer.create_func.map_or(ptr::null_mut(), |create| create());
            let item = item.cast::<TF_GrapplerItem>();
            optimize(state, &input, item, &mut output, status.as_ptr());
            if let Some(destroy) = self.optimizer.destroy_func {
                destroy(state);
            }
        }
        let result = status.result();
        let rewritten = (!output.data.is_null()).then(|| {
            // SAFETY: the plugin's bytes, so many of them.
            let bytes =
                unsafe { core::slice::from_raw_parts(output.data.cast::<u8>(), output.length) };
            bytes.to_vec()
        });
        match output.data_deallocator {
            // SAFETY: the plugin's bytes, freed once.
            Some(free) => unsafe { free(output.data.cast_mut(), output.length) },
            None if rewritten.is_some() => self.log.add(OP, b"", "the output has no deallocator"),
            None => {}
        }
        match result {
            Ok(()) if rewritten.is_none() => {
                self.log.add(OP, b"", "OK without an output: TensorFlow would run an empty graph");
                Ok(None)
            }
            Ok(()) => Ok(rewritten),
            Err(error) => {
                if rewritten.is_some() {
                    self.log.add(OP, b"", "an output beside an error");
                }
                if error.code() == Code::Aborted { Ok(None) } else { Err(error) }
            }
        }
    }

    /// Returns what the plugin did that would harm TensorFlow, since the last call.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.log.take()
    }
}

/// Makes the plugins of this process get the nodes to preserve from [`GraphHost`].
fn install_items() {
    static ONCE: Once = Once::new();
    // SAFETY: the functions keep the promises of the table's fields for items of this module, the only ones
    // in a process without TensorFlow.
    ONCE.call_once(|| unsafe {
        graph_functions::change(|table| {
            table.TF_GetNodesToPreserveListSize = Some(size_of_item);
            table.TF_GetNodesToPreserveList = Some(names_of_item);
        });
    });
}

/// # Safety
/// `item` is from [`GraphHost::optimize`] and still lives.
unsafe fn item<'a>(item: *const TF_GrapplerItem) -> &'a Item<'a> {
    // SAFETY: `item` is from `GraphHost::optimize`, which passes the address of an `&Item` that outlives the
    // call.
    unsafe { &**item.cast::<*const Item<'a>>() }
}

/// # Safety
/// `status` was made by the installed functions, and was not deleted.
pub(super) unsafe fn set(status: *mut TF_Status, code: TF_Code) {
    if let Ok(host) = StatusFunctions::get() {
        // SAFETY: `status` was made by the installed functions, and the text is a C string.
        unsafe { (host.TF_SetStatus)(status, code, c"".as_ptr()) };
    }
}

unsafe extern "C" fn size_of_item(
    of: *const TF_GrapplerItem,
    num_values: *mut c_int,
    storage_size: *mut usize,
    status: *mut TF_Status,
) {
    // SAFETY: the item and the places for the answers.
    unsafe {
        let names = item(of);
        *num_values = names.len() as c_int;
        *storage_size = names.iter().map(|name| name.len()).sum();
        set(status, TF_OK);
    }
}

unsafe extern "C" fn names_of_item(
    of: *const TF_GrapplerItem,
    values: *mut *mut c_char,
    lengths: *mut usize,
    num_values: c_int,
    storage: *mut c_void,
    storage_size: usize,
    status: *mut TF_Status,
) {
    // SAFETY: the item, and room for so many names and bytes.
    unsafe {
        let names = item(of);
        assert_eq!(names.len(), num_values as usize, "the plugin takes what it was told");
        let mut end = 0;
        for (at, name) in names.iter().enumerate() {
            assert!(end + name.len() <= storage_size, "the plugin takes what it was told");
            let place = storage.cast::<u8>().add(end);
            ptr::copy_nonoverlapping(name.as_ptr(), place, name.len());
            values.add(at).write(place.cast());
            lengths.add(at).write(name.len());
            end += name.len();
        }
        set(status, TF_OK);
    }
}
