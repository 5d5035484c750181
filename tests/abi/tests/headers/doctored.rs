//! The comparison itself: it must name each mistake that is planted into the headers or into the sources.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use cargo_tf_plugin::{NEWEST, TensorFlow};

use crate::compare::{Comparison, compare};
use crate::mirror;

static TENSORFLOW: LazyLock<TensorFlow> =
    LazyLock::new(|| TensorFlow::pinned(NEWEST).unwrap_or_else(|problem| panic!("{problem:?}")));

/// A header or module, a text in it, its replacement, and what one problem must contain.
type Edit = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// A table of edits. Where only problems are given they come from an edit above.
macro_rules! edits {
    ($($name:tt $(: $from:literal => $to:literal)? gives $($part:literal),+;)*) => {
        &[$(($name, concat!($($from)?), concat!($($to)?), &[$($part),+])),*]
    };
}

const FILESYSTEM: &str = "tensorflow/c/experimental/filesystem/filesystem_interface.h";
const STATISTICS: &str = "tensorflow/c/tf_file_statistics.h";
const STATUS: &str = "tensorflow/c/tf_status.h";
const API: &str = "tensorflow/c/c_api.h";
const DATA_TYPE: &str = "tensorflow/c/tf_datatype.h";
const LOGGING: &str = "tensorflow/c/logging.h";
// The copy that the other headers include; there is a second one for old paths.
const STRING: &str = "tsl/platform/ctstring_internal.h";
const STREAM_EXECUTOR: &str = "tensorflow/c/experimental/stream_executor/stream_executor.h";
const KERNELS: &str = "tensorflow/c/kernels.h";
const GRAPPLER: &str = "tensorflow/c/experimental/grappler/grappler.h";

/// Mistakes in the headers, all of them made at once.
const HEADERS: &[Edit] = edits! {
    // Fields: missing, added, swapped, of another type, size or place.
    FILESYSTEM: "void (*flush_caches)(const TF_Filesystem* filesystem);" => "void (*drop_all)(void);"
        gives "`TF_FilesystemOps::drop_all`", "only the header";
    FILESYSTEM: "int type_tag;    // type of values in the values union\n  int num_values;"
        => "int num_values; int type_tag;"
        gives "`TF_Filesystem_Option_Value`", "{ num_values, type_tag, values }` in the header";
    FILESYSTEM: "  int per_file;" => "  int64_t per_file;"
        gives "`TF_Filesystem_Option::per_file`", "`i64` in the header and `i32`";
    FILESYSTEM: "    int buf_length;\n" => "    int buf_length; int buf_capacity;\n"
        gives "`TF_Filesystem_Option_Value_Buffer::buf_capacity`", "only the header";
    FILESYSTEM: "int num_files, TF_Status** statuses" => "size_t num_files, TF_Status** statuses"
        gives "`TF_FilesystemOps::paths_exist`", "usize";
    STATISTICS: "int64_t length;" => "int64_t length[2];" gives "`TF_FileStatistics::mtime_nsec`", "Offset", "is 16 ", "and 8 ";
    STATISTICS: "bool is_directory;" => "bool is_directory[9];" gives "`TF_FileStatistics`", "Size", "is 40 ", "and 24 ";
    STRING: "uint8_t raw[24];" => "uint8_t raw[32];" gives "`TF_TString`", "Size", "is 32 ", "and 24 ";
    // Other types.
    FILESYSTEM: "typedef union TF_Filesystem_Option_Value_Union {" => "typedef struct TF_Filesystem_Option_Value_Union {"
        gives "`TF_Filesystem_Option_Value_Union`", "union";
    FILESYSTEM: "typedef enum TF_Filesystem_Option_Type {"
        => "typedef struct TF_LockFile { void* plugin_file; } TF_LockFile;\n\
         typedef enum TF_Filesystem_Option_Type : unsigned char {"
        gives "`TF_Filesystem_Option_Type`", "`u8` in the header";
    FILESYSTEM gives "`TF_LockFile`", "only the header";
    STREAM_EXECUTOR: "typedef struct SP_Timer_st* SP_Timer;" => "typedef struct SP_Event_st* SP_Timer;"
        gives "`SP_Timer`", "`*mut SP_Event_st` in the header";
    // Constants, macros and sizes up to a field.
    FILESYSTEM: "TF_Filesystem_Option_Type_Int = 0," => "TF_Filesystem_Option_Type_Int = 1,"
        gives "`TF_Filesystem_Num_Option_Types`", "Value", "is 4 ", "and 3 ";
    FILESYSTEM: "constexpr int TF_FILESYSTEM_OPS_API = 0;"
        => "constexpr int64_t TF_FILESYSTEM_OPS_API = 0;\nconstexpr int TF_FILESYSTEM_OPS_NEW = 0;"
        gives "`TF_FILESYSTEM_OPS_API`", "`constant i64` in the header";
    FILESYSTEM gives "`TF_FILESYSTEM_OPS_NEW`", "only the header";
    STATUS: "#define TF_DATA_LOSS TSL_DATA_LOSS" => "#define TF_DATA_ROT TSL_DATA_LOSS" gives "`TF_DATA_ROT`", "only the header";
    STATUS gives "`TF_DATA_LOSS`", "only tf-fs-sys";
    STATUS gives "`TSL_DATA_LOSS`", "only the header";
    STATUS: "#define TF_INTERNAL TSL_INTERNAL" => "#define TF_INTERNAL TSL_UNAVAILABLE"
        gives "`TF_INTERNAL`", "Value", "is 14 ", "and 13 ";
    STREAM_EXECUTOR: "#define SE_MAJOR 0" => "#define SE_MAJOR 1" gives "`SE_MAJOR`", "is 1 ", "and 0 ";
    STREAM_EXECUTOR: "TF_OFFSET_OF_END(SP_Platform, force_memory_growth)"
        => "TF_OFFSET_OF_END(SP_Platform, use_bfc_allocator)" gives "`SP_PLATFORM_STRUCT_SIZE`", "is 34 ", "and 35 ";
    DATA_TYPE: "  TF_INT2 = 31," => "  TF_INT2 = 31, TF_INT1 = 34," gives "`TF_INT1`", "only the header";
    // Functions of the host and of plugins.
    STATUS: "TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status*);"
        => "TF_CAPI_EXPORT extern void TF_CopyStatus(TF_Status*);" gives "`TF_CopyStatus`", "only the header";
    STATUS gives "`TF_DeleteStatus`", "only tf-fs-sys", "required function";
    STATUS: "extern TF_Code TF_GetCode(const TF_Status* s);" => "extern int TF_GetCode(TF_Status* s);"
        gives "`TF_GetCode`", "`fn(*mut TF_Status) -> i32` in the header";
    API: "extern void TF_RegisterFilesystemPlugin(" => "extern int TF_RegisterFilesystemPlugin("
        gives "`TF_RegisterFilesystemPlugin`", "-> i32` in the header";
    FILESYSTEM: "extern void TF_InitPlugin(TF_FilesystemPluginInfo* plugin_info);"
        => "extern int TF_InitPlugin(TF_FilesystemPluginInfo* plugin_info);"
        gives "`TF_InitPlugin`", "-> i32` in the header";
    KERNELS: "void TF_InitKernel();" => "" gives "`TF_InitKernelFn`", "only tf-fs-sys";
    // The function with a body.
    FILESYSTEM: "  ops->writable_file_ops_size = TF_WRITABLE_FILE_OPS_SIZE;" => "  ops->writable_file_ops_api = 2;"
        gives "`TF_SetFilesystemVersionMetadata -> writable_file_ops_size`", "only tf-fs-sys";
    FILESYSTEM gives "`TF_SetFilesystemVersionMetadata -> writable_file_ops_api`", "`2`";
};

