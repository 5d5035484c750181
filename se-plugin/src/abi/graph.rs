//! `TF_InitGraph`, and the callbacks of the graph pass.

use super::device_type::device_type;
use super::exports::Exported;
use super::loads::{initialize, name_of_load};
use super::versions::{Versioned as _, check_major_version, fill, read_at_least};
use crate::graph::workarounds::Workarounds;
use crate::graph::{Graph, GraphPass, OptimizerConfigs};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::ffi::CString;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{
    GO_MAJOR, GO_MINOR, GO_PATCH, GrapplerFunctions, TF_Buffer, TF_GrapplerItem, TF_Status,
    TP_Optimizer, TP_OptimizerRegistrationParams,
};
use tf_op_plugin::__private::abi::Status;
use tf_plugin_core::__private::boundary::lent;
use tf_plugin_core::__private::boundary::{self, guard, log_error};
use tf_plugin_core::{Code, Error, Result};

/// Returns the author's graph pass, which is created once.
fn pass_of<P: Exported>() -> Option<&'static dyn GraphPass> {
    P::graph().get("TF_InitGraph", "the graph pass")
}

/// Implements `TF_InitGraph`.
///
/// TensorFlow aborts on an error from here, so the only error is that there is no room for the tables. A host with
/// another major version gets a pass that does nothing. `load` is the number of loads before this one, or `None`
/// to count on from the last.
///
/// # Safety
/// `params` is null, or points to a struct of which `struct_size` bytes can be read and written, and so do
/// the pointers in it; `status` is null or a status of the host.
pub unsafe fn init_graph<P: Exported>(
    params: *mut TP_OptimizerRegistrationParams,
    status: *mut TF_Status,
    load: Option<usize>,
) {
    let load = load.unwrap_or_else(|| P::graph().loads.fetch_add(1, Ordering::AcqRel));
    // SAFETY: `params` and `status` are those that the host passed to `TF_InitGraph`.
    unsafe {
        initialize(
            "TF_InitGraph",
            &format_args!("the graph pass of {}", device_type::<P>()),
            status,
            || register::<P>(params, load),
        )
    };
}

/// Registers the graph pass.
/// # Safety
/// As for [`init_graph`].
unsafe fn register<P: Exported>(
    params: *mut TP_OptimizerRegistrationParams,
    load: usize,
) -> Result<()> {
    // SAFETY: `params` is null or covers `struct_size` readable bytes.
    let host = unsafe { read_at_least(params, TP_OptimizerRegistrationParams::STRUCT_SIZE) };
    let host = host?;
    let version = check_major_version(
        "graph optimizer",
        [GO_MAJOR, GO_MINOR, GO_PATCH],
        [host.major_version, host.minor_version, host.patch_version],
    );
    if let Err(refusal) = &version {
        log_error(&format_args!(
            "the graph pass of {} does not run: {refusal}",
            device_type::<P>()
        ));
    }
    let runs = load == 0 && version.is_ok();
    let configs = match pass_of::<P>().filter(|_| runs) {
        Some(pass) => {
            boundary::catch("TF_InitGraph", || Ok(pass.configs())).unwrap_or_else(|error| {
                log_error(&format_args!(
                    "TensorFlow's own graph passes run as they would: {error:#}"
                ));
                OptimizerConfigs::default()
            })
        }
        None if runs => OptimizerConfigs::of::<P>(),
        None => OptimizerConfigs::default(),
    };
    let optimizer = TP_Optimizer {
        create_func: Some(create),
        optimize_func: Some(if runs { optimize::<P> } else { leave_alone }),
        destroy_func: Some(destroy),
        ..TP_Optimizer::default()
    };
    // TensorFlow aborts on a type that it has already, and keeps the pointer forever.
    let device_type =
        CString::new(name_of_load(device_type::<P>(), load)).map_err(Error::internal)?;
    // SAFETY: the host's `optimizer` and `optimizer_configs` are null or cover `struct_size` readable and
    // writable bytes; `params` covers all fields, as `read_at_least` has seen.
    unsafe {
        read_at_least(host.optimizer, TP_Optimizer::STRUCT_SIZE)?;
        fill(host.optimizer, &optimizer)?;
        fill(host.optimizer_configs, &configs.as_raw())?;
        (*params).device_type = device_type.into_raw().cast_const();
    }
    Ok(())
}

/// Returns null: a graph has no state.
unsafe extern "C" fn create() -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn destroy(_: *mut c_void) {}

#[cold]
fn nothing_to_change() -> Error {
    Error::new(Code::Aborted, "nothing to change")
}

unsafe extern "C" fn leave_alone(
    _: *mut c_void,
    _: *const TF_Buffer,
    _: *const TF_GrapplerItem,
    _: *mut TF_Buffer,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a status.
    unsafe { guard("optimize_func", status, (), || Err(nothing_to_change())) };
}

