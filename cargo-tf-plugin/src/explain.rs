//! Error texts of TensorFlow and of the dynamic linker about plugins, with their cause and what to do.

use serde::Serialize;

/// A known failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Known {
    /// What the text contains; all of them.
    #[serde(skip)]
    parts: &'static [&'static str],
    pub(crate) cause: &'static str,
    pub(crate) fix: &'static str,
}

/// The first one that fits counts: the more special before the more general.
const KNOWN: &[Known] = &[
    Known {
        parts: &["undefined symbol: TF_InitPlugin"],
        cause: "The file exports no `TF_InitPlugin`, so it is not a filesystem plugin.",
        fix: "Name another file; a device is loaded by `tensorflow-plugins` or TF_PLUGGABLE_DEVICE_LIBRARY_PATH.",
    },
    Known {
        parts: &["undefined symbol: TF_Log"],
        cause: "The plugin imports `TF_Log`, which TensorFlow 2.21 does not have any more.",
        fix: "Rebuild it without, or use TensorFlow 2.20 or older.",
    },
    Known {
        parts: &["undefined symbol: TF_"],
        cause: "The plugin imports a function of TensorFlow's. TensorFlow up to 2.18, and 2.22, hides its functions from \
                plugins; 2.19 to 2.21 have lost 14 functions about variables.",
        fix: "Look the functions up at run time (`dlsym`), as plugins of this SDK do.",
    },
    Known {
        parts: &["undefined symbol: _Z"],
        cause: "The plugin uses C++ functions of the TensorFlow that it was built with, and this one does not have them: \
                only the C interface stays the same.",
        fix: "Use the TensorFlow release that the plugin was built for, or a plugin that uses only the C interface; \
              `cargo tf-plugin check FILE --tf VERSION` lists what is missing.",
    },
    Known {
        parts: &["version `GLIBC_", "not found"],
        cause: "The plugin was built on a newer Linux than this one.",
        fix: "Build it on an older one, such as a manylinux container; `cargo tf-plugin check` shows the oldest glibc that works.",
    },
    Known {
        parts: &["version `GLIBCXX_", "not found"],
        cause: "The plugin needs a newer C++ library than this system, or this Python's environment, has.",
        fix: "Build it with an older compiler, link it with `-static-libstdc++`, or update libstdc++.",
    },
    Known {
        parts: &["libtensorflow", "cannot open shared object file"],
        cause: "The plugin names TensorFlow's library as needed, and the dynamic linker finds none: TensorFlow is not \
                loaded, or another major version is.",
        fix: "Import tensorflow first; a plugin that looks its functions up at run time needs no library by name.",
    },
    Known {
        parts: &["cannot open shared object file"],
        cause: "A library that the plugin needs is not on this system, or the plugin's path is a name without `/`, which \
                the dynamic linker searches like a library.",
        fix: "Install the library; write `./libx.so` for a file in the current directory.",
    },
    Known {
        parts: &["cannot enable executable stack"],
        cause: "The plugin requests an executable stack, which the system refuses.",
        fix: "Link it with `-z noexecstack`.",
    },
    Known {
        parts: &["cannot allocate memory in static TLS block"],
        cause: "The plugin, or a library in it, has thread-local data that must be allocated when the process starts.",
        fix: "Rebuild it with `-ftls-model=global-dynamic`, or preload it with LD_PRELOAD.",
    },
    Known {
        parts: &["invalid ELF header"],
        cause: "The file is not a shared library for Linux.",
        fix: "Remove it from `tensorflow-plugins`, or rebuild it for this system.",
    },
    Known {
        parts: &["file too short"],
        cause: "The file is empty or cut off, as after an interrupted copy.",
        fix: "Install the plugin again.",
    },
    Known {
        parts: &["wrong ELF class"],
        cause: "The file is for another kind of machine.",
        fix: "Rebuild it for this one.",
    },
    Known {
        parts: &["File system for", "already registered"],
        cause: "Another plugin serves this scheme: the first one wins. Or one plugin was registered twice, as two files.",
        fix: "Remove one of the two; `cargo tf-plugin doctor` lists the plugin of each scheme.",
    },
    Known {
        parts: &["platform is already registered with name"],
        cause: "Two plugins, or two copies of one, have the same platform name; or TensorFlow has loaded one plugin twice, \
                as in an environment whose `lib64` is a link to `lib`.",
        fix: "Keep one copy; `cargo tf-plugin doctor` lists them. Plugins built with this SDK can be loaded twice.",
    },
    Known {
        parts: &["Duplicate registration of device factory"],
        cause: "Two plugins have the same device type.",
        fix: "Keep one of them; `cargo tf-plugin doctor` lists them.",
    },
    Known {
        parts: &["PluginGraphOptimizer with device_type", "registered twice"],
        cause: "Two plugins have a graph pass for the same device type, or one was loaded twice.",
        fix: "Keep one of them; `cargo tf-plugin doctor` lists them.",
    },
    Known {
        parts: &["Multiple OpKernel registrations match"],
        cause: "Two kernels fit one op, device and type: registered twice, or once with and once without a constraint; or \
                the device type is one that TensorFlow has itself (`CPU`, `GPU` with CUDA).",
        fix: "Register each once, and give the device a unique type.",
    },
    Known {
        parts: &["must match [A-Z][A-Z_]*"],
        cause: "The device's name or type has characters other than capital letters and `_`.",
        fix: "Rename it, as to `MY_DEVICE`.",
    },
    Known {
        parts: &["field in", "must be set"],
        cause: "The plugin has left out a function that TensorFlow demands.",
        fix: "Fill it in; `cargo tf-plugin check` lists what is missing.",
    },
    Known {
        parts: &["struct_size", "= 0"],
        cause: "The plugin has not set `struct_size` of a struct.",
        fix: "Set it to the struct's `…_STRUCT_SIZE`.",
    },
    Known {
        parts: &["Plugin ABI", "doesn't match expected core ABI"],
        cause: "The plugin sets an ABI number other than 0, the only one that exists.",
        fix: "Set the version numbers with `TF_SetFilesystemVersionMetadata`.",
    },
    Known {
        parts: &["Trying to register filesystem without"],
        cause: "The plugin has left out an operation that TensorFlow demands.",
        fix: "Fill it in; `cargo tf-plugin check` lists what is missing.",
    },
    Known {
        parts: &["Filesystem allows creation of"],
        cause: "The plugin opens files for which it gives no table of operations.",
        fix: "Give the table, or leave the operation out that opens them.",
    },
    Known {
        parts: &["Cannot load filesystem plugin which does not provide"],
        cause: "`TF_InitPlugin` has not set the memory hooks: the plugin is incomplete, or refuses to be registered.",
        fix: "Look for the plugin's own message before this one.",
    },
    Known {
        parts: &["file or folder to load pluggable device libraries from does not exist"],
        cause: "TF_PLUGGABLE_DEVICE_LIBRARY_PATH names something that does not exist.",
        fix: "Correct or unset it.",
    },
    Known {
        parts: &["File system scheme", "not implemented"],
        cause: "No plugin for the scheme is loaded. Automatic registration needs the `.so` in `tensorflow-plugins`.",
        fix: "Install the plugin into this Python, or call `tf.experimental.register_filesystem_plugin(PATH)`; \
              `cargo tf-plugin doctor` lists what is loaded.",
    },
    Known {
        parts: &["does not support"],
        cause: "The plugin leaves this operation out, and TensorFlow has no default for it.",
        fix: "`cargo tf-plugin check` lists which operations a plugin has.",
    },
    Known {
        parts: &["() not implemented for"],
        cause: "The plugin's files lack this operation, and TensorFlow has no default for it.",
        fix: "`cargo tf-plugin check` lists which operations a plugin has.",
    },
    Known {
        parts: &["TranslateName", "returned nullptr"],
        cause: "`translate_name` of a filesystem plugin has returned a null pointer, which aborts TensorFlow.",
        fix: "Always return a string; update the plugin.",
    },
    Known {
        parts: &["could not fully delete dir"],
        cause: "`delete_recursively` of a plugin has left something, or has not set its two counters.",
        fix: "Set both counters to 0 on success.",
    },
    Known {
        parts: &["changed while reading"],
        cause: "`read` of a plugin has returned OK with fewer bytes than requested.",
        fix: "Return OUT_OF_RANGE at the end of a file, and all bytes otherwise.",
    },
    Known {
        parts: &["disabled by TF_ENABLED_DEVICE_TYPES"],
        cause: "The environment variable TF_ENABLED_DEVICE_TYPES does not name this device type.",
        fix: "Unset it, or add the type.",
    },
    Known {
        parts: &["Could not satisfy device specification"],
        cause: "No kernel of this op is for the device, and soft placement is off.",
        fix: "Turn on `tf.config.set_soft_device_placement(True)`, or register a kernel.",
    },
    Known {
        parts: &["RegisterPluggableDevicePlugin"],
        cause: "A device plugin has returned an error while it was loaded, which aborts TensorFlow.",
        fix: "The text in parentheses is the plugin's; remove the plugin, or repair what it names.",
    },
];

