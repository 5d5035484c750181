//! The programs of kernels, from GLSL to the languages of backends. SPIR-V is compiled by glslang, and part of the crate.

pub mod cuda;
mod layout;
pub mod opencl;

use se_plugin::{Error, Result};

macro_rules! sources {
    ($($name:literal)*) => {
        /// The files of `shaders/`.
        const SOURCES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../shaders/", $name)))),*];
    };
}

sources! {
    "add_n.comp" "all_finite.comp" "angles64.glsl" "attention.comp" "band.comp" "bincount.comp" "bits.glsl" "broadcast.glsl" "channel_groups.glsl" "colors.comp" "common.glsl" "complex.comp" "complex.glsl" "convolve.comp" "cooperative.glsl" "depthwise.comp" "diagonal.comp"
    "elementwise.comp" "elementwise.glsl" "fake_quant.comp" "fft.comp" "fused.comp" "gamma.comp" "gamma64.glsl" "gather.comp" "gather_nd.comp" "group_norm.comp" "igamma64.comp" "image_transform.comp" "index.glsl" "layer_norm.comp" "links.comp"
    "math.glsl" "math64.glsl" "matmul.comp" "matmul64.comp" "mirror_pad.comp" "multi_tensor.comp" "multinomial.comp" "neighbours.glsl" "normalize.comp" "one_hot.comp" "optimize.comp" "patches.comp"
    "philox.glsl" "poisson64.comp" "products.glsl" "quantize_dequantize.comp" "random.comp" "random64.comp" "range.comp" "recurrent.comp" "reduce.comp" "resize.comp" "reverse_sequence.comp" "row_sums.glsl" "scan.comp"
    "scatter.comp" "select.comp" "softmax.comp" "space_to_batch.comp" "steps.glsl" "strided_copy.comp" "tile.glsl" "topk.comp"
    "window.comp" "window.glsl"
}

/// What is defined for shaders of doubles.
const DOUBLE: &str = "DOUBLE";

/// Removes the suffix of GLSL's doubles: without one, they are those of C.
fn without_suffixes(text: &str) -> String {
    let mut parts = text.split("lf");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_number = out.ends_with(|c: char| c.is_ascii_digit());
        let goes_on = part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if !is_number || goes_on {
            out.push_str("lf");
        }
        out.push_str(part);
    }
    out
}

/// Returns the source of a file of `shaders/`.
fn source(name: &str) -> Result<&'static str> {
    let source = SOURCES.iter().find(|(file, _)| *file == name).map(|(_, source)| *source);
    source.ok_or_else(|| unknown_shader(name))
}

/// The GLSL of a shader, for a translator.
pub(crate) struct Source {
    /// The name of its file in messages.
    pub(crate) file: String,
    pub(crate) text: &'static str,
    /// What is defined before the file: names and values.
    pub(crate) definitions: Vec<(&'static str, String)>,
}

impl Source {
    /// Returns that of a plugin's own shader.
    pub(crate) fn new(name: &str, text: &'static str) -> Self {
        Self { file: name.to_owned(), text, definitions: Vec::new() }
    }

    /// Returns that of a shader of this crate by the name of its SPIR-V, such as `elementwise.int64`.
    ///
    /// # Errors
    /// `INTERNAL` for an unknown shader.
    pub(crate) fn of_crate(name: &str) -> Result<Self> {
        let mut parts = name.split('.');
        let file = format!("{}.comp", parts.next().unwrap_or_default());
        let mut definitions = Vec::new();
        for part in parts {
            definitions.push(match part {
                "float" => continue,
                "int64" => ("COMPUTE", String::from("int64_t")),
                "double" => (DOUBLE, String::new()),
                "long" => ("LONG", String::new()),
                most if most.parse::<u32>().is_ok() => ("MOST_STEPS", most.to_owned()),
                _ => return Err(unknown_shader(name)),
            });
        }
        Ok(Self { text: source(&file)?, file, definitions })
    }
}

#[cold]
fn unknown_shader(name: &str) -> Error {
    Error::internal(format!("`{name}` is not a shader"))
}

#[cfg(test)]
mod tests {
    use super::{SOURCES, without_suffixes};

    #[test]
    fn doubles_have_no_suffix_in_c() {
        let text = "double half_ = 0.5lf * x - 1.0e-9lf; self(halflf, 2lfs, lf)";
        let expected = "double half_ = 0.5 * x - 1.0e-9; self(halflf, 2lfs, lf)";
        assert_eq!(without_suffixes(text), expected);
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