/// Mistakes in the sources, all of them made at once; their layouts are not measured. Most of [`HEADERS`] would
/// be reported in the same way from this side.
const SOURCES: &[Edit] = edits! {
    "file_statistics": "#[repr(C)]" => "#[repr(C, packed)]" gives "`TF_FileStatistics`", "repr(C,packed)";
    // Inside of `records!` and by a private alias.
    "stream_executor": "fn get_gflops(device: Device) -> f64;" => "fn get_gflops(device: Device) -> f32;"
        gives "`SP_DeviceFns::get_gflops`", "-> f32` in tf-fs-sys";
    "stream_executor": "pub payload: u64," => "pub payload: i64," gives "`SP_DeviceMemoryBase::payload`", "`i64` in tf-fs-sys";
    "profiler": "type Profiler = *const TP_Profiler;" => "type Profiler = *mut TP_Profiler;"
        gives "`TP_ProfilerFns::start`", "`fn(*mut TP_Profiler, *mut TF_Status)` in tf-fs-sys";
    "filesystem": "pub owner: *mut TF_Filesystem," => "pub owner: *mut TF_Filesystem, pub generation: u64,"
        gives "`TF_TransactionToken::generation`", "only tf-fs-sys";
    // What C does not have.
    "string_view": "#[repr(C)]\n" => "" gives "`TF_StringView`", "` struct { data, len }` in tf-fs-sys";
    "buffer": "pub length: usize," => "length: usize," gives "`TF_Buffer`", "private length";
    "attrtype": "pub type TF_AttrType = core::ffi::c_uint;" => "pub enum TF_AttrType {}"
        gives "`TF_AttrType`", "`enum` in tf-fs-sys";
    "status": "extern \"C\" fn(key: *const c_char," => "fn(key: *const c_char," gives "`TF_PayloadVisitor`", "not extern";
    "profiler": "pub device_type: Text," => "pub device_type: String,"
        gives "`TP_Profiler::device_type`", "`String` in tf-fs-sys";
};

