//! The smoke tests of filesystems in TensorFlow's C library; the list has each under the same name.
//!
//! They call each function of `env.h` and of the registration, and one operation of each kind. The
//! in-process cases and those in Python test a filesystem further, since they see more.

use crate::abi::tensorflow::{Context, Handle, TensorFlow};
use crate::filesystem::conformance::samples::samples;
use crate::tensor::Tensor;
use crate::tensorflow::worker::{
    Environment, Step, Stop, fails, holds, in_threads, path, payload, same, same_bytes, together,
};
use crate::threads::joined;
use serde_json::Value;
use std::process;
use std::thread;
use std::time::SystemTime;
use tf_fs_plugin::ResultExt as _;
use tf_fs_sys::TF_FLOAT;
use tf_plugin_core::{Code, Result};

const NOT_FOUND: &[Code] = &[Code::NotFound];
const PRECONDITION: &[Code] = &[Code::FailedPrecondition];
const EXISTS: &[Code] = &[Code::AlreadyExists];

/// The place of the cases: each works in a new directory below the root.
pub(super) struct Files {
    tf: &'static TensorFlow,
    context: Context<'static>,
    settings: Value,
    root: String,
    base: String,
    number: usize,
}

impl Environment for Files {
    fn new(tf: &'static TensorFlow, settings: &Value) -> std::result::Result<Self, String> {
        let library = path(settings, "library");
        match tf.register_filesystem(&library) {
            // A plugin that registers itself when it is loaded.
            Err(error) if error.code() == Code::AlreadyExists => {}
            Err(error) => return Err(format!("{} is refused: {error:#}", library.display())),
            Ok(()) => {}
        }
        let context = tf.context().map_err(|error| format!("there is no context: {error:#}"))?;
        let root = settings["root"].as_str().unwrap_or_default();
        let root = root.strip_suffix('/').unwrap_or(root).to_owned();
        // For an unknown scheme TensorFlow returns the same code as for a missing operation.
        if let Err(error) = tf.stat(&format!("{root}/"))
            && error.message().starts_with("File system scheme")
        {
            let problem = error.message();
            return Err(format!("{} does not register {root}: {problem}", library.display()));
        }
        let (settings, base) = (settings.clone(), String::new());
        Ok(Self { tf, context, settings, root, base, number: 0 })
    }

    fn begin(&mut self, case: &str) -> Step {
        self.number += 1;
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
        let unique = now ^ (u64::from(process::id()) << 40);
        self.base = format!("{}/{case}-{unique:x}-{}", self.root, self.number);
        if self.is("provided") {
            return Ok(());
        }
        match self.tf.create_dir(&self.base) {
            // Then names imply directories.
            Err(error) if error.code() == Code::Unimplemented => Ok(()),
            made => Ok(made.context("making the directory of the case")?),
        }
    }

    fn end(&mut self, outcome: &Step) {
        // A case that fails keeps its files, so that the cause can be found.
        if !self.is("provided") && !matches!(outcome, Err(Stop::Failed(_))) {
            let _ = self.tf.delete_recursively(&self.base);
        }
    }
}

impl Files {
    fn is(&self, setting: &str) -> bool {
        self.settings[setting] == true
    }

