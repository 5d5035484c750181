//! What `check` has found out about a plugin, and what is to be said about it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::TensorFlow;
use crate::artefact::{Artefact, Note, NoteOf, Panic, demangled, is_tensorflow_library, numbers};
use crate::explain::explain;
use crate::layouts;
use crate::probe::{End, Event, Kernel, Platform, Probe, Run, Scheme, Table};
use crate::tables::{self, Missing, Need};

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// TensorFlow would not load the plugin, or would be ended by it.
    Error,
    /// It fails for some users or in some releases, or it surprises.
    Warning,
    /// Good to know.
    Note,
}

/// Something to be said about a plugin.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) what: String,
    pub(crate) fix: String,
}

/// Whose an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    Yours,
    SdkDefault,
    /// Filled in by the SDK always; whether the author has written it is not known.
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
    /// What happens, where that is not the plugin's.
    pub(crate) effect: String,
}

/// Schemes with the same tables.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Filesystem {
    pub(crate) schemes: Vec<String>,
    pub(crate) tables: Vec<TableReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TableReport {
    pub(crate) name: String,
    pub(crate) present: bool,
    pub(crate) abi: i64,
    pub(crate) api: i64,
    pub(crate) size: u64,
    /// The size for TensorFlow 2.22, where the plugin requests the release and gives another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size_in_2_22: Option<u64>,
    pub(crate) operations: Vec<Operation>,
}

/// A device.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Device {
    pub(crate) platform: Platform,
    /// The structs of functions: the platform's, then what its functions fill in.
    pub(crate) tables: Vec<Table>,
    pub(crate) devices: Option<i64>,
    pub(crate) graph_pass_for: Option<String>,
    pub(crate) profiler_for: Option<String>,
}

/// What a TensorFlow release lacks that the plugin needs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Release {
    pub(crate) version: String,
    pub(crate) missing: Vec<String>,
}

impl Release {
    /// Whether a plugin sees TensorFlow's functions only if it names TensorFlow's libraries as needed.
    pub(crate) fn hides_functions(&self) -> bool {
        hides_functions(&numbers(&self.version))
    }
}

