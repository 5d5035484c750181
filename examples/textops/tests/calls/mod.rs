//! A sample call of each op.

use tf_plugin_testing::ops::Sample;

pub(crate) fn calls() -> [Sample; 5] {
    [
        Sample::new("TextWords")
            .input("text", ["To be", "", "  or  not "])
            .attribute("lower", true)
            .output("words_values", ["to", "be", "or", "not"])
            .output("words_row_splits", [0, 2, 2, 4]),
        Sample::new("TextDampen").input("counts", [[0.0, 1.0], [3.5, 7.0]]).attribute("scale", 2.0),
        Sample::new("TextDampenGrad")
            .input("counts", [0.0, 1.0, 3.0])
            .input("grad_dampened", [1.0, 1.0, 2.0])
            .output("grad_counts", [1.0, 0.5, 0.5]),
        Sample::new("TextExtract")
            .list("columns", [["n=1", "x N=22"], ["-", "n=3"]])
            .list("fallback", ["0"])
            .attribute("pattern", "n=([0-9]+)")
            .attribute("case", "ignore")
            .output("matches[0]", ["1", "22"])
            .output("matches[1]", ["0", "3"]),
        Sample::new("TextDistance")
            .input("a", ["kitten", "", "über"])
            .input("b", ["sitting", "abc", "uber"])
            .output("distances", [3, 3, 1]),
    ]
}