unsafe extern "C" fn optimize<P: Exported>(
    _: *mut c_void,
    input: *const TF_Buffer,
    item: *const TF_GrapplerItem,
    output: *mut TF_Buffer,
    status: *mut TF_Status,
) {
    let body = || {
        // SAFETY: the host passes buffers that live for the length of the call.
        let (input, output) = unsafe { (input.as_ref(), output.as_mut()) };
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Error::invalid_argument("TensorFlow passed no graph, or no room for one"));
        };
        // SAFETY: a buffer of the host's with so many bytes.
        let graph = unsafe { lent(input.data, input.length)? };
        let workarounds = Workarounds {
            device_type: device_type::<P>(),
            has_kernel: crate::kernel::host_features::has_kernel_of::<P>,
        };
        // SAFETY: the host's item, which lives for the length of the call.
        let preserved = || unsafe { nodes_to_preserve(item) };
        let rewritten = run(graph, &preserved, &workarounds, pass_of::<P>())?;
        give(output, rewritten.ok_or_else(nothing_to_change)?)
    };
    // SAFETY: the host passes a status.
    unsafe { guard("optimize_func", status, (), body) };
}

/// Returns the graph after the SDK's pass and the author's, or `None` if nothing is changed. A failure of the
/// author's pass does not undo the fixes of the SDK's pass.
fn run(
    graph: &[u8],
    preserved: &dyn Fn() -> Result<Option<BTreeSet<String>>>,
    workarounds: &Workarounds,
    pass: Option<&dyn GraphPass>,
) -> Result<Option<Vec<u8>>> {
    let fixed = {
        let mut graph = Graph::decode_preserving(graph, preserved)?;
        workarounds.apply(&mut graph)?;
        graph.check()?;
        graph.is_changed().then(|| graph.encode())
    };
    let Some(pass) = pass else { return Ok(fixed) };
    let rewrite = || {
        let mut graph = Graph::decode_preserving(fixed.as_deref().unwrap_or(graph), preserved)?;
        pass.optimize(&mut graph)?;
        graph.check()?;
        Ok(graph.is_changed().then(|| graph.encode()))
    };
    match boundary::catch("optimize_func", rewrite) {
        Ok(Some(rewritten)) => Ok(Some(rewritten)),
        Ok(None) => Ok(fixed),
        Err(error) if fixed.is_some() => {
            boundary::log_error(&format_args!("the graph pass failed: {error:#}"));
            boundary::discard("optimize_func", error);
            Ok(fixed)
        }
        Err(error) => Err(error),
    }
}

/// Passes the graph to the host.
fn give(output: &mut TF_Buffer, graph: Vec<u8>) -> Result<()> {
    // The host parses it as a protocol buffer, which has less than 2 GiB.
    if i32::try_from(graph.len()).is_err() {
        return Err(Error::resource_exhausted("the rewritten graph has 2 GiB or more"));
    }
    let graph = Box::leak(graph.into_boxed_slice());
    output.length = graph.len();
    output.data = graph.as_mut_ptr().cast_const().cast();
    output.data_deallocator = Some(free_graph);
    Ok(())
}

unsafe extern "C" fn free_graph(data: *mut c_void, length: usize) {
    if !data.is_null() {
        let graph = ptr::slice_from_raw_parts_mut(data.cast::<u8>(), length);
        // SAFETY: what `give` has leaked; the host gives it back once, with its length.
        drop(unsafe { Box::from_raw(graph) });
    }
}

/// Returns the nodes that a pass must keep, or `None` if the host has no function for that.
///
/// # Safety
/// `item` is the host's.
unsafe fn nodes_to_preserve(item: *const TF_GrapplerItem) -> Result<Option<BTreeSet<String>>> {
    let host = GrapplerFunctions::get().map_err(Error::failed_precondition)?;
    let (Some(get_size), Some(get)) =
        (host.TF_GetNodesToPreserveListSize, host.TF_GetNodesToPreserveList)
    else {
        return Ok(None);
    };
    let status = Status::new()?;
    let (mut count, mut size): (c_int, usize) = (0, 0);
    // SAFETY: the host's item, numbers to write to, and a status.
    unsafe { get_size(item, &mut count, &mut size, status.as_ptr()) };
    status.check()?;
    let length = usize::try_from(count).map_err(Error::internal)?;
    let mut values = vec![ptr::null_mut::<c_char>(); length];
    let mut lengths = vec![0_usize; length];
    let mut storage = vec![0_u8; size];
    // SAFETY: the host's item and status, as in the call of `get_size`; the vectors have room for the `count`
    // names and `size` bytes that it returned.
    unsafe {
        get(
            item,
            values.as_mut_ptr(),
            lengths.as_mut_ptr(),
            count,
            storage.as_mut_ptr().cast(),
            size,
            status.as_ptr(),
        );
    }
    status.check()?;
    let named = values.into_iter().zip(lengths).filter(|(value, _)| !value.is_null());
    let names = named.map(|(value, length)| {
        // SAFETY: so many bytes within the storage, as the header promises.
        let name = unsafe { lent(value.cast_const().cast(), length)? };
        Ok(String::from_utf8_lossy(name).into_owned())
    });
    names.collect::<Result<_>>().map(Some)
}