/// Seen with `tf.load_library` of a plugin that names no library: 2.19 to 2.21 alone resolve its imports.
fn hides_functions(version: &[u32]) -> bool {
    version < [2, 19].as_slice() || version >= [2, 22].as_slice()
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) artefact: Artefact,
    pub(crate) filesystems: Vec<Filesystem>,
    pub(crate) device: Option<Device>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) ops: Vec<String>,
    /// Whether a filesystem registers itself on `import tensorflow`.
    pub(crate) registers_on_import: bool,
    pub(crate) tensorflow: Vec<Release>,
    /// The release whose libraries the plugin was loaded with, for one that needs them.
    pub(crate) loaded_with: Option<String>,
    pub(crate) end: End,
    pub(crate) output: Vec<String>,
    /// The variables of the environment that the plugin's code did not see, by name.
    pub(crate) withheld: Vec<String>,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    /// Looks at a plugin from the outside, and loads it in a process of its own for no longer than `limit`; without one
    /// nothing of it runs.
    /// The `releases` are requested if there is something to look for in them.
    pub(crate) fn of(
        path: &Path,
        releases: impl FnOnce() -> Vec<TensorFlow>,
        limit: Option<Duration>,
    ) -> Result<Self> {
        let artefact = Artefact::read(path)?;
        let mut tensorflow = Vec::new();
        let mut library_dir = None;
        if !artefact.c_imports.is_empty() || !artefact.cpp_imports.is_empty() {
            for release in releases() {
                let missing = artefact.missing_in(&release)?;
                let version = release.version().to_owned();
                if missing.is_empty() {
                    library_dir = Some((release.library_dir().to_owned(), version.clone()));
                }
                tensorflow.push(Release { version, missing });
            }
        }
        // Its own functions are enough for a plugin that uses no more than the C interface.
        let library_dir = library_dir.filter(|_| artefact.needs_tensorflow());
        let Some(limit) = limit else {
            return Ok(Self::new(artefact, Run::none(), tensorflow, None));
        };
        let mut probe = Probe::new(limit)?;
        probe.library_dir = library_dir.as_ref().map(|(directory, _)| directory.clone());
        let path = std::path::absolute(path)?;
        let run = probe.run(&path)?;
        let loaded_with = library_dir.map(|(_, version)| version);
        Ok(Self::new(artefact, run, tensorflow, loaded_with))
    }

    fn new(
        artefact: Artefact,
        run: Run,
        tensorflow: Vec<Release>,
        loaded_with: Option<String>,
    ) -> Self {
        let mut report = Self {
            filesystems: Vec::new(),
            device: None,
            kernels: Vec::new(),
            ops: Vec::new(),
            registers_on_import: false,
            tensorflow,
            loaded_with,
            end: run.end.clone(),
            output: run.output.clone(),
            withheld: run.withheld.clone(),
            findings: Vec::new(),
            artefact,
        };
        report.look_at_file();
        let schemes = report.follow(&run);
        let newer: Vec<_> = run.events.iter().filter_map(Event::newer).cloned().collect();
        report.describe(&schemes, &newer);
        report.look_at_end(&run);
        report.findings.sort_by_key(|finding| finding.severity);
        report
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    fn add(&mut self, severity: Severity, what: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding { severity, what: what.into(), fix: fix.into() });
    }

    fn error(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Severity::Error, what, fix);
    }

    fn warn(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Severity::Warning, what, fix);
    }

    /// What can be said without running it.
    fn look_at_file(&mut self) {
        let artefact = self.artefact.clone();
        if artefact.entry_points.is_empty() {
            self.error(
                "exports none of the functions that TensorFlow looks for, so it is not a plugin",
                "export `TF_InitPlugin` (a filesystem) or `SE_InitPlugin` (a device); in Rust, the macros \
                 `#[filesystem_plugin]` and `#[device_plugin]` do",
            );
        }
        for name in ["TFNPD_InitPlugin", "GetPjrtApi"] {
            if artefact.entry_points.contains(&name) {
                self.add(
                    Severity::Note,
                    format!("exports `{name}`, an interface that this command does not look at"),
                    "try it in TensorFlow",
                );
            }
        }
        let count = artefact.other_exports.len();
        if count > 0 {
            self.add(
                Severity::Note,
                format!(
                    "exports {count} other {}, such as {}",
                    if count == 1 { "name" } else { "names" },
                    demangled(&artefact.other_exports[0])
                ),
                "harmless in TensorFlow, which keeps each plugin's names apart; `-fvisibility=hidden` hides them",
            );
        }
        let complete = self.tensorflow.iter().filter(|release| release.missing.is_empty());
        let complete: Vec<String> = complete.map(|release| release.version.clone()).collect();
        for release in self.tensorflow.clone() {
            if let [first, rest @ ..] = release.missing.as_slice() {
                let more = match rest.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let fix = match complete.as_slice() {
                    [] => "use only the C interface".to_owned(),
                    [one] => {
                        format!("use only the C interface, or TensorFlow {one}, which has them all")
                    }
                    releases => format!(
                        "use only the C interface, or TensorFlow {}, which have them all",
                        releases.join(", ")
                    ),
                };
                self.error(
                    format!(
                        "cannot be loaded by TensorFlow {}: it lacks {}{more}",
                        release.version,
                        demangled(first),
                    ),
                    fix,
                );
            }
        }
        if !artefact.cpp_imports.is_empty() {
            let count = artefact.cpp_imports.len();
            self.warn(
                format!(
                    "uses {count} C++ functions of TensorFlow's, which differ from release to release"
                ),
                "use only the C interface: then one file works in all releases",
            );
        }
        if artefact.needs_tensorflow() {
            let names: Vec<&str> = artefact
                .needed
                .iter()
                .map(String::as_str)
                .filter(|name| is_tensorflow_library(name))
                .collect();
            self.warn(
                format!("needs {}, so no tool that repairs wheels can fix it", names.join(", ")),
                "look up TensorFlow's functions at run time with `dlsym`, and do not link against it",
            );
        } else if let Some(first) = artefact.c_imports.first() {
            let count = artefact.c_imports.len();
            let what = format!(
                "imports {count} of TensorFlow's C functions, such as {first}, and names no library for them: \
                 TensorFlow 2.12 to 2.18, and 2.22, show none to plugins (`undefined symbol`)"
            );
            // Whoever names releases wants to know about these.
            let hidden = self.tensorflow.iter().any(|release| release.hides_functions());
            let severity = if hidden { Severity::Error } else { Severity::Warning };
            self.add(
                severity,
                what,
                "look them up at run time with `dlsym`: in `libtensorflow_framework.so.2` opened with RTLD_NOLOAD, then \
                 with RTLD_DEFAULT",
            );
        }
        if artefact.executable_stack {
            self.warn(
                "requests an executable stack, which newer systems refuse to a library",
                "link it with `-z noexecstack`",
            );
        }
        if artefact.text_relocations {
            self.warn(
                "has text relocations, which hardened systems refuse",
                "compile all of it with `-fPIC`",
            );
        }
        if artefact.notes.iter().any(|note| note.panic == Panic::Abort) {
            self.warn(
                "is built with `panic = \"abort\"`: a panic ends the Python process",
                "remove `panic = \"abort\"` from the profile in Cargo.toml; panics then become errors",
            );
        }
    }

    /// Goes through what has happened; the schemes that TensorFlow would have taken or refused.
    fn follow(&mut self, run: &Run) -> Vec<Scheme> {
        let mut schemes = Vec::new();
        for event in &run.events {
            match event.clone() {
                Event::Step(_) | Event::Newer(_) | Event::Initialized(_) | Event::Done => {}
                Event::Refused(reason) => self.refused(&reason),
                Event::Error { function, code, message } => self.failed(&function, &code, &message),
                Event::Offer { schemes, allocate, free } => {
                    for (hook, there) in
                        [("plugin_memory_allocate", allocate), ("plugin_memory_free", free)]
                    {
                        if !there {
                            self.error(
                                format!("is refused by TensorFlow: Cannot load filesystem plugin which does not provide `{hook}`"),
                                "set both memory hooks in `TF_InitPlugin`",
                            );
                            break;
                        }
                    }
                    if schemes == 0 && allocate && free {
                        self.warn(
                            "`TF_InitPlugin` offers no scheme",
                            "set `num_schemes` and `ops`",
                        );
                    }
                }
                Event::Scheme(scheme) => {
                    self.look_at_scheme(&scheme);
                    schemes.push(scheme);
                }
                Event::Platform(platform) => self.look_at_platform(platform),
                Event::Functions(table) => self.look_at_functions(table),
                Event::Devices(devices) => {
                    if let Some(device) = &mut self.device {
                        device.devices = Some(devices);
                    }
                }
                Event::Kernel(kernel) => self.kernels.push(kernel),
                Event::Op(op) => self.ops.push(op),
                Event::Optimizer { device_type, functions } => {
                    self.look_at_type("TF_InitGraph", device_type.as_deref());
                    self.look_at_functions(functions);
                    if let Some(device) = &mut self.device {
                        device.graph_pass_for = device_type;
                    }
                }
                Event::Profiler { device_type, functions, destroy } => {
                    self.look_at_type("TF_InitProfiler", device_type.as_deref());
                    self.look_at_functions(functions);
                    self.look_at_destroy(
                        "TF_ProfilerRegistrationParams",
                        [("destroy_profiler", destroy[0]), ("destroy_profiler_fns", destroy[1])],
                    );
                    if let Some(device) = &mut self.device {
                        device.profiler_for = device_type;
                    }
                }
                Event::Registers(_) => self.registers_on_import = true,
                Event::Unavailable(function) => self.add(
                    Severity::Note,
                    format!("calls {function} while it is loaded ({}), for which it takes a running TensorFlow: the rest was not looked at", run.last_step),
                    "try it in TensorFlow",
                ),
                Event::Overrun { function, record } => self.error(
                    format!("`{function}` writes behind the end of {record}, into memory of TensorFlow's"),
                    format!("write no more than the `struct_size` that is found in {record}"),
                ),
            }
        }
        schemes
    }

    fn refused(&mut self, reason: &str) {
        // Known already, and said by release.
        let of_tensorflow =
            reason.contains("libtensorflow_") || reason.contains("undefined symbol: _Z");
        if of_tensorflow && self.tensorflow.iter().any(|release| !release.missing.is_empty()) {
            return;
        }
        if of_tensorflow && self.tensorflow.is_empty() {
            self.add(
                Severity::Note,
                "was not loaded: it takes TensorFlow's libraries",
                "name a TensorFlow with `--tf VERSION`, and what is missing in it is listed",
            );
            return;
        }
        let known = explain(reason);
        let cause = known.map_or_else(String::new, |known| format!(" {}", known.cause));
        self.error(
            format!("cannot be loaded: {reason}.{cause}"),
            known.map_or("install what is missing, or build the plugin again", |known| known.fix),
        );
    }

    fn failed(&mut self, function: &str, code: &str, message: &str) {
        let said = format!("`{function}` returns {code}: {message}");
        if function.starts_with("init of") {
            self.error(
                format!("{said}; TensorFlow raises that and does not register the scheme"),
                "do nothing in `init` (in Rust: `new`) that can fail, such as reaching a server: do it on first use",
            );
        } else if function == "get_device_count" {
            self.warn(
                format!("{said}; TensorFlow logs that and treats it as 0 devices"),
                "return OK with 0",
            );
        } else {
            self.error(
                format!("{said}; TensorFlow aborts the process, also in `import tensorflow`"),
                "return OK, and let `get_device_count` return 0 if the device cannot be used",
            );
        }
    }

    fn look_at_scheme(&mut self, scheme: &Scheme) {
        if let Some(refusal) = tables::refusal(scheme) {
            let fix = if refusal.contains("`nullptr`") {
                "set `scheme` to a string of the plugin's allocator".to_owned()
            } else if refusal.contains("ABI") {
                "set the version numbers with `TF_SetFilesystemVersionMetadata`".to_owned()
            } else if refusal.contains("allows creation") {
                "give the table of the files' operations, or leave the operation out that opens them".to_owned()
            } else {
                "fill it in".to_owned()
            };
            self.error(format!("is refused by TensorFlow: {refusal}"), fix);
        }
        let name = scheme.scheme.clone().unwrap_or_default();
        if ["", "file", "ram", "gs"].contains(&name.as_str()) && scheme.scheme.is_some() {
            self.error(
                format!("registers the scheme \"{name}\", which is TensorFlow's own: File system for {name} already registered"),
                "take another scheme",
            );
        } else if !is_scheme(&name) && scheme.scheme.is_some() {
            self.error(
                format!("registers the scheme \"{name}\", which TensorFlow never finds: {name}:// is a local path to it"),
                "take letters, digits and `.`, with a letter first, and leave `://` out",
            );
        }
    }

    /// What is the same for all `names`, whose tables are those of `scheme`.
    fn look_at_tables(&mut self, scheme: &Scheme, names: &[String]) {
        let name = match names {
            [one] => format!("{one}://"),
            [one, others @ ..] => format!("{one}:// (as {}://)", others.join("://, ")),
            [] => return,
        };
        for table in scheme.tables.iter().filter(|table| table.present) {
            let full = 8 * table.slots.len() as u64;
            if table.size < full && table.abi == Some(0) {
                let demanded = ["cleanup", "init"];
                let cut = table.slots.iter().skip((table.size / 8) as usize);
                let cut = cut.map(|slot| slot.name.as_str()).collect::<Vec<_>>();
                let text = format!(
                    "says that {} has {} bytes, and the operations from {} on are cut off",
                    table.name, table.size, cut[0]
                );
                let fix =
                    format!("set the size to {full}, or use `TF_SetFilesystemVersionMetadata`");
                if cut.iter().any(|cut| demanded.contains(cut)) {
                    self.error(format!("{text}; TensorFlow calls a null pointer"), fix);
                } else {
                    self.warn(text, fix);
                }
            }
            if let Some(api) = table.api.filter(|api| *api != 0) {
                self.add(
                    Severity::Note,
                    format!("says API {api} for {}; TensorFlow logs that and goes on", table.name),
                    "set the version numbers with `TF_SetFilesystemVersionMetadata`",
                );
            }
        }
        self.look_at_places(&scheme.tables);
        let [filesystem, reader, writer, _] = scheme.tables.as_slice() else { return };
        if tables::refusal(scheme).is_some() {
            return;
        }
        for (table, operation, why) in [
            (reader, "read", "no file can be read"),
            (writer, "append", "nothing can be written"),
            (writer, "close", "no file that is written can be closed"),
        ] {
            if table.present && !table.has(operation) {
                self.warn(
                    format!("{name} has no `{operation}` in {}: {why} (UNIMPLEMENTED)", table.name),
                    "fill it in",
                );
            }
        }
        if !filesystem.has("translate_name") {
            self.warn(
                format!(
                    "{name} has no `translate_name`: TensorFlow's default takes scheme and host away, and the same path of \
                     two hosts is one file"
                ),
                "implement it, and keep the whole URI",
            );
        }
        if !filesystem.has("stat") && !filesystem.has("path_exists") {
            self.warn(
                format!("{name} has neither `stat` nor `path_exists`: most of TensorFlow's file functions fail"),
                "implement `stat`",
            );
        }
        if !filesystem.has("recursively_create_dir") && filesystem.has("create_dir") {
            self.warn(
                format!(
                    "{name} has no `recursively_create_dir`: TensorFlow's default never ends if the root is \
                     reported as NOT_FOUND"
                ),
                "implement it, or let `stat` return that the root is a directory",
            );
        }
        if !filesystem.has("copy_file") && filesystem.has("new_writable_file") {
            self.add(
                Severity::Note,
                format!(
                    "{name} has no `copy_file`: TensorFlow reads and appends 128 KiB at a time, and never ends if \
                     `read` returns OK with 0 bytes at the end of a file"
                ),
                "implement it, and return OUT_OF_RANGE at the end of a file",
            );
        }
    }

    /// Functions that are not the plugin's.
    fn look_at_places(&mut self, tables: &[Table]) {
        for table in tables {
            for slot in &table.slots {
                match slot.elsewhere.as_deref() {
                    Some("no library") => self.error(
                        format!(
                            "`{}` in {} points to no function of any library",
                            slot.name, table.name
                        ),
                        "initialize the table with zeros before it is filled in",
                    ),
                    Some(library) => self.add(
                        Severity::Note,
                        format!("`{}` in {} is a function of {library}", slot.name, table.name),
                        "fine, if that is meant",
                    ),
                    None => {}
                }
            }
        }
    }

    fn look_at_platform(&mut self, platform: Platform) {
        let abort = "TensorFlow aborts the process";
        for (what, text) in [("name", &platform.name), ("type", &platform.device_type)] {
            match text.as_deref() {
                None => self.error(
                    format!("'{what}' field in SP_Platform must be set; {abort}"),
                    "set it to a static string",
                ),
                Some(text) if !is_identifier(text) => self.error(
                    format!("Device name/type '{text}' must match [A-Z][A-Z_]*; {abort}"),
                    "take capital letters and `_` alone",
                ),
                Some(_) => {}
            }
        }
        match platform.device_type.as_deref() {
            Some(of @ ("CPU" | "DEFAULT")) => self.error(
                format!("the device type {of} is TensorFlow's own"),
                "take a type of its own, such as MY_DEVICE",
            ),
            Some("GPU") => self.warn(
                "the device type GPU is taken in TensorFlow for CUDA: there every op fails with `Multiple OpKernel \
                 registrations match`",
                "take a type of its own, such as MY_GPU",
            ),
            _ => {}
        }
        if platform.name.as_deref() == Some("HOST") {
            self.error(
                "the platform name HOST is taken in every TensorFlow",
                "take a name of its own",
            );
        } else if platform.name.as_deref() == Some("CUDA") {
            self.warn(
                "the platform name CUDA is taken in TensorFlow for CUDA",
                "take a name of its own",
            );
        }
        self.look_at_size("SP_Platform", platform.size);
        self.look_at_destroy(
            "SE_PlatformRegistrationParams",
            [
                ("destroy_platform", platform.destroy[0]),
                ("destroy_platform_fns", platform.destroy[1]),
            ],
        );
        let functions = platform.functions.clone();
        self.device = Some(Device {
            platform,
            tables: Vec::new(),
            devices: None,
            graph_pass_for: None,
            profiler_for: None,
        });
        self.look_at_functions(functions);
    }

    fn look_at_destroy(&mut self, record: &str, functions: [(&str, bool); 2]) {
        for (function, there) in functions {
            if !there {
                self.error(
                    format!(
                        "'{function}' field in {record} must be set; TensorFlow aborts the process"
                    ),
                    "set it, to a function that does nothing if there is nothing to do",
                );
            }
        }
    }

    fn look_at_type(&mut self, function: &str, device_type: Option<&str>) {
        if device_type.is_none_or(|device_type| !is_identifier(device_type)) {
            self.error(
                format!(
                    "`{function}` names the device type {}; TensorFlow aborts the process",
                    device_type.map_or_else(|| "null".to_owned(), |name| format!("'{name}'"))
                ),
                "name the type that `SE_InitPlugin` names",
            );
        }
    }

    /// TensorFlow looks whether `struct_size` was set, and no closer.
    fn look_at_size(&mut self, record: &str, size: u64) {
        if size != 0 {
            return;
        }
        // `SP_PlatformFns` has SP_PLATFORM_FNS_STRUCT_SIZE.
        let mut constant = String::new();
        for (at, letter) in record.char_indices() {
            let inner = at > 0 && letter.is_ascii_uppercase();
            if inner && record[..at].ends_with(|before: char| before.is_ascii_lowercase()) {
                constant.push('_');
            }
            constant.push(letter.to_ascii_uppercase());
        }
        constant.push_str("_STRUCT_SIZE");
        let what = if record.starts_with("TP_Optimizer") {
            format!("struct_size field in {record} must be set to {constant}")
        } else {
            format!(
                "Expected initialized `{record}` structure with `struct_size` field set to {constant}. Found \
                 `struct_size` = 0"
            )
        };
        self.error(format!("{what}; TensorFlow aborts the process"), "set it");
    }

    fn look_at_functions(&mut self, table: Table) {
        self.look_at_size(&table.name, table.size);
        for slot in table.slots.iter().filter(|slot| !slot.filled) {
            let field = format!("'{}' field in {}", slot.name, table.name);
            match tables::need(&table.name, &slot.name) {
                Need::Always => self.error(
                    format!("{field} must be set; TensorFlow aborts the process"),
                    "fill it in, with a function that fails if there is nothing better",
                ),
                Need::UpTo213 => self.warn(
                    format!("{field} must be set for TensorFlow 2.12 and 2.13, which abort the process; newer ones do not use it"),
                    "fill it in, or name 2.14 as the oldest release",
                ),
                Need::Unchecked(effect) => self.error(
                    format!("{field} is null, and TensorFlow calls it without looking: {effect}"),
                    "fill it in, with a function that fails if there is nothing better",
                ),
                Need::Optional(_) => {}
            }
        }
        let unified = self.device.as_ref().is_some_and(|device| device.platform.unified_memory);
        if unified && table.name == "SP_StreamExecutor" {
            for name in ["unified_memory_allocate", "unified_memory_deallocate"] {
                if !table.has(name) {
                    self.error(
                        format!("'{name}' field in SP_StreamExecutor must be set, as `supports_unified_memory` is; TensorFlow aborts the process"),
                        "set `supports_unified_memory` to 0: nothing uses it",
                    );
                }
            }
        }
        self.look_at_places(std::slice::from_ref(&table));
        if let Some(device) = &mut self.device {
            device.tables.push(table);
        }
    }

    fn look_at_end(&mut self, run: &Run) {
        let step = &run.last_step;
        let fix = "run it in a debugger: the plugin's own output is below, if it has any";
        match &run.end {
            End::Done | End::Refused | End::Unavailable | End::NotRun => {}
            End::Killed(signal) => self.error(
                format!("ends the process with {signal} in {step}: so it does with TensorFlow"),
                fix,
            ),
            End::Exited(code) => self.error(
                format!("ends the process with status {code} in {step}: so it does with TensorFlow"),
                "do not call `exit`; report an error by the status",
            ),
            End::Flooded(bytes) => self.error(
                format!("has written {} MiB to its output in {step}, and was ended", bytes >> 20),
                "let it say less",
            ),
            End::Hung(seconds) => self.error(
                format!("has not come back from {step} within {seconds} s: TensorFlow waits forever"),
                "do nothing there that waits, such as reaching a server; a longer limit is `--timeout SECONDS`",
            ),
        }
    }

    /// What is known of the operations that the author of a scheme has written.
    fn authors(&self, note: &Note) -> Authors {
        let filesystems = self.artefact.notes.iter().filter(|note| note.of == NoteOf::Filesystem);
        let several = filesystems.count() > 1;
        let defaults = self.artefact.writer_defaults;
        Authors {
            provided: note.provided,
            // Which of several types has them the notes do not say.
            defaults: (note.has_defaults && (!several || defaults == 0)).then_some(defaults),
        }
    }

    /// The operations of each scheme, schemes that are alike together.
    fn describe(&mut self, schemes: &[Scheme], newer: &[Scheme]) {
        let mut kinds: BTreeMap<usize, Filesystem> = BTreeMap::new();
        for scheme in schemes {
            let name = scheme.scheme.clone().unwrap_or_else(|| "(null)".to_owned());
            let note = self.artefact.notes.iter().find(|note| {
                note.of == NoteOf::Filesystem && Some(&note.text) == scheme.scheme.as_ref()
            });
            let authors = note.map(|note| self.authors(note));
            let mut tables: Vec<_> =
                scheme.tables.iter().map(|table| describe_table(table, authors)).collect();
            if let Some(table) = tables.first_mut() {
                let size = layouts::newer_size(scheme, newer);
                table.size_in_2_22 = size.filter(|size| *size != table.size);
            }
            match kinds.values_mut().find(|filesystem| filesystem.tables == tables) {
                Some(filesystem) => filesystem.schemes.push(name),
                None => {
                    kinds.insert(scheme.index, Filesystem { schemes: vec![name], tables });
                }
            }
        }
        for (index, filesystem) in &kinds {
            if let Some(scheme) = schemes.iter().find(|scheme| scheme.index == *index) {
                self.look_at_tables(scheme, &filesystem.schemes);
                self.findings.extend(layouts::finding(scheme, newer));
            }
        }
        self.filesystems = kinds.into_values().collect();
    }
}

