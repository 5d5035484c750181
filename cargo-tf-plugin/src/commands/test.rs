//! `cargo tf-plugin test`: the author's tests, and the plugin in real TensorFlow releases.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::TensorFlow;
use crate::artefact::Artefact;
use crate::build::cargo;
use crate::commands::build::What;
use crate::commands::check::tensorflow;
use crate::commands::installed::{self, LIBRARY_VARIABLE};
use crate::commands::results::Table;
use crate::commands::run::{MODULES_VARIABLE, joined};
use crate::elf_notes::NoteOf;
use crate::output::{self, note, say};
use crate::probe::{LONGEST, ended, last_lines, quoted, watch};
use crate::project::{Project, distribution};
use crate::wheel::package::PythonPackage;

/// Reports what TensorFlow has after its import.
const SMOKE: &str = include_str!("smoke.py");

/// The prefix of the line that [`SMOKE`] prints.
const MARK: &str = "tf-plugin-test ";

/// How much longer than its limit a process may take, to report where it is.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How many of the last lines of a failed program's messages are shown.
const SHOWN_LINES: usize = 40;

/// Cases of `conformance!` that run in TensorFlow.
struct Conformance {
    row: &'static str,
    test: &'static str,
    /// The variable that tells the test where TensorFlow is; `place` returns its value.
    variable: &'static str,
    place: fn(&TensorFlow) -> &Path,
}

const CONFORMANCE: [Conformance; 2] = [
    Conformance {
        row: "conformance in Python",
        test: "conformance_in_python",
        variable: "TF_PLUGIN_TEST_PYTHON",
        place: TensorFlow::python,
    },
    Conformance {
        row: "conformance in C",
        test: "conformance_in_c",
        variable: "TF_PLUGIN_TEST_C_LIBRARY",
        place: TensorFlow::library_dir,
    },
];

/// The arguments of `test`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin test                              in the active environment's TensorFlow, else in the newest
  cargo tf-plugin test --tf 2.12.1 --tf 2.21.0      in two releases, installed on first use (1.5 GB each)
  cargo tf-plugin test --tf ~/venv -- conformance   the arguments behind `--` are those of cargo test

Scripts in tests/python/ run with the plugin loaded; an exit status other than 0 is a failure.")]
pub struct Test {
    /// Package of the plugin, of those in the workspace.
    #[arg(long, short, value_name = "NAME")]
    package: Option<String>,

    /// TensorFlow release, installed into the target directory on first use, or a virtual environment that has one;
    /// may be repeated.
    #[arg(long, value_name = "VERSION|VENV")]
    tf: Vec<PathBuf>,

    /// Time limit for TensorFlow to start with the plugin, and to exit; 120 by default, and for conformance
    /// no less than a case may take.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=LONGEST))]
    timeout: Option<u64>,

    /// Print the results as one line of JSON; everything else goes to standard error.
    #[arg(long)]
    json: bool,

    /// Arguments for `cargo test`.
    #[arg(last = true, value_name = "ARGUMENTS")]
    cargo_test: Vec<String>,
}

impl Test {
    /// Runs all tests, even after one has failed, and prints the result of each.
    pub fn run(self) -> Result<()> {
        let (project, library) = What::package(self.package).build()?;
        // All named releases must exist before the first is used.
        let tensorflows: Vec<TensorFlow> = if self.tf.is_empty() {
            vec![TensorFlow::around()?]
        } else {
            self.tf.iter().map(|name| tensorflow(name)).collect::<Result<_>>()?
        };

        let limit = Duration::from_secs(self.timeout.unwrap_or(120));
        let instead = "look at that one: `cargo tf-plugin check FILE`";
        for tensorflow in &tensorflows {
            if installed::loads(tensorflow, &library.path, None, limit, instead)? {
                bail!(
                    "TensorFlow {} has {} in its `tensorflow-plugins` already, and would load it twice; take it away there",
                    tensorflow.version(),
                    library.path.display()
                );
            }
        }
        let mut table = Table::new(&tensorflows);
        table.add("cargo test", 0, cargo_test(&project, &self.cargo_test, self.json)?);
        let scripts = scripts(&project)?;
        for (at, tensorflow) in tensorflows.iter().enumerate() {
            let mut add = |row: &str, passed| table.add(row, at + 1, passed);
            if !in_tensorflow(&project, &library, &scripts, tensorflow, limit, &mut add)? {
                continue;
            }
            for cases in CONFORMANCE {
                let passed =
                    cases.run(&project, &library, &self.cargo_test, tensorflow, self.timeout)?;
                if let Some(passed) = passed {
                    add(cases.row, passed);
                }
            }
        }
        let failures = table.failures();
        if self.json {
            let known = json!({
                "package": project.package.name,
                "path": library.path,
                "passed": failures == 0,
                "tests": table.json(),
            });
            say!("{known}")?;
        } else {
            output::print(format_args!("\n{}", table.text()))?;
        }
        if failures > 0 {
            bail!("{failures} of the tests above failed; their messages are further up");
        }
        Ok(())
    }
}