    /// Returns the codes for a path below a file and for the entries of a file: implied directories are not checked.
    fn below_file(&self) -> &'static [Code] {
        if self.is("real") { PRECONDITION } else { &[Code::FailedPrecondition, Code::NotFound] }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// Writes a file with the functions of `env.h`.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let mut file = self.tf.create(&self.at(name)).context("TF_NewWritableFile")?;
        let appended = file.append(content.as_ref()).context("TF_AppendWritableFile");
        let closed = file.close().context("TF_CloseWritableFile");
        appended.and(closed)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.read_path(&self.at(name))
    }

    fn read_path(&self, path: &str) -> Result<Vec<u8>> {
        Ok(self.context.strings("ReadFile", &[Tensor::string(path)]).context("ReadFile")?.concat())
    }

    /// Checks the content and the length of a file.
    fn has(&self, what: &str, name: &str, content: impl AsRef<[u8]>) -> Step {
        let (read, content) = (self.read(name)?, content.as_ref());
        same_bytes(format_args!("{what}: the content of {name}"), &read, content)?;
        let length = self.tf.stat(&self.at(name)).context("TF_FileStat")?.length;
        same(format_args!("{what}: the length of {name}"), length, content.len() as i64)
    }

    /// Checks the entries of a directory. Some filesystems mark directories with a slash at the end.
    fn lists(&self, what: &str, name: &str, wanted: &[&str]) -> Step {
        let path = if name.is_empty() { self.base.clone() } else { self.at(name) };
        let names = self.tf.children(&path).context("TF_GetChildren")?;
        let mut names: Vec<_> = names.iter().map(|name| name.trim_end_matches('/')).collect();
        names.sort_unstable();
        same(format_args!("{what}: the entries of the directory {name}"), &*names, wanted)
    }

    /// Saves a tensor under a prefix, or restores it.
    fn checkpoint(&self, operation: &str, prefix: &str, tensor: &Tensor) -> Result<Vec<Tensor>> {
        let mut inputs =
            vec![Tensor::string(self.at(prefix)), Tensor::strings(["x"]), Tensor::strings([""])];
        let saves = operation == "SaveV2";
        inputs.extend(saves.then(|| tensor.clone()));
        let inputs: Vec<_> =
            inputs.iter().map(|input| self.context.handle(input)).collect::<Result<_>>()?;
        let (inputs, types) = (inputs.iter().collect::<Vec<_>>(), [tensor.data_type]);
        let (types, outputs) = (Some(("dtypes", &types[..])), usize::from(!saves));
        let given = self.context.execute(operation, &inputs, types, None, outputs);
        given.context(operation)?.iter().map(Handle::tensor).collect()
    }
}

pub(super) fn c_registered_twice(place: &Files) -> Step {
    place.write("file", b"content")?;
    let library = path(&place.settings, "library");
    let again = |what| match place.tf.register_filesystem(&library) {
        Ok(()) => Ok(()),
        error => fails(what, EXISTS, error),
    };
    again("registering the plugin once more")?;
    in_threads(8, |_| again("registering the plugin in eight threads"))?;
    let nothing = place.tf.register_filesystem("no-such-plugin.so".as_ref());
    fails("registering a library that is not there", NOT_FOUND, nothing)?;
    let other = place.tf.register_filesystem("libm.so.6".as_ref());
    fails("registering a library that is not a plugin", NOT_FOUND, other)?;
    place.has("after that", "file", "content")
}

pub(super) fn c_write_and_read(place: &Files) -> Step {
    for size in [0, 1, 4_096, 65_537, 3_000_001] {
        let (name, content) = (format!("file-{size}"), payload(size, 7));
        place.write(&name, &content)?;
        place.has("ReadFile", &name, content)?;
    }
    place.write("file-4096", "shorter")?;
    place.has("a file that was written again", "file-4096", "shorter")
}

pub(super) fn c_flushed_is_read(place: &Files) -> Step {
    if !place.is("visible_at_flush") {
        return Err(Stop::Skip("files are declared to be visible at close".into()));
    }
    let mut file = place.tf.create(&place.at("file"))?;
    let mut wanted = Vec::new();
    for count in 1_u8..5 {
        file.append(&[count; 1000])?;
        wanted.extend([count; 1000]);
        let what = if count % 2 == 0 { "TF_FlushWritableFile" } else { "TF_SyncWritableFile" };
        if count % 2 == 0 { file.flush() } else { file.sync() }.context(what)?;
        place.has(&format!("after {what}"), "file", &wanted)?;
    }
    Ok(file.close()?)
}

pub(super) fn c_writer_moves_between_threads(place: &Files) -> Step {
    let mut file = place.tf.create(&place.at("file"))?;
    let mut wanted = Vec::new();
    for number in 0_u8..8 {
        let piece = vec![number; 5000];
        thread::scope(|scope| joined(scope.spawn(|| file.append(&piece))))?;
        wanted.extend(piece);
    }
    thread::scope(|scope| joined(scope.spawn(|| file.close())))?;
    place.has("of eight threads", "file", wanted)
}

