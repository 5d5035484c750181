//! Compiling and running a generated C++ program.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// The system's C++ compiler.
#[derive(Debug)]
pub struct Compiler {
    tool: cc::Tool,
}

impl Compiler {
    /// The compiler that `CXX` names, or the platform's usual one.
    ///
    /// # Errors
    /// When none is found; the text says what to install.
    pub fn find() -> Result<Self, String> {
        Self::from_build(cc::Build::new())
    }

    fn from_build(mut build: cc::Build) -> Result<Self, String> {
        build
            .cpp(true)
            // The build script's environment, which `cc` reads otherwise, is not there in tests.
            .host(env!("ABI_TESTS_HOST"))
            .target(env!("ABI_TESTS_TARGET"))
            .opt_level(0)
            .debug(false)
            .warnings(false)
            .cargo_metadata(false);
        let tool = build.try_get_compiler().map_err(missing)?;
        Ok(Self { tool })
    }

    /// Compiles `source`, a program, with the include directories searched in order; runs it and returns
    /// what it prints.
    ///
    /// # Errors
    /// When there is no compiler, it refuses the program, or the program fails.
    pub fn run(&self, source: &str, include_dirs: &[&Path]) -> Result<String, String> {
        let directory =
            tempfile::tempdir().map_err(|problem| format!("no scratch directory: {problem}"))?;
        let file = directory.path().join("program.cc");
        let program = directory.path().join("program");
        std::fs::write(&file, source).map_err(|problem| format!("program.cc: {problem}"))?;
        let mut command = self.tool.to_command();
        command.arg("-std=c++17");
        for include_dir in include_dirs {
            command.arg("-I").arg(include_dir);
        }
        command.arg(&file).arg("-o").arg(&program);
        output(&mut command).map_err(|problem| match problem {
            Problem::Missing(problem) => missing(problem),
            Problem::Failed(text) => format!(
                "the C++ program that asks the headers does not compile:\n{text}\n\
                 the header has a type that tf-fs-sys spells in another way, or one that the \
                 generator of the program must learn"
            ),
        })?;
        output(&mut Command::new(&program)).map_err(|problem| match problem {
            Problem::Missing(text) | Problem::Failed(text) => {
                format!("the C++ program that asks the headers does not run: {text}")
            }
        })
    }
}

enum Problem {
    Missing(String),
    Failed(String),
}

fn missing(problem: impl ToString) -> String {
    format!(
        "no C++ compiler ({}); install one (Debian and Ubuntu: `apt-get install g++`; macOS: \
         `xcode-select --install`) or name one in the environment variable CXX",
        problem.to_string()
    )
}

fn output(command: &mut Command) -> Result<String, Problem> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(problem) if problem.kind() == ErrorKind::NotFound => {
            Err(Problem::Missing(format!("{name}: {problem}")))
        }
        Err(problem) => Err(Problem::Failed(format!("{name}: {problem}"))),
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(Problem::Failed(format!(
            "{name}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_an_error_that_says_what_to_install() {
        let mut build = cc::Build::new();
        build.compiler("no-such-compiler-is-installed");
        let problem = Compiler::from_build(build)
            .and_then(|compiler| compiler.run("int main() {}", &[]))
            .expect_err("no such compiler");
        for text in ["no-such-compiler-is-installed", "install g++", "CXX"] {
            assert!(problem.contains(text), "no {text} in: {problem}");
        }
    }

    #[test]
    fn a_program_is_compiled_and_run_and_its_faults_are_errors() {
        let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
        let run = |source: &str| compiler.run(source, &[]);
        let hello = "#include <cstdio>\nint main() { std::puts(\"hello\"); }";
        assert_eq!(run(hello).as_deref(), Ok("hello\n"));
        let refused = run("int main() { return undeclared_name; }").expect_err("no such name");
        assert!(refused.contains("undeclared_name"), "{refused}");
        let failed = run("int main() { return 3; }").expect_err("a failing program");
        assert!(failed.contains("does not run"), "{failed}");
    }
}