/// Runs the author's own tests in this process's environment, and returns whether they pass.
fn cargo_test(project: &Project, arguments: &[String], aside: bool) -> Result<bool> {
    let mut cargo = cargo();
    if aside {
        cargo.stdout(io::stderr());
    }
    let status = cargo
        .current_dir(project.workspace.root())
        .args(["test", "--package", &project.package.name])
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", cargo.get_program().display()))?;
    Ok(status.success())
}

/// Returns the author's Python scripts, in the order of their names.
fn scripts(project: &Project) -> Result<Vec<PathBuf>> {
    let directory = directory(project)?.join("tests/python");
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let failed = || format!("cannot read {}", directory.display());
    let mut scripts = Vec::new();
    for entry in fs::read_dir(&directory).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        if path.extension().is_some_and(|end| end == "py") {
            scripts.push(path);
        }
    }
    scripts.sort();
    Ok(scripts)
}

fn directory(project: &Project) -> Result<&Path> {
    let manifest = project.package.manifest_path.as_std_path();
    manifest.parent().context("a manifest is in a directory")
}

/// Tests the plugin in one TensorFlow.
fn in_tensorflow(
    project: &Project,
    library: &Artefact,
    scripts: &[PathBuf],
    tensorflow: &TensorFlow,
    limit: Duration,
    mut add: impl FnMut(&str, bool),
) -> Result<bool> {
    let title = format!("TensorFlow {}", tensorflow.version());
    let mut say = |what: &str, started: Instant, problem: Option<String>| {
        let seconds = started.elapsed().as_secs_f64();
        let outcome = if problem.is_some() { "FAILED" } else { "ok" };
        // A result that was only looked up takes no time.
        let took = if seconds < 0.05 { String::new() } else { format!(" ({seconds:.1} s)") };
        note!("{title}: {what}: {outcome}{took}");
        if let Some(problem) = &problem {
            note!("{problem}");
        }
        add(what, problem.is_none());
    };
    let modules = match PythonPackage::for_development(project, library)? {
        Some(modules) => Some(joined(&modules, env::var_os(MODULES_VARIABLE))?),
        None => None,
    };
    let python = || {
        let mut command = tensorflow.python_command();
        command.stdin(Stdio::null()).env(LIBRARY_VARIABLE, &library.path);
        if let Some(modules) = &modules {
            command.env(MODULES_VARIABLE, modules);
        }
        command
    };
    let started = Instant::now();
    let mut smoke = python();
    smoke.args(["-c", SMOKE, &limit.as_secs().to_string()]).arg(&library.path);
    if library.entry_points == ["TF_InitPlugin"] {
        // The import alone does not register the plugin.
        smoke.arg("register");
    }
    let loaded = watch(&mut smoke, limit + LAST_WORDS)?;
    let end = || {
        let output = loaded.output.lines().filter(|line| !line.starts_with(MARK));
        let lines = last_lines(&output.collect::<Vec<_>>().join("\n"), SHOWN_LINES);
        shown(&ended(&loaded, limit), &lines)
    };
    let answer = loaded.output.lines().find_map(|line| line.strip_prefix(MARK));
    let imported = answer.and_then(|answer| serde_json::from_str::<Value>(answer).ok());
    let success = loaded.status.is_some_and(|status| status.success());
    let Some(imported) = imported else {
        let advice = "\n  | look at what the plugin does when it is loaded: `cargo tf-plugin check` does that \
                      without TensorFlow, and says what it hangs in; or give it more time with `--timeout`";
        let advice = if loaded.status.is_none() { advice } else { "" };
        say("import tensorflow", started, Some(end() + advice));
        return Ok(false);
    };
    say("import tensorflow", started, None);
    if let ([first, ..], true) = (library.noted(NoteOf::Op).as_slice(), library.describes_ops) {
        let lacks: Vec<_> =
            imported["ops"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let problem = (!lacks.is_empty()).then(|| {
            format!(
                "{}\n  | TensorFlow does not have the ops {} of this library",
                end(),
                lacks.join(", ")
            )
        });
        say(&format!("ops, such as {first}"), Instant::now(), problem);
    }
    let own_type = imported["own-type"].as_str().map(|own| vec![own.to_owned()]);
    let device_types = own_type.unwrap_or_else(|| library.noted(NoteOf::Device));
    for (key, names) in
        [("schemes", library.noted(NoteOf::Filesystem)), ("device-types", device_types)]
    {
        let list = imported[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let registered: Vec<_> = list.iter().filter_map(Value::as_str).collect();
        for name in names {
            let what =
                if key == "schemes" { format!("{name}://") } else { format!("/device:{name}:0") };
            let problem = (!registered.contains(&name.as_str())).then(|| {
                format!(
                    "{}\n  | {what} is not there after `import tensorflow`, which has: {}",
                    end(),
                    registered.join(", ")
                )
            });
            say(&what, Instant::now(), problem);
        }
    }
    if !success {
        let advice = "\n  | TensorFlow has started with the plugin, and the process does not end well: look at threads \
                      of the plugin that are waited for, and at what is done when the process exits";
        say("end of the process", Instant::now(), Some(end() + advice));
        // Every script would end in the same way.
        return Ok(false);
    }
    for script in scripts {
        let started = Instant::now();
        let name = script.strip_prefix(directory(project)?).unwrap_or(script);
        let mut command = python();
        let output = finish(command.arg(script).current_dir(directory(project)?))?;
        let problem = (!output.status.success()).then(|| messages(&output));
        say(&name.to_string_lossy(), started, problem);
    }
    Ok(true)
}

impl Conformance {
    /// Runs the cases of the author's `conformance!` for this TensorFlow, and returns whether they
    /// pass; `None` if the author has no such test, or if no case applies to the plugin.
    fn run(
        &self,
        project: &Project,
        library: &Artefact,
        arguments: &[String],
        tensorflow: &TensorFlow,
        timeout: Option<u64>,
    ) -> Result<Option<bool>> {
        let title = format!("TensorFlow {}: {}", tensorflow.version(), self.row);
        let started = Instant::now();
        let report = format!("tf-plugin/conformance-{}.jsonl", std::process::id());
        let report = project.workspace.target_dir().join(report);
        let failed = || format!("cannot write {}; is it writable?", report.display());
        fs::create_dir_all(report.parent().unwrap_or(&report)).with_context(failed)?;
        fs::write(&report, "").with_context(failed)?;
        let mut cargo = cargo();
        cargo
            .current_dir(project.workspace.root())
            .args(["test", "--quiet", "--package", &project.package.name])
            .args(of_the_build(arguments))
            .args(["--", self.test])
            .env(self.variable, (self.place)(tensorflow))
            .env("TF_PLUGIN_TEST_LIBRARY", &library.path)
            .env("TF_PLUGIN_TEST_REPORT", &report);
        if let Some(seconds) = timeout {
            cargo.env("TF_PLUGIN_TEST_TIMEOUT", seconds.to_string());
        }
        for (name, value) in tensorflow.python_command().get_envs() {
            if let Some(value) = value {
                cargo.env(name, value);
            }
        }
        if let Some(modules) = PythonPackage::for_development(project, library)? {
            // The cases import it, because it registers the gradients.
            let package = distribution(&project.package)?.replace('-', "_");
            cargo
                .env(MODULES_VARIABLE, joined(&modules, env::var_os(MODULES_VARIABLE))?)
                .env("TF_PLUGIN_TEST_PACKAGE", package);
        }
        let output = finish(&mut cargo)?;
        let answers = fs::read_to_string(&report).with_context(failed)?;
        // It has been read; if it stays, that is a smaller problem.
        let _ = fs::remove_file(&report);
        let answers: Vec<Value> =
            answers.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let seconds = started.elapsed().as_secs_f64();
        if output.status.success() && answers.is_empty() {
            return Ok(None);
        }
        let [passed, skipped, failed] = ["passed", "skipped", "failed"]
            .map(|outcome| answers.iter().filter(|line| line["outcome"] == outcome).count());
        let counts = format!("{passed} passed, {skipped} skipped, {failed} failed");
        if output.status.success() && passed == 0 {
            note!("{title}: no case applies to this plugin, {counts} ({seconds:.1} s)");
            return Ok(None);
        }
        if output.status.success() {
            note!("{title}: ok, {counts} ({seconds:.1} s)");
            let reasons = answers.iter().filter_map(|line| line["reason"].as_str());
            for reason in reasons.filter(|reason| reason.starts_with("never ")) {
                note!("  | {reason}");
            }
            return Ok(Some(true));
        }
        note!("{title}: FAILED, {counts} ({seconds:.1} s)");
        for text in [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text)) {
            text.lines().for_each(|line| note!("  | {line}"));
        }
        Ok(Some(false))
    }
}

/// Returns the arguments of `cargo test` that say what is built, and not which tests run. Of the tests it keeps all
/// programs, but not doc tests, which have no conformance cases, unless the author names one.
fn of_the_build(arguments: &[String]) -> Vec<String> {
    const WITH_VALUE: &str =
        "--features --profile --target --target-dir --config --jobs --test -F -j -Z";
    const ALONE: &str = "--all-features --no-default-features --release --locked --offline --frozen \
        --ignore-rust-version -r";
    let has = |list: &str, name: &str| list.split(' ').any(|known| known == name);
    let mut words = Vec::new();
    for argument in arguments.iter().take_while(|argument| *argument != "--") {
        let is_value = words.last().is_some_and(|word: &String| has(WITH_VALUE, word));
        let letters = argument.strip_prefix('-').filter(|it| !is_value && !it.starts_with('-'));
        let Some(letters) = letters else {
            words.push(argument.clone());
            continue;
        };
        // Short options may be written together, with the value of the last one behind them.
        let end = letters.find(['F', 'j', 'Z', 'p']).map_or(letters.len(), |at| at + 1);
        words.extend(letters[..end].chars().map(|letter| format!("-{letter}")));
        let value = letters[end..].trim_start_matches('=');
        words.extend(Some(value).filter(|value| !value.is_empty()).map(str::to_owned));
    }
    let (mut kept, mut rest) = (Vec::new(), words.into_iter());
    while let Some(word) = rest.next() {
        let name = word.split('=').next().unwrap_or_default();
        if has(WITH_VALUE, &word) {
            kept.push(word);
            kept.extend(rest.next());
        } else if has(ALONE, &word) || has(WITH_VALUE, name) {
            kept.push(word);
        }
    }
    if !kept.iter().any(|argument| argument == "--test" || argument.starts_with("--test=")) {
        kept.push("--tests".to_owned());
    }
    kept
}

fn finish(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_owned();
    command.output().with_context(|| format!("cannot run {}", program.display()))
}

/// Returns the last messages of a failed program.
fn messages(output: &Output) -> String {
    let outputs = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let lines: Vec<_> = outputs.iter().flat_map(|text| text.lines()).collect();
    let lines = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    shown(&format!("ended with {}", output.status), lines)
}

fn shown(end: &str, lines: &[impl AsRef<str>]) -> String {
    format!("  | {end}{}", quoted(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_build_is_the_first_one() {
        let words = |text: &str| text.split(", ").map(str::to_owned).collect::<Vec<_>>();
        for (given, wanted) in [
            (
                "--features, a b, rename, -j2, --profile=x, --, --features",
                "--features, a b, -j, 2, --profile=x, --tests",
            ),
            ("-Fone, case", "-F, one, --tests"),
            ("-F, one two, case", "-F, one two, --tests"),
            ("-F=one, --features=two", "-F, one, --features=two, --tests"),
            ("-qrFone", "-r, -F, one, --tests"),
            ("-rj, 3, --jobs, -12", "-r, -j, 3, --jobs, -12, --tests"),
            ("-pother, -p, other, --package=other, -q", "--tests"),
            ("-Zx, --target-dir, y", "-Z, x, --target-dir, y, --tests"),
            ("--test, fs, --no-fail-fast, -vv", "--test, fs"),
            ("--release, --test=fs", "--release, --test=fs"),
        ] {
            assert_eq!(of_the_build(&words(given)), words(wanted), "{given}");
        }
    }
}
