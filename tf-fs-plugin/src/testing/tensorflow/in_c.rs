//! The cases for filesystems in TensorFlow's C library; the list has each under the same name.
//!
//! `place.tf` are the functions of `env.h`; operations run eagerly, and in sessions.

use super::work::{
    Outcome, Place, Stop, fails, holds, in_threads, path, payload, same, same_bytes, together,
};
use crate::ResultExt as _;
use crate::testing::abi::tensorflow::{
    Attribute, Content, Context, Handle, Output, Tensor, TensorFlow, Writer,
};
use crate::testing::samples;
use serde_json::Value;
use std::process;
use std::thread;
use std::time::SystemTime;
use tf_fs_sys::{TF_FLOAT, TF_INT64, TF_STRING};
use tf_plugin_core::{Code, Error, Result};

const NOT_FOUND: &[Code] = &[Code::NotFound];
const PRECONDITION: &[Code] = &[Code::FailedPrecondition];
/// As for names that can never be one in the process and from Python.
const MALFORMED: &[Code] = &[Code::FailedPrecondition, Code::InvalidArgument];
const EXISTS: &[Code] = &[Code::AlreadyExists];

/// Where cases work: each in a new directory below the root.
#[derive(Debug)]
pub(super) struct Files {
    tf: &'static TensorFlow,
    context: Context<'static>,
    settings: Value,
    root: String,
    base: String,
    number: usize,
}

impl Place for Files {
    fn new(tf: &'static TensorFlow, settings: &Value) -> std::result::Result<Self, String> {
        let library = path(settings, "library");
        match tf.register_filesystem(&library) {
            // What registers itself when it is loaded.
            Err(error) if error.code() == Code::AlreadyExists => {}
            Err(error) => return Err(format!("{} is refused: {error:#}", library.display())),
            Ok(()) => {}
        }
        let context = tf.context().map_err(|error| format!("there is no context: {error:#}"))?;
        let root = settings["root"].as_str().unwrap_or_default();
        let root = root.strip_suffix('/').unwrap_or(root).to_owned();
        // Of an unknown scheme TensorFlow says the same as of an operation that is missing.
        if let Err(error) = tf.stat(&format!("{root}/"))
            && error.message().starts_with("File system scheme")
        {
            let problem = error.message();
            return Err(format!("{} does not register {root}: {problem}", library.display()));
        }
        let (settings, base) = (settings.clone(), String::new());
        Ok(Self { tf, context, settings, root, base, number: 0 })
    }

    fn begin(&mut self, case: &str) -> Outcome {
        self.number += 1;
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
        let unique = now ^ (u64::from(process::id()) << 40);
        self.base = format!("{}/{case}-{unique:x}-{}", self.root, self.number);
        let provided = self.is("provided");
        if provided != (case == "c_provided_files") {
            let reason = if provided {
                "the files are provided, and this writes the files that it reads"
            } else {
                "the files are not declared to be provided"
            };
            return Err(Stop::Skip(reason.into()));
        }
        if provided {
            return Ok(());
        }
        match self.tf.create_dir(&self.base) {
            // Then names imply directories.
            Err(error) if error.code() == Code::Unimplemented => Ok(()),
            made => Ok(made.context("making the directory of the case")?),
        }
    }

    fn end(&mut self, outcome: &Outcome) {
        // One that fails leaves its files for whoever looks for the cause.
        if !self.is("provided") && !matches!(outcome, Err(Stop::Wrong(_))) {
            let _ = self.tf.delete_recursively(&self.base);
        }
    }
}

impl Files {
    fn is(&self, declared: &str) -> bool {
        self.settings[declared] == true
    }

    fn needs_real(&self) -> Outcome {
        let reason = "directories are declared to be implied";
        if self.is("real") { Ok(()) } else { Err(Stop::Skip(reason.into())) }
    }

    fn needs_visible_at_create(&self) -> Outcome {
        let when = if self.is("visible_at_flush") { "flush" } else { "close" };
        let reason = format!("files are declared to be visible at {when}");
        if self.is("visible_at_create") { Ok(()) } else { Err(Stop::Skip(reason)) }
    }

    fn needs_visible_at_flush(&self) -> Outcome {
        let reason = "files are declared to be visible at close";
        if self.is("visible_at_flush") { Ok(()) } else { Err(Stop::Skip(reason.into())) }
    }

