//! Shaders in CUDA C++: their GLSL, line by line, with the types and functions of `shaders/cuda.h`.
//!
//! Globals in GLSL become members of a class `Shader`, of which each thread has an object. The shaders only use
//! features of GLSL that mean the same in C++, except for the lines that [`translate`] rewrites.

use se_plugin::{Error, Result};

macro_rules! sources {
    ($($name:literal)*) => {
        /// The files of `shaders/`.
        const SOURCES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../shaders/", $name)))),*];
    };
}

sources! {
    "band.comp" "bits.glsl" "colors.comp" "common.glsl" "convolve.comp" "cooperative.glsl" "elementwise.comp"
    "elementwise.glsl" "fused.comp" "gather.comp" "gather_nd.comp" "image_transform.comp" "index.glsl" "links.comp"
    "math.glsl" "matmul.comp" "mirror_pad.comp" "normalize.comp" "one_hot.comp" "optimize.comp" "patches.comp"
    "products.glsl" "random.comp" "recurrent.comp" "reduce.comp" "resize.comp" "reverse_sequence.comp" "scan.comp"
    "scatter.comp" "select.comp" "softmax.comp" "space_to_batch.comp" "strided_copy.comp" "tile.glsl" "topk.comp"
    "window.comp" "window.glsl"
}

/// The entry point of each program.
pub(crate) const ENTRY: &str = "run";

/// The threads of a block, as `local_size_x` in each shader.
pub(crate) const THREADS: u32 = 256;

/// Returns a shader's program by the name of its SPIR-V, such as `elementwise.int64`, and specialization constants.
///
/// # Errors
/// `INTERNAL` for an unknown shader, or a line that is not understood.
pub(crate) fn program(name: &str, constants: &[u32]) -> Result<String> {
    let mut parts = name.split('.');
    let file = parts.next().unwrap_or_default();
    let definitions = parts.map(|part| match part {
        "float" => Ok(String::new()),
        "int64" => Ok("#define COMPUTE int64_t\n".to_owned()),
        "long" => Ok("#define LONG\n".to_owned()),
        most if most.parse::<u32>().is_ok() => Ok(format!("#define MOST_STEPS {most}\n")),
        _ => Err(unknown_shader(name)),
    });
    let definitions = definitions.collect::<Result<String>>()?;
    let values: String = constants.iter().map(|value| format!("{value}u, ")).collect();
    let mut program = format!("#define CONSTANTS {values}\n");
    program.push_str(include_str!("../../shaders/cuda.h"));
    program.push_str(&definitions);
    program.push_str("struct Shader {\n");
    translate(&format!("{file}.comp"), &mut program)?;
    program.push_str(&format!(
        "}};\nextern \"C\" __global__ void __launch_bounds__({THREADS}) {ENTRY}(const __grid_constant__ Shader::Push push) {{\n    \
             Shader shader{{push}};\n    shader.main();\n}}\n"
    ));
    Ok(program)
}

/// Appends a file, with the files that it includes in their places.
fn translate(name: &str, program: &mut String) -> Result<()> {
    let source = SOURCES.iter().find(|(file, _)| *file == name).map(|(_, source)| *source);
    translate_text(name, source.ok_or_else(|| unknown_shader(name))?, program)
}

fn unknown_shader(name: &str) -> Error {
    Error::internal(format!("`{name}` is not a shader"))
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
        program.push_str(&translated);
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
    fn what_is_not_understood_is_an_error() {
        for line in [
            "#include <math>",
            "layout(constant_id = 0) uint A;",
            "layout(std430) buffer B {",
            "shared float a[2], b[2];",
        ] {
            let error = translate_text("a file", line, &mut String::new()).unwrap_err();
            assert!(error.to_string().contains(line), "{line}: {error}");
        }
    }

    #[test]
    fn what_is_not_a_shader_is_an_error() {
        for (name, unknown) in [
            ("none", "none.comp"),
            ("elementwise.double", "elementwise.double"),
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

    #[test]
    fn each_file_of_the_shaders_is_known() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/shaders");
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_source = name.ends_with(".comp") || name.ends_with(".glsl");
            assert!(!is_source || SOURCES.iter().any(|(file, _)| *file == name), "{name}");
        }
    }
}
