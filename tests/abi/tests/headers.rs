//! `tf-fs-sys` against the headers and libraries of real TensorFlow releases.

use std::collections::BTreeSet;

use cargo_tf_plugin::{CANDIDATES, MATRIX, NEWEST, TensorFlow};
use tf_plugin_abi_tests::compare::compare;
use tf_plugin_abi_tests::compiler::Compiler;
use tf_plugin_abi_tests::exports::{exports, missing};
use tf_plugin_abi_tests::headers::{DECLARED, EXPORTED, absent_from};
use tf_plugin_abi_tests::measured::Measured;
use tf_plugin_abi_tests::rust_source::RustSource;
use tf_plugin_abi_tests::{measure_tf_fs_sys, tf_fs_sys_sources, tf_fs_sys_sources_2_22};

include!(concat!(env!("OUT_DIR"), "/release_2_22.rs"));

/// The releases to compare with, newest last; the last one is that which the environment names.
fn releases() -> Vec<TensorFlow> {
    let named = std::env::var("TF_PLUGIN_TEST_TENSORFLOW").ok();
    let (older, candidates) =
        if cfg!(feature = "matrix") { (MATRIX, CANDIDATES) } else { Default::default() };
    older
        .iter()
        .chain([&NEWEST])
        .chain(candidates)
        .copied()
        .chain(named.as_deref())
        .map(|version| TensorFlow::pinned(version).unwrap_or_else(|problem| panic!("{problem:?}")))
        .collect()
}

fn source() -> RustSource {
    parse(&tf_fs_sys_sources().expect("sources"))
}

