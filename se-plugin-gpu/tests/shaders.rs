//! Tests that the committed SPIR-V is what glslang compiles from the shaders. To compile changed ones:
//! `GPU_WRITE_SHADERS=1 cargo test -p se-plugin-gpu --test shaders`.

use std::fs;
use std::path::Path;

/// The shaders that have a variant for doubles, too. Those whose names end with `64` have no other.
const DOUBLES: [&str; 9] =
    ["add_n", "bincount", "optimize", "range", "reduce", "scan", "scatter", "softmax", "topk"];

/// Returns the variants of a file: their names and the definitions.
fn variants(name: &str, source: &str) -> Vec<(String, Vec<&'static str>)> {
    let double = |suffix: &str| format!("{name}.{suffix}.spv");
    if name.ends_with("64") {
        return vec![(double("double"), vec!["-DDOUBLE"])];
    }
    let mut variants = without_doubles(name, source);
    if DOUBLES.contains(&name) || name == "elementwise" {
        variants.push((double("double"), vec!["-DDOUBLE"]));
    }
    if name == "elementwise" {
        variants.push((double("long.double"), vec!["-DDOUBLE", "-DLONG"]));
    }
    variants
}

/// Returns those without doubles.
fn without_doubles(name: &str, source: &str) -> Vec<(String, Vec<&'static str>)> {
    if source.contains("#include \"products.glsl\"") {
        let mut variants = vec![
            (format!("{name}.spv"), vec![]),
            (format!("{name}.cooperative.spv"), vec!["-DCOOPERATIVE"]),
        ];
        if source.contains("FULL") {
            variants
                .push((format!("{name}.full.cooperative.spv"), vec!["-DCOOPERATIVE", "-DFULL"]));
        }
        return variants;
    }
    if source.contains("#include \"steps.glsl\"") {
        let steps = [("2", "-DMOST_STEPS=2"), ("4", "-DMOST_STEPS=4"), ("8", "-DMOST_STEPS=8")];
        let variants = steps.map(|(most, steps)| {
            [
                (format!("{name}.{most}.spv"), vec![steps]),
                (format!("{name}.long.{most}.spv"), vec![steps, "-DLONG"]),
            ]
        });
        return variants.into_iter().flatten().collect();
    }
    // A shader that uses `COMPUTE`, and does not define it, has variants for floats and for integers.
    match source.contains("COMPUTE") && !source.contains("#define COMPUTE") {
        true => {
            let mut variants = vec![
                (format!("{name}.float.spv"), vec![]),
                (format!("{name}.int64.spv"), vec!["-DCOMPUTE=int64_t"]),
            ];
            if source.contains("#include \"elementwise.glsl\"") {
                variants.push((format!("{name}.long.spv"), vec!["-DLONG"]));
            }
            variants
        }
        false => vec![(format!("{name}.spv"), vec![])],
    }
}

#[test]
fn the_committed_spirv_is_theirs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/shaders");
    let scratch = tempfile::tempdir().unwrap();
    let compiled = scratch.path().join("shader.spv");
    let mut expected = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "comp") {
            continue;
        }
        let (source, name) = (fs::read_to_string(&path).unwrap(), path.file_stem().unwrap());
        for (name, definitions) in variants(name.to_str().unwrap(), &source) {
            let output = lavapipe::newest::glslang()
                .args(["-V", "--quiet", "--target-env", "vulkan1.2", "-g0"])
                .args(definitions)
                .arg(&path)
                .arg("-o")
                .arg(&compiled)
                .output()
                .unwrap();
            let output_text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{name}: {output_text}");
            let (committed, new) = (directory.join(&name), fs::read(&compiled).unwrap());
            if std::env::var_os("GPU_WRITE_SHADERS").is_some() {
                fs::write(&committed, &new).unwrap();
            }
            let committed_code = fs::read(&committed).unwrap_or_default();
            assert!(
                committed_code == new,
                "{name} is not what glslang makes of the source; run \
                 `GPU_WRITE_SHADERS=1 cargo test -p se-plugin-gpu --test shaders`"
            );
            expected.push(name);
        }
    }
    for entry in fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_known = !name.ends_with(".spv") || expected.contains(&name);
        assert!(is_known, "{name} has no source; remove it");
    }
}