/// What is known about an error text, or about the lines of a log: the most special that fits one of them.
pub(crate) fn explain(text: &str) -> Option<&'static Known> {
    let says = |known: &&Known| {
        text.lines().any(|line| known.parts.iter().all(|part| line.contains(part)))
    };
    KNOWN.iter().find(says)
}

/// The table as Markdown, for the documentation.
#[cfg(test)]
fn markdown() -> String {
    let mut text = String::from("| The text contains | Cause | What to do |\n|---|---|---|\n");
    for known in KNOWN {
        let parts: Vec<String> = known
            .parts
            .iter()
            .map(
                |part| {
                    if part.contains('`') { format!("`` {part} ``") } else { format!("`{part}`") }
                },
            )
            .collect();
        text.push_str(&format!("| {} | {} | {} |\n", parts.join(" … "), known.cause, known.fix));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_as_they_come_are_explained() {
        for (text, word) in [
            ("libx.so: undefined symbol: TF_InitPlugin", "not a filesystem plugin"),
            ("libx.so: undefined symbol: TF_SetStatus", "up to 2.18"),
            ("libx.so: undefined symbol: _ZN3tsl5mutex6unlockEv", "C++"),
            ("File system for s3 already registered", "first one wins"),
            (
                "stream_executor.cc:550] INTERNAL: platform is already registered with name: \"X\"",
                "same platform",
            ),
            (
                "libtensorflow_framework.so.2: cannot open shared object file: No such file",
                "names TensorFlow's",
            ),
            (
                "File system scheme 's3' not implemented (file: 's3://a/b')",
                "No plugin for the scheme",
            ),
            ("'create_device' field in SP_PlatformFns must be set.", "demands"),
            ("Device name/type 'MY2' must match [A-Z][A-Z_]*.", "capital letters"),
            ("/lib/libc.so.6: version `GLIBC_2.38' not found (required by x)", "newer Linux"),
        ] {
            let known = explain(text).unwrap_or_else(|| panic!("{text} is not known"));
            assert!(known.cause.contains(word), "{text}: {}", known.cause);
        }
        assert_eq!(explain("all is well"), None);
    }

    /// The documentation has the same table.
    #[test]
    fn the_table_is_in_the_documentation() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/check.md");
        let text = std::fs::read_to_string(path).expect("docs/check.md");
        let table = markdown();
        assert!(text.contains(&table), "docs/check.md should contain:\n{table}");
    }

    /// Each entry would be found by the text that it is made of: none is hidden by one before it.
    #[test]
    fn no_entry_hides_another() {
        for known in KNOWN {
            let text = known.parts.join(" … ");
            let found = explain(&text).expect("it contains the parts");
            assert_eq!(found.parts, known.parts, "{text}");
        }
    }
}
