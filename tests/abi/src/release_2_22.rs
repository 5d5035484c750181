//! The declarations of `tf-fs-sys` as TensorFlow 2.22 has them, made of those for older releases and of the modules with
//! what is different in 2.22. Also part of the build script, which generates the code that measures them.

/// The name of the copy.
pub const NAME: &str = "release_2_22";

/// The source of `module` for 2.22, given its source for older releases and that of `stream_executor_2_22`.
///
/// # Errors
/// When the sources have changed such that a text to cut or to add is not found once.
pub fn apply(module: &str, source: &str, stream_executor_2_22: &str) -> Result<String, String> {
    match module {
        "filesystem" => {
            let mut source = source.to_owned();
            for (from, until) in [
                (
                    "#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct TF_TransactionToken",
                    "/// A buffer inside",
                ),
                ("pub type TF_TransactionForPathOp", "/// Operations of a [`TF_Filesystem`]"),
                ("pub start_transaction:", "pub get_filesystem_configuration:"),
            ] {
                source = source.replacen(&between(&source, from, until)?, "", 1);
            }
            Ok(source)
        }
        "stream_executor" => {
            let added = stream_executor_2_22;
            let options = between(
                added,
                "/// What a stream is to be like.",
                "/// [`SP_StreamExecutor`] as TensorFlow has it",
            )?;
            let field = between(
                added,
                "pub create_stream_with_options:",
                "}\n\n/// Size in bytes of [`SP_StreamExecutorWithStreamOptions`]",
            )?;
            let size = "}\n\n/// Size in bytes of [`SP_StreamExecutor`]";
            let last = "offset_of_end!(SP_StreamExecutor, host_callback)";
            for text in [size, last] {
                once(source, text)?;
            }
            let source = source.replacen(size, &format!("{field}{size}"), 1).replacen(
                last,
                "offset_of_end!(SP_StreamExecutor, create_stream_with_options)",
                1,
            );
            Ok(source + &options)
        }
        _ => Ok(source.to_owned()),
    }
}

/// The text from `from` until before the next `until`.
fn between(source: &str, from: &str, until: &str) -> Result<String, String> {
    let start = once(source, from)?;
    let length = source[start..].find(until).ok_or_else(|| missing(until))?;
    Ok(source[start..start + length].to_owned())
}

fn once(source: &str, text: &str) -> Result<usize, String> {
    match source.match_indices(text).collect::<Vec<_>>().as_slice() {
        [(at, _)] => Ok(*at),
        _ => Err(missing(text)),
    }
}

fn missing(text: &str) -> String {
    format!("tf-fs-sys does not have `{text}` once; adapt src/release_2_22.rs of the ABI tests")
}
