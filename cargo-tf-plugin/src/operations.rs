//! Who implements the operations of a filesystem.

use serde::Serialize;

use crate::artefact::Artefact;
use crate::elf_notes::NoteOf;
use crate::probe::Table;
use crate::tables::{self, Missing};

/// Who implements an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    Yours,
    SdkDefault,
    /// The SDK always fills in the slot; whether the author has implemented it is not known.
    YoursOrSdk,
    TensorflowDefault,
    Unimplemented,
    NeverCalled,
    Missing,
}

/// An operation of a filesystem or of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) by: By,
    /// The effect of a call, if the plugin does not implement it.
    pub(crate) effect: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TableReport {
    pub(crate) name: String,
    pub(crate) present: bool,
    pub(crate) abi: i64,
    pub(crate) api: i64,
    pub(crate) size: u64,
    /// The size for TensorFlow 2.22, if the plugin requests the release and gives a different one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size_in_2_22: Option<u64>,
    pub(crate) operations: Vec<Operation>,
}

/// Which operations of a plugin of this SDK the author has implemented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authors {
    /// A bit for each slot of `TF_FilesystemOps`.
    provided: u64,
    /// The operations of writers for which the SDK's defaults are used, if that is known.
    defaults: Option<u32>,
}

impl Authors {
    /// Reads what a plugin's file notes about a scheme, if the plugin uses this SDK.
    pub(crate) fn of(artefact: &Artefact, scheme: Option<&String>) -> Option<Self> {
        let filesystems = || artefact.notes.iter().filter(|note| note.of == NoteOf::Filesystem);
        let note = filesystems().find(|note| Some(&note.text) == scheme)?;
        let several = filesystems().count() > 1;
        let defaults = artefact.writer_defaults;
        Some(Self {
            provided: note.provided,
            // The notes do not say which of several types has them.
            defaults: (note.has_defaults && (!several || defaults == 0)).then_some(defaults),
        })
    }
}

pub(crate) fn describe_table(table: &Table, authors: Option<Authors>) -> TableReport {
    let operations = table.slots.iter().enumerate().map(|(at, slot)| {
        let (by, effect) = if slot.filled {
            match authors {
                None => (By::Yours, ""),
                Some(authors) => by_sdk(&table.name, &slot.name, at, authors),
            }
        } else {
            match tables::missing(&table.name, &slot.name) {
                Missing::Default(effect) => (By::TensorflowDefault, effect),
                Missing::Unimplemented => (By::Unimplemented, "TensorFlow returns UNIMPLEMENTED"),
                Missing::NeverCalled => (By::NeverCalled, "TensorFlow never calls it"),
                Missing::Refused => (By::Missing, "TensorFlow does not load the plugin"),
            }
        };
        Operation { name: slot.name.clone(), by, effect: effect.to_owned() }
    });
    TableReport {
        name: table.name.clone(),
        present: table.present,
        abi: table.abi.unwrap_or_default(),
        api: table.api.unwrap_or_default(),
        size: table.size,
        size_in_2_22: None,
        operations: operations.collect(),
    }
}

/// Returns who implements a function that is not null, in a plugin of this SDK.
fn by_sdk(table: &str, name: &str, at: usize, authors: Authors) -> (By, &'static str) {
    let provided = authors.provided & (1 << at) != 0;
    match (table, name) {
        ("TF_FilesystemOps", "init") => (By::Yours, "calls new"),
        (_, "cleanup") => (By::SdkDefault, "drops the value"),
        ("TF_FilesystemOps", _) if provided => (By::Yours, ""),
        ("TF_FilesystemOps", _) => (By::SdkDefault, tables::sdk_default(name)),
        ("TF_WritableFileOps", "flush") => by_author(authors, 1, "does nothing"),
        ("TF_WritableFileOps", "sync") => by_author(authors, 2, "calls flush"),
        ("TF_WritableFileOps", "close") => by_author(authors, 4, "calls flush"),
        _ => (By::Yours, ""),
    }
}

/// Returns who implements an operation of writers, which the SDK always fills in; `effect` is that of its default.
fn by_author(authors: Authors, bit: u32, effect: &'static str) -> (By, &'static str) {
    match authors.defaults {
        None => (By::YoursOrSdk, ""),
        Some(defaults) if defaults & bit != 0 => (By::SdkDefault, effect),
        Some(_) => (By::Yours, ""),
    }
}
