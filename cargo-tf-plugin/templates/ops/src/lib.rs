//! Ops on texts for TensorFlow.
#![forbid(unsafe_code)]

use tf_op_plugin::prelude::*;

tf_op_plugin::op_plugin!();

/// Shortens texts to a number of characters.
///
/// Texts that are shorter stay as they are.
#[op(name = "TemplatePluginShorten", inputs(text: [..s]), outputs(short: [..s]))]
struct Shorten {
    /// How many characters of each text stay.
    #[attr(default = 8, min = 1)]
    length: i64,
}

impl Op for Shorten {
    type Inputs = Strings;
    type Outputs = Strings;

    fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Strings> {
        let length = usize::try_from(self.length).or_code(Code::InvalidArgument)?;
        let mut short = StringsBuf::new();
        for index in 0..text.len() {
            // An error for bytes that are not UTF-8; `text[index]` has any bytes.
            let text = text.str(index)?;
            let end = text.char_indices().nth(length).map_or(text.len(), |(at, _)| at);
            short.push(&text[..end]);
        }
        short.with_shape(text.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_plugin_testing::ops::Host;

    #[test]
    fn texts_are_shortened_to_characters() -> Result<()> {
        let call = Host::new().call("TemplatePluginShorten");
        let short = call.input([["résumé"], ["one"]]).attr("length", 4).run()?;
        assert_eq!(short.shape(0)?, [2, 1]);
        assert_eq!(short.strings(0)?, ["résu", "one"]);
        Ok(())
    }

    #[test]
    fn bytes_that_are_not_a_text_are_an_error() {
        let call = Host::new().call("TemplatePluginShorten");
        let error = call.input([b"\xff"]).run().unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }

    #[test]
    fn a_graph_knows_the_shape() -> Result<()> {
        let shapes = Host::new().shapes("TemplatePluginShorten");
        let shapes = shapes.input_shape([None, Some(3)]).infer()?;
        assert_eq!(shapes[0].dims(), Some(&[None, Some(3)][..]));
        Ok(())
    }
}
