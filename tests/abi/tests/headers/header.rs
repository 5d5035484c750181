//! The declarations of TensorFlow's headers, read with bindgen.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cargo_tf_plugin::TensorFlow;

use crate::lists::{OPAQUE, PART, WHOLE};

/// The declarations of the headers.
pub(crate) struct Headers {
    /// bindgen's output.
    pub(crate) file: syn::File,
    /// Constants that are macros: plain numbers, whose type is their user's choice.
    pub(crate) macros: BTreeSet<String>,
    /// Names and bodies of inline functions.
    pub(crate) inline: Vec<(String, String)>,
}

/// Reads the headers in `include_dirs`, of which the first that has a header counts: everything in those of
/// [`WHOLE`], and the `names` in those of [`PART`]. A macro of the name of one of the `types` is a type.
pub(crate) fn read(
    tensorflow: &TensorFlow,
    include_dirs: &[&Path],
    names: &BTreeSet<String>,
    types: &BTreeSet<String>,
) -> Headers {
    let mut program = String::new();
    let mut declarations = String::new();
    let mut part = String::new();
    let (mut macros, mut inline) = (BTreeSet::new(), Vec::new());
    for path in WHOLE.iter().chain(PART) {
        let mut places = include_dirs.iter().map(|directory| directory.join(path));
        let Some(file) = places.find(|place| place.is_file()) else {
            // The one header that is not in all releases; each name of any other is missed.
            if *path == "tensorflow/c/logging.h" {
                continue;
            }
            panic!("none of {include_dirs:?} has {path}; is one of them TensorFlow's `include`?");
        };
        let _ = writeln!(program, "#include \"{path}\"");
        let text = std::fs::read_to_string(&file);
        let text = text.unwrap_or_else(|problem| panic!("{}: {problem}", file.display()));
        let is_whole = WHOLE.contains(path);
        if !is_whole {
            part.push_str(&text);
        }
        for name in text.lines().filter_map(macro_name) {
            if types.contains(name) {
                let _ = writeln!(declarations, "typedef {name} macro_{name};");
            } else if is_whole || names.contains(name) {
                let _ = writeln!(declarations, "static constexpr long long macro_{name} = {name};");
                macros.insert(name.to_owned());
            }
        }
        for function in text.split("static inline void ").skip(1).filter(|_| is_whole) {
            if let (Some((name, _)), Some((body, _))) =
                (function.split_once('('), function.split_once('}'))
            {
                let _ = writeln!(declarations, "typedef decltype(&{name}) macro_{name};");
                inline.push((name.to_owned(), body.to_owned()));
            }
        }
    }
    program.push_str(&declarations);
    // A pattern of all names would take most of the time.
    let others = names.iter().filter(|name| part.contains(name.as_str())).cloned();
    let members = OPAQUE.iter().map(|record| format!("{record}(_.*)?"));
    let file = bindgen(tensorflow, include_dirs, &program, others.chain(members).collect());
    Headers { file, macros, inline }
}

/// The name that a line gives to a value or a type.
fn macro_name(line: &str) -> Option<&str> {
    let (name, value) = line.trim_start().strip_prefix("#define ")?.trim().split_once(' ')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !value.starts_with("__") && name != "TF_CAPI_EXPORT").then_some(name)
}

fn bindgen(
    tensorflow: &TensorFlow,
    include_dirs: &[&Path],
    program: &str,
    names: Vec<String>,
) -> syn::File {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let file = directory.path().join("headers.hpp");
    std::fs::write(&file, program).expect("headers.hpp");
    let headers: Vec<String> = WHOLE.iter().map(|path| format!(".*/{path}")).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_read-headers"));
    command
        .env("LIBCLANG_PATH", tensorflow.site_packages().join("clang/native"))
        .arg(file)
        .arg(headers.join("|"))
        .arg(format!("macro_.*|TSL_[A-Z_]+|TSL_(Code|Status|PayloadVisitor)|{}", names.join("|")))
        .args(["-x", "c++", "-std=c++17"]);
    for include_dir in include_dirs {
        command.arg("-I").arg(include_dir);
    }
    for include_dir in system_include_dirs() {
        command.arg("-isystem").arg(include_dir);
    }
    let output = command.output();
    let Output { status, stdout, stderr } =
        output.unwrap_or_else(|problem| panic!("{:?}: {problem}", command.get_program()));
    let log = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "clang does not read {include_dirs:?}: {status}\n{log}");
    syn::parse_file(&String::from_utf8_lossy(&stdout)).expect("bindgen's output")
}

/// Where the system's compiler looks for headers: clang's library comes without those of the language.
fn system_include_dirs() -> Vec<PathBuf> {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(&compiler);
    let output = command.args(["-E", "-v", "-x", "c++", "/dev/null"]).output();
    let output = output.unwrap_or_else(|problem| {
        panic!(
            "{compiler:?}: {problem}; install a C++ compiler (Debian and Ubuntu: `apt-get install g++`; macOS: \
             `xcode-select --install`) or name one in the environment variable CXX"
        )
    });
    let log = String::from_utf8_lossy(&output.stderr);
    let directories: Vec<PathBuf> = log
        .lines()
        .skip_while(|line| !line.starts_with("#include <"))
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .filter(|line| !line.ends_with("(framework directory)"))
        .map(|line| line.trim().into())
        .collect();
    assert!(!directories.is_empty(), "the C++ compiler names no directories of headers:\n{log}");
    directories
}
