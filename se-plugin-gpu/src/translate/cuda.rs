//! Programs in CUDA C++: their GLSL, line by line, with the types and functions of `shaders/cuda.h`.
//!
//! Globals in GLSL become members of a class `Shader`, of which each thread has an object. The shaders only use
//! features of GLSL that mean the same in C++, except for the lines that `translate` rewrites.

use super::{Source, layout, source, without_suffixes};
use crate::backend::WORKGROUP;
use se_plugin::{Error, Result};

/// The entry point of each program.
pub const ENTRY: &str = "run";

/// Returns the program of a shader of this crate by the name of its SPIR-V, such as `elementwise.int64`, and the values of
/// specialization constants.
///
/// # Errors
/// `INTERNAL` for an unknown shader, or a line that is not understood.
pub fn program(name: &str, constants: &[u32]) -> Result<String> {
    program_of(&Source::of_crate(name)?, constants)
}

/// Returns the program of a source with these values of specialization constants.
///
/// # Errors
/// `INTERNAL` for a line that is not understood; `INVALID_ARGUMENT` for push constants that C++ would have at another place.
pub(crate) fn program_of(source: &Source, constants: &[u32]) -> Result<String> {
    layout::check(source)?;
    let values: String = constants.iter().map(|value| format!("{value}u, ")).collect();
    let mut program = format!("#define CONSTANTS {values}\n");
    for (name, value) in &source.definitions {
        program.push_str(&format!("#define {name} {value}\n"));
    }
    program.push_str(include_str!("../shaders/cuda.h"));
    program.push_str("struct Shader {\n");
    translate_text(&source.file, source.text, &mut program)?;
    program.push_str(&format!(
        "}};\nextern \"C\" __global__ void __launch_bounds__({WORKGROUP}) {ENTRY}(const __grid_constant__ Shader::Push push) {{\n    \
             Shader shader{{push}};\n    shader.main();\n}}\n"
    ));
    Ok(program)
}

/// Appends a file, with the files that it includes in their places.
fn translate(name: &str, program: &mut String) -> Result<()> {
    translate_text(name, source(name)?, program)
}

fn translate_text(name: &str, source: &str, program: &mut String) -> Result<()> {
    for line in source.lines() {
        let unknown =
            || Error::internal(format!("`{name}` has a line that is not understood: {line}"));
        if let Some(rest) = line.strip_prefix("#include ") {
            let file = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            translate(file.ok_or_else(unknown)?, program)?;
            continue;
        }
        // CUDA has what these extensions enable; the launch sets the sizes of blocks; `cuda.h` has the buffers.
        let is_of_vulkan =
            ["#version", "#extension", "layout(local_size_x = 256)", "layout(buffer_reference"];
        if is_of_vulkan.iter().any(|start| line.starts_with(start)) {
            continue;
        }
        let translated = if let Some(rest) = line.strip_prefix("layout(constant_id = ") {
            // `0) const uint OP = 0;`
            let parts = || {
                let (id, rest) = rest.split_once(") const ")?;
                let (kind, rest) = rest.split_once(' ')?;
                let (constant, rest) = rest.split_once(" = ")?;
                // What is given is the bits, which a conversion would not keep.
                (kind != "float").then_some(())?;
                Some([id, kind, constant, rest.strip_suffix(';')?])
            };
            let [id, kind, constant, otherwise] = parts().ok_or_else(unknown)?;
            format!("static constexpr {kind} {constant} = {kind}(constant({id}, {otherwise}));")
        } else if let Some(rest) = line.strip_prefix("shared ") {
            // `float partial[256];`
            let parts = || {
                let (kind, rest) = rest.split_once(' ')?;
                let (array, count) = rest.strip_suffix("];")?.split_once('[')?;
                (!count.contains(['[', ']', ','])).then_some([kind, array, count])
            };
            let [kind, array, count] = parts().ok_or_else(unknown)?;
            format!("SHARED({kind}, {array}, {count});")
        } else if let Some(rest) = line.strip_prefix("const ") {
            format!("static constexpr {rest}")
        } else if line.starts_with("layout(") && !line.starts_with("layout(push_constant, scalar)")
        {
            return Err(unknown());
        } else {
            // The push constants are the kernel's argument.
            line.replace("[[unroll]] ", "")
                .replace("layout(push_constant, scalar) uniform Push", "struct Push")
                .replace("} push;", "}; const Push &push;")
        };
        program.push_str(&without_suffixes(&translated));
        program.push('\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> String {
        let mut program = String::new();
        translate_text("a file", line, &mut program).unwrap();
        program
    }

    #[test]
    fn lines_that_only_glsl_has_are_translated() {
        for (line, expected) in [
            ("#version 460", ""),
            ("#extension GL_EXT_scalar_block_layout : require", ""),
            ("layout(local_size_x = 256) in;", ""),
            (
                "layout(constant_id = 3) const bool IS_WIDE = false;",
                "static constexpr bool IS_WIDE = bool(constant(3, false));\n",
            ),
            ("const uint A = 1, B = 2;", "static constexpr uint A = 1, B = 2;\n"),
            ("shared float part[2 * N];", "SHARED(float, part, 2 * N);\n"),
            ("layout(push_constant, scalar) uniform Push {", "struct Push {\n"),
            ("} push;", "}; const Push &push;\n"),
            ("    const uint local = 1;", "    const uint local = 1;\n"),
            ("    [[unroll]] for (;;) {", "    for (;;) {\n"),
        ] {
            assert_eq!(translated(line), expected, "{line}");
        }
    }

    #[test]
    fn an_unknown_construct_is_an_error() {
        for line in [
            "#include <math>",
            "layout(constant_id = 0) uint A;",
            "layout(constant_id = 0) const float A = 1;",
            "layout(std430) buffer B {",
            "shared float a[2], b[2];",
        ] {
            let error = translate_text("a file", line, &mut String::new()).unwrap_err();
            assert!(error.to_string().contains(line), "{line}: {error}");
        }
    }

    #[test]
    fn text_that_is_not_a_shader_is_an_error() {
        for (name, unknown) in [
            ("none", "none.comp"),
            ("elementwise.half", "elementwise.half"),
            ("matmul.full.cooperative", "matmul.full.cooperative"),
            ("fused.long.", "fused.long."),
        ] {
            let error = program(name, &[]).unwrap_err().to_string();
            assert!(error.contains(&format!("`{unknown}` is not a shader")), "{name}: {error}");
        }
        for name in ["elementwise.float", "reduce.int64", "fused.long.8", "matmul"] {
            assert!(program(name, &[]).is_ok(), "{name}");
        }
    }
}
