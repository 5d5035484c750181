//! Tests that each violation of the C boundary is found and named. The SDK breaks no rule, so the
//! tests replace the functions of a plugin.

use super::graph::{GraphHost, set};
use super::host::Host;
use super::profiler::ProfilerHost;
use crate::abi::status::install;
use crate::violations::{Log, Violation};
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use se_plugin::__private::testing::versions::Versioned as _;
use std::sync::Arc;
use tf_fs_sys::{
    SE_EVENT_ERROR, SE_EventStatus, SP_Device, SP_DeviceMemoryBase, SP_Event, SP_Stream,
    SP_StreamExecutor, TF_Buffer, TF_Code, TF_GrapplerItem, TF_INTERNAL, TF_OK, TF_Status,
    TP_Optimizer, TP_OptimizerConfigs, TP_Profiler, TP_ProfilerFns,
};

mod toy {
    #![allow(unreachable_pub, reason = "it is written for the examples of the documentation")]
    include!("../toy.rs");
}

/// Checks that there is one violation, of this operation and with this part of its text.
#[track_caller]
fn one(violations: &[Violation], operation: &str, part: &str) {
    assert_eq!(violations.len(), 1, "{part}: {violations:#?}");
    assert_eq!(violations[0].operation, operation);
    assert!(violations[0].to_string().contains(part), "{part}: {violations:?}");
}

/// Loads a plugin into a host, and replaces functions in its table.
fn host(replace: impl FnOnce(&mut SP_StreamExecutor)) -> Host {
    let mut host = Host::load::<toy::Toy>().expect("loaded");
    replace(&mut host.executor);
    host
}

thread_local! {
    /// The result of `create_stream`.
    static STREAM: Cell<(usize, TF_Code)> = const { Cell::new((0, TF_OK)) };
    /// The result of `optimize`.
    static GRAPH: Cell<(TF_Buffer, TF_Code)> = const { Cell::new((NO_GRAPH, TF_OK)) };
}

const NO_GRAPH: TF_Buffer = TF_Buffer { data: ptr::null(), length: 0, data_deallocator: None };

macro_rules! callbacks {
    ($($name:ident($($arg:tt: $type:ty),*) $(-> $ret:ty)? $body:block)*) => {$(
        unsafe extern "C" fn $name($($arg: $type),*) $(-> $ret)? $body
    )*};
}

callbacks! {
    writes_behind(_: *const SP_Device, _: u64, _: i64, memory: *mut SP_DeviceMemoryBase) {
        // SAFETY: the host has guard bytes behind the struct.
        unsafe { memory.cast::<u8>().add(SP_DeviceMemoryBase::STRUCT_SIZE).write(0) };
    }
    gives_one_address(_: *const SP_Device, _: u64, _: i64, memory: *mut SP_DeviceMemoryBase) {
        // SAFETY: the host's struct.
        unsafe { (*memory).opaque = ptr::without_provenance_mut(256) };
    }
    create_stream(_: *const SP_Device, stream: *mut SP_Stream, status: *mut TF_Status) {
        let (address, code) = STREAM.get();
        // SAFETY: the host's place for a stream, and its status.
        unsafe {
            stream.write(ptr::without_provenance_mut(address));
            set(status, code);
        }
    }
    keep_stream(_: *const SP_Device, _: SP_Stream) {}
    is_an_error(_: *const SP_Device, _: SP_Event) -> SE_EventStatus { SE_EVENT_ERROR }
    optimize(_: *mut c_void, _: *const TF_Buffer, _: *const TF_GrapplerItem, output: *mut TF_Buffer, status: *mut TF_Status) {
        let (graph, code) = GRAPH.get();
        // SAFETY: the host's buffer, and its status.
        unsafe {
            output.write(graph);
            set(status, code);
        }
    }
    keep_graph(_: *mut c_void, _: usize) {}
    set_no_size(_: *const TP_Profiler, _: *mut u8, _: *mut usize, status: *mut TF_Status) {
        // SAFETY: the host's status.
        unsafe { set(status, TF_OK) };
    }
}

#[test]
fn memory() {
    let far = host(|table| table.allocate = Some(writes_behind));
    assert_eq!(far.device(0).expect("opened").allocate(8), None);
    one(&far.violations(), "allocate", "wrote behind the 40 bytes of the struct");

    let twice = host(|table| table.allocate = Some(gives_one_address));
    let device = twice.device(0).expect("opened");
    for _ in 0..2 {
        assert!(device.allocate(8).is_some());
    }
    one(&twice.violations(), "allocate", "is allocated already");
}

#[test]
fn streams() {
    for answer in [(0, TF_OK), (8, TF_INTERNAL)] {
        STREAM.set(answer);
        let host = host(|table| {
            table.create_stream = Some(create_stream);
            table.destroy_stream = Some(keep_stream);
        });
        let _ = host.device(0).expect("opened").stream();
        one(&host.violations(), "create_stream", "handle and status contradict each other");
    }
}

#[test]
fn events() {
    let host = host(|table| table.get_event_status = Some(is_an_error));
    let _ = host.device(0).expect("opened").null_event().status();
    one(&host.violations(), "get_event_status", "Unexpected Event status: 1");
}

#[test]
fn graphs() {
    install();
    let graph = TF_Buffer { data: c"graph".as_ptr().cast(), length: 5, ..NO_GRAPH };
    let freed = TF_Buffer { data_deallocator: Some(keep_graph), ..graph };
    for (output, code, part) in [
        (graph, TF_OK, "the output has no deallocator"),
        (NO_GRAPH, TF_OK, "OK without an output"),
        (freed, TF_INTERNAL, "an output beside an error"),
    ] {
        GRAPH.set((output, code));
        let host = GraphHost {
            log: Arc::new(Log::default()),
            device_type: String::from("TOY"),
            configs: TP_OptimizerConfigs::default(),
            optimizer: TP_Optimizer { optimize_func: Some(optimize), ..Default::default() },
        };
        let _ = host.optimize(b"graph", &[]);
        one(&host.violations(), "optimize_func", part);
    }
}

#[test]
fn profiles() {
    install();
    let host = ProfilerHost {
        log: Arc::new(Log::default()),
        device_type: String::from("TOY"),
        profiler: TP_Profiler::default(),
        fns: TP_ProfilerFns { collect_data_xspace: Some(set_no_size), ..Default::default() },
    };
    assert!(host.collect().is_err());
    one(&host.violations(), "collect_data_xspace", "the size was not set");
}