    /// What a path below a file is answered with: where directories are implied nobody looks.
    fn below_file(&self) -> &'static [Code] {
        if self.is("real") { PRECONDITION } else { &[Code::FailedPrecondition, Code::NotFound] }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// Writes a file with the functions of `env.h`.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.write_path(&self.at(name), content.as_ref())
    }

    fn write_path(&self, path: &str, content: &[u8]) -> Result<()> {
        let mut file = self.tf.create(path).context("TF_NewWritableFile")?;
        let appended = file.append(content).context("TF_AppendWritableFile");
        let closed = file.close().context("TF_CloseWritableFile");
        appended.and(closed)
    }

    /// Runs an operation, and gives what it gives.
    fn run(
        &self,
        operation: &str,
        inputs: &[Tensor],
        attributes: &[(&str, Attribute<'_>)],
        outputs: usize,
    ) -> Result<Vec<Tensor>> {
        let inputs: Vec<_> =
            inputs.iter().map(|input| self.context.handle(input)).collect::<Result<_>>()?;
        let inputs: Vec<_> = inputs.iter().collect();
        let given = self.context.execute(operation, &inputs, attributes, None, outputs);
        let given = given.context(operation)?;
        given.iter().map(Handle::tensor).collect()
    }

    /// Strings that an operation gives.
    fn strings(&self, operation: &str, inputs: &[Tensor]) -> Result<Vec<Vec<u8>>> {
        Ok(strings(self.run(operation, inputs, &[], 1)?.pop()))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.read_path(&self.at(name))
    }

    fn read_path(&self, path: &str) -> Result<Vec<u8>> {
        let mut contents = self.strings("ReadFile", &[Tensor::string(path)])?;
        Ok(contents.pop().unwrap_or_default())
    }

    /// The content of a file has to be this.
    fn has(&self, what: &str, name: &str, content: impl AsRef<[u8]>) -> Outcome {
        same_bytes(
            format_args!("{what}: the content of {name}"),
            &self.read(name)?,
            content.as_ref(),
        )
    }

    fn write_operation(&self, path: &str, content: &[u8]) -> Result<()> {
        let inputs = [Tensor::string(path), Tensor::string(content)];
        self.run("WriteFile", &inputs, &[], 0).map(drop)
    }

    /// The length of a file.
    fn length(&self, name: &str) -> Result<i64> {
        Ok(self.tf.stat(&self.at(name)).context("TF_FileStat")?.length)
    }

    /// The entries of a directory, sorted. Some filesystems mark directories with a slash at the end.
    fn list(&self, name: &str) -> Result<Vec<String>> {
        let path = if name.is_empty() { self.base.clone() } else { self.at(name) };
        let names = self.tf.children(&path).context("TF_GetChildren")?;
        let mut names: Vec<_> =
            names.iter().map(|name| name.trim_end_matches('/').to_owned()).collect();
        names.sort();
        Ok(names)
    }

    fn lists(&self, what: &str, name: &str, wanted: &[&str]) -> Outcome {
        let wanted = wanted.iter().map(|name| (*name).to_owned()).collect();
        same(format_args!("{what}: the entries of the directory {name}"), self.list(name)?, wanted)
    }

    /// What matches patterns, without the directory of the case.
    fn glob(&self, patterns: &[&str]) -> Result<Vec<String>> {
        let patterns = Tensor::strings(patterns.iter().map(|pattern| self.at(pattern)));
        let found = self.strings("MatchingFiles", &[patterns])?;
        let found = found.iter().map(|name| String::from_utf8_lossy(name).into_owned());
        let base = format!("{}/", self.base);
        Ok(found.map(|name| name.strip_prefix(&base).map_or(name.clone(), str::to_owned)).collect())
    }

    fn globs(&self, patterns: &[&str], wanted: &[&str]) -> Outcome {
        let what = format!("MatchingFiles of {patterns:?}");
        same(what, self.glob(patterns)?, wanted.iter().map(|name| (*name).to_owned()).collect())
    }

    /// A file, a file in a directory, and an empty directory.
    fn populate(&self) -> Result<()> {
        for directory in ["full", "empty"] {
            self.tf.create_dir(&self.at(directory)).context("TF_CreateDir")?;
        }
        self.write("file", b"content")?;
        self.write("full/file", b"inner")
    }

    fn untouched(&self) -> Outcome {
        self.lists("afterwards", "", &["empty", "file", "full"])?;
        self.has("afterwards", "file", "content")?;
        self.has("afterwards", "full/file", "inner")
    }

    fn remove_tree(&self, name: &str) -> Outcome {
        let (removed, files, directories) = self.tf.delete_recursively(&self.at(name));
        removed.context("TF_DeleteRecursively")?;
        same("what TF_DeleteRecursively leaves, when it succeeds", (files, directories), (0, 0))
    }

    /// The elements of a data set of strings.
    fn elements(&self, operation: &str, inputs: &[Tensor]) -> Result<Vec<Vec<u8>>> {
        let mut seen = Vec::new();
        self.each_element(operation, inputs, |element| seen.push(element))?;
        Ok(seen)
    }

    fn each_element(
        &self,
        operation: &str,
        inputs: &[Tensor],
        mut seen: impl FnMut(Vec<u8>),
    ) -> Result<()> {
        let inputs: Vec<_> =
            inputs.iter().map(|input| self.context.handle(input)).collect::<Result<_>>()?;
        let inputs: Vec<_> = inputs.iter().collect();
        let made = self.context.execute(operation, &inputs, &[], None, 1).context(operation)?;
        let types = [
            ("output_types", Attribute::Types(&[TF_STRING])),
            ("output_shapes", Attribute::UnknownShapes(1)),
        ];
        let iterators = self.context.execute("AnonymousIteratorV3", &[], &types, None, 1)?;
        let (Some(dataset), Some(iterator)) = (made.first(), iterators.first()) else {
            return Err(Error::internal(format!("{operation} gives nothing")));
        };
        let start = self.context.execute("MakeIterator", &[dataset, iterator], &[], None, 0);
        start.context(operation)?;
        loop {
            match self.context.execute("IteratorGetNext", &[iterator], &types, None, 1) {
                Ok(next) => seen(strings(Some(next[0].tensor()?)).pop().unwrap_or_default()),
                Err(end) if end.code() == Code::OutOfRange => return Ok(()),
                Err(error) => return Err(error.context(operation)),
            }
        }
    }

    /// Writes a file of records, with three appends each as TensorFlow's writer.
    fn write_records(&self, name: &str, records: &[Vec<u8>]) -> Result<()> {
        let mut file = self.tf.create(&self.at(name)).context("TF_NewWritableFile")?;
        let mut appended = Ok(());
        for record in records {
            let length = (record.len() as u64).to_le_bytes();
            let header = [&length[..], &masked_crc(&length).to_le_bytes()].concat();
            for piece in [&header[..], record, &masked_crc(record).to_le_bytes()] {
                appended =
                    appended.and_then(|()| file.append(piece).context("TF_AppendWritableFile"));
            }
        }
        let closed = file.close().context("TF_CloseWritableFile");
        appended.and(closed)
    }

    fn records(&self, name: &str) -> Result<Vec<Vec<u8>>> {
        self.elements(
            "TFRecordDataset",
            &[Tensor::string(self.at(name)), Tensor::string(""), Tensor::int64(262_144)],
        )
    }

    /// Saves tensors under a prefix.
    fn save(&self, prefix: &str, tensors: &[(&str, Tensor)]) -> Result<()> {
        let names = Tensor::strings(tensors.iter().map(|(name, _)| name));
        let whole = Tensor::strings(tensors.iter().map(|_| ""));
        let mut inputs = vec![Tensor::string(self.at(prefix)), names, whole];
        inputs.extend(tensors.iter().map(|(_, tensor)| tensor.clone()));
        let types: Vec<_> = tensors.iter().map(|(_, tensor)| tensor.data_type).collect();
        self.run("SaveV2", &inputs, &[("dtypes", Attribute::Types(&types))], 0).map(drop)
    }

    fn restore(&self, prefix: &str, tensors: &[(&str, Tensor)]) -> Result<Vec<Tensor>> {
        let names = Tensor::strings(tensors.iter().map(|(name, _)| name));
        let whole = Tensor::strings(tensors.iter().map(|_| ""));
        let inputs = [Tensor::string(self.at(prefix)), names, whole];
        let types: Vec<_> = tensors.iter().map(|(_, tensor)| tensor.data_type).collect();
        self.run("RestoreV2", &inputs, &[("dtypes", Attribute::Types(&types))], types.len())
    }
}

fn strings(tensor: Option<Tensor>) -> Vec<Vec<u8>> {
    match tensor.map(|tensor| tensor.content) {
        Some(Content::Strings(strings)) => strings,
        _ => Vec::new(),
    }
}

/// The check sum of records: CRC-32C, turned and shifted, so that it is none of what it is a part of.
fn masked_crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    let add = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    (!bytes.iter().fold(!0, add)).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn floats(count: usize, seed: u64) -> Tensor {
    let bytes =
        payload(count, seed).iter().flat_map(|byte| f32::from(*byte).to_ne_bytes()).collect();
    Tensor::bytes(TF_FLOAT, &[count as i64], bytes)
}

// Files ---------------------------------------------------------------------------------------------------------

pub(super) fn c_registered_twice(place: &Files) -> Outcome {
    place.write("file", b"content")?;
    for _ in 0..2 {
        let again = place.tf.register_filesystem(&path(&place.settings, "library"));
        if again.is_err() {
            fails("registering the plugin once more", EXISTS, again)?;
        }
    }
    place.has("after that", "file", "content")?;
    let nothing = place.tf.register_filesystem("no-such-plugin.so".as_ref());
    fails("registering a library that is not there", NOT_FOUND, nothing)?;
    place.has("after that", "file", "content")
}

pub(super) fn c_write_and_read(place: &Files) -> Outcome {
    for size in [0, 1, 4_096, 65_537, 1_048_576, 3_000_001] {
        let (name, content) = (format!("file-{size}"), payload(size, 7));
        place.write(&name, &content)?;
        same(format_args!("the length of {size} bytes"), place.length(&name)?, size as i64)?;
        place.has("ReadFile", &name, content)?;
    }
    Ok(())
}

pub(super) fn c_stat(place: &Files) -> Outcome {
    place.populate()?;
    let file = place.tf.stat(&place.at("file"))?;
    same("length and kind of a file", (file.length, file.is_directory), (7, false))?;
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as i64;
    let hours = 24 * 3_600_000_000_000;
    let is_now = file.mtime_nsec == 0 || (now - file.mtime_nsec).abs() < hours;
    let what = "the time of a file is now, or 0";
    if !is_now {
        let got = format!("{} ns since 1970", file.mtime_nsec);
        return Err(crate::testing::Deviation::new(what).wanted(format!("{now}")).got(got).into());
    }
    for directory in ["full", "empty"] {
        let found = place.tf.stat(&place.at(directory))?.is_directory;
        same(format_args!("is_directory of {directory}"), found, true)?;
    }
    Ok(())
}

pub(super) fn c_stat_codes(place: &Files) -> Outcome {
    place.populate()?;
    let stat = |name: &str| place.tf.stat(&place.at(name)).map(|found| found.length);
    together([
        fails("TF_FileStat of nothing", NOT_FOUND, stat("missing")),
        fails("TF_FileStat below nothing", NOT_FOUND, stat("missing/file")),
        fails("TF_FileStat of the beginning of a name", NOT_FOUND, stat("fil")),
        fails("TF_FileStat below a file", place.below_file(), stat("file/below")),
    ])
}

pub(super) fn c_open_file_is_there(place: &Files) -> Outcome {
    place.needs_visible_at_create()?;
    let mut file = place.tf.create(&place.at("open"))?;
    file.append(b"12345")?;
    let checks = together([
        place.tf.stat(&place.at("open")).map(drop).map_err(Stop::from),
        place.lists("while it is open", "", &["open"]),
        place.globs(&["o*"], &["open"]),
    ]);
    file.close()?;
    checks
}

pub(super) fn c_flushed_is_read(place: &Files) -> Outcome {
    read_after_each(place, "TF_FlushWritableFile", |file| file.flush())
}

pub(super) fn c_synced_is_read(place: &Files) -> Outcome {
    read_after_each(place, "TF_SyncWritableFile", |file| file.sync())
}

/// A file that is read by its name whenever what was appended has been published.
fn read_after_each(
    place: &Files,
    what: &str,
    publish: fn(&mut Writer<'_>) -> Result<()>,
) -> Outcome {
    place.needs_visible_at_flush()?;
    let mut file = place.tf.create(&place.at("file"))?;
    let mut wanted = Vec::new();
    for count in 1_u8..5 {
        file.append(&[count; 1000])?;
        wanted.extend([count; 1000]);
        publish(&mut file)?;
        place.has(&format!("after {what}"), "file", &wanted)?;
        let length = place.length("file")?;
        same(format_args!("the length after {what}"), length, wanted.len() as i64)?;
    }
    Ok(file.close()?)
}

pub(super) fn c_half_a_file_is_never_seen(place: &Files) -> Outcome {
    if place.is("visible_at_create") {
        return Err(Stop::Skip("files are declared to be visible at create".into()));
    }
    place.write("file", b"the old content")?;
    let mut file = place.tf.create(&place.at("file"))?;
    file.append(&[7; 3000])?;
    if !place.is("visible_at_flush") {
        file.flush()?;
    }
    // The process that writes it may be refused.
    match place.read("file") {
        Err(error) if error.code() == Code::FailedPrecondition => {}
        seen => same_bytes("before the close", &seen?, b"the old content")?,
    }
    file.close()?;
    place.has("after the close", "file", [7; 3000])
}

pub(super) fn c_many_small_appends(place: &Files) -> Outcome {
    let mut file = place.tf.create(&place.at("file"))?;
    let mut wanted = Vec::new();
    for number in 0..4000 {
        let piece = payload(number % 41, number as u64);
        file.append(&piece)?;
        wanted.extend(piece);
        if number % 1000 == 999 {
            file.flush()?;
        }
    }
    file.close()?;
    place.has("of 4,000 pieces", "file", wanted)
}

pub(super) fn c_one_large_append(place: &Files) -> Outcome {
    let content = payload(16 << 20, 3);
    place.write("file", &content)?;
    same("the length", place.length("file")?, 16 << 20)?;
    place.has("of one append", "file", content)
}

pub(super) fn c_all_byte_values(place: &Files) -> Outcome {
    let mut content: Vec<u8> = (0..=255).cycle().take(768).collect();
    content.extend(b"\r\n\0\n\r\x1a\xff\xfe");
    place.write("file", &content)?;
    place.has("all bytes", "file", content)
}

pub(super) fn c_empty_file(place: &Files) -> Outcome {
    place.tf.create(&place.at("empty"))?.close()?;
    let found = place.tf.stat(&place.at("empty"))?;
    same("length and kind", (found.length, found.is_directory), (0, false))?;
    place.has("ReadFile", "empty", b"")?;
    same("TFRecordDataset", place.records("empty")?, Vec::new())?;
    place.globs(&["*"], &["empty"])
}

pub(super) fn c_replaced_by_a_shorter_one(place: &Files) -> Outcome {
    place.write("file", payload(300_000, 1))?;
    for content in ["short", ""] {
        place.write("file", content)?;
        place.has("the new one", "file", content)?;
        same("the new length", place.length("file")?, content.len() as i64)?;
    }
    Ok(())
}

pub(super) fn c_new_content_is_read(place: &Files) -> Outcome {
    for number in 0_u8..4 {
        let content = vec![number; usize::from(number) + 1];
        place.write("file", &content)?;
        place.has("each version", "file", &content)?;
        same("the length of each version", place.length("file")?, content.len() as i64)?;
    }
    Ok(())
}

pub(super) fn c_two_writers(place: &Files) -> Outcome {
    let (mut one, mut two) = (place.tf.create(&place.at("a"))?, place.tf.create(&place.at("b"))?);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for number in 0..200 {
        for (file, name, all) in [(&mut one, "a", &mut first), (&mut two, "b", &mut second)] {
            let piece = format!("{name}{number},").into_bytes();
            file.append(&piece)?;
            all.extend(piece);
        }
    }
    one.close()?;
    two.close()?;
    place.has("written in turn", "a", first)?;
    place.has("written in turn", "b", second)
}

pub(super) fn c_writer_moves_between_threads(place: &Files) -> Outcome {
    let mut file = place.tf.create(&place.at("file"))?;
    let mut wanted = Vec::new();
    for number in 0_u8..8 {
        let piece = vec![number; 5000];
        let appended = thread::scope(|scope| scope.spawn(|| file.append(&piece)).join());
        appended.map_err(|_| Error::internal("a thread panicked"))??;
        wanted.extend(piece);
    }
    thread::scope(|scope| scope.spawn(|| file.close()).join())
        .map_err(|_| Error::internal("a thread panicked"))??;
    place.has("of eight threads", "file", wanted)
}

// Errors --------------------------------------------------------------------------------------------------------

pub(super) fn c_read_codes(place: &Files) -> Outcome {
    place.populate()?;
    together([
        fails("ReadFile of nothing", NOT_FOUND, place.read("missing")),
        fails("ReadFile below nothing", NOT_FOUND, place.read("missing/file")),
        fails("ReadFile of a directory", PRECONDITION, place.read("full")),
        fails("ReadFile of an empty directory", PRECONDITION, place.read("empty")),
        fails("ReadFile below a file", place.below_file(), place.read("file/below")),
    ])?;
    place.untouched()
}

pub(super) fn c_write_codes(place: &Files) -> Outcome {
    place.populate()?;
    let create = |name: &str| place.write(name, b"x");
    let onto = |what: &str, name: &str| match create(name) {
        // A file beside the directory, as TensorFlow's own object stores have it.
        Ok(()) if !place.is("real") => place.has("the file beside the directory", name, b"x"),
        result => fails(what, PRECONDITION, result),
    };
    together([
        onto("TF_NewWritableFile of a directory", "full"),
        onto("TF_NewWritableFile of an empty directory", "empty"),
    ])?;
    if place.is("real") {
        together([
            fails("TF_NewWritableFile below nothing", NOT_FOUND, create("missing/file")),
            fails("TF_NewWritableFile below a file", PRECONDITION, create("file/below")),
        ])?;
    }
    place.untouched()
}

pub(super) fn c_malformed(place: &Files) -> Outcome {
    let Some(name) = place.settings["malformed"].as_str() else {
        let reason = "no name is declared that the filesystem can never accept";
        return Err(Stop::Skip(reason.into()));
    };
    let stat = place.tf.stat(name).map(drop);
    together([
        fails("ReadFile", MALFORMED, place.read_path(name)),
        fails("TF_NewWritableFile", MALFORMED, place.write_path(name, b"x")),
        fails("TF_FileStat", MALFORMED, stat),
        fails("TF_DeleteFile", MALFORMED, place.tf.delete_file(name)),
        fails("TF_CreateDir", MALFORMED, place.tf.create_dir(name)),
        fails("TF_DeleteDir", MALFORMED, place.tf.delete_dir(name)),
        fails("TF_DeleteRecursively", MALFORMED, place.tf.delete_recursively(name).0),
        fails("TF_GetChildren", MALFORMED, place.tf.children(name)),
    ])
}

// Directories ---------------------------------------------------------------------------------------------------

pub(super) fn c_create_dir(place: &Files) -> Outcome {
    place.tf.create_dir(&place.at("new"))?;
    same("is_directory", place.tf.stat(&place.at("new"))?.is_directory, true)?;
    place.lists("of a new one", "new", &[])?;
    place.tf.create_dir(&place.at("new/inner"))?;
    place.write("new/file", b"content")?;
    fails("TF_CreateDir once more", EXISTS, place.tf.create_dir(&place.at("new")))?;
    place.lists("after a second TF_CreateDir", "new", &["file", "inner"])
}

pub(super) fn c_create_dir_codes(place: &Files) -> Outcome {
    place.needs_real()?;
    place.populate()?;
    let create = |name: &str| place.tf.create_dir(&place.at(name));
    together([
        fails("TF_CreateDir below nothing", NOT_FOUND, create("missing/new")),
        fails("TF_CreateDir of a file", EXISTS, create("file")),
        fails("TF_CreateDir below a file", PRECONDITION, create("file/new")),
    ])?;
    place.untouched()
}

pub(super) fn c_delete_dir(place: &Files) -> Outcome {
    place.populate()?;
    let delete = |name: &str| place.tf.delete_dir(&place.at(name));
    together([
        fails("TF_DeleteDir of a full one", PRECONDITION, delete("full")),
        fails("TF_DeleteDir of nothing", NOT_FOUND, delete("missing")),
        fails("TF_DeleteDir of a file", PRECONDITION, delete("file")),
    ])?;
    place.untouched()?;
    delete("empty")?;
    place.lists("without the empty one", "", &["file", "full"])
}

pub(super) fn c_delete_file(place: &Files) -> Outcome {
    let names = ["model", "model-1", "model-10", "mode"];
    for name in names {
        place.write(name, name)?;
    }
    place.tf.create_dir(&place.at("one"))?;
    place.write("one/file", b"x")?;
    place.tf.delete_file(&place.at("model-1"))?;
    place.tf.delete_file(&place.at("one/file"))?;
    place.lists("without model-1", "", &["mode", "model", "model-10", "one"])?;
    place.lists("without its file", "one", &[])?;
    let gone = place.read("model-1");
    fails("reading what was deleted", NOT_FOUND, gone)?;
    place.tf.delete_file(&place.at("model"))?;
    place.lists("without model", "", &["mode", "model-10", "one"])
}

pub(super) fn c_delete_file_codes(place: &Files) -> Outcome {
    place.populate()?;
    let delete = |name: &str| place.tf.delete_file(&place.at(name));
    together([
        fails("TF_DeleteFile of nothing", NOT_FOUND, delete("missing")),
        fails("TF_DeleteFile of a directory", PRECONDITION, delete("full")),
        fails("TF_DeleteFile of an empty directory", PRECONDITION, delete("empty")),
        fails("TF_DeleteFile below a file", place.below_file(), delete("file/below")),
    ])?;
    place.untouched()
}

pub(super) fn c_delete_recursively(place: &Files) -> Outcome {
    for directory in ["run", "run/a", "run/a/b", "run/a/b/c", "run/empty", "run1"] {
        place.tf.create_dir(&place.at(directory))?;
    }
    for file in ["run/file", "run/a/file", "run/a/b/c/file", "run1/file", "run2"] {
        place.write(file, file)?;
    }
    place.remove_tree("run")?;
    place.lists("without run", "", &["run1", "run2"])?;
    place.has("beside it", "run1/file", "run1/file")?;
    fails("reading what was deleted", NOT_FOUND, place.read("run/a/b/c/file"))
}

pub(super) fn c_delete_recursively_codes(place: &Files) -> Outcome {
    place.populate()?;
    let (nothing, files, directories) = place.tf.delete_recursively(&place.at("missing"));
    fails("TF_DeleteRecursively of nothing", NOT_FOUND, nothing)?;
    same("what it says is left of nothing", (files, directories), (0, 1))?;
    let (below, ..) = place.tf.delete_recursively(&place.at("file/below"));
    fails("TF_DeleteRecursively below a file", place.below_file(), below)?;
    place.untouched()
}

// Listings ------------------------------------------------------------------------------------------------------

pub(super) fn c_get_children(place: &Files) -> Outcome {
    for directory in ["a", "ab", "a/deep", "a/deep/er"] {
        place.tf.create_dir(&place.at(directory))?;
    }
    for file in ["a/.hidden", "a/one", "a/deep/two", "a/deep/er/three", "ab/four", "five"] {
        place.write(file, file)?;
    }
    place.lists("one level", "a", &[".hidden", "deep", "one"])?;
    place.lists("one level", "", &["a", "ab", "five"])?;
    place.lists("one level", "a/deep", &["er", "two"])
}

pub(super) fn c_get_children_codes(place: &Files) -> Outcome {
    place.populate()?;
    let listed = |name: &str| place.tf.children(&place.at(name));
    if place.is("real") {
        fails("TF_GetChildren of nothing", NOT_FOUND, listed("missing"))?;
    }
    let of_file = &[Code::FailedPrecondition, Code::NotFound];
    fails(
        "TF_GetChildren of a file",
        if place.is("real") { PRECONDITION } else { of_file },
        listed("file"),
    )?;
    place.untouched()
}

pub(super) fn c_get_children_of_many(place: &Files) -> Outcome {
    let wanted: Vec<String> = (0..300).map(|number| format!("file-{number:03}")).collect();
    in_threads(8, |thread| {
        for name in wanted.iter().skip(thread).step_by(8) {
            place.write(name, b"")?;
        }
        Ok(())
    })?;
    same("the names of 300 files", place.list("")?, wanted.clone())?;
    same("MatchingFiles of 300 files", place.glob(&["file-*"])?, wanted)
}

pub(super) fn c_listing_follows_changes(place: &Files) -> Outcome {
    let mut wanted = Vec::new();
    for name in ["a", "b", "c"] {
        place.write(name, name)?;
        wanted.push(name);
        place.lists("after a new file", "", &wanted)?;
        place.globs(&["*"], &wanted)?;
    }
    place.tf.delete_file(&place.at("b"))?;
    place.lists("after one was deleted", "", &["a", "c"])?;
    place.globs(&["*"], &["a", "c"])
}

pub(super) fn c_matching_files(place: &Files) -> Outcome {
    for directory in ["one", "two", "two/deep"] {
        place.tf.create_dir(&place.at(directory))?;
    }
    for file in
        ["part-0", "part-1", "part-10", "one/part-2", "two/part-3", "two/deep/part-4", "other"]
    {
        place.write(file, b"")?;
    }
    together([
        place.globs(&["part-*"], &["part-0", "part-1", "part-10"]),
        place.globs(&["part-?"], &["part-0", "part-1"]),
        place.globs(&["*/part-*"], &["one/part-2", "two/part-3"]),
        place.globs(&["part-[1-9]"], &["part-1"]),
        place.globs(&["part-[^1]"], &["part-0"]),
        place.globs(&["part-[01]*"], &["part-0", "part-1", "part-10"]),
        place.globs(&["t*"], &["two"]),
        place.globs(&["other"], &["other"]),
        place.globs(&["othe"], &[]),
        place.globs(&["nothing/*"], &[]),
        place.globs(&["part-1*", "o*r"], &["other", "part-1", "part-10"]),
    ])
}

pub(super) fn c_matching_files_escapes(place: &Files) -> Outcome {
    for name in ["star*", "starry", "[list]", "what?", "whatx"] {
        place.write(name, b"")?;
    }
    together([
        place.globs(&["star\\*"], &["star*"]),
        place.globs(&["\\[list\\]"], &["[list]"]),
        place.globs(&["what\\?"], &["what?"]),
    ])
}

// Names ---------------------------------------------------------------------------------------------------------

fn named(place: &Files, odd: &[&str]) -> Outcome {
    for name in odd {
        place.write(name, name)?;
    }
    let sorted = |names: &[&str]| {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    };
    same("the names", place.list("")?, sorted(odd))?;
    for name in odd {
        place.has("by its name", name, name)?;
        same(format_args!("the length of {name:?}"), place.length(name)?, name.len() as i64)?;
    }
    for (number, name) in odd.iter().enumerate() {
        place.tf.delete_file(&place.at(name))?;
        place.tf.create_dir(&place.at(name))?;
        place.write(&format!("{name}/{name}"), [number as u8])?;
        place.lists("a directory of that name", name, &[name])?;
    }
    same("the names of the directories", place.list("")?, sorted(odd))
}

pub(super) fn c_names_with_spaces(place: &Files) -> Outcome {
    named(place, &["with space", " leading", "trailing ", "two  spaces"])
}

pub(super) fn c_names_beyond_ascii(place: &Files) -> Outcome {
    named(place, &["zażółć", "日本語", "🦀", "e\u{301} in two", "\u{e9} in one"])?;
    place.globs(&["*本*"], &["日本語"])
}

pub(super) fn c_names_with_wildcards(place: &Files) -> Outcome {
    named(place, &["star*", "what?", "[list]", "[^x]", "back\\slash"])
}

pub(super) fn c_names_of_uris(place: &Files) -> Outcome {
    let names =
        ["100%", "%41", "%2F", "a+b", "a&b=c", "hash#tag", "a:b", "at@sign", "q=1?", "semi;colon"];
    named(place, &names)
}

pub(super) fn c_names_with_signs(place: &Files) -> Outcome {
    let names = [
        "comma,", "quote'\"", "$HOME", "~", "`tick`", "(round)", "{curly}", "<angle>", "pipe|",
        "-dash", "...", ".hidden",
    ];
    named(place, &names)
}

pub(super) fn c_names_differ_in_case(place: &Files) -> Outcome {
    named(place, &["name", "Name", "NAME"])
}

pub(super) fn c_long_names(place: &Files) -> Outcome {
    named(place, &[&"x".repeat(200), &"x".repeat(199)])
}

pub(super) fn c_deep_directories(place: &Files) -> Outcome {
    let mut deep = String::from("directory");
    for _ in 0..40 {
        place.tf.create_dir(&place.at(&deep))?;
        deep.push_str("/directory");
    }
    place.write(&deep, b"deep")?;
    place.has("40 levels down", &deep, b"deep")?;
    place.remove_tree("directory")?;
    place.lists("after TF_DeleteRecursively", "", &[])
}

pub(super) fn c_untidy_names(place: &Files) -> Outcome {
    place.tf.create_dir(&place.at("sub"))?;
    place.write("sub/../file", b"here")?;
    place.has("written by way of ..", "file", b"here")?;
    place.has("by way of ., .. and //", "./sub/./..//file", b"here")?;
    place.lists("by way of ..", "sub/..", &["file", "sub"])?;
    same("is_directory with / at the end", place.tf.stat(&place.at("sub/"))?.is_directory, true)
}

// Operations ----------------------------------------------------------------------------------------------------

pub(super) fn c_write_file(place: &Files) -> Outcome {
    for (name, size) in [("new/directory/file", 100_000), ("new/other", 0), ("file", 1)] {
        let content = payload(size, 5);
        place.write_operation(&place.at(name), &content)?;
        place.has("WriteFile", name, content)?;
        same("the length", place.length(name)?, size as i64)?;
    }
    let made = place.tf.stat(&place.at("new/directory"))?.is_directory;
    same("is_directory of the new directory", made, true)?;
    place.write_operation(&place.at("new/directory/file"), b"short")?;
    place.has("WriteFile once more", "new/directory/file", b"short")
}

pub(super) fn c_records(place: &Files) -> Outcome {
    let mut records: Vec<Vec<u8>> =
        (0..1000).map(|number| format!("record {number}").into_bytes()).collect();
    records.extend([Vec::new(), payload(300_000, 2)]);
    place.write_records("records", &records)?;
    let wanted: usize = records.iter().map(|record| record.len() + 16).sum();
    same("the length", place.length("records")?, wanted as i64)?;
    for epoch in ["first", "second"] {
        let found = place.records("records")?;
        same(format_args!("the records, the {epoch} time"), found.len(), records.len())?;
        holds(format_args!("the records are those written, the {epoch} time"), found == records)?;
    }
    Ok(())
}

pub(super) fn c_records_cut(place: &Files) -> Outcome {
    let records: Vec<_> = (0..10).map(|seed| payload(1000, seed)).collect();
    place.write_records("whole", &records)?;
    let whole = place.read("whole")?;
    place.write("cut", &whole[..whole.len() - 7])?;
    let mut seen = Vec::new();
    let inputs = [Tensor::string(place.at("cut")), Tensor::string(""), Tensor::int64(262_144)];
    let end = place.each_element("TFRecordDataset", &inputs, |record| seen.push(record));
    fails("a file without its last 7 bytes", &[Code::DataLoss], end)?;
    holds("the records before are those written", seen == records[..9])
}

pub(super) fn c_text_lines(place: &Files) -> Outcome {
    let long = "x".repeat(70_000);
    let lines = ["first", "", "third: ünïcode", &long, "no end"];
    place.write("text", lines.join("\n"))?;
    let wanted: Vec<_> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    for buffer in [16, 262_144] {
        let inputs = [Tensor::string(place.at("text")), Tensor::string(""), Tensor::int64(buffer)];
        let found = place.elements("TextLineDataset", &inputs)?;
        holds(format_args!("the lines with a buffer of {buffer} bytes"), found == wanted)?;
    }
    let inputs = [Tensor::string(place.at("missing")), Tensor::string(""), Tensor::int64(0)];
    fails("TextLineDataset of nothing", NOT_FOUND, place.elements("TextLineDataset", &inputs))
}

pub(super) fn c_fixed_length_records(place: &Files) -> Outcome {
    let records: Vec<_> = (0..200).map(|seed| payload(37, seed)).collect();
    let mut content = b"HEAD".to_vec();
    records.iter().for_each(|record| content.extend(record));
    content.extend(b"FOOTER");
    place.write("file", content)?;
    for buffer in [10, 1 << 20] {
        let numbers = [4, 37, 6, buffer].map(Tensor::int64);
        let mut inputs = vec![Tensor::string(place.at("file"))];
        inputs.extend(numbers);
        inputs.push(Tensor::string(""));
        let found = place.elements("FixedLengthRecordDatasetV2", &inputs)?;
        holds(format_args!("the records with a buffer of {buffer} bytes"), found == records)?;
    }
    Ok(())
}

pub(super) fn c_save_and_restore(place: &Files) -> Outcome {
    let words = Tensor::strings(["one", "", "three"]);
    let mut big = floats(256 * 1024, 1);
    big.shape = vec![256, 1024];
    let saved = [("big", big), ("step", Tensor::int64(7)), ("words", words)];
    place.save("model", &saved)?;
    place.lists("after SaveV2", "", &["model.data-00000-of-00001", "model.index"])?;
    let restored = place.restore("model", &saved)?;
    for ((name, wanted), got) in saved.iter().zip(&restored) {
        holds(format_args!("`{name}` is what was saved"), got == wanted)?;
    }
    // Once more, onto what is there.
    let again = [("step", Tensor::int64(8))];
    place.save("model", &again)?;
    same(
        "`step` when it was saved again",
        place.restore("model", &again)?,
        vec![Tensor::int64(8)],
    )?;
    fails("RestoreV2 of nothing", NOT_FOUND, place.restore("missing", &again))
}

pub(super) fn c_merged_checkpoints(place: &Files) -> Outcome {
    let parts = [("parts/0", [("a", floats(5000, 1))]), ("parts/1", [("b", floats(70_000, 2))])];
    place.tf.create_dir(&place.at("parts"))?;
    for (prefix, tensors) in &parts {
        place.save(prefix, tensors)?;
    }
    let prefixes = Tensor::strings(parts.iter().map(|(prefix, _)| place.at(prefix)));
    let merge = [prefixes, Tensor::string(place.at("model"))];
    place.run("MergeV2Checkpoints", &merge, &[], 0)?;
    let wanted = ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"];
    let left: Vec<_> = place.list("")?.into_iter().filter(|name| name != "parts").collect();
    same("the files", left, wanted.map(str::to_owned).to_vec())?;
    for (_, [tensor]) in parts {
        let name = tensor.0;
        let restored = place.restore("model", std::slice::from_ref(&tensor))?;
        holds(format_args!("`{name}` is what was saved"), restored == [tensor.1])?;
    }
    Ok(())
}

pub(super) fn c_memory_region(place: &Files) -> Outcome {
    let Content::Bytes(bytes) = floats(4096, 4).content else { return Ok(()) };
    place.write("constant", &bytes)?;
    place.write("empty", b"")?;
    let map = |name: &str| {
        let path = place.at(name);
        let attributes = [
            ("dtype", Attribute::Type(TF_FLOAT)),
            ("shape", Attribute::Shape(&[4096])),
            ("memory_region_name", Attribute::Text(&path)),
        ];
        place.run("ImmutableConst", &[], &attributes, 1)
    };
    let found = map("constant")?;
    holds("ImmutableConst has the bytes of the file", found[0].content == Content::Bytes(bytes))?;
    fails("ImmutableConst of nothing", NOT_FOUND, map("missing"))?;
    fails("ImmutableConst of an empty file", &[Code::InvalidArgument], map("empty"))
}

pub(super) fn c_lookup_table(place: &Files) -> Outcome {
    place.write("words", b"apple\nbanana\ncherry\n")?;
    let context = &place.context;
    let types =
        [("key_dtype", Attribute::Type(TF_STRING)), ("value_dtype", Attribute::Type(TF_INT64))];
    let table = context.execute("HashTableV2", &[], &types, None, 1)?;
    let file = context.handle(&Tensor::string(place.at("words")))?;
    // Whole lines are keys, their numbers values.
    let columns = [("key_index", Attribute::Int(-2)), ("value_index", Attribute::Int(-1))];
    context.execute("InitializeTableFromTextFileV2", &[&table[0], &file], &columns, None, 0)?;
    let keys = context.handle(&Tensor::strings(["cherry", "durian", "apple"]))?;
    let default = context.handle(&Tensor::int64(-1))?;
    let found =
        context.execute("LookupTableFindV2", &[&table[0], &keys, &default], &[], None, 1)?;
    same("the numbers of lines", found[0].tensor()?, Tensor::int64s(&[2, -1, 0]))
}

pub(super) fn c_event_file(place: &Files) -> Outcome {
    let context = &place.context;
    let name = [("shared_name", Attribute::Text(&place.base))];
    let writer = context.execute("SummaryWriter", &[], &name, None, 1)?;
    let logs = context.handle(&Tensor::string(place.at("logs")))?;
    let queue = Tensor::bytes(tf_fs_sys::TF_INT32, &[], 10_i32.to_ne_bytes().to_vec());
    let millis = Tensor::bytes(tf_fs_sys::TF_INT32, &[], 120_000_i32.to_ne_bytes().to_vec());
    let (queue, millis) = (context.handle(&queue)?, context.handle(&millis)?);
    let suffix = context.handle(&Tensor::string(".events"))?;
    let inputs = [&writer[0], &logs, &queue, &millis, &suffix];
    context.execute("CreateSummaryFileWriter", &inputs, &[], None, 0)?;
    let tag = context.handle(&Tensor::string("loss"))?;
    let value = context.handle(&Tensor::bytes(TF_FLOAT, &[], 0.5_f32.to_ne_bytes().to_vec()))?;
    for number in 0..5 {
        let step = context.handle(&Tensor::int64(number))?;
        let inputs = [&writer[0], &step, &tag, &value];
        context.execute("WriteScalarSummary", &inputs, &[], None, 0)?;
        context.execute("FlushSummaryWriter", &[&writer[0]], &[], None, 0)?;
        if place.is("visible_at_flush") {
            let found = events(place)?;
            let what = format!("the events, with that of the version, after flush {}", number + 1);
            same(what, found, number as usize + 2)?;
        }
    }
    context.execute("CloseSummaryWriter", &[&writer[0]], &[], None, 0)?;
    same("the events, with that of the version, at the end", events(place)?, 6)
}

fn events(place: &Files) -> Outcome<usize> {
    let found = place.glob(&["logs/events.out.tfevents.*"])?;
    same("the number of event files", found.len(), 1)?;
    Ok(place.records(&found[0])?.len())
}

// Sessions ------------------------------------------------------------------------------------------------------

pub(super) fn c_session_reads_and_writes(place: &Files) -> Outcome {
    let (one, two) = (payload(100_000, 1), payload(3, 2));
    place.write("one", &one)?;
    place.write("two", &two)?;
    let mut graph = place.tf.graph();
    let name =
        graph.add("Placeholder", &[], &[], &[("dtype", Attribute::Type(TF_STRING))], None)?;
    let name = Output(name, 0);
    let content = Output(graph.add("ReadFile", &[name], &[], &[], None)?, 0);
    let target = graph.constant(&Tensor::string(place.at("made/by/the/session")))?;
    let write = graph.add("WriteFile", &[target, content], &[], &[], None)?;
    let session = graph.session()?;
    for (file, wanted) in [("one", &one), ("two", &two)] {
        let feed = [(name, Tensor::string(place.at(file)))];
        let found = session.run(&feed, &[content], &[write])?;
        same_bytes("what ReadFile gives", &strings(found.into_iter().next()).concat(), wanted)?;
        place.has("what WriteFile wrote", "made/by/the/session", wanted)?;
    }
    let feed = [(name, Tensor::string(place.at("missing")))];
    let missing = session.run(&feed, &[content], &[]);
    fails("ReadFile of nothing in a session", NOT_FOUND, missing)?;
    let feed = [(name, Tensor::string(place.at("two")))];
    let found = session.run(&feed, &[content], &[])?;
    same_bytes("what comes after a failure", &strings(found.into_iter().next()).concat(), &two)?;
    Ok(session.close()?)
}

pub(super) fn c_session_matches_files(place: &Files) -> Outcome {
    for number in 0..20 {
        place.write(&format!("part-{number:02}"), payload(100, number))?;
    }
    let mut graph = place.tf.graph();
    let pattern = graph.constant(&Tensor::string(place.at("part-*")))?;
    let found = Output(graph.add("MatchingFiles", &[pattern], &[], &[], None)?, 0);
    let session = graph.session()?;
    let wanted: Vec<_> =
        (0..20).map(|number| place.at(&format!("part-{number:02}")).into_bytes()).collect();
    for _ in 0..2 {
        let names = strings(session.run(&[], &[found], &[])?.pop());
        same("MatchingFiles", names, wanted.clone())?;
    }
    Ok(session.close()?)
}

pub(super) fn c_session_with_a_reader(place: &Files) -> Outcome {
    let records: Vec<_> = (0..50).map(|seed| payload(200, seed)).collect();
    place.write_records("records", &records)?;
    let mut graph = place.tf.graph();
    let names = graph.constant(&Tensor::strings([place.at("records")]))?;
    let types = [("component_types", Attribute::Types(&[TF_STRING]))];
    let queue = Output(graph.add("FIFOQueueV2", &[], &[], &types, None)?, 0);
    let fill = graph.add("QueueEnqueueManyV2", &[queue, names], &[1], &[], None)?;
    let close = graph.add("QueueCloseV2", &[queue], &[], &[], None)?;
    let reader = Output(graph.add("TFRecordReaderV2", &[], &[], &[], None)?, 0);
    let read = graph.add("ReaderReadV2", &[reader, queue], &[], &[], None)?;
    let session = graph.session()?;
    session.run(&[], &[], &[fill])?;
    session.run(&[], &[], &[close])?;
    for (number, record) in records.iter().enumerate() {
        let found = session.run(&[], &[Output(read, 1)], &[])?;
        let found = strings(found.into_iter().next()).concat();
        same_bytes(format_args!("record {number}"), &found, record)?;
    }
    let end = session.run(&[], &[Output(read, 1)], &[]);
    fails("reading after the last record", &[Code::OutOfRange], end)?;
    Ok(session.close()?)
}

// Threads -------------------------------------------------------------------------------------------------------

pub(super) fn c_threads_read_one_file(place: &Files) -> Outcome {
    let content = payload(1 << 20, 6);
    place.write("file", &content)?;
    in_threads(8, |_| {
        for _ in 0..5 {
            place.has("in a thread", "file", &content)?;
        }
        Ok(())
    })
}

pub(super) fn c_threads_with_files_of_their_own(place: &Files) -> Outcome {
    in_threads(8, |thread| {
        let own = format!("file-{thread}");
        for step in 0..8 {
            let content = payload(1000 * step + thread, thread as u64);
            place.write(&own, &content)?;
            place.has("a file of one's own", &own, &content)?;
            let temporary = format!("temporary-{thread}");
            place.write_operation(&place.at(&temporary), &content)?;
            place.tf.delete_file(&place.at(&temporary))?;
            holds("one's own file is listed", place.list("")?.contains(&own))?;
        }
        Ok(())
    })?;
    let wanted: Vec<_> = (0..8).map(|thread| format!("file-{thread}")).collect();
    same("the files in the end", place.list("")?, wanted)
}

pub(super) fn c_threads_make_one_tree(place: &Files) -> Outcome {
    in_threads(8, |thread| {
        let path = place.at(&format!("a/b/c/of-{thread}"));
        Ok(place.write_operation(&path, b"content")?)
    })?;
    let wanted: Vec<_> = (0..8).map(|thread| format!("of-{thread}")).collect();
    same("the files in the end", place.list("a/b/c")?, wanted)
}

pub(super) fn c_threads_in_one_session(place: &Files) -> Outcome {
    for number in 0..8 {
        place.write(&format!("file-{number}"), payload(20_000, number))?;
    }
    let mut graph = place.tf.graph();
    let name =
        graph.add("Placeholder", &[], &[], &[("dtype", Attribute::Type(TF_STRING))], None)?;
    let content = Output(graph.add("ReadFile", &[Output(name, 0)], &[], &[], None)?, 0);
    let session = graph.session()?;
    in_threads(8, |thread| {
        let path = place.at(&format!("file-{thread}"));
        for _ in 0..10 {
            let feed = [(Output(name, 0), Tensor::string(&path))];
            let found = strings(session.run(&feed, &[content], &[])?.pop()).concat();
            same_bytes("what ReadFile gives in a thread", &found, &payload(20_000, thread as u64))?;
        }
        Ok(())
    })?;
    Ok(session.close()?)
}

// Provided files ------------------------------------------------------------------------------------------------

pub(super) fn c_provided_files(place: &Files) -> Outcome {
    let mut wrong = Vec::new();
    for sample in samples() {
        let path = format!("{}/{}", place.root, sample.path);
        let checked = match &sample.content {
            Some(content) => place.tf.stat(&path).map_err(Stop::from).and_then(|found| {
                let what = format!("length and kind of {path}");
                same(what, (found.length, found.is_directory), (content.len() as i64, false))?;
                same_bytes(format_args!("ReadFile of {path}"), &place.read_path(&path)?, content)
            }),
            None if !place.is("real") => Ok(()),
            None => place.tf.stat(&path).map_err(Stop::from).and_then(|found| {
                same(format_args!("is_directory of {path}"), found.is_directory, true)
            }),
        };
        wrong.push(checked);
    }
    let missing = format!("{}/there-is-no-such-file", place.root);
    wrong.push(fails("ReadFile of nothing", NOT_FOUND, place.read_path(&missing)));
    together(wrong)
}
