//! `tensorflow/c/experimental/grappler/grappler.h`: graph passes of plugins.
//!
//! `struct_size` follows the rules in [`stream_executor`](crate::stream_executor). Notes on behaviour
//! say what TensorFlow 2.12 to 2.21 really does.

use crate::buffer::TF_Buffer;
use crate::c_api_macros::TF_Bool;
use crate::layout::{Status, Text};
use core::ffi::{c_char, c_int, c_uint, c_void};

type Item = *const TF_GrapplerItem;
type Properties = *mut TF_GraphProperties;
type Library = *mut TF_FunctionLibraryDefinition;

/// Major version of this API: differs if the two sides cannot work together.
pub const GO_MAJOR: i32 = 0;
/// Minor version of this API.
pub const GO_MINOR: i32 = 0;
/// Patch version of this API.
pub const GO_PATCH: i32 = 1;

/// A switch that may keep its default: one of the three constants below.
pub type TF_TriState = c_uint;
/// As the user set it; else on.
pub const TF_TriState_Default: TF_TriState = 0;
/// Off.
pub const TF_TriState_Off: TF_TriState = 1;
/// On.
pub const TF_TriState_On: TF_TriState = 2;

crate::layout::opaque! {
    /// A graph with the nodes that are fed and fetched. Opaque; the host's, for the length of a call.
    pub struct TF_GrapplerItem;

    /// Types and shapes that are known in a graph. Opaque; created and freed by functions of this module.
    pub struct TF_GraphProperties;

    /// The functions and ops that a graph can use. Opaque; created and freed by functions of this module.
    pub struct TF_FunctionLibraryDefinition;
}

crate::layout::records! {
    /// Which of TensorFlow's own graph passes stay on, for all graphs of a process that has a device of
    /// the plugin's type. Default and on are the same, except for `disable_model_pruning`.
    pub struct TP_OptimizerConfigs, TP_OPTIMIZER_CONFIGS_STRUCT_SIZE, ext {
        /// On: nodes that nothing needs stay in the graph.
        pub disable_model_pruning: TF_TriState,
        /// Choosing between implementations of a function.
        pub implementation_selector: TF_TriState,
        /// Inlining and specialising functions.
        pub function_optimization: TF_TriState,
        /// Merging nodes that compute the same.
        pub common_subgraph_elimination: TF_TriState,
        /// Simplifying arithmetic.
        pub arithmetic_optimization: TF_TriState,
        /// Removing assertions and prints.
        pub debug_stripper: TF_TriState,
        /// Computing constants in advance.
        pub constant_folding: TF_TriState,
        /// Simplifying computations of shapes.
        pub shape_optimization: TF_TriState,
        /// Using 16-bit floats where that is safe.
        pub auto_mixed_precision: TF_TriState,
        /// Using bfloat16 in oneDNN.
        pub auto_mixed_precision_onednn_bfloat16: TF_TriState,
        /// Using bfloat16 in oneDNN, by its old name.
        pub auto_mixed_precision_mkl: TF_TriState,
        /// Moving small ops to the host.
        pub pin_to_host_optimization: TF_TriState,
        /// Changing the order of dimensions to what the device prefers.
        pub layout_optimizer: TF_TriState,
        /// Fusing common groups of ops.
        pub remapping: TF_TriState,
        /// Simplifying loops.
        pub loop_optimization: TF_TriState,
        /// Removing control dependencies.
        pub dependency_optimization: TF_TriState,
        /// Distributing a graph over devices.
        pub auto_parallel: TF_TriState,
        /// Lowering the peak use of memory.
        pub memory_optimization: TF_TriState,
        /// Allocating together what is used together.
        pub scoped_allocator_optimization: TF_TriState,
    }

    /// The callbacks of a graph pass.
    pub struct TP_Optimizer, TP_OPTIMIZER_STRUCT_SIZE, ext {
        /// Creates the pass's state for one graph. Null: no state.
        fn create_func() -> *mut c_void;
        /// Rewrites a graph, a serialised `GraphDef`, into an empty buffer in which the plugin sets
        /// all three fields. Required; runs for every graph of at least four nodes in the process,
        /// also for those without the plugin's devices, twice each. After an error the graph stays
        /// as it is; the host logs the error unless it is `TF_ABORTED`.
        fn optimize_func(
            optimizer: *mut c_void, input_graph: *const TF_Buffer, item: Item,
            output_graph: *mut TF_Buffer, status: Status
        );
        /// Frees the state. Required with `create_func`, and the other way round.
        fn destroy_func(optimizer: *mut c_void);
    }

    /// Filled by `TF_InitGraph`.
    pub struct TP_OptimizerRegistrationParams, TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE, ext {
        /// The host's [`GO_MAJOR`].
        pub major_version: i32,
        /// The host's [`GO_MINOR`].
        pub minor_version: i32,
        /// The host's [`GO_PATCH`].
        pub patch_version: i32,
        /// To be set by the plugin: the type of its devices, NUL-terminated; lives as long as the process.
        /// A second pass for one type ends the process.
        pub device_type: Text,
        /// To be filled by the plugin, within the `struct_size` found in it.
        pub optimizer_configs: *mut TP_OptimizerConfigs,
        /// To be filled by the plugin, within the `struct_size` found in it.
        pub optimizer: *mut TP_Optimizer,
    }
}