pub(super) fn c_files_and_directories(place: &Files) -> Step {
    for directory in ["run", "run/a", "run/a/b", "run/empty", "run1"] {
        place.tf.create_dir(&place.at(directory)).context("TF_CreateDir")?;
    }
    for file in ["run/file", "run/a/.hidden", "run/a/b/file", "run1/file", "run2"] {
        place.write(file, file)?;
    }
    let found = place.tf.stat(&place.at("run/empty"))?.is_directory;
    same("is_directory of an empty directory", found, true)?;
    fails("TF_CreateDir once more", EXISTS, place.tf.create_dir(&place.at("run")))?;
    let full = place.tf.delete_dir(&place.at("run"));
    fails("TF_DeleteDir of a full directory", PRECONDITION, full)?;
    place.lists("as made", "run", &["a", "empty", "file"])?;
    place.lists("as made", "run/a", &[".hidden", "b"])?;
    place.lists("as made", "run/empty", &[])?;
    let found =
        place.context.strings("MatchingFiles", &[Tensor::string(place.at("run[^x]/f?l*"))])?;
    same("MatchingFiles", found, vec![place.at("run1/file").into_bytes()])?;
    place.tf.delete_dir(&place.at("run/empty")).context("TF_DeleteDir")?;
    place.tf.delete_file(&place.at("run/file")).context("TF_DeleteFile")?;
    place.lists("after TF_DeleteDir and TF_DeleteFile", "run", &["a"])?;
    let (removed, files, directories) = place.tf.delete_recursively(&place.at("run"));
    removed.context("TF_DeleteRecursively")?;
    same("what TF_DeleteRecursively leaves", (files, directories), (0, 0))?;
    place.lists("after TF_DeleteRecursively", "", &["run1", "run2"])?;
    place.has("beside what was deleted", "run1/file", "run1/file")?;
    fails("reading what was deleted", NOT_FOUND, place.read("run/a/b/file"))
}

pub(super) fn c_codes(place: &Files) -> Step {
    place.tf.create_dir(&place.at("full"))?;
    place.write("full/file", b"inner")?;
    place.write("file", b"content")?;
    let at = |name: &str| place.at(name);
    let stat = |name: &str| place.tf.stat(&at(name)).map(drop);
    let (left, files, directories) = place.tf.delete_recursively(&at("missing"));
    together([
        fails("TF_FileStat of nothing", NOT_FOUND, stat("missing")),
        fails("TF_FileStat below a file", place.below_file(), stat("file/below")),
        fails("ReadFile of nothing", NOT_FOUND, place.read("missing")),
        fails("ReadFile of a directory", PRECONDITION, place.read("full")),
        fails("TF_DeleteFile of nothing", NOT_FOUND, place.tf.delete_file(&at("missing"))),
        fails("TF_DeleteFile of a directory", PRECONDITION, place.tf.delete_file(&at("full"))),
        fails("TF_DeleteDir of nothing", NOT_FOUND, place.tf.delete_dir(&at("missing"))),
        fails("TF_DeleteDir of a file", PRECONDITION, place.tf.delete_dir(&at("file"))),
        fails("TF_GetChildren of a file", place.below_file(), place.tf.children(&at("file"))),
        fails("TF_DeleteRecursively of nothing", NOT_FOUND, left),
        same("what it says is left of nothing", (files, directories), (0, 1)),
    ])?;
    if place.is("real") {
        let onto = |what, codes, name| fails(what, codes, place.write(name, b"x"));
        let made = |what, codes, name| fails(what, codes, place.tf.create_dir(&at(name)));
        together([
            onto("TF_NewWritableFile of a directory", PRECONDITION, "full"),
            onto("TF_NewWritableFile below nothing", NOT_FOUND, "missing/file"),
            onto("TF_NewWritableFile below a file", PRECONDITION, "file/below"),
            made("TF_CreateDir below nothing", NOT_FOUND, "missing/new"),
            made("TF_CreateDir of a file", EXISTS, "file"),
            made("TF_CreateDir below a file", PRECONDITION, "file/new"),
            fails("TF_GetChildren of nothing", NOT_FOUND, place.tf.children(&at("missing"))),
        ])?;
    }
    place.lists("afterwards", "", &["file", "full"])?;
    place.has("afterwards", "file", "content")?;
    place.has("afterwards", "full/file", "inner")
}

pub(super) fn c_save_and_restore(place: &Files) -> Step {
    for seed in [1, 2] {
        let tensor = Tensor::bytes(TF_FLOAT, &[256, 1024], payload(1 << 20, seed));
        place.checkpoint("SaveV2", "model", &tensor)?;
        place.lists("after SaveV2", "", &["model.data-00000-of-00001", "model.index"])?;
        let restored = place.checkpoint("RestoreV2", "model", &tensor)?;
        holds("RestoreV2 gives what was saved", restored == [tensor])?;
    }
    let nothing = place.checkpoint("RestoreV2", "missing", &Tensor::int64(0));
    fails("RestoreV2 of nothing", NOT_FOUND, nothing)
}

pub(super) fn c_provided_files(place: &Files) -> Step {
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