fn parse(sources: &[(&'static str, String)]) -> RustSource {
    RustSource::parse(sources.iter().map(|(name, text)| (*name, text.as_str())))
        .expect("readable declarations")
}

/// What `tf-fs-sys` has for a release.
fn declarations(tensorflow: &TensorFlow) -> (RustSource, Measured) {
    if tensorflow.major_minor() >= (2, 22) {
        (parse(&tf_fs_sys_sources_2_22().expect("sources")), release_2_22::measure())
    } else {
        (source(), measure_tf_fs_sys())
    }
}

#[test]
fn declarations_are_those_of_the_headers() {
    let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
    for tensorflow in releases() {
        let version = tensorflow.version();
        let (source, measured) = declarations(&tensorflow);
        let comparison = compare(&compiler, &[&tensorflow.include_dir()], &source, &measured)
            .unwrap_or_else(|problem| panic!("TensorFlow {version}: {problem}"));
        assert!(
            comparison.problems.is_empty(),
            "tf-fs-sys is not what TensorFlow {version} declares:\n{}",
            comparison.problems.join("\n")
        );
        assert_eq!(
            comparison.absent.iter().map(String::as_str).collect::<Vec<_>>(),
            absent_from(DECLARED, tensorflow.major_minor()),
            "what the headers of TensorFlow {version} lack"
        );
    }
}

#[test]
fn version_metadata_is_that_of_the_header() {
    let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
    let metadata: BTreeSet<String> = source().modules["filesystem"]
        .records
        .iter()
        .filter(|record| record.name == "TF_FilesystemPluginOps")
        .flat_map(|record| &record.fields)
        .filter(|field| ["_abi", "_api", "_size"].iter().any(|end| field.name.ends_with(end)))
        .map(|field| format!("TF_FilesystemPluginOps::{}", field.name))
        .collect();
    assert_eq!(metadata.len(), 12, "{metadata:?}");
    for tensorflow in releases() {
        let (source, measured) = declarations(&tensorflow);
        let comparison = compare(&compiler, &[&tensorflow.include_dir()], &source, &measured)
            .expect("readable headers");
        // The comparison has compared the bytes; here is only seen that it had something to compare.
        let filled = &comparison.filled["TF_SetFilesystemVersionMetadata"];
        assert_eq!(filled.iter().cloned().collect::<BTreeSet<_>>(), metadata);
        let differences: Vec<_> = comparison
            .problems
            .iter()
            .filter(|problem| problem.contains("TF_SetFilesystemVersionMetadata"))
            .collect();
        assert!(differences.is_empty(), "{differences:?}");
    }
}

#[test]
fn host_functions_are_exported() {
    let source = source();
    assert!(source.host_functions().count() > 1);
    for tensorflow in releases() {
        let version = tensorflow.version();
        let suffix = if cfg!(target_os = "macos") { ".2.dylib" } else { ".so.2" };
        let mut exported = BTreeSet::new();
        for library in ["libtensorflow_framework", "libtensorflow_cc"] {
            let path = tensorflow.library_dir().join(format!("{library}{suffix}"));
            exported.append(&mut exports(&path).unwrap_or_else(|problem| panic!("{problem}")));
        }
        assert_eq!(
            missing(&source, true, &exported),
            [""; 0],
            "TensorFlow {version} lacks functions that tf-fs-sys requires"
        );
        assert_eq!(
            missing(&source, false, &exported),
            absent_from(EXPORTED, tensorflow.major_minor()),
            "optional functions that TensorFlow {version} lacks"
        );
    }
}

/// The types of `tf-fs-sys` for 2.22 against the declarations that were compared with its headers.
#[test]
fn what_plugins_give_to_2_22_is_laid_out_as_its_headers_say() {
    use std::mem::{offset_of, size_of};
    use tf_fs_sys::{
        SP_STREAM_OPTIONS_STRUCT_SIZE, SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE,
        SP_StreamExecutorWithStreamOptions, SP_StreamOptions, TF_FilesystemOps,
        TF_FilesystemOpsWithoutTransactions,
    };
    let measured = release_2_22::measure();
    let record = |name: &str| measured.record(name).expect("a record of the headers");
    let constant = |name: &str| {
        let found = measured.constants.iter().find(|(known, _)| *known == name);
        usize::try_from(found.expect("a constant of the headers").1).expect("a size")
    };

    let executor = record("SP_StreamExecutor");
    let last = executor.fields.last().expect("fields");
    assert_eq!(last.name, "create_stream_with_options");
    assert_eq!(
        last.offset,
        offset_of!(SP_StreamExecutorWithStreamOptions, create_stream_with_options)
    );
    assert_eq!(
        constant("SP_STREAMEXECUTOR_STRUCT_SIZE"),
        SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE
    );
    assert_eq!(record("SP_StreamOptions").size, size_of::<SP_StreamOptions>());
    assert_eq!(constant("SP_STREAM_OPTIONS_STRUCT_SIZE"), SP_STREAM_OPTIONS_STRUCT_SIZE);

    // Each operation has its own number in place of a function, so that its place can be seen.
    let older = measure_tf_fs_sys();
    let older = older.record("TF_FilesystemOps").expect("a record of the headers");
    let word = size_of::<usize>();
    let numbers: Vec<usize> = (1..=older.size / word).collect();
    assert_eq!(size_of_val(numbers.as_slice()), size_of::<TF_FilesystemOps>());
    // SAFETY: as many words as the table has functions, none of them null; nobody calls them.
    let ops = unsafe { numbers.as_ptr().cast::<TF_FilesystemOps>().read() };
    let table = ops.without_transactions();
    let newer = record("TF_FilesystemOps");
    assert_eq!(size_of_val(&table), newer.size);
    let places = (&raw const table).cast::<usize>();
    for field in &newer.fields {
        let before = older.fields.iter().find(|known| known.name == field.name);
        let number = before.expect("an operation of older releases").offset / word + 1;
        // SAFETY: the offset of a field in the table, of whose size the record is.
        assert_eq!(unsafe { places.add(field.offset / word).read() }, number, "{}", field.name);
    }
    assert_eq!(newer.fields.len(), size_of::<TF_FilesystemOpsWithoutTransactions>() / word);
}
