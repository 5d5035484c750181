//! The comparison itself: it must name each mistake that is planted into the sources of `tf-fs-sys` or
//! into the headers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use cargo_tf_plugin::{NEWEST, TensorFlow};
use tf_plugin_abi_tests::compare::{Comparison, compare};
use tf_plugin_abi_tests::compiler::Compiler;
use tf_plugin_abi_tests::doctored::DOCTORED;
use tf_plugin_abi_tests::exports::{exports, missing};
use tf_plugin_abi_tests::measured::Measured;
use tf_plugin_abi_tests::rust_source::RustSource;
use tf_plugin_abi_tests::{measure_tf_fs_sys, tf_fs_sys_sources};

include!(concat!(env!("OUT_DIR"), "/doctored.rs"));

/// A doctored copy's name and how it is measured.
type Measure = (&'static str, fn() -> Measured);

const MEASURES: &[Measure] = include!(concat!(env!("OUT_DIR"), "/doctored_table.rs"));

static TENSORFLOW: LazyLock<TensorFlow> =
    LazyLock::new(|| TensorFlow::pinned(NEWEST).unwrap_or_else(|problem| panic!("{problem:?}")));

fn parse(sources: &[(&'static str, String)]) -> Result<RustSource, String> {
    RustSource::parse(sources.iter().map(|(name, text)| (*name, text.as_str())))
}

fn assert_reported(case: &str, comparison: &Comparison, reported: &[&str]) {
    assert!(
        comparison
            .problems
            .iter()
            .any(|problem| reported.iter().all(|text| problem.contains(text))),
        "{case}: no problem has all of {reported:?}:\n{}",
        comparison.problems.join("\n")
    );
}

#[test]
fn each_mistake_in_the_sources_is_named() {
    let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
    let sources = tf_fs_sys_sources().expect("sources");
    for case in DOCTORED {
        let copies: Vec<_> = sources
            .iter()
            .map(|(name, text)| (*name, case.apply(name, text).expect("an edit that fits")))
            .collect();
        let (_, measure) = MEASURES
            .iter()
            .find(|(name, _)| *name == case.name)
            .expect("the build script measures each copy");
        let comparison = compare(
            &compiler,
            &[&TENSORFLOW.include_dir()],
            &parse(&copies).expect("readable declarations"),
            &measure(),
        )
        .unwrap_or_else(|problem| panic!("{}: {problem}", case.name));
        assert_reported(case.name, &comparison, case.reported);
    }
}

const FILESYSTEM: &str = "tensorflow/c/experimental/filesystem/filesystem_interface.h";
const STATISTICS: &str = "tensorflow/c/tf_file_statistics.h";
const STATUS: &str = "tensorflow/c/tf_status.h";
const API: &str = "tensorflow/c/c_api.h";
const MACROS: &str = "tensorflow/c/c_api_macros.h";
const DATA_TYPE: &str = "tensorflow/c/tf_datatype.h";
// The copy that the other headers include; there is a second one for old paths.
const STRING: &str = "tsl/platform/ctstring_internal.h";
const STREAM_EXECUTOR: &str = "tensorflow/c/experimental/stream_executor/stream_executor.h";
const KERNELS: &str = "tensorflow/c/kernels.h";
const OPS: &str = "tensorflow/c/ops.h";
const GRAPPLER: &str = "tensorflow/c/experimental/grappler/grappler.h";
const PROFILER: &str = "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h";

/// A header, a text in it, its replacement, and what one problem must contain.
type Edit = (&'static str, &'static str, &'static str, &'static [&'static str]);

const HEADER_EDITS: &[Edit] = &[
    // Fields.
    (
        FILESYSTEM,
        "void (*flush_caches)(const TF_Filesystem* filesystem);",
        "",
        &["`TF_FilesystemOps::flush_caches`", "only tf-fs-sys"],
    ),
    (
        FILESYSTEM,
        "void (*flush_caches)(const TF_Filesystem* filesystem);",
        "void (*flush_caches)(const TF_Filesystem* filesystem); void (*drop_all)(void);",
        &["`TF_FilesystemOps::drop_all`", "only the header"],
    ),
    (
        FILESYSTEM,
        "int type_tag;    // type of values in the values union\n  int num_values;",
        "int num_values; int type_tag;",
        &["`TF_Filesystem_Option_Value::type_tag`", "order"],
    ),
    (
        FILESYSTEM,
        "  int per_file;",
        "  int64_t per_file;",
        &["`TF_Filesystem_Option::per_file`", "the type is", "long"],
    ),
    (
        FILESYSTEM,
        "int num_files, TF_Status** statuses",
        "size_t num_files, TF_Status** statuses",
        &["`TF_FilesystemOps::paths_exist`", "the type is"],
    ),
    (
        FILESYSTEM,
        "    int buf_length;\n",
        "    int buf_length; int buf_capacity;\n",
        &["`TF_Filesystem_Option_Value_Buffer::buf_capacity`", "only the header"],
    ),
    (
        STATISTICS,
        "int64_t mtime_nsec;",
        "int32_t mtime_nsec;",
        &["`TF_FileStatistics::mtime_nsec`", "size", "4", "8"],
    ),
    (
        STATISTICS,
        "int64_t length;",
        "int64_t length[2];",
        &["`TF_FileStatistics::mtime_nsec`", "offset", "16", "8"],
    ),
    (
        STATISTICS,
        "bool is_directory;",
        "bool is_directory[9];",
        &["`TF_FileStatistics`:", "size", "32", "24"],
    ),
    // Structs and other types.
    (
        FILESYSTEM,
        "typedef struct TF_WritableFile {",
        "typedef struct TF_LockFile { void* plugin_file; } TF_LockFile;\n\
         typedef struct TF_WritableFile {",
        &["`TF_LockFile`", "only the header"],
    ),
    (
        FILESYSTEM,
        "typedef union TF_Filesystem_Option_Value_Union {",
        "typedef struct TF_Filesystem_Option_Value_Union {",
        &["`TF_Filesystem_Option_Value_Union`", "union"],
    ),
    (
        FILESYSTEM,
        "typedef enum TF_Filesystem_Option_Type {",
        "typedef void (*TF_Visitor)(int);\ntypedef enum TF_Filesystem_Option_Type {",
        &["`TF_Visitor`", "only the header"],
    ),
    (
        FILESYSTEM,
        "typedef enum TF_Filesystem_Option_Type {",
        "typedef enum TF_Filesystem_Option_Type : unsigned char {",
        &["`TF_Filesystem_Option_Type`", "the type is", "unsigned char"],
    ),
    // Constants.
    (
        FILESYSTEM,
        "TF_Filesystem_Option_Type_Real,",
        "TF_Filesystem_Option_Type_Bool, TF_Filesystem_Option_Type_Real,",
        &["`TF_Filesystem_Option_Type_Bool`", "only the header"],
    ),
    (
        FILESYSTEM,
        "TF_Filesystem_Option_Type_Int = 0,",
        "TF_Filesystem_Option_Type_Int = 1,",
        &["`TF_Filesystem_Num_Option_Types`", "value", "4", "3"],
    ),
    (
        FILESYSTEM,
        "constexpr int TF_WRITABLE_FILE_OPS_API = 0;",
        "constexpr int TF_WRITABLE_FILE_OPS_API = 1;",
        &["`TF_WRITABLE_FILE_OPS_API`", "value", "1", "0"],
    ),
    (
        FILESYSTEM,
        "constexpr int TF_FILESYSTEM_OPS_API = 0;",
        "constexpr int64_t TF_FILESYSTEM_OPS_API = 0;",
        &["`TF_FILESYSTEM_OPS_API`", "the type is", "long"],
    ),
    (
        FILESYSTEM,
        "constexpr int TF_FILESYSTEM_OPS_API = 0;",
        "constexpr int TF_FILESYSTEM_OPS_API = 0;\nconstexpr int TF_FILESYSTEM_OPS_NEW = 0;",
        &["`TF_FILESYSTEM_OPS_NEW`", "only the header"],
    ),
    (STATUS, "#define TF_DATA_LOSS TSL_DATA_LOSS", "", &["`TF_DATA_LOSS`", "only tf-fs-sys"]),
    (
        STATUS,
        "#define TF_DATA_LOSS TSL_DATA_LOSS",
        "#define TF_DATA_LOSS TSL_INTERNAL",
        &["`TF_DATA_LOSS`", "value", "13", "15"],
    ),
    (
        STATUS,
        "#define TF_DATA_LOSS TSL_DATA_LOSS",
        "#define TF_DATA_LOSS TSL_DATA_LOSS\n#define TF_DATA_ROT TSL_DATA_LOSS",
        &["`TF_DATA_ROT`", "only the header"],
    ),
    (
        "xla/tsl/c/tsl_status.h",
        "  TSL_DATA_LOSS = 15,",
        "  TSL_DATA_LOSS = 15, TSL_DATA_ROT = 17,",
        &["`TSL_DATA_ROT`", "only the header"],
    ),
    // Functions.
    (
        STATUS,
        "TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status*);",
        "",
        &["`TF_DeleteStatus`", "only tf-fs-sys"],
    ),
    (
        STATUS,
        "TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status*);",
        "TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status*);\n\
         TF_CAPI_EXPORT extern void TF_CopyStatus(TF_Status*);",
        &["`TF_CopyStatus`", "only the header"],
    ),
    (
        STATUS,
        "TF_CAPI_EXPORT extern TF_Code TF_GetCode(const TF_Status* s);",
        "TF_CAPI_EXPORT extern int TF_GetCode(const TF_Status* s);",
        &["`TF_GetCode`", "the type is"],
    ),
    (
        API,
        "extern void TF_RegisterFilesystemPlugin(",
        "extern int TF_RegisterFilesystemPlugin(",
        &["`TF_RegisterFilesystemPlugin`", "the type is", "int"],
    ),
    (
        API,
        "extern void TF_RegisterFilesystemPlugin(",
        "extern void TF_RegisterFilesystem(",
        &["`TF_RegisterFilesystemPlugin`", "only tf-fs-sys"],
    ),
    (
        FILESYSTEM,
        "TF_CAPI_EXPORT extern void TF_InitPlugin(TF_FilesystemPluginInfo* plugin_info);",
        "TF_CAPI_EXPORT extern int TF_InitPlugin(TF_FilesystemPluginInfo* plugin_info);",
        &["`TF_InitPlugin`", "the type is", "int"],
    ),
    (
        FILESYSTEM,
        "TF_CAPI_EXPORT extern void TF_InitPlugin(TF_FilesystemPluginInfo* plugin_info);",
        "",
        &["`TF_InitPluginFn`", "only tf-fs-sys"],
    ),
    (
        FILESYSTEM,
        "  ops->writable_file_ops_size = TF_WRITABLE_FILE_OPS_SIZE;",
        "",
        &["`TF_SetFilesystemVersionMetadata`", "`TF_FilesystemPluginOps::writable_file_ops_size`"],
    ),
    (
        FILESYSTEM,
        "static inline void TF_SetFilesystemVersionMetadata(",
        "static inline void TF_SetVersionMetadata(",
        &["`TF_SetVersionMetadata`", "only the header"],
    ),
    // Devices, kernels, ops, graph passes and profilers.
    (
        STREAM_EXECUTOR,
        "TF_OFFSET_OF_END(SP_Platform, force_memory_growth)",
        "TF_OFFSET_OF_END(SP_Platform, use_bfc_allocator)",
        &["`SP_PLATFORM_STRUCT_SIZE`", "is 34 ", "35"],
    ),
    (
        STREAM_EXECUTOR,
        "  TF_Bool force_memory_growth;",
        "  TF_Bool force_memory_growth; TF_Bool late;",
        &["`SP_Platform::late`", "only the header"],
    ),
    (
        STREAM_EXECUTOR,
        "SE_EVENT_PENDING,",
        "SE_EVENT_STARTED, SE_EVENT_PENDING,",
        &["`SE_EVENT_PENDING`", "is 3 ", "2"],
    ),
    (
        STREAM_EXECUTOR,
        "typedef struct SP_Timer_st* SP_Timer;",
        "typedef struct SP_Event_st* SP_Timer;",
        &["`SP_Timer`", "the type is", "SP_Event_st*"],
    ),
    (STREAM_EXECUTOR, "#define SE_MAJOR 0", "#define SE_MAJOR 1", &["`SE_MAJOR`", "is 1 ", "0"]),
    (
        MACROS,
        "#define TF_Bool unsigned char",
        "#define TF_Bool signed char",
        &["`TF_Bool`", "the type is", "signed char"],
    ),
    (
        DATA_TYPE,
        "  TF_INT2 = 31,",
        "  TF_INT2 = 31, TF_INT1 = 34,",
        &["`TF_INT1`", "only the header"],
    ),
    (STRING, "uint8_t raw[24];", "uint8_t raw[32];", &["`TF_TString`", "size", "32", "24"]),
    (
        KERNELS,
        "TF_OFFSET_OF_END(TF_InputRange_Args, status)",
        "TF_OFFSET_OF_END(TF_InputRange_Args, stop)",
        &["`TF_InputRange_Args_STRUCT_SIZE`", "is 24 ", "32"],
    ),
    (
        KERNELS,
        "void TF_InitKernel();",
        "void TF_InitKernel(TF_Status*);",
        &["`TF_InitKernel`", "the type is"],
    ),
    (
        KERNELS,
        "TF_CAPI_EXPORT extern int TF_NumInputs(TF_OpKernelContext* ctx);",
        "TF_CAPI_EXPORT extern int TF_NumInputs(TF_OpKernelContext* ctx);\nextern int TF_NumRefInputs(TF_OpKernelContext* ctx);",
        &["`TF_NumRefInputs`", "only the header"],
    ),
    (
        OPS,
        "extern int64_t TF_DimensionHandleValue(",
        "extern int32_t TF_DimensionHandleValue(",
        &["`TF_DimensionHandleValue`", "the type is"],
    ),
    (
        GRAPPLER,
        "  TF_TriState shape_optimization;\n",
        "",
        &["`TP_OptimizerConfigs::shape_optimization`", "only tf-fs-sys"],
    ),
    (
        PROFILER,
        "TF_OFFSET_OF_END(TP_Profiler, device_type)",
        "TF_OFFSET_OF_END(TP_Profiler, ext)",
        &["`TP_PROFILER_STRUCT_SIZE`", "is 16 ", "24"],
    ),
];

/// Compares `tf-fs-sys` with the headers in `include_dir`, but for the one at `path`, which has the given
/// text.
fn compare_with_doctored(path: &str, text: &str, include_dir: &Path) -> Result<Comparison, String> {
    let doctored = tempfile::tempdir().expect("a scratch directory");
    let copy = doctored.path().join(path);
    std::fs::create_dir_all(copy.parent().expect("a path with a directory"))
        .and_then(|()| std::fs::write(&copy, text))
        .expect("a copy of the header");
    compare(
        &Compiler::find().unwrap_or_else(|problem| panic!("{problem}")),
        &[doctored.path(), include_dir],
        &parse(&tf_fs_sys_sources().expect("sources")).expect("readable declarations"),
        &measure_tf_fs_sys(),
    )
}

#[test]
fn each_mistake_in_the_headers_is_named() {
    let include_dir = TENSORFLOW.include_dir();
    for (path, from, to, reported) in HEADER_EDITS {
        let case = format!("{path}: `{from}` -> `{to}`");
        let text = std::fs::read_to_string(include_dir.join(path)).expect("a header");
        assert_eq!(text.matches(from).count(), 1, "{case}: not found once");
        let comparison = compare_with_doctored(path, &text.replacen(from, to, 1), &include_dir)
            .unwrap_or_else(|problem| panic!("{case}: {problem}"));
        assert_reported(&case, &comparison, reported);
    }
}

#[test]
fn what_a_header_may_lack_is_listed() {
    let include_dir = TENSORFLOW.include_dir();
    let present = |absent: &BTreeSet<String>, name: &str| !absent.contains(name);

    let text = std::fs::read_to_string(include_dir.join(GRAPPLER)).expect("a header");
    let edited = text.replacen(" TF_LookUpOpDef(", " TF_FindOpDef(", 1);
    let comparison = compare_with_doctored(GRAPPLER, &edited, &include_dir).expect("a comparison");
    assert!(!present(&comparison.absent, "TF_LookUpOpDef"), "{:?}", comparison.absent);
    assert_reported("renamed", &comparison, &["`TF_FindOpDef`", "only the header"]);

    let text = std::fs::read_to_string(include_dir.join(DATA_TYPE)).expect("a header");
    let edited = text.replacen("TF_INT4 = 29,", "", 1);
    let comparison = compare_with_doctored(DATA_TYPE, &edited, &include_dir).expect("a comparison");
    assert!(!present(&comparison.absent, "TF_INT4"), "{:?}", comparison.absent);
    assert_eq!(comparison.problems, [""; 0]);

    // A header that only older releases have.
    let text = "typedef enum TF_LogLevel { TF_INFO = 0, TF_WARNING, TF_ERROR = 3, TF_FATAL } TF_LogLevel;\
                extern \"C\" void TF_Log(TF_LogLevel level, const char* fmt);\
                extern \"C\" void TF_VLog(int level, const char* fmt, ...);";
    let comparison =
        compare_with_doctored("tensorflow/c/logging.h", text, &include_dir).expect("a comparison");
    assert!(present(&comparison.absent, "TF_VLog"), "{:?}", comparison.absent);
    assert!(!present(&comparison.absent, "TF_DVLog"), "{:?}", comparison.absent);
    assert_reported("constant", &comparison, &["`TF_ERROR`", "is 3 ", "2"]);
    assert_reported("not variadic", &comparison, &["`TF_Log`", "the type is", "..."]);
    assert_eq!(comparison.problems.len(), 3, "{:?}", comparison.problems);
}

#[test]
fn a_required_function_that_no_library_has_is_named() {
    let sources: Vec<_> = tf_fs_sys_sources()
        .expect("sources")
        .into_iter()
        .map(|(module, text)| {
            let text = match module {
                "kernels_experimental" => text.replacen(
                    "optional fn TF_AssignVariable(",
                    "required fn TF_AssignVariable(",
                    1,
                ),
                _ => text,
            };
            (module, text)
        })
        .collect();
    let mut exported = BTreeSet::new();
    for library in ["libtensorflow_framework", "libtensorflow_cc"] {
        let suffix = if cfg!(target_os = "macos") { ".2.dylib" } else { ".so.2" };
        let path = TENSORFLOW.library_dir().join(format!("{library}{suffix}"));
        exported.append(&mut exports(&path).unwrap_or_else(|problem| panic!("{problem}")));
    }
    let source = parse(&sources).expect("readable declarations");
    assert_eq!(missing(&source, true, &exported), ["TF_AssignVariable"]);
}

#[test]
fn a_source_without_counterpart_in_c_is_refused() {
    for (text, named) in [
        ("pub struct TF_A { pub x: i32 }", "#[repr(C)]"),
        ("#[repr(C)] pub struct TF_A { pub x: i32, y: i32 }", "TF_A"),
        ("#[repr(u32)] pub enum TF_A { B }", "TF_A"),
        ("#[repr(C)] pub struct TF_A { pub x: Option<fn()> }", "TF_A::x"),
        ("#[repr(C)] pub struct TF_A { pub x: String }", "TF_A::x"),
        ("#[repr(C)] pub struct TF_A { pub x: &'static [u8] }", "TF_A::x"),
        ("host_functions! { pub struct T { perhaps fn TF_B(); } }", "required"),
    ] {
        let problem = RustSource::parse([("module", text)]).expect_err(text);
        assert!(problem.contains(named), "{text}: {problem}");
    }
}

#[test]
fn a_missing_header_is_named() {
    let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
    let source = parse(&tf_fs_sys_sources().expect("sources")).expect("readable declarations");
    let empty = tempfile::tempdir().expect("a scratch directory");
    let problem =
        compare(&compiler, &[empty.path()], &source, &measure_tf_fs_sys()).expect_err("no header");
    assert!(problem.contains(MACROS), "{problem}");
}