/// The edited texts by name, given how each is read.
fn edited(edits: &[Edit], read: impl Fn(&str) -> String) -> BTreeMap<&'static str, String> {
    let mut texts = BTreeMap::new();
    for (name, from, to, _) in edits.iter().filter(|(_, from, ..)| !from.is_empty()) {
        let text = texts.entry(*name).or_insert_with(|| read(name));
        assert_eq!(text.matches(from).count(), 1, "{name}: `{from}` is not there once");
        *text = text.replacen(from, to, 1);
    }
    texts
}

fn assert_reported(edits: &[Edit], comparison: &Comparison) {
    for (name, from, _, reported) in edits {
        assert!(
            comparison
                .problems
                .iter()
                .any(|problem| reported.iter().all(|text| problem.contains(text))),
            "{name}: `{from}`: no problem has all of {reported:?}:\n{}",
            comparison.problems.join("\n")
        );
    }
}

/// Compares with the headers of [`NEWEST`], except those that have other texts.
fn compare_with(sources: &[(String, String)], headers: &BTreeMap<&str, String>) -> Comparison {
    let doctored = tempfile::tempdir().expect("a scratch directory");
    for (path, text) in headers {
        let copy = doctored.path().join(path);
        std::fs::create_dir_all(copy.parent().expect("a path with a directory"))
            .and_then(|()| std::fs::write(&copy, text))
            .expect("a copy of the header");
    }
    let source = mirror::declarations(sources, false);
    let include_dirs = [doctored.path(), &TENSORFLOW.include_dir()];
    compare(&TENSORFLOW, &include_dirs, &source, mirror::numbers(false))
}

fn header(path: &str) -> String {
    std::fs::read_to_string(TENSORFLOW.include_dir().join(path)).expect("a header")
}

#[test]
fn each_mistake_in_the_headers_is_named() {
    let comparison = compare_with(&mirror::sources(), &edited(HEADERS, header));
    assert_reported(HEADERS, &comparison);
}

#[test]
fn each_mistake_in_the_sources_is_named() {
    let mut sources = mirror::sources();
    let texts = edited(SOURCES, |module| {
        let source = sources.iter().find(|(name, _)| name == module);
        source.expect("a module of this name").1.clone()
    });
    for (module, text) in &mut sources {
        if let Some(edited) = texts.get(module.as_str()) {
            text.clone_from(edited);
        }
    }
    assert_reported(SOURCES, &compare_with(&sources, &BTreeMap::new()));
}

#[test]
fn declarations_that_a_header_may_lack_are_listed() {
    let headers = [
        (GRAPPLER, header(GRAPPLER).replacen(" TF_LookUpOpDef(", " TF_FindOpDef(", 1)),
        (DATA_TYPE, header(DATA_TYPE).replacen("TF_INT4 = 29,", "", 1)),
        // A header that only older releases have.
        (
            LOGGING,
            "typedef enum TF_LogLevel { TF_INFO = 0, TF_WARNING, TF_ERROR = 3, TF_FATAL } TF_LogLevel;\
             extern \"C\" void TF_Log(TF_LogLevel level, const char* fmt);\
             extern \"C\" void TF_VLog(int level, const char* fmt, ...);"
                .to_owned(),
        ),
    ];
    let comparison = compare_with(&mirror::sources(), &headers.into());
    for name in ["TF_LookUpOpDef", "TF_INT4", "TF_DVLog"] {
        assert!(comparison.absent.contains(name), "{name}: {:?}", comparison.absent);
    }
    assert!(!comparison.absent.contains("TF_VLog"), "{:?}", comparison.absent);
    let reported: &[Edit] = &[
        (GRAPPLER, "renamed", "", &["`TF_FindOpDef`", "only the header"]),
        (LOGGING, "constant", "", &["`TF_ERROR`", "is 3 ", "and 2 "]),
        (LOGGING, "not variadic", "", &["`TF_Log`", "..."]),
    ];
    assert_reported(reported, &comparison);
    // The value after the wrong one is wrong, too.
    assert_eq!(comparison.problems.len(), 4, "{:?}", comparison.problems);
}

#[test]
#[should_panic(expected = "two types have the name `A`")]
fn an_alias_of_two_types_is_refused() {
    let source = syn::parse_file("type A = i32; type A = u32;").expect("Rust");
    compare(&TENSORFLOW, &[], &source, []);
}

#[test]
#[should_panic(expected = "has tensorflow/c/c_api_macros.h")]
fn a_missing_header_is_named() {
    compare(&TENSORFLOW, &[Path::new("nowhere")], &syn::parse_quote!(), []);
}
