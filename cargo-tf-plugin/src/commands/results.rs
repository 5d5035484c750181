//! The results of tests, by TensorFlow release.

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use crate::TensorFlow;

pub(super) struct Table {
    columns: Vec<String>,
    /// Whether each test has passed, by column.
    rows: Vec<(String, Vec<Option<bool>>)>,
}

impl Table {
    pub(super) fn new(tensorflows: &[TensorFlow]) -> Self {
        let releases = tensorflows.iter().map(|tensorflow| tensorflow.version().to_owned());
        let columns = ["in process".to_owned()].into_iter().chain(releases).collect();
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, name: &str, column: usize, passed: bool) {
        let at = self.rows.iter().position(|(row, _)| row == name).unwrap_or_else(|| {
            self.rows.push((name.to_owned(), vec![None; self.columns.len()]));
            self.rows.len() - 1
        });
        self.rows[at].1[column] = Some(passed);
    }

    pub(super) fn failures(&self) -> usize {
        let cells = self.rows.iter().flat_map(|(_, cells)| cells);
        cells.filter(|cell| **cell == Some(false)).count()
    }

    /// Returns one object for each test; tests in this process have no TensorFlow release.
    pub(super) fn json(&self) -> Vec<Value> {
        let tests = self.rows.iter().flat_map(|(name, cells)| {
            cells.iter().enumerate().filter_map(move |(column, cell)| {
                let outcome = if (*cell)? { "passed" } else { "failed" };
                let tensorflow = (column > 0).then(|| &self.columns[column]);
                Some(json!({ "test": name, "tensorflow": tensorflow, "outcome": outcome }))
            })
        });
        tests.collect()
    }

    pub(super) fn text(&self) -> String {
        let first = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let widths = || self.columns.iter().map(|column| column.len().max("FAILED".len()));
        let mut text = " ".repeat(first);
        for (column, width) in self.columns.iter().zip(widths()) {
            text.push_str(&format!("  {column:<width$}"));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        for (name, cells) in &self.rows {
            text.push_str(&format!("{name:<first$}"));
            for (cell, width) in cells.iter().zip(widths()) {
                let (word, colour) = match cell {
                    Some(true) => ("ok", Some(AnsiColor::Green)),
                    Some(false) => ("FAILED", Some(AnsiColor::Red)),
                    None => ("-", None),
                };
                let style = colour
                    .map_or(Style::new(), |colour| Style::new().fg_color(Some(colour.into())));
                let space = " ".repeat(width - word.len());
                text.push_str(&format!("  {style}{word}{style:#}{space}"));
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_a_test_and_a_column_a_release() {
        let columns = ["in process", "2.21.0", "2.12.1"].map(String::from).into();
        let mut table = Table { columns, rows: Vec::new() };
        table.add("cargo test", 0, true);
        table.add("notes://", 1, true);
        table.add("notes://", 2, false);
        let text = anstream::adapter::strip_str(&table.text()).to_string();
        let wanted = "            in process  2.21.0  2.12.1\n\
                      cargo test  ok          -       -\n\
                      notes://    -           ok      FAILED\n";
        assert_eq!(text, wanted);
        let tests = json!([
            { "test": "cargo test", "tensorflow": null, "outcome": "passed" },
            { "test": "notes://", "tensorflow": "2.21.0", "outcome": "passed" },
            { "test": "notes://", "tensorflow": "2.12.1", "outcome": "failed" },
        ]);
        assert_eq!(json!(table.json()), tests);
        assert_eq!(table.failures(), 1);
        assert!(table.text().contains("\u{1b}[31mFAILED\u{1b}[0m"), "no colour");
    }
}