/// Type of the function `TF_InitGraph` that a plugin exports. The host calls it for each load of the
/// shared library. An error **aborts the process**.
pub type TF_InitGraphFn =
    unsafe extern "C" fn(params: *mut TP_OptimizerRegistrationParams, status: Status);

crate::layout::host_functions! {
    /// The functions of `grappler.h`. All live in `libtensorflow_cc.so.2`, not in the library where a
    /// device plugin's other functions are, so all are optional.
    ///
    /// Lists of names come in two calls: the `…Size` function returns how many names (`num_values`)
    /// of how many bytes together (`storage_size`) there are; the other fills `values` and `lengths`,
    /// of at least `num_values` elements each, with pointers into `storage`, not NUL-terminated.
    pub struct GrapplerFunctions {
        /// Writes number and size of the names of the nodes that a pass must keep: those that are
        /// fed, fetched, initialised or named by the user.
        optional fn TF_GetNodesToPreserveListSize(
            item: Item, num_values: *mut c_int, storage_size: *mut usize, status: Status
        );
        /// Writes the names of the nodes that a pass must keep.
        optional fn TF_GetNodesToPreserveList(
            item: Item, values: *mut *mut c_char, lengths: *mut usize, num_values: c_int, storage: *mut c_void,
            storage_size: usize, status: Status
        );
        /// Writes number and size of the names of the nodes that are fetched.
        optional fn TF_GetFetchNodesListSize(item: Item, num_values: *mut c_int, storage_size: *mut usize, status: Status);
        /// Writes the names of the nodes that are fetched.
        optional fn TF_GetFetchNodesList(
            item: Item, values: *mut *mut c_char, lengths: *mut usize, num_values: c_int, storage: *mut c_void,
            storage_size: usize, status: Status
        );
        /// Creates an empty set of properties for a graph, which must outlive it.
        /// [`TF_DeleteGraphProperties`](Self::TF_DeleteGraphProperties) frees it.
        optional fn TF_NewGraphProperties(item: Item) -> Properties;
        /// Frees a set of properties.
        optional fn TF_DeleteGraphProperties(graph_properties: Properties);
        /// Infers types and shapes without running the graph. `assume_valid_feeds` trusts the
        /// shapes of the fed nodes; `aggressive_shape_inference` also computes small values; the
        /// last two keep the values of constants.
        optional fn TF_InferStatically(
            graph_properties: Properties, assume_valid_feeds: TF_Bool, aggressive_shape_inference: TF_Bool,
            include_input_tensor_values: TF_Bool, include_output_tensor_values: TF_Bool, status: Status
        );
        /// Writes the number of a node's inputs with known properties.
        optional fn TF_GetInputPropertiesListSize(
            graph_properties: Properties, name: Text, num_values: *mut c_int, status: Status
        );
        /// Writes the number of a node's outputs with known properties.
        optional fn TF_GetOutputPropertiesListSize(
            graph_properties: Properties, name: Text, num_values: *mut c_int, status: Status
        );
        /// Writes the properties of a node's inputs: fills `num_values` buffers, which belong to
        /// the caller, each with a serialised `OpInfo.TensorProperties`.
        optional fn TF_GetInputPropertiesList(
            graph_properties: Properties, name: Text, properties: *mut *mut TF_Buffer, num_values: c_int, status: Status
        );
        /// Writes the properties of a node's outputs, in the same way.
        optional fn TF_GetOutputPropertiesList(
            graph_properties: Properties, name: Text, properties: *mut *mut TF_Buffer, num_values: c_int, status: Status
        );
        /// Creates the library of a graph, given as a serialised `GraphDef`.
        /// [`TF_DeleteFunctionLibraryDefinition`](Self::TF_DeleteFunctionLibraryDefinition) frees it.
        optional fn TF_NewFunctionLibraryDefinition(graph_buf: *const TF_Buffer, status: Status) -> Library;
        /// Frees a library.
        optional fn TF_DeleteFunctionLibraryDefinition(fn_lib: Library);
        /// Fills `buf` with the definition of an op, a serialised `OpDef`.
        optional fn TF_LookUpOpDef(fn_lib: Library, name: Text, buf: *mut TF_Buffer, status: Status);
    }
}
