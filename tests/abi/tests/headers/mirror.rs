//! The sources of `tf-fs-sys` and what the compiler makes of them, as each TensorFlow release has it.

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::path::Path;

use syn::{Fields, Item};
use tf_fs_sys::{
    SP_StreamExecutorWithStreamOptions, TF_FilesystemOps, TF_FilesystemOpsWithoutTransactions,
};

use crate::records;

/// The modules that do not mirror a header.
const OTHERS: &[&str] = &["lib", "host", "operations"];

/// The modules with what is different in TensorFlow 2.22.
const OF_2_22: &[&str] = &["filesystem_2_22", "stream_executor_2_22"];

/// Name and source text of each module that mirrors a header.
pub(crate) fn sources() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tf-fs-sys/src");
    let entries = std::fs::read_dir(directory).expect("tf-fs-sys");
    let mut sources: Vec<(String, String)> = entries
        .map(|entry| entry.expect("a file").path())
        .map(|path| {
            let module = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (module, std::fs::read_to_string(&path).expect("readable sources"))
        })
        .filter(|(module, _)| !OTHERS.contains(&module.as_str()))
        .collect();
    sources.sort();
    sources
}

/// All declarations for a release.
pub(crate) fn declarations(sources: &[(String, String)], is_2_22: bool) -> syn::File {
    let parse = |(module, text): &(String, String)| {
        syn::parse_file(text)
            .and_then(|file| records::expanded(file.items))
            .unwrap_or_else(|problem| panic!("{module}.rs: {problem}"))
    };
    let (added, common): (Vec<_>, Vec<_>) =
        sources.iter().partition(|(module, _)| OF_2_22.contains(&module.as_str()));
    let mut items: Vec<Item> = common.into_iter().flat_map(parse).collect();
    if is_2_22 {
        items = items_2_22(items, added.into_iter().flat_map(parse));
    }
    let mut file = syn::parse_file("").expect("an empty file");
    file.items = items;
    file
}

/// Sizes, alignments, offsets and values for a release, under the names that bindgen gives to them.
pub(crate) fn numbers(is_2_22: bool) -> BTreeMap<String, i128> {
    let measured: &[(&str, i128)] = &include!(concat!(env!("OUT_DIR"), "/measured.rs"));
    let mut numbers: BTreeMap<String, i128> =
        measured.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    if is_2_22 {
        numbers_2_22(&mut numbers);
    }
    numbers
}

/// Without transactions, and with options of streams.
fn items_2_22(common: Vec<Item>, added: impl Iterator<Item = Item>) -> Vec<Item> {
    let is_of_transactions =
        |name: &syn::Ident| name.to_string().to_lowercase().contains("transaction");
    let mut items = common;
    let mut last = None;
    for item in added {
        match &item {
            Item::Struct(record) if record.ident == "SP_StreamExecutorWithStreamOptions" => {
                last = record.fields.iter().last().cloned();
            }
            Item::Struct(record) if record.ident == "SP_StreamOptions" => items.push(item),
            Item::Const(constant) if constant.ident == "SP_STREAM_OPTIONS_STRUCT_SIZE" => {
                items.push(item);
            }
            _ => {}
        }
    }
    items.retain(|item| match item {
        Item::Struct(record) => !is_of_transactions(&record.ident),
        Item::Type(alias) => !is_of_transactions(&alias.ident),
        _ => true,
    });
    for item in &mut items {
        let Item::Struct(record) = item else { continue };
        let Fields::Named(fields) = &mut record.fields else { continue };
        if record.ident == "SP_StreamExecutor" {
            fields.named.extend(last.take());
        } else if record.ident == "TF_FilesystemOps" {
            let kept = std::mem::take(&mut fields.named).into_iter();
            fields.named = kept
                .filter(|field| !field.ident.as_ref().is_some_and(is_of_transactions))
                .collect();
        }
    }
    items
}

/// As plugins give the two tables to TensorFlow 2.22.
fn numbers_2_22(numbers: &mut BTreeMap<String, i128>) {
    let mut take = |from: &str, to: &str| {
        let number = numbers.remove(from).unwrap_or_else(|| panic!("{from} was not measured"));
        numbers.insert(to.to_owned(), number);
    };
    take("Size of SP_StreamExecutorWithStreamOptions", "Size of SP_StreamExecutor");
    take("Alignment of SP_StreamExecutorWithStreamOptions", "Alignment of SP_StreamExecutor");
    take(
        "Offset of field: SP_StreamExecutorWithStreamOptions::create_stream_with_options",
        "Offset of field: SP_StreamExecutor::create_stream_with_options",
    );
    take(
        "Value of SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE",
        "Value of SP_STREAMEXECUTOR_STRUCT_SIZE",
    );
    take("Size of TF_FilesystemOpsWithoutTransactions", "Size of TF_FilesystemOps");
    let size = size_of::<TF_FilesystemOpsWithoutTransactions>() as i128;
    numbers.insert("Value of TF_FILESYSTEM_OPS_SIZE".into(), size);
    assert_eq!(offset_of!(SP_StreamExecutorWithStreamOptions, executor), 0);

    // Each operation has its own offset in place of a function, so that its new place can be seen.
    const WORD: usize = size_of::<usize>();
    const ALL: usize = size_of::<TF_FilesystemOps>() / WORD;
    const LEFT: usize = size_of::<TF_FilesystemOpsWithoutTransactions>() / WORD;
    let before: [usize; ALL] = std::array::from_fn(|at| at * WORD + 1);
    // SAFETY: as many words as the table has optional functions, none of them null; they are never called.
    let ops = unsafe { std::mem::transmute::<[usize; ALL], TF_FilesystemOps>(before) };
    // SAFETY: a table of optional functions, each of the size of a word and none of them missing.
    let after = unsafe {
        std::mem::transmute::<TF_FilesystemOpsWithoutTransactions, [usize; LEFT]>(
            ops.without_transactions(),
        )
    };
    numbers.retain(|name, offset| {
        if !name.starts_with("Offset of field: TF_FilesystemOps::") {
            return true;
        }
        let place = after.iter().position(|word| *word as i128 == *offset + 1);
        *offset = place.map_or(-1, |place| (place * WORD) as i128);
        place.is_some()
    });
}
