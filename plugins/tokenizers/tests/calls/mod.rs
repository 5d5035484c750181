//! A sample call of each op, and of a pair of texts.

use tf_plugin_testing::ops::{Sample, Tensor};

/// A tokenizer of BERT's kind with 14 tokens.
const JSON: &str = r###"{
    "version": "1.0",
    "added_tokens": [
        {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
        {"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
        {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
        {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
    ],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
        "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "to": 4, "be": 5, "or": 6, "not": 7, "##a": 8, "##b": 9,
            "##x": 10, "a": 11, "b": 12, "x": 13}}
}"###;

pub(crate) fn calls() -> [Sample; 8] {
    let call = |op: &str, input: &str, tensor: Tensor| {
        Sample::new(op).input(input, tensor).input("tokenizer", JSON)
    };
    [
        call("HfTokenize", "text", ["To be", "", "or not toa"].into())
            .output("ids_values", [2, 4, 5, 3, 2, 3, 2, 6, 7, 4, 8, 3])
            .output("ids_row_splits", [0, 4, 6, 12]),
        call("HfTokenize", "text", ["to", "or be"].into())
            .list("pair", [["be", "not"]])
            .attribute("add_special_tokens", false)
            .attribute("max_length", 2)
            .attribute("truncation", "only_first")
            .output("ids_values", [4, 5, 6, 7])
            .output("ids_row_splits", [0, 2, 4]),
        call("HfTokenizeWithOffsets", "text", ["To bé", "or"].into())
            .attribute("add_special_tokens", false)
            .attribute("unit", "UTF8_CHAR")
            .output("ids_values", [4, 5, 6])
            .output("ids_row_splits", [0, 2, 3])
            .output("starts", [0, 3, 0])
            .output("limits", [2, 5, 2]),
        call("HfEncode", "text", ["to be", "or"].into())
            .attribute("pad_to_multiple_of", 5)
            .output("ids", [[2, 4, 5, 3, 0], [2, 6, 3, 0, 0]])
            .output("attention_mask", [[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
            .output("type_ids", [[0; 5]; 2]),
        call("HfDetokenize", "ids_values", [2, 4, 8, 5, 6].into())
            .input("ids_row_splits", [0, 4, 5])
            .output("text", ["toa be", "or"]),
        call("HfTokenToId", "tokens", ["to", "no such token"].into()).output("ids", [4, -1]),
        call("HfIdToToken", "ids", [4, 13].into()).output("tokens", ["to", "x"]),
        Sample::new("HfVocabSize").input("tokenizer", JSON).output("size", 14),
    ]
}
