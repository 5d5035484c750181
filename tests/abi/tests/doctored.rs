//! The comparison itself: it must name each mistake that is planted into the sources of `tf-fs-sys` or
//! into the headers.

use std::path::Path;
use std::sync::LazyLock;

use cargo_tf_plugin::{NEWEST, TensorFlow};
use tf_plugin_abi_tests::compare::{Comparison, compare};
use tf_plugin_abi_tests::compiler::Compiler;
use tf_plugin_abi_tests::doctored::DOCTORED;
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
];

#[test]
fn each_mistake_in_the_headers_is_named() {
    let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
    let source = parse(&tf_fs_sys_sources().expect("sources")).expect("readable declarations");
    let measured = measure_tf_fs_sys();
    let include_dir = TENSORFLOW.include_dir();
    for (path, from, to, reported) in HEADER_EDITS {
        let case = format!("{path}: `{from}` -> `{to}`");
        let text = std::fs::read_to_string(include_dir.join(path)).expect("a header");
        assert_eq!(text.matches(from).count(), 1, "{case}: not found once");
        let doctored = tempfile::tempdir().expect("a scratch directory");
        let copy = doctored.path().join(path);
        std::fs::create_dir_all(copy.parent().expect("a path with a directory"))
            .and_then(|()| std::fs::write(&copy, text.replacen(from, to, 1)))
            .expect("a copy of the header");
        let include_dirs: [&Path; 2] = [doctored.path(), &include_dir];
        let comparison = compare(&compiler, &include_dirs, &source, &measured)
            .unwrap_or_else(|problem| panic!("{case}: {problem}"));
        assert_reported(&case, &comparison, reported);
    }
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
    assert!(problem.contains(STATUS), "{problem}");
}