/// Which operations of a plugin of this SDK are the author's.
#[derive(Clone, Copy, Debug)]
struct Authors {
    /// A bit for each slot of `TF_FilesystemOps`.
    provided: u64,
    /// The operations of writers that are the SDK's defaults, where that is known.
    defaults: Option<u32>,
}

fn describe_table(table: &Table, authors: Option<Authors>) -> TableReport {
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

/// Whose a function is that is there, in a plugin of this SDK.
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

/// Whose an operation of writers is, which the SDK fills in always; `effect` is what its default does.
fn by_author(authors: Authors, bit: u32, effect: &'static str) -> (By, &'static str) {
    match authors.defaults {
        None => (By::YoursOrSdk, ""),
        Some(defaults) if defaults & bit != 0 => (By::SdkDefault, effect),
        Some(_) => (By::Yours, ""),
    }
}

/// Whether TensorFlow reaches it: what begins with one letter and `://` is a local path.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '.')
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_uppercase())
        && text.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_hidden_before_2_19_and_since_2_22() {
        for (version, hidden) in [
            ("2.12.1", true),
            ("2.18.1", true),
            ("2.19.0", false),
            ("2.21.0", false),
            ("2.22.0rc0", true),
        ] {
            assert_eq!(hides_functions(&numbers(version)), hidden, "{version}");
        }
    }
}
